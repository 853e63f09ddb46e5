"""The upkeep of a store: `optimize`, `vacuum` and `prune`.

Each may run beside gates and readers, be killed at any time, and be repeated: it continues where it
stopped, and does nothing if nothing is to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties, write_deltalake
from pyarrow.fs import FileSelector

from dqx_airflow.errors import RequestError
from dqx_airflow.results.compaction import (
    OF_UPKEEP,
    LiveFile,
    filesystem_of,
    is_partitioned,
    layout_commit,
    live_files,
    merge,
    next_portion,
    read_files,
    replace_files,
    require_plain,
    with_month,
)
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.schema import MONTH, RUNS, SOURCES, TABLES, TableDefinition
from dqx_airflow.results.tables import (
    NO_LOG_CLEANUP,
    ResultsRoot,
    committed,
    locate,
    open_table,
    store_errors,
)
from dqx_airflow.values import SourceDigest, from_json

LEAST_KEPT = timedelta(days=1)
"""The minimum age of files to remove: no reader uses a version of the store for longer."""

_LONG_LOG = 1_000
_MANY_FILES = 1_000
_LOG_AT_REST = timedelta(minutes=15)
_SOURCES_REST = timedelta(days=40)


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

    def prune_one(location: ResultsRoot, definition: TableDefinition, table: DeltaTable) -> Upkeep:
        if definition.is_of_people or definition.is_kept:
            files = len(table.file_uris())
            return Upkeep(definition.name, files, files)
        return _prune(location, definition, table, now, older_than)

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

    def vacuum_one(_: ResultsRoot, definition: TableDefinition, table: DeltaTable) -> Upkeep:
        gone = table.vacuum(
            int(keep / timedelta(hours=1)),
            dry_run=dry_run,
            enforce_retention_duration=False,
            full=True,  # including the leftovers of killed gates
        )
        files = len(table.file_uris())
        return Upkeep(definition.name, files, files, deleted_files=len(gone))

    return tuple(_of_all(root, storage_options, vacuum_one))


def _of_all(
    root: str,
    storage_options: Mapping[str, str] | None,
    work: Callable[[ResultsRoot, TableDefinition, DeltaTable], Upkeep],
) -> Iterator[Upkeep]:
    location = locate(root, storage_options)
    StoredResults(root, storage_options).require_some()
    for definition in TABLES.values():
        table = open_table(location, definition.name)
        if table is not None:
            with store_errors(location, "write"):
                yield work(location, definition, table)


def _optimize(location: ResultsRoot, definition: TableDefinition, table: DeltaTable) -> Upkeep:
    require_plain(table)
    before = len(table.file_uris())
    if before > _MANY_FILES:
        # Each commit of a table with a long log would traverse all of it.
        table.create_checkpoint()
        table = open_table(location, definition.name) or table
    _again(lambda: _set_properties(definition, table), table)
    _merge_all(location, definition, table)
    if not is_partitioned(table):
        _again(lambda: _migrate(location, definition, table), table)
        _merge_all(location, definition, table)
    table.create_checkpoint()
    table.cleanup_metadata()
    _trim_log(location, table)
    return Upkeep(definition.name, before, len(table.file_uris()))


def _merge_all(location: ResultsRoot, definition: TableDefinition, table: DeltaTable) -> None:
    def merge_some() -> bool:
        # Read again each time: gates append and merge concurrently.
        by_month = is_partitioned(table)
        files = next_portion(live_files(definition, table), OF_UPKEEP, by_month=by_month)
        if files:
            merge(location, definition, table, files)
        return bool(files)

    while _again(merge_some, table):
        table.update_incremental()


def _again(step: Callable[[], bool], table: DeltaTable) -> bool:
    """Repeats a step that concurrent writers may interrupt, a few times."""

    def updated_step() -> bool:
        table.update_incremental()
        return step()

    return committed(updated_step)


def _set_properties(definition: TableDefinition, table: DeltaTable) -> bool:
    current = table.metadata().configuration
    columns = {column.name for column in table.schema().fields}
    wanted = definition.properties if columns.issuperset(definition.keys) else {}
    if current.get("delta.appendOnly") == "true":
        wanted = {**wanted, "delta.appendOnly": "false"}
    missing = {name: value for name, value in wanted.items() if current.get(name) != value}
    if missing:
        table.alter.set_table_properties(missing)
    return bool(missing)


def _migrate(location: ResultsRoot, definition: TableDefinition, table: DeltaTable) -> bool:
    """Partitions a table by month. Rows appended meanwhile stay without a month for now."""
    schema = pa.schema(table.schema().to_arrow())
    if MONTH not in schema.names:
        schema = schema.append(pa.field(MONTH, pa.string()))

    def read(file: LiveFile) -> list[pa.RecordBatch]:
        rows = read_files(location, table, [file])
        if MONTH not in rows.column_names:
            rows = rows.append_column(MONTH, pa.nulls(len(rows), pa.string()))
        batches: list[pa.RecordBatch] = with_month(definition, rows).cast(schema).to_batches(8192)
        return batches

    files = live_files(definition, table)
    # deltalake requests batches from a thread of its runtime, in which nothing else may use it.
    with ThreadPoolExecutor(1) as pool:
        batches = (batch for file in files for batch in pool.submit(read, file).result())
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        _overwrite(table, reader)
    return True


def _overwrite(table: DeltaTable, rows: pa.RecordBatchReader) -> None:
    write_deltalake(
        table,
        rows,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=[MONTH],
        writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=8192),
        commit_properties=layout_commit(table),
        post_commithook_properties=NO_LOG_CLEANUP,
    )


def _trim_log(location: ResultsRoot, table: DeltaTable) -> None:
    """Deletes the entries before a checkpoint from a log that has grown long within a day.

    Opening a table lists its log, even the part that is not read.
    """
    filesystem = filesystem_of(location, table)
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


def _prune(
    location: ResultsRoot,
    definition: TableDefinition,
    table: DeltaTable,
    now: datetime,
    older_than: timedelta,
) -> Upkeep:
    require_plain(table)
    before = len(table.file_uris())
    cutoff = now - older_than
    used: list[str] | None = None
    if definition.name == SOURCES:
        used, cutoff = _used_digests(location), min(cutoff, now - _SOURCES_REST)
    _again(lambda: _set_properties(definition, table), table)
    examined: set[str] = set()
    deleted = 0

    def prune_some() -> bool:
        nonlocal deleted
        old = [file for file in live_files(definition, table) if _may_hold(file, cutoff)]
        gone = [file for file in old if used is None and file.newest and file.newest < cutoff]
        if gone:
            nothing = pa.schema(table.schema().to_arrow()).empty_table()
            replace_files(location, definition, table, gone, nothing, deletes=True)
            deleted += sum(file.rows for file in gone)
            return True
        for file in old:
            if file.path in examined:
                continue
            rows = read_files(location, table, [file])
            kept = rows.filter(pc.invert(_is_old(rows, definition, cutoff, used)))
            if len(kept) < len(rows):
                replace_files(location, definition, table, [file], kept, deletes=True)
                deleted += len(rows) - len(kept)
                return True
            examined.add(file.path)
        return False

    while _again(prune_some, table):
        table.update_incremental()
    return Upkeep(definition.name, before, len(table.file_uris()), deleted_rows=deleted)


def _may_hold(file: LiveFile, cutoff: datetime) -> bool:
    return file.oldest is None or file.oldest < cutoff


def _is_old(
    rows: pa.Table, definition: TableDefinition, cutoff: datetime, used: list[str] | None
) -> pa.ChunkedArray:
    is_old = pc.fill_null(pc.less(rows[definition.clock], pa.scalar(cutoff)), False)
    if used is not None:
        is_used = pc.is_in(rows["digest"], pa.array(used, pa.string()))
        is_old = pc.and_(is_old, pc.invert(is_used))
    return is_old


def _used_digests(location: ResultsRoot) -> list[str]:
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
