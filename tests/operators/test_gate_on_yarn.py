"""Gates on a real YARN, as tasks of a real Airflow: in client and in cluster mode, and deferred.

The Python of a driver in the cluster has no packages: it finds what `dql package` wrote, and what
its recipe says.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gate_stubs import ENDLESS, SUITE, Log, Run, event_of, killed, wait_for
from processes import PROGRAMS, environment
from yarn_cluster import JARS, Yarn, yarn_cluster

from dqx_airflow.results.reader import list_runs

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e, pytest.mark.nightly]

Gate = Callable[..., Any]
Context = dict[str, Any]

DAG_FILE = """
from datetime import datetime, timedelta

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator

with DAG("DAG_ID", start_date=datetime(2024, 1, 1), schedule=None):
    DqlGateOperator(
        task_id="gate", suite="orders.dql", date="2024-05-17", **GATE
    ) >> EmptyOperator(task_id="downstream")
"""


@dataclass(frozen=True)
class Bundle:
    """What a driver in the cluster takes along, and a Python that has nothing else."""

    code: Path
    native: Path
    python: Path


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    with yarn_cluster(tmp_path_factory.mktemp("yarn")) as found:
        yield found


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """As the recipe of `dql package` says, word by word."""
    folder = tmp_path_factory.mktemp("bundle")
    code = folder / "job.zip"

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = run("dql", "package", "--output", str(code))
    (recipe,) = re.findall(r"^  (pip install --target.*?-czf \S+ \.)$", said, re.M | re.S)
    run("bash", "-ec", recipe)
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "bare"))
    return Bundle(code, folder / "native.tar.gz", folder / "bare" / "bin" / "python")


@pytest.fixture
def on_yarn(yarn: Yarn, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The connection is set; these are the arguments of a gate whose driver runs on the worker."""
    extra = {"yarn_resourcemanager_webapp_address": yarn.web}
    connection = {"conn_type": "spark", "host": "yarn", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_YARN", json.dumps(connection))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn.settings))
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    conf = {
        "spark.yarn.jars": f"local:{JARS}/*",
        "spark.yarn.stagingDir": str(yarn.staging),
        "spark.executor.instances": "1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
    }
    return {"conn_id": "yarn", "conf": conf, "spark_binary": str(PROGRAMS / "spark-submit")}


@pytest.fixture
def in_cluster(on_yarn: dict[str, Any], bundle: Bundle) -> dict[str, Any]:
    """The arguments of a gate whose driver runs in the cluster."""
    conf = {
        **on_yarn["conf"],
        "spark.yarn.appMasterEnv.PYTHONPATH": "native",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": str(bundle.python),
    }
    return {
        **on_yarn,
        "conf": conf,
        "deploy_mode": "cluster",
        "py_files": str(bundle.code),
        "archives": f"{bundle.native}#native",
    }


@pytest.fixture
def arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name, ids in {"sound": [1, 2, 3], "damaged": [1, 2, None]}.items():
        (tmp_path / "lake" / name).mkdir(parents=True)
        pq.write_table(pa.table({"id": ids}), tmp_path / "lake" / name / "0.parquet")
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("arguments", "more", "data", "states"),
    [
        ("on_yarn", {}, "damaged", ("failed", "upstream_failed", 1)),
        ("in_cluster", {}, "damaged", ("failed", "upstream_failed", 1)),
        ("in_cluster", {"deferrable": True}, "damaged", ("failed", "upstream_failed", 1)),
        ("in_cluster", {"deferrable": True}, "sound", ("success", "success", 1)),
    ],
    indirect=["arguments"],
)
def test_a_gate_ends_as_on_one_machine(
    run_file: Callable[..., Run],
    arguments: dict[str, Any],
    lake: Path,
    tmp_path: Path,
    yarn: Yarn,
    log: Log,
    more: dict[str, Any],
    data: str,
    states: tuple[str, str, int],
) -> None:
    dataset = {"path": str(lake / data), "format": "parquet"}
    given = {"datasets": {"orders": dataset}, **arguments, **more}
    run = run_file(DAG_FILE.replace("GATE", repr(given)), {"orders.dql": SUITE})
    assert (run["gate"], run["downstream"], run.tries()) == states, log.text
    report = run.xcom("dqx_report")
    assert report["counts"]["failed"] == (data == "damaged")
    (row,) = list_runs(str(tmp_path / "results"))
    assert row.run_id == report["run_id"]
    # A gate that blocks has done its work: to YARN it has succeeded.
    wait_for(lambda: yarn.applications()[0]["finalStatus"] == "SUCCEEDED")


