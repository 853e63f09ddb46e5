"""Reads the footers of Parquet and ORC files: their columns, and whether Spark's reader would lose
values.

Spark reads all files with the columns of one file. For a value in an ORC file that is not of its
column's type, it returns NULL or another number. And if both folders and files have a column, it
reads only the value of the folders. So the footers of all files of a date are read, by several
threads.

Columns that some files of a dataset lack, or have in addition: Spark uses the columns of one
file.

The other files are read as if they had the same: missing columns and fields of structs are NULL,
new ones are ignored. Assertions about columns use the columns of the files of the date.

Parquet files with types that Spark cannot read, read as the numbers that they store.

Timestamps in nanoseconds, which pandas writes, are converted to microseconds, and times of day to
strings: `06:30:00.000000`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, FileType
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from dqx_airflow.datasets.reader_options import option_of
from dqx_airflow.engine.session.spark_versions import type_named
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile, DatasetFiles, ListedFiles, read_each
from dqx_airflow.engine.sources.parquet_types import Misread, ReadColumns
from dqx_airflow.engine.sources.partition_folders import PartitionFolders
from dqx_airflow.engine.sources.partition_values import IN_BOTH, IN_BOTH_HINT, NO_VALUE
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import (
    LONGEST_DECIMAL,
    decimal_size,
    fields_of,
    parts_of,
    spelled_like,
)
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetField, DatasetRef

_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
"""Types that hold all values of those before them."""
_ALIKE = {"timestamp_ntz": "timestamp", "void": "string"}
_NESTED = re.compile(r"^(struct|array|map)<")
_WRITTEN_BY_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_NO_CLASS = (ImportError, AttributeError)
"""A user-defined type of Python may no longer exist."""
_SUMMARIES = ("_common_metadata", "_metadata")
"""Summary files beside the data that Spark reads first."""


def _of_parquet(system: FileSystem, path: str) -> pa.Schema:
    return pq.read_schema(path, filesystem=system)


def _of_orc(system: FileSystem, path: str) -> pa.Schema:
    from pyarrow import orc

    with system.open_input_file(path) as file:
        return orc.ORCFile(file).schema


_SCHEMA_IN = MappingProxyType({"parquet": _of_parquet, "orc": _of_orc})
"""Reads the columns of a file, for the formats in which each file has its own."""


def columns_in(
    location: str, format: str, files: Sequence[DataFile], key_of: Callable[[str], str] = str.lower
) -> dict[str, dict[str, DatasetField]]:
    """The columns of each file by its path, and by the keys of their names; without files that
    cannot be read."""
    read = _SCHEMA_IN[format]
    known: dict[bytes, dict[str, DatasetField]] = {}

    def columns(system: FileSystem, file: DataFile) -> dict[str, DatasetField] | None:
        try:
            schema = read(system, file.path).remove_metadata()
        except (OSError, ValueError, pa.ArrowException):
            return None
        # The files of a dataset are mostly alike, and a type is slower to convert than to compare.
        text = schema.serialize().to_pybytes()
        if text not in known:
            known[text] = {key_of(f.name): DatasetField(f.name, _type(f.type)) for f in schema}
        return known[text]

    schemas = zip(files, read_each(location, files, columns), strict=True)
    return {file.path: columns for file, columns in schemas if columns is not None}


def _type(kind: Any) -> str:
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        return str(from_arrow_type(kind).simpleString())
    except PySparkException:
        return str(kind)


def merges_schemas(spark: SparkSession, ref: DatasetRef) -> bool:
    """True if an option or a setting of the session requests the columns of all files."""
    name = "mergeSchema"
    option = option_of(ref, name) or spark.conf.get(f"spark.sql.{ref.format}.{name}")
    return option.lower() == "true"


def has_summary(path: str) -> bool:
    """True for files with a summary beside them, from which Spark takes the columns of all; also if
    that is unknown."""
    try:
        system, root = FileSystem.from_uri(path)
        beside = system.get_file_info([f"{root}/{name}" for name in _SUMMARIES])
    except (OSError, ValueError):
        return True
    return any(info.type is not FileType.NotFound for info in beside)


def schema_as_written(
    path: str, files: Sequence[DataFile], folders: Iterable[str]
) -> StructType | None:
    """The schema that Spark finds for the files at a path, if Spark wrote them.

    Spark would start a job to read the footer of the first file. None if the result could differ:
    Spark did not write the file, there is a summary file, or folders have one of its columns, whose
    type Spark takes from them.

    :param folders: the columns in their names.
    """
    if not files or has_summary(path):
        return None
    try:
        system, _ = FileSystem.from_uri(path)
        footer = pq.read_metadata(files[0].path, filesystem=system)
        written = (footer.metadata or {}).get(_WRITTEN_BY_SPARK)
        struct = None if written is None else StructType.fromJson(json.loads(written))
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException, *_NO_CLASS):
        return None
    in_folders = {name.casefold() for name in folders}
    is_in_both = struct is not None and not in_folders.isdisjoint(map(str.casefold, struct.names))
    return None if is_in_both else struct


def read_unlike_spark(path: str, file: DataFile) -> str | None:
    """The first column of a Parquet file that Spark did not write which has another type on Sail:
    moments of INT96, some types of Arrow, and types that Spark does not read, or not all of; None
    without one.

    :raises DatasetError: it has no footer, or a broken one, at which a Sail server may end.
    """
    try:
        schema = pq.read_metadata(file.path, filesystem=FileSystem.from_uri(path)[0]).schema
    except (OSError, ValueError, pa.ArrowException) as error:
        message = f"{file.path} cannot be read: {first_line(error)}"
        raise DatasetError(message, "remove it, or write it again") from error
    for held in map(schema.column, range(len(schema))):
        is_unread = held.logical_type.type in ("TIME", "UUID") or (held.precision or 0) > 38
        if held.physical_type == "INT96" or is_unread:
            return str(held.path)
    for column in schema.to_arrow_schema():
        if any(map(_is_otherwise_on_sail, (column.type, *_parts(column.type)))):
            return str(column.name)
    return None


def _is_otherwise_on_sail(kind: pa.DataType) -> bool:
    """True for a type of Arrow that Spark reads as the type that Parquet stores: a whole number for
    a duration, or for nothing but NULL, and a string for a categorical of pandas."""
    is_stored = pa.types.is_duration(kind) or pa.types.is_null(kind)
    return bool(is_stored or pa.types.is_dictionary(kind))


def require_same_columns(ref: DatasetRef, path: str, files: Sequence[DataFile]) -> None:
    """Rejects Parquet files of which some have other columns, for an engine that merges none.

    :raises DatasetError: there are such files, or one that cannot be read.
    """
    try:
        schemas = [schema.remove_metadata() for schema in read_each(path, files, _schema)]
    except (OSError, ValueError, pa.ArrowException) as error:
        message = f"dataset '{ref.name}': parquet cannot be read: {first_line(error)}"
        raise DatasetError(message, "remove the file, or write it again") from error
    for file, schema in zip(files, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise DatasetError(
                f"dataset '{ref.name}': {file.path} has other columns than {files[0].path}, which "
                "Sail may merge differently from Spark",
                "run this gate on Spark, or write the files with the same columns",
            )


def require_types_of_first(
    ref: DatasetRef, path: str, first: DataFile, files: Sequence[DataFile]
) -> None:
    """Rejects Parquet files with a column that has another type or spelling in the first file, for
    an engine that would cast it. A column may be missing.

    :raises DatasetError: there is one, or a file that cannot be read.
    """
    try:
        schemas = read_each(path, [first, *files], _schema)
    except (OSError, ValueError, pa.ArrowException) as error:
        message = f"dataset '{ref.name}': parquet cannot be read: {first_line(error)}"
        raise DatasetError(message, "remove the file, or write it again") from error
    due = {field.name.casefold(): field for field in schemas[0]}
    for file, schema in zip(files, schemas[1:], strict=True):
        for field in schema:
            wanted = due.get(field.name.casefold(), field)
            if (field.name, field.type) != (wanted.name, wanted.type):
                raise DatasetError(
                    f"dataset '{ref.name}': column '{field.name}' of {file.path} is "
                    f"'{wanted.name}' of type {wanted.type} in {first.path}, which Sail may read "
                    "differently from Spark",
                    "run this gate on Spark, or write the files with the same columns",
                )


_NOTED = ("timestamp_ntz", "interval")
"""Types that ORC does not have: Spark writes numbers, and notes beside them what they are."""


def require_orc_types(
    ref: DatasetRef,
    struct: StructType,
    path: str,
    files: Sequence[DataFile],
    folders: Collection[str],
) -> None:
    """Rejects ORC files with a column that would lose values when read.

    :param folders: the columns in the names of folders.
    :raises DatasetError: there is one.
    """
    read = {field.name: field.dataType.simpleString() for field in struct.fields}
    for file, columns in columns_in(path, "orc", files).items():
        for field in columns.values():
            name = spelled_like(field.name, read)
            if name is None:
                continue
            if spelled_like(field.name, folders) is not None:
                raise in_file_and_folder(ref, name, file)
            if field.type in ("int", "bigint") and read[name].startswith(_NOTED):
                raise DatasetError(
                    f"dataset '{ref.name}': column '{name}' is of type {field.type} in {file}, and "
                    f"Spark reads it as {read[name]} by a note in a file, which others may lack",
                    f"declare '{name}' as {field.type} in its schema, or write Parquet",
                )
            if not _holds(read[name], field.type):
                raise DatasetError(
                    f"dataset '{ref.name}': column '{name}' is of type {field.type} in {file}, but "
                    f"would be read as {read[name]}: mismatches would become NULL",
                    "write the files with one type, or declare the wider one in its schema",
                )


def require_read_as_written(
    ref: DatasetRef,
    path: str,
    files: Sequence[DataFile],
    read: ReadColumns,
    partitions: PartitionFolders,
    *,
    reads_half_floats: bool,
) -> None:
    """Rejects Parquet files of which Spark would read other values than they hold: of a column of
    another type, or of one that the names of their folders have with another value. Each footer is
    read once.

    :param reads_half_floats: False for a Spark that reads no file with one (`READS_HALF_FLOATS`).
    :raises DatasetError: there is one.
    """
    folders = partitions.names

    def problem(system: FileSystem, file: DataFile) -> DatasetError | None:
        try:
            footer = pq.read_metadata(file.path, filesystem=system)
            columns = read.compared(footer.schema)
            for name in columns.names:
                if spelled_like(name, folders) is None:
                    continue
                folder = partitions.text_of(file.path.rpartition("/")[0], name)
                if not _has_value(system, file, footer, name, folder):
                    return in_file_and_folder(ref, name, file.path)
        except (OSError, ValueError, pa.ArrowException):
            return None  # Spark reports what is wrong with it
        if columns.half_float is not None and not reads_half_floats:
            return _unreadable_for_half_floats(ref, columns.half_float, file.path)
        for misread in columns.misread:
            if spelled_like(misread.column, folders) is None:
                return _read_as_others(ref, misread, file.path)
        return None

    for found in read_each(path, files, problem):
        if found is not None:
            raise found


READS_HALF_FLOATS = "4.0"
"""The first Spark whose reader of Parquet knows the type, and does not fail at the footer."""


def _unreadable_for_half_floats(ref: DatasetRef, path: tuple[str, ...], file: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': column '{'.'.join(path)}' is of type float16 in {file}, and a "
        f"Spark before {READS_HALF_FLOATS} reads no file with such a column",
        f"write it as a float, or run the gate on Spark {READS_HALF_FLOATS} or newer",
    )


def half_float_in(source: DatasetFiles) -> DatasetError | None:
    """The error that names the first file with a half float; None without one."""

    def found(system: FileSystem, file: DataFile) -> DatasetError | None:
        schema = pq.read_metadata(file.path, filesystem=system).schema
        path = ReadColumns({}).compared(schema).half_float
        return None if path is None else _unreadable_for_half_floats(source.ref, path, file.path)

    try:
        return next(filter(None, read_each(source.path, source.listed, found)), None)
    except (OSError, ValueError, pa.ArrowException):
        return None  # Spark reports what is wrong with it


def _read_as_others(ref: DatasetRef, misread: Misread, file: str) -> DatasetError:
    name = ".".join(misread.path)
    wider = misread.wider(is_declared=ref.schema is not None)
    declare = f", or declare '{name}' as {wider} in its schema" if wider is not None else ""
    return DatasetError(
        f"dataset '{ref.name}': column '{name}' is of type {misread.stored} in {file}, but would "
        f"be read as {misread.read}, with other values",
        f"write the files with one type{declare}",
    )


def in_file_and_folder(ref: DatasetRef, column: str, file: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': column '{column}' is in {file}, {IN_BOTH}", IN_BOTH_HINT
    )


def _holds(read: str, stored: str) -> bool:
    """True if every value of the stored type is a value of the type that is read.

    Fields that only one of two structs has are not compared.
    """
    read = _ALIKE.get(read, read)
    stored = _ALIKE.get(stored, stored)
    if _NESTED.match(read) and read.split("<")[0] == stored.split("<")[0]:
        if read.startswith("struct<"):
            inside = fields_of(stored)
            spelled = {name: spelled_like(name, inside) for name in fields_of(read)}
            return all(
                _holds(kind, inside[own])
                for name, kind in fields_of(read).items()
                if (own := spelled[name]) is not None
            )
        return all(map(_holds, parts_of(read), parts_of(stored)))
    for types in _WIDER:
        if read in types and stored in types:
            return types.index(read) >= types.index(stored)
    if read.startswith("decimal") and stored.startswith("decimal"):
        (digits, scale), (its_digits, its_scale) = decimal_size(read), decimal_size(stored)
        return scale >= its_scale and digits - scale >= its_digits - its_scale
    return read == stored or (read.startswith(("char", "varchar")) and stored == "string")


def _has_value(
    system: FileSystem, file: DataFile, footer: pq.FileMetaData, column: str, folder: str | None
) -> bool:
    """True if a column has the value of its folder in all rows: according to the statistics, or, if
    they leave that open, in its values."""
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = map(group.column, range(group.num_columns))
        own = [chunk for chunk in chunks if chunk.path_in_schema == column]
        if not group.num_rows or (own and _is_constant(own[0], folder)):
            continue
        if not own:
            return False  # a nested column
        with system.open_input_file(file.path) as opened, pq.ParquetFile(opened) as read:
            values = read.read_row_group(number, [column]).column(column)
        if any(not _is_written(value.as_py(), folder) for value in pc.unique(values)):
            return False
    return True


def _is_constant(chunk: pq.ColumnChunkMetaData, folder: str | None) -> bool:
    """True if all values of a column are the value of a folder, according to the statistics."""
    statistics = chunk.statistics
    # NaN is not among the extremes.
    if statistics is None or not statistics.has_min_max or chunk.physical_type in _FLOATING:
        return False
    is_written = _is_written(statistics.min, folder) and _is_written(statistics.max, folder)
    return is_written and statistics.null_count == 0


_FLOATING = ("FLOAT", "DOUBLE")


def _is_written(value: Any, folder: str | None) -> bool:
    if value is None or folder == NO_VALUE:
        return value is None and folder == NO_VALUE
    if isinstance(value, int) and folder is not None:
        return folder.lstrip("+-").isdigit() and int(folder) == value
    return folder == (value.isoformat() if isinstance(value, date) else str(value))


_FIRST = (
    "files of the date have it, but the first file, which defines the columns, does not; "
    "set the option mergeSchema"
)
_CHOOSE_FILES = ("modifiedafter", "modifiedbefore", "pathglobfilter")
"""Reader options by which Spark skips files that are listed here."""


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """How the columns of files differ from those that Spark reads.

    `missing` maps a column to the path of a file without it, `new` are columns that Spark does not
    read. `reshaped` maps a column with other nested fields in a file to the path of that file and
    the type there. `key_of` maps names of the same column to one.
    """

    missing: Mapping[str, str]
    new: tuple[DatasetField, ...]
    reshaped: Mapping[str, tuple[str, str]]
    key_of: Callable[[str], str] = str.lower

    def __bool__(self) -> bool:
        return bool(self.missing or self.new or self.reshaped)

    @property
    def unread(self) -> dict[str, str]:
        """The reasons why columns are not read, by their names; in lower case unless the session
        distinguishes names by case."""
        return {self.key_of(field.name): _FIRST for field in self.new}

    def in_schema(self, schema: Schema) -> Schema:
        """The columns that all files have, and those that only some have. If a file has other
        nested fields, the column has the type of that file."""
        if not self:
            return schema
        kept = [
            DatasetField(name, self.reshaped[name][1] if name in self.reshaped else kind)
            for name, kind in schema.types.items()
            if name not in self.missing
        ]
        # Suites do not distinguish names by case: one of two such columns is not the other.
        lacking = {name.lower() for name in self.missing}
        new = [field for field in self.new if field.name.lower() not in lacking]
        return Schema.of(schema.dataset, [*kept, *new])

    def difference(self, column: str) -> str | None:
        """A description of the difference of a column, with the file; None without a difference."""
        if column in self.missing:
            return f"{self.missing[column]} is without it"
        if column in self.reshaped:
            path, kind = self.reshaped[column]
            return f"in {path} it is {kind}"
        return None


NO_DRIFT = SchemaDrift(MappingProxyType({}), (), MappingProxyType({}))


def drift_of(spark: SparkSession, dataset: OpenDataset, on: date) -> SchemaDrift:
    """The drift of the files with the rows of a date.

    If schemas are merged, files may differ, and only a column that none of them has is missing.
    Files that cannot be opened are skipped: the scan reports what is wrong with them.
    """
    return _drifts(spark, dataset, {on})[on]


def has_drift(spark: SparkSession, dataset: OpenDataset, dates: Collection[date]) -> bool:
    """True if `drift_of` finds a difference on one of the dates. Each file is read once."""
    return any(_drifts(spark, dataset, dates).values())


def _drifts(
    spark: SparkSession, dataset: OpenDataset, dates: Collection[date]
) -> dict[date, SchemaDrift]:
    ref = dataset.ref
    is_chosen = any(key.casefold() in _CHOOSE_FILES for key, _ in ref.options)
    if ref.format not in _SCHEMA_IN or is_chosen or not dataset.files:
        return dict.fromkeys(dates, NO_DRIFT)
    listed = ListedFiles(dataset.files)
    files = {on: dataset.files_on(on, listed) for on in dates}
    read = dict.fromkeys(file for chosen in files.values() for file in chosen)
    key_of = _keys(spark)
    columns_by_file = columns_in(dataset.location, ref.format, tuple(read), key_of)
    merged = merges_schemas(spark, ref)
    return {
        on: _drift(dataset, chosen, columns_by_file, key_of, merged=merged)
        for on, chosen in files.items()
    }


def _keys(spark: SparkSession) -> Callable[[str], str]:
    """The key function for names of columns: it ignores case unless the session distinguishes
    it."""
    is_exact = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    return str if is_exact else str.lower


def _drift(
    dataset: OpenDataset,
    files: Sequence[DataFile],
    columns_by_file: Mapping[str, Mapping[str, DatasetField]],
    key_of: Callable[[str], str],
    *,
    merged: bool,
) -> SchemaDrift:
    """How the columns in files differ from the columns of a dataset.

    :param columns_by_file: the columns of all files that could be read, by path.
    """
    read_paths = (file.path for file in files if file.path in columns_by_file)
    columns_by_file = {path: columns_by_file[path] for path in read_paths}
    folders = {key_of(name) for name in (dataset.partitions.names if dataset.partitions else ())}
    read = {key_of(name): name for name in dataset.struct.names if key_of(name) not in folders}
    missing: dict[str, str] = {}
    for key, name in read.items():
        without = [path for path, columns in columns_by_file.items() if key not in columns]
        if without and (not merged or len(without) == len(files)):
            missing[name] = without[0]
    new: dict[str, DatasetField] = {}
    # With a declared schema, additional columns in a file are expected.
    if dataset.ref.schema is None:
        for columns in columns_by_file.values():
            for key, field in columns.items():
                if key not in read and key not in folders:
                    new.setdefault(key, field)
    reshaped = {} if merged else _reshaped(dataset, columns_by_file, read)
    return SchemaDrift(missing, tuple(new[key] for key in sorted(new)), reshaped, key_of)


def _reshaped(
    dataset: OpenDataset,
    columns_by_file: Mapping[str, Mapping[str, DatasetField]],
    read: Mapping[str, str],
) -> dict[str, tuple[str, str]]:
    """The columns that lack nested fields in a file: its path, and their type there.

    :param read: the names of the columns that are read, by key.
    """
    is_declared = dataset.ref.schema is not None
    types = dataset.schema.types
    reshaped: dict[str, tuple[str, str]] = {}
    for path, columns in columns_by_file.items():
        for key in columns.keys() & read.keys():
            name = read[key]
            file_type = columns[key].type
            if _is_reshaped(types[name], file_type, more_is_expected=is_declared):
                reshaped.setdefault(name, (path, file_type))
    return reshaped


def _is_reshaped(read: str, file_type: str, *, more_is_expected: bool) -> bool:
    """True if a type does not have the nested fields of the type that is read, whatever their
    types."""
    if read == file_type:
        return False
    expected = dict(_nested_fields(read))
    # In a file, a variant is a struct whose fields depend on its values.
    variants = tuple(
        f"{path}." for path, kind in (("", read), *expected.items()) if kind == "variant"
    )
    existing = {path for path, _ in _nested_fields(file_type) if not path.startswith(variants)}
    return not expected.keys() <= existing or (expected.keys() != existing and not more_is_expected)


def _nested_fields(kind: str, outer: str = "") -> Iterator[tuple[str, str]]:
    """The paths of the fields within a type, in lower case, and their types."""
    inner = fields_of(kind)
    if not inner and kind.startswith(("array<", "map<")):
        inner = {f"<{number}>": part for number, part in enumerate(parts_of(kind))}
    for name, part in inner.items():
        path = f"{outer}.{name.casefold()}"
        yield path, part
        yield from _nested_fields(part, path)


UNREADABLE = (
    *("PARQUET_TYPE_ILLEGAL", "UNSUPPORTED_TIME_TYPE"),
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
)
"""The beginnings of Spark's error conditions."""

