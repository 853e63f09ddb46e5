"""Metrics that count rows or values; of conditions that rows satisfy or violate, also written in
Spark SQL, and of shares; and of the differences between two datasets: rows that are missing, extra
or changed, and columns.

`plan.schema_check.Match` defines the comparison; a scan of both counts the differences, and each
metric takes its value from the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

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
from dqx_airflow.metrics.spark_values import ColumnValues, comparable, literal_type, order_key
from dqx_airflow.metrics.sql import (
    NeverNan,
    ValueBound,
    WithinRanges,
    malformed_sql,
    quote_literal,
    quote_name,
)
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Exact, exact


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


_KEYS = Argument("keys", ArgumentKind.COLUMNS)
_COMPARED = Argument("compared", ArgumentKind.COLUMNS)
_OTHER = Argument("dataset", ArgumentKind.DATASET)
_TOLERANCE = Argument("tolerance", ArgumentKind.TOLERANCE)

_Value = Callable[[Arguments, tuple[MetricValue, ...]], MetricValue]


def _count(position: int) -> _Value:
    """One of the counts of missing, extra and changed rows."""
    return lambda _, counts: counts[position]


def _differing(_: Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    return sum(int(count or 0) for count in counts[:3])


def _differing_share(arguments: Arguments, counts: tuple[MetricValue, ...]) -> MetricValue:
    """The share of differing rows among those of the dataset and those it lacks; 0 without rows."""
    differing, rows = _differing(arguments, counts), int(counts[3] or 0) + int(counts[0] or 0)
    return exact(0) if not rows else apply("/", (differing, rows))


_comparison = partial(Metric, empty=0, scan=Scan.MATCH)
"""A metric of two datasets."""

MATCHING = (
    _comparison(
        "missing_count",
        (_KEYS,),
        MetricUnit.DIFFERENCES,
        "The number of rows of the other dataset whose key is missing in this dataset. A "
        "repeated key counts once for each row that is missing here.",
        "assert missing_count(order_id, dataset raw_orders) == 0",
        value=_count(0),
        parameters=(_OTHER,),
    ),
    _comparison(
        "extra_count",
        (_KEYS,),
        MetricUnit.DIFFERENCES,
        "The number of rows of this dataset whose key is missing in the other one. A repeated "
        "key counts once for each row that is missing there.",
        "assert extra_count([order_id, line], dataset raw_orders) == 0",
        value=_count(1),
        parameters=(_OTHER,),
    ),
    _comparison(
        "changed_count",
        (_KEYS, _COMPARED),
        MetricUnit.DIFFERENCES,
        "The number of rows whose key is in both datasets, but whose values in the compared "
        "columns differ by more than the tolerance.",
        "assert changed_count(order_id, [amount, status], dataset raw_orders, tolerance 0.01) == 0",
        value=_count(2),
        parameters=(_OTHER, _TOLERANCE),
    ),
    _comparison(
        "mismatch_count",
        (_KEYS, _COMPARED),
        MetricUnit.DIFFERENCES,
        "The number of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id)",
        value=_differing,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
    ),
    _comparison(
        "mismatch_share",
        (_KEYS, _COMPARED),
        MetricUnit.SHARE,
        "The share of rows that are missing, extra or changed.",
        "assert rows of orders match raw_orders on (order_id) allowing 0.1%",
        value=_differing_share,
        parameters=(_OTHER, _TOLERANCE),
        is_internal=True,
    ),
    _comparison(
        "column_mismatch_count",
        (),
        MetricUnit.COLUMNS,
        "The number of columns that are missing in one of the datasets or differ in type.",
        "assert columns of orders match raw_orders",
        parameters=(_OTHER,),
        is_internal=True,
    ),
)
