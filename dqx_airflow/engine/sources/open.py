"""Opens datasets as Spark DataFrames, pinned to their current version."""

from __future__ import annotations

from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets.settings import check_ref
from dqx_airflow.dql.checks.call_arguments import objection_to_filter
from dqx_airflow.engine.session import sail
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.sources.catalog import open_query, open_table
from dqx_airflow.engine.sources.dataset import OpenDataset, in_one_form
from dqx_airflow.engine.sources.delta.snapshot import open_delta
from dqx_airflow.engine.sources.errors import require_plain_sql, unreadable
from dqx_airflow.engine.sources.files import open_files
from dqx_airflow.engine.sources.jdbc import open_database_table
from dqx_airflow.engine.sources.listing import GLOB, absolute, partition_names
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.values import DatasetRef


def open_dataset(spark: SparkSession, ref: DatasetRef) -> OpenDataset:
    """Opens a dataset. For a Delta table at a path no Spark job runs.

    :raises DatasetError: there is nothing to read, or no way to read it.
    """
    try:
        check_ref(ref)
    except RequestError as error:
        raise DatasetError(error.problem, error.hint) from error
    try:
        with spark_failures():
            require_plain_sql(spark, ref)
            if (objection := sail.objection_to_source(spark, ref)) is not None:
                raise DatasetError(f"dataset '{ref.name}': {objection}", sail.INSTEAD)
            of_sail = sail.sail_version(spark) is not None
            opened = _open(spark, ref)
            opened = in_one_form(_of_sail(opened) if of_sail else opened, of_sail=of_sail)
            if ref.filter is not None:
                opened = _filtered(spark, opened, ref.filter)
    except PySparkException as error:
        raise unreadable(spark, ref, error) from error
    if not opened.struct.names:
        message = f"dataset '{ref.name}': {opened.location} has no columns"
        raise DatasetError(message, "check its files")
    return opened


def _open(spark: SparkSession, ref: DatasetRef) -> OpenDataset:
    if ref.query is not None:
        return open_query(spark, ref, ref.query)
    if ref.conn_id is not None:
        return open_database_table(spark, ref)
    if ref.table is not None:
        return open_table(spark, ref, ref.table)
    path = absolute(ref.path or "")
    if ref.format == "delta":
        return open_delta(spark, ref, path)
    return open_files(spark, ref, path)


def _of_sail(opened: OpenDataset) -> OpenDataset:
    """The dataset with the values that Spark would read: of the files that we list.

    :raises DatasetError: Sail reads others.
    """
    files, alone = opened.files or (), opened.read_files
    if len({name.casefold() for name in opened.struct.names}) < len(opened.struct.names):
        other = "columns whose names differ only in case"
    elif folders := partition_names(files):
        other = f"the values of {folders[0]} in the names of folders"
    elif any(map(GLOB.search, (opened.location, *(file.path for file in files)))):
        other = "paths with wildcard characters"
    elif opened.log is not None or opened.ref.table is not None or not opened.struct.names:
        return opened
    elif not files or alone is None:
        other = "files that cannot be listed from here"
    else:
        return replace(opened, read=lambda _: alone(files))
    message = f"dataset '{opened.ref.name}': Sail reads {other} differently from Spark"
    raise DatasetError(message, sail.INSTEAD)


def _filtered(spark: SparkSession, opened: OpenDataset, condition: str) -> OpenDataset:
    """The dataset with its filter, tried on no rows so that errors in it are found here."""
    objection = objection_to_filter(condition)
    if objection is not None:
        message = f"the filter of dataset '{opened.ref.name}': {objection}"
        raise DatasetError(message, "write one predicate over its columns")
    filtered = spark.createDataFrame([], opened.struct).where(condition)
    # Spark Connect checks the condition when the schema is requested.
    struct = filtered.schema
    alone = opened.read_files
    return replace(
        opened,
        struct=struct,
        read=lambda dates: opened.read(dates).where(condition),
        read_files=alone and (lambda files: alone(files).where(condition)),
    )
