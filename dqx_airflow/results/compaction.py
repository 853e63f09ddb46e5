"""Merges many small files into few sorted ones: a little while gates write, and completely in `dql
results optimize`. Every gate appends a file to each table, and the cost of opening and reading is
the number of files.

deltalake can compact too, but two of its compactions at the same time double the rows (1.6.6:
moving rows conflicts with nothing). Here every such commit carries the same transaction identifier,
so that Delta refuses one of two concurrent ones. Appends do not conflict with them.
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
from dqx_airflow.results.schema import MONTH, TableDefinition
from dqx_airflow.results.tables import NO_LOG_CLEANUP, ResultsRoot

_LAYOUT = "dqx:layout"
_ROWS_OF_GROUP = 8192
_UNKNOWN_MONTH = "unknown"
_MILLISECOND = timedelta(milliseconds=1)


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


def is_partitioned(table: DeltaTable) -> bool:
    """False for a table written before partitioning, until it is migrated."""
    return MONTH in table.metadata().partition_columns


def require_plain(table: DeltaTable) -> None:
    """Returns if every row of every file counts as it is.

    :raises StoreError: another tool added deletion vectors or renamed columns.
    """
    features = {*(table.protocol().reader_features or ())}
    if foreign := features & {"deletionVectors", "columnMapping"}:
        raise StoreError(
            f"{table.table_uri} has the Delta feature {', '.join(sorted(foreign))}, which another "
            "tool added, so its files cannot be rewritten",
            "optimize that table with the tool that added it",
        )


def live_files(definition: TableDefinition, table: DeltaTable) -> list[LiveFile]:
    """The files of the table, in no particular order."""
    actions = pa.table(table.get_add_actions(flatten=True))
    clock, month = definition.clock, f"partition.{MONTH}"
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


def read_files(location: ResultsRoot, table: DeltaTable, files: Iterable[LiveFile]) -> pa.Table:
    """All rows of some files, with the columns of the table."""
    schema = pa.schema(table.schema().to_arrow())
    if is_partitioned(table):
        schema = schema.remove(schema.get_field_index(MONTH))
    paths = [file.path for file in files]
    return dataset(paths, schema, "parquet", filesystem_of(location, table)).to_table()


def replace_files(
    location: ResultsRoot,
    definition: TableDefinition,
    table: DeltaTable,
    removed: Sequence[LiveFile],
    rows: pa.Table,
    *,
    deletes: bool = False,
) -> int:
    """Replaces some files by `rows`, sorted, one file for each month, in one commit.

    Until it returns, readers see no change; if the process is killed, it leaves at most files that
    no version refers to.

    :param table: in which the files are live. It may be behind: concurrent appends are kept.
    :param deletes: rows that count are dropped, rather than only moved.
    :raises CommitFailedError: another process rewrote files of the table concurrently.
    """
    now = int(time.time() * 1000)
    is_split = is_partitioned(table)
    added = [
        _write(location, definition, table, part, month, now, deletes)
        for month, part in _by_month(definition, rows, is_split)
        if part.num_rows
    ]
    gone = [
        RemoveAction(file.path, deletes, now, file.size, {MONTH: file.month} if is_split else {})
        for file in removed
    ]
    table.create_write_transaction(
        [*added, *gone],
        "append",
        table.schema(),
        [MONTH] if is_split else None,
        commit_properties=layout_commit(table),
        post_commithook_properties=NO_LOG_CLEANUP,
    )
    return len(added)


def layout_commit(table: DeltaTable) -> CommitProperties:
    """For commits that change the set of files: one of two concurrent ones fails."""
    return CommitProperties(app_transactions=[Transaction(_LAYOUT, table.version())])


def with_month(definition: TableDefinition, rows: pa.Table) -> pa.Table:
    """The rows with the month of their clock."""
    clock = rows[definition.clock].cast(pa.timestamp("us"))
    months = pc.fill_null(pc.strftime(clock, "%Y-%m"), _UNKNOWN_MONTH)
    return rows.set_column(rows.schema.get_field_index(MONTH), MONTH, months)


def _by_month(
    definition: TableDefinition, rows: pa.Table, is_split: bool
) -> Iterable[tuple[str | None, pa.Table]]:
    if MONTH not in rows.column_names:
        rows = rows.append_column(MONTH, pa.nulls(len(rows), pa.string()))
    rows = with_month(definition, rows)
    if not is_split:
        yield None, rows
        return
    for month in pc.unique(rows[MONTH]).to_pylist():
        yield month, rows.filter(pc.equal(rows[MONTH], month)).drop_columns([MONTH])


def _write(
    location: ResultsRoot,
    definition: TableDefinition,
    table: DeltaTable,
    rows: pa.Table,
    month: str | None,
    now: int,
    is_change: bool,
) -> AddAction:
    rows = rows.sort_by([(name, "ascending") for name in definition.order])
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows, sink, row_group_size=_ROWS_OF_GROUP, compression="zstd", write_page_index=True
    )
    content = sink.getvalue()
    folder = f"{MONTH}={month}/" if month else ""
    path = f"{folder}part-{uuid.uuid4()}.zstd.parquet"
    output = DeltaStorageHandler(table.table_uri, location.options).open_output_stream(path, {})
    # deltalake's stream only takes bytes, and pyarrow passes its own buffers through. What is fully
    # buffered arrives as bytes.
    with pa.BufferedOutputStream(output, len(content) + 1) as stream:
        stream.write(content)
    partition = {MONTH: month} if month else {}
    return AddAction(path, len(content), partition, now, is_change, _statistics(definition, rows))


def _statistics(definition: TableDefinition, rows: pa.Table) -> str:
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in definition.keys:
        column = rows[name]
        nulls[name] = column.null_count
        if column.null_count < len(column):
            bounds = pc.min_max(column)
            lows[name] = _as_json(bounds["min"].as_py())
            highs[name] = _as_json(bounds["max"].as_py(), is_upper=True)
    return json.dumps(
        {"numRecords": len(rows), "minValues": lows, "maxValues": highs, "nullCount": nulls}
    )


def _as_json(value: Any, *, is_upper: bool = False) -> Any:
    if isinstance(value, datetime):
        if is_upper and value.microsecond % 1000:
            value += _MILLISECOND
        timestamp = value.astimezone(timezone.utc).replace(tzinfo=None)
        return f"{timestamp.isoformat(timespec='milliseconds')}Z"
    return value if isinstance(value, int | float | str) else value.isoformat()


def filesystem_of(location: ResultsRoot, table: DeltaTable) -> PyFileSystem:
    """The file system of a table, including its log, with paths relative to it."""
    return PyFileSystem(DeltaStorageHandler(table.table_uri, location.options))


_log = logging.getLogger("dqx.gate")


@dataclass(frozen=True, slots=True)
class Portion:
    """How much is merged at once, which limits the time and memory of a merge.

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