def test_a_timeout_in_the_cluster_is_an_error_of_its_own(
    operators: ModuleType, gate: Gate, context: Context, in_cluster: dict[str, Any], yarn: Yarn
) -> None:
    made = gate(datasets={"orders": {"query": ENDLESS}}, timeout=5, **in_cluster)
    with pytest.raises(operators.GateTimeoutError, match="longer than 5 seconds; give it more"):
        made.execute(context)
    assert yarn.applications()[0]["finalStatus"] == "FAILED"


def test_a_kill_ends_the_driver_in_the_cluster(
    operators: ModuleType, gate: Gate, context: Context, in_cluster: dict[str, Any], yarn: Yarn
) -> None:
    earlier = len(yarn.applications())

    def is_running() -> bool:
        newest, *others = yarn.applications() or [{"state": ""}]
        return len(others) == earlier and newest["state"] == "RUNNING"

    made = gate(datasets={"orders": {"query": ENDLESS}}, **in_cluster)
    error = killed(made, context, is_running)
    assert isinstance(error, operators.GateInfrastructureError)
    wait_for(lambda: yarn.applications()[0]["state"] == "KILLED")


def test_a_queue_that_is_not_there_is_told(
    operators: ModuleType, gate: Gate, context: Context, in_cluster: dict[str, Any], log: Log
) -> None:
    made = gate(yarn_queue="nowhere", **in_cluster)
    with pytest.raises(operators.GateInfrastructureError, match="its output above says why"):
        made.execute(context)
    assert "unknown queue: nowhere" in log.text


# Deferred


@pytest.fixture
def deferred(
    gate: Gate, context: Context, in_cluster: dict[str, Any]
) -> Callable[..., tuple[Any, Any]]:
    """Submits a gate that does not end by itself; returns it, and its trigger."""
    from airflow.providers.common.compat.sdk import TaskDeferred

    def submit(**given: Any) -> tuple[Any, Any]:
        datasets = {"orders": {"query": ENDLESS}}
        made = gate(datasets=datasets, deferrable=True, **in_cluster, **given)
        with pytest.raises(TaskDeferred) as found:
            made.execute(context)
        return made, found.value.trigger

    return submit


def test_the_trigger_ends_the_driver(deferred: Callable[..., tuple[Any, Any]], yarn: Yarn) -> None:
    _, trigger = deferred()
    asyncio.run(trigger.on_kill())
    wait_for(lambda: yarn.applications()[0]["state"] == "KILLED")
    assert yarn.applications()[0]["id"] == trigger.driver_id


def test_who_killed_the_driver_is_told(
    operators: ModuleType, context: Context, deferred: Callable[..., tuple[Any, Any]], yarn: Yarn
) -> None:
    made, trigger = deferred()
    yarn.kill(trigger.driver_id)
    message = f"the application {trigger.driver_id} ended as KILLED: .* killed by user"
    with pytest.raises(operators.GateInfrastructureError, match=message):
        made.execute_complete(context, event_of(trigger))


def test_a_timeout_is_known_by_the_exit_code_that_yarn_tells(
    operators: ModuleType, context: Context, deferred: Callable[..., tuple[Any, Any]]
) -> None:
    made, trigger = deferred(timeout=5)
    with pytest.raises(operators.GateTimeoutError, match="longer than 5 seconds; give it more"):
        made.execute_complete(context, event_of(trigger))
