"""Opens datasets as Spark DataFrames, pinned to the version that is there now.

A Delta table is read through Spark's Delta source where the session has it. Where it has not, the
snapshot's files are read as Parquet; a table that needs more than that gets an error that says
which package to add.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import StructType

from dqx_airflow.datasets import check_ref, moment_of
from dqx_airflow.dql.sql_text import objection_to_select
from dqx_airflow.engine.date_column import DateColumn
from dqx_airflow.engine.delta_log import DeltaLog, Part, struct_of
from dqx_airflow.engine.delta_source import EXTENSIONS, has_delta
from dqx_airflow.engine.delta_tables import deltalake_failures, table_at
from dqx_airflow.engine.failures import spark_failures
from dqx_airflow.engine.files import DataFile, changed_files, files_at, paths_of
from dqx_airflow.engine.paths import GLOB, absolute, escaped, for_spark, partition_root
from dqx_airflow.engine.source_errors import (
    lost_file,
    nothing_there,
    package_for,
    too_early,
    unreadable,
)
from dqx_airflow.engine.stored_types import UNREADABLE, read_stored
from dqx_airflow.engine.texts import Texts, read_texts
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.schema_check import Schema
from dqx_airflow.values import DatasetRef, Field

Reader: TypeAlias = Callable[[Collection[date | None]], DataFrame]
"""A frame that holds at least the rows of some dates, and maybe others."""

FilesReader: TypeAlias = Callable[[Collection[DataFile]], DataFrame]
"""A frame with the rows of some of the files of a dataset."""

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
}
"""What is read strictly unless the options of a dataset say otherwise."""


@dataclass(frozen=True, slots=True)
class OpenDataset:
    """A dataset that can be scanned.

    `read` gives the frame for some dates: nothing of a Delta table is listed or read before it is
    called. `dates` is the column that tells the date of a row, `log` the transaction log of a
    Delta table, and `files` are those of a path as they were when it was opened. `texts` are those
    from which the values are cast, where they are. `read_files` is there where some of the files
    can be read without the others.
    """

    ref: DatasetRef
    struct: StructType
    read: Reader
    location: str
    dates: DateColumn | None
    version: int | None = None
    log: DeltaLog | None = None
    files: tuple[DataFile, ...] | None = None
    texts: Texts | None = None
    read_files: FilesReader | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(
            Field(field.name, field.dataType.simpleString()) for field in self.struct.fields
        )

    @property
    def schema(self) -> Schema:
        return Schema.of(self.ref.name, self.fields)

    @property
    def change(self) -> str | None:
        """What became of the files since the dataset was opened; None where they are the same.

        New files are no change: they are not read.
        """
        if self.files is None:
            return None
        changed = changed_files(self.files, files_at(self.location) or ())
        return f"{changed[0]} was changed or removed while it was read" if changed else None

    def of_files(self, files: Collection[DataFile]) -> OpenDataset:
        """The dataset as if it had only some of its files, which can be read alone."""
        read = self.read_files
        assert read is not None
        return replace(self, read=lambda _: read(files))


def open_dataset(spark: SparkSession, ref: DatasetRef) -> OpenDataset:
    """Opens a dataset. No Spark job runs for a Delta table at a path.

    :raises DatasetError: there is nothing to read, or no way to read it.
    """
    try:
        check_ref(ref)
    except RequestError as error:
        raise DatasetError(error.problem, error.hint) from error
    try:
        with spark_failures(all_of_them=True):
            opened = _open(spark, ref)
            if ref.filter is not None:
                opened = _filtered(spark, opened, ref.filter)
    except PySparkException as error:
        raise unreadable(spark, ref, error) from error
    if not opened.struct.names:
        raise DatasetError(
            f"dataset '{ref.name}': {opened.location} has no columns", "look at its files"
        )
    return opened


def _open(spark: SparkSession, ref: DatasetRef) -> OpenDataset:
    if ref.query is not None:
        return _open_query(spark, ref, ref.query)
    if ref.table is not None:
        return _open_table(spark, ref, ref.table)
    path = absolute(ref.path or "")
    if ref.format == "delta":
        return _open_delta(spark, ref, path)
    return _open_files(spark, ref, path)


def _opened(ref: DatasetRef, frame: DataFrame, location: str) -> OpenDataset:
    struct = frame.schema
    return OpenDataset(ref, struct, lambda _: frame, location, DateColumn.of(ref, struct))


def _open_query(spark: SparkSession, ref: DatasetRef, text: str) -> OpenDataset:
    objection = objection_to_select(text)
    if objection is not None:
        raise DatasetError(
            f"the query of dataset '{ref.name}': {objection}",
            "write one SELECT over tables of the catalog",
        )
    return _opened(ref, spark.sql(text), ref.location)


def _open_table(spark: SparkSession, ref: DatasetRef, table: str) -> OpenDataset:
    reader = spark.read.options(**dict(ref.options))
    frame = reader.table(table)
    if not _is_delta(spark, table):
        if ref.version is not None or ref.timestamp is not None:
            raise DatasetError(
                f"dataset '{ref.name}': {table} is no Delta table in this session, so it has no "
                "versions",
                "leave out version and timestamp",
            )
        return _opened(ref, frame, table)
    version = _version_of_table(spark, ref, table)
    opened = _opened(ref, reader.option("versionAsOf", version).table(table), table)
    return replace(opened, version=version)


def _is_delta(spark: SparkSession, table: str) -> bool:
    if not has_delta(spark):
        return False
    about = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return any(row[0] == "Provider" and str(row[1]).lower() == "delta" for row in about)


def _version_of_table(spark: SparkSession, ref: DatasetRef, table: str) -> int:
    if ref.version is not None:
        return ref.version
    commits = spark.sql(f"DESCRIBE HISTORY {table}")
    if ref.timestamp is not None:
        moment = moment_of(ref.timestamp).isoformat()
        commits = commits.where(f"timestamp <= TIMESTAMP_LTZ'{moment}'")
    newest = commits.selectExpr("max(version)").collect()[0][0]
    if newest is None:
        raise too_early(ref, table)
    return int(newest)


def _open_files(spark: SparkSession, ref: DatasetRef, path: str) -> OpenDataset:
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
        return reader.options(**dict(ref.options))

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
    reader = fresh_reader() if ref.schema is None else fresh_reader().schema(ref.schema)
    try:
        frame = reader.load(for_spark(path))
        struct = frame.schema  # Spark Connect looks at the files only now.
    except PySparkException as error:
        is_refused = ref.schema is None and error.getCondition() == UNREADABLE
        stored = read_stored(fresh_reader, path, files) if is_refused else None
        if stored is None:
            raise
        return _opened(ref, stored, path)
    opened = _opened(ref, frame, path)
    has_own_base = "basePath" in dict(ref.options)
    if ref.format != "parquet" or has_own_base or GLOB.search(path) or not paths_of(path, files):
        return opened

    def read_files(some: Collection[DataFile]) -> DataFrame:
        # The folders have the types that Spark has found for those of all files.
        reader = fresh_reader().schema(struct).option("basePath", partition_root(path) or path)
        try:
            with spark_failures(all_of_them=True):
                return reader.load(paths_of(path, some))
        except PySparkException as error:
            raise unreadable(spark, ref, error) from error

    return replace(opened, read_files=read_files)


def _is_cut_off(format: str, file: DataFile) -> bool:
    """True for a file without a byte, where even one without a row has some."""
    return file.size == 0 and format not in ("csv", "json") and file.path.endswith(f".{format}")


def _open_delta(spark: SparkSession, ref: DatasetRef, path: str) -> OpenDataset:
    table = table_at(ref, path)
    with deltalake_failures(ref, path):
        version, struct = int(table.version()), struct_of(table)
    dates = DateColumn.of(ref, struct)
    is_of_now = ref.version is None and ref.timestamp is None
    log = DeltaLog(table, path, struct, dates, is_of_now)

    def read_parts(told: Callable[[], list[Part]]) -> DataFrame:
        with deltalake_failures(ref, path):
            parts = told()
        try:
            with spark_failures(all_of_them=True):
                return frame_of_parts(spark, log, parts)
        except PySparkException as error:
            is_lost = error.getCondition() == "PATH_NOT_FOUND"
            raise (lost_file(ref, error) if is_lost else unreadable(spark, ref, error)) from error

    def read(dates: Collection[date | None]) -> DataFrame:
        return read_parts(lambda: log.parts_of(dates))

    def read_files(files: Collection[DataFile]) -> DataFrame:
        return read_parts(lambda: log.parts_with(files))

    with deltalake_failures(ref, path):
        features = sorted(log.features)
    alone = None if features else read_files
    if has_delta(spark):
        frame = spark.read.format("delta").option("versionAsOf", version).load(path)
        struct = frame.schema
        return OpenDataset(
            ref, struct, lambda _: frame, path, dates, version, log, read_files=alone
        )
    if features:
        raise DatasetError(
            f"dataset '{ref.name}': the Delta table at {path} uses {', '.join(features)}, which "
            f"this Spark session cannot read; {package_for(spark, 'delta')}",
            EXTENSIONS,
        )
    return OpenDataset(ref, struct, read, path, dates, version, log, read_files=alone)


def frame_of_parts(spark: SparkSession, log: DeltaLog, parts: Sequence[Part]) -> DataFrame:
    """Files of a Delta table, read as Parquet; an empty frame without any."""
    frames = [_frame_of(spark, log, part) for part in parts]
    return reduce(DataFrame.unionAll, frames or [spark.createDataFrame([], log.schema)])


def _frame_of(spark: SparkSession, log: DeltaLog, part: Part) -> DataFrame:
    known = dict(part.values)
    struct = StructType([field for field in log.schema if field.name not in known])
    frame = spark.read.schema(struct).option("basePath", log.path).parquet(*map(escaped, part.uris))
    for name, value in known.items():
        frame = frame.withColumn(name, F.lit(value).cast(log.schema[name].dataType))
    return frame.select(*(F.expr(quote_name(name)) for name in log.schema.names))


def _filtered(spark: SparkSession, opened: OpenDataset, condition: str) -> OpenDataset:
    """The dataset with a filter, tried on no rows, so that what is wrong with it is found here."""
    tried = spark.createDataFrame([], opened.struct).where(condition)
    # Spark Connect looks at the condition when somebody asks for the schema.
    struct = tried.schema
    alone = opened.read_files
    return replace(
        opened,
        struct=struct,
        read=lambda dates: opened.read(dates).where(condition),
        read_files=alone and (lambda files: alone(files).where(condition)),
    )
