"""Assertions per group, from a Delta table to the results store."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dqx_airflow.results.runs import read_report
from dqx_airflow.values import DatasetRef, GateReport, Origin, Status
from tests.engine.lake import TODAY, Run, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

SUITE = """
assert num_rows() >= num_rows(lag 1) for each country name "change"
assert mean(average(price), n 3) < 5 for each country name "mean"
assert average(price) > 0 for each (country, vip) in [("CH", true), (null, false)] name "listed"
assert sum(price) > 0 for 99% of groups by country name "share"
"""


def rows(on: date, **prices: float) -> pa.Table:
    countries = [None if name == "none" else name for name in prices]
    return pa.table(
        {
            "country": pa.array(countries, pa.string()),
            "vip": [name == "CH" for name in prices],
            "price": pa.array(prices.values(), pa.float64()),
            "ds": pa.array([on] * len(prices), pa.date32()),
        }
    )


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    path = str(tmp_path / "orders")
    for days in (2, 1):
        on = TODAY - timedelta(days)
        write_deltalake(path, rows(on, CH=1.5, DE=2.0, none=9.0), mode="append")
    write_deltalake(path, rows(TODAY, CH=1.0, none=9.0), mode="append")
    return DatasetRef("orders", path, date_column="ds")


@pytest.mark.slow
def test_groups_share_a_pass_and_come_from_stored_states_the_next_time(
    spark: Any, run: Run, orders: DatasetRef, tmp_path: Path, lineage: Path
) -> None:
    asked = request(tmp_path, SUITE, [orders], sample_rows=1)
    before = jobs_so_far(spark)
    first = run(asked)
    between = jobs_so_far(spark)
    again = replace(asked, attempt=replace(asked.attempt, number=2, id="attempt-2"))
    second = run(again)
    # A job to group by each set of columns; with groups, Spark counts the shuffle as one more.
    assert between - before <= 4
    assert jobs_so_far(spark) == between
    assert group_results(first) == {
        "change": ("failed", 3, 1, '"DE"', 0),
        "mean": ("failed", 3, 1, "NULL", 9.0),
        "listed": ("passed", 2, 0, '("CH", "true")', 1.0),
        "share": ("passed", 2, 0, '"CH"', 1.0),
    }
    assert group_results(second) == group_results(first)
    origins = {verdict.origin for verdict in second.verdicts if verdict.groups is not None}
    assert origins == {Origin.STATE}
    stored = read_report(asked.results_root, asked.run_key, asked.attempt.id)
    assert stored == first
    (failing,) = next(one for one in first.verdicts if one.name == "change").failing_rows
    assert json.loads(failing.row) == {"country": "DE", "num_rows()": 0}
    assert failing.reason == "expected >= num_rows(lag 1) (1)"


def group_results(report: GateReport) -> dict[str, tuple[object, ...]]:
    return {
        one.name: (one.status.value, one.groups, one.failed_groups, one.worst_group, one.value)
        for one in report.verdicts
        if one.groups is not None or one.status is Status.ERROR
    }


@pytest.mark.slow
def test_dates_that_python_does_not_have_are_groups_but_no_values(
    spark: Any, run: Run, tmp_path: Path
) -> None:
    days = "(date'2024-01-01', 1), (date'+10000-01-01', -5), (date'-0044-03-15', 3), (null, 2)"
    written = spark.sql(f"SELECT * FROM VALUES {days} AS t (d, n)").write
    written.parquet(str(tmp_path / "days"))
    ref = DatasetRef("orders", str(tmp_path / "days"), format="parquet")
    suite = """
    assert minimum(n) > 0 for each d name "groups"
    assert maximum(d) is None name "latest"
    assert query("SELECT max(d) FROM orders") is None name "query"
    assert sum(n) == 1 name "sum"
    """
    report = run(request(tmp_path, suite, [ref]))
    assert group_results(report) == {
        "groups": ("failed", 4, 1, '"+10000-01-01"', -5),
        "latest": ("error", None, None, None, None),
        "query": ("error", None, None, None, None),
    }
    reasons = {verdict.name: verdict.reason or "" for verdict in report.verdicts}
    assert reasons["latest"].endswith(
        "the value is a date or timestamp outside the years 1 to 9999"
    )


def test_groups_of_a_char_column_have_no_padding(spark: Any, run: Run, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE padded (c CHAR(5), n INT) USING parquet LOCATION '{tmp_path}/padded'")
    spark.sql("INSERT INTO padded VALUES ('ab', NULL), ('ab   ', 2), ('cd', 3), (NULL, 4)")
    suite = """
    assert null_count(n) == 0 for each C in ["ab"] name "nulls"
    assert num_rows() == 1 for each c in ["cd", null] name "listed"
    assert num_rows() <= 2 for each c name "each"
    assert num_rows() > 0 for each c in ["ab   "] name "padded"
    """
    try:
        report = run(request(tmp_path, suite, [DatasetRef("orders", table="padded")]))
    finally:
        spark.sql("DROP TABLE padded")
    assert group_results(report) == {
        "nulls": ("failed", 1, 1, '"ab"', 1),
        "listed": ("passed", 2, 0, '"cd"', 1),
        "each": ("passed", 3, 0, '"ab"', 2),
        "padded": ("failed", 1, 1, '"ab   "', 0),
    }
