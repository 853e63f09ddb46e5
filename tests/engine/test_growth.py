"""After an append only the new files are read, and merged with the stored results of the others."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.engine.scan import frames
from dqx_airflow.metrics.sql import OVERFLOW
from dqx_airflow.plan import passes
from dqx_airflow.values import DatasetRef, GateReport
from tests.engine import lake
from tests.engine.lake import TODAY, Gate, verdict

pytestmark = pytest.mark.spark

YESTERDAY = TODAY - timedelta(1)
SCAN, MERGED, STATE = "scan", "stored state and new files", "stored state"
SUITE = """
    assert sum(id) > 0 name "sum"
    assert minimum(status) == "a" name "least"
    assert max_length(status) > 0 name "longest"
    assert each row: id > 1 name "each"
    assert 50% of rows: status like "a%" name "half"
"""
VARIANCE = 'assert coalesce(variance(id), 0) >= 0 name "variance"'


def rows(on: date | None, *found: tuple[int, str | None]) -> pa.Table:
    ids, texts = zip(*found, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "status": pa.array(texts, pa.string())})
    days = pa.array([on] * len(found), pa.date32())
    return table if on is None else table.append_column("ds", days)


def in_delta(path: Path, on: date | None, *found: tuple[int, str | None]) -> None:
    write_deltalake(str(path), rows(on, *found), mode="append", schema_mode="merge")


def in_partitions(path: Path, on: date | None, *found: tuple[int, str | None]) -> None:
    write_deltalake(str(path), rows(on, *found), mode="append", partition_by=["ds"])


def in_files(path: Path, on: date | None, *found: tuple[int, str | None]) -> None:
    """A Parquet file, in a folder of its date if it has one, later than all that are there."""
    folder = path if on is None else path / f"ds={on}"
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(path.rglob("*.parquet")))
    file = folder / f"{number}.parquet"
    pq.write_table(rows(None, *found), file)
    os.utime(file, ns=(0, 1_700_000_000_000_000_000 + number))


WAYS = {
    "a Delta table": (in_delta, "delta", TODAY),
    "a Delta table with partitions": (in_partitions, "delta", TODAY),
    "a Delta table without dates": (in_delta, "delta", None),
    "Parquet files": (in_files, "parquet", None),
    "Parquet files with partitions": (in_files, "parquet", TODAY),
}


def dataset(path: Path, format: str = "delta", on: date | None = TODAY) -> DatasetRef:
    return DatasetRef("orders", str(path), format=format, date_column=on and "ds")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """How many files the passes of the last gate read."""
    counts: set[int] = set()
    rows_of_dates, run_gates = frames.rows_of_dates, lake.run_gates

    def watched(dataset: Any, dates: set[date | None]) -> Any:
        frame = rows_of_dates(dataset, dates)
        counts.add(len(frame.inputFiles()))
        return frame

    def counted_anew(*given: Any) -> Any:
        counts.clear()
        return run_gates(*given)

    monkeypatch.setattr(frames, "rows_of_dates", watched)
    monkeypatch.setattr(lake, "run_gates", counted_anew)
    return counts


def found(report: GateReport) -> dict[str, object]:
    names = ("sum", "least", "longest", "each", "half")
    return {name: verdict(report, name).value for name in names}


def origins(report: GateReport, *names: str) -> set[str | None]:
    chosen = names or ("sum", "least", "longest", "each", "half")
    found = [verdict(report, name).origin for name in chosen]
    return {origin and origin.value for origin in found}


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "way",
    [
        "a Delta table",
        "Parquet files with partitions",
        pytest.param("a Delta table with partitions", marks=pytest.mark.slow),
        pytest.param("a Delta table without dates", marks=pytest.mark.slow),
        pytest.param("Parquet files", marks=pytest.mark.slow),
    ],
)
def test_after_an_append_the_new_file_alone_is_read(
    way: str, gate: Gate, read: set[int], tmp_path: Path
) -> None:
    write, format, on = WAYS[way]
    path = tmp_path / "orders"
    write(path, on, (1, "b"), (2, None))
    write(path, on, (3, "a"))
    ref = dataset(path, format, on)
    before = gate(SUITE, ref)
    assert (origins(before), read) == ({SCAN}, {2})
    write(path, on, (4, "abc"), (5, "c"))
    after = gate(SUITE, ref)
    assert (origins(after), read) == ({MERGED}, {1})
    assert found(after) == {"sum": 15, "least": "a", "longest": 3, "each": 1, "half": 0.5}
    again = gate(SUITE, ref)
    assert (origins(again), read) == ({STATE}, set())
    assert found(again) == found(after)
    write(path, on, (0, "A"))
    third = gate(SUITE, ref)
    assert (origins(third), read) == ({MERGED}, {1})
    assert found(third) == {
        "sum": 15,
        "least": "A",
        "longest": 3,
        "each": 2,
        "half": Fraction(2, 5),
    }


def _rewritten(path: Path, ref: DatasetRef) -> DatasetRef:
    write_deltalake(str(path), rows(TODAY, (7, "x")), mode="overwrite")
    return ref


def _deleted(path: Path, ref: DatasetRef) -> DatasetRef:
    DeltaTable(str(path)).delete("id = 2")
    return ref


def _compacted(path: Path, ref: DatasetRef) -> DatasetRef:
    DeltaTable(str(path)).optimize.compact()
    return ref


def _of_another_schema(path: Path, ref: DatasetRef) -> DatasetRef:
    more = rows(TODAY, (5, "c")).append_column("note", pa.array(["x"]))
    write_deltalake(str(path), more, mode="append", schema_mode="merge")
    return ref


def _filtered(path: Path, ref: DatasetRef) -> DatasetRef:
    return replace(ref, filter="id >= 0")


CHANGES = {
    "files that are replaced": (_rewritten, 7 + 4),
    "a delete": (_deleted, 1 + 3 + 4),
    "a compaction": (_compacted, 1 + 2 + 3 + 4),
    "another schema": (_of_another_schema, 1 + 2 + 3 + 5 + 4),
    "another filter": (_filtered, 1 + 2 + 3 + 4),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("change", CHANGES)
def test_anything_but_an_append_reads_everything(change: str, gate: Gate, tmp_path: Path) -> None:
    happens, total = CHANGES[change]
    path = tmp_path / "orders"
    in_delta(path, TODAY, (1, "b"), (2, None))
    in_delta(path, TODAY, (3, "a"))
    gate(SUITE, dataset(path))
    ref = happens(path, dataset(path))
    in_delta(path, TODAY, (4, "d"))
    report = gate(SUITE, ref)
    assert (origins(report), found(report)["sum"]) == ({SCAN}, total)


@pytest.mark.slow
def test_a_new_file_with_an_old_timestamp_invalidates_the_state(
    gate: Gate, read: set[int], tmp_path: Path
) -> None:
    path = tmp_path / "orders"
    in_files(path, None, (1, "b"))
    in_files(path, None, (2, "c"))
    ref = dataset(path, "parquet", None)
    gate(SUITE, ref)
    in_files(path, None, (4, "d"))
    os.utime(path / "2.parquet", ns=(0, 1_700_000_000_000_000_000))
    report = gate(SUITE, ref)
    assert (origins(report), read, found(report)["sum"]) == ({SCAN}, {3}, 7)


@pytest.mark.more
def test_a_filter_holds_for_the_new_files_too(gate: Gate, tmp_path: Path) -> None:
    path = tmp_path / "orders"
    in_delta(path, TODAY, (1, "b"), (-5, "x"))
    ref = replace(dataset(path), filter="id >= 0")
    gate(SUITE, ref)
    in_delta(path, TODAY, (2, "c"), (-7, "y"))
    report = gate(SUITE, ref)
    assert (origins(report), found(report)["sum"]) == ({MERGED}, 3)


@pytest.mark.more
def test_new_files_without_rows_of_the_date_change_nothing(
    gate: Gate, read: set[int], tmp_path: Path
) -> None:
    path = tmp_path / "orders"
    path.mkdir()
    pq.write_table(rows(TODAY, (1, "b"), (2, "c")), path / "0.parquet")
    ref = dataset(path, "parquet")
    before = gate(SUITE, ref)
    pq.write_table(rows(YESTERDAY, (40, "a")), path / "1.parquet")
    after = gate(SUITE, ref)
    assert (origins(after), read) == ({MERGED}, {1})
    assert found(after) == found(before)


@pytest.mark.slow
def test_a_file_counts_once_for_every_date(gate: Gate, read: set[int], tmp_path: Path) -> None:
    """Of two dates in the same files, each state was stored at another time."""
    path = tmp_path / "orders"
    in_delta(path, YESTERDAY, (1, "a"))
    gate(SUITE, dataset(path), on=YESTERDAY)
    both = pa.concat_tables([rows(YESTERDAY, (2, "a")), rows(TODAY, (10, "a"))])
    write_deltalake(str(path), both, mode="append")
    gate(SUITE, dataset(path))
    write_deltalake(str(path), both, mode="append")
    suite = SUITE + 'assert sum(id, lag 1) > 0 name "before"'
    report = gate(suite, dataset(path))
    assert [verdict(report, name).value for name in ("sum", "before")] == [20, 5]
    assert origins(report, "sum", "before") == {MERGED}
    assert read == {1, 2}


@pytest.mark.more
def test_late_files_of_several_dates_are_one_pass(
    gate: Gate, read: set[int], tmp_path: Path
) -> None:
    path = tmp_path / "orders"
    for on in (YESTERDAY, TODAY):
        in_partitions(path, on, (1, "a"))
    suite = 'assert mean(sum(id), n 2) > 0 name "window"'
    gate(suite, dataset(path))
    for on in (YESTERDAY, TODAY):
        in_partitions(path, on, (2, "a"))
    report = gate(suite, dataset(path))
    assert (verdict(report, "window").value, origins(report, "window"), read) == (3, {MERGED}, {2})


@pytest.mark.more
def test_few_rows_are_read_in_full_for_everything(
    gate: Gate, read: set[int], tmp_path: Path
) -> None:
    path = tmp_path / "orders"
    in_delta(path, TODAY, (1, "a"))
    gate(SUITE + VARIANCE, dataset(path))
    in_delta(path, TODAY, (2, "a"))
    report = gate(SUITE + VARIANCE, dataset(path))
    assert (origins(report), read) == ({SCAN}, {2})


def test_of_many_rows_only_new_ones_are_read_for_mergeable_metrics(
    gate: Gate, read: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS_FUSED", 0)
    path = tmp_path / "orders"
    in_delta(path, TODAY, (1, "a"))
    gate(SUITE + VARIANCE, dataset(path))
    in_delta(path, TODAY, (2, "a"))
    report = gate(SUITE + VARIANCE, dataset(path))
    assert (origins(report), origins(report, "variance"), read) == ({MERGED}, {SCAN}, {1, 2})


@pytest.mark.more
def test_a_sum_that_overflows_is_never_merged(gate: Gate, read: set[int], tmp_path: Path) -> None:
    path = tmp_path / "orders"
    suite = 'assert sum(total) is None name "sum"'
    most = pa.table({"total": pa.array([Decimal(10**38 - 1)], pa.decimal128(38, 0)), "ds": [TODAY]})
    write_deltalake(str(path), most)
    gate(suite, dataset(path))
    write_deltalake(str(path), most, mode="append")
    report = gate(suite, dataset(path))
    total = verdict(report, "sum")
    assert (total.value, total.reason, read) == (None, OVERFLOW, {1, 2})


@pytest.mark.more
def test_a_sum_of_whole_numbers_is_merged_beyond_64_bits(gate: Gate, tmp_path: Path) -> None:
    path = tmp_path / "orders"
    suite = 'assert sum(id) == 9223372036854775809 name "sum"'
    in_delta(path, TODAY, (2**62, "a"), (2**62, "a"))
    gate(suite, dataset(path))
    in_delta(path, TODAY, (1, "a"))
    report = gate(suite, dataset(path))
    total = verdict(report, "sum")
    assert (total.value, total.status, origins(report, "sum")) == (2**63 + 1, "passed", {MERGED})


@pytest.mark.slow
def test_lookups_are_merged_while_their_reference_is_unchanged(gate: Gate, tmp_path: Path) -> None:
    path, known = tmp_path / "orders", tmp_path / "known"
    in_delta(path, TODAY, (1, "a"), (2, "b"))
    write_deltalake(str(known), pa.table({"code": ["a"]}))
    suite = 'assert values(status) in values(code, dataset known) name "known"'
    datasets = dataset(path), DatasetRef("known", str(known))

    def missing() -> tuple[object, set[str | None]]:
        report = gate(suite, *datasets)
        return verdict(report, "known").value, origins(report, "known")

    assert missing() == (1, {SCAN})
    in_delta(path, TODAY, (3, "c"))
    assert missing() == (2, {MERGED})
    in_delta(path, TODAY, (4, "a"))
    write_deltalake(str(known), pa.table({"code": ["c"]}), mode="append")
    assert missing() == (1, {SCAN})
