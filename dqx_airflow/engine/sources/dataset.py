"""An opened dataset: its columns and metadata, and how its rows are read; what a strict read
refuses, and errors of reading explained.

A cluster may be configured to skip files that are corrupt or missing. Reader options override such
a setting; reads of catalog tables take no options that apply to all of their files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from typing import TypeAlias
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from dqx_airflow.datasets.settings import format_of
from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.session.spark_errors import explain
from dqx_airflow.engine.sources.broken_lines import located
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.declared_texts import TextColumns
from dqx_airflow.engine.sources.delta_files import DeltaLog
from dqx_airflow.engine.sources.listing import (
    NOTHING_IGNORED,
    DataFile,
    absolute,
    changed_files,
    files_at,
)
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.metrics.metric import Aggregate
from dqx_airflow.metrics.spark_values import FLOATING
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import parts_of, spelled_like
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.passes import are_few, are_small
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import MASK, DatasetField, DatasetRef, MetricValue
from dqx_airflow.values.redact import redact_urls
from dqx_airflow.values.report import Arrival

Reader: TypeAlias = Callable[[Collection[date | None]], DataFrame]
"""A frame with at least the rows of the given dates."""

FilesReader: TypeAlias = Callable[[Collection[DataFile]], DataFrame]
"""A frame with the rows of some files of a dataset."""

_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark, for which such columns are strings, says what their type is."""
_CHAR = re.compile(r"\bchar\([0-9]+\)")
_MAP, _TYPES_OF_SAIL = re.compile("map<"), re.compile(r"map<|struct<|\b(float|double)\b")


@dataclass(frozen=True, slots=True)
class OpenDataset:
    """A dataset that can be scanned.

    `read` returns the frame for some dates: until it is called, no file of a Delta table is listed
    or read. `dates` is the column with the date of a row, `log` the transaction log of a Delta
    table, and `files` are the files at a path when it was opened. `texts` are the strings from
    which the values are cast, if any. `read_files` is set if some of the files can be read without
    the others. `last_commit` returns the time of the last commit that changed the data of a table,
    or None if no commit has it. `char_types` are the types of the columns whose values Spark pads
    with spaces, such as `char(5)`; they are read without them. `snapshot` and `branch` are those of
    an Iceberg table. `notes` say what verdicts about a
    column do not show, or, under the empty name, verdicts about the columns of the dataset.
    """

    ref: DatasetRef
    struct: StructType
    read: Reader
    location: str
    dates: DateColumn | None
    version: int | None = None
    log: DeltaLog | None = None
    files: tuple[DataFile, ...] | None = None
    texts: TextColumns | None = None
    read_files: FilesReader | None = None
    last_commit: Callable[[], datetime | None] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    char_types: Mapping[str, str] = field(default_factory=dict)
    snapshot: int | None = None
    branch: str | None = None

    @property
    def fields(self) -> tuple[DatasetField, ...]:
        return tuple(
            DatasetField(field.name, field.dataType.simpleString()) for field in self.struct.fields
        )

    @property
    def schema(self) -> Schema:
        return Schema.of(self.ref.name, self.fields)

    def has_few_rows(self, dates: Collection[date | None]) -> bool:
        """True if the rows of the dates are known to be few."""
        return has_few_rows(self.log, self.files, dates)

    def answers_of_log(
        self, aggregates: Iterable[Aggregate], on: date | None
    ) -> Mapping[str, MetricValue]:
        """The exact results that the transaction log has for a date; none with a filter."""
        if self.log is None or self.ref.filter is not None:
            return {}
        return self.log.answers(aggregates, on)

    def files_on(self, on: date | None, listed: Iterable[DataFile]) -> list[DataFile]:
        """The listed files that may hold rows of a date: all of them if one of both has no date."""
        dates = self.dates
        if dates is None or on is None:
            return list(listed)
        return [file for file in listed if dates.may_be_in(on, file.path)]

    def arrivals(self, on: date | None, most: int = 10) -> tuple[Arrival, ...]:
        """The commits, or else the files, that added the rows of a date, newest first; empty if
        unknown."""
        if self.log is not None:
            return self.log.arrivals(on if self.dates is not None else None, most)
        files = self.files_on(on, self.files or ())
        files.sort(key=lambda file: file.modified_ns, reverse=True)
        return tuple(
            Arrival(
                redact_urls(re.sub(r"/([^/=]+)=[^/]*", self._partition, file.path)),
                datetime.fromtimestamp(file.modified_ns / 1e9, timezone.utc),
                files=1,
                size=file.size,
            )
            for file in files[:most]
        )

    def _partition(self, folder: re.Match[str]) -> str:
        """The folder of a partition; the value of a masked column is hidden."""
        hidden = is_masked(unquote(folder[1]), self.ref.masked)
        return f"/{folder[1]}={MASK}" if hidden else folder[0]

    def char_type(self, column: str) -> str | None:
        """The type of a column that a table holds as `char(5)`; None for all others."""
        return self.char_types.get(spelled_like(column, self.struct.names) or "")

    @property
    def change(self) -> str | None:
        """How the files have changed since the dataset was opened; None without a change.

        New files are no change: they are not read.
        """
        if self.files is None:
            return None
        changed = changed_files(self.files, files_at(self.location) or ())
        return f"{changed[0]} was changed or removed while it was read" if changed else None

    def of_files(self, files: Collection[DataFile]) -> OpenDataset:
        """The dataset reduced to some of its files, which can be read separately."""
        read = self.read_files
        assert read is not None
        return replace(self, read=lambda _: read(files))

    @staticmethod
    def of_frame(ref: DatasetRef, frame: DataFrame, location: str) -> OpenDataset:
        """A dataset that is read in the same way for all dates."""
        struct = frame.schema
        dates = DateColumn.of(ref, struct) if ref.date_column else None
        return OpenDataset(ref, struct, lambda _: frame, location, dates)


