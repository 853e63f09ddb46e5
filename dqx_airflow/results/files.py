"""The data files of a table, and the commit that replaces them.

deltalake can compact too, but two of its compactions at the same time double the rows (1.6.6:
moving rows conflicts with nothing). Here every such commit carries the same transaction identifier,
so that Delta refuses one of two concurrent ones. Appends do not conflict with them.
"""

from __future__ import annotations

import json
import time
import uuid
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
