"""Demands on the values of a column, and their Spark SQL if some values may violate them.

Columns are written as in DQL: `address.city`, with backticks around anything but plain words.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

from dqx_airflow.contracts.column_paths import parts_of
from dqx_airflow.contracts.demands import (
    Bound,
    Condition,
    Demand,
    Length,
    Literal,
    MetricRule,
    OfFormat,
    OneOf,
    Pattern,
    QueryGives,
    Unique,
)
from dqx_airflow.contracts.dialects.foreign.thresholds import permits_none
from dqx_airflow.metrics.patterns.bounds import ended
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.values.exact import is_finite_number

ValueDemand: TypeAlias = OneOf | Pattern | OfFormat | Bound | Length
"""A demand that each value of a column satisfies, or not."""


def values_in(items: object) -> tuple[Literal, ...] | None:
    """The values in a list, without NULL; None if it is not a list, or has nothing to compare
    with."""
    if not isinstance(items, list):
        return None
    values = tuple(item for item in items if item is not None)
    return values if values and all(map(is_value, values)) else None


def is_value(item: object) -> bool:
    """True for a value that a column may have: no mapping, no list, no NaN."""
    return isinstance(item, str | bool) or is_finite_number(item)


def sql_name(column: str) -> str:
    """A DQL column as Spark SQL: each part of its path in backticks."""
    return quote_name(*parts_of(column))


def rlike(name: str, expression: str) -> str:
    """A string matches an expression in which `$` is the end of the string, as Spark SQL."""
    with suppress(PatternError):  # its mistakes are reported when the SQL is parsed
        expression = ended(expression)
    return f"{name} RLIKE {quote_literal(expression)}"


def predicate(column: str, demand: ValueDemand) -> str:
    """A Spark SQL predicate that is true if the value of the column satisfies the demand."""
    name = sql_name(column)
    match demand:
        case OneOf(values):
            return f"{name} IN ({literals(values)})"
        case Pattern(expression):
            return rlike(name, expression)
        case OfFormat(format_name):
            form = TEXT_FORMATS[format_name]
            return form.sql(name, rlike(name, whole(form.pattern)))
        case Bound(op, value):
            return f"{name} {op} {literals((value,))}"
        case Length(op, count):
            return f"char_length({name}) {op} {count}"


def all_hold(column: str, demands: tuple[ValueDemand, ...]) -> str:
    return " AND ".join(predicate(column, demand) for demand in demands)


def aggregate_query(value: str) -> str:
    """The query for an aggregate over the rows of a model."""
    return " ".join(("SELECT", value.strip(), "FROM {model}"))


def literals(values: tuple[Literal, ...]) -> str:
    return ", ".join("NULL" if value is None else quote_literal(value) for value in values)


def invalid_values(
    column: str, demands: tuple[ValueDemand, ...], condition: Condition, *, is_percent: bool
) -> tuple[Demand, ...]:
    """The demands of a condition on the number of invalid values; NULL is not invalid."""
    if permits_none(condition, is_percent=is_percent):
        return demands
    match demands:
        case (OneOf(values),):
            return (MetricRule("invalid_count", (column,), condition, is_percent, values),)
        case (Pattern(expression),):
            measured = MetricRule(
                "invalid_count", (column,), condition, is_percent, pattern=expression
            )
            return (measured,)
    invalid = f"count_if(NOT ({all_hold(column, demands)}))"
    value = f"100 * {invalid} / count(*)" if is_percent else invalid
    return (QueryGives(aggregate_query(value), condition),)


def repeated_rows(
    columns: tuple[str, ...], condition: Condition, *, is_percent: bool
) -> tuple[Demand, ...]:
    """The demands of a condition on the number of duplicates in columns."""
    if permits_none(condition, is_percent=is_percent):
        return (Unique(columns),)
    return (MetricRule("duplicate_count", columns, condition, is_percent),)
