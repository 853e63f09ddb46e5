"""Opens datasets as Spark DataFrames, pinned to their current version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets.settings_check import check_ref
from dqx_airflow.dql.checks import read_only_sql
from dqx_airflow.engine.proof import sql_on_sail
from dqx_airflow.engine.session import sail
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.sources.catalog import open_query, open_table
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta_table import open_delta
from dqx_airflow.engine.sources.jdbc import open_database_table
from dqx_airflow.engine.sources.listing import GLOB, DataFile, absolute
from dqx_airflow.engine.sources.plain_files import open_files
from dqx_airflow.engine.sources.source_errors import unreadable
from dqx_airflow.engine.sources.strict_session import require_plain_sql
from dqx_airflow.engine.sources.value_forms import in_one_form
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
            objection = sail.objection_to_source(spark, ref)
            if objection is not None:
                raise DatasetError(f"dataset '{ref.name}': {objection}", sail.INSTEAD)
            of_sail = sail.sail_version(spark) is not None
            opened = _open(spark, ref)
            if of_sail:
                opened = _of_sail(opened)
            opened = in_one_form(opened, of_sail=of_sail)
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
    files = opened.files or ()
    other = _read_otherwise_by_sail(opened, files)
    is_in_folders = opened.ref.format == "parquet" and bool(_folders(opened))
    is_read_by_us = opened.log is not None or opened.texts is not None or is_in_folders
    if other is None and (is_read_by_us or opened.ref.table or not opened.struct.names):
        return opened
    if other is None and (not files or opened.read_files is None):
        other = "files that cannot be listed from here"
    if other is not None:
        message = f"dataset '{opened.ref.name}': Sail reads {other} differently from Spark"
        raise DatasetError(message, sail.INSTEAD)
    return opened.of_files(files)


def _read_otherwise_by_sail(opened: OpenDataset, files: Sequence[DataFile]) -> str | None:
    """The columns or files of a dataset that Sail reads differently from Spark, if any."""
    names = opened.struct.names
    if len({name.casefold() for name in names}) < len(names):
        return "columns whose names differ only in case"
    folders = _folders(opened)
    if folders and opened.ref.format != "parquet":
        return f"the values of {folders[0]} in the names of folders"
    paths = [opened.location, *(file.path for file in files)]
    if any(GLOB.search(path) for path in paths):
        return "paths with wildcard characters"
    return None


def _folders(opened: OpenDataset) -> list[str]:
    """The columns in the names of its folders."""
    return [] if opened.partitions is None else opened.partitions.names


def _filtered(spark: SparkSession, opened: OpenDataset, condition: str) -> OpenDataset:
    """The dataset with its filter, tried on no rows so that errors in it are found here."""
    objection = read_only_sql.objection_to_filter(condition)
    if objection is not None:
        message = f"the filter of dataset '{opened.ref.name}': {objection}"
        raise DatasetError(message, "write one predicate over its columns")
    if (version := sail.sail_version(spark)) is not None:
        objection = sql_on_sail.objection_to_filter(version, condition, opened.schema.types)
        if objection is not None:
            raise DatasetError(f"the filter of dataset '{opened.ref.name}': {objection}")
    filtered = spark.createDataFrame([], opened.struct).where(condition)
    # Spark Connect checks the condition when the schema is requested.
    struct = filtered.schema
    return replace(opened.with_frames(lambda frame: frame.where(condition)), struct=struct)