_OF_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_UNSIGNED = {
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
}


def read_stored(source: DatasetFiles) -> DataFrame | None:
    """A frame over Parquet files whose schema Spark rejects; None if they cannot be read."""
    if not source.listed or source.folders:
        return None
    try:
        schema = pa.unify_schemas(read_each(source.path, source.listed, _schema))
        fields = [StructField(field.name, _stored(field.type)) for field in schema]
    except (OSError, ValueError, pa.ArrowException, PySparkException):
        return None
    frame = source.strict_reader().schema(StructType(fields)).load(source.place)
    return frame.selectExpr(*(f"{_value(field)} AS {quote_name(field.name)}" for field in schema))


def unreadable_columns(source: DatasetFiles) -> DatasetError | None:
    """The error that names the columns of Parquet files whose types Spark does not read, and the
    schema that leaves them out; None if the files cannot be read, or it is about something else."""
    try:
        schemas = read_each(source.path, source.listed, _schema)
    except (OSError, ValueError, pa.ArrowException):
        return None
    try:
        schema = pa.unify_schemas(schemas)
    except (ValueError, pa.ArrowException):
        schema = schemas[0]  # that other files have other types, Spark reports when it reads them
    refused = []
    kept = []
    for field in schema:
        kinds = (field.type, *_parts(field.type))
        if any(_is_unreadable(kind) or _is_unknown(kind) for kind in kinds):
            refused.append(f"'{field.name}' ({field.type})")
        else:
            kept.append(f"{quote_name(field.name)} {_type(field.type)}")
    if not refused:
        return None
    ref = source.ref
    return DatasetError(
        f"dataset '{ref.name}': {source.path} has columns of types that Spark does not read: "
        f"{', '.join(refused)}",
        f'read the other columns: schema="{", ".join(kept)}"' if kept else "write other types",
    )


