"""The date that a gate judges: the first line of its log shows the origin, or the gate does not
run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.operators.gate_stubs import (
    CONTRACT,
    SUITE,
    FakeRun,
    FakeTask,
    Gates,
    Log,
    Run,
    SparkSubmit,
    dag_file,
)

pytestmark = pytest.mark.airflow

Context = dict[str, Any]

DATED = {"orders": {"path": "/lake/orders", "date_column": "ds"}}
DUE = datetime(2026, 11, 22, 3, tzinfo=timezone.utc)


def event(on: object, gate: str = "land_sales.gate", *, key: str | None = None) -> SimpleNamespace:
    extra = {"gate": gate, "date": on, "outcome": "passed"}
    return SimpleNamespace(extra=extra, partition_key=key)


def of_a_loader(**extra: object) -> SimpleNamespace:
    return SimpleNamespace(extra=extra)


def run(
    *events: SimpleNamespace, logical_date: datetime | None = None, key: str | None = None
) -> Any:
    """A run as Airflow gives it to a task."""
    made: Any = SimpleNamespace(**vars(FakeRun(logical_date, DUE)))
    made.consumed_asset_events, made.partition_key = list(events), key
    return made


def at(hour: int, minute: int = 0, *, month: int = 5) -> datetime:
    return datetime(2024, month, 17, hour, minute, tzinfo=timezone.utc)


def place(context: Context, dag_run: Any, zone: str = "UTC") -> Context:
    context["dag_run"] = context["ti"].dag_run = dag_run
    context["dag"] = SimpleNamespace(fileloc=context["dag"].fileloc, timezone=ZoneInfo(zone))
    return context


# What says the date


@pytest.mark.parametrize(
    ("dag_run", "zone", "on", "source"),
    [
        (run(logical_date=at(3)), "UTC", "2024-05-17", "from the logical date of the run"),
        (
            run(logical_date=at(3)),
            "Europe/Zurich",
            "2024-05-17",
            "from the logical date of the run",
        ),
        (run(event("2026-11-14")), "UTC", "2026-11-14", "the asset event of land_sales.gate"),
        (
            run(event("2026-11-14")),
            "Asia/Tokyo",
            "2026-11-14",
            "the asset event of land_sales.gate",
        ),
        (
            run(event("2026-11-14"), event("2026-11-14", "b")),
            "UTC",
            "2026-11-14",
            "land_sales.gate",
        ),
        (run(of_a_loader(rows=5), event("2026-11-14")), "UTC", "2026-11-14", "land_sales.gate"),
        (run(of_a_loader(date="2020-01-01"), event("2026-11-14")), "UTC", "2026-11-14", "land_sal"),
        (run(key="2026-11-14"), "UTC", "2026-11-14", "the partition key 2026-11-14"),
        (run(logical_date=at(3), key="2024-05-17"), "UTC", "2024-05-17", "the logical date"),
        (run(logical_date=at(3), key="zurich"), "UTC", "2024-05-17", "the logical date"),
        (
            run(key="2026-11-14T00:00:00"),
            "Asia/Tokyo",
            "2026-11-14",
            "the partition key 2026-11-14",
        ),
        (run(event("2026-11-14"), key="2026-11-14"), "UTC", "2026-11-14", "the partition key"),
        (
            run(event(None, key="2026-11-14"), key="2026-11-14"),
            "UTC",
            "2026-11-14",
            "the partition key",
        ),
    ],
    ids=str,
)
def test_the_first_log_line_has_the_date_and_its_source(
    gate: Gates, log: Log, dag_run: Any, zone: str, on: str, source: str
) -> None:
    place(gate.context, dag_run, zone)
    built = gate.request(datasets=DATED)
    assert built.run_key.date.isoformat() == on
    assert source in built.date_from
    first = log.at("info", "warning")[0]
    assert first.startswith(f"date {on}, from ")
    assert source in first


@pytest.mark.parametrize(
    ("dag_run", "zone", "message"),
    [
        (
            run(),
            "UTC",
            r"no logical date, and was not triggered by the asset event of a gate: write",
        ),
        (run(of_a_loader(date="2026-11-14")), "UTC", r"not triggered by the asset event of a gate"),
        (
            run(event("2026-11-14"), event("2026-11-15")),
            "UTC",
            r"different dates: 2026-11-14 \(the asset event of land_sales.gate\), 2026-11-15 ",
        ),
        (
            run(event("2026-11-14"), event("2026-11-15", "other.gate")),
            "UTC",
            r"2026-11-15 \(the asset event of other\.gate\).*\.expand\(date=",
        ),
        (
            run(event("2026-11-14"), key="2026-11-16"),
            "UTC",
            r"different dates: 2026-11-16 \(the part",
        ),
        (run(event(None)), "UTC", r"asset event of land_sales\.gate has the date None"),
        (run(event("soon"), event("2026-11-14")), "UTC", r"has the date 'soon'"),
        (
            run(event(None, key="2026-11-15"), key="2026-11-16"),
            "UTC",
            r"different dates: 2026-11-16 \(the partition key 2026-11-16\), 2026-11-15",
        ),
        (run(key="eu"), "UTC", r"partition key of the run, 'eu', is not a date: write date="),
        (run(key="2026-11"), "UTC", r"partition key of the run, '2026-11', is not a date"),
        (run(key="2026-W46"), "UTC", r"is not a date"),
        (run(key="2026-11-14|eu"), "UTC", r"is not a date"),
        (
            run(logical_date=at(22)),
            "Europe/Zurich",
            r"is 2024-05-17 in UTC and 2024-05-18 in Europe/Zurich.*in_timezone\('Europe/Zurich'\)",
        ),
        (
            run(logical_date=at(3), key="2024-05-16"),
            "UTC",
            r"dates: 2024-05-17 \(the logical date\), 2024-05-16 \(the partition key 2024-05-16\)",
        ),
        (run(logical_date=at(3)), "America/Los_Angeles", r"2024-05-16 in America/Los_Angeles"),
        # The same schedule, 00:30 in Zurich: in winter it is the day before as well.
        (run(logical_date=at(23, 30, month=1)), "Europe/Zurich", r"2024-01-18 in Europe/Zurich"),
    ],
    ids=str,
)
def test_a_gate_over_dated_data_refuses_an_ambiguous_date(
    gate: Gates, spark_submit: SparkSubmit, dag_run: Any, zone: str, message: str
) -> None:
    place(gate.context, dag_run, zone)
    gate.fails("GateMisconfiguredError", f"(?s)date of dataset 'orders'.*{message}", datasets=DATED)
    reference = {"orders": "/lake/orders", "codes": {"table": "codes", "date_column": "day"}}
    gate.fails("GateMisconfiguredError", "date of dataset 'codes'", datasets=reference)
    assert spark_submit.calls == []


def test_undated_data_runs_with_a_warning_about_the_date(
    gate: Gates, spark_submit: SparkSubmit, log: Log
) -> None:
    place(gate.context, run())
    assert gate.run() == "passed"
    (asked,) = spark_submit.requests
    assert asked.run_key.date == date(2026, 11, 22)
    first = log.at("info", "warning")[0]
    assert first.startswith("date 2026-11-22, the scheduled day of the run: the run has no logical")
    assert first in log.at("warning")
    assert gate.context["ti"].pushed["dqx_report"]["date_from"] == asked.date_from


def test_an_explicit_date_wins_over_any_trigger(gate: Gates) -> None:
    place(gate.context, run(event("2026-11-14"), event("2026-11-15")))
    for given in ("2026-11-13", "{{ '2026-11-13' }}", date(2026, 11, 13)):
        built = gate.request(datasets=DATED, date=given)
        assert built.run_key.date == date(2026, 11, 13)
        assert built.date_from == "from date='2026-11-13'"


@pytest.mark.parametrize("nothing", ["", " ", "{{ none }}", "{{ dag_run.conf.get('date', '') }}"])
def test_a_date_that_renders_empty_is_refused(
    gate: Gates, spark_submit: SparkSubmit, nothing: str
) -> None:
    gate.fails(
        "GateMisconfiguredError", "is not a date: write YYYY-MM-DD", datasets=DATED, date=nothing
    )
    natively = gate(datasets=DATED, date="{{ dag_run.conf.get('date') }}")
    natively.date = None  # as a DAG with native rendering has it
    with pytest.raises(gate.operators.GateMisconfiguredError, match=r"; .\{\{ dag_run\.conf"):
        natively.execute(gate.context)
    assert spark_submit.calls == []


def test_the_day_is_the_same_at_every_try(gate: Gates, task: FakeTask) -> None:
    place(gate.context, run(event("2026-11-14")))
    keys = set()
    for task.try_number in (1, 2, 3):
        keys.add(gate.request(datasets=DATED).run_key)
        gate.context["dag_run"].start_date = DUE + timedelta(days=task.try_number)
    assert len(keys) == 1


def test_a_contract_may_name_the_date_column(gate: Gates, spark_submit: SparkSubmit) -> None:
    data = {"path": "/lake/orders", "date_column": "ds"}
    gate = replace(gate, kind="ContractGateOperator", given={"contract": CONTRACT, "data": data})
    place(gate.context, run())
    gate.fails("GateMisconfiguredError", "date of dataset 'orders'")
    assert spark_submit.calls == []
    place(gate.context, run(event("2026-11-14")))
    assert gate.run() == "passed"
    assert spark_submit.requests[0].run_key.date == date(2026, 11, 14)


# With Airflow's own rendering and states

DAG_FILE = dag_file(
    """
    DqlGateOperator.partial(task_id="mapped", suite="orders.dql", datasets=DATED).expand(
        date=["2026-11-14", "2026-11-15"]
    )

    @task
    def nothing():
        return None

    @task.dql_gate(suite="orders.dql", date="{{ (logical_date or dag_run.run_after) | ds }}")
    def decorated():
        return DATED

    DqlGateOperator(
        task_id="of_nothing", suite="orders.dql", datasets=DATED, date=nothing(), retries=3
    )
    DqlGateOperator(
        task_id="there",
        suite="orders.dql",
        datasets=DATED,
        date="{{ logical_date.in_timezone('Pacific/Kiritimati') | ds }}",
    )
    decorated()
""",
    before='DATED = {"orders": {"path": "/lake/orders", "date_column": "ds"}}',
)


@pytest.mark.slow
@pytest.mark.usefixtures("airflow_database")
def test_dates_that_airflow_renders(
    run_file: Callable[..., Run], spark_submit: SparkSubmit
) -> None:
    ended = run_file(DAG_FILE, {"orders.dql": SUITE})
    states = {name: str(task.state) for name, task in ended.tasks.items()}
    assert states == {
        "mapped[0]": "success",
        "mapped[1]": "success",
        "nothing": "success",
        "decorated": "success",
        "of_nothing": "failed",
        "there": "success",
    }
    assert ended.tries("of_nothing") == 1
    moment = ended.tasks["nothing"].dag_run.logical_date
    asked = {request.run_key.scheduler_run[-3:]: request for request in spark_submit.requests}
    assert {asked[f"[{index}]"].run_key.date for index in (0, 1)} == {
        date(2026, 11, 14),
        date(2026, 11, 15),
    }
    days = {
        request.run_key.gate.split(".")[-1]: request.run_key.date
        for request in spark_submit.requests
    }
    assert days["decorated"] == moment.date()
    assert days["there"] == moment.astimezone(ZoneInfo("Pacific/Kiritimati")).date()
