"""Opens a Delta table at a path, pinned to a version.

It is read through Spark's Delta source if the session has it. Otherwise the files of the snapshot
are read as Parquet; for a table that needs more than that, the error names the package to add.
Reader features are defined in the Delta protocol, "Table Features".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from dqx_airflow.datasets.delta_log import require_whole_commits, table_files
from dqx_airflow.datasets.settings_check import timestamp_of
from dqx_airflow.engine.session.sail import INSTEAD, sail_version, union_of
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.session.spark_session import TIME_ZONE, is_in_utc
from dqx_airflow.engine.session.spark_versions import condition_of
from dqx_airflow.engine.sources import partition_values
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn, require_one_spelling
from dqx_airflow.engine.sources.delta_files import DeltaLog, FileGroup, is_required, struct_of
from dqx_airflow.engine.sources.listing import (
    GLOB,
    NOTHING_IGNORED,
    DataFile,
    absolute,
    escaped,
    is_local,
)
from dqx_airflow.engine.sources.source_errors import (
    lost_file,
    nothing_there,
    package_for,
    too_early,
    unreadable,
)
from dqx_airflow.engine.sources.statistics_on_sail import require_own_values
from dqx_airflow.engine.sources.strict_session import require_strict_session
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.metrics.sql import quote_name, quote_path
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.values import MASK, DatasetRef

_NO_PARTITIONS = {"recursiveFileLookup": "true"}
"""Spark then takes no values from folder names."""


def open_delta(spark: SparkSession, ref: DatasetRef, path: str) -> OpenDataset:
    """The Delta table at a path, in one version.

    :raises DatasetError: it does not exist, or this session cannot read it.
    """
    table = table_at(ref, path)
    with deltalake_failures(ref, path):
        version = int(table.version())
        struct = struct_of(table)
    dates = DateColumn.of(ref, struct)
    is_of_now = ref.version is None and ref.timestamp is None
    of_spark = sail_version(spark) is None
    log = DeltaLog(table, path, struct, dates, is_of_now, ref.trust_log, of_spark)

    def check_files(dates: Collection[date | None]) -> None:
        with deltalake_failures(ref, path):
            lost = log.lost_file(dates)
            texts = log.partition_dates
        if lost is not None:
            raise lost_file(ref, lost)
        require_one_spelling(ref, log.dates, dates, texts)

    def read_parts(file_groups: Callable[[], list[FileGroup]]) -> DataFrame:
        with deltalake_failures(ref, path):
            parts = file_groups()
        try:
            with spark_failures():
                return frame_of_parts(spark, log, parts)
        except PySparkException as error:
            is_lost = condition_of(error) == "PATH_NOT_FOUND"
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
        require_moments(ref, log)
    alone = None if features else read_files
    if has_delta(spark):
        require_strict_session(spark, ref, "a Delta table")
        if features:
            with deltalake_failures(ref, path):
                require_moments_of_session(spark, ref, log)
        frame = spark.read.format("delta").option("versionAsOf", version).load(path)
        struct = frame.schema

        def read_by_source(dates: Collection[date | None]) -> DataFrame:
            # Spark's source uses the statistics of files as well, and folds `IS NULL` where the
            # table is NOT NULL, whatever its files have.
            if not features and (log.is_read_by_itself or not log.is_believed(dates)):
                return read(dates)
            check_files(dates)
            require_no_hidden_null(ref, log)
            return frame

        return OpenDataset(ref, struct, read_by_source, path, dates, version, log, read_files=alone)
    if features:
        uses = f"dataset '{ref.name}': the Delta table at {path} uses {', '.join(features)}, which "
        if not of_spark:
            raise DatasetError(f"{uses}Sail may read differently from Spark", INSTEAD)
        package = package_for(spark, "delta")
        raise DatasetError(f"{uses}this Spark session cannot read; {package}", EXTENSIONS)
    return OpenDataset(ref, struct, read, path, dates, version, log, read_files=alone)


_IN_ITS_SESSION = re.compile("spark|databricks", re.IGNORECASE)
"""Engines that wrote timestamps in the zone of their session, before Delta 4."""
_NOT_OF_SPARK = re.compile(r"\.\d*0$")
"""How other engines spell a timestamp: Spark drops the zeros at the end of its fraction."""


def require_moments(ref: DatasetRef, log: DeltaLog) -> None:
    """Rejects timestamps in partitions whose time zone nothing records; timestamps of writers other
    than Spark are in UTC.

    :raises DatasetError: there is one.
    """
    for text, engine in log.zoneless:
        may_be_of_spark = not engine or _IN_ITS_SESSION.search(engine) is not None
        if may_be_of_spark and not _NOT_OF_SPARK.search(text):
            name = text.partition("=")[0]
            shown = f"{name}={MASK}" if is_masked(name, ref.masked) else text
            column = quote_name(name)
            statement = f"UPDATE delta.{quote_name(log.path)} SET {column} = {column}"  # noqa: S608
            whose = (
                f"the time zone of a session of {engine}, which the log does not have"
                if engine
                else "UTC, or in the time zone of a session: the log does not have its writer"
            )
            raise DatasetError(
                f"dataset '{ref.name}': the partition {shown} of {log.path} has no time zone: it "
                f"is in {whose}",
                f"in that time zone, run with Delta 4.1 or newer, which writes UTC: {statement}",
            )


def require_moments_of_table(spark: SparkSession, ref: DatasetRef, table: str) -> None:
    """Rejects timestamps in partitions of a table of the catalog that Spark's Delta source would
    read in another time zone, or whose time zone nothing records.

    :raises DatasetError: there is one, or the session is not in UTC and the log cannot be read.
    """
    columns = ("partitionColumns", "location")
    detail = spark.sql(f"DESCRIBE DETAIL {table}").select(*columns).collect()[0]
    kinds = dict(spark.table(table).dtypes)
    moments = [name for name in detail[0] if kinds[name] == "timestamp"]
    if not moments:
        return
    path = absolute(detail[1])
    try:
        stored = DeltaTable(path)
        log = DeltaLog(stored, path, struct_of(stored), None)
        require_moments(ref, log)
        require_moments_of_session(spark, ref, log)
    except (DeltaError, OSError, ValueError) as error:
        if not is_in_utc(spark):
            raise DatasetError(
                f"dataset '{ref.name}': {table} is partitioned by '{moments[0]}', and its log, "
                f"which has the time zone, cannot be read: {first_line(error)}",
                f"set {TIME_ZONE}=UTC, at least for the gate",
            ) from error


def require_moments_of_session(spark: SparkSession, ref: DatasetRef, log: DeltaLog) -> None:
    """Rejects timestamps in partitions that Spark's Delta source would read in another time zone.

    :raises DatasetError: there is one.
    """
    if log.zoneless and not is_in_utc(spark):
        raise DatasetError(
            f"dataset '{ref.name}': timestamps in the partitions of {log.path} have no time zone, "
            "and are in UTC: this Spark session would read them in its own",
            f"set {TIME_ZONE}=UTC, at least for the gate",
        )


def require_no_hidden_null(ref: DatasetRef, log: DeltaLog) -> None:
    """Rejects NULL in a column that is NOT NULL: Spark's Delta source would read another value, and
    find no NULL.

    :raises DatasetError: the statistics of the log show one.
    """
    with deltalake_failures(ref, log.path):
        name = log.null_in_required
    if name is not None:
        raise DatasetError(
            f"dataset '{ref.name}': column '{name}' of {log.path} is NOT NULL, and its files have "
            "NULL, which Spark would read as another value",
            f"write these rows again, or: ALTER TABLE delta.{quote_name(log.path)} ALTER COLUMN "
            f"{quote_name(name)} DROP NOT NULL",
        )


def require_no_hidden_null_in_table(
    ref: DatasetRef, struct: StructType, path: str, version: int
) -> None:
    """As `require_no_hidden_null`, for a table of the catalog, whose log may be out of reach.

    :raises DatasetError: the log shows a NULL.
    """
    if not is_required(struct):
        return
    try:
        table = DeltaTable(path, version=version)
        log = DeltaLog(table, path, struct_of(table), None)
        _ = log.null_in_required
    except (DeltaError, OSError, ValueError):
        return  # Spark reads it, by credentials of its own
    require_no_hidden_null(ref, log)


def log_for(
    spark: SparkSession, table: DeltaTable, path: str, dates: DateColumn | None = None
) -> DeltaLog:
    """The log of a table, as the engine of a session reads its files: Sail reads no values from the
    names of folders."""
    is_sail = sail_version(spark) is not None
    return DeltaLog(table, path, struct_of(table), dates, reads_folders=not is_sail)


def frame_of_parts(spark: SparkSession, log: DeltaLog, parts: Sequence[FileGroup]) -> DataFrame:
    """Files of a Delta table, read as Parquet; an empty frame if there are none."""
    frames = [_frame_of(spark, log, part) for part in parts]
    if not frames:
        return spark.createDataFrame([], log.schema)
    return union_of(frames, log.schema.names)


def _frame_of(spark: SparkSession, log: DeltaLog, part: FileGroup) -> DataFrame:
    values = dict(part.values)
    if not log.reads_folders and any(map(GLOB.search, part.uris)):
        raise DatasetError(f"Sail cannot read {log.path}: a path has wildcard characters", INSTEAD)
    struct = StructType([field for field in log.schema if field.name not in values])
    reader = spark.read.schema(struct).options(**NOTHING_IGNORED)
    # A folder that looks like a partition counts only if it agrees with the log.
    in_folders = bool(log.partitioned_by) and not values
    assert log.reads_folders or not in_folders
    assert log.reads_folders is (sail_version(spark) is None)
    by_folder = {"basePath": log.path, **partition_values.IN_UTC}
    reader = reader.options(**(by_folder if in_folders else _NO_PARTITIONS))
    require_own_values(spark, log.path, part.uris, table_files)
    frame = reader.parquet(*map(escaped, part.uris))
    for name, value in values.items():
        frame = frame.withColumn(name, partition_values.literal(value, log.schema[name].dataType))
    return frame.select(*map(quote_path, log.schema.names))


EXTENSIONS = (
    "set spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog in its conf "
    "as well"
)
"""The settings that are needed besides the package."""

_EXTENDED_BY = {"spark.sql.extensions": "", "spark.sql.catalog.spark_catalog": "builtin"}
"""Settings by which other extensions get into Spark SQL, with their default values."""
_MISSING = ("DATA_SOURCE_NOT_FOUND", "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG")
_NOWHERE = "/there-is-no-such-delta-table"


def has_delta(spark: SparkSession) -> bool:
    """True if the session reads and writes Delta tables itself.

    The source itself is tried: on some platforms it is available without being configured, and
    elsewhere it is configured but its package is missing. A plain session is not tried: it cannot
    have the source, and would look for one in Python, too. That of Sail was not tried.
    """
    is_plain = all(spark.conf.get(name, plain) == plain for name, plain in _EXTENDED_BY.items())
    if is_plain or sail_version(spark) is not None:
        return False
    try:
        with spark_failures():
            _ = spark.read.format("delta").load(_NOWHERE).schema
    except PySparkException as error:
        return condition_of(error) not in _MISSING
    return True


_UNKNOWN_TO_DELTALAKE = re.compile(r"[%\[\]\\]")
"""Characters that local paths must not contain: deltalake takes such paths for quoted URLs."""


def table_at(ref: DatasetRef, path: str) -> DeltaTable:
    """The table at the version or timestamp of the reference, or else the newest version.

    :raises DatasetError: there is none, or its log is broken.
    """
    if is_local(path) and _UNKNOWN_TO_DELTALAKE.search(path):
        raise DatasetError(
            f"dataset '{ref.name}': a Delta table at a path with one of the characters % [ ] \\ "
            "cannot be read",
            f"rename {path}",
        )
    if is_local(path) and Path(path).is_file():
        raise nothing_there(ref, path)
    with deltalake_failures(ref, path):
        table = DeltaTable(path)
        if ref.version is not None:
            _load_version(table, ref, path)
        if ref.timestamp is not None:
            table.load_as_version(_version_at(table, ref, path))
        require_whole_commits(path, table.version())
    return table


def _load_version(table: DeltaTable, ref: DatasetRef, path: str) -> None:
    """:raises DatasetError: the table does not have the requested version yet."""
    newest = int(table.version())
    version = int(ref.version or 0)
    if version > newest:
        raise DatasetError(
            f"dataset '{ref.name}': {path} has no version {version:,}: the newest is {newest:,}",
            "correct the version",
        )
    if version != newest:
        table.load_as_version(version)


def _version_at(table: DeltaTable, ref: DatasetRef, path: str) -> int:
    """The version that was the newest at the requested timestamp."""
    timestamp = timestamp_of(str(ref.timestamp))
    by_log = [
        commit["version"]
        for commit in table.history()
        if commit["timestamp"] <= timestamp.timestamp() * 1000
    ]
    if not by_log:
        raise too_early(ref, path)  # deltalake would load the first version
    table.load_as_version(timestamp)
    by_files = int(table.version())
    if by_files != max(by_log):
        raise DatasetError(
            f"dataset '{ref.name}': the newest version of {path} at {ref.timestamp} is "
            f"ambiguous: {max(by_log)} by its log, {by_files} by the times of its files",
            "give it a version instead",
        )
    return by_files


@contextmanager
def deltalake_failures(ref: DatasetRef, path: str) -> Iterator[None]:
    """Turns exceptions of deltalake into errors of the dataset."""
    try:
        yield
    except TableNotFoundError as error:
        raise nothing_there(ref, path) from error
    except DatasetError:
        raise
    except Exception as error:  # deltalake has no base class for its exceptions
        raise DatasetError(
            f"dataset '{ref.name}': the Delta table at {path} cannot be read: {first_line(error)}",
            "check its _delta_log: a commit may be incomplete",
        ) from error
