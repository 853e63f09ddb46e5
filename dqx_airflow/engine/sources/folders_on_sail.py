"""Parquet files in folders that are partitions (`ds=2024-03-02`), for Sail.

Sail takes the values in the names of folders for strings. So the files of each folder are read
without them, and the values are added here, with the type that Spark infers from all folders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from dqx_airflow.engine.session.sail import INSTEAD, union_of
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.sources import footers
from dqx_airflow.engine.sources.folder_columns import (
    FolderColumn,
    UncertainFoldersError,
    columns_of_folders,
    without_folders,
)
from dqx_airflow.engine.sources.listing import DataFile, DatasetFiles, paths_of
from dqx_airflow.engine.sources.partition_folders import Partition
from dqx_airflow.engine.sources.partition_values import literal
from dqx_airflow.engine.sources.source_errors import unreadable
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_path
from dqx_airflow.values import DatasetRef

_MOST_FOLDERS = 2_000
"""How many folders are read at once: each is a part of the plan."""


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
        in_first = footers.columns_in(source.path, "parquet", source.listed[:1])
        own = in_first.get(source.listed[0].path)
        if first_schema is None or own is None:
            raise _refused(ref, "files that cannot be listed from here")
        try:
            columns = columns_of_folders(source.partitions, own.keys())
        except UncertainFoldersError as error:
            raise _refused(ref, str(error)) from None
        return cls(source, without_folders(first_schema, columns), columns)

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
        by_partition: dict[Partition, list[DataFile]] = {}
        for file in files:
            partition = source.partitions.partition_of(file.path.rpartition("/")[0])
            by_partition.setdefault(partition, []).append(file)
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

    def _part(self, partition: Partition, files: Collection[DataFile]) -> DataFrame:
        """The rows of the files of one partition."""
        source = self.source
        reader = source.reader_of_some().schema(self.in_files)
        frame = reader.load(paths_of(source.path, files))
        texts = dict(partition)
        for column in self.columns:
            value = literal(column.values[texts[column.name]], column.type)
            frame = frame.withColumn(column.name, value)
        return frame.select(*map(quote_path, self.struct.names))


def _refused(ref: DatasetRef, what: str) -> DatasetError:
    message = f"dataset '{ref.name}': Sail reads {what} differently from Spark"
    return DatasetError(message, INSTEAD)
