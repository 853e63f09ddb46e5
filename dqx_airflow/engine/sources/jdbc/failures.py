"""Errors of JDBC drivers and databases, in the words of users.

Spark only reports that it could not connect; the reason is in the exceptions behind that one. None
of them holds a password: it is not part of the URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from dqx_airflow.datasets.databases import DatabaseConnection
from dqx_airflow.engine.session.spark_errors import cause_of, spark_failures
from dqx_airflow.errors import DatasetError, SparkError
from dqx_airflow.values import DatasetRef

_NO_DRIVER = re.compile(r"ClassNotFoundException|No suitable driver")
_NO_ANSWER = re.compile(
    r"refused|timed out|UnknownHost|unreachable|connection attempt failed|link failure|"
    r"TCP/IP connection|too many (clients|connections)|starting up|shutting down|"
    r"terminating connection|connection slots",
    re.IGNORECASE,
)
_JAVA = re.compile(r"^\S+ \[JAVA_EXCEPTION\] ")
_NO_TABLE = re.compile(
    r"relation .* does not exist|Table .* doesn't exist|Invalid object name", re.IGNORECASE
)


@contextmanager
def database_failures(ref: DatasetRef, connection: DatabaseConnection) -> Iterator[None]:
    """Raises database failures as errors of the dataset.

    :raises DatasetError: the table cannot be read.
    :raises SparkError: the database does not respond, which may be temporary.
    """
    try:
        with spark_failures():
            yield
    except PySparkException as error:
        raise _failure(ref, connection, cause_of(error)) from None


def _failure(
    ref: DatasetRef, connection: DatabaseConnection, cause: str
) -> DatasetError | SparkError:
    about = f"dataset '{ref.name}'"
    database = connection.database
    if _NO_DRIVER.search(cause):
        return DatasetError(
            f"{about}: this Spark session has no driver for {database.kind}, {database.driver}",
            f'give the gate packages="{database.package}"; for `dql run`, set '
            f'"spark.jars.packages" = "{database.package}" in [connection.conf] of dqx.toml',
        )
    message = _JAVA.sub("", cause)
    if _NO_ANSWER.search(cause):
        return SparkError(
            f"{about}: the database {connection} does not respond: {message}",
            f"check the host and the port of the connection '{connection.conn_id}'",
        )
    if _NO_TABLE.search(cause):
        return DatasetError(
            f"{about}: the database {connection} has no table {ref.table}: {message}",
            "write the name with its schema, in the same case as in the database",
        )
    return DatasetError(
        f"{about}: the database {connection} refused the query: {message}",
        f"check the connection '{connection.conn_id}', and what its user may read",
    )
