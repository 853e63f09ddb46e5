"""Spark frames with the rows of a scan, the queries of a suite over them, and the collection of
values.

A query sees the datasets of the gate under their names, with the rows of the date, and nothing
else: `WITH` gives these names priority over all others, and a query in parentheses can only read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.sail import sail_version
from dqx_airflow.engine.session.spark_errors import explain, spark_failures
from dqx_airflow.engine.session.spark_versions import formatted, interval_types, query_over
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.guessed_types import TextColumns
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.spark_values import is_finite, metric_value
from dqx_airflow.metrics.sql import malformed_alias, quote_literal, quote_name
from dqx_airflow.metrics.types import ColumnPath
from dqx_airflow.plan.model import Lookup, MetricRequest, Scanned
from dqx_airflow.plan.row_comparisons import as_key
from dqx_airflow.plan.schema_check import INFINITE, Schema, places_of, texts_of, void
from dqx_airflow.values import MetricValue

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
    on, lost = dataset.dates.date_of_row(dates), has_lost_its_date(dataset)
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
    condition, lost = dataset.dates.filter(dates), has_lost_its_date(dataset)
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
    # Names that differ only in case are one column to Spark, unless the session says otherwise.
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
    columns, joins, tables = ["scanned.*" if is_sail else "*"], "", {"scanned": frame}
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


def run_queries(
    spark: SparkSession,
    requests: Sequence[MetricRequest],
    opened: Mapping[str, OpenDataset],
    on: date,
) -> Scanned:
    """Runs queries: the value of each, or the reason why it has none.

    :param requests: requests of the metric `query`.
    :param opened: the datasets that could be opened, by name.
    """
    scanned = Scanned()

    def run(request: MetricRequest) -> None:
        text = request.arguments[0]
        try:
            with jobs_called(spark, f"query: {' '.join(text.split())}"), spark_failures():
                value = _value_of_query(spark, text, opened, on)
        except (PySparkException, DatasetError, ValueError) as error:
            reason = explain(error) if isinstance(error, PySparkException) else str(error)
            scanned.failures[request] = f"the query failed: {reason}"
            return
        if is_finite(value):
            scanned.values[request] = value
        else:
            void(request, INFINITE, scanned)

    side_by_side(spark, run, requests)
    return scanned


def _value_of_query(
    spark: SparkSession, text: str, opened: Mapping[str, OpenDataset], on: date
) -> MetricValue:
    tables = {f"table_{number}": name for number, name in enumerate(opened)}
    named = ", ".join(
        f"{formatted(quote_name(name))} AS (SELECT * FROM {{{table}}})"  # noqa: S608
        for table, name in tables.items()
    )
    # The closing parenthesis has a line of its own, because the query may end with a comment.
    query = f"WITH {named} SELECT * FROM (\n{formatted(text)}\n)"  # noqa: S608
    frames = {table: rows_of(opened[name], on) for table, name in tables.items()}
    frame = query_over(spark, query, frames)
    if len(frame.columns) != 1:
        raise ValueError(f"the query returned {len(frame.columns)} columns; expected one number")
    if isinstance(frame.schema.fields[0].dataType, NESTED):
        raise ValueError("the query returned a nested or binary value; expected one number")
    rows = collect(frame.limit(2))
    if len(rows) > 1:
        raise ValueError("the query returned several rows; expected one number")
    return rows[0][0] if rows else None


_EPOCH = datetime(1970, 1, 1)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The period after which the Gregorian calendar repeats itself."""

# Timestamps are collected as numbers: PySpark would convert them to the zone of this process, and
# fails on years that Python does not support.
_DAYS, _MICROSECONDS = "unix_date({})", "unix_micros({})"
_LOCAL = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})"
NESTED = (T.ArrayType, T.MapType, T.StructType, T.BinaryType)
"""Types that have no value as a metric."""
_INTERVALS = frozenset(interval_types())
_COLLECTED_AS: dict[type[T.DataType], str] = {
    T.DateType: _DAYS,
    T.TimestampType: _MICROSECONDS,
    T.TimestampNTZType: _LOCAL,
    **dict.fromkeys(NESTED, "NULL"),
}


def collect(frame: DataFrame, *, keys: int = 0) -> list[tuple[MetricValue, ...]]:
    """The values of a frame, row by row.

    Dates and timestamps become ISO strings, in UTC if they have a zone. Nested values become None.
    NaN and infinity are kept, so that an overflow differs from a missing result.

    :param keys: how many of the columns, the first ones, only identify the rows: their dates may
        have any year.
    :raises PySparkException: a date or timestamp is outside the years 1 to 9999, or a value is
        an interval.
    """
    types = [type(field.dataType) for field in frame.schema.fields]
    if not _INTERVALS.isdisjoint(types):
        hint = "timestampdiff(SECOND, a, b) is its length in seconds"
        raise PySparkException(f"[NOT_A_NUMBER] it returns an interval: {hint}")
    numbered = frame.toDF(*map(str, range(len(types))))
    expressions = [_COLLECTED_AS.get(kind, "{}").format(f"`{nr}`") for nr, kind in enumerate(types)]
    with spark_failures():
        rows = numbered.selectExpr(*expressions).collect()
    columns = [
        values if kind in _PLAIN else [_value(value, kind, is_key=nr < keys) for value in values]
        for nr, (kind, values) in enumerate(zip(types, zip(*rows, strict=True), strict=False))
    ]
    return list(zip(*columns, strict=True))


_PLAIN = (T.LongType, T.IntegerType, T.StringType, T.DoubleType)
"""Types whose values are plain as they are: NaN and infinity, too, which stay what they are."""


def _value(
    collected: int | float | None, kind: type[T.DataType], *, is_key: bool = False
) -> MetricValue:
    if collected is None or kind not in (T.DateType, T.TimestampType, T.TimestampNTZType):
        return collected if isinstance(collected, float) else metric_value(collected)
    try:
        if kind is T.DateType:
            return metric_value((_EPOCH + timedelta(days=collected)).date())
        return metric_value(_EPOCH + timedelta(microseconds=collected))
    except OverflowError:
        if is_key and kind is T.DateType:
            return _beyond_python(int(collected))
        message = "the value is a date or timestamp outside the years 1 to 9999"
        raise PySparkException(f"[DATETIME_OVERFLOW] {message}") from None


def _beyond_python(days: int) -> str:
    """A date outside the years of Python, in the notation of Spark: `+10000-01-01`.

    :param days: the days since 1970.
    """
    cycles, rest = divmod(days, _CYCLE_DAYS)
    alike = _EPOCH + timedelta(days=rest)
    return f"{alike.year + cycles * _CYCLE_YEARS:+05}-{alike:%m-%d}"


def date_of(value: MetricValue) -> date:
    """A value as a date."""
    return date.fromisoformat(str(value))
