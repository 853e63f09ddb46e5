"""Opens the files at a path or a glob."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import StructType

from dqx_airflow.engine.date_column import DateColumn
from dqx_airflow.engine.failures import spark_failures
from dqx_airflow.engine.files import DataFile, files_at, paths_of
from dqx_airflow.engine.opened import OpenDataset
from dqx_airflow.engine.parquet_schema import merges_schemas, schema_as_written
from dqx_airflow.engine.paths import GLOB, for_spark, partition_root
from dqx_airflow.engine.source_errors import nothing_there, of_table, unreadable
from dqx_airflow.engine.stored_types import UNREADABLE, read_stored
from dqx_airflow.engine.table_formats import table_format
from dqx_airflow.engine.texts import read_texts
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.reader_options import given_options
from dqx_airflow.values import DatasetRef

_STRICT = {
    # Where a line does not fit, PERMISSIVE would make NULLs of it, which most rules let pass. And
    # Spark has to read whole lines to see that, their names in each file included.
    "csv": {
        "header": "true",
        "inferSchema": "true",
        "mode": "FAILFAST",
        "enforceSchema": "false",
        "columnPruning": "false",
    },
    "json": {"mode": "FAILFAST"},
    # Its log knows counts and extremes of files that may be gone.
    "iceberg": {"aggregate-push-down-enabled": "false"},
}
"""What is read strictly unless the options of a dataset say otherwise."""
_OF_TABLES = ("parquet", "orc", "avro")
"""The formats of files that tables are made of."""


def open_files(spark: SparkSession, ref: DatasetRef, path: str) -> OpenDataset:
    if ref.format in _OF_TABLES and (table := table_format(path)) is not None:
        raise of_table(ref, path, table)
    # Listed before Spark does it, so that no change falls between.
    files = files_at(path)
    empty = [file.path for file in files or () if _is_cut_off(ref.format, file)]
    if empty:
        raise DatasetError(
            f"dataset '{ref.name}' cannot be read: {empty[0]} is empty",
            "remove it, or write it again: Spark would pass over it",
        )

    def fresh_reader() -> DataFrameReader:
        reader = spark.read.format(ref.format).options(**_STRICT.get(ref.format, {}))
        root = partition_root(path)
        reader = reader if root is None else reader.option("basePath", root)
        return reader.options(**given_options(ref))

    if ref.is_of_texts:
        frame, texts = read_texts(ref, fresh_reader, path, files)
        own = [quote_name(name) for name in frame.columns if name not in texts.hidden]
        struct = frame.selectExpr(*own).schema
        dates = DateColumn.of(ref, struct)
        opened = OpenDataset(ref, struct, lambda _: frame, path, dates, texts=texts)
    else:
        opened = _open_columns(spark, ref, fresh_reader, path, files or ())
    if ref.schema is not None and not opened.read(()).inputFiles():
        raise nothing_there(ref, path)
    return replace(opened, files=files)


def _open_columns(
    spark: SparkSession,
    ref: DatasetRef,
    fresh_reader: Callable[[], DataFrameReader],
    path: str,
    files: Sequence[DataFile],
) -> OpenDataset:
    """Files that hold values of their types."""
    schema = ref.schema or _schema_as_written(spark, ref, path, files)
    reader = fresh_reader() if schema is None else fresh_reader().schema(schema)
    try:
        frame = reader.load(for_spark(path))
        struct = frame.schema  # Spark Connect looks at the files only now.
    except PySparkException as error:
        is_refused = ref.schema is None and error.getCondition() == UNREADABLE
        stored = read_stored(fresh_reader, path, files) if is_refused else None
        if stored is None:
            raise
        return OpenDataset.of_frame(ref, stored, path)
    opened = OpenDataset.of_frame(ref, frame, path)
    has_own_base = "basepath" in map(str.lower, given_options(ref))
    if ref.format != "parquet" or has_own_base or GLOB.search(path) or not paths_of(path, files):
        return opened

    def read_files(some: Collection[DataFile]) -> DataFrame:
        # The folders have the types that Spark has found for those of all files.
        reader = fresh_reader().schema(struct).option("basePath", partition_root(path) or path)
        try:
            with spark_failures():
                return reader.load(paths_of(path, some))
        except PySparkException as error:
            raise unreadable(spark, ref, error) from error

    return replace(opened, read_files=read_files)


def _schema_as_written(
    spark: SparkSession, ref: DatasetRef, path: str, files: Sequence[DataFile]
) -> StructType | None:
    """The schema of Parquet files, where Spark need not start a job to find the same one."""
    if ref.format != "parquet" or ref.options or GLOB.search(path) or merges_schemas(spark, ref):
        return None
    return schema_as_written(path, files)


def _is_cut_off(format: str, file: DataFile) -> bool:
    """True for a file without a byte, where even one without a row has some."""
    return file.size == 0 and format not in ("csv", "json") and file.path.endswith(f".{format}")
