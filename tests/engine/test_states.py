"""Stored states are reused exactly as long as the files are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.values import DatasetRef, GateReport, Origin
from tests.engine.lake import TODAY, Gate

pytestmark = pytest.mark.spark

AVERAGE = "assert average(price) > 0 name 'average'".replace("'", '"')
WINDOW = 'assert mean(average(price), n 30) > 0 name "window"'
DRIFT = 'assert psi(price, usual n 29) < 99 name "window"'

Counted = Callable[..., tuple[GateReport, int]]


def rows(on: date, *prices: float | None) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(len(prices)), pa.int64()),
            "price": pa.array(prices, pa.float64()),
            "ds": pa.array([on] * len(prices), pa.date32()),
        }
    )


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    """Thirty days in one file each, and one more without a value."""
    path = str(tmp_path / "orders")
    days = [rows(TODAY - timedelta(day), 1.0 + day, None) for day in range(30)]
    write_deltalake(path, pa.concat_tables(days), partition_by=["ds"])
    return DatasetRef("orders", path, date_column="ds")


@pytest.fixture
def counted(gate: Gate) -> Counted:
    """Runs a gate over some datasets; gives the report and the number of Spark jobs."""
    return lambda *given, **more: (gate(*given, **more), gate.jobs)


def verdict(report: GateReport, name: str) -> tuple[object, str | None]:
    found = next(item for item in report.verdicts if item.name == name)
    return found.value, found.origin.value if found.origin else None


def test_a_second_run_on_unchanged_data_runs_no_job(counted: Counted, orders: DatasetRef) -> None:
    first, jobs = counted(WINDOW, orders)
    assert (verdict(first, "window"), jobs) == ((15.5, "scan"), 1)
    second, jobs = counted(WINDOW, orders)
    assert (verdict(second, "window"), jobs) == ((15.5, "stored state"), 0)
    assert [item.value for item in second.verdicts] == [item.value for item in first.verdicts]


@pytest.mark.slow
@pytest.mark.parametrize("suite", [WINDOW, DRIFT], ids=["a mean", "drift"])
def test_the_next_day_of_a_window_reads_one_day(
    suite: str, counted: Counted, orders: DatasetRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[set[date | None]] = []
    from dqx_airflow.engine.scan import frames

    def watched(dataset: Any, dates: set[date | None]) -> Any:
        read.append(dates)
        return rows_of_dates(dataset, dates)

    rows_of_dates = frames.rows_of_dates
    monkeypatch.setattr(frames, "rows_of_dates", watched)
    counted(suite, orders)
    tomorrow = TODAY + timedelta(1)
    write_deltalake(str(orders.path), rows(tomorrow, 31.0), mode="append")
    counted(suite, orders, on=tomorrow)
    passes = len(read) // 2
    assert [len(dates) for dates in read] == [*[30] * passes, *[1] * passes]
    assert read[-1] == {tomorrow}


@pytest.mark.more
def test_the_state_of_an_empty_day_is_stored(counted: Counted, tmp_path: Path) -> None:
    path = str(tmp_path / "plain")
    write_deltalake(path, rows(TODAY, 1.0))
    plain = DatasetRef("orders", path, date_column="ds")
    write_deltalake(path, rows(TODAY - timedelta(2), 1.0), mode="append")
    suite = """suite "S" {
        availability_threshold 0%
        check "C" on orders { assert average(price, lag 1) is None name "none" }
    }"""
    assert verdict(counted(suite, plain)[0], "none") == (None, "scan")
    report, jobs = counted(suite, plain)
    assert (verdict(report, "none"), jobs) == ((None, "stored state"), 0)


@pytest.mark.more
def test_recompute_asks_for_no_states(counted: Counted, orders: DatasetRef) -> None:
    counted(AVERAGE, orders)
    report, jobs = counted(AVERAGE, orders, recompute=True)
    assert (verdict(report, "average"), jobs) == ((1.0, "scan"), 1)


def _late_file(orders: DatasetRef) -> DatasetRef:
    write_deltalake(str(orders.path), rows(TODAY, 5.0), mode="append")
    return orders


def _rewritten(orders: DatasetRef) -> DatasetRef:
    predicate = f"ds = '{TODAY}'"
    write_deltalake(str(orders.path), rows(TODAY, 3.0, None), mode="overwrite", predicate=predicate)
    return orders


def _deleted(orders: DatasetRef) -> DatasetRef:
    DeltaTable(str(orders.path)).delete("price IS NULL")
    return orders


def _new_column(orders: DatasetRef) -> DatasetRef:
    extra = rows(TODAY - timedelta(29), 30.0).append_column("note", pa.array(["x"]))
    write_deltalake(str(orders.path), extra, mode="append", schema_mode="merge")
    return orders


def _filtered(orders: DatasetRef) -> DatasetRef:
    return replace(orders, filter="id = 0")


CHANGES = {
    "a late file": (_late_file, 3.0),
    "a rewritten partition": (_rewritten, 3.0),
    "a delete": (_deleted, 1.0),
    "a change of the schema": (_new_column, 1.0),
    "another filter": (_filtered, 1.0),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("change", CHANGES)
def test_changed_data_makes_a_state_stale(
    counted: Counted, orders: DatasetRef, change: str
) -> None:
    counted(AVERAGE, orders)
    changed, value = CHANGES[change]
    report, _ = counted(AVERAGE, changed(orders))
    assert verdict(report, "average") == (value, "scan")


def test_other_dates_do_not_make_a_state_stale(counted: Counted, orders: DatasetRef) -> None:
    counted(AVERAGE, orders)
    write_deltalake(str(orders.path), rows(TODAY + timedelta(1), 9.0), mode="append")
    assert verdict(counted(AVERAGE, orders)[0], "average") == (1.0, "stored state")


KNOWN = 'assert values(id) in values(id, dataset known) name "known"'


@pytest.mark.slow
def test_a_change_of_the_reference_makes_a_lookup_stale(
    counted: Counted, orders: DatasetRef, tmp_path: Path
) -> None:
    path = str(tmp_path / "known")
    write_deltalake(path, pa.table({"id": pa.array([0], pa.int64())}))
    known = DatasetRef("known", path)
    assert verdict(counted(KNOWN, orders, known)[0], "known") == (1, "scan")
    assert verdict(counted(KNOWN, orders, known)[0], "known") == (1, "stored state")
    write_deltalake(path, pa.table({"id": pa.array([1], pa.int64())}), mode="append")
    assert verdict(counted(KNOWN, orders, known)[0], "known") == (0, "scan")


@pytest.mark.slow
def test_a_reference_is_read_on_the_date_of_the_gate(counted: Counted, tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    write_deltalake(str(path), pa.table({"id": pa.array([0, 1, 2], pa.int64())}))
    numbers = DatasetRef("orders", str(path))
    days = pa.array([TODAY, TODAY, TODAY - timedelta(1)], pa.date32())
    dated = pa.table({"id": pa.array([0, 1, 2], pa.int64()), "ds": days})
    write_deltalake(str(tmp_path / "known"), dated)
    known = DatasetRef("known", str(tmp_path / "known"), date_column="ds")
    assert verdict(counted(KNOWN, numbers, known)[0], "known") == (1, "scan")
    yesterday = counted(KNOWN, numbers, known, on=TODAY - timedelta(1))[0]
    assert verdict(yesterday, "known") == (2, "scan")


def test_sql_of_the_users_is_computed_again(counted: Counted, orders: DatasetRef) -> None:
    suite = 'assert sql("max(price)") > 0 name "text"'  # it may call current_date()
    counted(suite, orders)
    assert verdict(counted(suite, orders)[0], "text") == (1.0, "scan")


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("filter", ["ds <= DATE'today'", "ds <= current_date", "ds <= now()"])
def test_a_filter_that_may_change_by_itself_is_computed_again(
    counted: Counted, orders: DatasetRef, filter: str
) -> None:
    filtered = replace(orders, filter=filter)
    counted(AVERAGE, filtered)
    assert verdict(counted(AVERAGE, filtered)[0], "average") == (1.0, "scan")


@pytest.mark.slow
def test_parquet_files_have_fingerprints_too(counted: Counted, tmp_path: Path) -> None:
    folder = tmp_path / "parquet"
    for on, price in ((TODAY, 1.0), (TODAY - timedelta(1), 2.0)):
        part = folder / f"ds={on}"
        part.mkdir(parents=True)
        pq.write_table(rows(on, price).drop_columns("ds"), part / "a.parquet")
    ref = DatasetRef("orders", str(folder), format="parquet", date_column="ds")
    assert verdict(counted(AVERAGE, ref)[0], "average") == (1.0, "scan")
    pq.write_table(
        rows(TODAY, 7.0).drop_columns("ds"), folder / f"ds={TODAY - timedelta(1)}" / "b.parquet"
    )
    assert verdict(counted(AVERAGE, ref)[0], "average") == (1.0, "stored state")
    pq.write_table(rows(TODAY, 7.0).drop_columns("ds"), folder / f"ds={TODAY}" / "b.parquet")
    assert verdict(counted(AVERAGE, ref)[0], "average") == (4.0, "scan")


def test_a_file_that_arrives_while_a_gate_runs_is_read_by_the_next_one(
    counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.engine import measure

    folder = tmp_path / "parquet"
    folder.mkdir()
    pq.write_table(rows(TODAY, 1.0), folder / "a.parquet")
    ref = DatasetRef("orders", str(folder), format="parquet", date_column="ds")

    def opened_and_then_added(*arguments: Any) -> Any:
        opened = open_dataset(*arguments)
        pq.write_table(rows(TODAY, 7.0), folder / "b.parquet")
        return opened

    open_dataset = measure.open_dataset
    with monkeypatch.context() as patched:
        patched.setattr(measure, "open_dataset", opened_and_then_added)
        assert verdict(counted(AVERAGE, ref)[0], "average") == (1.0, "scan")
    assert verdict(counted(AVERAGE, ref)[0], "average") == (4.0, "scan")


@pytest.mark.slow
def test_a_catalog_table_has_no_fingerprint(spark: Any, counted: Counted) -> None:
    spark.createDataFrame([(1, 2.0)], "id long, price double").createOrReplaceTempView("sales_view")
    ref = DatasetRef("orders", table="sales_view")
    counted(AVERAGE, ref)
    assert verdict(counted(AVERAGE, ref)[0], "average") == (2.0, "scan")


LOG = [
    ("num_rows() == 2", 2),
    ("count(price) == 1", 1),
    ("null_count(price) / num_rows() == 0.5", 0.5),
    ("minimum(id) == 0", 0),
    ("maximum(id) == 1", 1),
    ("num_rows(lag 40) is None", None),
]


def test_the_transaction_log_answers_exact_metrics(counted: Counted, orders: DatasetRef) -> None:
    suite = "\n".join(f'assert {claim} name "{claim}"' for claim, _ in LOG)
    suite = f'suite "S" {{ availability_threshold 0% check "C" on orders {{ {suite} }} }}'
    report, jobs = counted(suite, orders)
    for claim, value in LOG:
        assert verdict(report, claim) == (value, "transaction log")
    assert jobs == 0


@pytest.mark.slow
def test_the_transaction_log_answers_no_inexact_metric(counted: Counted, tmp_path: Path) -> None:
    path = str(tmp_path / "mixed")
    both = pa.concat_tables([rows(TODAY, 1.0, None), rows(TODAY - timedelta(1), 2.0)])
    write_deltalake(path, both)  # one file with two dates
    suite = 'assert num_rows() == 2 name "rows"'
    report, _ = counted(suite, DatasetRef("orders", path, date_column="ds"))
    assert verdict(report, "rows") == (2, "scan")
    suite = 'assert maximum(price) == 2 name "double"\nassert null_count(price) == 1 name "nulls"'
    report, _ = counted(suite, DatasetRef("orders", path))
    assert verdict(report, "double") == (2.0, "scan")
    assert verdict(report, "nulls") == (1, "transaction log")
    report, _ = counted(suite, DatasetRef("orders", path, filter="price IS NOT NULL"))
    assert verdict(report, "nulls") == (0, "scan")


def test_origins_are_ordered_by_cost() -> None:
    assert list(Origin) == [Origin.SCAN, Origin.MERGED, Origin.STATE, Origin.LOG]
