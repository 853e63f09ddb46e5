"""Tables, views and queries of the catalog, read as strictly as files at a path.

Spark reads a table of text files (`USING csv`) leniently unless the table has a mode: values
that do not fit their column silently become NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone

from pyspark.errors import PySparkException
from pyspark.sql import DataFrameReader, SparkSession

from dqx_airflow.datasets.delta_log import require_whole_commits
from dqx_airflow.datasets.reader_options import given_options, of_delta_table
from dqx_airflow.datasets.settings_check import timestamp_of
from dqx_airflow.dql.checks import read_only_sql
from dqx_airflow.engine.session.spark_session import TIME_ZONE, is_in_utc
from dqx_airflow.engine.sources import iceberg, listing
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.delta_files import COMMITS_READ, KEEP_THE_DATA
from dqx_airflow.engine.sources.delta_table import (
    deltalake_failures,
    require_moments_of_table,
    require_no_hidden_null_in_table,
)
from dqx_airflow.engine.sources.listing import absolute
from dqx_airflow.engine.sources.source_errors import too_early
from dqx_airflow.engine.sources.strict_session import require_strict_session
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.values import DatasetRef

_OF_TEXT = ("csv", "json", "xml")
_STRICT = {"mode": "FAILFAST", "columnPruning": "false"}
"""Without column pruning, values of columns that no assertion uses are read as well."""
_DETAILS = "# Detailed Table Information"
_MOST_VIEWS = 20
"""The maximum nesting of views."""


def open_table(spark: SparkSession, ref: DatasetRef, table: str) -> OpenDataset:
    """A table or view by name; a Delta table is pinned to its current version.

    :raises DatasetError: it cannot be read as requested.
    """
    require_strict_session(spark, ref, "what it reads of the catalog")
    _forget(spark, table)
    about = _description(spark, table)
    provider = about.get("Provider", "").lower()
    options = given_options(ref)
    if _text_format(about) and not _has_mode(about):
        options = {**_STRICT, **options}
    _require_strict_views(spark, ref, about)
    reader = spark.read.options(**options)
    # Before the table is read: whoever writes later writes another snapshot.
    snapshot = branch = None
    if provider == "iceberg":
        snapshot, branch = iceberg.snapshot_read(spark, ref, table)
    frame = reader.table(table)
    _require_moments(spark, ref, table, provider)
    if provider == "delta":
        return _open_delta_table(spark, ref, table, reader, about.get("Location"))
    if ref.version is not None or ref.timestamp is not None:
        raise DatasetError(
            f"dataset '{ref.name}': {table} is not a Delta table in this session, so it has no "
            "versions",
            "leave out version and timestamp",
        )
    opened = OpenDataset.of_frame(ref, frame, table)
    return replace(opened, snapshot=snapshot, branch=branch)


def _open_delta_table(
    spark: SparkSession, ref: DatasetRef, table: str, reader: DataFrameReader, place: str | None
) -> OpenDataset:
    """A Delta table by name, in one version.

    :param place: its location, if the catalog knows it.
    :raises DatasetError: the dataset has reader options, or the version does not exist.
    """
    if ref.options:
        wrong = of_delta_table(ref.options[0][0])
        raise DatasetError(f"dataset '{ref.name}' {wrong.problem}", wrong.hint)
    version = _version_of(spark, ref, table)
    if place:
        location = absolute(place)
        if listing.is_local(location):
            with deltalake_failures(ref, location):
                require_whole_commits(location, version)

    def last_commit() -> datetime | None:
        is_newest = ref.version is None and ref.timestamp is None
        return _last_commit(spark, table, version) if is_newest else None

    frame = reader.option("versionAsOf", version).table(table)
    if place:
        require_no_hidden_null_in_table(ref, frame.schema, absolute(place), version)
    opened = OpenDataset.of_frame(ref, frame, table)
    return replace(opened, version=version, last_commit=last_commit)


def open_query(spark: SparkSession, ref: DatasetRef, text: str) -> OpenDataset:
    """A SELECT over tables and views.

    :raises DatasetError: the text is another statement, or reads a source that may lose values.
    """
    require_strict_session(spark, ref, "what it reads of the catalog")
    objection = read_only_sql.objection_to_select(text)
    if objection is not None:
        message = f"the query of dataset '{ref.name}': {objection}"
        raise DatasetError(message, "write one SELECT over tables of the catalog")
    for table in read_only_sql.tables_of_select(text):
        _require_strict(spark, ref, table)
    return OpenDataset.of_frame(ref, spark.sql(text), ref.location)


def _forget(spark: SparkSession, table: str) -> None:
    """Makes a session read a table again: it keeps the list of its files, Iceberg its metadata, and
    an application the rows of `CACHE TABLE`, which is computed again.

    A gate of the same job, an earlier gate of a server, or a notebook may have read it before.
    """
    for name in {table, iceberg.table_in(table)}:
        with suppress(PySparkException):  # reading what does not exist fails as well
            spark.catalog.refreshTable(name)


def _require_strict(spark: SparkSession, ref: DatasetRef, table: str, depth: int = 0) -> None:
    """Rejects text-file tables behind a query or a view, where no reader options apply.

    :raises DatasetError: values that do not fit a column would become NULL.
    """
    _forget(spark, table)
    about = _description(spark, table)
    kind = _text_format(about)
    if kind and not _has_mode(about):
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in _STRICT.items())
        raise DatasetError(
            f"dataset '{ref.name}' reads {table}, a table of {kind} files, where Spark makes NULL "
            "of what does not fit its columns",
            f"ALTER TABLE {table} SET SERDEPROPERTIES ({properties}), or make {table} the dataset",
        )
    _require_moments(spark, ref, table, about.get("Provider", "").lower())
    _require_strict_views(spark, ref, about, depth)


def _require_moments(spark: SparkSession, ref: DatasetRef, table: str, provider: str) -> None:
    """Rejects a table of the catalog whose partitions are named by timestamps without a time zone,
    if this session would read them in another zone than UTC.

    :raises DatasetError: there is one.
    """
    if provider in ("", "iceberg") or "timestamp" not in dict(spark.table(table).dtypes).values():
        return
    if provider == "delta":
        require_moments_of_table(spark, ref, table)
        return
    if is_in_utc(spark):
        return
    for column in spark.catalog.listColumns(table):
        if column.isPartition and column.dataType == "timestamp":
            raise DatasetError(
                f"dataset '{ref.name}': {table} is partitioned by '{column.name}', whose "
                "timestamps have no time zone: this Spark session would read them in its own",
                f"set {TIME_ZONE}=UTC, at least for the gate",
            )


def _require_strict_views(
    spark: SparkSession, ref: DatasetRef, about: Mapping[str, str], depth: int = 0
) -> None:
    for table in _tables_behind(about):
        if depth >= _MOST_VIEWS:
            raise DatasetError(
                f"dataset '{ref.name}': {table} is behind more than {_MOST_VIEWS} nested views",
                "read one of the inner views or tables",
            )
        _require_strict(spark, ref, table, depth + 1)


def _tables_behind(about: Mapping[str, str]) -> Iterator[str]:
    """The full names of the tables that a view reads, possibly from other databases."""
    home = about.get("View Catalog and Namespace", "")
    for table in read_only_sql.tables_of_select(about.get("View Text", "")):
        yield f"{home}.{table}" if home and "." not in table else table


def _text_format(about: Mapping[str, str]) -> str | None:
    """The format of a table of text files, which may be given as the class of its reader."""
    provider = about.get("Provider", "").lower()
    for kind in _OF_TEXT:
        if kind in provider:
            return kind
    return None


def _has_mode(about: Mapping[str, str]) -> bool:
    """True if the owner of a table has chosen what happens to values that do not fit."""
    properties = about.get("Storage Properties", "").strip("[]").lower().split(",")
    return any(item.strip().startswith("mode=") for item in properties)


def _description(spark: SparkSession, table: str) -> Mapping[str, str]:
    """The catalog's description of a table; empty for a temporary view."""
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    except PySparkException:
        return {}  # reading it fails as well, with the reason
    names = [str(row[0]) for row in rows]
    # The columns come before this line, and may have any names.
    start = names.index(_DETAILS) if _DETAILS in names else len(rows)
    return {str(row[0]): str(row[1]) for row in rows[start:]}


def _last_commit(spark: SparkSession, table: str, version: int) -> datetime | None:
    """The time of the last data change of a Delta table, if its history still has it."""
    kept = ", ".join(map(quote_literal, sorted(KEEP_THE_DATA)))
    history = (
        spark.sql(f"DESCRIBE HISTORY {table} LIMIT {COMMITS_READ}")
        .where(f"version <= {version} AND upper(operation) NOT IN ({kept})")
        .selectExpr("max(unix_micros(timestamp))")
        .collect()[0][0]
    )
    return None if history is None else datetime.fromtimestamp(history / 1_000_000, timezone.utc)


def _version_of(spark: SparkSession, ref: DatasetRef, table: str) -> int:
    if ref.version is not None:
        return ref.version
    commits = spark.sql(f"DESCRIBE HISTORY {table}")
    if ref.timestamp is not None:
        timestamp = timestamp_of(ref.timestamp).isoformat()
        commits = commits.where(f"timestamp <= TIMESTAMP_LTZ'{timestamp}'")
    newest = commits.selectExpr("max(version)").collect()[0][0]
    if newest is None:
        raise too_early(ref, table)
    return int(newest)
