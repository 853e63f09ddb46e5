"""Batches of gates under a real scheduler, when jobs are lost, tasks are cleared, and two run at
once: no gate ends by a report that is not its own.

`pytest --airflow 3.1` runs the same tests on an Airflow that counts fewer clears.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dqx_airflow.results.runs import list_runs
from tests.operators.airflow_services import Airflow, DagOfTest, airflow_services
from tests.operators.gate_stubs import SUITE, install_stub, installed_airflow

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

DAG_FILE = """
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator, GateBatchOperator

HOME = Path(__file__).parents[1]

def lake(dag_id, held=(), retries=0, **outcomes):
    home = HOME / dag_id
    given = {
        "spark_binary": str(home / "bin" / "spark-submit"),
        "conf": {"spark.log.level": "ERROR"},
        "retry_delay": timedelta(0),
    }
    with DAG(dag_id, start_date=datetime(2024, 1, 1), schedule=None, max_active_runs=2):
        gates = [
            DqlGateOperator(
                task_id=name,
                suite="orders.dql",
                datasets={"orders": f"/lake/{name}/{outcome}"},
                results_root=str(home / "results"),
                retries=1,
                pool=dag_id if name in held else "default_pool",
                **given,
            )
            for name, outcome in outcomes.items()
        ]
        EmptyOperator(task_id="land") >> gates
        GateBatchOperator(task_id="gate_batch", gates=gates, retries=retries, **given)

lake("killed", retries=1, a="passed", b="blocked", c="blocked")
lake("at_once", a="passed", b="blocked")
lake("retried", held=["b"], a="passed", b="passed")
lake("landed_again", held=["late"], early="passed", late="passed")
lake("all_again", held=["late"], early="passed", late="passed")
lake("while_it_runs", a="passed", b="passed")
with DAG("probe", start_date=datetime(2024, 1, 1), schedule=None):
    EmptyOperator(task_id="nothing")
