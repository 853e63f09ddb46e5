"""Missing files of a Delta log: the log does not answer for them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.engine.sources.delta_checkpoints import loose_files
from dqx_airflow.engine.sources.delta_storage import TableStorage
from dqx_airflow.values import DatasetRef, GateReport, Outcome
from tests.engine.lake import TODAY, YESTERDAY, Gate, verdict

pytestmark = pytest.mark.spark

SUITE = """
    assert num_rows() > 0 name "rows"
    assert null_count(x) == 0 name "nulls"
    assert minimum(x) >= 0 name "least"
    assert each row: x >= 0 name "each"
    assert sum(x) >= 0 name "sum"
"""
NAMES = ("rows", "nulls", "least", "each", "sum")


def rows(on: date, *xs: int) -> pa.Table:
    return pa.table({"x": pa.array(xs, pa.int64()), "ds": pa.array([on] * len(xs), pa.date32())})


def table(folder: Path, kind: str) -> DatasetRef:
    """A table with two files of today and one of yesterday."""
    path = folder / "orders"
    by = ["ds"] if kind == "partitions" else None
    for on, *xs in ((YESTERDAY, 1, 2), (TODAY, 3, 4), (TODAY, 5, 6)):
        write_deltalake(str(path), rows(on, *xs), mode="append", partition_by=by)
    return DatasetRef("orders", str(path), date_column=None if kind == "no dates" else "ds")


def file_of_today(ref: DatasetRef) -> Path:
    """The file with 3 and 4."""
    for path in sorted(Path(str(ref.path)).rglob("*.parquet")):
        if 3 in pq.ParquetFile(path).read(["x"]).column("x").to_pylist():
            return path
    raise AssertionError


def _removed(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _longer(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"PAR1")


def _another_table(path: Path) -> None:
    table = rows(TODAY, *range(50))
    pq.write_table(table if "ds=" not in str(path) else table.drop_columns("ds"), path)


LOSSES = {
    "removed": (_removed, "which does not exist"),
    "cut off": (_cut_off, "bytes, but it has"),
    "another one": (_another_table, "bytes, but it has"),
    "empty": (_empty, "it has 0"),
    "longer": (_longer, "bytes, but it has"),
}


KINDS = [
    "dates",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("no dates", "partitions")),
]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_file_that_differs_from_the_log_is_always_an_error(
    gate: Gate, tmp_path: Path, loss: str, kind: str
) -> None:
    lose, reason = LOSSES[loss]
    ref = table(tmp_path, kind)
    assert gate(SUITE, ref).outcome is Outcome.PASSED
    lose(file_of_today(ref))
    for changes in ({}, {"recompute": True}, {"allow_empty": True}):
        report = gate(SUITE, ref, **changes)
        assert report.outcome is Outcome.BROKEN
        for name in NAMES:
            assert verdict(report, name).status.value == "error"
            assert reason in str(verdict(report, name).reason)
    (tmp_path / "results").rename(tmp_path / "results before")
    assert gate(SUITE, ref).outcome is Outcome.BROKEN  # a first run


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["no dates", "dates", "partitions"])
def test_only_assertions_on_the_lost_file_are_errors(gate: Gate, tmp_path: Path, kind: str) -> None:
    ref = table(tmp_path, kind)
    _removed(file_of_today(ref))
    report = gate(SUITE, ref, on=YESTERDAY)
    assert report.outcome is (Outcome.BROKEN if kind == "no dates" else Outcome.PASSED)


@pytest.mark.more
def test_a_lost_file_of_a_reference_is_an_error(gate: Gate, tmp_path: Path) -> None:
    ref = table(tmp_path, "partitions")
    known = tmp_path / "known"
    write_deltalake(str(known), pa.table({"x": pa.array(range(9), pa.int64())}))
    suite = 'assert values(x) in values(x, dataset known) name "known"\n assert num_rows() > 0'
    both = (ref, DatasetRef("known", str(known)))
    assert gate(suite, *both).outcome is Outcome.PASSED
    (file,) = known.glob("*.parquet")
    _removed(file)
    report = gate(suite, *both)
    assert report.outcome is Outcome.BROKEN
    assert "which does not exist" in str(verdict(report, "known").reason)


def _bad_of_the_same_size(path: Path) -> None:
    """A file of the very same size with a negative number: of numbers of eight bytes."""
    size, bad = path.stat().st_size, str(path.parents[2] / "bad")
    write_deltalake(bad, rows(TODAY, -3, 4), partition_by=["ds"])
    (file,) = Path(bad).rglob("*.parquet")
    assert file.stat().st_size == size
    os.replace(file, path)
    shutil.rmtree(bad)


@pytest.mark.more
@pytest.mark.few(1)
@pytest.mark.parametrize("is_time_kept", [True, False])
@pytest.mark.parametrize("has_states", [True, False])
def test_a_replaced_file_of_the_same_size_is_read(
    gate: Gate, tmp_path: Path, has_states: bool, is_time_kept: bool
) -> None:
    ref = table(tmp_path, "partitions")
    if has_states:
        assert gate(SUITE, ref).outcome is Outcome.PASSED
    path = file_of_today(ref)
    its = path.stat()
    _bad_of_the_same_size(path)
    if is_time_kept:
        os.utime(path, ns=(its.st_atime_ns, its.st_mtime_ns))
    report = gate(SUITE, ref)
    failed = {verdict.name for verdict in report.verdicts if verdict.status.value == "failed"}
    assert failed >= {"least", "each"}
    assert report.outcome is Outcome.BLOCKED


def _change_statistics(ref: DatasetRef, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the statistics of the files in the log."""
    for commit in (Path(str(ref.path)) / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in commit.read_text().splitlines()]
        for line in lines:
            if "add" in line:
                statistics = json.loads(line["add"]["stats"])
                change(statistics)
                line["add"]["stats"] = json.dumps(statistics)
        commit.write_text("\n".join(map(json.dumps, lines)))


