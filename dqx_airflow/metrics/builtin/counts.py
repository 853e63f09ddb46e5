"""Metrics that count rows or values, also those that are repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from dqx_airflow.metrics import metric, sql
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
from dqx_airflow.metrics.spark_values import ColumnValues, comparable, literal_type, order_key


def nan_count(column: str) -> metric.Aggregate:
    """The number of NaN in a numeric column."""
    return replace(rows_where(_is_nan(column)), shortcut=sql.NeverNan(column))


def _is_nan(column: str) -> str:
    return f"isnan({sql.quote_name(column)})"


def infinite_values(arguments: metric.Arguments) -> metric.RowsBehind:
    """The rows in which a floating-point column is infinite."""
    (column,) = arguments
    return metric.RowsBehind(
        f"{column} is infinite", condition=f"abs({sql.quote_name(column)}) = DOUBLE('Infinity')"
    )


def distinct_values(column: str) -> metric.Aggregate:
    """The number of distinct values."""
    return metric.Aggregate(f"count(DISTINCT {sql.quote_name(column)})", distinct=(column,))


def _distinct_tuples(columns: tuple[str, ...]) -> metric.Aggregate:
    # A struct is never NULL, so NULL equals NULL here for one column as for many.
    names = ", ".join(sql.quote_name(column) for column in columns)
    return metric.Aggregate(f"count(DISTINCT struct({names}))", distinct=columns, is_key=True)


def _whole_keys(columns: tuple[str, ...]) -> tuple[metric.Aggregate, metric.Aggregate]:
    """The rows without NULL in the columns, and their distinct combinations."""
    names = ", ".join(map(sql.quote_name, columns))
    several = metric.Aggregate(f"count({names})", merge=metric.Merge.COUNT)
    rows = several if len(columns) > 1 else value_aggregate(columns[0])
    distinct = f"count(DISTINCT {names})"
    return rows, metric.Aggregate(distinct, distinct=columns, is_key=True, skips_null=True)


def _repeated_keys(columns: tuple[str, ...]) -> metric.RowsBehind:
    present = " AND ".join(f"{sql.quote_name(column)} IS NOT NULL" for column in columns)
    return metric.RowsBehind("", condition=present, repeated=columns)


def listed_values(given: Any) -> tuple[Any, ...]:
    """The literals of an argument that takes one or several."""
    return given if isinstance(given, tuple) else (given,)


def equal_to_any(subject: str, given: Any) -> str:
    """Spark SQL that is true if an expression equals one of the literals. None equals nothing. They
    are compared one by one, because `IN` casts all of them to one type."""
    literals = [sql.quote_literal(value) for value in listed_values(given) if value is not None]
    return " OR ".join(f"{subject} = {literal}" for literal in literals) or "false"


def _rows_equal(arguments: metric.Arguments) -> tuple[metric.Aggregate, ...]:
    column, given = arguments
    shortcut = None
    if isinstance(given, int | Decimal | float) and not isinstance(given, bool):
        shortcut = sql.WithinRanges(
            column, ((sql.ValueBound("<", given),), (sql.ValueBound(">", given),))
        )
    return (rows_where(equal_to_any(quoted_column(arguments), given), shortcut),)


def _rows_without(arguments: metric.Arguments) -> metric.RowsBehind:
    return metric.RowsBehind(
        f"{arguments[0]} is NULL", condition=f"{quoted_column(arguments)} IS NULL"
    )


def _rows_with_value(arguments: metric.Arguments) -> metric.RowsBehind:
    column, given = arguments
    words = f"{column} is {' or '.join(map(str, listed_values(given)))}"
    return metric.RowsBehind(words, condition=equal_to_any(quoted_column(arguments), given))


# The same in Python, with Spark's results


def count_nan(column: ColumnValues) -> int:
    """The number of NaN."""
    return sum(isinstance(value, float) and math.isnan(value) for value in column.values)


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


counted_rows = partial(metric.Metric, unit=metric.MetricUnit.ROWS, empty=0)
"""A metric that counts rows."""

COUNTS = (
    counted_rows(
        "num_rows",
        (),
        "The number of rows.",
        "assert num_rows() >= 1000",
        lambda _: (row_aggregate(),),
        in_python=lambda rows: len(rows.values),
    ),
    counted_rows(
        "count",
        (ANY,),
        "The number of rows in which the column is not NULL.",
        "assert count(departure) > 0",
        lambda arguments: (value_aggregate(arguments[0]),),
        in_python=lambda column: len(column.present),
        lowered_by=_rows_without,
    ),
    counted_rows(
        "null_count",
        (ANY,),
        "The number of rows in which the column is NULL.",
        "assert null_count(email) / num_rows() < 5%",
        lambda arguments: (row_aggregate(), value_aggregate(arguments[0])),
        value=other_rows,
        in_python=lambda column: column.values.count(None),
        raised_by=_rows_without,
    ),
    counted_rows(
        "nan_count",
        (NUMBER,),
        "The number of rows in which the column is NaN, which only float and double columns can"
        " contain.",
        "assert nan_count(price) == 0",
        lambda arguments: (nan_count(arguments[0]),),
        in_python=count_nan,
        raised_by=lambda arguments: metric.RowsBehind(
            f"{arguments[0]} is NaN", condition=_is_nan(arguments[0])
        ),
    ),
)

KEYS = (
    metric.Metric(
        "unique_count",
        (ANY,),
        "The number of distinct values of the column, NULL ignored.",
        "assert unique_count(carrier) between 10 and 20",
        lambda arguments: (distinct_values(arguments[0]),),
        empty=0,
        # 0.0 equals -0.0 and NaN equals NaN, as in Spark.
        in_python=lambda column: len({order_key(value) for value in column.present}),
        unit=metric.MetricUnit.VALUES,
    ),
    counted_rows(
        "duplicate_count",
        (metric.Argument("columns", metric.ArgumentKind.COLUMNS),),
        "Rows minus distinct combinations of the columns; NULL equals NULL.",
        "assert duplicate_count([order_id, line]) == 0",
        lambda arguments: (row_aggregate(), _distinct_tuples(columns_of(arguments[0]))),
        value=other_rows,
        in_python=lambda columns: _repetitions(_combinations(columns)),
        raised_by=lambda arguments: metric.RowsBehind("", repeated=columns_of(arguments[0])),
    ),
    counted_rows(
        "repeated_count",
        (metric.Argument("columns", metric.ArgumentKind.COLUMNS),),
        "Like `duplicate_count`, without rows that have NULL in one of the columns: SQL's UNIQUE.",
        "assert repeated_count([country, tax_id]) == 0",
        lambda arguments: _whole_keys(columns_of(arguments[0])),
        value=other_rows,
        in_python=lambda columns: _repetitions(
            [row for row in _combinations(columns) if None not in row]
        ),
        raised_by=lambda arguments: _repeated_keys(columns_of(arguments[0])),
    ),
    counted_rows(
        "count_values",
        (ANY, metric.Argument("value", metric.ArgumentKind.LITERALS)),
        "The number of rows in which the column equals the value, or one of a list of values.",
        'assert count_values(status, "pending") < 100',
        _rows_equal,
        in_python=equal_count,
        raised_by=_rows_with_value,
    ),
)
