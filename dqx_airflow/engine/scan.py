"""The scan: all requests of one dataset in one pass over it.

One aggregate, grouped by date, computes every metric for the target date and the lagged dates
together. A request that cannot be computed is found before the scan where its column or type
tells it, else by halving the aggregate until the guilty one stands alone; the others are computed
all the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.engine.sources import OpenDataset, explain
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.registry import Family, Kind, family_of
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.plan.model import Lookup, MetricRequest
from dqx_airflow.values import MetricValue

_DATE = "dqx: date of the row"


@dataclass(slots=True)
class Scanned:
    """What a scan found: a value or a reason for each request."""

    values: dict[MetricRequest, MetricValue] = field(default_factory=dict)
    failures: dict[MetricRequest, str] = field(default_factory=dict)


def scan(
    spark: SparkSession,
    dataset: OpenDataset,
    requests: Sequence[MetricRequest],
    lookups: Sequence[Lookup],
    references: Mapping[str, OpenDataset],
) -> Scanned:
    """Computes the requests of one dataset.

    :param lookups: those of this dataset.
    :param references: the datasets that they look into, by name; one that is missing there could
        not be opened, and fails the requests that need it.
    """
    scanned = Scanned()
    if dataset.rows is not None and all(request.metric == "num_rows" for request in requests):
        # The transaction log has counted the rows already.
        scanned.values.update(dict.fromkeys(requests, dataset.rows))
        return scanned
    usable, unusable = _split_lookups(dataset, lookups, references)
    possible = []
    for request in requests:
        reason = _objection(request, dataset, unusable)
        if reason is None:
            possible.append(request)
        else:
            scanned.failures[request] = reason
    frame = _only_dates(dataset, {request.date for request in possible})
    frame = _with_lookups(spark, frame, usable, references)
    aggregates = {request: _aggregates(request) for request in possible}
    texts = list(dict.fromkeys(text for parts in aggregates.values() for text in parts))
    by_date, broken = _aggregate(frame, texts, dated=dataset.ref.date_column is not None)
    for request, parts in aggregates.items():
        reasons = [broken[text] for text in parts if text in broken]
        if reasons:
            scanned.failures[request] = reasons[0]
            continue
        row = by_date.get(request.date)
        metric = METRICS[request.metric]
        if row is None:
            scanned.values[request] = metric.empty
        else:
            scanned.values[request] = metric.value(tuple(row[text] for text in parts))
    return scanned


def _aggregates(request: MetricRequest) -> tuple[str, ...]:
    return METRICS[request.metric].aggregates(request.arguments)


def _split_lookups(
    dataset: OpenDataset, lookups: Sequence[Lookup], references: Mapping[str, OpenDataset]
) -> tuple[list[Lookup], dict[str, str]]:
    """The lookups that can be joined; of the others the quoted alias and the reason."""
    usable, unusable = [], {}
    for lookup in lookups:
        reason = _lookup_objection(lookup, dataset, references.get(lookup.reference))
        if reason is None:
            usable.append(lookup)
        else:
            unusable[quote_name(lookup.alias)] = reason
    return usable, unusable


def _lookup_objection(
    lookup: Lookup, dataset: OpenDataset, reference: OpenDataset | None
) -> str | None:
    if reference is None:
        return f"dataset '{lookup.reference}' could not be read"
    types = []
    for side, column in ((dataset, lookup.column), (reference, lookup.reference_column)):
        known = {item.name: item.type for item in side.fields}
        if column not in known:
            hint = did_you_mean(column, known)
            return f"dataset '{side.ref.name}' has no column '{column}': {hint}"
        types.append(known[column])
    if family_of(types[0]) is not family_of(types[1]):
        return (
            f"'{lookup.column}' is of type {types[0]} and '{lookup.reference_column}' of dataset "
            f"'{lookup.reference}' of type {types[1]}: they have no values in common"
        )
    return None


def _objection(
    request: MetricRequest, dataset: OpenDataset, unusable: Mapping[str, str]
) -> str | None:
    """Why a request cannot be computed, as far as the schema tells; None where it can."""
    types = {item.name: item.type for item in dataset.fields}
    for argument, given in zip(METRICS[request.metric].arguments, request.arguments, strict=True):
        if argument.kind is Kind.PREDICATE:
            for alias, reason in unusable.items():
                if alias in given:
                    return reason
        if argument.kind not in (Kind.COLUMN, Kind.COLUMNS):
            continue
        for column in (given,) if isinstance(given, str) else given:
            if column not in types:
                hint = did_you_mean(column, types)
                return f"dataset '{request.dataset}' has no column '{column}': {hint}"
            family = family_of(types[column])
            if argument.accepts and family not in argument.accepts:
                wanted = ", ".join(sorted(family.value for family in argument.accepts))
                return (
                    f"{request.metric} needs a {wanted} column, "
                    f"and '{column}' is of type {types[column]}"
                )
    return None


def _only_dates(dataset: OpenDataset, dates: set[date | None]) -> DataFrame:
    """The rows of the dates, with the date of each row as one more column."""
    column = dataset.ref.date_column
    if column is None:
        return dataset.frame
    name = quote_name(column)
    spark_type = next(item.type for item in dataset.fields if item.name == column)
    literals = ", ".join(quote_literal(on) for on in sorted(on for on in dates if on))
    if spark_type == "date":
        condition, key = f"{name} IN ({literals})", name
    elif family_of(spark_type) is Family.TIME:
        # Ranges, not to_date(column) = ..., so that the filter reaches the files.
        days = sorted(on for on in dates if on)
        condition = " OR ".join(
            f"({name} >= {quote_literal(on)} AND {name} < date_add({quote_literal(on)}, 1))"
            for on in days
        )
        key = f"to_date({name})"
    else:
        texts = ", ".join(quote_literal(on.isoformat()) for on in sorted(on for on in dates if on))
        condition, key = f"{name} IN ({texts})", f"try_to_date({name})"
    return dataset.frame.where(condition).withColumn(_DATE, F.expr(key))


def _with_lookups(
    spark: SparkSession,
    frame: DataFrame,
    lookups: Sequence[Lookup],
    references: Mapping[str, OpenDataset],
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
        tables[table] = references[lookup.reference].frame
        value, key, alias = (
            _formatted(quote_name(name))
            for name in (lookup.column, lookup.reference_column, lookup.alias)
        )
        known = f"SELECT {key} FROM {{{table}}} WHERE {key} IS NOT NULL"  # noqa: S608
        columns.append(f"nullif(scanned.{value} IN ({known}), false) AS {alias}")
    query = f"SELECT {', '.join(columns)} FROM {{scanned}} AS scanned"  # noqa: S608
    return spark.sql(query, **tables)


def _formatted(name: str) -> str:
    """Braces doubled: `spark.sql` formats its text."""
    return name.replace("{", "{{").replace("}", "}}")


def _aggregate(
    frame: DataFrame, texts: Sequence[str], *, dated: bool
) -> tuple[dict[date | None, dict[str, MetricValue]], dict[str, str]]:
    """The value of each aggregate by date; for those that failed, why."""
    if not texts:
        return {}, {}
    columns = [F.expr(text).alias(str(position)) for position, text in enumerate(texts)]
    try:
        grouped = frame.groupBy(quote_name(_DATE)) if dated else frame.groupBy()
        rows = grouped.agg(*columns).collect()
    except PySparkException as error:
        if len(texts) == 1:
            return {}, {texts[0]: _reason(error, frame)}
        half = len(texts) // 2
        left, broken_left = _aggregate(frame, texts[:half], dated=dated)
        right, broken_right = _aggregate(frame, texts[half:], dated=dated)
        merged = {on: {**left.get(on, {}), **right.get(on, {})} for on in {**left, **right}}
        return merged, {**broken_left, **broken_right}
    offset = 1 if dated else 0
    return {
        row[0] if dated else None: {
            text: _plain(row[position + offset]) for position, text in enumerate(texts)
        }
        for row in rows
    }, {}


def _reason(error: PySparkException, frame: DataFrame) -> str:
    if isinstance(error, AnalysisException):
        parameters = error.getMessageParameters() or {}
        if (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
            name = parameters.get("objectName", "").strip("`")
            return f"there is no column '{name}': {did_you_mean(name, frame.columns)}"
    return explain(error)


def _plain(value: Any) -> MetricValue:
    """A value of Spark as a plain metric value. NaN and infinity are no values."""
    match value:
        case None | str():
            return value
        case bool():
            return int(value)
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return None
