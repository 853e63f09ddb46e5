"""Random lives of a dataset: a gate with stored states agrees with one without.

Between two runs something happens: rows come, files are replaced, cut off or lost, the dataset or
its reference is described in another way. After each step the gate that shares its results store
with all runs before is compared with one that starts from nothing and reads everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from dqx_airflow.engine.job import run_gates
from dqx_airflow.values import DatasetRef, GateReport, Origin, Status, Verdict
from tests.attacks.attack_gates import gate_request
from tests.attacks.exact_tables import TODAY, YESTERDAY

pytestmark = pytest.mark.spark

SEEDS = [*(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(40) if seed != 1), 1]
STEPS = 8

SUITE = """
suite "Lives" {
    availability_threshold 0%
    check "Rows" on t {
        assert each row: x >= 0 name "row"
        assert num_rows() < 1000 name "rows"
        assert minimum(x) >= 0 name "least"
        assert maximum(x) <= 100 name "most"
        assert null_count(x) == 0 name "nulls"
        assert sum(x) is not None name "sum"
        assert unique(id) name "unique"
        assert num_rows(lag 1) > 0 name "yesterday"
    }
    check "Reference" on r {
        assert num_rows() > 0 name "reference rows"
        assert not_null(k) name "reference keys"
    }
    check "Both" on t, r {
        assert values(k, dataset t) in values(k, dataset r) name "reference"
    }
}
"""

FILTERS = [
    None,
    "x >= 0",
    "x >= 0 OR k = 'a'",
    "at <= TIMESTAMP'now'",
    "at <= /* c */ timestamp 'now'",
    "rand() < 2",
    "date(at) = '2024-03-02'",
]
REFERENCE_FILTERS = [None, "active", "NOT active", "k <> 'b'"]
ZONES = [None, "UTC", "Asia/Tokyo", "America/New_York"]


@dataclass
class Life:
    """The two datasets as they are now."""

    folder: Path
    random: Random
    t: DatasetRef
    r: DatasetRef
    number: int = 0

    def rows(self, count: int) -> pa.Table:
        random = self.random
        self.number += count
        return pa.table(
            {
                "id": pa.array(
                    [random.choice([self.number + i, i]) for i in range(count)], pa.int64()
                ),
                "x": pa.array([random.choice([1, 5, 99, -1, None]) for _ in range(count)]).cast(
                    pa.int64()
                ),
                "k": pa.array([random.choice(["a", "b", "c"]) for _ in range(count)]),
                "at": pa.array(
                    [random.choice([1, 10**9 * 3, 1709337600]) for _ in range(count)]
                ).cast(pa.timestamp("s", "UTC")),
                "ds": pa.array([random.choice([TODAY, YESTERDAY]) for _ in range(count)]),
            }
        )

    def references(self) -> pa.Table:
        keys = self.random.sample(["a", "b", "c"], self.random.randint(1, 3))
        return pa.table(
            {
                "k": keys,
                "active": [self.random.random() < 0.5 for _ in keys],
                "ds": [self.random.choice([TODAY, YESTERDAY]) for _ in keys],
            }
        )

    def write(self, ref: DatasetRef, table: pa.Table, mode: Any = "append") -> None:
        path = Path(str(ref.path))
        if ref.format == "delta":
            write_deltalake(str(path), table, mode=mode)
            return
        path.mkdir(exist_ok=True)
        if mode == "overwrite":
            for file in path.glob("*.parquet"):
                file.unlink()
        self.number += 1
        pq.write_table(table, path / f"{self.number}.parquet")

    def some_file(self) -> Path | None:
        ref = self.random.choice([self.t, self.r])
        path = Path(str(ref.path))
        if ref.format == "delta":
            uris = sorted(DeltaTable(str(path)).file_uris())
            files = [Path(uri.removeprefix("file://")) for uri in uris]
        else:
            files = sorted(path.glob("*.parquet"))
        files = [file for file in files if file.exists()]
        return self.random.choice(files) if files else None


def _append(life: Life) -> str:
    life.write(life.t, life.rows(life.random.randint(1, 5)))
    return "append"


def _overwrite(life: Life) -> str:
    life.write(life.t, life.rows(life.random.randint(1, 5)), "overwrite")
    return "overwrite"


def _new_references(life: Life) -> str:
    life.write(life.r, life.references(), "overwrite")
    return "new references"


def _filter(life: Life) -> str:
    life.t = replace(life.t, filter=life.random.choice(FILTERS))
    return f"filter {life.t.filter!r}"


def _reference_filter(life: Life) -> str:
    life.r = replace(life.r, filter=life.random.choice(REFERENCE_FILTERS))
    return f"reference filter {life.r.filter!r}"


def _date_column(life: Life) -> str:
    ref = life.random.choice(["t", "r"])
    # The suite compares `t` with the day before, so it always has dates.
    column = life.random.choice(["ds", "at"] if ref == "t" else [None, "ds"])
    setattr(life, ref, replace(getattr(life, ref), date_column=column))
    return f"date column of {ref}: {column}"


def _zone(life: Life) -> str:
    life.t = replace(life.t, time_zone=life.random.choice(ZONES))
    return f"zone {life.t.time_zone}"


def _lose(life: Life) -> str:
    file = life.some_file()
    if file:
        file.unlink()
    return f"lost {file and file.name}"


def _cut_off(life: Life) -> str:
    file = life.some_file()
    if file:
        size = life.random.choice([0, 4, file.stat().st_size // 2])
        os.truncate(file, size)
    return f"cut off {file and file.name}"


def _same_size_and_time(life: Life) -> str:
    """Another content with the size and the modification time of before."""
    file = life.some_file()
    if file is None or file.stat().st_size < 100:
        return "nothing"
    before = file.stat()
    try:
        table = pq.read_table(file)
    except pa.ArrowInvalid:
        return "nothing"
    changed = table
    if "x" in table.column_names:
        flipped = pa.array([-1 if v == 1 else v for v in table["x"].to_pylist()], pa.int64())
        changed = table.set_column(table.column_names.index("x"), "x", flipped)
    pq.write_table(changed, file)
    if file.stat().st_size < before.st_size:
        return "shorter"
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return f"other rows, same time: {file.name}"


def _restore(life: Life) -> str:
    if life.t.format != "delta":
        return "nothing"
    table = DeltaTable(str(life.t.path))
    life.t = replace(life.t, version=life.random.randint(0, table.version()))
    return f"version {life.t.version}"


def _newest(life: Life) -> str:
    life.t = replace(life.t, version=None)
    return "newest"


def _nothing(life: Life) -> str:
    return "nothing"


HAPPENINGS = [
    _append,
    _overwrite,
    _new_references,
    _filter,
    _reference_filter,
    _date_column,
    _zone,
    _lose,
    _cut_off,
    _same_size_and_time,
    _restore,
    _newest,
    _nothing,
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_gate_with_states_agrees_with_one_without(
    seed: int, spark: Any, tmp_path: Path, attack: Callable[[str], Any]
) -> None:
    random = Random(seed)
    formats = random.choice(["delta", "parquet"]), random.choice(["delta", "parquet"])
    life = Life(
        tmp_path,
        random,
        DatasetRef("t", path=str(tmp_path / "t"), format=formats[0], date_column="ds"),
        DatasetRef("r", path=str(tmp_path / "r"), format=formats[1]),
    )
    life.write(life.t, life.rows(5))
    life.write(life.r, life.references())
    tally = attack("stored states: verdicts after a random life")
    past = [f"{formats}"]
    for step in range(STEPS):
        past.append(random.choice(HAPPENINGS)(life))
        with_states = _run(spark, life, "results")
        alone = _run(spark, life, f"alone-{step}", recompute=True)
        for one, other in zip(with_states.verdicts, alone.verdicts, strict=True):
            tally.tried(
                (one.status, one.value) == (other.status, other.value)
                or _is_of_a_whole_day(life, one, other),
                f"seed {seed}, {one.name}: {one.status} {one.value!r} by {one.origin}, without "
                f"states {other.status} {other.value!r} ({other.reason}); {'; '.join(past)}",
            )
        for verdict in alone.verdicts:
            tally.tried(
                verdict.status is not Status.PASSED or not set(verdict.datasets) & _broken(life),
                f"seed {seed}, {verdict.name} passed over a file that is not whole: "
                f"{'; '.join(past)}",
            )


def _is_of_a_whole_day(life: Life, one: Verdict, other: Verdict) -> bool:
    """True where a gate without states fails over a file of the day before, which it reads along,
    and one with states knows the day itself: all of its files are there, whole."""
    refs = [ref for ref in (life.t, life.r) if ref.name in one.datasets]
    return (
        other.status is Status.ERROR
        and one.origin is Origin.STATE
        and all(map(_is_today_whole, refs))
    )


def _is_today_whole(ref: DatasetRef) -> bool:
    if ref.format != "delta" or ref.date_column != "ds":
        return not _is_broken(replace(ref, date_column=None))
    table = DeltaTable(str(ref.path), version=ref.version)
    added = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    of_today = [row for row in added if row["min.ds"] <= TODAY <= row["max.ds"]]
    return all(_is_whole(Path(str(ref.path), row["path"])) for row in of_today)


def _is_whole(file: Path) -> bool:
    return file.exists() and file.read_bytes().endswith(b"PAR1")


def _broken(life: Life) -> set[str]:
    """The datasets of which files are missing or cut off that belong to every date."""
    return {ref.name for ref in (life.t, life.r) if _is_broken(ref)}


def _is_broken(ref: DatasetRef) -> bool:
    path = Path(str(ref.path))
    if ref.format == "delta":
        uris = DeltaTable(str(path), version=ref.version).file_uris()
        files = [Path(uri.removeprefix("file://")) for uri in uris]
    else:
        files = list(path.glob("*.parquet"))
    broken = [not _is_whole(file) for file in files]
    return any(broken) if ref.date_column is None else all(broken)


def _run(spark: Any, life: Life, root: str, **changes: Any) -> GateReport:
    gate = gate_request(life.folder, SUITE, [life.t, life.r], root=root, sample_rows=0, **changes)
    return run_gates([gate], lambda _: spark)[0]
