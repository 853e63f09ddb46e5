"""The files that the log of a random Delta table has for a date: every file with a row of it is
among them, whatever the statistics, the paths, the version and the checkpoints are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_files import DeltaLog, struct_of

UTC = timezone.utc
DAYS = (
    *(date(2024, 3, 1) + timedelta(number) for number in range(4)),
    date.max,
    date(1969, 12, 31),
)
ASKED = (*DAYS, date(2024, 2, 29), date(2024, 3, 5))
_TIMES = (time(), time(12, 30, 5, 120), time.max)
_NAMES = ("{}.parquet", "a b{}.parquet", "x%20{}.parquet", "\u00fc{}.parquet", "q={}/f.parquet")
_OTHER_TEXTS = ("", "zz", "~" * 40, "2024-03-02" + "x" * 40, "2024-3-2")
_LONGEST = 32
"""The characters of a string in statistics."""

KINDS: Mapping[str, tuple[str, Callable[[Random, date], Any]]] = {
    "date": ("date", lambda _, day: day),
    "string": ("string", lambda _, day: day.isoformat()),
    "long": ("bigint", lambda _, day: int(f"{day:%Y%m%d}")),
    "timestamp": (
        "timestamp",
        lambda random, day: datetime.combine(day, random.choice(_TIMES), UTC),
    ),
    "timestamp_ntz": (
        "timestamp_ntz",
        lambda random, day: datetime.combine(day, random.choice(_TIMES)),
    ),
}


class _Table:
    """A table that a random writer has written.

    :param days: of the rows of each file by its path; None for rows without a date.
    :param versions: the paths of the files of each version.
    """

    def __init__(self, random: Random, root: Path) -> None:
        self.random = random
        self.root = str(root)
        self.kind = random.choice([*KINDS])
        self.is_partitioned = random.random() < 0.3
        self.days: dict[str, list[date | None]] = {}
        self.versions: list[set[str]] = []
        columns = Schema([Field("id", "long"), Field("d s", self.kind)])
        by = ["d s"] if self.is_partitioned else []
        adds = self._new_files(8)
        create_table_with_add_actions(self.root, columns, adds, partition_by=by)
        self.versions.append({add.path for add in adds})
        for _ in range(random.randint(0, 4)):
            self._change(columns, by)

    def _change(self, columns: Schema, by: list[str]) -> None:
        table = DeltaTable(self.root)
        if self.random.random() < 0.3:
            table.create_checkpoint()
        before = sorted(self.versions[-1])
        gone = self.random.sample(before, min(len(before), self.random.randint(0, 2)))
        adds = self._new_files(3)
        removes = [RemoveAction(path, True, 5, 10) for path in gone]
        if adds or removes:
            table.create_write_transaction([*adds, *removes], "append", columns, by)
            self.versions.append({*before, *(add.path for add in adds)}.difference(gone))

    def _new_files(self, most: int) -> list[AddAction]:
        return [self._new_file() for _ in range(self.random.randint(0, most))]

    def _new_file(self) -> AddAction:
        path = self.random.choice(_NAMES).format(len(self.days))
        rows = 1 if self.is_partitioned else self.random.randint(0, 4)
        self.days[path] = []
        values = [self._value(path) for _ in range(rows)]
        partition = {"d s": _logged(values[0])} if self.is_partitioned else {}
        statistics: dict[str, Any] = {"numRecords": rows}
        if not self.is_partitioned and self.random.random() < 0.9:
            statistics |= self._bounds([value for value in values if value is not None])
        return AddAction(path, 10, partition, 1000, True, json.dumps(statistics))

    def _value(self, path: str) -> Any:
        """A value of the date column, which may be NULL or, as a string, not a date."""
        chance = self.random.random()
        day = None if chance < 0.2 else self.random.choice(DAYS)
        self.days[path].append(day)
        if day is not None:
            return KINDS[self.kind][1](self.random, day)
        if self.kind == "string" and chance < 0.1:
            return self.random.choice(_OTHER_TEXTS)
        return None

    def _bounds(self, values: list[Any]) -> dict[str, Any]:
        """The statistics of values, of which one side, or both, may be missing."""
        if not values:
            return {}
        bounds = {"minValues": min(values), "maxValues": max(values)}
        if isinstance(values[0], str):
            bounds["minValues"] = bounds["minValues"][:_LONGEST]
            if len(bounds["maxValues"]) > _LONGEST:
                bounds["maxValues"] = bounds["maxValues"][:_LONGEST] + "\U0010ffff"
        kept = [side for side in bounds if self.random.random() < 0.9]
        return {side: {"d s": _in_statistics(bounds[side])} for side in kept}


def _logged(value: Any) -> str | None:
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
        return text if value.tzinfo is None else f"{text.replace(' ', 'T')}Z"
    return None if value is None else str(value)


def _in_statistics(value: Any) -> Any:
    if isinstance(value, datetime):  # Delta cuts off microseconds
        return value.replace(tzinfo=None).isoformat("T", "milliseconds") + "Z" * bool(value.tzinfo)
    return value.isoformat() if isinstance(value, date) else value


@pytest.mark.few(30)
@pytest.mark.parametrize("seed", range(400))
def test_no_file_with_rows_of_a_date_is_left_out_and_no_other_file_is_listed(
    tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    written = _Table(random, tmp_path)
    version = random.randrange(len(written.versions))
    table = DeltaTable(written.root, version=version)
    pattern = {"pattern": "yyyyMMdd"} if written.kind == "long" else {}
    column = DateColumn("d s", KINDS[written.kind][0], **pattern)
    log = DeltaLog(table, written.root, struct_of(table), column, is_trusted=random.random() < 0.8)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    everything = [file.path for file in log.files_of(None)]
    assert everything == actions["path"]
    assert {*map(unquote, everything)} == written.versions[version]
    groups = log.parts_of([None])
    assert sorted(uri for group in groups for uri in group.uris) == sorted(table.file_uris())
    for on in random.sample(ASKED, len(ASKED)):
        paths = [file.path for file in log.files_of(on)]
        of_date = {path for path in written.versions[version] if on in written.days[path]}
        assert of_date <= {*map(unquote, paths)}
        assert paths == [path for path in everything if path in {*paths}]
        if written.is_partitioned and not column.is_timestamp:
            assert len(of_date) == len(paths)
        uris = [uri for group in log.parts_of([on]) for uri in group.uris]
        assert sorted(uris) == sorted(f"{written.root}/{unquote(path)}" for path in paths)
        numbers = dict(zip(actions["path"], actions["num_records"], strict=True))
        assert log.rows_of(on) == sum(numbers[path] for path in paths)
