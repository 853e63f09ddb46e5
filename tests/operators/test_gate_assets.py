"""A "validated" asset: updated only after a pass, with an event that describes the data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.values import PartialRun, Selection
from tests.made_reports import report_at
from tests.operators.gate_stubs import SUITE, Gates, Run, SparkSubmit, dag_file, needs_airflow

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_database")]

DAG_FILE = dag_file(
    """
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": {"path": "/lake/orders", "date_column": "ds"}},
        outlets=[validated],
        on_violation="ON_VIOLATION",
    ) >> EmptyOperator(task_id="downstream")

with DAG("DAG_ID_consumer", start_date=datetime(2024, 1, 1), schedule=[validated]):
    EmptyOperator(task_id="consume")
""",
    before='validated = Asset("DAG_ID_validated")',
)

RunFile = Callable[..., Run]


def events(run: Run) -> list[dict[str, Any]]:
    """The extras of the asset events that the gate's task has left in Airflow's database."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    task = run.tasks["gate"]
    query = select(AssetEvent.extra).where(
        AssetEvent.source_dag_id == task.dag_id, AssetEvent.source_run_id == task.run_id
    )
    with create_session() as session:
        return list(session.scalars(query))


@pytest.mark.few(1)
@pytest.mark.parametrize("outcome", ["passed", "warned"])
def test_a_pass_updates_the_asset_with_the_validated_version(
    run_file: RunFile, spark_submit: SparkSubmit, outcome: str
) -> None:
    spark_submit.will(outcome)
    run = run_file(DAG_FILE.replace("ON_VIOLATION", "fail"), {"orders.dql": SUITE})
    assert run.state == "success"
    (extra,) = events(run)
    report = run.xcom("dqx_report")
    assert extra == {
        "gate": report["gate"],
        "run_id": report["run_id"],
        "date": report["date"],
        "outcome": outcome,
        "accepted": None,
        "partial": None,
        "promoted_blocked": [],
        "left_out": [],
        "not_promoted": [],
        "versions": {"orders": 3},
        "rows": {"orders": 100},
        "contract": None,
        "contract_version": None,
        "validated": {"orders": {"location": "/lake/orders", "version": 3, "condition": None}},
        "airflow.dataquality.result": {
            "run_uid": report["run_id"],
            "ruleset": "Orders",
            "table": "orders",
            # A P0 of weight 8 passed, and a P2 of weight 2 failed.
            "score": {"passed": 1.0, "warned": 0.8}[outcome],
            "passed": 1,
            "warned": {"passed": 0, "warned": 1}[outcome],
            "failed": 0,
            "errored": 0,
            "failed_rules": [],
            "warned_rules": {"passed": [], "warned": ["orders.note"]}[outcome],
        },
    }


@pytest.mark.few(1)
@pytest.mark.parametrize("on_violation", ["fail", "skip", "warn"])
def test_a_blocked_gate_updates_no_asset(
    run_file: RunFile, spark_submit: SparkSubmit, on_violation: str
) -> None:
    spark_submit.will("blocked")
    run = run_file(DAG_FILE.replace("ON_VIOLATION", on_violation), {"orders.dql": SUITE})
    assert run["gate"] == {"fail": "failed", "skip": "skipped", "warn": "success"}[on_violation]
    assert events(run) == []


