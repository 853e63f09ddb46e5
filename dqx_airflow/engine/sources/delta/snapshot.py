"""Opens a Delta table at a path, pinned to a version.

It is read through Spark's Delta source if the session has it. Otherwise the files of the snapshot
are read as Parquet; for a table that needs more than that, the error names the package to add.
Reader features are those of the Delta protocol, "Table Features".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.delta.load import (
    EXTENSIONS,
    deltalake_failures,
    has_delta,
    table_at,
)
from dqx_airflow.engine.sources.delta.log import DeltaLog, FileGroup, struct_of
from dqx_airflow.engine.sources.errors import (
    NOTHING_IGNORED,
    lost_file,
    package_for,
    require_strict_session,
    unreadable,
)
from dqx_airflow.engine.sources.listing import DataFile, escaped
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values import DatasetRef

_NO_PARTITIONS = {"recursiveFileLookup": "true"}
"""Spark then takes no values from folder names."""


def open_delta(spark: SparkSession, ref: DatasetRef, path: str) -> OpenDataset:
    table = table_at(ref, path)
    with deltalake_failures(ref, path):
        version, struct = int(table.version()), struct_of(table)
    dates = DateColumn.of(ref, struct)
    is_of_now = ref.version is None and ref.timestamp is None
    log = DeltaLog(table, path, struct, dates, is_of_now, ref.trust_log)

    def check_files(dates: Collection[date | None]) -> None:
        with deltalake_failures(ref, path):
            lost = log.lost_file(dates)
        if lost is not None:
            raise lost_file(ref, lost)

    def read_parts(file_groups: Callable[[], list[FileGroup]]) -> DataFrame:
        with deltalake_failures(ref, path):
            parts = file_groups()
        try:
            with spark_failures():
                return frame_of_parts(spark, log, parts)
        except PySparkException as error:
            is_lost = error.getCondition() == "PATH_NOT_FOUND"
            missing_path = (error.getMessageParameters() or {}).get("path", "a file")
            lost = lost_file(ref, f"{missing_path}, which does not exist")
            raise (lost if is_lost else unreadable(spark, ref, error)) from error

    def read(dates: Collection[date | None]) -> DataFrame:
        check_files(dates)
        return read_parts(lambda: log.parts_of(dates))

    def read_files(files: Collection[DataFile]) -> DataFrame:
        return read_parts(lambda: log.parts_with(files))

    with deltalake_failures(ref, path):
        features = sorted(log.features)
    alone = None if features else read_files
    if has_delta(spark):
        require_strict_session(spark, ref, "a Delta table")
        frame = spark.read.format("delta").option("versionAsOf", version).load(path)
        struct = frame.schema

        def read_by_source(dates: Collection[date | None]) -> DataFrame:
            if not (features or log.is_believed(dates)):
                return read(dates)  # Spark's source uses the statistics of files as well
            check_files(dates)
            return frame

        return OpenDataset(ref, struct, read_by_source, path, dates, version, log, read_files=alone)
    if features:
        raise DatasetError(
            f"dataset '{ref.name}': the Delta table at {path} uses {', '.join(features)}, which "
            f"this Spark session cannot read; {package_for(spark, 'delta')}",
            EXTENSIONS,
        )
    return OpenDataset(ref, struct, read, path, dates, version, log, read_files=alone)


def frame_of_parts(spark: SparkSession, log: DeltaLog, parts: Sequence[FileGroup]) -> DataFrame:
    """Files of a Delta table, read as Parquet; an empty frame if there are none."""
    frames = [_frame_of(spark, log, part) for part in parts]
    return reduce(DataFrame.unionAll, frames or [spark.createDataFrame([], log.schema)])


def _frame_of(spark: SparkSession, log: DeltaLog, part: FileGroup) -> DataFrame:
    partition_values = dict(part.values)
    struct = StructType([field for field in log.schema if field.name not in partition_values])
    reader = spark.read.schema(struct).options(**NOTHING_IGNORED)
    # A folder that looks like a partition counts only if it agrees with the log.
    in_folders = bool(log.partitioned_by) and not partition_values
    reader = reader.options(**({"basePath": log.path} if in_folders else _NO_PARTITIONS))
    frame = reader.parquet(*map(escaped, part.uris))
    for name, value in partition_values.items():
        frame = frame.withColumn(name, F.lit(value).cast(log.schema[name].dataType))
    return frame.select(*(F.expr(quote_name(name)) for name in log.schema.names))