def has_few_rows(
    log: DeltaLog | None, files: Collection[DataFile] | None, dates: Collection[date | None]
) -> bool:
    """True if the transaction log says that the dates have few rows, or the files are small.

    :param files: at a path; None if they are not known.
    """
    if log is None:
        return files is not None and are_small(sum(file.size for file in files))
    rows = [log.rows_of(on) for on in dates]
    return None not in rows and are_few(sum(filter(None, rows)))


_DOUBLED = "raise_error('a map holds a key twice: write each key once')"


def in_one_form(opened: OpenDataset, *, of_sail: bool = False) -> OpenDataset:
    """The dataset with equal values in the same form, also of nested columns: those of `char(n)`
    without the spaces up to the length n, which Spark ignores in some comparisons and not in
    others, and maps with their entries in the order of the keys, which Spark would take for
    different values otherwise. A map that holds a key twice is an error where it is read.

    :param of_sail: also zeros and NaN, of which it knows several, and fields of a missing struct.
    """
    rewritten, fields, char_types = {}, [], {}
    for held in opened.struct.fields:
        kind = held.metadata.get(_CHAR_TYPE, "")
        if kind.startswith("char("):
            char_types[held.name] = kind
        name = quote_name(held.name)
        sql = _in_one_form(name, held.dataType, kind, of_sail)
        is_same = sql == name
        if not is_same:
            rewritten[held.name] = F.expr(sql)
        fields.append(held if is_same else StructField(held.name, held.dataType, held.nullable))
    if not rewritten:
        return opened
    alone = opened.read_files
    return replace(
        opened,
        struct=StructType(fields),
        char_types=char_types,
        read=lambda dates: opened.read(dates).withColumns(rewritten),
        read_files=alone and (lambda files: alone(files).withColumns(rewritten)),
    )


def _in_one_form(value: str, held: DataType, kind: str, of_sail: bool) -> str:
    """Spark SQL for a value; `kind` is the type that Spark holds as another one, if it does."""
    wanted = _TYPES_OF_SAIL if of_sail else _MAP
    if not _CHAR.search(kind) and not wanted.search(held.simpleString()):
        return value
    parts = parts_of(kind)
    match held:
        case StructType(fields=fields):
            present, end = (f"CASE WHEN {value} IS NOT NULL THEN ", " END") if of_sail else ("", "")
            inner = (
                f"{quote_literal(field.name)}, "
                + _in_one_form(
                    f"{present}{value}.{quote_name(field.name)}{end}", field.dataType, part, of_sail
                )
                for field, part in zip(fields, parts or [""] * len(fields), strict=True)
            )
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(inner)}) END"
        case ArrayType():
            item = _in_one_form("x", held.elementType, parts[0] if parts else "", of_sail)
            return f"transform({value}, x -> {item})"
        case MapType():
            kinds = parts or ("", "")
            key = _in_one_form("x.key", held.keyType, kinds[0], of_sail)
            item = _in_one_form("x.value", held.valueType, kinds[1], of_sail)
            entries = f"map_entries({value})"
            if (key, item) != ("x.key", "x.value"):
                entries = f"transform({entries}, x -> struct({key} AS key, {item} AS value))"
            order = "CASE WHEN x.key < y.key THEN -1 WHEN x.key > y.key THEN 1 ELSE 0 END"
            rebuilt = f"map_from_entries(array_sort({entries}, (x, y) -> {order}))"
            # Whatever the session does with such keys: it may be set to drop all but the last.
            is_doubled = f"size(array_distinct(map_keys({value}))) < size({value})"
            return f"CASE WHEN {is_doubled} THEN {_DOUBLED} ELSE {rebuilt} END"
        case _ if (name := held.simpleString()) in FLOATING:
            return f"CASE WHEN isnan({value}) THEN CAST('NaN' AS {name}) ELSE {value} + 0 END"
        case _:
            return f"rtrim({value})"


_IGNORING = (
    *(f"spark.sql.files.{name}" for name in NOTHING_IGNORED),
    "spark.sql.hive.verifyPartitionPath",
)
_LITERALS_AS_WRITTEN = "spark.sql.parser.escapedStringLiterals"
_QUOTED_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"
_CHECKS_FOLDERS = "spark.sql.sources.validatePartitionColumns"


