"""Metrics of what a suite writes as an expression: conditions that rows satisfy or violate, shares
of values, and Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dqx_airflow.metrics import metric, sql
from dqx_airflow.metrics.builtin.counts import counted_rows, equal_count, equal_to_any
from dqx_airflow.metrics.builtin.values import (
    ANY,
    other_rows,
    quoted_column,
    rows_where,
    value_aggregate,
)
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.spark_values import ColumnValues
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Exact, exact


def _violations(arguments: metric.Arguments) -> metric.Aggregate:
    (condition,) = arguments
    return rows_where(f"NOT ({condition})", condition.shortcut)


def _evaluated(arguments: metric.Arguments) -> metric.Aggregate:
    """The rows in which a predicate is true or false."""
    (condition,) = arguments
    if condition.column is not None:
        return value_aggregate(condition.column)
    return metric.Aggregate(f"count(({condition}))", merge=metric.Merge.COUNT)


def _share_counts(arguments: metric.Arguments) -> tuple[metric.Aggregate, ...]:
    column = quoted_column(arguments)
    values = (value for value, _ in arguments[1])
    counts = (rows_where(equal_to_any(column, value)) for value in values)
    return (value_aggregate(arguments[0]), *counts)


def _rows_violating(arguments: metric.Arguments) -> metric.RowsBehind:
    return metric.RowsBehind(f"not ({arguments[0]})", condition=f"NOT ({arguments[0]})")


def _furthest_share(arguments: metric.Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    """The largest deviation of a share; unlisted values count as one more value."""
    total, *counts = (int(result or 0) for result in results)
    if not total:
        return None
    expected = [share for _, share in arguments[1]]
    actual = [Fraction(count, total) for count in counts]
    rest = abs((1 - sum(actual)) - (1 - sum(expected)))
    return exact(max([rest, *(abs(a - b) for a, b in zip(actual, expected, strict=True))]))


# The same in Python, with Spark's results


def _share_difference(column: ColumnValues, shares: Sequence[tuple[Any, Exact]]) -> MetricValue:
    counts = (equal_count(column, value) for value, _ in shares)
    return _furthest_share((column, shares), (len(column.present), *counts))


CONDITIONS = (
    counted_rows(
        "violating_rows",
        (metric.Argument("predicate", metric.ArgumentKind.PREDICATE),),
        "The number of rows for which the predicate is false (not NULL).",
        "assert each row: price > 0",
        lambda arguments: (_violations(arguments),),
        is_internal=True,
        in_python=lambda truths: truths.values.count(False),
        raised_by=_rows_violating,
    ),
    metric.Metric(
        "satisfying_share",
        (metric.Argument("predicate", metric.ArgumentKind.PREDICATE),),
        "The share of rows for which the predicate is true, among those where it is not NULL; 1 if"
        " there are none.",
        'assert 95% of rows: email matches "@"',
        lambda arguments: (_evaluated(arguments), _violations(arguments)),
        value=lambda _, results: (
            apply("/", (other_rows(_, results), results[0])) if results[0] else 1
        ),
        empty=1,
        is_internal=True,
        in_python=lambda truths: (
            Fraction(truths.values.count(True), len(truths.present)) if truths.present else 1
        ),
        lowered_by=_rows_violating,
        unit=metric.MetricUnit.SHARE,
    ),
    counted_rows(
        "malformed_count",
        (ANY,),
        "The number of rows in which the value of the column does not match its type, or the whole"
        " line is broken. It counts in CSV and JSON with a declared schema, and is 0 otherwise.",
        "assert malformed_count(price) == 0",
        lambda arguments: (rows_where(sql.malformed_sql("malformed_count", arguments[0])),),
        in_python=lambda malformed: malformed.values.count(True),
        raised_by=lambda arguments: metric.RowsBehind(
            f"{arguments[0]} is malformed",
            condition=sql.malformed_sql("malformed_count", arguments[0]),
        ),
        is_of_texts=True,
    ),
    counted_rows(
        "malformed_rows",
        (metric.Argument("besides", metric.ArgumentKind.NAMES),),
        "The number of rows with a malformed value in a column that is not listed.",
        "assert malformed_count(price) == 0",
        lambda arguments: (rows_where(sql.malformed_sql("malformed_rows", arguments[0])),),
        is_internal=True,
        in_python=lambda malformed: malformed.values.count(True),
        raised_by=lambda arguments: metric.RowsBehind(
            "a value is malformed", condition=sql.malformed_sql("malformed_rows", arguments[0])
        ),
        is_of_texts=True,
    ),
    metric.Metric(
        "share_difference",
        (ANY, metric.Argument("shares", metric.ArgumentKind.SHARES)),
        "The largest difference between actual and expected shares of the values.",
        'assert distribution(status) matches {"open": 20%, "closed": 80%} tolerance 5%',
        _share_counts,
        value=_furthest_share,
        is_internal=True,
        in_python=_share_difference,
        unit=metric.MetricUnit.SHARE,
    ),
)


SPARK_SQL = (
    metric.Metric(
        "sql",
        (metric.Argument("expression", metric.ArgumentKind.SQL),),
        "One aggregate expression in Spark SQL.",
        'assert sql("sum(amount) / count(*)") > 10',
        lambda arguments: (metric.Aggregate(arguments[0]),),
        unit=metric.MetricUnit.UNKNOWN,
    ),
    metric.Metric(
        "query",
        (metric.Argument("select", metric.ArgumentKind.SQL),),
        "One Spark SQL query that returns a number, over the rows of the date.",
        'assert query("SELECT count(*) FROM orders JOIN returns USING (order_id)") < 100',
        scan=metric.Scan.QUERY,
        no_value="the query returned no row, or NULL",
        unit=metric.MetricUnit.UNKNOWN,
    ),
)
