"""The contents of a catalog table, read by Spark one column at a time. Imports pyspark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from pyspark.sql import SparkSession

from dqx_airflow.contracts.dialects.clause_reader import slug
from dqx_airflow.contracts.drafting import ObservedTable
from dqx_airflow.datasets.connection import Connection
from dqx_airflow.dql.syntax.grammar import unquoted
from dqx_airflow.engine.session.connection import open_session, spark_errors_explained
from dqx_airflow.engine.sources.open import open_dataset
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.tuning.table_profile import ColumnTable, observed
from dqx_airflow.values import DatasetRef

T = TypeVar("T")

_PART = re.compile(r"`(?:[^`]|``)*`|[^.`]+")


def observe_table(spark: SparkSession, table: str) -> ObservedTable:
    """The contents of the table in its current version.

    :raises DatasetError: there is none, or it cannot be read.
    """
    parts = _parts_of(spark, table)
    last = unquoted(parts[-1])
    name = last if last.isidentifier() else slug(last) or "data"
    return observed(_columns_of(spark, table), name, ".".join(parts))


def observe_over(connection: Connection, settings: Mapping[str, str], table: str) -> ObservedTable:
    """`observe_table` in a session of its own.

    :raises SparkError: Spark cannot be reached.
    """
    with _session(connection, settings, "dql contract init") as spark:
        return observe_table(spark, table)


def read_over(
    connection: Connection, settings: Mapping[str, str], table: str, use: Callable[[ColumnTable], T]
) -> T:
    """A result computed from the table, with a session of its own.

    :raises SparkError: Spark cannot be reached.
    """
    with _session(connection, settings, "dql suggest") as spark:
        return use(_columns_of(spark, table))


@contextmanager
def _session(
    connection: Connection, settings: Mapping[str, str], title: str
) -> Iterator[SparkSession]:
    spark = open_session(connection, title, settings)
    try:
        with spark_errors_explained(connection):
            yield spark
    finally:
        spark.stop()


def _columns_of(spark: SparkSession, table: str) -> ColumnTable:
    frame = open_dataset(spark, DatasetRef(table, table=table)).read(())
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    return ColumnTable(
        tuple(types),
        {name: "string" if kind == "void" else kind for name, kind in types.items()},
        frame.count(),
        lambda name: frame.select(quote_name(name)).toArrow().column(0),
    )


def _parts_of(spark: SparkSession, table: str) -> list[str]:
    """The parts of a table's full name, without unnecessary backticks."""
    written_parts = _PART.findall(table)
    parts = [unquoted(part) if unquoted(part).isidentifier() else part for part in written_parts]
    if len(parts) == 1:
        parts = [spark.catalog.currentDatabase(), *parts]
    if len(parts) == 2:
        parts = [spark.catalog.currentCatalog(), *parts]
    return parts
