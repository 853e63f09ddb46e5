"""A deferred gate under a real scheduler and a real triggerer; the cluster, or the service, is a
stand-in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.operators.airflow_services import Airflow, airflow_services
from tests.operators.gate_stubs import SUITE, SparkSubmit, install_stub
from tests.operators.resource_manager import ResourceManager, resource_manager
from tests.operators.spark_services import Livy, serving

pytestmark = [pytest.mark.airflow, pytest.mark.nightly]

DAG_FILE = """
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator
from dqx_airflow.operators.submitters import LivyBatches

HOME = Path(__file__).parents[1]

with DAG("deferred", start_date=datetime(2024, 1, 1), schedule=None):
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        spark_binary=str(HOME / "bin" / "spark-submit"),
        results_root=str(HOME / "results"),
        conn_id="yarn",
        deploy_mode="cluster",
        deferrable=True,
    ) >> EmptyOperator(task_id="next")

with DAG("on_livy", start_date=datetime(2024, 1, 1), schedule=None):
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        results_root=str(HOME / "results"),
        submit=LivyBatches({"file": "/opt/gate_job.py"}, "livy"),
        deferrable=True,
    ) >> EmptyOperator(task_id="next")
"""


@dataclass(frozen=True)
class Stand:
    """The services, and what stands in for the cluster."""

    airflow: Airflow
    manager: ResourceManager
    livy: Livy
    spark_submit: SparkSubmit

    def run_until_deferred(self, dag_id: str = "deferred") -> str:
        asked_manager, asked_livy = self.manager.asked, len(self.livy.asked)
        run_id = self.airflow.run(dag_id)
        self.airflow.wait_until(lambda: self.state(run_id, "gate", dag_id) == "deferred")
        # The triggerer runs the trigger: of a task that ends before, nobody tells it.
        self.airflow.wait_until(
            lambda: self.manager.asked > asked_manager + 1 or len(self.livy.asked) > asked_livy + 2
        )
        return run_id

    def state(self, run_id: str, task_id: str, dag_id: str = "deferred") -> str | None:
        (task,) = self.airflow.tasks(dag_id, run_id, task_id)
        return task.state


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    (home / "dags" / "deferred.py").write_text(DAG_FILE)
    (home / "dags" / "orders.dql").write_text(SUITE)
    stub = install_stub(home / "bin" / "spark-submit", home / "submitted", home / "results")
    livy = Livy(home, spark_submit=str(stub.home.parent / "bin" / "spark-submit"))
    with resource_manager() as manager, serving(livy):
        extra = {"yarn_resourcemanager_webapp_address": manager.address}
        connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
        settings = {
            "AIRFLOW_CONN_YARN": json.dumps(connection),
            "AIRFLOW_CONN_LIVY": livy.connection,
            "AIRFLOW__OPENLINEAGE__DISABLED": "True",
        }
        with airflow_services(home, settings) as airflow:
            airflow.start_triggerer()
            yield Stand(airflow, manager, livy, stub)


def test_the_slot_is_free_while_the_driver_runs(stand: Stand) -> None:
    stand.spark_submit.will("on-yarn passed")
    stand.manager.will_say("RUNNING")
    run_id = stand.run_until_deferred()
    assert stand.spark_submit.processes == []
    stand.manager.will_say("FINISHED")
    assert stand.airflow.wait_for_end("deferred", run_id) == "success"
    assert (stand.state(run_id, "gate"), stand.state(run_id, "next")) == ("success", "success")
    assert len(stand.spark_submit.calls) == 1


def test_marking_a_deferred_task_failed_kills_its_driver(stand: Stand) -> None:
    from airflow.triggers.base import BaseTrigger

    if not hasattr(BaseTrigger, "on_kill"):
        pytest.skip("Airflow before 3.3 does not tell a trigger that its task was ended")
    stand.spark_submit.will("on-yarn")
    stand.manager.will_say("RUNNING")
    run_id = stand.run_until_deferred()
    stand.airflow.mark("deferred", run_id, "gate", "failed")
    stand.airflow.wait_until(lambda: stand.manager.killed)
    assert stand.airflow.wait_for_end("deferred", run_id) == "failed"
    assert stand.state(run_id, "next") == "upstream_failed"


def test_a_deferred_gate_on_a_service_is_continued(stand: Stand) -> None:
    stand.spark_submit.will("passed")
    stand.livy.waits = 3
    run_id = stand.run_until_deferred("on_livy")
    assert stand.airflow.wait_for_end("on_livy", run_id) == "success"
    assert stand.state(run_id, "next", "on_livy") == "success"


def test_marking_a_deferred_task_failed_cancels_its_job_on_a_service(stand: Stand) -> None:
    from airflow.triggers.base import BaseTrigger

    if not hasattr(BaseTrigger, "on_kill"):
        pytest.skip("Airflow before 3.3 does not tell a trigger that its task was ended")
    stand.spark_submit.will("sleep")
    run_id = stand.run_until_deferred("on_livy")
    stand.airflow.mark("on_livy", run_id, "gate", "failed")
    stand.airflow.wait_until(lambda: stand.livy.jobs[-1].is_cancelled)
    assert stand.airflow.wait_for_end("on_livy", run_id) == "failed"
