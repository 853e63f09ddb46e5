"""Gates on a real YARN and a real Kubernetes, as tasks of a real Airflow.

In client and in cluster mode, and deferred. The Python of a driver in the cluster has no packages:
it finds what `dql package` wrote, and what its recipe says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.results.runs import list_runs
from tests.operators.clusters import Bundle, Cluster, packaged
from tests.operators.gate_stubs import (
    ENDLESS,
    SUITE,
    Gates,
    Log,
    Run,
    dag_file,
    event_of,
    killed,
    wait_for,
)
from tests.operators.kubernetes_cluster import kubernetes_cluster
from tests.operators.yarn_cluster import yarn_cluster
from tests.processes import PROGRAMS, environment

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e, pytest.mark.nightly]

CLUSTERS = {"yarn": yarn_cluster, "kubernetes": kubernetes_cluster}

Context = dict[str, Any]

DAG_FILE = dag_file("""
    DqlGateOperator(
        task_id="gate", suite="orders.dql", date="2024-05-17", **GATE
    ) >> EmptyOperator(task_id="downstream")
""")


@pytest.fixture(scope="module", params=list(CLUSTERS))
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with CLUSTERS[request.param](tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return packaged(tmp_path_factory.mktemp("bundle"))


@pytest.fixture
def on_worker(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The connection is set; these are the arguments of a gate whose driver runs on the worker."""
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(cluster.connection))
    for name, value in {**environment(), **cluster.variables}.items():
        monkeypatch.setenv(name, value)
    conf = {
        **cluster.conf,
        "spark.executor.instances": "1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
    }
    return {"conn_id": "cluster", "conf": conf, "spark_binary": str(PROGRAMS / "spark-submit")}


@pytest.fixture
def in_cluster(on_worker: dict[str, Any], cluster: Cluster, bundle: Bundle) -> dict[str, Any]:
    """The arguments of a gate whose driver runs in the cluster."""
    more = cluster.in_cluster(bundle)
    conf = {**on_worker["conf"], **more.pop("conf")}
    return {**on_worker, **more, "conf": conf, "deploy_mode": "cluster"}


@pytest.fixture
def arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    ("arguments", "more", "data", "states"),
    [
        ("on_worker", {}, "damaged", ("failed", "upstream_failed", 1)),
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
    cluster: Cluster,
    log: Log,
    more: dict[str, Any],
    data: str,
    states: tuple[str, str, int],
) -> None:
    earlier = cluster.drivers()
    dataset = {"path": str(lake / data), "format": "parquet"}
    given = {"datasets": {"orders": dataset}, **arguments, **more}
    run = run_file(DAG_FILE.replace("GATE", repr(given)), {"orders.dql": SUITE})
    assert (run["gate"], run["downstream"], run.tries()) == states, log.text
    report = run.xcom("dqx_report")
    assert report["counts"]["failed"] == (data == "damaged")
    (row,) = list_runs(str(tmp_path / "results"))
    assert row.run_id == report["run_id"]
    # A gate that blocks has done its work: to the cluster it has succeeded. (Kubernetes knows of
    # no driver that runs on the worker.)
    news = [driver for driver in cluster.drivers() if driver not in earlier]
    assert news or "deploy_mode" not in arguments
    wait_for(lambda: all(cluster.fate(driver) == "SUCCEEDED" for driver in news))


def test_a_timeout_in_the_cluster_is_an_error_of_its_own(
    gate: Gates, in_cluster: dict[str, Any], cluster: Cluster
) -> None:
    gate.fails(
        "GateTimeoutError",
        "longer than 5 seconds; increase the",
        datasets={"orders": {"query": ENDLESS}},
        validation_timeout=5,
        **in_cluster,
    )
    assert cluster.fate(cluster.drivers()[0]) == "FAILED"


def test_a_kill_ends_the_driver_in_the_cluster(
    gate: Gates, in_cluster: dict[str, Any], cluster: Cluster
) -> None:
    earlier, running = cluster.drivers(), []

    def is_running() -> bool:
        running[:] = [driver for driver in cluster.drivers() if driver not in earlier]
        return [cluster.fate(driver) for driver in running] == ["RUNNING"]

    made = gate(datasets={"orders": {"query": ENDLESS}}, **in_cluster)
    error = killed(made, gate.context, is_running)
    assert isinstance(error, gate.operators.GateInfrastructureError)
    wait_for(lambda: cluster.fate(running[0]) == "KILLED")


def test_a_submission_refused_by_the_cluster_is_reported(
    gate: Gates, in_cluster: dict[str, Any], cluster: Cluster, log: Log
) -> None:
    arguments, message = cluster.refused
    conf = {**in_cluster["conf"], **arguments.get("conf", {})}
    gate.fails(
        "GateInfrastructureError", r"see .*attempt=", **{**in_cluster, **arguments, "conf": conf}
    )
    assert message in log.text


# Deferred


@pytest.fixture
def deferred(gate: Gates, in_cluster: dict[str, Any]) -> Callable[..., tuple[Any, Any]]:
    """Submits a gate that does not end by itself; returns it, and its trigger."""

    def submit(**given: Any) -> tuple[Any, Any]:
        datasets = {"orders": {"query": ENDLESS}}
        made = gate(datasets=datasets, deferrable=True, **in_cluster, **given)
        return made, gate.deferred(made).trigger

    return submit


def test_the_trigger_ends_the_driver(
    deferred: Callable[..., tuple[Any, Any]], cluster: Cluster
) -> None:
    _, trigger = deferred()
    assert cluster.drivers()[0] == trigger.driver_id
    asyncio.run(trigger.on_kill())
    wait_for(lambda: cluster.fate(trigger.driver_id) == "KILLED")


def test_a_driver_killed_in_the_cluster_is_reported(
    operators: ModuleType,
    context: Context,
    deferred: Callable[..., tuple[Any, Any]],
    cluster: Cluster,
) -> None:
    made, trigger = deferred()
    message = cluster.kill(trigger.driver_id)
    with pytest.raises(operators.GateInfrastructureError, match=message):
        made.execute_complete(context, event_of(trigger))


def test_a_timeout_is_recognised_by_the_exit_code(
    operators: ModuleType, context: Context, deferred: Callable[..., tuple[Any, Any]]
) -> None:
    made, trigger = deferred(validation_timeout=5)
    with pytest.raises(operators.GateTimeoutError, match="longer than 5 seconds; increase the"):
        made.execute_complete(context, event_of(trigger))
