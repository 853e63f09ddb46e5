"""Database tables, read over JDBC: by several connections, with the errors of drivers explained.

Spark only reports that it could not connect; the reason is in the exceptions behind that one. None
of them holds a password: it is not part of the URL.

Rows outside the bounds are read as well: bounds only define how the work is divided.

Spark compiles no condition to SQL here: it writes timestamps in a zone that the database does not
know, and databases compare strings by their own rules. The query to the database selects the
necessary columns and the days around the dates; Spark decides the rest.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.resources import files
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import DataType, DateType, IntegralType, StructType

from dqx_airflow.datasets.databases import (
    DATABASES,
    DatabaseConnection,
    DatabaseKind,
    connection_in,
)
from dqx_airflow.datasets.reader_options import given_options, option_of
from dqx_airflow.engine.session.spark_errors import cause_of, spark_failures
from dqx_airflow.engine.session.spark_versions import type_named
from dqx_airflow.engine.sources.database_texts import (
    DIVIDING_COLUMN,
    DatabaseColumns,
    database_columns,
    selected,
    type_there,
)
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.errors import DatasetError, RequestError, SparkError
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.values import JDBC, DatasetRef

_log = logging.getLogger("dqx.gate")

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


DIVIDING = ("partitioncolumn", "lowerbound", "upperbound", "numpartitions")
"""The options that define how a read is divided, in lower case."""

_NOT_PASSED = (*DIVIDING, "customschema")
"""The options that a gate applies itself, in lower case."""

_MOST = 8
"""Each partition needs a connection, and databases allow only a few."""
_LEAST_KEYS = 100_000
"""With fewer keys per connection, another connection costs more than it saves."""
_LEAST_DAYS = 30

_INDEXES = files(__package__).joinpath("leading_columns.sql").read_text(encoding="utf-8")
_TYPES = files(__package__).joinpath("column_types.sql").read_text(encoding="utf-8")

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
        table = _Table(spark, ref, connection, connection.table_parts(ref.table or ""))
        with table.failures():
            columns = table.columns()
            dates = DateColumn.of(ref, columns.struct)
            divided = table.partition_options(columns.as_read)
    except RequestError as error:
        raise DatasetError(f"dataset '{ref.name}': {error.problem}", error.hint) from None

    by = divided.get("partitionColumn") or divided.get("partitioncolumn")
    divided_by = next((name for name in columns.texts if by and name.lower() == by.lower()), None)
    if divided_by is not None:
        divided = {**divided, "partitionColumn": DIVIDING_COLUMN}
        divided.pop("partitioncolumn", None)

    def read(wanted: Collection[date | None]) -> DataFrame:
        condition = None if dates is None else days_around(connection.database, dates, wanted)
        place = table.name
        if condition is not None or columns.are_rewritten:
            where = "" if condition is None else f" WHERE {condition}"
            place = table.selection(columns.sql(connection.database, divided_by), where)
        with table.failures():
            reader = table.reader(columns.texts_of_driver).options(**divided)
            return columns.values_in(reader.option("dbtable", place).load())

    partial = None
    if columns.hides_rows:
        whom = connection.user or "the user of the connection"
        partial = f"row security of {ref.table} lets {whom} see only some of its rows"
        _log.warning("dataset '%s': %s", ref.name, partial)
    return OpenDataset(ref, columns.struct, read, ref.location, dates, partial=partial)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a database; `parts` are the parts of its name."""

    spark: SparkSession
    ref: DatasetRef
    connection: DatabaseConnection
    parts: tuple[str, ...]

    @property
    def database(self) -> DatabaseKind:
        return self.connection.database

    @property
    def name(self) -> str:
        """The name of the table, quoted for the database."""
        return ".".join(map(self.database.quoted, self.parts))

    def selection(self, columns: str, where: str = "") -> str:
        """A query of the table, as a part of another one."""
        return f"(SELECT {columns} FROM {self.name}{where}) dqx"  # noqa: S608 (all is quoted)

    def reader(self, as_strings: Collection[str] = ()) -> DataFrameReader:
        """A reader with the credentials of the connection, which Spark displays nowhere; without
        the options that divide a read.

        :param as_strings: the columns that Spark reads as the strings that the driver writes.
        """
        connection = self.connection
        options = given_options(self.ref)
        own = {key: text for key, text in options.items() if key.lower() not in _NOT_PASSED}
        if as_strings:
            own["customSchema"] = ", ".join(f"{quote_name(name)} string" for name in as_strings)
        login = {"user": connection.user, "password": connection.password}
        return (
            self.spark.read.format(JDBC)
            .options(**_DEFAULTS)
            .options(**dict(connection.properties))
            .options(**own)
            .options(**_OURS, url=connection.url, driver=self.database.driver)
            .options(**{key: text for key, text in login.items() if text is not None})
        )

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Raises database failures as errors of the dataset.

        :raises DatasetError: the table cannot be read.
        :raises SparkError: the database does not respond, which may be temporary.
        """
        try:
            with spark_failures():
                yield
        except PySparkException as error:
            raise self._failure(cause_of(error)) from None

    def _failure(self, cause: str) -> DatasetError | SparkError:
        about = f"dataset '{self.ref.name}'"
        connection, database = self.connection, self.database
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
                f"{about}: the database {connection} has no table {self.ref.table}: {message}",
                "write the name with its schema, in the same case as in the database",
            )
        return DatasetError(
            f"{about}: the database {connection} refused the query: {message}",
            f"check the connection '{connection.conn_id}', and what its user may read",
        )

    def partition_options(self, struct: StructType) -> dict[str, str]:
        """The options that divide a read of the table; none for a single connection.

        Options of the dataset take precedence: a `partitionColumn` without bounds gets them, and
        `numPartitions` alone is an upper limit.

        :raises RequestError: the table cannot be divided by the given column.
        """
        given = {name.lower(): value for name, value in given_options(self.ref).items()}
        options = {name: value for name, value in given.items() if name in DIVIDING}
        most = options.get("numpartitions", str(_MOST))
        column = options.get("partitioncolumn")
        if "lowerbound" in options or "upperbound" in options:
            return {**options, "numpartitions": most}
        if not most.isdigit() or int(most) == 1:
            return {}
        if column is None:
            column = self._key(struct)
        elif not _is_divisible(struct, column):
            message = f"the partitionColumn {column} is not a column of whole numbers or dates"
            hint = "choose another one, or give lowerBound and upperBound as well"
            raise RequestError(message, hint)
        if column is None:
            return {}
        quoted = self.database.quoted(column)
        bounds = f"SELECT min({quoted}) AS lower, max({quoted}) AS upper FROM {self.name}"  # noqa: S608
        (row,) = self.reader().option("query", bounds).load().collect()
        number = _number(row[0], row[1], int(most))
        if number < 2:
            return {}
        return {
            "partitionColumn": column,
            "lowerBound": str(row[0]),
            "upperBound": str(row[1]),
            "numPartitions": str(number),
        }

    def _key(self, struct: StructType) -> str | None:
        """The name of an indexed column of integers or dates; None without one."""
        ranked = sorted((int(row[1]), str(row[0])) for row in self._asked(_INDEXES))
        return next((name for _, name in ranked if _is_divisible(struct, name)), None)

    def columns(self) -> DatabaseColumns:
        """The columns, and how they are read.

        :raises RequestError: `customSchema` is wrong.
        """
        rows = self._asked(_TYPES)
        types = {str(row[0]): type_there(*row[1:4]) for row in rows}
        as_written = self.reader().option("dbtable", self.name)
        if any(one.cast_to is not None for one in types.values()):
            written = selected(self.database, types, types)
            as_written = self.reader().option("dbtable", self.selection(written))
        columns = database_columns(
            self.database,
            as_written.load().schema,
            types,
            self._chosen_types(),
            turns_zero_dates=self.connection.turns_zero_dates,
            hides_rows=any(row[4] for row in rows if len(row) > 4),
        )
        for name, column in columns.recast.items():
            read = f"CAST(NULL AS {column.read_as.simpleString()}) AS {quote_name(name)}"
            try:
                self.spark.range(0).selectExpr(read).selectExpr(column.value).schema  # noqa: B018
            except PySparkException:
                raise RequestError(
                    f"customSchema cannot make column {name} {column.data_type.simpleString()}: "
                    f"it is {column.read_as.simpleString()}",
                    "leave the column out, or write string",
                ) from None
        return columns

    def _chosen_types(self) -> dict[str, DataType]:
        """The types that the user chose, by the columns in lower case."""
        text = option_of(self.ref, "customSchema")
        if not text:
            return {}
        try:
            chosen = type_named(f"struct<{text}>")
        except PySparkException:
            chosen = None
        if not isinstance(chosen, StructType):
            raise RequestError(
                f"customSchema '{text}' is not a list of columns and types",
                'write it as "amount decimal(38,30), note string"',
            )
        return {field.name.lower(): field.dataType for field in chosen.fields}

    def _asked(self, queries: str) -> list[Any]:
        """The answer of the database to the query of its kind; none if its kind has no query."""
        _, found, after = queries.partition(f"\n-- {self.database.kind}\n")
        if not found:
            return []
        query = after.partition("\n\n")[0].format(
            table=_key_literal(self.name),
            schema=_key_literal(self.parts[-2]) if len(self.parts) > 1 else "NULL",
            name=_key_literal(self.parts[-1]),
        )
        return list(self.reader().option("query", query).load().collect())


def _number(lower: Any, upper: Any, most: int) -> int:
    """The number of connections that pay off for keys between two bounds."""
    if lower is None:
        return 1
    span = upper - lower
    least = _LEAST_KEYS if isinstance(span, int) else _LEAST_DAYS
    return max(1, min(most, (span if isinstance(span, int) else span.days) // least))


def _is_divisible(struct: StructType, column: str) -> bool:
    return column in struct.names and isinstance(struct[column].dataType, IntegralType | DateType)


def _key_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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
        first = days[0] - _MARGIN
        end = days[-1] + _MARGIN + timedelta(days=1)
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
