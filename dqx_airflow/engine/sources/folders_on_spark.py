"""Parquet files in folders that are partitions (`ds=2024-03-02`), for Spark.

Spark lists all folders before it reads one, a million files for a minute and a half. So, where it
is certain which columns it would find, it is given the folders of the dates alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
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
from dqx_airflow.engine.sources.listing import DatasetFiles, folders_for_spark, partition_root
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
        places = folders_for_spark(source.path, [first[0].path])
        if own is None or not places:
            return None
        try:
            columns = columns_of_folders(source.by_folder.folders, own.keys())
            with spark_failures():
                found = written or source.strict_reader().load(places).schema
                in_files = without_folders(found, columns).fields
                in_folders = [StructField(column.name, column.type) for column in columns]
                struct = _read(source, StructType([*in_files, *in_folders]), places).schema
        except (UncertainFoldersError, PySparkException):
            return None  # Spark finds, or says, it in all files
        dates = DateColumn.of(ref, struct)
        return None if dates is None else cls(source, struct, dates)

    def read(self, dates: Collection[date | None]) -> DataFrame | None:
        """The rows of some dates; None if these are in most of the folders, which Spark then lists
        itself.

        :raises DatasetError: they cannot be read.
        """
        source = self.source
        is_wanted = self.dates.folders_of(dates)
        chosen = [one for one in source.by_folder.folders if is_wanted(f"{one}/")]
        if len(chosen) > min(_MOST_FOLDERS, len(source.by_folder.folders) // 2):
            return None
        if not chosen:
            return source.spark.createDataFrame([], self.struct)
        try:
            with spark_failures():
                return _read(source, self.struct, folders_for_spark(source.path, chosen))
        except PySparkException as error:
            raise unreadable(source.spark, source.ref, error) from error


def _read(source: DatasetFiles, struct: StructType, places: list[str]) -> DataFrame:
    base = partition_root(source.path) or source.path
    return source.strict_reader().schema(struct).option("basePath", base).load(places)
