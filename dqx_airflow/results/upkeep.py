"""The upkeep of a store: `optimize`, `vacuum` and `prune`; and a little of it while gates write.

Each may run beside gates and readers, be killed at any time, and be repeated: it continues where it
stopped, and does nothing if nothing is to be done.

Every gate appends a file to each table, and the cost of opening and reading is the number of files.
Small files are merged into few sorted ones. deltalake can compact too, but two of its
compactions at the same time double the rows (1.6.6: moving rows conflicts with nothing). Here every
such commit carries the same transaction identifier, so that Delta refuses one of two concurrent
ones. Appends do not conflict with them.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.dataset import dataset
from pyarrow.fs import FileSelector, PyFileSystem

from dqx_airflow.errors import RequestError, StoreError
from dqx_airflow.results import tables
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.schema import MONTH, RUNS, SOURCES, TABLES, TableDefinition
from dqx_airflow.values import SourceDigest, from_json

LEAST_KEPT = timedelta(days=1)
"""The minimum age of files to remove: no reader uses a version of the store for longer."""

_LONG_LOG = 1_000
_MANY_FILES = 1_000
_MOST_FILES_LOOKED_AT = 2_000
_LOG_AT_REST = timedelta(minutes=15)
_SOURCES_REST = timedelta(days=40)
_LAYOUT = "dqx:layout"
_ROWS_OF_GROUP = 8192
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
        clock, month = self.definition.clock, f"partition.{MONTH}"
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
        now, is_split = int(time.time() * 1000), self.is_partitioned
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
            rows, sink, row_group_size=_ROWS_OF_GROUP, compression="zstd", write_page_index=True
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
        unique, clock = self.definition.newest_of, self.definition.clock
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


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The effect on one table. `deleted_rows` and `deleted_files` are gone for good."""

    table: str
    files_before: int
    files_after: int
    deleted_rows: int = 0
    deleted_files: int = 0


def optimize(root: str, *, storage_options: Mapping[str, str] | None = None) -> tuple[Upkeep, ...]:
    """Merges the small files of all tables into sorted ones for each month, and trims the logs.

        for table in optimize("s3://lake/dqx"):
            print(table)

    A store from before partitioning becomes partitioned by month.

    :raises StoreError: there is no store, or it cannot be read or written.
    """
    return tuple(_of_all(root, storage_options, _optimize))


def prune(
    root: str,
    older_than: timedelta,
    *,
    storage_options: Mapping[str, str] | None = None,
    now: datetime | None = None,
) -> tuple[Upkeep, ...]:
    """Deletes the runs that finished longer ago than the given age, with all their rows.

    States are deleted by the same age. The source of a suite or contract is deleted with the last
    run that used it. Labels, notes and proposals of users are kept, and receipts. The files stay
    until `vacuum`.

    :param older_than: the age, a positive duration.
    :param now: the time from which the age is measured; by default the current time.
    :raises RequestError: the age is not positive.
    :raises StoreError: there is no store, or it cannot be read or written.
    """
    if older_than <= timedelta(0):
        raise RequestError("the age of runs to prune must be positive", "such as 400d")
    now = now or datetime.now(timezone.utc)

    def prune_one(files: TableFiles) -> Upkeep:
        if files.definition.is_of_people or files.definition.is_kept:
            return Upkeep(files.definition.name, files.count, files.count)
        return _prune(files, now, older_than)

    return tuple(_of_all(root, storage_options, prune_one))


