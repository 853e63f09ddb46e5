"""Metrics that count rows or values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from dqx_airflow.metrics.aggregates import NeverNan, ValueBound, WithinRanges
from dqx_airflow.metrics.builtin.values import (
    ANY,
    NUMBER,
    columns_of,
    other_rows,
    quoted_column,
    row_aggregate,
    rows_where,
    value_aggregate,
)
from dqx_airflow.metrics.metric import (
    Aggregate,
    Argument,
    ArgumentKind,
    Arguments,
    Merge,
    Metric,
    MetricUnit,
    RowsBehind,
)
from dqx_airflow.metrics.spark_values import ColumnValues, comparable, literal_type, order_key
from dqx_airflow.metrics.sql import quote_literal, quote_name


def nan_count(column: str) -> Aggregate:
    """The number of NaN in a numeric column."""
    return replace(rows_where(_is_nan(column)), shortcut=NeverNan(column))


def _is_nan(column: str) -> str:
    return f"isnan({quote_name(column)})"


def infinite_values(arguments: Arguments) -> RowsBehind:
    """The rows in which a floating-point column is infinite."""
    (column,) = arguments
    return RowsBehind(
        f"{column} is infinite", condition=f"abs({quote_name(column)}) = DOUBLE('Infinity')"
    )


def distinct_values(column: str) -> Aggregate:
    """The number of distinct values."""
    return Aggregate(f"count(DISTINCT {quote_name(column)})", distinct=(column,))


def _distinct_tuples(columns: tuple[str, ...]) -> Aggregate:
    # A struct is never NULL, so NULL equals NULL here for one column as for many.
    names = ", ".join(quote_name(column) for column in columns)
    return Aggregate(f"count(DISTINCT struct({names}))", distinct=columns, is_key=True)


def _whole_keys(columns: tuple[str, ...]) -> tuple[Aggregate, Aggregate]:
    """The rows without NULL in the columns, and their distinct combinations."""
    names = ", ".join(map(quote_name, columns))
    several = Aggregate(f"count({names})", merge=Merge.COUNT)
    rows = several if len(columns) > 1 else value_aggregate(columns[0])
    distinct = f"count(DISTINCT {names})"
    return rows, Aggregate(distinct, distinct=columns, is_key=True, skips_null=True)


def _repeated_keys(columns: tuple[str, ...]) -> RowsBehind:
    present = " AND ".join(f"{quote_name(column)} IS NOT NULL" for column in columns)
    return RowsBehind("", condition=present, repeated=columns)


def listed_values(given: Any) -> tuple[Any, ...]:
    """The literals of an argument that takes one or several."""
    return given if isinstance(given, tuple) else (given,)


def equal_to_any(subject: str, given: Any) -> str:
    """Whether an SQL expression equals one of the literals, None of which equals nothing. They are
    compared one by one, because `IN` casts all of them to one type."""
    literals = [quote_literal(value) for value in listed_values(given) if value is not None]
    return " OR ".join(f"{subject} = {literal}" for literal in literals) or "false"


def _rows_equal(arguments: Arguments) -> tuple[Aggregate, ...]:
    column, given = arguments
    shortcut = None
    if isinstance(given, int | Decimal | float) and not isinstance(given, bool):
        shortcut = WithinRanges(column, ((ValueBound("<", given),), (ValueBound(">", given),)))
    return (rows_where(equal_to_any(quoted_column(arguments), given), shortcut),)


def _rows_without(arguments: Arguments) -> RowsBehind:
    return RowsBehind(f"{arguments[0]} is NULL", condition=f"{quoted_column(arguments)} IS NULL")


def _rows_with_value(arguments: Arguments) -> RowsBehind:
    column, given = arguments
    words = f"{column} is {' or '.join(map(str, listed_values(given)))}"
    return RowsBehind(words, condition=equal_to_any(quoted_column(arguments), given))


# The same in Python, with Spark's results


def count_nan(column: ColumnValues) -> int:
    """The number of NaN."""
    return sum(isinstance(value, float) and math.isnan(value) for value in column.values)


def _distinct(column: ColumnValues) -> int:
    """The number of distinct values: 0.0 equals -0.0 and NaN equals NaN, as in Spark."""
    return len({order_key(value) for value in column.present})


def _duplicates(columns: ColumnValues | Sequence[ColumnValues]) -> int:
    """Rows minus distinct combinations; NULL equals NULL."""
    return _repetitions(_combinations(columns))


def _repeated(columns: ColumnValues | Sequence[ColumnValues]) -> int:
    """Rows minus distinct combinations, over the rows without NULL."""
    return _repetitions([row for row in _combinations(columns) if None not in row])


def _combinations(columns: ColumnValues | Sequence[ColumnValues]) -> list[tuple[Any, ...]]:
    several = (columns,) if isinstance(columns, ColumnValues) else columns
    return list(zip(*(column.values for column in several), strict=True))


def _repetitions(rows: Sequence[tuple[Any, ...]]) -> int:
    return len(rows) - len({order_key(row) for row in rows})


def is_equal_to_any(value: Any, spark_type: str, given: Any) -> bool:
    """True if a value of a type equals one of the literals."""
    sides = (
        comparable(value, spark_type, literal, literal_type(literal))
        for literal in listed_values(given)
    )
    return any(left == right for left, right in sides)


def equal_count(column: ColumnValues, given: Any) -> int:
    """The number of rows in which the column equals one of the literals."""
    return sum(is_equal_to_any(value, column.type, given) for value in column.present)


COUNTS = (
    Metric(
        "num_rows",
        (),
        MetricUnit.ROWS,
        "The number of rows.",
        "assert num_rows() >= 1000",
        lambda _: (row_aggregate(),),
        empty=0,
        in_python=lambda rows: len(rows.values),
    ),
    Metric(
        "count",
        (ANY,),
        MetricUnit.ROWS,
        "The number of rows in which the column is not NULL.",
        "assert count(departure) > 0",
        lambda arguments: (value_aggregate(arguments[0]),),
        empty=0,
        in_python=lambda column: len(column.present),
        lowered_by=_rows_without,
    ),
    Metric(
        "null_count",
        (ANY,),
        MetricUnit.ROWS,
        "The number of rows in which the column is NULL.",
        "assert null_count(email) / num_rows() < 5%",
        lambda arguments: (row_aggregate(), value_aggregate(arguments[0])),
        value=other_rows,
        empty=0,
        in_python=lambda column: column.values.count(None),
        raised_by=_rows_without,
    ),
    Metric(
        "nan_count",
        (NUMBER,),
        MetricUnit.ROWS,
        "The number of rows in which the column is NaN, which only float and double columns can"
        " contain.",
        "assert nan_count(price) == 0",
        lambda arguments: (nan_count(arguments[0]),),
        empty=0,
        in_python=count_nan,
        raised_by=lambda arguments: RowsBehind(
            f"{arguments[0]} is NaN", condition=_is_nan(arguments[0])
        ),
    ),
)

KEYS = (
    Metric(
        "unique_count",
        (ANY,),
        MetricUnit.VALUES,
        "The number of distinct values of the column, NULL ignored.",
        "assert unique_count(carrier) between 10 and 20",
        lambda arguments: (distinct_values(arguments[0]),),
        empty=0,
        in_python=_distinct,
    ),
    Metric(
        "duplicate_count",
        (Argument("columns", ArgumentKind.COLUMNS),),
        MetricUnit.ROWS,
        "Rows minus distinct combinations of the columns; NULL equals NULL.",
        "assert duplicate_count([order_id, line]) == 0",
        lambda arguments: (row_aggregate(), _distinct_tuples(columns_of(arguments[0]))),
        value=other_rows,
        empty=0,
        in_python=_duplicates,
        raised_by=lambda arguments: RowsBehind("", repeated=columns_of(arguments[0])),
    ),
    Metric(
        "repeated_count",
        (Argument("columns", ArgumentKind.COLUMNS),),
        MetricUnit.ROWS,
        "Like `duplicate_count`, without rows that have NULL in one of the columns: SQL's UNIQUE.",
        "assert repeated_count([country, tax_id]) == 0",
        lambda arguments: _whole_keys(columns_of(arguments[0])),
        value=other_rows,
        empty=0,
        in_python=_repeated,
        raised_by=lambda arguments: _repeated_keys(columns_of(arguments[0])),
    ),
    Metric(
        "count_values",
        (ANY, Argument("value", ArgumentKind.LITERALS)),
        MetricUnit.ROWS,
        "The number of rows in which the column equals the value, or one of a list of values.",
        'assert count_values(status, "pending") < 100',
        _rows_equal,
        empty=0,
        in_python=equal_count,
        raised_by=_rows_with_value,
    ),
)