def test_rows_that_are_promoted_although_blocked_update_the_asset_which_says_so(
    run_file: RunFile, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("blocked")
    given = 'ON_VIOLATION", promote_to="/silver", promote_blocked=True, gate="g'
    text = DAG_FILE.replace("ON_VIOLATION", given).replace("ON_VIOLATION", "warn")
    (extra,) = events(run_file(text, {"orders.dql": SUITE}))
    assert (extra["outcome"], extra["promoted_blocked"]) == ("blocked", ["orders"])
    assert extra["validated"]["orders"]["location"] == "/silver"
    quality = extra["airflow.dataquality.result"]
    assert (quality["score"], quality["failed_rules"]) == (0.0, ["orders.id"])


def partitions(run: Run) -> list[tuple[str | None, dict[str, Any]]]:
    """The partition keys of the asset events of the gate, each with the extra."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    task = run.tasks["gate"]
    query = select(AssetEvent.partition_key, AssetEvent.extra).where(
        AssetEvent.source_dag_id == task.dag_id, AssetEvent.source_run_id == task.run_id
    )
    with create_session() as session:
        found = session.execute(query).all()
    return sorted(((key, extra) for key, extra in found), key=lambda event: event[0])


RANGE = 'date="2024-05-30..2024-06-01", gate="g", certify_partitions=True'


@pytest.mark.few(2)
@needs_airflow(3, 3)
@pytest.mark.parametrize(
    ("given", "spark", "due"),
    [
        ("", "passed", ["2024-05-30", "2024-05-31", "2024-06-01"]),
        (', on_violation="warn"', "blocked_on=2024-05-31", ["2024-05-30", "2024-06-01"]),
        (', on_violation="warn"', "blocked", []),
        ("", "blocked_on=2024-05-31", []),
        (
            ', promote_to="/silver", promote_slice={"store": "zurich", "month": 5}',
            "passed",
            ["2024-05-30|5|zurich", "2024-05-31|5|zurich", "2024-06-01|5|zurich"],
        ),
    ],
    ids=["all", "some", "none", "the task fails", "slices"],
)
def test_each_date_that_passed_is_a_certified_partition(
    run_file: RunFile, spark_submit: SparkSubmit, given: str, spark: str, due: list[str]
) -> None:
    spark_submit.will(spark)
    text = DAG_FILE.replace('on_violation="ON_VIOLATION"', RANGE + given)
    found = partitions(run_file(text, {"orders.dql": SUITE}))
    assert [key for key, _ in found] == due
    # No date is claimed that lies between two certified ones.
    announced = {(extra["outcome"], extra["date"], *extra["partitions"]) for _, extra in found}
    assert announced == ({("passed", None, *due)} if due else set())


@needs_airflow(3, 3)
@pytest.mark.parametrize(
    ("value", "mistake"), [("a|b", "cannot be a segment"), ("x" * 250, "more than 250 characters")]
)
def test_a_slice_that_is_no_partition_key_is_refused_before_the_job(
    gate: Gates, spark_submit: SparkSubmit, value: str, mistake: str
) -> None:
    from airflow.sdk import Asset

    given = {"promote_to": "/silver", "promote_slice": {"s": value}, "outlets": [Asset("orders")]}
    gate.fails("GateMisconfiguredError", mistake, certify_partitions=True, **given)
    assert spark_submit.calls == []


OTHER_OUTLETS = """
from datetime import datetime

from airflow.sdk import DAG, Asset, AssetAlias, task

asset = Asset("DAG_ID_named", "file:///DAG_ID/named")

with DAG("DAG_ID", start_date=datetime(2024, 1, 1), schedule=None):

    @task.dql_gate(
        suite="orders.dql",
        outlets=[Asset.ref(name="DAG_ID_named"), AssetAlias("DAG_ID_alias")],
        on_violation="warn",
    )
    def gate(outlet_events=None):
        outlet_events[AssetAlias("DAG_ID_alias")].add(Asset("DAG_ID_added", "file:///DAG_ID/added"))
        return {"orders": "/lake/orders"}

    gate()

with DAG("DAG_ID_consumer", start_date=datetime(2024, 1, 1), schedule=[asset]):

    @task
    def consume():
        pass

    consume()
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("outcome", ["passed", "blocked"])
def test_a_reference_and_an_alias_are_updated_only_after_a_pass(
    run_file: RunFile, spark_submit: SparkSubmit, outcome: str
) -> None:
    spark_submit.will(outcome)
    run = run_file(OTHER_OUTLETS, {"orders.dql": SUITE})
    assert run["gate"] == "success"
    found = events(run)
    assert len(found) == (2 if outcome == "passed" else 0)
    # Extras of the assets of an alias are left to the task that adds them.
    dates = [extra["date"] for extra in found if extra]
    assert dates == ([run.xcom("dqx_report")["date"]] if outcome == "passed" else [])


def test_a_partial_run_updates_no_asset(operators: ModuleType) -> None:
    from airflow.sdk import Asset

    from dqx_airflow.operators.gate_assets import announce

    at = datetime(2024, 5, 17, tzinfo=timezone.utc)
    report = report_at(at, partial=PartialRun(Selection(only=("id",)), 1, 2))
    assert announce(report, [Asset("orders"), "a table"], {}, is_announced=False) == ["a table"]