def vacuum(
    root: str,
    keep: timedelta = timedelta(days=7),
    *,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> tuple[Upkeep, ...]:
    """Deletes files that no version of a table has used for the given time.

    :param keep: how long readers may still need a file, at least a day.
    :param dry_run: only counts the files.
    :raises RequestError: the time is less than a day.
    :raises StoreError: there is no store, or it cannot be read or written.
    """
    if keep < LEAST_KEPT:
        raise RequestError(
            "removed files are kept for at least a day, since a query may still read them",
            "such as 7d",
        )

    def vacuum_one(files: TableFiles) -> Upkeep:
        gone = files.table.vacuum(
            int(keep / timedelta(hours=1)),
            dry_run=dry_run,
            enforce_retention_duration=False,
            full=True,  # including the leftovers of killed gates
        )
        return Upkeep(files.definition.name, files.count, files.count, deleted_files=len(gone))

    return tuple(_of_all(root, storage_options, vacuum_one))


def _of_all(
    root: str, storage_options: Mapping[str, str] | None, work: Callable[[TableFiles], Upkeep]
) -> Iterator[Upkeep]:
    location = tables.locate(root, storage_options)
    StoredResults(root, storage_options).require_some()
    for definition in TABLES.values():
        table = tables.open_table(location, definition.name)
        if table is not None:
            with tables.store_errors(location, "write"):
                yield work(TableFiles(location, definition, table))


def _optimize(files: TableFiles) -> Upkeep:
    files.require_plain()
    before, name = files.count, files.definition.name
    if before > _MANY_FILES:
        # Each commit of a table with a long log would traverse all of it.
        files.table.create_checkpoint()
        files = replace(files, table=tables.open_table(files.location, name) or files.table)
    _again(lambda: _set_properties(files), files)
    _merge_all(files)
    if not files.is_partitioned:
        _again(lambda: _migrate(files), files)
        _merge_all(files)
    files.table.create_checkpoint()
    files.table.cleanup_metadata()
    _trim_log(files)
    return Upkeep(name, before, files.count)


def _merge_all(files: TableFiles) -> None:
    def merge_some() -> bool:
        # Read again each time: gates append and merge concurrently.
        some = next_portion(files.live(), OF_UPKEEP, by_month=files.is_partitioned)
        if some:
            files.merge(some)
        return bool(some)

    _until_done(merge_some, files)


def _until_done(step: Callable[[], bool], files: TableFiles) -> None:
    while _again(step, files):
        files.table.update_incremental()


def _again(step: Callable[[], bool], files: TableFiles) -> bool:
    """Repeats a step that concurrent writers may interrupt, a few times."""

    def updated_step() -> bool:
        files.table.update_incremental()
        return step()

    return tables.committed(updated_step)


def _set_properties(files: TableFiles) -> bool:
    definition, table = files.definition, files.table
    current = table.metadata().configuration
    columns = {column.name for column in table.schema().fields}
    wanted = definition.properties if columns.issuperset(definition.keys) else {}
    if current.get("delta.appendOnly") == "true":
        wanted = {**wanted, "delta.appendOnly": "false"}
    missing = {name: value for name, value in wanted.items() if current.get(name) != value}
    if missing:
        table.alter.set_table_properties(missing)
    return bool(missing)


def _migrate(files: TableFiles) -> bool:
    """Partitions a table by month. Rows appended meanwhile stay without a month for now."""
    schema = files.schema
    if MONTH not in schema.names:
        schema = schema.append(pa.field(MONTH, pa.string()))

    def read(file: LiveFile) -> list[pa.RecordBatch]:
        rows = files.with_month(files.read([file])).cast(schema)
        batches: list[pa.RecordBatch] = rows.to_batches(_ROWS_OF_GROUP)
        return batches

    live = files.live()
    # deltalake requests batches from a thread of its runtime, in which nothing else may use it.
    with ThreadPoolExecutor(1) as pool:
        batches = (batch for file in live for batch in pool.submit(read, file).result())
        write_deltalake(
            files.table,
            pa.RecordBatchReader.from_batches(schema, batches),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=[MONTH],
            writer_properties=WriterProperties(
                compression="ZSTD", max_row_group_size=_ROWS_OF_GROUP
            ),
            commit_properties=files.layout_commit,
            post_commithook_properties=tables.NO_LOG_CLEANUP,
        )
    return True


def _trim_log(files: TableFiles) -> None:
    """Deletes the entries before a checkpoint from a log that has grown long within a day.

    Opening a table lists its log, even the part that is not read.
    """
    filesystem = files.filesystem
    entries = filesystem.get_file_info(FileSelector("_delta_log", allow_not_found=True))
    by_version = [(entry.base_name.split(".")[0], entry) for entry in entries]
    by_version = [(version, entry) for version, entry in by_version if version.isdigit()]
    checkpoints = [version for version, entry in by_version if ".checkpoint." in entry.base_name]
    if not checkpoints or len(by_version) < _LONG_LOG:
        return
    at_rest = datetime.now(timezone.utc) - _LOG_AT_REST
    old = sorted(
        entry.path
        for version, entry in by_version
        if version < max(checkpoints) and entry.mtime is not None and entry.mtime < at_rest
    )
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(filesystem.delete_file, old):
            pass


def _prune(files: TableFiles, now: datetime, older_than: timedelta) -> Upkeep:
    files.require_plain()
    before, name = files.count, files.definition.name
    cutoff = now - older_than
    used: list[str] | None = None
    if name == SOURCES:
        used, cutoff = _used_digests(files.location), min(cutoff, now - _SOURCES_REST)
    _again(lambda: _set_properties(files), files)
    examined: set[str] = set()
    deleted = 0

    def prune_some() -> bool:
        nonlocal deleted
        old = [file for file in files.live() if file.oldest is None or file.oldest < cutoff]
        gone = [file for file in old if used is None and file.newest and file.newest < cutoff]
        if gone:
            files.replace(gone, files.schema.empty_table(), deletes=True)
            deleted += sum(file.rows for file in gone)
            return True
        for file in old:
            if file.path in examined:
                continue
            rows = files.read([file])
            kept = rows.filter(pc.invert(_is_old(rows, files.definition, cutoff, used)))
            if len(kept) < len(rows):
                files.replace([file], kept, deletes=True)
                deleted += len(rows) - len(kept)
                return True
            examined.add(file.path)
        return False

    _until_done(prune_some, files)
    return Upkeep(name, before, files.count, deleted_rows=deleted)


def _is_old(
    rows: pa.Table, definition: TableDefinition, cutoff: datetime, used: list[str] | None
) -> pa.ChunkedArray:
    is_old = pc.fill_null(pc.less(rows[definition.clock], pa.scalar(cutoff)), False)
    if used is not None:
        is_used = pc.is_in(rows["digest"], pa.array(used, pa.string()))
        is_old = pc.and_(is_old, pc.invert(is_used))
    return is_old


def _used_digests(location: tables.ResultsRoot) -> list[str]:
    """The digests of the texts that some run in the store used."""
    results = StoredResults(location.root, location.storage_options)
    runs = results.table(RUNS)
    if runs is None or "sources" not in results.columns(RUNS):
        return []
    texts = 'SELECT DISTINCT "sources" FROM runs WHERE "sources" IS NOT NULL'
    rows = results.rows(texts, runs=runs)
    return sorted(
        {
            source.digest
            for row in rows
            for source in from_json(tuple[SourceDigest, ...], row["sources"])
        }
    )
