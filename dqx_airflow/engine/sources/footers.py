"""Checks the footers of Parquet and ORC files against the way in which they are read.

For a value in an ORC file that is not of its column's type, Spark returns NULL or another number.
And if both folders and files have a column, it reads only that of the folders.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql.types import StructType

from dqx_airflow.engine.sources.listing import DataFile, partition_names, read_each
from dqx_airflow.engine.sources.schema_drift import columns_in
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.types import decimal_size, spelled_like
from dqx_airflow.values import DatasetRef

MOST_FILES = 1_000
"""The maximum number of files whose footers are read, newest first."""

_WIDER = ("tinyint", "smallint", "int", "bigint")
_ALIKE = {"timestamp_ntz": "timestamp", "float": "double", "void": "string"}
_NESTED = re.compile(r"^(struct|array|map)<")


def require_orc_types(
    ref: DatasetRef, struct: StructType, path: str, files: Sequence[DataFile]
) -> None:
    """Rejects ORC files with a column that would lose values when read.

    :raises DatasetError: there is one.
    """
    read = {field.name: field.dataType.simpleString() for field in struct.fields}
    folders = partition_names(files)
    for file, columns in columns_in(path, "orc", _newest(files)).items():
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
    try:
        system, _ = FileSystem.from_uri(path)
        first = pq.read_schema(files[0].path, filesystem=system)
    except (OSError, ValueError, pa.ArrowException):
        return  # Spark reports what is wrong with it
    in_both = [name for name in first.names if spelled_like(name, folders) is not None]
    if not in_both:
        return

    def disagrees(system: FileSystem, file: DataFile) -> bool:
        try:
            footer = pq.read_metadata(file.path, filesystem=system)
        except (OSError, ValueError, pa.ArrowException):
            return False
        return not all(_has_value(footer, name, _folder(file.path, name)) for name in in_both)

    newest = _newest(files)
    for file, wrong in zip(newest, read_each(path, newest, disagrees), strict=True):
        if wrong:
            raise _in_file_and_folder(ref, in_both[0], file.path)


def _in_file_and_folder(ref: DatasetRef, column: str, file: str) -> DatasetError:
    return DatasetError(
        f"dataset '{ref.name}': column '{column}' is in {file}, and in the name of its folder, "
        "which alone would be read",
        "remove the column from the files, or write the same value there",
    )


def _newest(files: Sequence[DataFile]) -> list[DataFile]:
    return sorted(files, key=lambda file: -file.modified_ns)[:MOST_FILES]


def _holds(read: str, stored: str) -> bool:
    """True if every value of the stored type is a value of the type that is read."""
    read, stored = _ALIKE.get(read, read), _ALIKE.get(stored, stored)
    if read == stored or (_NESTED.match(read) and _NESTED.match(stored)):
        return read.split("<")[0] == stored.split("<")[0]
    if read in _WIDER and stored in _WIDER:
        return _WIDER.index(read) >= _WIDER.index(stored)
    if read.startswith("decimal") and stored.startswith("decimal"):
        (digits, scale), (its_digits, its_scale) = decimal_size(read), decimal_size(stored)
        return scale >= its_scale and digits - scale >= its_digits - its_scale
    return read.startswith(("char", "varchar")) and stored == "string"


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
