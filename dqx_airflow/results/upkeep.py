"""The upkeep of a store: `optimize`, `vacuum` and `prune`.

Each may run beside gates and readers, be killed at any time, and be repeated: it continues where it
stopped, and does nothing if nothing is to be done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import WriterProperties, write_deltalake
from pyarrow.fs import FileSelector

from dqx_airflow.errors import RequestError
from dqx_airflow.limits import LEAST_KEPT
from dqx_airflow.results import tables
from dqx_airflow.results.batch_reports import FOLDER, delete_runs
from dqx_airflow.results.compaction import (
    OF_UPKEEP,
    ROWS_OF_GROUP,
    LiveFile,
    TableFiles,
    next_portion,
)
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.schema import MONTH, RUNS, SOURCES, TABLES, TableDefinition
from dqx_airflow.values import SourceDigest, from_json

_LONG_LOG = 1_000
_MANY_FILES = 1_000
_LOG_AT_REST = timedelta(minutes=15)
_SOURCES_REST = timedelta(days=40)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The effect on one table, or on the files of batches. `deleted_rows` and `deleted_files`
    are gone for good."""

    table: str
    files_before: int
    files_after: int
    deleted_rows: int = 0
    deleted_files: int = 0


def optimize(
    root: str, *, storage_options: Mapping[str, str] | None = None, dry_run: bool = False
) -> tuple[Upkeep, ...]:
    """Merges the small files of all tables into sorted ones for each month, and trims the logs.

        for table in optimize("s3://lake/dqx"):
            print(table)

    A store from before partitioning becomes partitioned by month.

    :param dry_run: only counts the files. There may be fewer afterwards, since merged files that
        are still small are merged again. The months of a table that is not partitioned yet are not
        known before.
    :raises StoreError: there is no store, or it cannot be read or written.
    """
    return tuple(_of_all(root, storage_options, _to_merge if dry_run else _optimize))


def prune(
    root: str,
    older_than: timedelta,
    *,
    storage_options: Mapping[str, str] | None = None,
    now: datetime | None = None,
    dry_run: bool = False,
) -> tuple[Upkeep, ...]:
    """Deletes the runs that finished longer ago than the given age, with all their rows.

    States are deleted by the same age. The source of a suite or contract is deleted with the last
    run that used it. Labels, notes and proposals of users are kept, and receipts. The files stay
    until `vacuum`.

    :param older_than: the age, a positive duration.
    :param now: the time from which the age is measured; by default the current time.
    :param dry_run: only counts the rows.
    :raises RequestError: the age is not positive.
    :raises StoreError: there is no store, or it cannot be read or written.
    """
    if older_than <= timedelta(0):
        raise RequestError("the age of runs to prune must be positive", "such as 400d")
    now = now or datetime.now(timezone.utc)

    def prune_one(files: TableFiles) -> Upkeep:
        if files.definition.is_of_people or files.definition.is_kept:
            return Upkeep(files.definition.name, files.count, files.count)
        return (_old_rows if dry_run else _prune)(files, now, older_than)

    return tuple(_of_all(root, storage_options, prune_one))


def vacuum(
    root: str,
    keep: timedelta = timedelta(days=7),
    *,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> tuple[Upkeep, ...]:
    """Deletes files that no version of a table has used for the given time, and those of batches
    that have not changed for as long.

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

    tended = tuple(_of_all(root, storage_options, vacuum_one))
    location = tables.locate(root, storage_options)
    left_behind = delete_runs(location, keep, dry_run=dry_run)
    if not left_behind:
        return tended
    return (*tended, Upkeep(FOLDER, left_behind, 0, deleted_files=left_behind))


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
    before = files.count
    name = files.definition.name
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


def _to_merge(files: TableFiles) -> Upkeep:
    """Counts the files that `_optimize` would leave."""
    files.require_plain()
    before = files.count
    if not files.is_partitioned:
        return Upkeep(files.definition.name, before, before)
    left = {file.path: file for file in files.live()}
    merged = 0
    while some := next_portion(left.values(), OF_UPKEEP, by_month=True):
        for file in some:
            del left[file.path]
        merged += 1
    return Upkeep(files.definition.name, before, len(left) + merged)


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
    definition = files.definition
    table = files.table
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
        batches: list[pa.RecordBatch] = rows.to_batches(ROWS_OF_GROUP)
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
                compression="ZSTD", max_row_group_size=ROWS_OF_GROUP
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
    """Deletes the rows of a table that are older than an age, and sources that no run uses."""
    files.require_plain()
    before = files.count
    name = files.definition.name
    cutoff = now - older_than
    used: list[str] | None = None
    if name == SOURCES:
        used = _used_digests(files.location)
        cutoff = min(cutoff, now - _SOURCES_REST)
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


def _old_rows(files: TableFiles, now: datetime, older_than: timedelta) -> Upkeep:
    """Counts the rows that `_prune` would delete."""
    cutoff = now - older_than
    used: list[str] | None = None
    if files.definition.name == SOURCES:
        used = _used_digests(files.location, since=cutoff)
        cutoff = min(cutoff, now - _SOURCES_REST)
    count = 0
    for file in files.live():
        if file.oldest is None or file.oldest < cutoff:
            is_old = _is_old(files.read([file]), files.definition, cutoff, used)
            count += pc.sum(is_old).as_py() or 0
    return Upkeep(files.definition.name, files.count, files.count, deleted_rows=count)


def _is_old(
    rows: pa.Table, definition: TableDefinition, cutoff: datetime, used: list[str] | None
) -> pa.ChunkedArray:
    is_old = pc.fill_null(pc.less(rows[definition.clock], pa.scalar(cutoff)), False)
    if used is not None:
        is_used = pc.is_in(rows["digest"], pa.array(used, pa.string()))
        is_old = pc.and_(is_old, pc.invert(is_used))
    return is_old


def _used_digests(location: tables.ResultsRoot, since: datetime | None = None) -> list[str]:
    """The digests of the texts that some run in the store used, or that one since a time used."""
    results = StoredResults(location.root, location.storage_options)
    runs = results.table(RUNS)
    if runs is None or "sources" not in results.columns(RUNS):
        return []
    texts = 'SELECT DISTINCT "sources" FROM runs WHERE "sources" IS NOT NULL'
    if since is not None:
        texts += f" AND \"finished_at\" >= '{since.isoformat()}'"
    rows = results.rows(texts, runs=runs)
    return sorted(
        {
            source.digest
            for row in rows
            for source in from_json(tuple[SourceDigest, ...], row["sources"])
        }
    )
