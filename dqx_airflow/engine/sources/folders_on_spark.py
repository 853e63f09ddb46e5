"""Parquet files in folders that are partitions (`ds=2024-03-02`), for Spark.

Spark lists all folders before it reads one, a million files for a minute and a half. So, where it
is certain which columns it would find, it is given the folders of the dates alone. It lists them
when they are read. So that all reads of a run have the same files, those that came after the
dataset was opened are left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.session.spark_versions import settings_named
from dqx_airflow.engine.sources import footers
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.folder_columns import (
    UncertainFoldersError,
    columns_of_folders,
    without_folders,
)
from dqx_airflow.engine.sources.listing import DatasetFiles, paths_for_spark, paths_of
from dqx_airflow.engine.sources.source_errors import unreadable
from dqx_airflow.metrics.types import spelled_like

_INFERS_TYPES = "spark.sql.sources.partitionColumnTypeInference.enabled"
_MOST_FOLDERS = 1_000
"""How many folders are given to Spark one by one."""


@dataclass(frozen=True)
class SparkFolders:
    """Parquet files in folders, and how the rows of some dates are read.

    :param struct: the columns of the dataset: first those of the files.
    """

    source: DatasetFiles
    struct: StructType
    dates: DateColumn
    _frames: dict[tuple[str, ...], DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, source: DatasetFiles, written: StructType | None) -> SparkFolders | None:
        """The files of a dataset; None if its date is not in their folders, or Spark could find
        other columns in all of them.

        :param written: the schema that Spark wrote into the first file.
        """
        ref, spark = source.ref, source.spark
        if ref.date_column is None or spelled_like(ref.date_column, source.folders) is None:
            return None
        if ref.options or ref.schema is not None or footers.merges_schemas(spark, ref):
            return None
        if settings_named(spark, {_INFERS_TYPES: "true"})[_INFERS_TYPES].lower() != "true":
            return None
        first = source.listed[:1]
        own = footers.columns_in(source.path, "parquet", first).get(first[0].path)
        places = paths_of(source.path, first)
        if own is None or not places or footers.has_summary(source.path):
            return None
        try:
            columns = columns_of_folders(source.partitions, own.keys())
            with spark_failures():
                reader = source.reader_of_some()
                found = (reader if written is None else reader.schema(written)).load(places).schema
                in_files = without_folders(found, columns)
                in_folders = [StructField(column.name, column.type) for column in columns]
                declared = StructType([*in_files.fields, *in_folders])
                struct = source.reader_of_some().schema(declared).load(places).schema
        except (UncertainFoldersError, PySparkException):
            return None  # Spark finds, or says, it in all files
        if found.names != struct.names:
            return None
        dates = DateColumn.of(ref, struct)
        return None if dates is None else cls(source, struct, dates)

    def read(self, dates: Collection[date | None]) -> DataFrame:
        """The rows of some dates, of the files that were there when the dataset was opened. Where
        they are in most of the folders, these are all of the rows.

        :raises DatasetError: they cannot be read.
        """
        source = self.source
        folders = source.partitions.folders
        chosen = tuple(filter(source.partitions.lead_to(self.dates, dates), folders))
        if len(chosen) > min(_MOST_FOLDERS, len(folders) // 2):
            chosen = tuple(folders)
        if chosen not in self._frames:
            try:
                with spark_failures():
                    self._frames[chosen] = self._frame(chosen)
            except PySparkException as error:
                raise unreadable(source.spark, source.ref, error) from error
        return self._frames[chosen]

    def _frame(self, chosen: Collection[str]) -> DataFrame:
        source = self.source
        if not chosen:
            return source.spark.createDataFrame([], self.struct)
        is_all = len(chosen) == len(source.partitions.folders)
        places = [source.place] if is_all else paths_for_spark(source.path, chosen)
        frame = source.reader_of_some().schema(self.struct).load(places)
        files = source.by_folder.in_folders({*chosen}.__contains__)
        if len(frame.inputFiles()) <= len(files):
            return frame  # a file that is gone is found at the end
        return source.reader_of_some().schema(self.struct).load(paths_of(source.path, files))
