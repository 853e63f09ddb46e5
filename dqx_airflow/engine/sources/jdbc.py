"""Database tables, read over JDBC: by several connections, with the errors of drivers explained.

Spark only reports that it could not connect; the reason is in the exceptions behind that one. None
of them holds a password: it is not part of the URL.

Rows outside the bounds are read as well: bounds only define how the work is divided.

Spark compiles no condition to SQL here: it writes timestamps in a zone that the database does not
know, and databases compare strings by their own rules. The database is asked for the necessary
columns and the days around the dates; Spark decides the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from importlib.resources import files
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import DateType, IntegralType, StructType

from dqx_airflow.datasets.connections import (
    DATABASES,
    DatabaseConnection,
    DatabaseKind,
    connection_in,
)
from dqx_airflow.datasets.reader_options import given_options
from dqx_airflow.engine.session.spark_errors import cause_of, spark_failures
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.errors import DatasetError, RequestError, SparkError
from dqx_airflow.values import JDBC, DatasetRef

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


DIVIDING = ("partitioncolumn", "lowerbound", "upperbound", "numpartitions")
"""The options that define how a read is divided, in lower case."""

_MOST = 8
"""Each partition needs a connection, and databases allow only a few."""
_LEAST_KEYS = 100_000
"""With fewer keys per connection, another connection costs more than it saves."""
_LEAST_DAYS = 30

_INDEXES = files(__package__).joinpath("leading_columns.sql").read_text(encoding="utf-8")


def partition_options(
    reader: Callable[[], DataFrameReader],
    given: Mapping[str, str],
    database: DatabaseKind,
    table: Sequence[str],
    struct: StructType,
) -> dict[str, str]:
    """The options that divide a read of a table; none for a single connection.

    `given` options take precedence: a `partitionColumn` without bounds gets them, and
    `numPartitions` alone is an upper limit.

    :param reader: returns one without these options.
    :param table: the parts of its name.
    :raises RequestError: the table cannot be divided by the given column.
    """
    options = {name.lower(): value for name, value in given.items() if name.lower() in DIVIDING}
    most, column = options.get("numpartitions", str(_MOST)), options.get("partitioncolumn")
    if "lowerbound" in options or "upperbound" in options:
        return {**options, "numpartitions": most}
    if not most.isdigit() or int(most) == 1:
        return {}
    if column is None:
        column = _key(reader, database, table, struct)
    elif not _is_divisible(struct, column):
        message = f"the partitionColumn {column} is not a column of whole numbers or dates"
        raise RequestError(message, "choose another one, or give lowerBound and upperBound as well")
    if column is None:
        return {}
    quoted, place = database.quoted(column), ".".join(map(database.quoted, table))
    bounds = f"SELECT min({quoted}) AS lower, max({quoted}) AS upper FROM {place}"  # noqa: S608
    (row,) = reader().option("query", bounds).load().collect()
    number = _number(row[0], row[1], int(most))
    if number < 2:
        return {}
    return {
        "partitionColumn": column,
        "lowerBound": str(row[0]),
        "upperBound": str(row[1]),
        "numPartitions": str(number),
    }


def _number(lower: Any, upper: Any, most: int) -> int:
    """The number of connections that pay off for keys between two bounds."""
    if lower is None:
        return 1
    span = upper - lower
    least = _LEAST_KEYS if isinstance(span, int) else _LEAST_DAYS
    return max(1, min(most, (span if isinstance(span, int) else span.days) // least))


def _key(
    reader: Callable[[], DataFrameReader],
    database: DatabaseKind,
    table: Sequence[str],
    struct: StructType,
) -> str | None:
    """An indexed column of integers or dates."""
    text = (
        _INDEXES.split(f"\n-- {database.kind}\n")[1]
        .partition("\n\n")[0]
        .format(
            table=_key_literal(".".join(map(database.quoted, table))),
            schema=_key_literal(table[-2]) if len(table) > 1 else "NULL",
            name=_key_literal(table[-1]),
        )
    )
    rows = reader().option("query", text).load().collect()
    ranked = sorted((int(row[1]), str(row[0])) for row in rows)
    return next((name for _, name in ranked if _is_divisible(struct, name)), None)


def _is_divisible(struct: StructType, column: str) -> bool:
    return column in struct.names and isinstance(struct[column].dataType, IntegralType | DateType)


def _key_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_DEFAULTS = {
    # Without it the PostgreSQL driver keeps all rows in memory.
    "fetchsize": "10000"
}
_OURS = {"preferTimestampNTZ": "true", "pushDownPredicate": "false"}
_MARGIN = timedelta(days=2)
"""The days of timestamps depend on the time zone, and two zones are at most 26 hours apart."""


def open_database_table(spark: SparkSession, ref: DatasetRef) -> OpenDataset:
    """A database table, which has no versions: each pass reads its current rows.

    :raises DatasetError: it cannot be read.
    :raises SparkError: the database does not respond.
    """
    try:
        connection = connection_in(os.environ, ref.conn_id or "")
        parts = connection.table_parts(ref.table or "")
    except RequestError as error:
        raise DatasetError(f"dataset '{ref.name}': {error.problem}", error.hint) from None
    database = connection.database
    table = ".".join(map(database.quoted, parts))

    options = given_options(ref)
    plain = {name: text for name, text in options.items() if name.lower() not in DIVIDING}

    def reader() -> DataFrameReader:
        return jdbc_reader(spark, connection, plain)

    with database_failures(ref, connection):
        struct = reader().option("dbtable", table).load().schema
        dates = DateColumn.of(ref, struct)
        try:
            divided = partition_options(reader, options, database, parts, struct)
        except RequestError as error:
            raise DatasetError(f"dataset '{ref.name}': {error.problem}", error.hint) from None

    def read(wanted: Collection[date | None]) -> DataFrame:
        condition = None if dates is None else days_around(database, dates, wanted)
        place = table
        if condition is not None:
            place = f"(SELECT * FROM {table} WHERE {condition}) dqx"  # noqa: S608 (all is quoted)
        with database_failures(ref, connection):
            return reader().options(**divided).option("dbtable", place).load()

    return OpenDataset(ref, struct, read, ref.location, dates)


def jdbc_reader(
    spark: SparkSession, connection: DatabaseConnection, options: dict[str, str]
) -> DataFrameReader:
    """A reader with the credentials of a connection, which Spark displays nowhere."""
    database = connection.database
    login = {"user": connection.user, "password": connection.password}
    return (
        spark.read.format(JDBC)
        .options(**_DEFAULTS)
        .options(**dict(connection.properties))
        .options(**options)
        .options(**_OURS, url=connection.url, driver=database.driver)
        .options(**{key: text for key, text in login.items() if text is not None})
    )


def days_around(
    database: DatabaseKind, dates: DateColumn, wanted: Collection[date | None]
) -> str | None:
    """A condition that holds for all rows of some dates, and maybe for others; None for all rows.

    >>> from dqx_airflow.datasets.connections import DATABASES
    >>> column = DateColumn("ds", "date")
    >>> days_around(DATABASES["mysql"], column, {date(2024, 3, 2)})
    "`ds` IN (CAST('2024-03-02' AS date))"
    """
    days = sorted(on for on in wanted if on is not None)
    if not days or None in wanted:
        return None
    name = database.quoted(dates.name)
    if dates.is_timestamp:
        first, end = days[0] - _MARGIN, days[-1] + _MARGIN + timedelta(days=1)
        return f"{name} >= {_day(first)} AND {name} < {_day(end)}"
    return f"{name} IN ({', '.join(_literal(database, dates.value(on)) for on in days)})"


def _literal(database: DatabaseKind, value: date | str | int) -> str:
    if isinstance(value, date):
        return _day(value)
    if isinstance(value, int):
        return str(value)
    text = value.replace("'", "''")
    return f"'{text.replace(chr(92), chr(92) * 2) if database is DATABASES['mysql'] else text}'"


def _day(on: date) -> str:
    return f"CAST('{on.isoformat()}' AS date)"
