"""Opens datasets as Spark DataFrames, pinned to the version that is there now."""

from __future__ import annotations

from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets import check_ref, moment_of
from dqx_airflow.dql.sql_text import objection_to_filter, objection_to_select
from dqx_airflow.engine.delta_snapshot import open_delta
from dqx_airflow.engine.delta_source import has_delta
from dqx_airflow.engine.failures import spark_failures
from dqx_airflow.engine.file_sources import open_files
from dqx_airflow.engine.opened import OpenDataset
from dqx_airflow.engine.paths import absolute
from dqx_airflow.engine.source_errors import (
    too_early,
    unreadable,
)
from dqx_airflow.engine.strict_reads import require_strict_session
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.reader_options import given_options, of_delta_table
from dqx_airflow.values import DatasetRef


def open_dataset(spark: SparkSession, ref: DatasetRef) -> OpenDataset:
    """Opens a dataset. No Spark job runs for a Delta table at a path.

    :raises DatasetError: there is nothing to read, or no way to read it.
    """
    try:
        check_ref(ref)
    except RequestError as error:
        raise DatasetError(error.problem, error.hint) from error
    try:
        with spark_failures():
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
    if ref.path is None:
        require_strict_session(spark, ref, "what it reads of the catalog")
    if ref.query is not None:
        return _open_query(spark, ref, ref.query)
    if ref.table is not None:
        return _open_table(spark, ref, ref.table)
    path = absolute(ref.path or "")
    if ref.format == "delta":
        return open_delta(spark, ref, path)
    return open_files(spark, ref, path)


def _open_query(spark: SparkSession, ref: DatasetRef, text: str) -> OpenDataset:
    objection = objection_to_select(text)
    if objection is not None:
        raise DatasetError(
            f"the query of dataset '{ref.name}': {objection}",
            "write one SELECT over tables of the catalog",
        )
    return OpenDataset.of_frame(ref, spark.sql(text), ref.location)


def _open_table(spark: SparkSession, ref: DatasetRef, table: str) -> OpenDataset:
    reader = spark.read.options(**given_options(ref))
    frame = reader.table(table)
    if not _is_delta(spark, table):
        if ref.version is not None or ref.timestamp is not None:
            raise DatasetError(
                f"dataset '{ref.name}': {table} is no Delta table in this session, so it has no "
                "versions",
                "leave out version and timestamp",
            )
        return OpenDataset.of_frame(ref, frame, table)
    if ref.options:
        wrong = of_delta_table(ref.options[0][0])
        raise DatasetError(f"dataset '{ref.name}' {wrong.problem}", wrong.hint)
    version = _version_of_table(spark, ref, table)
    opened = OpenDataset.of_frame(ref, reader.option("versionAsOf", version).table(table), table)
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


def _filtered(spark: SparkSession, opened: OpenDataset, condition: str) -> OpenDataset:
    """The dataset with a filter, tried on no rows, so that what is wrong with it is found here."""
    objection = objection_to_filter(condition)
    if objection is not None:
        raise DatasetError(
            f"the filter of dataset '{opened.ref.name}': {objection}",
            "write one predicate over its columns",
        )
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
