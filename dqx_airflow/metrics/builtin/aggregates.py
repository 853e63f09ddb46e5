"""Arguments and aggregates shared by several metrics."""

from __future__ import annotations

from typing import Any

from dqx_airflow.metrics.merging import Merge
from dqx_airflow.metrics.metric import (
    Aggregate,
    Argument,
    ArgumentKind,
    Arguments,
    Shortcut,
    Statistic,
)
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import Family
from dqx_airflow.values import MetricValue

ANY = Argument("column", ArgumentKind.COLUMN)
NUMBER = Argument("column", ArgumentKind.COLUMN, frozenset({Family.NUMBER}))
NUMBER_OR_TRUTH = Argument(
    "column", ArgumentKind.COLUMN, frozenset({Family.NUMBER, Family.BOOLEAN})
)
TEXT = Argument("column", ArgumentKind.COLUMN, frozenset({Family.TEXT}))
ORDERED = Argument(
    "column",
    ArgumentKind.COLUMN,
    frozenset({Family.NUMBER, Family.TEXT, Family.TIME, Family.BOOLEAN}),
)


def quoted_column(arguments: Arguments) -> str:
    """The first argument, a column, in Spark SQL."""
    return quote_name(arguments[0])


def columns_of(argument: Any) -> tuple[str, ...]:
    """The columns of an argument that takes one or several."""
    return (argument,) if isinstance(argument, str) else tuple(argument)


def row_aggregate() -> Aggregate:
    """The number of rows."""
    return Aggregate("count(1)", statistic=Statistic.ROWS, merge=Merge.COUNT)


def value_aggregate(column: str) -> Aggregate:
    """The number of rows in which a column is not NULL."""
    sql = f"count({quote_name(column)})"
    return Aggregate(sql, statistic=Statistic.VALUES, column=column, merge=Merge.COUNT)


def rows_where(condition: str, shortcut: Shortcut | None = None) -> Aggregate:
    """The number of rows for which a condition, in Spark SQL, is true.

    :param shortcut: proves that there is none without reading the rows.
    """
    return Aggregate(_count_if(condition), merge=Merge.COUNT, shortcut=shortcut)


def _count_if(condition: str) -> str:
    """The number of rows that satisfy the condition.

    Spark evaluates all conditions of its own `count_if` in one method before counting; with some
    sixty of them it is too long for Java to compile.
    """
    return f"count(CASE WHEN {condition} THEN 1 END)"


def other_rows(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    """The first count minus the second."""
    return int(results[0] or 0) - int(results[1] or 0)


def extreme_aggregate(function: str, column: str) -> Aggregate:
    """The smallest value of a column with `min`, or the largest one with `max`."""
    is_least = function == "min"
    return Aggregate(
        f"{function}({quote_name(column)})",
        statistic=Statistic.LEAST if is_least else Statistic.MOST,
        column=column,
        merge=Merge.LEAST if is_least else Merge.MOST,
    )