"""


@dataclass(frozen=True)
class Scene(DagOfTest):
    """What a test tells its Spark, and what became of its runs."""

    def will(self, *spark: str) -> None:
        """Says what each submission does; what a word `prints=NAME` prints, `go_on` says."""
        install_stub(self.home / "bin" / "spark-submit", self.spark.home, self.home / "results")
        self.spark.will(*spark)
        names = {word[7:] for line in spark for word in line.split() if word.startswith("prints=")}
        for name in names:
            os.mkfifo(self.spark.home / name)

    def start(self) -> str:
        return self.airflow.run(self.dag_id)

    def wait_for_job(self, number: int) -> None:
        self.airflow.wait_until(lambda: len(self.spark.calls) >= number)

    def go_on(self, name: str) -> None:
        """Lets a submission go on that prints a name; waits until it does."""
        (self.spark.home / name).write_text("")

    def tasks(self, run_id: str) -> dict[str, dict[str, Any]]:
        path = f"dags/{self.dag_id}/dagRuns/{run_id}/taskInstances"
        return {one["task_id"]: one for one in self.airflow.ask("GET", path)["task_instances"]}

    def states(self, run_id: str) -> dict[str, tuple[str, int]]:
        """The state of each gate and of the batch, and its number of tries."""
        tasks = self.tasks(run_id)
        return {
            name: (task["state"], task["try_number"])
            for name, task in tasks.items()
            if name != "land"
        }

    def wait_for(self, run_id: str, **states: str | None) -> None:
        self.airflow.wait_until(
            lambda: {name: self.tasks(run_id)[name]["state"] for name in states} == states
        )

    def wait_for_end(self, run_id: str) -> None:
        self.airflow.wait_for_end(self.dag_id, run_id)

    def clear(self, run_id: str, *task_ids: str) -> None:
        """Clears tasks, and nothing that stands after them."""
        body = {"dry_run": False, "dag_run_id": run_id, "task_ids": task_ids, "only_failed": False}
        self.airflow.ask("POST", f"dags/{self.dag_id}/clearTaskInstances", body)

    def hold(self) -> None:
        """Makes the pool of the DAG, in which gates wait until it is opened."""
        body = {"name": self.dag_id, "slots": 0, "include_deferred": False}
        self.airflow.ask("POST", "pools", body)

    def release(self) -> None:
        body = {"pool": self.dag_id, "slots": 1, "include_deferred": False}
        self.airflow.ask("PATCH", f"pools/{self.dag_id}", body)

    def outcomes(self, run_id: str) -> dict[str, str]:
        """The outcome of each gate, by the report of its last attempt."""
        reports = {
            one.attempt.id: str(one.outcome)
            for one in list_runs(str(self.home / "results"), all_attempts=True)
        }
        return {
            name: reports[task["id"]]
            for name, task in self.tasks(run_id).items()
            if task["id"] in reports
        }


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    home = tmp_path_factory.mktemp("batches")
    (home / "dags").mkdir()
    (home / "dags" / "batches.py").write_text(DAG_FILE)
    (home / "dags" / "orders.dql").write_text(SUITE)
    settings = {
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    }
    with airflow_services(home, settings) as services:
        yield services


def test_each_gate_has_its_own_report_when_the_job_of_a_batch_is_killed(airflow: Airflow) -> None:
    scene = Scene(airflow, "killed")
    scene.will("first=1 killed", "by_dataset", "by_dataset")
    run = scene.start()
    scene.wait_for_end(run)
    assert scene.states(run) == {
        "gate_batch": ("success", 2),
        "a": ("success", 1),
        "b": ("failed", 1),
        "c": ("failed", 1),
    }
    assert scene.outcomes(run) == {"a": "passed", "b": "blocked", "c": "blocked"}
    (alone,) = scene.spark.requests
    assert alone.run_key.gate == "killed.b", "the job was lost while it checked b"
    assert len(scene.spark.calls) == 3


def test_batches_of_two_runs_at_once_leave_each_gate_its_own_report(airflow: Airflow) -> None:
    scene = Scene(airflow, "at_once")
    scene.will("prints=first by_dataset", "prints=second by_dataset")
    first = scene.start()
    scene.wait_for_job(1)
    second = scene.start()
    scene.wait_for_job(2)
    scene.go_on("second")
    scene.go_on("first")
    for run in (first, second):
        scene.wait_for_end(run)
        assert scene.states(run) == {
            "gate_batch": ("success", 1),
            "a": ("success", 1),
            "b": ("failed", 1),
        }
        assert scene.outcomes(run) == {"a": "passed", "b": "blocked"}
    assert len(scene.spark.calls) == 2


def test_a_retry_of_one_gate_waits_for_a_batch_that_runs_again(airflow: Airflow) -> None:
    """And takes nothing from the batch, which has left it out since it was running."""
    scene = Scene(airflow, "retried")
    scene.will("first=0", "prints=own exit=1", "prints=batch by_dataset", "by_dataset")
    scene.hold()
    run = scene.start()
    scene.wait_for_job(2)
    scene.clear(run, "gate_batch")
    scene.wait_for_job(3)
    scene.go_on("own")
    scene.wait_for(run, a="up_for_retry")
    airflow.wait_for_end("probe", airflow.run("probe"))  # the scheduler has looked at everything
    assert scene.tasks(run)["a"]["state"] == "up_for_retry"
    assert len(scene.spark.calls) == 3
    scene.go_on("batch")
    scene.release()
    scene.wait_for_end(run)
    assert scene.states(run) == {
        "gate_batch": ("success", 2),
        "a": ("success", 2),
        "b": ("success", 1),
    }
    assert scene.outcomes(run) == {"a": "passed", "b": "passed"}
    assert [one.run_key.gate for one in scene.spark.requests] == ["retried.a", "retried.a"]
    assert len(scene.spark.calls) == 4


def test_a_batch_that_is_cleared_while_it_runs_leaves_nothing(airflow: Airflow) -> None:
    scene = Scene(airflow, "while_it_runs")
    scene.will("first=1 sleep", "blocked")
    run = scene.start()
    reports = scene.home / "results" / "_dqx_batches"
    airflow.wait_until(lambda: [*reports.glob("*/*/*.report")] != [])
    scene.clear(run, "gate_batch")
    scene.wait_for_end(run)
    assert {name: state for name, (state, _) in scene.states(run).items()} == {
        "gate_batch": "success",
        "a": "failed",
        "b": "failed",
    }
    assert scene.outcomes(run) == {"a": "blocked", "b": "blocked"}
    assert len(scene.spark.calls) == 2


def test_a_gate_takes_no_report_from_before_a_clear_of_the_task_before_it(airflow: Airflow) -> None:
    """Airflow 3.1 does not count such a clear while the DAG run is running: see docs/deploy.md."""
    scene = Scene(airflow, "landed_again")
    scene.will("by_dataset", "blocked")
    scene.hold()
    run = scene.start()
    scene.wait_for(run, gate_batch="success", early="success", late="scheduled")
    scene.clear(run, "land")
    scene.wait_for(run, land="success")
    scene.release()
    scene.wait_for_end(run)
    is_counted = installed_airflow() >= (3, 2)
    assert scene.outcomes(run) == {"early": "passed", "late": "blocked" if is_counted else "passed"}
    assert len(scene.spark.calls) == (2 if is_counted else 1)


def test_a_batch_that_is_cleared_with_the_task_before_its_gates_checks_again(
    airflow: Airflow,
) -> None:
    scene = Scene(airflow, "all_again")
    scene.will("by_dataset", "blocked")
    scene.hold()
    run = scene.start()
    scene.wait_for(run, gate_batch="success", early="success", late="scheduled")
    scene.clear(run, "land", "gate_batch")
    scene.wait_for(run, land="success", gate_batch="success")
    scene.release()
    scene.wait_for_end(run)
    assert scene.states(run) == {
        "gate_batch": ("success", 2),
        "early": ("success", 1),
        "late": ("failed", 1),
    }
    assert scene.outcomes(run) == {"early": "passed", "late": "blocked"}
    assert scene.spark.requests == [], "no gate has submitted a job of its own"
    assert len(scene.spark.calls) == 2
