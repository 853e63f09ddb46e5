"""Deferred gates in a real Airflow, with stubs of `spark-submit` and YARN's ResourceManager.

`dag.test()` runs the trigger in its own process, as the triggerer would.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import to_json
from tests.operators.gate_stubs import (
    SUITE,
    Gates,
    Log,
    Run,
    SparkSubmit,
    dag_file,
    event_of,
    killed,
)
from tests.operators.resource_manager import APPLICATION, ResourceManager, resource_manager
from tests.operators.spark_submit_stub import canned_report

pytestmark = pytest.mark.airflow


DAG_FILE = dag_file("""
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        conn_id="yarn",
        deploy_mode="cluster",
        deferrable=True,
        retries=1,
        retry_delay=timedelta(0),
    ) >> EmptyOperator(task_id="downstream")
""")


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[ResourceManager]:
    with resource_manager() as started:
        connect_to(started.address, monkeypatch)
        yield started


def connect_to(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"yarn_resourcemanager_webapp_address": address}
    connection = {"conn_type": "spark", "host": "yarn", "password": "hush", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_YARN", json.dumps(connection))


@pytest.fixture
def run_dag(run_file: Callable[..., Run], manager: ResourceManager) -> Callable[[], Run]:
    return lambda: run_file(DAG_FILE, {"orders.dql": SUITE})


# The way of a whole task


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("report", "states"),
    [
        ("passed", ("success", "success", 1)),
        ("warned", ("success", "success", 1)),
        ("blocked", ("failed", "upstream_failed", 1)),
        ("broken", ("failed", "upstream_failed", 1)),
    ],
)
def test_a_deferred_gate_ends_as_any_other(
    run_dag: Callable[[], Run],
    spark_submit: SparkSubmit,
    manager: ResourceManager,
    report: str,
    states: tuple[str, str, int],
) -> None:
    spark_submit.will(f"on-yarn {report}")
    manager.will_say("ACCEPTED", "RUNNING", "FINISHED")
    run = run_dag()
    assert (run["gate"], run["downstream"], run.tries()) == states
    assert run.xcom("dqx_report")["outcome"] == report
    assert manager.asked == 3
    assert spark_submit.conf["spark.yarn.submit.waitAppCompletion"] == "false"
    assert spark_submit.conf["spark.yarn.maxAppAttempts"] == "1"


def test_an_application_without_a_report_is_retried(
    run_dag: Callable[[], Run], spark_submit: SparkSubmit, manager: ResourceManager
) -> None:
    spark_submit.will("on-yarn", "on-yarn passed")
    manager.will_say("FAILED", "FINISHED")
    run = run_dag()
    assert (run["gate"], run["downstream"], run.tries()) == ("success", "success", 2)


def test_a_failed_submission_is_not_deferred(
    run_dag: Callable[[], Run], spark_submit: SparkSubmit, manager: ResourceManager
) -> None:
    spark_submit.will("exit=1")
    run = run_dag()
    assert (run["gate"], run.tries()) == ("failed", 2)
    assert manager.asked == 0


# The trigger


@pytest.fixture
def request_json(gate: Gates) -> str:
    return to_json(gate.request())


@pytest.fixture
def trigger(request_json: str, manager: ResourceManager) -> Callable[..., Any]:
    from dqx_airflow.operators.trigger import GateTrigger

    def make(**given: Any) -> Any:
        defaults: dict[str, Any] = {
            "kind": "yarn",
            "driver_id": APPLICATION,
            "conn_id": "yarn",
            "request": request_json,
            "results_conn_id": None,
            "deadline": None,
            "longest_wait_s": 0.01,
        }
        return GateTrigger(**{**defaults, **given})

    return make


def test_a_trigger_survives_serialization_and_holds_no_secret(trigger: Callable[..., Any]) -> None:
    made = trigger(deadline=123.5)
    path, arguments = made.serialize()
    assert path == "dqx_airflow.operators.trigger.GateTrigger"
    arguments = json.loads(json.dumps(arguments))
    assert type(made)(**arguments).serialize() == made.serialize()
    assert "hush" not in json.dumps(arguments)
    assert "hush" not in repr(made)


def test_an_unresponsive_cluster_is_polled_again(
    trigger: Callable[..., Any], manager: ResourceManager
) -> None:
    manager.will_say(*[None] * 9, "RUNNING", *[None] * 9, "FINISHED")
    assert event_of(trigger())["how"] == f"the application {APPLICATION} ended as SUCCEEDED"


def test_the_diagnosis_of_the_cluster_is_shown_without_stack_traces(
    trigger: Callable[..., Any], manager: ResourceManager
) -> None:
    diagnosis_text = f"User application exited with status 1{'!' * 500}\n\tat hush"
    manager.will_say("FAILED", diagnosis=diagnosis_text)
    event = event_of(trigger())
    assert event["how"].startswith(f"the application {APPLICATION} ended as FAILED: User app")
    assert len(event["how"]) < 300
    assert "hush" not in event["how"]
    assert event["code"] == 1


def test_a_cluster_may_give_no_diagnosis(
    trigger: Callable[..., Any], manager: ResourceManager
) -> None:
    manager.will_say("KILLED", diagnosis=None)
    assert event_of(trigger())["how"] == f"the application {APPLICATION} ended as KILLED"


def test_a_report_is_found_even_if_the_cluster_does_not_respond(
    trigger: Callable[..., Any], manager: ResourceManager, gate: Gates
) -> None:
    manager.will_say("RUNNING", None)
    request = gate.request()
    ResultsStore(request.results_root).write(canned_report(request, "passed"))
    assert event_of(trigger())["how"].startswith("the report was complete")
    assert manager.asked == 2


def test_a_driver_that_cannot_be_polled_ends_the_wait(
    trigger: Callable[..., Any], manager: ResourceManager
) -> None:
    manager.will_say(None)
    event = event_of(trigger())
    assert event["how"].startswith(f"its driver {APPLICATION} cannot be tracked: ")
    assert "503" in event["how"]
    assert not event["is_late"]
    assert manager.asked == 10


def test_at_its_deadline_the_driver_is_cancelled(
    trigger: Callable[..., Any], manager: ResourceManager
) -> None:
    manager.will_say("ACCEPTED")
    event = event_of(trigger(deadline=time.time() + 0.1))
    assert event["is_late"]
    assert manager.killed


def test_a_killed_task_kills_its_driver(
    trigger: Callable[..., Any], manager: ResourceManager
) -> None:
    manager.will_say("RUNNING")
    asyncio.run(trigger().on_kill())
    assert manager.killed


def test_a_failed_cancellation_is_logged(
    trigger: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    connect_to("http://127.0.0.1:1", monkeypatch)
    asyncio.run(trigger().on_kill())
    assert APPLICATION in log.text


# The operator alone


def test_the_state_of_the_triggerer_is_small(
    gate: Gates, spark_submit: SparkSubmit, manager: ResourceManager
) -> None:
    spark_submit.will("on-yarn")
    made = gate(
        suite=SUITE + "# noise\n" * 10_000, conn_id="yarn", deploy_mode="cluster", deferrable=True
    )
    deferred = gate.deferred(made)
    _, arguments = deferred.trigger.serialize()
    assert len(json.dumps(arguments)) < 3000
    assert arguments["driver_id"] == APPLICATION
    assert deferred.method_name == "execute_complete"
    assert made.application_args == []


def test_without_a_report_the_error_has_the_end_of_the_driver(
    gate: Gates, request_json: str
) -> None:
    event = {"request": request_json, "how": "the application ended as FAILED", "is_late": False}
    message = "date 2024-05-17: the application ended as FAILED; see the log of its driver"
    with pytest.raises(gate.operators.GateInfrastructureError, match=message) as raised:
        gate().execute_complete(gate.context, event)
    assert not isinstance(raised.value, gate.operators.GateTimeoutError)


def test_a_timeout_is_an_error_of_its_own(gate: Gates, request_json: str) -> None:
    event = {"request": request_json, "how": "the task took longer", "is_late": True}
    with pytest.raises(
        gate.operators.GateTimeoutError, match="the task took longer; increase the timeout"
    ):
        gate().execute_complete(gate.context, event)


def test_a_driver_that_ended_at_its_deadline_is_an_error_of_its_own(gate: Gates) -> None:
    request = to_json(gate.request(validation_timeout=90))
    event = {"request": request, "how": "it ended as FAILED", "code": 124, "is_late": False}
    with pytest.raises(
        gate.operators.GateTimeoutError, match="took longer than 90 seconds; increase"
    ):
        gate().execute_complete(gate.context, event)


@pytest.mark.parametrize(
    ("connection", "given", "message"),
    [
        ({"host": "local[2]"}, {}, r"\(local\[2\], client mode\)"),
        ({"host": "yarn"}, {}, r"\(yarn, client mode\)"),
        ({"host": "k8s://https://host"}, {}, r"\(k8s://https://host, client mode\)"),
        (
            {"host": "spark://host:7077"},
            {"deploy_mode": "cluster"},
            r"cluster mode\) has no driver",
        ),
        ({"host": "sc://host"}, {}, r"\(Spark Connect, client mode\)"),
        ({"host": "yarn"}, {"deploy_mode": "cluster"}, "set yarn_resourcemanager_webapp_address"),
    ],
    ids=str,
)
def test_a_driver_that_cannot_be_tracked_is_refused(
    gate: Gates,
    spark_submit: SparkSubmit,
    monkeypatch: pytest.MonkeyPatch,
    connection: dict[str, str],
    given: dict[str, str],
    message: str,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_FAR", json.dumps({"conn_type": "spark", **connection}))
    gate.fails("GateMisconfiguredError", message, conn_id="far", deferrable=True, **given)
    assert spark_submit.calls == []


def test_credentials_that_cannot_travel_are_refused(gate: Gates, manager: ResourceManager) -> None:
    gate.fails(
        "GateMisconfiguredError",
        "yarn_rm_auth cannot be handed",
        conn_id="yarn",
        deploy_mode="cluster",
        deferrable=True,
        yarn_rm_auth=("me", "hush"),
    )


def test_a_kill_ends_spark_submit_on_yarn_too(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_YARN", json.dumps({"conn_type": "spark", "host": "yarn"}))
    spark_submit.will("on-yarn sleep")
    made = gate(conn_id="yarn", deploy_mode="cluster")
    error = killed(
        made, gate.context, lambda: getattr(made._hook, "_yarn_application_id", None) is not None
    )
    assert "killed by signal 9" in str(error)
