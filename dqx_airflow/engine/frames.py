"""Data frames of a dataset: the rows of some dates, with what lookups need beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.engine.sources import OpenDataset
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.model import Lookup
from dqx_airflow.plan.schema_check import Place, places_of

DATE = "dqx: date of the row"
"""The column that holds the date of a row, where a dataset has dates."""


@dataclass(frozen=True, slots=True)
class References:
    """The datasets that lookups look into, those that could be opened, by name.

    Of one with dates they see the rows of `date` alone, as a query does.
    """

    opened: Mapping[str, OpenDataset]
    date: date


def rows_of_dates(dataset: OpenDataset, dates: set[date | None]) -> DataFrame:
    """The rows of the dates, with the date of each row as one more column."""
    frame = dataset.read(dates)
    column = dataset.dates
    if column is None:
        return frame
    return frame.where(column.filter(dates)).withColumn(DATE, F.expr(column.date_of_row(dates)))


def rows_of(dataset: OpenDataset, on: date) -> DataFrame:
    """The rows of a date; all rows of a dataset without dates."""
    frame = dataset.read({on})
    return frame if dataset.dates is None else frame.where(dataset.dates.filter({on}))


def with_places(frame: DataFrame, places: Mapping[str, Place]) -> DataFrame:
    """The frame with a column of each name that leads to another one, or to a field of a struct."""
    for name, place in places.items():
        frame = frame.withColumn(name, F.expr(quote_name(*place.path)))
    return frame


def with_lookups(
    spark: SparkSession,
    frame: DataFrame,
    lookups: Sequence[Lookup],
    references: References,
) -> DataFrame:
    """The frame with one more column for each lookup: true, or NULL where the value is missing.

    Spark plans each as an existence join: the reference is neither made distinct nor can it
    multiply rows.
    """
    if not lookups:
        return frame
    # Quoted names are all of the user's that gets into the query.
    columns, tables = ["*"], {"scanned": frame}
    for number, lookup in enumerate(lookups):
        table = f"reference_{number}"
        reference = references.opened[lookup.reference]
        places = places_of((), [lookup], reference.schema)
        tables[table] = with_places(rows_of(reference, references.date), places)
        value = formatted(quote_name("scanned", lookup.column))
        key, alias = (
            formatted(quote_name(name)) for name in (lookup.reference_column, lookup.alias)
        )
        known = f"SELECT {key} FROM {{{table}}} WHERE {key} IS NOT NULL"  # noqa: S608
        columns.append(f"nullif({value} IN ({known}), false) AS {alias}")
    query = f"SELECT {', '.join(columns)} FROM {{scanned}} AS scanned"  # noqa: S608
    return spark.sql(query, **tables)


def formatted(text: str) -> str:
    """Braces doubled: `spark.sql` formats its text."""
    return text.replace("{", "{{").replace("}", "}}")