def _origins(report: GateReport) -> dict[str, str | None]:
    return {
        item.name: item.origin and item.origin.value
        for item in report.verdicts
        if item.name in NAMES
    }


@pytest.mark.more
def test_bounds_that_are_not_tight_are_no_extremes(gate: Gate, tmp_path: Path) -> None:
    ref = table(tmp_path, "partitions")
    suite = SUITE + 'assert maximum(x) == 6 name "most"'
    assert _origins(gate(suite, ref))["least"] == "transaction log"

    def loosen(statistics: dict[str, Any]) -> None:
        statistics["tightBounds"] = False
        statistics["maxValues"]["x"] = 1000

    _change_statistics(ref, loosen)
    report = gate(suite, ref)
    origins = _origins(report)
    assert report.outcome is Outcome.PASSED
    assert origins["rows"] == "transaction log"
    assert {origins["nulls"], origins["least"]} == {"scan"}


def test_tight_bounds_are_read_from_checkpoints_too(tmp_path: Path) -> None:
    ref = table(tmp_path, "partitions")
    path = str(ref.path)
    assert loose_files(path, 2) == frozenset()
    _change_statistics(ref, lambda statistics: statistics.update(tightBounds=True))
    assert loose_files(path, 2) == frozenset()
    _change_statistics(ref, lambda statistics: statistics.update(tightBounds=False))
    every = {item["path"] for item in pa.table(DeltaTable(path).get_add_actions()).to_pylist()}
    assert loose_files(path, 2) == every
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, rows(TODAY, 7), mode="append")
    for commit in range(2):
        (Path(path) / "_delta_log" / f"{commit:020}.json").unlink()
    assert loose_files(path, 3) == every
    (Path(path) / "_delta_log" / f"{3:020}.json").unlink()
    assert loose_files(path, 3) is None


@pytest.mark.more
def test_a_wrong_log_is_used_unless_trust_log_is_off(gate: Gate, tmp_path: Path) -> None:
    ref = table(tmp_path, "dates")
    # The log gives the bad row another day and a good value.
    write_deltalake(str(ref.path), rows(TODAY, -1), mode="append")

    def lie(statistics: dict[str, Any]) -> None:
        if statistics["minValues"]["x"] == -1:
            for side in ("minValues", "maxValues"):
                statistics[side] = {"x": 1, "ds": "2020-01-01"}

    _change_statistics(ref, lie)
    assert gate(SUITE, ref).outcome is Outcome.PASSED
    report = gate(SUITE, replace(ref, trust_log=False))
    assert report.outcome is Outcome.BLOCKED
    assert set(_origins(report).values()) == {"scan"}
    assert gate(SUITE, ref).outcome is Outcome.PASSED


def test_each_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: listed.append(folder) or scandir(folder))
    path = tmp_path / "orders"
    for day in range(3):
        for _ in range(2):
            on = TODAY - timedelta(day)
            write_deltalake(str(path), rows(on, 1), mode="append", partition_by=["ds"])
    uris = [str(file) for file in path.rglob("*.parquet")]
    listed.clear()
    storage = TableStorage(str(path))
    found = storage.look_at(uris)
    assert len(found) == 6
    assert all(found.values())
    storage.look_at(uris)
    assert len(listed) == 3
    assert storage.look_at([f"{path}/ds=2000-01-01/gone.parquet"]).popitem()[1] is None


@pytest.mark.more
def test_a_shallow_clone_has_its_files_in_the_other_table(gate: Gate, tmp_path: Path) -> None:
    original = table(tmp_path, "dates")
    clone = tmp_path / "clone"
    shutil.copytree(f"{original.path}/_delta_log", clone / "_delta_log")
    for commit in (clone / "_delta_log").glob("*.json"):  # as Spark writes its paths
        commit.write_text(commit.read_text().replace('"path":"', f'"path":"file:{original.path}/'))
    ref = replace(original, path=str(clone))
    assert gate(SUITE, ref).outcome is Outcome.PASSED
    DeltaTable(str(original.path)).delete()
    DeltaTable(str(original.path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    lost = gate(SUITE, ref)
    assert lost.outcome is Outcome.BROKEN
    assert f"lists {original.path}/part-" in (lost.verdicts[0].reason or "")