def require_strict_session(spark: SparkSession, ref: DatasetRef, read: str) -> None:
    """Rejects a session that skips files, for a read that takes no options against it.

    :raises DatasetError: the session is configured so.
    """
    _require(spark, ref, "false", dict.fromkeys(_IGNORING, f"{read} may silently lack rows"))


def require_plain_sql(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session in which the strings and the column names of a suite would be others in
    Spark's SQL.

    :raises DatasetError: the session is configured so.
    """
    strings = "it would compare with other strings than those in the suite"
    names = "the name of a column would be a pattern, which other columns may match"
    _require(spark, ref, "false", {_LITERALS_AS_WRITTEN: strings, _QUOTED_PATTERNS: names})


def require_checked_folders(spark: SparkSession, ref: DatasetRef) -> None:
    """Rejects a session that reads a partition folder as NULL if its value is not of the declared
    type.

    :raises DatasetError: the session is configured so.
    """
    consequence = "a folder such as ds=junk would silently become NULL"
    _require(spark, ref, "true", {_CHECKS_FOLDERS: consequence})


def _require(
    spark: SparkSession, ref: DatasetRef, default: str, consequences: Mapping[str, str]
) -> None:
    """:param default: Spark's default of boolean settings, the value that they must have.
    :param consequences: what would happen otherwise, by setting.
    :raises DatasetError: one has the other value.
    """
    for name, held in spark_versions.settings_named(
        spark, dict.fromkeys(consequences, default)
    ).items():
        if (actual := held.lower()) != default:
            message = f"dataset '{ref.name}': this Spark session has {name}={actual}, so "
            hint = f"set {name}={default}, at least for the gate"
            raise DatasetError(message + consequences[name], hint)


_INSTEAD = {
    "Delta": "set format=delta and the path of the table",
    "Iceberg": "set format=iceberg and the path of the table, or give it as a catalog table",
    "Hudi": "give it as a catalog table",
}
"""The description of a table instead of the format of its files."""


def nothing_there(ref: DatasetRef, path: str) -> DatasetError:
    kind = "Delta table" if ref.format == "delta" else f"{ref.format} file"
    problem = f"dataset '{ref.name}': no {kind} at {path}"
    formats = {format_of(file.path) for file in files_at(path) or ()}
    if len(formats) == 1 and (actual := formats.pop()) not in (None, ref.format):
        return DatasetError(f"{problem}, its files are {actual}", f"set format={actual}")
    return DatasetError(problem, "correct the path, or run the task that writes it first")


def of_table(ref: DatasetRef, path: str, table: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': the {ref.format} files at {path} belong to a table of {table}: "
        "they include replaced and deleted files",
        _INSTEAD[table],
    )


def unreadable(spark: SparkSession, ref: DatasetRef, error: PySparkException) -> DatasetError:
    """Why a dataset cannot be read, in the user's words instead of Spark's."""
    condition = spark_versions.condition_of(error)
    if ref.path is not None and condition in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
        return nothing_there(ref, absolute(ref.path))
    if condition == "DATA_SOURCE_NOT_FOUND" or "Failed to find data source" in first_line(error):
        kind = ref.format if ref.path is not None else "delta"
        package = package_for(spark, kind)
        return DatasetError(
            f"dataset '{ref.name}': this Spark session cannot read {kind}; {package}"
        )
    if (
        objection := spark_versions.objection_to_types(spark, ref.schema or str(error))
    ) is not None:
        return DatasetError(f"dataset '{ref.name}' cannot be read: {objection}")
    if condition == "COLUMN_ALREADY_EXISTS":
        column = (error.getMessageParameters() or {}).get("columnName", "").strip("`")
        return DatasetError(
            f"dataset '{ref.name}' has a duplicate column '{column}' (names are case-insensitive)",
            "rename one of them, or set spark.sql.caseSensitive=true",
        )
    problem = located(ref, explain(error))
    return DatasetError(f"dataset '{ref.name}' cannot be read: {problem}", f"check {ref.location}")


def package_for(spark: SparkSession, kind: str) -> str:
    """The package that lets a session read a format."""
    package = spark_versions.package_of(kind, spark.version)
    return f'give the gate packages="{package}"' if package else "give the gate its package"


def lost_file(ref: DatasetRef, entry: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': the log of the Delta table lists {entry}",
        "restore the file, or choose a version whose files all exist",
    )


def require_one_spelling(
    ref: DatasetRef,
    column: DateColumn | None,
    dates: Collection[date | None],
    texts: Collection[object],
) -> None:
    """Rejects a partition that is a requested date in another form than that of the date column.

    :param texts: the values of the partitions.
    :raises DatasetError: there is one.
    """
    for on in dates:
        if on is None or column is None:
            continue
        for text in texts:
            if isinstance(text, str) and column.is_misspelled(on, text):
                raise DatasetError(
                    f"dataset '{ref.name}': the partition {column.name}={text} is {on} in another "
                    f"form than {column.value(on)}: no date has its rows",
                    f"rewrite it as {column.name}={column.value(on)}",
                )


def too_early(ref: DatasetRef, place: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': {place} has no version as old as {ref.timestamp}",
        "give it a later timestamp",
    )