_MOST_FILES_LOOKED_AT = 2_000


def compact_a_little(location: ResultsRoot, definition: TableDefinition, table: DeltaTable) -> None:
    """Merges small files of one month if there are many, in well below a second.

    :param table: its state after a gate has appended to it.
    :raises CommitFailedError: another process rewrote files of the table concurrently.
    """
    if len(table.file_uris()) > _MOST_FILES_LOOKED_AT:
        _log.info("%s: many small files; run `dql results optimize`", definition.name)
        return
    require_plain(table)
    by_month = is_partitioned(table)
    if files := next_portion(live_files(definition, table), OF_A_GATE, by_month=by_month):
        merge(location, definition, table, files)
    table.cleanup_metadata()


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


def merge(
    location: ResultsRoot, definition: TableDefinition, table: DeltaTable, files: list[LiveFile]
) -> None:
    """Replaces some files by one sorted file for each month.

    :raises CommitFailedError: another process rewrote files of the table concurrently.
    """
    rows = read_files(location, table, files)
    kept = _newest(rows, definition)
    dropped = len(kept) < len(rows) and not _is_append_only(table)
    replace_files(location, definition, table, files, kept if dropped else rows, deletes=dropped)


def _first(files: list[LiveFile], most: Portion) -> list[LiveFile]:
    taken: list[LiveFile] = []
    rows = size = 0
    for file in sorted(files, key=lambda file: (file.oldest is not None, file.oldest, file.path)):
        rows, size = rows + file.rows, size + file.size
        if taken and (rows > most.rows or size > most.size or len(taken) == most.files):
            break
        taken.append(file)
    return taken


def _newest(rows: pa.Table, definition: TableDefinition) -> pa.Table:
    """The rows without those that a newer one among them replaces."""
    if not definition.newest_of:
        return rows
    places = rows.select([*definition.newest_of, definition.clock])
    places = places.append_column("place", pa.array(range(len(rows)), pa.int64()))
    ordered = places.sort_by([(definition.clock, "ascending"), ("place", "ascending")])
    newest = ordered.group_by([*definition.newest_of], use_threads=False).aggregate(
        [("place", "last")]
    )
    return rows.take(newest["place_last"])


def _is_append_only(table: DeltaTable) -> bool:
    return bool(table.metadata().configuration.get("delta.appendOnly") == "true")
