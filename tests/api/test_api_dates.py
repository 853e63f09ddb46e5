"""Several dates in one call from Python."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dqx_airflow import (
    DatedResults,
    DatesFailedError,
    MemoryDatabase,
    SparkDatabase,
    StoredDatabase,
    VerificationSuite,
    check,
)
from dqx_airflow.dql import Interpreter, Suite
from dqx_airflow.errors import RequestError

DAYS = [date(2026, 1, day) for day in (1, 2, 3)]
ROWS = [{"id": number, "ds": DAYS[min(number, 2)]} for number in range(6)]
SUITE = """suite "Orders" {
    check "Volume" on orders {
        assert num_rows() < 4 name "few"
        assert day_over_day(num_rows()) < 50% name "stable" severity P2
    }
}
"""


@pytest.fixture
def suite() -> Suite:
    return Suite.from_string(SUITE)


def found_in(results: DatedResults) -> dict[date, list[tuple[str, str]]]:
    return {
        on: [(verdict.name, verdict.status.value) for verdict in found]
        for on, found in results.items()
    }


def test_each_date_has_the_results_of_its_own_run(suite: Suite) -> None:
    db = MemoryDatabase({"orders": ROWS}, date_columns={"orders": "ds"})
    results = suite.run_dates(db, "2026-01-01..2026-01-03")
    assert list(results) == DAYS
    alone = {on: suite.run(db, on) for on in DAYS}
    assert found_in(results) == {
        on: [(verdict.name, verdict.status.value) for verdict in found]
        for on, found in alone.items()
    }
    assert [outcome.value for outcome in results.outcomes.values()] == [
        "passed",
        "passed",
        "blocked",
    ]
    assert results.outcome == "blocked"
    assert str(results).startswith("2026-01-01: passed\n2026-01-02: passed\n2026-01-03: blocked\n")
    assert "<td>2026-01-03</td><td>blocked</td>" in results._repr_html_()
    assert set(results.to_pandas()["dataset_date"]) == set(DAYS)
    with pytest.raises(DatesFailedError, match="assertion failed: few"):
        results.raise_for_failures()
    sound = suite.run_dates(db, DAYS[:2])
    assert sound.raise_for_failures() is sound


@pytest.mark.spark
def test_over_spark_all_dates_are_measured_together(
    suite: Suite, spark: Any, tmp_path: Path
) -> None:
    path = str(tmp_path / "orders")
    write_deltalake(path, pa.Table.from_pylist(ROWS))
    given = {"path": path, "date_column": "ds"}
    memory = MemoryDatabase({"orders": ROWS}, date_columns={"orders": "ds"})
    results = suite.run_dates(SparkDatabase(spark, {"orders": given}), DAYS)
    assert found_in(results) == found_in(suite.run_dates(memory, DAYS))


def test_a_date_without_results_in_the_store_was_not_run(suite: Suite, tmp_path: Path) -> None:
    results = suite.run_dates(_without_results(tmp_path), DAYS[:2])
    assert list(results.not_run) == DAYS[:2]
    assert results.outcome == "broken"
    with pytest.raises(DatesFailedError, match="2026-01-02: not run: no results of suite 'Orders'"):
        results.raise_for_failures()


def _without_results(folder: Path) -> StoredDatabase:
    from dqx_airflow.values import DatasetRef

    db = StoredDatabase(str(folder))
    db._datasets = (DatasetRef("orders", table="orders", date_column="?"),)
    return db


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        ("2026-01-03..2026-01-01", "ends before it begins"),
        ("2026-01-03..", "has no last date"),
        ("today..tomorrow", "invalid date 'today'"),
        ("2026-01-03", "invalid range of dates"),
        ([], "`dates` is empty"),
        (DAYS[0], "`dates` is a single date"),
        (["2026-01-01"], "'2026-01-01' is not a date"),
    ],
)
def test_a_mistyped_range_is_an_error(suite: Suite, dates: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        suite.run_dates(MemoryDatabase({"orders": ROWS}, date_columns={"orders": "ds"}), dates)


def test_a_run_for_one_date_names_the_call_for_a_range(suite: Suite) -> None:
    day: Any = "2026-01-01..2026-01-03"
    with pytest.raises(RequestError, match="call run_dates"):
        suite.run(MemoryDatabase({"orders": ROWS}, date_columns={"orders": "ds"}), day)


def test_an_interpreter_and_a_suite_in_python_judge_several_dates(
    suite: Suite, tmp_path: Path
) -> None:
    db = MemoryDatabase({"orders": ROWS}, date_columns={"orders": "ds"})
    due = found_in(suite.run_dates(db, DAYS))
    (tmp_path / "orders.dql").write_text(SUITE)
    interpreter = Interpreter(db, DAYS[0])
    assert found_in(interpreter.run_dates(tmp_path / "orders.dql", "2026-01-01..2026-01-03")) == due

    @check(name="Volume", datasets=["orders"])
    def volume(mp: Any, ctx: Any) -> None:
        ctx.assert_that(mp.num_rows()).is_lt(4)

    python = VerificationSuite([volume], db, "Orders").run_dates(DAYS)
    assert [results.outcome.value for results in python.values()] == ["passed", "passed", "blocked"]
