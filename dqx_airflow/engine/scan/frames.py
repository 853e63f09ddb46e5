"""Spark frames with the rows of a scan, their lookups, and the columns that its SQL names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.session.spark_versions import formatted, query_over
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.declared_texts import TextColumns
from dqx_airflow.metrics.sql import malformed_alias, quote_literal, quote_name
from dqx_airflow.metrics.types import ColumnPath
from dqx_airflow.plan.model import Lookup, MetricRequest
from dqx_airflow.plan.row_comparisons import as_key
from dqx_airflow.plan.schema_check import Schema, places_of, texts_of

DATE = "dqx: date of the row"
"""The column with the date of a row, in frames of several dates."""


@dataclass(frozen=True, slots=True)
class ReferenceTables:
    """The datasets of lookups by name, if they could be opened.

    Only the rows of `date` of a dataset with dates are visible, as in a query.

    """

    opened: Mapping[str, OpenDataset]
    date: date


def rows_of_dates(dataset: OpenDataset, dates: set[date | None]) -> DataFrame:
    """The rows of the dates, with a column for the date of each row if there are several."""
    frame = rows_with_texts(dataset, dates)
    if dataset.dates is None or len(dates) == 1:
        return frame
    on = dataset.dates.date_of_row(dates)
    lost = has_lost_its_date(dataset)
    if lost is not None:
        every = ", ".join(quote_literal(day) for day in sorted(day for day in dates if day))
        on = f"explode(CASE WHEN {lost} THEN array({every}) ELSE array({on}) END)"
    return frame.withColumn(DATE, F.expr(on))


def rows_of(dataset: OpenDataset, on: date) -> DataFrame:
    """The rows of a date, or all rows of a dataset without dates."""
    frame = rows_with_texts(dataset, {on})
    return frame.select(*map(quote_name, dataset.struct.names)) if dataset.texts else frame


def condition_of(spark: SparkSession, dataset: OpenDataset, on: date) -> str | None:
    """A Spark SQL condition for the rows of a date in a version; None if there are no other rows.

    The condition means the same in any session.

    """
    conditions = [f"({dataset.ref.filter})"] if dataset.ref.filter is not None else []
    column = dataset.dates
    if column is not None:
        if column.type == "timestamp" and column.zone is None:
            column = replace(column, zone=spark.conf.get("spark.sql.session.timeZone"))
        conditions.append(f"({column.filter({on})})")
    return " AND ".join(conditions) or None


def rows_with_texts(dataset: OpenDataset, dates: Collection[date | None]) -> DataFrame:
    """The rows of dates, together with the strings that their values are cast from, if any."""
    frame = dataset.read(dates)
    if dataset.dates is None:
        return frame
    condition = dataset.dates.filter(dates)
    lost = has_lost_its_date(dataset)
    return frame.where(condition if lost is None else f"({condition}) OR {lost}")


def has_lost_its_date(dataset: OpenDataset) -> str | None:
    """A Spark SQL condition for rows whose date cannot be read; None if there can be no such row.

    Such a row belongs to every date: otherwise no run would ever see it.
    """
    column, texts = dataset.dates, dataset.texts
    if column is None or texts is None or column.name not in texts.columns:
        return None
    is_gone = f"({texts.is_broken_line} AND {quote_name(column.name)} IS NULL)"
    return f"({texts.is_misfit(column.name)} OR {is_gone})"


def with_named_columns(
    frame: DataFrame,
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    lookups: Sequence[Lookup],
    references: ReferenceTables,
) -> DataFrame:
    """Rows of a dataset with all columns that the SQL of requests names.

    :param lookups: the lookups that the SQL uses.
    """
    frame = with_places(frame, places_of(requests, lookups, dataset.schema))
    if dataset.texts is not None:
        frame = _with_malformed(frame, dataset.texts, dataset.schema, requests)
    if lookups:
        frame = _with_lookups(frame, lookups, references, dataset.schema)
    return frame


def _with_malformed(
    frame: DataFrame, held: TextColumns, schema: Schema, requests: Iterable[MetricRequest]
) -> DataFrame:
    """The frame with a column for each request about strings, true where one is malformed."""
    columns = {}
    for request in requests:
        if request.definition.is_of_texts:
            texts = texts_of(request, schema, held.columns)
            condition = held.is_malformed(texts.columns, or_broken=texts.has_lines)
            columns[malformed_alias(request.metric, request.arguments[0])] = F.expr(condition)
    return frame.withColumns(columns) if columns else frame


def with_places(frame: DataFrame, places: Mapping[str, ColumnPath]) -> DataFrame:
    """The frame with a column for each name that is an alias of a column or a struct field."""
    # Names that differ only in case are one column to Spark, unless the session is case-sensitive.
    layers: list[dict[str, Column]] = []
    taken: Counter[str] = Counter()
    for name, place in places.items():
        layer = taken[name.casefold()]
        taken[name.casefold()] += 1
        if layer == len(layers):
            layers.append({})
        layers[layer][name] = F.expr(quote_name(*place.path))
    for columns in layers:
        frame = frame.withColumns(columns)
    return frame


def _with_lookups(
    frame: DataFrame, lookups: Sequence[Lookup], references: ReferenceTables, schema: Schema
) -> DataFrame:
    """The frame with one more column for each lookup: true, or NULL where the value is missing.

    Spark plans each as an existence join: the reference is not made distinct, and cannot multiply
    rows. Sail has none below aggregates, and joins the distinct keys.

    :param schema: the schema of the frame.
    """
    # Quoted names are the only input of the user in the query.
    is_sail = sail_version(frame.sparkSession) is not None
    columns = ["scanned.*" if is_sail else "*"]
    joins = ""
    tables = {"scanned": frame}
    for number, lookup in enumerate(lookups):
        table = f"reference_{number}"
        reference = references.opened[lookup.reference]
        places = places_of((), [lookup], reference.schema)
        tables[table] = with_places(rows_of(reference, references.date), places)
        column_type = schema.type_of(lookup.column)
        reference_type = reference.schema.type_of(lookup.reference_column)
        value = formatted(as_key(quote_name("scanned", lookup.column), column_type, reference_type))
        key = formatted(as_key(quote_name(lookup.reference_column), reference_type, column_type))
        alias = formatted(quote_name(lookup.alias))
        keys = f"SELECT {key} AS key FROM {{{table}}} WHERE {key} IS NOT NULL"  # noqa: S608
        if is_sail:
            known = f"(SELECT DISTINCT key, true AS known FROM ({keys})) AS keys_{number}"  # noqa: S608
            joins += f" LEFT JOIN {known} ON {value} = keys_{number}.key"
            columns.append(f"keys_{number}.known AS {alias}")
        else:
            # Not nullif(): of a value that is NULL, Spark 3.5 would make false.
            columns.append(f"CASE WHEN {value} IN ({keys}) THEN true END AS {alias}")
    query = f"SELECT {', '.join(columns)} FROM {{scanned}} AS scanned{joins}"  # noqa: S608
    return query_over(frame.sparkSession, query, tables)
