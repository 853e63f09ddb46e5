"""A database table as a dataset: its columns, and how the rows of some dates are read.

Spark compiles no condition to SQL here: it writes timestamps in a zone that the database does not
know, and databases compare strings by their own rules. The database is asked for the necessary
columns and the days around the dates; Spark decides the rest.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader

from dqx_airflow.datasets.databases import (
    DATABASES,
    DatabaseConnection,
    DatabaseKind,
    connection_in,
)
from dqx_airflow.datasets.reader_options import given_options
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.jdbc.failures import database_failures
from dqx_airflow.engine.sources.jdbc.partitions import DIVIDING, partition_options
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.values import JDBC, DatasetRef

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

    >>> from dqx_airflow.datasets.databases import DATABASES
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
