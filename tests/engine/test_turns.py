"""Ranges are counted only if the extremes do not answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.engine.job import run_gates
from dqx_airflow.plan import passes
from dqx_airflow.values import DatasetRef, GateReport
from tests.engine.lake import TODAY, YESTERDAY, delta, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

RANGES = "\n".join(f'assert each row: amount between -{n} and 100{n} name "a{n}"' for n in range(9))
ORDERS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "amount": pa.array(map(Decimal, ("0.00", "9.50", "99.99", "7.00")), pa.decimal128(18, 2)),
        "rate": pa.array([0.1, float("nan"), None, 0.2]),
        "nothing": pa.array([None] * 4, pa.int32()),
        "ds": pa.array([TODAY] * 3 + [YESTERDAY], pa.date32()),
    }
)


def gate(spark: Any, folder: Path, suite: str, orders: DatasetRef) -> tuple[GateReport, int]:
    before = jobs_so_far(spark)
    report = run_gates([request(folder, suite, [orders], recompute=True)], lambda _: spark)[0]
    return report, jobs_so_far(spark) - before


def values(report: GateReport, names: Sequence[str]) -> list[object]:
    found = {verdict.name: verdict.value for verdict in report.verdicts}
    return [found[name] for name in names]


@pytest.fixture(autouse=True)
def _as_with_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS_FUSED", -1)
    monkeypatch.setattr(passes, "MOST_BYTES_FUSED", -1)


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    pq.write_table(ORDERS, tmp_path / "orders.parquet")
    return DatasetRef("orders", str(tmp_path / "orders.parquet"), format="parquet")


@pytest.mark.more
def test_ranges_that_hold_are_read_in_one_job(
    spark: Any, tmp_path: Path, orders: DatasetRef
) -> None:
    report, jobs = gate(spark, tmp_path, RANGES, orders)
    assert report.outcome.value == "passed"
    assert values(report, [f"a{n}" for n in range(9)]) == [0] * 9
    assert jobs == gate(spark, tmp_path, 'assert maximum(amount) > 0 name "one"', orders)[1]


def test_rows_out_of_range_are_counted_on_each_date(
    spark: Any, tmp_path: Path, orders: DatasetRef
) -> None:
    suite = f"""
        {RANGES}
        assert each row: amount < 50 name "large"
        assert each row: amount > 0 name "small"
        assert each row: amount != 9.5 name "one"
        assert count_values(id, 3) == 1 name "three"
        assert count_values(id, 9) == 0 name "nine"
        assert count_values(id, 4, lag 1) == 1 name "four"
        assert maximum(id) > 0 name "most"
        assert minimum(id) > 0 name "least"
        assert 60% of rows: rate between 0 and 1 name "rates"
        assert each row: rate >= 0 and rate <= 1 name "no NaN"
        assert each row: nothing > 0 and nothing < 9 name "nothing"
        assert each row: nothing between 3 and 4 name "again"
        assert average(nothing) is None name "mean of nothing"
    """
    report, _ = gate(spark, tmp_path, suite, replace(orders, date_column="ds"))
    names = ["large", "small", "one", "three", "nine", "four", "no NaN", "nothing", "again"]
    assert values(report, names) == [1, 1, 1, 1, 0, 1, 1, 0, 0]
    assert values(report, ["rates", "mean of nothing", "a8"]) == [0.5, None, 0]


@pytest.mark.more
def test_with_few_rows_all_is_counted_at_once(
    spark: Any, tmp_path: Path, orders: DatasetRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    suite = f'{RANGES}\nassert each row: amount < 50 name "large"'
    report, jobs = gate(spark, tmp_path, suite, orders)
    assert values(report, ["large", "a0"]) == [1, 0]
    failing = 1  # the rows to blame are looked for in a job of their own
    one = gate(spark, tmp_path, 'assert maximum(amount) > 0 name "one"', orders)[1]
    assert jobs == one + failing


def test_the_transaction_log_answers_ranges_of_whole_numbers(spark: Any, tmp_path: Path) -> None:
    orders = replace(
        delta(tmp_path, "orders", ORDERS, partition_by=["ds"]), date_column="ds", masked=("id",)
    )
    suite = 'assert each row: id between 1 and 3 name "ids"'
    report, jobs = gate(spark, tmp_path, suite, orders)
    assert [(item.value, item.origin.value) for item in report.verdicts if item.name == "ids"] == [
        (0, "transaction log")
    ]
    assert jobs == 0
