"""A gate knows what is usual from its data, and leaves out the days that are labelled as issues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.stored_labels import Label, write_labels
from dqx_airflow.values import Outcome, Status
from tests.engine.lake import TODAY, Run, delta, request

pytestmark = pytest.mark.spark

SUITE = """\
suite "Test" {
    check "All" on orders {
        assert num_rows() within usual(num_rows(), n 28) name "rows"
    }
}
"""


def test_days_labelled_as_issues_are_not_usual_for_a_gate(run: Run, tmp_path: Path) -> None:
    counts = [(before, 20 if before <= 3 else 40 + before % 3) for before in range(28, -1, -1)]
    days = [TODAY - timedelta(days=before) for before, count in counts for _ in range(count)]
    table = pa.table({"ds": pa.array(days, pa.date32())})
    dataset = replace(delta(tmp_path, "orders", table), date_column="ds")
    first = request(tmp_path, SUITE, [dataset])

    def rows(attempt: str) -> Any:
        asked = replace(first, attempt=replace(first.attempt, id=attempt))
        report = run(asked)
        return next(one for one in report.verdicts if one.name == "rows")

    shifted = rows("attempt-1")
    assert shifted.status is Status.PASSED, "three days are a level of their own"
    assert "within usual(num_rows(), n 28) (" in shifted.expected
    gate = first.run_key.gate
    write_labels(
        first.results_root,
        [Label(gate, TODAY - timedelta(days=n), "All", "rows", True, "ada") for n in (1, 2, 3)],
    )
    assert rows("attempt-2").status is Status.FAILED


def test_a_repaired_day_is_no_issue_for_a_gate(run: Run, tmp_path: Path) -> None:
    """A label is about the data that its author saw, and the gate reads the data of today."""
    counts = [(before, 20 if before <= 3 else 40 + before % 3) for before in range(28, -1, -1)]
    days = [TODAY - timedelta(days=before) for before, count in counts for _ in range(count)]
    table = pa.table({"ds": pa.array(days, pa.date32())})
    dataset = replace(delta(tmp_path, "orders", table), date_column="ds")
    first = request(tmp_path, SUITE, [dataset])

    def on(day: date, attempt: str) -> Any:
        key, tried = replace(first.run_key, date=day), replace(first.attempt, id=attempt)
        return run(replace(first, run_key=key, attempt=tried))

    def status_with_labels_of(reports: Iterable[Any], attempt: str) -> Status:
        about = ("All", "rows", True, "ada")
        labels = [
            Label(key.gate, key.date, *about, run_id=report.run_id)
            for report in reports
            for key in [report.run_key]
        ]
        write_labels(first.results_root, labels)
        verdicts = on(TODAY, attempt).verdicts
        return next(one.status for one in verdicts if one.name == "rows")

    repaired = [on(TODAY - timedelta(days=before), "attempt-1") for before in (1, 2, 3)]
    damaged = [
        replace(
            report,
            run_id=str(uuid4()),
            run_key=replace(report.run_key, scheduler_run="before"),
            verdicts=tuple(replace(one, value=1) for one in report.verdicts),
            started_at=report.started_at - timedelta(hours=1),
        )
        for report in repaired
    ]
    for report in damaged:
        ResultsStore(first.results_root).write(report)
    assert status_with_labels_of(damaged, "attempt-2") is Status.PASSED
    assert status_with_labels_of(repaired, "attempt-3") is Status.FAILED


def test_a_watch_claims_the_columns_that_the_data_has(run: Run, tmp_path: Path) -> None:
    days = [TODAY - timedelta(days=before) for before in range(15, -1, -1) for _ in range(20)]
    email = [None if day == TODAY or row % 10 == 0 else "a" for row, day in enumerate(days)]
    table = pa.table({"ds": pa.array(days, pa.date32()), "email": pa.array(email, pa.string())})
    dataset = replace(delta(tmp_path, "orders", table), date_column="ds")
    suite = 'suite "Test" { check "All" on orders { watch orders } }'
    report = run(request(tmp_path, suite, [dataset]))
    assert {one.name: one.status for one in report.verdicts if one.check == "All"} == {
        "orders.watch.rows": Status.PASSED,
        "orders.watch.nulls.email": Status.FAILED,
        "orders.watch.distinct.email": Status.PASSED,
    }
    assert report.outcome is Outcome.WARNED
