"""The small files of a table merged into few sorted ones, a little at a time.

Every gate appends a file to each table, and the cost of opening and reading is the number of files.
deltalake can compact too, but two of its compactions at the same time double the rows (1.6.6:
moving rows conflicts with nothing). Here every commit that moves rows carries the same transaction
identifier, so that Delta refuses one of two concurrent ones. Appends do not conflict with them.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.dataset import dataset
from pyarrow.fs import PyFileSystem

from dqx_airflow.errors import StoreError
from dqx_airflow.results import tables
from dqx_airflow.results.schema import MONTH, TableDefinition

ROWS_OF_GROUP = 8192
"""The rows of a row group of a file."""
_MOST_FILES_LOOKED_AT = 2_000
_LAYOUT = "dqx:layout"
_UNKNOWN_MONTH = "unknown"
_MILLISECOND = timedelta(milliseconds=1)
_log = logging.getLogger("dqx.gate")


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of the newest version. `month` is None for rows without a month.

    `oldest` and `newest` bound the clock of its rows; None if the log does not have them.
    """

    path: str
    size: int
    rows: int
    month: str | None
    oldest: datetime | None
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of a table. `table` may be behind: concurrent appends are kept."""

    location: tables.ResultsRoot
    definition: TableDefinition
    table: DeltaTable

    @property
    def is_partitioned(self) -> bool:
        """False for a table written before partitioning, until it is migrated."""
        return MONTH in self.table.metadata().partition_columns

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self.table.file_uris())

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return pa.schema(self.table.schema().to_arrow())

    @property
    def filesystem(self) -> PyFileSystem:
        """The file system of the table, including its log, with paths relative to it."""
        return PyFileSystem(DeltaStorageHandler(self.table.table_uri, self.location.options))

    @property
    def layout_commit(self) -> CommitProperties:
        """Properties of commits that change the set of files: of two concurrent ones, one fails."""
        return CommitProperties(app_transactions=[Transaction(_LAYOUT, self.table.version())])

    def require_plain(self) -> None:
        """Checks that no other tool has added deletion vectors or renamed columns.

        :raises StoreError: another tool added deletion vectors or renamed columns.
        """
        features = {*(self.table.protocol().reader_features or ())}
        if foreign := features & {"deletionVectors", "columnMapping"}:
            raise StoreError(
                f"{self.table.table_uri} has the Delta feature {', '.join(sorted(foreign))}, which "
                "another tool added, so its files cannot be rewritten",
                "optimize that table with the tool that added it",
            )

    def live(self) -> list[LiveFile]:
        """The files of the newest version, in no particular order."""
        actions = pa.table(self.table.get_add_actions(flatten=True))
        clock = self.definition.clock
        month = f"partition.{MONTH}"
        columns = ["path", "size_bytes", "num_records", month, f"min.{clock}", f"max.{clock}"]
        present = actions.select([name for name in columns if name in actions.column_names])
        return [
            LiveFile(
                row["path"],
                row["size_bytes"],
                row.get("num_records") or 0,
                row.get(month),
                row.get(f"min.{clock}"),
                # Statistics are in whole milliseconds, rounded down.
                row[f"max.{clock}"] + _MILLISECOND if row.get(f"max.{clock}") else None,
            )
            for row in present.to_pylist()
        ]

    def read(self, files: Iterable[LiveFile]) -> pa.Table:
        """All rows of some files, with the columns of the table."""
        schema = self.schema
        if self.is_partitioned:
            schema = schema.remove(schema.get_field_index(MONTH))
        paths = [file.path for file in files]
        return dataset(paths, schema, "parquet", filesystem=self.filesystem).to_table()

    def replace(
        self, removed: Sequence[LiveFile], rows: pa.Table, *, deletes: bool = False
    ) -> None:
        """Replaces some files by `rows`, sorted, one file for each month, in one commit.

        Until it returns, readers see no change; if the process is killed, it leaves at most files
        that no version refers to.

        :param deletes: rows that count are dropped, rather than only moved.
        :raises CommitFailedError: another process rewrote files of the table concurrently.
        """
        now = int(time.time() * 1000)
        is_split = self.is_partitioned
        added = [
            self._write(part, month, now, deletes)
            for month, part in self._by_month(rows)
            if part.num_rows
        ]
        gone = [
            RemoveAction(
                file.path, deletes, now, file.size, {MONTH: file.month} if is_split else {}
            )
            for file in removed
        ]
        self.table.create_write_transaction(
            [*added, *gone],
            "append",
            self.table.schema(),
            [MONTH] if is_split else None,
            commit_properties=self.layout_commit,
            post_commithook_properties=tables.NO_LOG_CLEANUP,
        )

    def merge(self, files: Sequence[LiveFile]) -> None:
        """Replaces some files by one sorted file for each month.

        :raises CommitFailedError: another process rewrote files of the table concurrently.
        """
        rows = self.read(files)
        kept = self._newest(rows)
        is_append_only = self.table.metadata().configuration.get("delta.appendOnly") == "true"
        dropped = len(kept) < len(rows) and not is_append_only
        self.replace(files, kept if dropped else rows, deletes=dropped)

    def with_month(self, rows: pa.Table) -> pa.Table:
        """The rows with the month of their clock."""
        clock = rows[self.definition.clock].cast(pa.timestamp("us"))
        months = pc.fill_null(pc.strftime(clock, "%Y-%m"), _UNKNOWN_MONTH)
        if MONTH not in rows.column_names:
            return rows.append_column(MONTH, months)
        return rows.set_column(rows.schema.get_field_index(MONTH), MONTH, months)

    def _by_month(self, rows: pa.Table) -> Iterable[tuple[str | None, pa.Table]]:
        rows = self.with_month(rows)
        if not self.is_partitioned:
            yield None, rows
            return
        for month in pc.unique(rows[MONTH]).to_pylist():
            yield month, rows.filter(pc.equal(rows[MONTH], month)).drop_columns([MONTH])

    def _write(self, rows: pa.Table, month: str | None, now: int, is_change: bool) -> AddAction:
        rows = rows.sort_by([(name, "ascending") for name in self.definition.order])
        sink = pa.BufferOutputStream()
        pq.write_table(
            rows, sink, row_group_size=ROWS_OF_GROUP, compression="zstd", write_page_index=True
        )
        content = sink.getvalue()
        folder = f"{MONTH}={month}/" if month else ""
        path = f"{folder}part-{uuid.uuid4()}.zstd.parquet"
        handler = DeltaStorageHandler(self.table.table_uri, self.location.options)
        # deltalake's stream only takes bytes, and pyarrow passes its own buffers through. What is
        # fully buffered arrives as bytes.
        output = handler.open_output_stream(path, {})
        with pa.BufferedOutputStream(output, len(content) + 1) as stream:
            stream.write(content)
        partition = {MONTH: month} if month else {}
        statistics = self._statistics(rows)
        return AddAction(path, len(content), partition, now, is_change, statistics)

    def _statistics(self, rows: pa.Table) -> str:
        lows: dict[str, Any] = {}
        highs: dict[str, Any] = {}
        nulls: dict[str, int] = {}
        for name in self.definition.keys:
            column = rows[name]
            nulls[name] = column.null_count
            if column.null_count < len(column):
                bounds = pc.min_max(column)
                lows[name] = _as_json(bounds["min"].as_py())
                highs[name] = _as_json(bounds["max"].as_py(), is_upper=True)
        return json.dumps(
            {"numRecords": len(rows), "minValues": lows, "maxValues": highs, "nullCount": nulls}
        )

    def _newest(self, rows: pa.Table) -> pa.Table:
        """Drops rows that a newer row replaces, by the columns `newest_of`."""
        unique = self.definition.newest_of
        clock = self.definition.clock
        if not unique:
            return rows
        places = rows.select([*unique, clock])
        places = places.append_column("place", pa.array(range(len(rows)), pa.int64()))
        ordered = places.sort_by([(clock, "ascending"), ("place", "ascending")])
        grouped = ordered.group_by([*unique], use_threads=False)
        return rows.take(grouped.aggregate([("place", "last")])["place_last"])


@dataclass(frozen=True, slots=True)
class Portion:
    """The largest amount of data that is merged at once, which limits the time and memory.

    Files with less than half of the rows and the bytes count as small. They are merged if there are
    at least `fewest_files` of them in a month.
    """

    rows: int
    size: int
    files: int
    fewest_files: int

    def is_small(self, file: LiveFile) -> bool:
        """Whether a file has less than half of the rows and of the bytes."""
        return 2 * file.rows < self.rows and 2 * file.size < self.size


OF_A_GATE = Portion(rows=20_000, size=8_000_000, files=128, fewest_files=32)
OF_UPKEEP = Portion(rows=50_000, size=32_000_000, files=5_000, fewest_files=2)


def next_portion(files: Iterable[LiveFile], most: Portion, *, by_month: bool) -> list[LiveFile]:
    """The files to merge next, oldest first; empty if there are few small ones.

    :param by_month: the table is partitioned, so that rows without a month have to get one.
    """
    small: dict[str | None, list[LiveFile]] = defaultdict(list)
    for file in files:
        if most.is_small(file) or (by_month and file.month is None):
            small[file.month].append(file)
    for month, of_month in sorted(small.items(), key=lambda item: -len(item[1])):
        is_astray = by_month and month is None
        if len(of_month) >= most.fewest_files or (is_astray and of_month):
            return _first(of_month, most)
    return []


def _first(files: list[LiveFile], most: Portion) -> list[LiveFile]:
    taken: list[LiveFile] = []
    rows = size = 0
    for file in sorted(files, key=lambda file: (file.oldest is not None, file.oldest, file.path)):
        rows, size = rows + file.rows, size + file.size
        if taken and (rows > most.rows or size > most.size or len(taken) == most.files):
            break
        taken.append(file)
    return taken


def _as_json(value: Any, *, is_upper: bool = False) -> Any:
    if isinstance(value, datetime):
        if is_upper and value.microsecond % 1000:
            value += _MILLISECOND
        timestamp = value.astimezone(timezone.utc).replace(tzinfo=None)
        return f"{timestamp.isoformat(timespec='milliseconds')}Z"
    return value if isinstance(value, int | float | str) else value.isoformat()


def compact_a_little(
    location: tables.ResultsRoot, definition: TableDefinition, table: DeltaTable
) -> None:
    """Merges small files of one month if there are many, in well below a second.

    :param table: its state after a gate has appended to it.
    :raises CommitFailedError: another process rewrote files of the table concurrently.
    """
    files = TableFiles(location, definition, table)
    if files.count > _MOST_FILES_LOOKED_AT:
        _log.info("%s: many small files; run `dql results optimize`", definition.name)
        return
    files.require_plain()
    if some := next_portion(files.live(), OF_A_GATE, by_month=files.is_partitioned):
        files.merge(some)
    table.cleanup_metadata()
