"""A gate that judges a range of dates, or several suites: one job, several reports."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path

import pytest

from dqx_airflow.results.runs import list_runs
from dqx_airflow.values import DatasetSnapshot
from tests.made_reports import report_at
from tests.operators.gate_stubs import SUITE, FakeTask, Gates, Log, SparkSubmit

pytestmark = pytest.mark.airflow


DATES = [date(2024, 5, day) for day in (30, 31)] + [date(2024, 6, 1)]
RANGE = "2024-05-30..2024-06-01"


@pytest.fixture
def suites(dag_folder: Path) -> list[str]:
    (dag_folder / "strict.dql").write_text(SUITE.replace("Orders", "Strict"))
    return ["orders.dql", "strict.dql"]


def test_a_range_is_one_job_with_a_report_for_each_date(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask, log: Log
) -> None:
    assert gate.run(date=RANGE) == "passed"
    (request,) = spark_submit.requests
    assert [key.date for key in request.run_keys] == DATES
    assert {part.suite.text for part in request.parts} == {SUITE}
    assert "3 dates from 2024-05-30 to 2024-06-01, from date='2024-05-30..2024-06-01'" in log.text
    summary = task.pushed["dqx_report"]
    assert "gate lake.gate, dataset orders, dates 2024-05-30..2024-06-01" in summary["headline"]
    assert summary["counts"]["passed"] == 3
    assert [part["date"] for part in summary["parts"]] == [on.isoformat() for on in DATES]
    assert len(list_runs(request.results_root)) == 3
    # The reports are there: the same attempt does not run again.
    assert gate.run(date=RANGE) == "passed"
    assert len(spark_submit.calls) == 1


def test_one_blocked_date_blocks_the_range(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask
) -> None:
    spark_submit.will("last_blocked")
    gate.fails("GateBlockedError", r"worst: 2024-06-01 orders\.id", date=RANGE)
    summary = task.pushed["dqx_report"]
    assert summary["outcome"] == "blocked"
    assert [(part["date"], part["outcome"]) for part in summary["parts"]] == [
        ("2024-06-01", "blocked"),
        ("2024-05-30", "passed"),
        ("2024-05-31", "passed"),
    ]
    assert summary["validated"] == {}


def test_a_dataset_without_dates_counts_once_in_a_range(gate: Gates) -> None:
    from dqx_airflow.operators.outcome import combined_report

    read = DatasetSnapshot("countries", "/lake/countries", "delta", 3, 5, condition="(id > 0)")
    days = [datetime(on.year, on.month, on.day, tzinfo=timezone.utc) for on in DATES]
    reports = [report_at(day, datasets=(read,)) for day in days]
    assert combined_report(reports, "lake.gate").datasets == (read,)


def test_a_range_with_a_missing_report_has_no_report(
    gate: Gates, spark_submit: SparkSubmit
) -> None:
    assert gate.run(date="2024-05-30") == "passed"
    spark_submit.will("exit=1")
    gate.fails("GateInfrastructureError", "no report", date=RANGE)


def test_several_suites_are_one_job_and_the_worst_decides(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask, suites: list[str]
) -> None:
    spark_submit.will("last_blocked")
    gate.fails("GateBlockedError", r"worst: Strict: orders\.id", suite=suites)
    (request,) = spark_submit.requests
    assert [key.gate for key in request.run_keys] == ["lake.gate/Orders", "lake.gate/Strict"]
    assert [part.job_key.gate for part in request.parts] == ["lake.gate", "lake.gate"]
    assert [part.suite.name for part in request.parts] == suites
    summary = task.pushed["dqx_report"]
    assert (summary["gate"], summary["suite"]) == ("lake.gate", "Orders, Strict")
    assert [part["suite"] for part in summary["parts"]] == ["Strict", "Orders"]


def test_suites_and_dates_together(
    gate: Gates, spark_submit: SparkSubmit, suites: list[str]
) -> None:
    assert gate.run(suite=suites, date="2024-05-30..2024-05-31") == "passed"
    (request,) = spark_submit.requests
    assert [(key.date.day, key.gate.partition("/")[2]) for key in request.run_keys] == [
        (30, "Orders"),
        (30, "Strict"),
        (31, "Orders"),
        (31, "Strict"),
    ]
    texts = [part.suite.text for part in request.parts]
    assert texts == [SUITE, SUITE.replace("Orders", "Strict")] * 2


def test_a_target_is_not_replaced_as_a_whole_once_per_date(gate: Gates, tmp_path: Path) -> None:
    gate.fails(
        "GateMisconfiguredError",
        "has no date_column, so each date",
        date=RANGE,
        promote_to=str(tmp_path / "silver"),
    )
