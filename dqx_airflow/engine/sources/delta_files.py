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
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, TimestampType

from dqx_airflow.datasets.delta_log import commits_behind, log_files
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta_checkpoints import loose_files, partitions_in_checkpoint
from dqx_airflow.engine.sources.delta_storage import StoredFiles, TableStorage
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.engine.sources.logged_files import LoggedFiles, Numbers
from dqx_airflow.engine.sources.partition_values import has_zone, is_named
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
    _by_date: dict[date | None, Numbers] = field(default_factory=dict, repr=False)

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
    def is_read_by_itself(self) -> bool:
        """True if Spark's Delta source may find other values than the files have: of partitions,
        and NULL where the table has none, since Spark then looks for none."""
        return self.has_own_values or is_required(self.schema)

    @cached_property
    def null_in_required(self) -> str | None:
        """A column that is NOT NULL, and of which a file has NULL according to its statistics; None
        if there is none. The log counts a missing struct as NULL in its fields, and has nothing on
        items."""
        for column in self.schema.fields:
            nulls = f"null_count.{self._physical(column.name)}"
            if column.nullable or nulls not in self._files:
                continue
            loose = self._loose or frozenset()
            paths = self._files.values("path", self._files.all)
            counts = self._files.values(nulls, self._files.all)
            if any(count and path not in loose for path, count in zip(paths, counts, strict=True)):
                return str(column.name)
        return None

    @cached_property
    def zoneless(self) -> tuple[tuple[str, str], ...]:
        """Timestamps without a zone in partitions, each with an engine that wrote it; the engine is
        empty if no commit names it, as if only a checkpoint has the file.

        :raises OSError: the log cannot be read.
        :raises ValueError: as above.
        """
        if not self.moments:
            return ()
        files = set(map(unquote, self._files.values("path", self._files.all)))
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
    def _files(self) -> LoggedFiles:
        return LoggedFiles(pa.table(self.table.get_add_actions(flatten=True)))

    @property
    def count(self) -> int:
        """The number of files."""
        return len(self._files.all)

    @cached_property
    def _by_bounds(self) -> list[tuple[Any, Any, Numbers]]:
        """The files by the first and the last value that each may have in the date column: of its
        partition, or else by its statistics."""
        column = self.dates
        assert column is not None
        names = (f"min.{column.name}", f"max.{column.name}")
        if f"partition.{column.name}" in self._files:
            names = (f"partition.{column.name}",) * 2
        first_codes, firsts = self._files.codes(names[0])
        last_codes, lasts = self._files.codes(names[1])
        codes = first_codes * len(lasts) + last_codes
        # Equal bounds are next to each other, and files with the same in the order of the log.
        ordered = np.argsort(codes, kind="stable")
        different, starts = np.unique(codes[ordered], return_index=True)
        pairs = [divmod(code, len(lasts)) for code in different.tolist()]
        groups = np.split(ordered, starts[1:])
        return [
            (firsts[first], lasts[last], numbers)
            for (first, last), numbers in zip(pairs, groups, strict=False)
        ]

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
        return frozenset(self._files.codes(f"partition.{self.dates.name}")[1])

    @cached_property
    def _misspelled(self) -> frozenset[date]:
        """The dates that are partitions in another form, which reading the table rejects."""
        column = self.dates
        if column is None:
            return frozenset()
        texts = (text for text in self.partition_dates if isinstance(text, str))
        return frozenset(chain.from_iterable(map(column.misspelled_dates, texts)))

    def parts_of(self, dates: Collection[date | None]) -> list[FileGroup]:
        """The files that may hold rows of the dates, by partition or else by their statistics."""
        held = [self._of_date(on) for on in dates]
        return self._parts(np.unique(np.concatenate(held)) if held else self._files.all[:0])

    def parts_with(self, files: Iterable[DataFile]) -> list[FileGroup]:
        """Some of the files of the table."""
        return self._parts(self._files.named([file.path for file in files]))

    def _parts(self, numbers: Numbers) -> list[FileGroup]:
        """Files whose paths name their partition in a way that Spark understands form one group."""
        columns = self.partitioned_by
        logged = [self._files.values(f"partition.{name}", numbers) for name in columns]
        parts: dict[tuple[tuple[str, Any], ...], list[str]] = {}
        for position, uri in enumerate(self._uris(numbers)):
            values = tuple(
                (name, of_files[position]) for name, of_files in zip(columns, logged, strict=True)
            )
            is_read = self.reads_folders and _folders_match_partition(
                uri.removeprefix(f"{self.path}/"), values
            )
            parts.setdefault(() if is_read else values, []).append(uri)
        return [FileGroup(tuple(uris), values) for values, uris in parts.items()]

    def _uris(self, numbers: Numbers) -> list[str]:
        """The locations of some files."""
        return list(map(self._uri, self._files.values("path", numbers)))

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
            self._lost[on] = self._first_fault(self._of_date(on))
        return self._lost[on]

    def _first_fault(self, numbers: Numbers) -> str | None:
        stored = self._stored(numbers)
        if stored is None:
            return None
        sizes = stored.sizes(numbers)
        logged = self._files.integers("size_bytes", numbers)
        differing = np.flatnonzero(sizes != logged)
        if not len(differing):
            return None
        first = differing[0]
        (uri,) = self._uris(numbers[[first]])
        if sizes[first] < 0:
            return f"{uri}, which does not exist"
        return f"{uri} as a file of {logged[first]:,} bytes, but it has {sizes[first]:,}"

    def _stored(self, numbers: Numbers) -> StoredFiles | None:
        """The files as storage has them; None if some of them cannot be listed."""
        try:
            self._storage.look_at(numbers)
        except (OSError, ValueError, DeltaError):
            return None
        return self._storage

    @cached_property
    def _storage(self) -> StoredFiles:
        return StoredFiles(TableStorage(self.path), self._uris, self.count)

    def files_of(
        self, on: date | None, values: Mapping[str, Any] = MappingProxyType({})
    ) -> list[DataFile]:
        """The files in the log that may hold rows of the date with these values in some columns."""
        numbers = self._of_date(on)
        for name, value in values.items():
            numbers = numbers[self._may_have(name, value, numbers)]
        return self._data_files(numbers)

    def _may_have(self, column: str, value: Any, numbers: Numbers) -> list[bool]:
        """False for each file whose partition or statistics exclude a value in a column."""
        if f"partition.{column}" in self._files:
            return [
                partition == value or (partition is not None and type(partition) is not type(value))
                for partition in self._files.values(f"partition.{column}", numbers)
            ]
        least = self._files.values(f"min.{column}", numbers)
        most = self._files.values(f"max.{column}", numbers)
        return [_may_lie_within(value, *bounds) for bounds in zip(least, most, strict=True)]

    def _data_files(self, numbers: Numbers, stored: StoredFiles | None = None) -> list[DataFile]:
        """Some files of the log, with the facts of storage if there are any."""
        columns = [self._files.values(f"partition.{name}", numbers) for name in self.partitioned_by]
        # Of many files the partition is the same.
        partitions = dict[tuple[str, ...], tuple[str, ...]]()
        unknown = [0] * len(numbers)
        written_ms = self._files.integers("modification_time", numbers)
        return [
            DataFile(
                path, size, modified_ns, changed_ns, inode, partitions.setdefault(texts, texts)
            )
            for path, size, modified_ns, changed_ns, inode, texts in zip(
                self._files.values("path", numbers),
                self._files.integers("size_bytes", numbers).tolist(),
                (written_ms * 1_000_000).tolist(),
                stored.changed_ns(numbers).tolist() if stored else unknown,
                stored.inodes(numbers) if stored else unknown,
                zip(*(map(str, column) for column in columns), strict=True)
                if columns
                else [()] * len(numbers),
                strict=True,
            )
        ]

    def files_held(self, on: date | None) -> list[DataFile] | None:
        """The files that may hold rows of the date, as storage has them; None if they differ from
        the log's entries."""
        numbers = self._of_date(on)
        stored = self._stored(numbers)
        if stored is None or self._lost_file(on) is not None or on in self._misspelled:
            return None
        return self._data_files(numbers, stored)

    def is_believed(self, dates: Collection[date | None]) -> bool:
        """True if the log's entries for the files of the dates can be trusted: the files are those
        that it names, and none was written after its entry."""
        return self.is_trusted and all(map(self._are_as_written, dates))

    def _are_as_written(self, on: date | None) -> bool:
        numbers = self._of_date(on)
        stored = self._stored(numbers)
        if stored is None or self._lost_file(on) is not None or on in self._misspelled:
            return False
        written_ms = self._files.integers("modification_time", numbers)
        return bool(np.all(stored.changed_ns(numbers) // 1_000_000 <= written_ms))

    def _of_date(self, on: date | None) -> Numbers:
        """The files that may hold rows of the date."""
        if on is None or self.dates is None:
            return self._files.all
        if on not in self._by_date:
            held = [
                numbers
                for first, last, numbers in self._by_bounds
                if self._may_hold(first, last, on)
            ]
            # In the order of the log.
            self._by_date[on] = np.sort(np.concatenate(held)) if held else self._files.all[:0]
        return self._by_date[on]

    def _may_hold(self, first: Any, last: Any, on: date) -> bool:
        """False if no file with these bounds in the date column has rows of a date."""
        column = self.dates
        assert column is not None
        if f"partition.{column.name}" in self._files:
            if column.is_timestamp:
                return first is not None and column.may_lie(on, first, first)
            return bool(first == column.value(on))
        return not self.is_trusted or column.may_lie(on, first, last)

    def rows_of(self, on: date | None) -> int | None:
        """The number of rows in the files that may hold the date; None if the log has none."""
        return self._files.total("num_records", self._of_date(on))

    def rows_in(self, files: Iterable[DataFile]) -> int | None:
        """The number of rows in some of the files; None if the log does not have it."""
        numbers = self._files.named([file.path for file in files])
        return self._files.total("num_records", numbers)

    def arrivals(self, on: date | None, most: int) -> tuple[Arrival, ...]:
        """The newest commits that added files of the date, and the newest others that changed the
        table, each at most `most`, the last one first; none if the log cannot be read."""
        found: list[Arrival] = []
        counts: Counter[bool] = Counter()
        try:
            numbers = self._of_date(on)
            paths = map(unquote, self._files.values("path", numbers))
            files = dict(zip(paths, numbers.tolist(), strict=True))
            for commit in commits_behind(self.path, self.version, files):
                own = [files[path] for path in commit.added if path in files]
                if (own or not commit.is_move) and counts[bool(own)] < most:
                    counts[bool(own)] += 1
                    at = commit.info.get("inCommitTimestamp") or commit.info.get("timestamp")
                    rows = self._files.total("num_records", np.array(own, dtype=np.int64))
                    arrival = Arrival(
                        str(commit.version),
                        datetime.fromtimestamp(int(at) / 1000, timezone.utc) if at else None,
                        _writer_in(commit.info),
                        len(own),
                        rows if own else None,
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
        numbers = self._of_date(on)
        if self._files.total("num_records", numbers) is None or not self.is_believed([on]):
            return {}
        values: dict[str, MetricValue] = {}
        for aggregate in aggregates:
            if aggregate.statistic is not None:
                answer = self._answer(aggregate, numbers)
                if answer is not None:
                    values[aggregate.sql] = answer.value
        return values

    def _answer(self, aggregate: Aggregate, numbers: Numbers) -> _Answer | None:
        """The result of an aggregate over files with statistics; None if these do not have it."""
        count = self._files.total("num_records", numbers)
        assert count is not None
        column = aggregate.column
        if aggregate.statistic is Statistic.ROWS:
            return _Answer(count)
        if column is None or not self._has_statistics(column, numbers):
            return None
        nulls = self._files.total(f"null_count.{column}", numbers)
        if nulls is None:
            return None
        if aggregate.statistic is Statistic.VALUES:
            return _Answer(count - nulls)
        if self.schema[column].dataType.simpleString() not in _EXACT_EXTREMES:
            return None
        return self._extreme(column, numbers, is_least=aggregate.statistic is Statistic.LEAST)

    def _extreme(self, column: str, numbers: Numbers, *, is_least: bool) -> _Answer | None:
        """The least or the greatest value of a column; None if the log does not have it."""
        rows = self._files.values("num_records", numbers)
        nulls = self._files.values(f"null_count.{column}", numbers)
        recorded = self._files.values(f"{'min' if is_least else 'max'}.{column}", numbers)
        extremes = [
            extreme
            for extreme, count, missing in zip(recorded, rows, nulls, strict=True)
            if missing < count
        ]
        if None in extremes:
            return None
        if not extremes:
            return _Answer(None)
        value: MetricValue | date = min(extremes) if is_least else max(extremes)
        return _Answer(value.isoformat() if isinstance(value, date) else value)

    def _has_statistics(self, column: str, numbers: Numbers) -> bool:
        """False for a nested column, and if the statistics of a file may not be exact."""
        if column not in self.schema.names or "." in column:
            return False
        if not self._loose:
            return self._loose is not None
        return self._loose.isdisjoint(self._files.values("path", numbers))


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result of an aggregate, which may be None: no value."""

    value: MetricValue


def is_required(held: DataType) -> bool:
    """True if a value of the type, or a part of one, cannot be NULL."""
    match held:
        case StructType(fields=fields):
            return any(not field.nullable or is_required(field.dataType) for field in fields)
        case ArrayType(elementType=item, containsNull=may_be_null):
            return not may_be_null or is_required(item)
        case MapType(keyType=key, valueType=item, valueContainsNull=may_be_null):
            return not may_be_null or is_required(key) or is_required(item)
        case _:
            return False


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


def _may_lie_within(value: Any, least: Any, most: Any) -> bool:
    """False if the statistics of a file exclude a value."""
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
