"""Parquet files in folders that are partitions (`ds=2024-03-02`), for Sail.

Sail takes the values in the names of folders for strings. So the files of each folder are read
without them, and the values are added here, with the type that Spark infers from all folders. Only
strings of which that type is certain are read: dates, whole numbers of at most nine digits, and
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegerType, StringType, StructField, StructType

from dqx_airflow.engine.session.sail import INSTEAD, union_of
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.sources import footers
from dqx_airflow.engine.sources.listing import DataFile, DatasetFiles, partition_root, paths_of
from dqx_airflow.engine.sources.partition_values import NO_VALUE, literal
from dqx_airflow.engine.sources.source_errors import unreadable
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values import DatasetRef

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
_WORD = re.compile(r"(?!NaN$|Infinity$|[Tt]\d)[A-Za-z_][ -~]*", re.ASCII)
"""Strings that are neither numbers nor times to Java."""
_MOST_FOLDERS = 2_000
"""How many folders are read at once: each is a part of the plan."""


def _as_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def _as_whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _as_word(text: str) -> str | None:
    return text if _WORD.fullmatch(text) else None


_KINDS: tuple[tuple[DataType, Callable[[str], Any]], ...] = (
    (DateType(), _as_date),
    (IntegerType(), _as_whole),
    (StringType(), _as_word),
)
"""The types that are inferred, each with the value of a string, or None."""


@dataclass(frozen=True, slots=True)
class FolderColumn:
    """A column in the names of folders, with its values by their strings."""

    name: str
    type: DataType
    values: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, texts: Collection[str]) -> FolderColumn | None:
        """The column with the type that Spark infers from strings; None if that is not certain."""
        for kind, value_of in _KINDS:
            values = {text: value_of(text) for text in texts if text != NO_VALUE}
            if values and None not in values.values():
                return cls(name, kind, {**values, NO_VALUE: None})
        return None


def _partition_of(file: DataFile) -> tuple[tuple[str, str], ...]:
    """The columns in the folders of a file, each with its string."""
    pairs = (part.split("=", 1) for part in file.path.split("/")[:-1] if "=" in part)
    return tuple((unquote(name), unquote(text)) for name, text in pairs)


@dataclass(frozen=True)
class SailFolders:
    """Parquet files in folders, and how they are read on Sail.

    :param in_files: the columns of the first file.
    """

    source: DatasetFiles
    in_files: StructType
    columns: tuple[FolderColumn, ...]

    @classmethod
    def of(cls, source: DatasetFiles, first_schema: StructType | None) -> SailFolders:
        """The files of a dataset.

        :param first_schema: the schema of the first file; None if it is unknown.
        :raises DatasetError: Spark may read other values from the folders.
        """
        ref = source.ref
        texts: dict[str, dict[str, None]] = {}
        partitions = [_partition_of(file) for file in source.listed]
        names = [name for name, _ in partitions[0]]
        for partition in partitions:
            if [name for name, _ in partition] != names:
                raise _refused(ref, "folders that name different columns")
            for name, text in partition:
                texts.setdefault(name, {})[text] = None
        columns = []
        for name, found in texts.items():
            column = FolderColumn.of(name, found)
            if column is None:
                raise _refused(ref, f"the values of {name} in the names of folders")
            columns.append(column)
        if len({name.casefold() for name in names}) < len(names):
            raise _refused(ref, f"several folders that name {names[0]}")
        in_first = footers.columns_in(source.path, "parquet", source.listed[:1])
        own = in_first.get(source.listed[0].path)
        if first_schema is None or own is None:
            raise _refused(ref, "files that cannot be listed from here")
        both = [name for name in names if name.lower() in own]
        if both:
            raise _refused(ref, f"{both[0]}, which is in the files and in the names of folders,")
        folders = {name.casefold() for name in names}
        in_files = [one for one in first_schema.fields if one.name.casefold() not in folders]
        return cls(source, StructType(in_files), tuple(columns))

    @property
    def struct(self) -> StructType:
        """The columns of the dataset: first those of the files."""
        in_folders = [StructField(column.name, column.type) for column in self.columns]
        return StructType([*self.in_files.fields, *in_folders])

    def read(self, files: Collection[DataFile]) -> DataFrame:
        """The rows of some of the files.

        :raises DatasetError: they cannot be read, or have a column of another type.
        """
        source = self.source
        try:
            with spark_failures():
                return self._frame(files)
        except PySparkException as error:
            raise unreadable(source.spark, source.ref, error) from error

    def check(self, files: Iterable[DataFile]) -> None:
        """Rejects files with a column of another type than in the first file.

        :raises DatasetError: there is one.
        """
        source = self.source
        footers.require_types_of_first(source.ref, source.path, source.listed[0], [*files])

    def _frame(self, files: Collection[DataFile]) -> DataFrame:
        source = self.source
        by_partition: dict[tuple[tuple[str, str], ...], list[DataFile]] = {}
        for file in files:
            by_partition.setdefault(_partition_of(file), []).append(file)
        if len(by_partition) > _MOST_FOLDERS:
            found = f"{len(by_partition):,} folders are too many for Sail"
            raise DatasetError(
                f"dataset '{source.ref.name}': {found}, which reads {_MOST_FOLDERS:,}",
                f"give the dataset a date_column that is one of the folders, or {INSTEAD}",
            )
        frames = [self._part(partition, own) for partition, own in by_partition.items()]
        if not frames:
            return source.spark.createDataFrame([], self.struct)
        return union_of(frames, self.struct.names)

    def _part(self, partition: Iterable[tuple[str, str]], files: Collection[DataFile]) -> DataFrame:
        """The rows of the files of one partition."""
        source = self.source
        base = partition_root(source.path) or source.path
        reader = source.strict_reader().schema(self.in_files).option("basePath", base)
        frame = reader.load(paths_of(source.path, files))
        texts = dict(partition)
        for column in self.columns:
            value = literal(column.values[texts[column.name]], column.type)
            frame = frame.withColumn(column.name, value)
        return frame.select(*(F.expr(quote_name(name)) for name in self.struct.names))


def _refused(ref: DatasetRef, what: str) -> DatasetError:
    message = f"dataset '{ref.name}': Sail reads {what} differently from Spark"
    return DatasetError(message, INSTEAD)
