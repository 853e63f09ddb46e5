"""Loads a Delta table: by its log, or by the Delta source of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets.delta_log import require_whole_commits
from dqx_airflow.datasets.settings import timestamp_of
from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.sources.errors import nothing_there, too_early
from dqx_airflow.engine.sources.listing import is_local
from dqx_airflow.errors import DatasetError, first_line
from dqx_airflow.values import DatasetRef

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

    The source itself is asked: on some platforms it is available without being configured, and
    elsewhere it is configured but its package is missing. A plain session is not asked: it cannot
    have the source, and would look for one in Python, too.
    """
    if all(spark.conf.get(name, plain) == plain for name, plain in _EXTENDED_BY.items()):
        return False
    try:
        with spark_failures():
            _ = spark.read.format("delta").load(_NOWHERE).schema
    except PySparkException as error:
        return error.getCondition() not in _MISSING
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
    newest, version = int(table.version()), int(ref.version or 0)
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
