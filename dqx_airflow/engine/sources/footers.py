"""What the footers of Parquet and ORC files say: their columns, and whether the way in which they
are read loses values.

Spark reads all files with the columns of one of them. For a value in an ORC file that is not of its
column's type, it returns NULL or another number. And if both folders and files have a column, it
reads only that of the folders. So the footers of all files of a date are read, by several threads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import date
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, FileType
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from dqx_airflow.engine.sources.listing import DataFile, partition_names, read_each
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.types import decimal_size, fields_of, parts_of, spelled_like
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


def has_footers(format: str) -> bool:
    """True for a format in which each file has its own columns."""
    return format in _SCHEMA_IN


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
    """True if an option or the session asks for the columns of all files."""
    name = "mergeSchema"
    option = {key.casefold(): value for key, value in ref.options}.get(name.casefold())
    return (option or spark.conf.get(f"spark.sql.{ref.format}.{name}")).lower() == "true"


def schema_as_written(path: str, files: Sequence[DataFile]) -> StructType | None:
    """The schema that Spark finds for the files at a path, if Spark wrote them.

    Spark would start a job to read the footer of the first file. None if the result could differ:
    Spark did not write the file, there is a summary file, or folders have one of its columns, whose
    type Spark takes from them.
    """
    try:
        system, root = FileSystem.from_uri(path)
        beside = [info.type for info in system.get_file_info([f"{root}/{s}" for s in _SUMMARIES])]
        if not files or any(kind is not FileType.NotFound for kind in beside):
            return None
        footer = pq.read_metadata(files[0].path, filesystem=system)
        written = (footer.metadata or {}).get(_WRITTEN_BY_SPARK)
        struct = None if written is None else StructType.fromJson(json.loads(written))
    except (OSError, ValueError, LookupError, TypeError, pa.ArrowException, *_NO_CLASS):
        return None
    folders = {name.casefold() for name in partition_names(files)}
    is_in_both = struct is not None and not folders.isdisjoint(map(str.casefold, struct.names))
    return None if is_in_both else struct


def require_orc_types(
    ref: DatasetRef, struct: StructType, path: str, files: Sequence[DataFile]
) -> None:
    """Rejects ORC files with a column that would lose values when read.

    :raises DatasetError: there is one.
    """
    read = {field.name: field.dataType.simpleString() for field in struct.fields}
    folders = partition_names(files)
    for file, columns in columns_in(path, "orc", files).items():
        for field in columns.values():
            name = spelled_like(field.name, read)
            if name is None:
                continue
            if spelled_like(field.name, folders) is not None:
                raise _in_file_and_folder(ref, name, file)
            if not _holds(read[name], field.type):
                raise DatasetError(
                    f"dataset '{ref.name}': column '{name}' is of type {field.type} in {file}, but "
                    f"would be read as {read[name]}: mismatches would become NULL",
                    "write the files with one type, or declare the wider one in its schema",
                )


def require_folders_as_in_files(ref: DatasetRef, path: str, files: Sequence[DataFile]) -> None:
    """Rejects Parquet files with a column of their folders, unless its value is the same.

    :raises DatasetError: there is one.
    """
    folders = partition_names(files)
    if not folders:
        return

    def disagreeing(system: FileSystem, file: DataFile) -> str | None:
        try:
            footer = pq.read_metadata(file.path, filesystem=system)
        except (OSError, ValueError, pa.ArrowException):
            return None  # Spark reports what is wrong with it
        in_both = (n for n in footer.schema.names if spelled_like(n, folders) is not None)
        return next((n for n in in_both if not _has_value(footer, n, _folder(file.path, n))), None)

    for file, column in zip(files, read_each(path, files, disagreeing), strict=True):
        if column is not None:
            raise _in_file_and_folder(ref, column, file.path)


def _in_file_and_folder(ref: DatasetRef, column: str, file: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': column '{column}' is in {file}, and in the name of its folder, "
        "which alone would be read",
        "remove the column from the files, or write the same value there",
    )


def _holds(read: str, stored: str) -> bool:
    """True if every value of the stored type is a value of the type that is read.

    Fields that only one of two structs has are not compared.
    """
    read, stored = _ALIKE.get(read, read), _ALIKE.get(stored, stored)
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


def _has_value(footer: pq.FileMetaData, column: str, folder: str | None) -> bool:
    """True if a column has the value of a folder in all rows, according to the statistics."""
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for position in range(group.num_columns):
            chunk = group.column(position)
            if chunk.path_in_schema != column:
                continue
            statistics = chunk.statistics
            if statistics is None or not statistics.has_min_max or statistics.null_count:
                return False
            if not (_is_written(statistics.min, folder) and _is_written(statistics.max, folder)):
                return False
    return True


def _is_written(value: Any, folder: str | None) -> bool:
    if isinstance(value, int) and folder is not None:
        return folder.lstrip("+-").isdigit() and int(folder) == value
    return folder == (value.isoformat() if isinstance(value, date) else str(value))


def _folder(path: str, column: str) -> str | None:
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals and unquote(name).casefold() == column.casefold():
            return unquote(value)
    return None