def _is_unknown(kind: pa.DataType) -> bool:
    """True for a type of which Spark has no counterpart."""
    if pa.types.is_float16(kind):
        return True
    return pa.types.is_decimal(kind) and int(kind.precision) > LONGEST_DECIMAL


def _schema(system: FileSystem, file: DataFile) -> pa.Schema:
    return pq.read_schema(file.path, filesystem=system)


def _stored(kind: pa.DataType) -> DataType:
    """The Spark type as which values are read.

    :raises PySparkException: there is none.
    :raises ValueError: it is nested, and contains one of those types.
    """
    from pyspark.sql.pandas.types import from_arrow_type

    if pa.types.is_time32(kind):
        return IntegerType()
    if pa.types.is_time64(kind) or _is_nanos(kind):
        return LongType()
    if kind in _UNSIGNED:
        return type_named(_UNSIGNED[kind])
    if any(map(_is_unreadable, _parts(kind))) or any(map(_is_unknown, (kind, *_parts(kind)))):
        raise ValueError(f"{kind} cannot be read in parts")
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def _parts(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types nested in a type, at any depth."""
    for number in range(kind.num_fields):
        part = kind.field(number).type
        yield part
        yield from _parts(part)


def _is_unreadable(kind: pa.DataType) -> bool:
    return pa.types.is_time(kind) or _is_nanos(kind) or kind in _UNSIGNED


def _value(field: pa.Field) -> str:
    """The value of a column, from the stored one, as Spark SQL."""
    column = quote_name(field.name)
    kind = field.type
    if pa.types.is_time(kind):
        timestamp = _timestamp(column, kind.unit)
        return f"date_format({timestamp}, 'HH:mm:ss.SSSSSS')"
    if not _is_nanos(kind):
        return column
    return (
        _timestamp(column, "ns")
        if kind.tz is None
        else f"timestamp_micros({_micros(column, 'ns')})"
    )


def _is_nanos(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _micros(column: str, unit: str) -> str:
    """Whole microseconds, rounded down."""
    units = _OF_A_SECOND[unit]
    if units <= _OF_A_SECOND["us"]:
        return f"(CAST({column} AS BIGINT) * {_OF_A_SECOND['us'] // units})"
    part = units // _OF_A_SECOND["us"]
    return f"(({column} - pmod({column}, {part})) div {part})"


def _timestamp(column: str, unit: str) -> str:
    """A timestamp without a zone."""
    epoch = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
    return f"timestampadd(MICROSECOND, {_micros(column, unit)}, {epoch})"
