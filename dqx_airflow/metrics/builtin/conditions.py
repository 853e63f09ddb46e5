"""Metrics of conditions that rows satisfy or violate, and of shares.

Metrics written in Spark SQL are here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dqx_airflow.metrics.builtin.counts import equal_count, equal_to_any
from dqx_airflow.metrics.builtin.values import (
    ANY,
    other_rows,
    quoted_column,
    rows_where,
    value_aggregate,
)
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.metric import (
    Aggregate,
    Argument,
    ArgumentKind,
    Arguments,
    Merge,
    Metric,
    MetricUnit,
    RowsBehind,
    Scan,
)
from dqx_airflow.metrics.spark_values import ColumnValues
from dqx_airflow.metrics.sql import malformed_sql
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Exact, exact


def _violations(arguments: Arguments) -> Aggregate:
    (condition,) = arguments
    return rows_where(f"NOT ({condition})", condition.shortcut)


def _evaluated(arguments: Arguments) -> Aggregate:
    """The rows in which a predicate is true or false."""
    (condition,) = arguments
    if condition.column is not None:
        return value_aggregate(condition.column)
    return Aggregate(f"count(({condition}))", merge=Merge.COUNT)


def _share_counts(arguments: Arguments) -> tuple[Aggregate, ...]:
    column = quoted_column(arguments)
    values = (value for value, _ in arguments[1])
    counts = (rows_where(equal_to_any(column, value)) for value in values)
    return (value_aggregate(arguments[0]), *counts)


def _rows_violating(arguments: Arguments) -> RowsBehind:
    return RowsBehind(f"not ({arguments[0]})", condition=f"NOT ({arguments[0]})")


def _furthest_share(arguments: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    """The largest deviation of a share; unlisted values count as one more value."""
    total, *counts = (int(result or 0) for result in results)
    if not total:
        return None
    expected = [share for _, share in arguments[1]]
    actual = [Fraction(count, total) for count in counts]
    rest = abs((1 - sum(actual)) - (1 - sum(expected)))
    return exact(max([rest, *(abs(a - b) for a, b in zip(actual, expected, strict=True))]))


# The same in Python, with Spark's results


def _share_difference(column: ColumnValues, shares: Sequence[tuple[Any, Exact]]) -> Exact | None:
    """The largest deviation from an expected share; unlisted values count as one value."""
    rows = len(column.present)
    if not rows:
        return None
    actual = [Fraction(equal_count(column, value), rows) for value, _ in shares]
    expected = [share for _, share in shares]
    unlisted = abs(Fraction(sum(actual)) - sum(expected))
    return exact(max([unlisted, *(abs(a - b) for a, b in zip(actual, expected, strict=True))]))


def _true_share(truths: ColumnValues) -> Exact:
    """The share of true among true and false; 1 if there is neither."""
    return Fraction(truths.values.count(True), len(truths.present)) if truths.present else 1


CONDITIONS = (
    Metric(
        "violating_rows",
        (Argument("predicate", ArgumentKind.PREDICATE),),
        MetricUnit.ROWS,
        "The number of rows for which the predicate is false (not NULL).",
        "assert each row: price > 0",
        lambda arguments: (_violations(arguments),),
        empty=0,
        is_internal=True,
        in_python=lambda truths: truths.values.count(False),
        raised_by=_rows_violating,
    ),
    Metric(
        "satisfying_share",
        (Argument("predicate", ArgumentKind.PREDICATE),),
        MetricUnit.SHARE,
        "The share of rows for which the predicate is true, among those where it is not NULL; 1 if"
        " there are none.",
        'assert 95% of rows: email matches "@"',
        lambda arguments: (_evaluated(arguments), _violations(arguments)),
        value=lambda _, results: (
            apply("/", (other_rows(_, results), results[0])) if results[0] else 1
        ),
        empty=1,
        is_internal=True,
        in_python=_true_share,
        lowered_by=_rows_violating,
    ),
    Metric(
        "malformed_count",
        (ANY,),
        MetricUnit.ROWS,
        "The number of rows in which the value of the column does not match its type, or the whole"
        " line is broken: for CSV and JSON with a declared schema; otherwise 0.",
        "assert malformed_count(price) == 0",
        lambda arguments: (rows_where(malformed_sql("malformed_count", arguments[0])),),
        empty=0,
        in_python=lambda malformed: malformed.values.count(True),
        raised_by=lambda arguments: RowsBehind(
            f"{arguments[0]} is malformed", condition=malformed_sql("malformed_count", arguments[0])
        ),
        is_of_texts=True,
    ),
    Metric(
        "malformed_rows",
        (Argument("besides", ArgumentKind.NAMES),),
        MetricUnit.ROWS,
        "The number of rows with a malformed value in a column that is not listed.",
        "assert malformed_count(price) == 0",
        lambda arguments: (rows_where(malformed_sql("malformed_rows", arguments[0])),),
        empty=0,
        is_internal=True,
        in_python=lambda malformed: malformed.values.count(True),
        raised_by=lambda arguments: RowsBehind(
            "a value is malformed", condition=malformed_sql("malformed_rows", arguments[0])
        ),
        is_of_texts=True,
    ),
    Metric(
        "share_difference",
        (ANY, Argument("shares", ArgumentKind.SHARES)),
        MetricUnit.SHARE,
        "The largest difference between actual and expected shares of the values.",
        'assert distribution(status) matches {"open": 20%, "closed": 80%} tolerance 5%',
        _share_counts,
        value=_furthest_share,
        is_internal=True,
        in_python=_share_difference,
    ),
)


SPARK_SQL = (
    Metric(
        "sql",
        (Argument("expression", ArgumentKind.SQL),),
        MetricUnit.UNKNOWN,
        "One aggregate expression in Spark SQL.",
        'assert sql("sum(amount) / count(*)") > 10',
        lambda arguments: (Aggregate(arguments[0]),),
    ),
    Metric(
        "query",
        (Argument("select", ArgumentKind.SQL),),
        MetricUnit.UNKNOWN,
        "One Spark SQL query that returns a number, over the rows of the date.",
        'assert query("SELECT count(*) FROM orders JOIN returns USING (order_id)") < 100',
        scan=Scan.QUERY,
        no_value="the query returned no row, or NULL",
    ),
)
