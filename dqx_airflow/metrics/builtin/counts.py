"""Metrics that count rows or values; of conditions that rows satisfy or violate, also written in
Spark SQL, and of shares; and of the differences between two datasets: rows that are missing, extra
or changed, and columns.

`plan.schema_check.Match` defines the comparison; a scan of both counts the differences, and each
metric takes its value from the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
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
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.spark_values import ColumnValues, comparable, literal_type, order_key
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Exact, exact


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
    """Whether an SQL expression equals one of the literals, None of which equals nothing. They are
    compared one by one, because `IN` casts all of them to one type."""
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


_counted = partial(metric.Metric, unit=metric.MetricUnit.ROWS, empty=0)
"""A metric that counts rows."""

COUNTS = (
    _counted(
        "num_rows",
        (),
        "The number of rows.",
        "assert num_rows() >= 1000",
        lambda _: (row_aggregate(),),
        in_python=lambda rows: len(rows.values),
    ),
    _counted(
        "count",
        (ANY,),
        "The number of rows in which the column is not NULL.",
        "assert count(departure) > 0",
        lambda arguments: (value_aggregate(arguments[0]),),
        in_python=lambda column: len(column.present),
        lowered_by=_rows_without,
    ),
    _counted(
        "null_count",
        (ANY,),
        "The number of rows in which the column is NULL.",
        "assert null_count(email) / num_rows() < 5%",
        lambda arguments: (row_aggregate(), value_aggregate(arguments[0])),
        value=other_rows,
        in_python=lambda column: column.values.count(None),
        raised_by=_rows_without,
    ),
    _counted(
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
    _counted(
        "duplicate_count",
        (metric.Argument("columns", metric.ArgumentKind.COLUMNS),),
        "Rows minus distinct combinations of the columns; NULL equals NULL.",
        "assert duplicate_count([order_id, line]) == 0",
        lambda arguments: (row_aggregate(), _distinct_tuples(columns_of(arguments[0]))),
        value=other_rows,
        in_python=lambda columns: _repetitions(_combinations(columns)),
        raised_by=lambda arguments: metric.RowsBehind("", repeated=columns_of(arguments[0])),
    ),
    _counted(
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
    _counted(
        "count_values",
        (ANY, metric.Argument("value", metric.ArgumentKind.LITERALS)),
        "The number of rows in which the column equals the value, or one of a list of values.",
        'assert count_values(status, "pending") < 100',
        _rows_equal,
        in_python=equal_count,
        raised_by=_rows_with_value,
    ),
)


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
    _counted(
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
    _counted(
        "malformed_count",
        (ANY,),
        "The number of rows in which the value of the column does not match its type, or the whole"
        " line is broken: for CSV and JSON with a declared schema; otherwise 0.",
        "assert malformed_count(price) == 0",
        lambda arguments: (rows_where(sql.malformed_sql("malformed_count", arguments[0])),),
        in_python=lambda malformed: malformed.values.count(True),
        raised_by=lambda arguments: metric.RowsBehind(
            f"{arguments[0]} is malformed",
            condition=sql.malformed_sql("malformed_count", arguments[0]),
        ),
        is_of_texts=True,
    ),
    _counted(
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


_KEYS = metric.Argument("keys", metric.ArgumentKind.COLUMNS)
_COMPARED = metric.Argument("compared", metric.ArgumentKind.COLUMNS)
_OTHER = metric.Argument("dataset", metric.ArgumentKind.DATASET)
_TOLERANCE = metric.Argument("tolerance", metric.ArgumentKind.TOLERANCE)


def _differing(_: metric.Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    return sum(int(count or 0) for count in counts[:3])


def _differing_share(arguments: metric.Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    """The share of differing rows among the rows of the dataset and the rows missing in it; 0
    without rows."""
    differing, rows = _differing(arguments, counts), int(counts[3] or 0) + int(counts[0] or 0)
    return exact(0) if not rows else apply("/", (differing, rows))


_comparison = partial(
    metric.Metric,
    unit=metric.MetricUnit.DIFFERENCES,
    empty=0,
    parameters=(_OTHER,),
    scan=metric.Scan.MATCH,
)
"""A metric of two datasets."""

MATCHING = (
    _comparison(
        "missing_count",
        (_KEYS,),
        "The number of rows of the other dataset whose key is missing in this dataset. A "
        "repeated key counts once for each row that is missing here.",
        "assert missing_count(order_id, dataset raw_orders) == 0",
        value=lambda _, counts: counts[0],
    ),
    _comparison(
        "extra_count",
        (_KEYS,),
        "The number of rows of this dataset whose key is missing in the other one. A repeated "
        "key counts once for each row that is missing there.",
        "assert extra_count([order_id, line], dataset raw_orders) == 0",
        value=lambda _, counts: counts[1],
    ),
    _comparison(
        "changed_count",
        (_KEYS, _COMPARED),
        "The number of rows whose key is in both datasets, but whose values in the compared "
        "columns differ by more than the tolerance.",
        "assert changed_count(order_id, [amount, status], dataset raw_orders, tolerance 0.01) == 0",
        value=lambda _, counts: counts[2],
        parameters=(_OTHER, _TOLERANCE),
    ),
    _comparison(
        "mismatch_count",
        (_KEYS, _COMPARED),
        "The number of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id)",
        value=_differing,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
    ),
    _comparison(
        "mismatch_share",
        (_KEYS, _COMPARED),
        "The share of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id) allowing 0.1%",
        value=_differing_share,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
        unit=metric.MetricUnit.SHARE,
    ),
    _comparison(
        "column_mismatch_count",
        (),
        "The number of columns that are missing in one of the datasets or differ in type.",
        "assert columns of orders match raw_orders",
        is_internal=True,
        unit=metric.MetricUnit.COLUMNS,
    ),
)
