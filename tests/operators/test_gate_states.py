"""The states of a gate and of the tasks after it: Airflow's own `dag.test()` on real DAG files.

The outcome table of the design, row for row. Only Spark is a stub.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from dqx_airflow.results.alerts import alerts
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile
from tests.operators.gate_stubs import SUITE, Log, Run, SparkSubmit, needs_airflow

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_database")]

DAG_FILE = """
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, task

from dqx_airflow.operators import DqlGateOperator, GateInfrastructureError

try:
    from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
except ImportError:  # Airflow before 3.3 has no retry policies
    pass
else:
    never_again = ExceptionRetryPolicy(
        rules=[RetryRule(exception=GateInfrastructureError, action=RetryAction.FAIL)]
    )

def note_to(path):
    def note(context):
        outcome = context["ti"].xcom_pull(task_ids="gate", key="dqx_report")["outcome"]
        error = context["exception"]
        Path(path).write_text(f"{type(error).__name__}|{outcome}|{error}")

    return note

def gate(**given):
    defaults = {"suite": "orders.dql", "datasets": {"orders": "/lake/orders"}}
    return DqlGateOperator(task_id="gate", **{**defaults, **given})

@task
def land():
    return "/lake/new"

@task
def words(*given):
    return given

with DAG(
    "DAG_ID",
    start_date=datetime(2024, 1, 1),
    schedule=None,
    default_args={"retries": 2, "retry_delay": timedelta(0)},
    params={"suite": "orders", "layer": "silver"},
):
    GATE >> EmptyOperator(task_id="downstream")
