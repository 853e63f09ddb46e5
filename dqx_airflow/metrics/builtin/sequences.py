"""Metrics of sequences: values in the order of another column, and missing values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from dqx_airflow.metrics.builtin import counts
from dqx_airflow.metrics.builtin.values import ORDERED, rows_where, value_aggregate
from dqx_airflow.metrics.metric import (
    Aggregate,
    Argument,
    ArgumentKind,
    Arguments,
    Metric,
    MetricUnit,
    Steps,
)
from dqx_airflow.metrics.spark_values import FLOATING, POSITIONS, ColumnValues, order_key, step_of
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import LONGEST_DECIMAL, WHOLE_SIZES, Family
from dqx_airflow.values import MetricValue

_ORDER = Argument("order_by", ArgumentKind.COLUMN, ORDERED.accepts, is_required=True)
_COMPARE = {"<": operator.lt, ">": operator.gt, "=": operator.eq}
_WORDS = {"<": "falls", ">": "rises", "=": "stays"}

_EPOCH = datetime(1970, 1, 1)

_DIGITS = Context(prec=2 * LONGEST_DECIMAL)
"""A step with more digits than a decimal has is not rounded to one, so the metric has no value."""


# Steps from row to row


def _steps(op: str) -> Callable[[Arguments], tuple[Aggregate, ...]]:
    def aggregates(arguments: Arguments) -> tuple[Aggregate, ...]:
        column, order = arguments
        name = quote_name(column)
        by = quote_name(order)
        steps = Aggregate(f"{name} {_WORDS[op]} by {by}", over=Steps(column, order, op))
        return steps, rows_where(f"{name} IS NOT NULL AND {by} IS NULL"), value_aggregate(column)

    return aggregates


def _steps_in_python(op: str) -> Callable[[ColumnValues, ColumnValues], int | None]:
    compare: Callable[[Any, Any], bool] = _COMPARE[op]

    def count(column: ColumnValues, order: ColumnValues) -> int | None:
        pairs: list[tuple[Any, Any]] = [
            (None if place is None else order_key(place), order_key(value))
            for place, value in zip(order.values, column.values, strict=True)
            if value is not None
        ]
        if not pairs or any(place is None for place, _ in pairs):
            return None
        pairs.sort(key=lambda pair: pair[1], reverse=op == ">")
        pairs.sort(key=lambda pair: pair[0])
        return sum(compare(after[1], before[1]) for before, after in pairwise(pairs))

    return count


def _counting(name: str, op: str, doc: str, example: str) -> Metric:
    return Metric(
        name,
        (ORDERED,),
        f"{doc} in the order of `order_by`, NULL ignored. Rows with the same `order_by` never"
        " count as a decrease or an increase. If a row with a value has no `order_by`,"
        " the metric has no value.",
        example,
        _steps(op),
        value=lambda _, results: None if results[1] or not results[2] else results[0],
        parameters=(_ORDER,),
        no_value="no values, or `order_by` is NULL in a row with a value",
        in_python=_steps_in_python(op),
        is_void_with_nan=True,
        unit=MetricUnit.ROWS,
    )


# Missing values


def _gap_aggregates(arguments: Arguments) -> tuple[Aggregate, ...]:
    column, step = arguments
    name = quote_name(column)

    # As decimals, the difference between two bigints cannot overflow.
    numbers = {
        kind: f"CAST({POSITIONS.get(kind, '{}').format(name)} AS DECIMAL(20,0))"
        for kind in (*WHOLE_SIZES, *POSITIONS)
    }

    def by_type(sql: str) -> Aggregate:
        typed = tuple(
            (kind, sql.format(number, _step_sql(step, kind))) for kind, number in numbers.items()
        )
        return Aggregate(sql.format(name, _step_sql(step, "")), column=column, sql_by_type=typed)

    # Spark's difference of decimals with 38 digits has fewer of them: that is left to Python.
    # `pmod` is NULL if it has no room.
    return (
        by_type("max({0})"),
        by_type("min({0})"),
        by_type("max({1})"),
        by_type(
            "CAST(max(pmod({0}, {1})) <> min(pmod({0}, {1}))"
            " OR count(pmod({0}, {1})) <> count({0}) AS INT)"
        ),
        counts.distinct_values(column),
    )


def _step_sql(given: Any, kind: str) -> str:
    step = step_of(given, kind)
    return quote_literal(_DIGITS.divide(Decimal(step.numerator), Decimal(step.denominator)))


def _gaps_of(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    largest, smallest, step, is_uneven, distinct = (
        Fraction(result) if isinstance(result, int | Fraction) else None for result in results
    )
    if largest is None or smallest is None or not step or is_uneven != 0 or distinct is None:
        return None
    steps = (largest - smallest) / step
    return int(steps + 1 - distinct) if steps.denominator == 1 else None


def _gaps(column: ColumnValues, step: Any) -> int | None:
    size = step_of(step, column.type)
    positions = {_line_position(value) for value in column.present}
    if not positions or len({at % size for at in positions}) > 1:
        return None
    return int((max(positions) - min(positions)) / size) + 1 - len(positions)


def _line_position(value: Any) -> Fraction:
    match value:
        case datetime():
            timestamp = value.replace(tzinfo=None) - (value.utcoffset() or timedelta())
            return Fraction((timestamp - _EPOCH) // timedelta(microseconds=1))
        case date():
            return Fraction(value.toordinal())
        case _:
            return Fraction(value)


SEQUENCES = (
    _counting(
        "decrease_count",
        "<",
        "The number of rows with a smaller value than the previous row,",
        "assert decrease_count(meter_reading, order_by read_at) == 0",
    ),
    _counting(
        "increase_count",
        ">",
        "The number of rows with a larger value than the previous row,",
        "assert increase_count(stock, order_by sold_at) == 0",
    ),
    _counting(
        "unchanged_count",
        "=",
        "The number of rows with the same value as the previous row,",
        "assert unchanged_count(temperature, order_by measured_at) < 100",
    ),
    Metric(
        "gap_count",
        (
            Argument(
                "column",
                ArgumentKind.COLUMN,
                frozenset({Family.NUMBER, Family.TIME}),
                refuses=frozenset(FLOATING),
            ),
        ),
        "How many values are missing between the smallest and the largest one, NULL ignored. "
        "Values are one `step` apart; the default is 1, or 1 day.",
        "assert gap_count(invoice_number) == 0",
        _gap_aggregates,
        value=_gaps_of,
        parameters=(Argument("step", ArgumentKind.STEP),),
        no_value="no values, or some are not a whole number of steps apart; midnights of a time "
        "zone with summer time are 23 or 25 hours apart: count the gaps of a column of dates",
        in_python=_gaps,
        unit=MetricUnit.MISSING,
    ),
)
