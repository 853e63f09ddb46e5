"""The log of a Delta table: its files, and the facts about them.

deltalake reads the log, without a JVM. Actions, statistics and table features are defined in the
Delta protocol (`PROTOCOL.md` of delta-io/delta), "Actions" and "Per-file Statistics".
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from functools import cached_property
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql.types import BinaryType, StructType, TimestampType

from dqx_airflow.datasets.delta_log import commits_behind, log_files
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_checkpoints import loose_files, partitions_in_checkpoint
from dqx_airflow.engine.sources.delta_storage import StoredFile, TableStorage
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.engine.sources.partition_values import as_bytes, has_zone, is_named
from dqx_airflow.metrics.metric import Aggregate, Statistic
from dqx_airflow.values.redact import redact
from dqx_airflow.values.report import Arrival, MetricValue

_READ_AS_PARQUET = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Table features that require nothing from a reader of the files."""
_LOCAL_URI = re.compile(r"^file:/+")
"""How Spark writes the files of a clone on this machine."""
_WRITER = re.compile(r"user|job|run|dag|task|gate|notebook|engineInfo", re.I)
_LONGEST_WRITER = 300
_NO_COMMIT = (ValueError, OverflowError, KeyError, TypeError, AttributeError)
"""The errors of reading a commit that is damaged, or has an impossible time."""
COMMITS_READ = 1000
KEEP_THE_DATA = frozenset(
    {
        *("OPTIMIZE", "VACUUM START", "VACUUM END", "FSCK", "REORG", "CLUSTER BY", "COMPUTE STATS"),
        *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "ADD CONSTRAINT", "DROP CONSTRAINT"),
        *("ADD COLUMNS", "DROP COLUMNS", "RENAME COLUMN", "CHANGE COLUMN", "REPLACE COLUMNS"),
        *("ADD COLUMN", "SET TABLE PROPERTIES", "UPDATE FIELD METADATA", "UPDATE TABLE METADATA"),
        *("UPGRADE PROTOCOL", "ADD FEATURE", "DROP FEATURE", "CREATE TABLE"),
    }
)
"""Operations that leave the rows as they are: none of them makes data fresh."""
_EXACT_EXTREMES = frozenset({"tinyint", "smallint", "int", "bigint", "date"})
"""Types whose minima and maxima in the log are exact: strings are truncated, timestamps rounded,
and NaN is missing for floating-point numbers."""