"""


A_REQUEST = GateRequest(
    RunKey("lake.gate", date(2024, 5, 17), "manual__1"),
    Attempt(1, "attempt-1"),
    SourceFile("orders.dql", SUITE),
    (DatasetRef("orders", path="/lake/orders"),),
    results_root="",
)

RunDag = Callable[..., Run]


@pytest.fixture
def run_dag(run_file: Callable[..., Run]) -> RunDag:
    """Runs a DAG whose gate is `body`."""

    def run(body: str = "gate()", suite: str = SUITE) -> Run:
        return run_file(DAG_FILE.replace("GATE", body), {"orders.dql": suite})

    return run


def test_passed_continues_the_pipeline(run_dag: RunDag, log: Log) -> None:
    run = run_dag()
    assert (run.state, run["gate"], run["downstream"]) == ("success", "success", "success")
    assert run.tries() == 1
    assert run.xcom("return_value") == "passed"
    report = run.xcom("dqx_report")
    assert (report["outcome"], report["verdicts"]) == ("passed", [])
    assert report["versions"] == {"orders": 3}
    assert report["quarantined"] == {"orders": 4}
    assert log.at("warning", "error") == []


def test_the_version_that_was_promoted_is_handed_downstream(
    run_dag: RunDag, spark_submit: SparkSubmit
) -> None:
    run = run_dag("gate(promote_to='/lake/{{ params.layer }}/orders')")
    report = run.xcom("dqx_report")
    assert report["promoted"] == {"orders": 17}
    assert report["versions"] == {"orders": 3}
    assert report["validated"] == {
        "orders": {"location": "/lake/silver/orders", "version": 17, "condition": None}
    }
    assert spark_submit.requests[0].promote_to == (("orders", "/lake/silver/orders"),)


def test_warned_continues_the_pipeline_with_a_warning(
    run_dag: RunDag, spark_submit: SparkSubmit, log: Log
) -> None:
    spark_submit.will("warned")
    run = run_dag()
    assert (run.state, run["gate"], run["downstream"]) == ("success", "success", "success")
    assert run.xcom("return_value") == "warned"
    report = run.xcom("dqx_report")
    assert [verdict["assertion"] for verdict in report["verdicts"]] == ["orders.note"]
    drawn, headline = log.at("warning")
    assert "assertion failed: orders.note" in drawn
    assert headline == report["headline"]
    assert headline.startswith("warned: gate")


def test_blocked_stops_the_pipeline_without_a_retry(
    run_dag: RunDag, spark_submit: SparkSubmit, log: Log
) -> None:
    spark_submit.will("blocked")
    run = run_dag()
    assert (run.state, run["gate"], run["downstream"]) == ("failed", "failed", "upstream_failed")
    assert run.tries() == 1
    assert len(spark_submit.calls) == 1
    report = run.xcom("dqx_report")
    assert report["outcome"] == "blocked"
    assert (report["promoted"], report["validated"]) == ({}, {})
    assert [verdict["assertion"] for verdict in report["verdicts"]] == ["orders.id", "orders.note"]
    assert report["headline"] in log.at("error")
    assert run.xcom("return_value") is None


def test_blocked_may_skip(run_dag: RunDag, spark_submit: SparkSubmit) -> None:
    spark_submit.will("blocked")
    run = run_dag("gate(on_violation='skip')")
    assert (run.state, run["gate"], run["downstream"]) == ("success", "skipped", "skipped")
    assert run.xcom("dqx_report")["outcome"] == "blocked"


def test_blocked_may_only_warn(run_dag: RunDag, spark_submit: SparkSubmit, log: Log) -> None:
    spark_submit.will("blocked")
    run = run_dag("gate(on_violation='warn')")
    assert (run.state, run["gate"], run["downstream"]) == ("success", "success", "success")
    assert run.xcom("return_value") == run.xcom("dqx_report")["outcome"] == "blocked"
    assert "blocked: gate" in log.at("warning")[-1]
    assert log.at("error") == []


@pytest.mark.few(1)
@pytest.mark.parametrize("promotes", [True, False])
def test_what_becomes_of_the_rows_of_a_blocked_gate_is_chosen_and_said(
    run_dag: RunDag, spark_submit: SparkSubmit, log: Log, promotes: bool
) -> None:
    spark_submit.will("blocked")
    choice = f"on_violation='warn', promote_blocked={promotes}"
    run = run_dag(f"gate(promote_to='/lake/silver/orders', {choice})")
    assert (run.state, run["gate"], run["downstream"]) == ("success", "success", "success")
    assert spark_submit.requests[0].promote_blocked is promotes
    report = run.xcom("dqx_report")
    promotion = "promoted although blocked (orders)" if promotes else "no rows promoted (orders)"
    assert report["headline"].startswith(f"blocked: {promotion}; gate")
    assert log.at("warning")[-1] == report["headline"]
    assert report["promoted"] == ({"orders": 17} if promotes else {})
    assert report["not_promoted"] == ([] if promotes else ["orders"])
    assert report["promoted_blocked"] == (["orders"] if promotes else [])
    assert bool(report["validated"]) is promotes


@pytest.mark.few(1)
@pytest.mark.parametrize("on_violation", ["fail", "skip", "warn"])
def test_broken_stops_the_pipeline_for_every_on_violation(
    run_dag: RunDag, spark_submit: SparkSubmit, on_violation: str
) -> None:
    spark_submit.will("broken")
    run = run_dag(f"gate(on_violation={on_violation!r})")
    assert (run["gate"], run["downstream"]) == ("failed", "upstream_failed")
    assert run.tries() == 1
    assert run.xcom("dqx_report")["outcome"] == "broken"


@pytest.mark.few(1)
@pytest.mark.parametrize("plan", ["exit=0", "killed", "exit=1"])
def test_a_missing_report_is_retried_as_configured(
    run_dag: RunDag, spark_submit: SparkSubmit, plan: str
) -> None:
    spark_submit.will(plan)
    run = run_dag()
    assert (run["gate"], run["downstream"]) == ("failed", "upstream_failed")
    assert run.tries() == 3
    attempts = [request.attempt for request in spark_submit.requests]
    assert [attempt.number for attempt in attempts] == [1, 2, 3]
    assert len({attempt.id for attempt in attempts}) == 3
    assert run.xcom("dqx_report")["outcome"] == "no report"


@pytest.mark.more
def test_an_infrastructure_error_is_overcome(run_dag: RunDag, spark_submit: SparkSubmit) -> None:
    spark_submit.will("exit=1", "passed")
    run = run_dag()
    assert (run["gate"], run["downstream"], run.tries()) == ("success", "success", 2)


def test_the_report_of_an_earlier_try_is_ignored(
    run_dag: RunDag, spark_submit: SparkSubmit, log: Log
) -> None:
    # The first try reports for somebody else, the second one for itself.
    spark_submit.will("other", "blocked")
    run = run_dag()
    assert (run["gate"], run["downstream"], run.tries()) == ("failed", "upstream_failed", 2)


@pytest.mark.slow
def test_a_job_that_takes_too_long_is_killed_and_retried(
    run_dag: RunDag, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("sleep", "passed")
    run = run_dag("gate(execution_timeout=timedelta(seconds=10))")
    assert (run["gate"], run.tries()) == ("success", 2)
    assert spark_submit.requests[0].timeout_s == 10.0


def test_a_misconfigured_gate_is_not_retried(run_dag: RunDag, spark_submit: SparkSubmit) -> None:
    run = run_dag("gate(date='{{ \"tomorrow\" }}')")
    assert (run["gate"], run["downstream"], run.tries()) == ("failed", "upstream_failed", 1)
    assert spark_submit.calls == []


def test_only_an_exact_warn_lets_blocked_data_through(operators: ModuleType) -> None:
    from dqx_airflow.operators.outcome import end_task
    from tests.operators.spark_submit_stub import canned_report

    report = canned_report(A_REQUEST, "blocked")
    assert end_task(report, "warn") == "blocked"
    for slip in ("Warn", "wran", "pass", "", None, True):
        with pytest.raises(operators.GateBlockedError):
            end_task(report, slip)  # type: ignore[arg-type]


def test_templates_are_rendered(run_dag: RunDag, spark_submit: SparkSubmit, tmp_path: Path) -> None:
    run = run_dag(
        "gate(suite='{{ params.suite }}.dql', date='{{ macros.ds_add(ds, -1) }}', results_root="
        f"'{tmp_path}/' + '{{{{ params.layer }}}}', datasets={{'orders': {{'path': "
        "'/lake/{{ params.layer }}', 'filter': \"ds = '{{ ds }}'\"}})"
    )
    assert run["gate"] == "success"
    (request,) = spark_submit.requests
    today = run.tasks["gate"].dag_run.logical_date.date()
    assert request.suite.name == "orders.dql"
    assert request.run_key.date == today - timedelta(days=1)
    assert request.results_root == f"{tmp_path}/silver"
    assert request.datasets == (
        DatasetRef("orders", path="/lake/silver", filter=f"ds = '{today.isoformat()}'"),
    )


MAPPED = """DqlGateOperator.partial(task_id="gate", suite="orders.dql").expand(
        datasets=[{"orders": "/lake/" + name} for name in NAMES]
    )"""


@pytest.mark.more
def test_mapped_gates_are_judged_one_by_one(run_dag: RunDag, spark_submit: SparkSubmit) -> None:
    spark_submit.will("by_dataset")
    run = run_dag(MAPPED.replace("NAMES", "['passed', 'blocked', 'warned']"))
    states = [run[f"gate[{index}]"] for index in range(3)]
    assert states == ["success", "failed", "success"]
    assert run["downstream"] == "upstream_failed"
    assert [run.tries(f"gate[{index}]") for index in range(3)] == [1, 1, 1]
    keys = [request.run_key for request in spark_submit.requests]
    assert len({str(key) for key in keys}) == 3
    assert len({(key.gate, key.date) for key in keys}) == 1
    on, root = keys[0].date, spark_submit.requests[0].results_root
    listed = alerts(root, "Orders", on, on)
    assert [(alert.map_index, alert.verdict.name) for alert in listed] == [
        (1, "orders.note"),
        (1, "orders.id"),
        (2, "orders.note"),
    ]


def test_mapped_settings_are_checked_too(run_dag: RunDag, spark_submit: SparkSubmit) -> None:
    run = run_dag(
        'DqlGateOperator.partial(task_id="gate", suite="orders.dql", '
        'datasets={"orders": "/lake/orders"}).expand(on_violation=words("fail", "halt"))'
    )
    assert (run["gate[0]"], run["gate[1]"]) == ("success", "failed")
    assert run.tries("gate[1]") == 1
    assert len(spark_submit.calls) == 1


def test_datasets_may_come_from_an_earlier_task(run_dag: RunDag, spark_submit: SparkSubmit) -> None:
    run = run_dag("gate(datasets={'orders': land()})")
    assert run["gate"] == "success"
    assert spark_submit.requests[0].datasets == (DatasetRef("orders", path="/lake/new"),)


@needs_airflow(3, 3)
def test_a_retry_policy_can_distinguish_the_exceptions(
    run_dag: RunDag, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("exit=1")
    run = run_dag("gate(retry_policy=never_again)")
    assert (run["gate"], run.tries()) == ("failed", 1)


@needs_airflow(3, 3)
def test_callbacks_get_the_failure(
    run_dag: RunDag, spark_submit: SparkSubmit, tmp_path: Path
) -> None:
    spark_submit.will("blocked")
    run = run_dag(f"gate(on_failure_callback=note_to({str(tmp_path / 'noted')!r}))")
    assert run["gate"] == "failed"
    kind, outcome, message = (tmp_path / "noted").read_text().split("|")
    assert (kind, outcome) == ("GateBlockedError", "blocked")
    assert message == run.xcom("dqx_report")["headline"]
