"""The gates of a whole lake under a real scheduler and a real Spark: in a batch, as in the example
DAG, and over a server that tasks of the DAG start and stop, as in `docs/deploy.md`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyspark
import pytest

import dqx_airflow
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.results.runs import list_runs
from dqx_airflow.values.files import shipped
from tests.operators.airflow_services import Airflow, airflow_services
from tests.processes import PROGRAMS, free_port

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e, pytest.mark.nightly]

PAGE = Path(dqx_airflow.__file__).parent / "docs" / "deploy.md"
NEWEST = datetime.now(timezone.utc).date() - timedelta(days=1)


@dataclass(frozen=True)
class Lake:
    """The running services, whose DAGs check a lake of 40 tables."""

    airflow: Airflow
    results: Path

    def ended(self, dag_id: str, on: date) -> dict[str, str | None]:
        """The states of the tasks of a run for a date, when it has ended."""
        at = datetime(on.year, on.month, on.day, 6, tzinfo=timezone.utc).isoformat()
        made = self.airflow.ask("POST", f"dags/{dag_id}/dagRuns", {"logical_date": at})
        run_id = made["dag_run_id"]
        self.airflow.wait_for_end(dag_id, run_id)
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        return {
            one["task_id"]: one["state"] for one in self.airflow.ask("GET", path)["task_instances"]
        }

    def outcomes(self, dag_id: str, on: date) -> dict[str, str]:
        """The outcome of each gate of a DAG that has a report about a date."""
        return {
            run.run_key.gate.removeprefix(f"{dag_id}."): str(run.outcome)
            for run in list_runs(str(self.results), all_attempts=True)
            if run.run_key.date == on and run.run_key.gate.startswith(f"{dag_id}.")
        }


def write_lake(root: Path) -> None:
    """Writes the lake of the tutorial, whose newest day is yesterday."""
    script = str(shipped("dags_examples/lake/make_lake.py"))
    subprocess.run([sys.executable, script, str(root)], check=True)


def server_dag(port: int) -> str:
    """The DAG of the page about gates over a server of their own, on a port of this test."""
    section = PAGE.read_text("utf-8").split("\n### A server for the gates of a DAG\n")[1]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    assert found[1].count("15002") == 1
    text = found[1].replace("15002", str(port))
    return text.replace(
        'Path(__file__).with_name("dqx.toml")', 'Path(__file__).parent / "lake" / "dqx.toml"'
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    home = tmp_path_factory.mktemp("lake")
    port = free_port()
    write_lake(home / "lake")
    dags = home / "dags"
    dags.mkdir()
    shutil.copy(shipped("dags_examples/lake_gates.py"), dags)
    shutil.copytree(shipped("dags_examples/lake"), dags / "lake")
    settings_file = dags / "lake" / "dqx.toml"
    settings_file.write_text(settings_file.read_text().replace("/tmp/lake", str(home / "lake")))
    (dags / "lake_over_a_server.py").write_text(server_dag(port))
    server = {"conn_type": "spark", "host": f"sc://127.0.0.1:{port}"}
    settings = {
        **java_environment(),
        "AIRFLOW__DQX__RESULTS_ROOT": str(home / "results"),
        "AIRFLOW__OPENLINEAGE__DISABLED": "True",
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "AIRFLOW_CONN_SPARK_SERVER": json.dumps(server),
        "PATH": os.pathsep.join([str(PROGRAMS), os.environ["PATH"]]),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(home / "spark"),
        "SPARK_PID_DIR": str(home / "spark"),
    }
    with airflow_services(home, settings) as services:
        yield Lake(services, home / "results")


def test_the_gates_of_the_example_end_by_their_own_reports(lake: Lake) -> None:
    good = lake.ended("lake_gates", NEWEST - timedelta(days=3))
    assert set(good.values()) == {"success"}
    assert lake.ended("lake_gates", NEWEST) == {
        "gate_batch": "success",
        "customers": "success",
        "orders": "failed",
        "publish": "upstream_failed",
    }
    outcomes = lake.outcomes("lake_gates", NEWEST)
    assert outcomes.pop("orders") == "blocked"
    assert outcomes.keys() == {"customers"}


def test_gates_share_a_server_that_tasks_start_and_stop(lake: Lake) -> None:
    assert lake.ended("lake_over_a_server", NEWEST) == {
        "start_server": "success",
        "customers": "success",
        "orders": "failed",
        "visits": "success",
        "stop_server": "success",
    }
    outcomes = lake.outcomes("lake_over_a_server", NEWEST)
    assert outcomes.pop("orders") == "blocked"
    assert outcomes.keys() == {"customers", "visits"}
    log = "".join(file.read_text() for file in (lake.airflow.home / "spark").glob("*.out*"))
    assert "Spark Connect server started" in log
    assert not [*(lake.airflow.home / "spark").glob("*.pid")], "the server was stopped"