def struct_of(table: DeltaTable) -> StructType:
    """The schema of a table in Spark's types."""
    return StructType.fromJson(json.loads(table.schema().to_json()))


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read together.

    :param values: of the partition columns, if the paths do not have them.
    """

    uris: tuple[str, ...]
    values: tuple[tuple[str, Any], ...]


class LoggedColumns:
    """The columns of a log in Arrow, each of which becomes a list when it is first needed."""

    def __init__(self, actions: pa.Table) -> None:
        # By position: a column called `a.b` beside a field of that path gives one name twice.
        self._positions = {name: number for number, name in enumerate(actions.column_names)}
        self._actions = actions
        self._values: dict[str, list[Any]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._positions

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._values:
            column = self._actions.column(self._positions[name])
            self._values[name] = _values_of(name, column)
        return self._values[name]

    def known(self, name: str) -> list[Any]:
        """The values of a column; None for each file if the log has none."""
        return self[name] if name in self else [None] * len(self._actions)

    def rows(self) -> list[LoggedFile]:
        return [LoggedFile(self, number) for number in range(len(self._actions))]


class LoggedFile:
    """A file with everything that the log records about it, by the name of the column."""

    __slots__ = ("columns", "number")

    def __init__(self, columns: LoggedColumns, number: int) -> None:
        self.columns = columns
        self.number = number

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Any:
        return self.columns[name][self.number]

    def get(self, name: str) -> Any:
        return self.columns[name][self.number] if name in self.columns else None


@dataclass(frozen=True)
class DeltaLog:
    """The log of a table at one version.

    It is trusted only about existing files: its entries are checked against storage.

    :param path: of the table, as Spark reads it.
    :param is_of_now: false for a requested version, whose files may have been removed since.
    :param is_trusted: false if its statistics must not be used: they may be wrong.
    :param reads_folders: false for an engine that reads no values from the names of folders.
    """

    table: DeltaTable = field(repr=False)
    path: str
    schema: StructType
    dates: DateColumn | None
    is_of_now: bool = True
    is_trusted: bool = True
    reads_folders: bool = True
    _lost: dict[date | None, str | None] = field(default_factory=dict, repr=False)
    _by_date: dict[date | None, list[LoggedFile]] = field(default_factory=dict, repr=False)

    @property
    def version(self) -> int:
        return int(self.table.version())

    def committed_at(self) -> datetime | None:
        """The time of the last data change of the table, if the log still has it; None for a
        requested version: deltalake numbers only the commits of the newest one."""
        if not self.is_of_now:
            return None
        for commit in self.table.history(COMMITS_READ):
            if str(commit.get("operation", "")).upper() not in KEEP_THE_DATA:
                return datetime.fromtimestamp(int(commit["timestamp"]) / 1000, timezone.utc)
        return None

    @cached_property
    def features(self) -> frozenset[str]:
        """The features that a reader of the files needs beyond Parquet."""
        features = set(self.table.protocol().reader_features or ()) - _READ_AS_PARQUET
        # Older protocols have no list of features.
        if self.table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            features.add("columnMapping")
        return frozenset(features)

    @cached_property
    def partitioned_by(self) -> tuple[str, ...]:
        """The columns that are not in the files: the log has their values."""
        return tuple(self.table.metadata().partition_columns or ())

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """The partition columns of timestamps."""
        return tuple(
            name for name in self.partitioned_by if self.schema[name].dataType == TimestampType()
        )

    @cached_property
    def has_own_values(self) -> bool:
        """True if other readers may find other values in partitions: timestamps without a zone, and
        bytes."""
        is_binary = (self.schema[name].dataType == BinaryType() for name in self.partitioned_by)
        return bool(self.moments) or any(is_binary)

    @cached_property
    def zoneless(self) -> tuple[tuple[str, str], ...]:
        """Timestamps without a zone in partitions, each with an engine that wrote it; the engine is
        empty if no commit names it, as if only a checkpoint has the file.

        :raises OSError: the log cannot be read.
        :raises ValueError: as above.
        """
        files = {unquote(row["path"]) for row in self._files} if self.moments else set[str]()
        if not files:
            return ()
        found: list[tuple[str, str]] = []
        unseen = set(files)
        for commit in commits_behind(self.path, self.version, files):
            engine = str(commit.info.get("engineInfo") or commit.info.get("clientVersion") or "")
            for path in commit.added.keys() & files:
                unseen.discard(path)
                partition = commit.added[path].get("partitionValues")
                found += ((text, engine) for text in self._bare(partition))
        if unseen:
            partitions = partitions_in_checkpoint(log_files(self.path, self.version))
            for path in unseen & partitions.keys():
                found += ((text, "") for text in self._bare(partitions[path]))
        return tuple(dict.fromkeys(found))

    def _bare(self, partition: Mapping[str, str | None] | None) -> Iterator[str]:
        """The timestamps without a zone among the values of a partition, as `at=...`."""
        for name in self.moments:
            text = (partition or {}).get(self._physical(name)) or ""
            if not has_zone(text):
                yield f"{name}={text}"

    def _physical(self, name: str) -> str:
        """The name of a column in the log, which column mapping may make another one."""
        return str(self.schema[name].metadata.get("delta.columnMapping.physicalName", name))

    @cached_property
    def _columns(self) -> LoggedColumns:
        return LoggedColumns(pa.table(self.table.get_add_actions(flatten=True)))

    @cached_property
    def _files(self) -> list[LoggedFile]:
        """The files, with everything that the log records about each."""
        return self._columns.rows()

    @cached_property
    def _by_bounds(self) -> dict[tuple[Any, Any], list[LoggedFile]]:
        """The files by the first and the last value that each may have in the date column: of its
        partition, or else by its statistics."""
        column = self.dates
        assert column is not None
        names = (f"min.{column.name}", f"max.{column.name}")
        if f"partition.{column.name}" in self._columns:
            names = (f"partition.{column.name}",) * 2
        firsts, lasts = map(self._columns.known, names)
        found: dict[tuple[Any, Any], list[LoggedFile]] = {}
        for row, first, last in zip(self._files, firsts, lasts, strict=True):
            found.setdefault((first, last), []).append(row)
        return found

    @cached_property
    def _loose(self) -> frozenset[str] | None:
        """The files whose statistics are only bounds; None if that is unknown."""
        return loose_files(self.path, self.version)

    @cached_property
    def is_partitioned_by_date(self) -> bool:
        """True if each file has rows of a single date only, and the log knows which."""
        if self.dates is None or self.dates.is_timestamp:
            return False
        return self.dates.name in self.partitioned_by

    @cached_property
    def partition_dates(self) -> frozenset[Any]:
        """The values of the date column that the log has as partitions."""
        if not self.is_partitioned_by_date or self.dates is None:
            return frozenset()
        return frozenset(row[f"partition.{self.dates.name}"] for row in self._files)

    def _is_misspelled(self, on: date | None) -> bool:
        """True if a partition is the date in another form, which reading the table rejects."""
        column = self.dates
        if column is None or on is None:
            return False
        texts = (text for text in self.partition_dates if isinstance(text, str))
        return any(column.is_misspelled(on, text) for text in texts)

    def parts_of(self, dates: Collection[date | None]) -> list[FileGroup]:
        """The files that may hold rows of the dates, by partition or else by their statistics."""
        return self._parts(
            {row["path"]: row for on in dates for row in self._rows_of_date(on)}.values()
        )

    def parts_with(self, files: Iterable[DataFile]) -> list[FileGroup]:
        """Some of the files of the table."""
        paths = {file.path for file in files}
        return self._parts(row for row in self._files if row["path"] in paths)

    def _parts(self, rows: Iterable[LoggedFile]) -> list[FileGroup]:
        """Files whose paths name their partition in a way that Spark understands form one group."""
        columns = self.partitioned_by
        parts: dict[tuple[tuple[str, Any], ...], list[str]] = {}
        for row in rows:
            uri = self._uri(row["path"])
            values = tuple((name, row[f"partition.{name}"]) for name in columns)
            is_read = self.reads_folders and _folders_match_partition(
                uri.removeprefix(f"{self.path}/"), values
            )
            parts.setdefault(() if is_read else values, []).append(uri)
        return [FileGroup(tuple(uris), values) for values, uris in parts.items()]

    def _uri(self, logged: str) -> str:
        """The location of a file. The log has it as a URI, usually relative to the table."""
        path = logged
        if "%" in path or path.startswith("file:"):
            path = _LOCAL_URI.sub("/", unquote(path))
        return path if "://" in path or path.startswith("/") else f"{self.path}/{path}"

    def lost_file(self, dates: Collection[date | None]) -> str | None:
        """A short description of a file that may have rows of the dates, and is missing or differs
        from the log's entry.

        None also if the files cannot be listed: Spark then reports what is wrong.
        """
        for on in dates:
            lost = self._lost_file(on)
            if lost is not None:
                return lost
        return None

    def _lost_file(self, on: date | None) -> str | None:
        if on not in self._lost:
            self._lost[on] = self._first_fault(self._rows_of_date(on))
        return self._lost[on]

    def _first_fault(self, rows: list[LoggedFile]) -> str | None:
        files = self._stored(rows)
        if files is None:
            return None
        for row in rows:
            fault = self._fault(row, files)
            if fault is not None:
                return fault
        return None

    def _fault(self, row: LoggedFile, stored: Mapping[str, StoredFile | None]) -> str | None:
        uri = self._uri(row["path"])
        stored_file = stored[uri]
        if stored_file is None:
            return f"{uri}, which does not exist"
        if stored_file.size != row["size_bytes"]:
            return (
                f"{uri} as a file of {row['size_bytes']:,} bytes, but it has {stored_file.size:,}"
            )
        return None

    def _stored(self, rows: Iterable[LoggedFile]) -> Mapping[str, StoredFile | None] | None:
        """The stored files at given locations; None if they cannot be listed."""
        try:
            return self._storage.look_at([self._uri(row["path"]) for row in rows])
        except (OSError, ValueError, DeltaError):
            return None

    @cached_property
    def _storage(self) -> TableStorage:
        return TableStorage(self.path)

    def files_of(
        self, on: date | None, values: Mapping[str, Any] = MappingProxyType({})
    ) -> list[DataFile]:
        """The files in the log that may hold rows of the date with these values in some columns."""
        rows = self._rows_of_date(on)
        if values:
            rows = [
                row
                for row in rows
                if all(_may_have(row, name, value) for name, value in values.items())
            ]
        # The columns are looked up once, not for each of a million files.
        paths = self._columns["path"]
        sizes = self._columns["size_bytes"]
        times = self._columns["modification_time"]
        partitions = [self._columns[f"partition.{name}"] for name in self.partitioned_by]
        return [
            DataFile(
                paths[number],
                sizes[number],
                _milliseconds(times[number]) * 1_000_000,
                partition=tuple([str(values[number]) for values in partitions]),
            )
            for number in [row.number for row in rows]
        ]

    def files_held(self, on: date | None) -> list[DataFile] | None:
        """The files that may hold rows of the date, as storage has them; None if they differ from
        the log's entries."""
        files = self._stored(self._rows_of_date(on))
        if files is None or self._lost_file(on) is not None or self._is_misspelled(on):
            return None
        return [
            DataFile(
                file.path,
                file.size,
                file.modified_ns,
                stored.changed_ns,
                stored.inode,
                file.partition,
            )
            for file in self.files_of(on)
            if (stored := files[self._uri(file.path)]) is not None
        ]

    def is_believed(self, dates: Collection[date | None]) -> bool:
        """True if the log's entries for the files of the dates can be trusted: the files are those
        that it names, and none was written after its entry."""
        return self.is_trusted and all(map(self._are_as_written, dates))

    def _are_as_written(self, on: date | None) -> bool:
        rows = self._rows_of_date(on)
        files = self._stored(rows)
        if files is None or self._lost_file(on) is not None or self._is_misspelled(on):
            return False
        files_as_stored = (
            (row["modification_time"], files[self._uri(row["path"])]) for row in rows
        )
        return all(
            file is not None and file.changed_ns // 1_000_000 <= _milliseconds(written)
            for written, file in files_as_stored
        )

    def _rows_of_date(self, on: date | None) -> list[LoggedFile]:
        """The log's entries for the files that may hold rows of the date."""
        if on is None or self.dates is None:
            return self._files
        if on not in self._by_date:
            held = [rows for bounds, rows in self._by_bounds.items() if self._may_hold(*bounds, on)]
            # In the order of the log.
            self._by_date[on] = sorted(chain.from_iterable(held), key=attrgetter("number"))
        return self._by_date[on]

    def _may_hold(self, first: Any, last: Any, on: date) -> bool:
        """False if no file with these bounds in the date column has rows of a date."""
        column = self.dates
        assert column is not None
        if f"partition.{column.name}" in self._files[0]:
            if column.is_timestamp:
                return first is not None and column.may_lie(on, first, first)
            return bool(first == column.value(on))
        return not self.is_trusted or column.may_lie(on, first, last)

    def rows_of(self, on: date | None) -> int | None:
        """The number of rows in the files that may hold the date; None if the log has none."""
        counts = [row.get("num_records") for row in self._rows_of_date(on)]
        return None if None in counts else sum(filter(None, counts))

    def rows_in(self, files: Iterable[DataFile]) -> int | None:
        """The number of rows in some of the files; None if the log does not have it."""
        paths = {file.path for file in files}
        counts = [row.get("num_records") for row in self._files if row["path"] in paths]
        return None if None in counts else sum(filter(None, counts))

    def arrivals(self, on: date | None, most: int) -> tuple[Arrival, ...]:
        """The newest commits that added files of the date, and the newest others that changed the
        table, each at most `most`, the last one first; none if the log cannot be read."""
        found: list[Arrival] = []
        counts: Counter[bool] = Counter()
        try:
            files = {unquote(file.path): file for file in self.files_of(on)}
            for commit in commits_behind(self.path, self.version, files):
                own = [file for path, file in files.items() if path in commit.added]
                if (own or not commit.is_move) and counts[bool(own)] < most:
                    counts[bool(own)] += 1
                    at = commit.info.get("inCommitTimestamp") or commit.info.get("timestamp")
                    arrival = Arrival(
                        str(commit.version),
                        datetime.fromtimestamp(int(at) / 1000, timezone.utc) if at else None,
                        _writer_in(commit.info),
                        len(own),
                        self.rows_in(own) if own else None,
                        removed=len(commit.removed),
                    )
                    found.append(arrival)
        except (OSError, *_NO_COMMIT, DeltaError):
            return ()
        return tuple(found)

    def answers(self, aggregates: Iterable[Aggregate], on: date | None) -> dict[str, MetricValue]:
        """The aggregates that the log answers exactly for a date, by their SQL.

        It does if every file holds rows of this date only and has the necessary statistics, if no
        rows were deleted in place, and if the files exist as they were written.
        """
        if self.features or not self.is_of_now:
            return {}
        if on is not None and not self.is_partitioned_by_date:
            return {}
        rows = self._rows_of_date(on)
        if any(row.get("num_records") is None for row in rows) or not self.is_believed([on]):
            return {}
        values: dict[str, MetricValue] = {}
        for aggregate in aggregates:
            if aggregate.statistic is not None:
                answer = self._answer(aggregate, rows)
                if answer is not None:
                    values[aggregate.sql] = answer.value
        return values

    def _answer(self, aggregate: Aggregate, rows: list[LoggedFile]) -> _Answer | None:
        """The result of an aggregate over files with statistics; None if these do not have it.

        :param rows: the entries of the files in the log.
        """
        count = sum(row["num_records"] for row in rows)
        column = aggregate.column
        if aggregate.statistic is Statistic.ROWS:
            return _Answer(count)
        if column is None or not self._has_statistics(column, rows):
            return None
        nulls: list[Any] = [row.get(f"null_count.{column}") for row in rows]
        if None in nulls:
            return None
        if aggregate.statistic is Statistic.VALUES:
            return _Answer(count - sum(nulls))
        if self.schema[column].dataType.simpleString() not in _EXACT_EXTREMES:
            return None
        with_values = [
            row for row, number in zip(rows, nulls, strict=True) if number < row["num_records"]
        ]
        return _extreme(column, with_values, is_least=aggregate.statistic is Statistic.LEAST)

    def _has_statistics(self, column: str, rows: list[LoggedFile]) -> bool:
        """False for a nested column, and if the statistics of a file may not be exact."""
        if column not in self.schema.names or "." in column:
            return False
        return self._loose is not None and all(row["path"] not in self._loose for row in rows)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result of an aggregate, which may be None: no value."""

    value: MetricValue


def _extreme(column: str, rows: list[LoggedFile], *, is_least: bool) -> _Answer | None:
    """The least or the greatest value of a column; None if the log does not have it.

    :param rows: the entries of the files that have values in the column.
    """
    side = "min" if is_least else "max"
    extremes: list[Any] = [row.get(f"{side}.{column}") for row in rows]
    if None in extremes:
        return None
    if not extremes:
        return _Answer(None)
    value: MetricValue | date = min(extremes) if is_least else max(extremes)
    return _Answer(value.isoformat() if isinstance(value, date) else value)


def _writer_in(info: Mapping[str, Any]) -> str:
    """The operation of a commit, and the users, jobs, runs and tasks in it. Other entries, such as
    the predicate of a deletion, may contain values of rows."""
    named = [
        f"{name} {value}"
        for part in (info, info.get("job"), info.get("notebook"))
        if isinstance(part, Mapping)
        for name, value in part.items()
        if _WRITER.search(name) and isinstance(value, str | int) and "{" not in str(value)
    ]
    words = [str(info.get("operation") or "unknown operation"), *named]
    return redact(", ".join(words))[:_LONGEST_WRITER]


def _values_of(name: str, column: pa.ChunkedArray) -> list[Any]:
    """Recorded values. Of dates and timestamps that Python does not have, such as those after the
    year 9999, partition values are strings, and statistics are unknown."""
    try:
        values = list(column.to_pylist())
    except (OverflowError, ValueError):
        return [_value_of(name, cell) for cell in column]
    if name.startswith("partition.") and pa.types.is_binary(column.type):
        return [value if value is None else as_bytes(value) for value in values]
    return values


def _value_of(name: str, cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return str(cell.cast(pa.string())) if name.startswith("partition.") else None


def _may_have(row: LoggedFile, column: str, value: Any) -> bool:
    """False if the partition or the statistics of a file exclude values in a column."""
    if f"partition.{column}" in row:
        partition = row[f"partition.{column}"]
        return partition == value or (partition is not None and type(partition) is not type(value))
    least: Any = row.get(f"min.{column}")
    most: Any = row.get(f"max.{column}")
    # The log may hold a prefix of a string only.
    if isinstance(value, str) and isinstance(least, str) and isinstance(most, str):
        return least <= value and (value <= most or value.startswith(most))
    if type(value) in (int, date) and type(least) is type(value) and type(most) is type(value):
        return bool(least <= value <= most)
    return True


def _folders_match_partition(path: str, values: Sequence[tuple[str, Any]]) -> bool:
    """True if the folders of a file name its partition so that Spark reads the right values.

    They need not: only the log must be right. And Spark unquotes character by character what
    deltalake quotes byte by byte.
    """
    folders = [part.split("=", 1) for part in path.split("/")[:-1] if "=" in part]
    partition = {name: unquote(text) for name, text in folders}
    return (
        len(folders) == len(values)
        and partition.keys() == {name for name, _ in values}
        and all(is_named(partition[name], value) for name, value in values)
    )


def _milliseconds(timestamp: Any) -> int:
    """A modification time in milliseconds, as in the log."""
    return int(timestamp.timestamp() * 1000 if isinstance(timestamp, datetime) else timestamp)
