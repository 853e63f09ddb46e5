"""The table of built-in metrics: ONE entry a metric. Adding one here is all that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dqx_airflow.diagnostics.listing import listed
from dqx_airflow.exact import exact
from dqx_airflow.metrics import in_python
from dqx_airflow.metrics.columns import find_place
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.merging import Merge
from dqx_airflow.metrics.registry import (
    Aggregate,
    Argument,
    Arguments,
    Kind,
    Metric,
    RowsBehind,
    Scan,
    Shortcut,
    Statistic,
    Unit,
)
from dqx_airflow.metrics.shortcuts import Bound, NeverNan, Within
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.sums import sum_of
from dqx_airflow.metrics.texts import malformed_sql
from dqx_airflow.metrics.types import Family
from dqx_airflow.values import MetricValue

_ANY = Argument("column", Kind.COLUMN)
_NUMBER = Argument("column", Kind.COLUMN, frozenset({Family.NUMBER}))
_TEXT = Argument("column", Kind.COLUMN, frozenset({Family.TEXT}))
_ORDERED = Argument(
    "column", Kind.COLUMN, frozenset({Family.NUMBER, Family.TEXT, Family.TIME, Family.BOOLEAN})
)


def _column(arguments: Arguments) -> str:
    return quote_name(arguments[0])


def _rows() -> Aggregate:
    return Aggregate("count(1)", statistic=Statistic.ROWS, merge=Merge.COUNT)


def _values(column: str) -> Aggregate:
    sql = f"count({quote_name(column)})"
    return Aggregate(sql, statistic=Statistic.VALUES, column=column, merge=Merge.COUNT)


def _rows_where(condition: str, shortcut: Shortcut | None = None) -> Aggregate:
    return Aggregate(_count_if(condition), merge=Merge.COUNT, shortcut=shortcut)


def _count_if(condition: str) -> str:
    """How many rows satisfy the condition.

    Spark computes all conditions of its own `count_if` in one method before it counts; with some
    sixty of them it is too long for Java to compile.
    """
    return f"count(CASE WHEN {condition} THEN 1 END)"


def _extreme(function: str, column: str) -> Aggregate:
    is_least = function == "min"
    return Aggregate(
        f"{function}({quote_name(column)})",
        statistic=Statistic.LEAST if is_least else Statistic.MOST,
        column=column,
        merge=Merge.LEAST if is_least else Merge.MOST,
    )


def nan_count(column: str) -> Aggregate:
    """How many values of a column of numbers are NaN."""
    return replace(_rows_where(_is_nan(column)), shortcut=NeverNan(column))


def _is_nan(column: str) -> str:
    return f"isnan({quote_name(column)})"


def _length(function: str, column: str) -> Aggregate:
    merge = Merge.LEAST if function == "min" else Merge.MOST
    return Aggregate(f"{function}(char_length({quote_name(column)}))", merge=merge)


def _distinct_values(column: str) -> Aggregate:
    return Aggregate(f"count(DISTINCT {quote_name(column)})", distinct=(column,))


def _distinct_tuples(columns: tuple[str, ...]) -> Aggregate:
    # A struct is never NULL, so NULL equals NULL here for one column as for many.
    names = ", ".join(quote_name(column) for column in columns)
    return Aggregate(f"count(DISTINCT struct({names}))", distinct=columns, is_key=True)


def _whole_keys(columns: tuple[str, ...]) -> tuple[Aggregate, Aggregate]:
    """The rows without NULL in the columns, and the combinations that are in them."""
    names = ", ".join(map(quote_name, columns))
    several = Aggregate(f"count({names})", merge=Merge.COUNT)
    rows = several if len(columns) > 1 else _values(columns[0])
    distinct = f"count(DISTINCT {names})"
    return rows, Aggregate(distinct, distinct=columns, is_key=True, skips_null=True)


def _repeated_keys(columns: tuple[str, ...]) -> RowsBehind:
    present = " AND ".join(f"{quote_name(column)} IS NOT NULL" for column in columns)
    return RowsBehind("", condition=present, repeated=columns)


def _other_rows(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    """Those of the first count that are not in the second."""
    return int(results[0] or 0) - int(results[1] or 0)


def _sum_and_count(arguments: Arguments) -> tuple[Aggregate, ...]:
    return sum_of(arguments[0]), _values(arguments[0])


def _once(sql: str) -> str:
    """The number that some SQL yields as a double, which Spark takes from it once for each row.

    An aggregate of moments would make a double of a decimal five times over. `nullif` with NULL
    changes nothing, and Spark computes what it compares beforehand.
    """
    return f"nullif(CAST({sql} AS DOUBLE), NULL)"


def _correlation(arguments: Arguments) -> tuple[Aggregate, ...]:
    # `corr` ends the scan in ANSI mode where a column does not vary.
    one, other = map(quote_name, arguments)
    found = f"covar_pop({_once(one)}, {_once(other)})"
    for column, given in ((one, other), (other, one)):
        spread = f"stddev_pop({_once(f'CASE WHEN {given} IS NOT NULL THEN {column} END')})"
        found = f"try_divide({found}, {spread})"
    return (Aggregate(found),)


def _variance(arguments: Arguments) -> tuple[Aggregate, ...]:
    return Aggregate(f"var_samp({_once(_column(arguments))})"), _values(arguments[0])


def _first(arguments: Arguments) -> tuple[Aggregate, ...]:
    column, order = arguments
    if order is None:
        return (Aggregate(f"first({quote_name(column)})"),)
    return (Aggregate(f"min_by({quote_name(column)}, {quote_name(order)})"),)


def _columns(argument: Any) -> tuple[str, ...]:
    """The columns of an argument that takes one or several."""
    return (argument,) if isinstance(argument, str) else tuple(argument)


def _rows_equal(arguments: Arguments) -> tuple[Aggregate, ...]:
    column, value = arguments
    shortcut = None
    if isinstance(value, int | Decimal | float) and not isinstance(value, bool):
        shortcut = Within(column, ((Bound("<", value),), (Bound(">", value),)))
    return (_rows_where(f"{_column(arguments)} = {quote_literal(value)}", shortcut),)


def _violations(arguments: Arguments) -> Aggregate:
    (condition,) = arguments
    return _rows_where(f"NOT ({condition})", condition.shortcut)


def _evaluated(arguments: Arguments) -> Aggregate:
    """The rows in which a predicate is true or false."""
    (condition,) = arguments
    if condition.column is not None:
        return _values(condition.column)
    return Aggregate(f"count(({condition}))", merge=Merge.COUNT)


def _share_counts(arguments: Arguments) -> tuple[Aggregate, ...]:
    column = _column(arguments)
    values = (value for value, _ in arguments[1])
    counts = (_rows_where(f"{column} = {quote_literal(value)}") for value in values)
    return (_values(arguments[0]), *counts)


def _rows_without(arguments: Arguments) -> RowsBehind:
    return RowsBehind(f"{arguments[0]} is NULL", condition=f"{_column(arguments)} IS NULL")


def _rows_with_value(arguments: Arguments) -> RowsBehind:
    return RowsBehind(
        f"{arguments[0]} is {arguments[1]}",
        condition=f"{_column(arguments)} = {quote_literal(arguments[1])}",
    )


def _rows_beyond(arguments: Arguments) -> RowsBehind:
    return RowsBehind(arguments[0], compared=_column(arguments))


def _lengths_beyond(arguments: Arguments) -> RowsBehind:
    return RowsBehind(f"length of {arguments[0]}", compared=f"char_length({_column(arguments)})")


def _rows_violating(arguments: Arguments) -> RowsBehind:
    return RowsBehind(f"not ({arguments[0]})", condition=f"NOT ({arguments[0]})")


def _type_of_column(arguments: Arguments, types: Mapping[str, str]) -> tuple[MetricValue, str]:
    place = find_place(arguments[0], types)
    return (None if place is None else place.type), ""


def _extra_columns(arguments: Arguments, types: Mapping[str, str]) -> tuple[MetricValue, str]:
    places = [find_place(name, types) for name in _columns(arguments[0])]
    known = {place.path[0] for place in places if place is not None}
    extra = [column for column in types if column not in known]
    return len(extra), f"not listed: {listed(extra)}" if extra else ""


def _furthest_share(arguments: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    """The largest difference of a share; what is not listed counts as one more value."""
    total, *counts = (int(result or 0) for result in results)
    if not total:
        return None
    due = [share for _, share in arguments[1]]
    found = [Fraction(count, total) for count in counts]
    rest = abs((1 - sum(found)) - (1 - sum(due)))
    return exact(max([rest, *(abs(a - b) for a, b in zip(found, due, strict=True))]))


_ENTRIES = (
    Metric(
        "num_rows",
        (),
        Unit.ROWS,
        "The number of rows.",
        "assert num_rows() >= 1000",
        lambda _: (_rows(),),
        empty=0,
        in_python=lambda rows: len(rows.values),
    ),
    Metric(
        "count",
        (_ANY,),
        Unit.ROWS,
        "The number of rows in which the column is not NULL.",
        "assert count(departure) > 0",
        lambda arguments: (_values(arguments[0]),),
        empty=0,
        in_python=lambda column: len(column.present),
        lowered_by=_rows_without,
    ),
    Metric(
        "null_count",
        (_ANY,),
        Unit.ROWS,
        "The number of rows in which the column is NULL.",
        "assert null_count(email) / num_rows() < 5%",
        lambda arguments: (_rows(), _values(arguments[0])),
        value=_other_rows,
        empty=0,
        in_python=lambda column: column.values.count(None),
        raised_by=_rows_without,
    ),
    Metric(
        "nan_count",
        (_NUMBER,),
        Unit.ROWS,
        "The number of rows in which the column is NaN, which no number of another type than float"
        " and double is.",
        "assert nan_count(price) == 0",
        lambda arguments: (nan_count(arguments[0]),),
        empty=0,
        in_python=in_python.nan_count,
        raised_by=lambda arguments: RowsBehind(
            f"{arguments[0]} is NaN", condition=_is_nan(arguments[0])
        ),
    ),
    Metric(
        "average",
        (_NUMBER,),
        Unit.COLUMN,
        "The mean of the column, NULL ignored; exact for whole numbers and decimals.",
        "assert average(price) > 0",
        _sum_and_count,
        value=lambda _, results: apply("/", results),
        in_python=in_python.mean,
        is_void_with_nan=True,
    ),
    Metric(
        "sum",
        (_NUMBER,),
        Unit.COLUMN,
        "The sum of the column, NULL ignored; exact for whole numbers and decimals, with up to 38"
        " digits.",
        "assert sum(revenue) is positive",
        _sum_and_count,
        in_python=in_python.total,
        is_void_with_nan=True,
    ),
    Metric(
        "minimum",
        (_ORDERED,),
        Unit.COLUMN,
        "The smallest value of the column, NULL ignored.",
        "assert minimum(quantity) >= 0",
        lambda arguments: (_extreme("min", arguments[0]),),
        in_python=in_python.smallest,
        is_picked=True,
        lowered_by=_rows_beyond,
        is_void_with_nan=True,
    ),
    Metric(
        "maximum",
        (_ORDERED,),
        Unit.COLUMN,
        "The largest value of the column, NULL ignored.",
        "assert maximum(temperature) < 60",
        lambda arguments: (_extreme("max", arguments[0]),),
        in_python=in_python.largest,
        is_picked=True,
        raised_by=_rows_beyond,
        is_void_with_nan=True,
    ),
    Metric(
        "variance",
        (_NUMBER,),
        Unit.SQUARED,
        "The sample variance of the column; no value below two values.",
        "assert sqrt(variance(score)) < 10",
        _variance,
        value=lambda _, results: (
            results[0] if isinstance(results[1], int) and results[1] > 1 else None
        ),
        in_python=in_python.sample_variance,
        is_void_with_nan=True,
    ),
    Metric(
        "unique_count",
        (_ANY,),
        Unit.VALUES,
        "The number of distinct values of the column, NULL ignored.",
        "assert unique_count(carrier) between 10 and 20",
        lambda arguments: (_distinct_values(arguments[0]),),
        empty=0,
        in_python=in_python.unique_count,
    ),
    Metric(
        "duplicate_count",
        (Argument("columns", Kind.COLUMNS),),
        Unit.ROWS,
        "Rows minus distinct combinations of the columns; NULL equals NULL.",
        "assert duplicate_count([order_id, line]) == 0",
        lambda arguments: (_rows(), _distinct_tuples(_columns(arguments[0]))),
        value=_other_rows,
        empty=0,
        in_python=in_python.duplicate_count,
        raised_by=lambda arguments: RowsBehind("", repeated=_columns(arguments[0])),
    ),
    Metric(
        "repeated_count",
        (Argument("columns", Kind.COLUMNS),),
        Unit.ROWS,
        "As `duplicate_count`, without rows that have NULL in one of the columns: UNIQUE of SQL.",
        "assert repeated_count([country, tax_id]) == 0",
        lambda arguments: _whole_keys(_columns(arguments[0])),
        value=_other_rows,
        empty=0,
        in_python=in_python.repeated_count,
        raised_by=lambda arguments: _repeated_keys(_columns(arguments[0])),
    ),
    Metric(
        "count_values",
        (_ANY, Argument("value", Kind.LITERAL)),
        Unit.ROWS,
        "The number of rows in which the column equals the value.",
        'assert count_values(status, "pending") < 100',
        _rows_equal,
        empty=0,
        in_python=in_python.equal_count,
        raised_by=_rows_with_value,
    ),
    Metric(
        "percentile",
        (_NUMBER, Argument("share", Kind.SHARE)),
        Unit.COLUMN,
        "The value below which the share of the column lies, NULL ignored; interpolated.",
        "assert percentile(latency_ms, 99%) < 500",
        lambda arguments: (Aggregate(f"percentile({_column(arguments)}, {arguments[1]})"),),
        in_python=in_python.percentile,
        is_void_with_nan=True,
    ),
    Metric(
        "first",
        (_ANY,),
        Unit.COLUMN,
        "The column in the first row; without `order_by` any row may be the first.",
        'assert first(status, order_by created_at) == "open"',
        _first,
        parameters=(Argument("order_by", Kind.COLUMN, _ORDERED.accepts),),
        in_python=in_python.first,
        is_picked=True,
    ),
    Metric(
        "correlation",
        (_NUMBER, _NUMBER),
        Unit.SHARE,
        "Pearson's correlation of two columns; no value where one of them does not vary.",
        "assert correlation(distance, air_time) > 0.9",
        _correlation,
        # Rounding may carry it a hair beyond 1.
        value=lambda _, results: (
            None if results[0] is None else max(-1.0, min(1.0, float(results[0])))
        ),
        least=-1,
        in_python=in_python.correlation,
        is_void_with_nan=True,
    ),
    Metric(
        "min_length",
        (_TEXT,),
        Unit.CHARACTERS,
        "The length of the shortest text, NULL ignored.",
        "assert min_length(tax_id) == 64",
        lambda arguments: (_length("min", arguments[0]),),
        in_python=in_python.shortest,
        lowered_by=_lengths_beyond,
    ),
    Metric(
        "max_length",
        (_TEXT,),
        Unit.CHARACTERS,
        "The length of the longest text, NULL ignored.",
        "assert max_length(name) <= 80",
        lambda arguments: (_length("max", arguments[0]),),
        in_python=in_python.longest,
        raised_by=_lengths_beyond,
    ),
    Metric(
        "violating_rows",
        (Argument("predicate", Kind.PREDICATE),),
        Unit.ROWS,
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
        (Argument("predicate", Kind.PREDICATE),),
        Unit.SHARE,
        "The share of rows for which the predicate holds, among those where it is not NULL; all, if"
        " there are none.",
        'assert 95% of rows: email matches "@"',
        lambda arguments: (_evaluated(arguments), _violations(arguments)),
        value=lambda _, results: (
            apply("/", (_other_rows(_, results), results[0])) if results[0] else 1
        ),
        empty=1,
        is_internal=True,
        in_python=in_python.true_share,
        lowered_by=_rows_violating,
    ),
    Metric(
        "malformed_count",
        (_ANY,),
        Unit.ROWS,
        "The number of rows in which the text of the column is no value of its type, or the whole"
        " line is broken: of csv and json with a declared schema; elsewhere 0.",
        "assert malformed_count(price) == 0",
        lambda arguments: (_rows_where(malformed_sql("malformed_count", arguments[0])),),
        empty=0,
        in_python=lambda malformed: malformed.values.count(True),
        raised_by=lambda arguments: RowsBehind(
            f"{arguments[0]} is no value of its type",
            condition=malformed_sql("malformed_count", arguments[0]),
        ),
        is_of_texts=True,
    ),
    Metric(
        "malformed_rows",
        (Argument("besides", Kind.NAMES),),
        Unit.ROWS,
        "The number of rows in which a text is malformed of a column that is not listed.",
        "assert malformed_count(price) == 0",
        lambda arguments: (_rows_where(malformed_sql("malformed_rows", arguments[0])),),
        empty=0,
        is_internal=True,
        in_python=lambda malformed: malformed.values.count(True),
        raised_by=lambda arguments: RowsBehind(
            "a text is no value of its type",
            condition=malformed_sql("malformed_rows", arguments[0]),
        ),
        is_of_texts=True,
    ),
    Metric(
        "share_difference",
        (_ANY, Argument("shares", Kind.SHARES)),
        Unit.SHARE,
        "How far the shares of the values are from those expected: the largest difference.",
        'assert distribution(status) matches {"open": 20%, "closed": 80%} tolerance 5%',
        _share_counts,
        value=_furthest_share,
        is_internal=True,
        in_python=in_python.share_difference,
    ),
    Metric(
        "newest",
        (Argument("column", Kind.COLUMN, frozenset({Family.TIME, Family.TEXT})),),
        Unit.COLUMN,
        "The newest date or timestamp of the column, NULL ignored.",
        "assert freshness(updated_at) < 2 hours",
        lambda arguments: (_extreme("max", arguments[0]),),
        is_internal=True,
        in_python=in_python.largest,
    ),
    Metric(
        "column_type",
        (_ANY,),
        Unit.TEXT,
        "The type of the column; no value where there is no such column.",
        "assert column price type decimal(18,2)",
        lambda _: (),
        is_internal=True,
        scan=Scan.SCHEMA,
        no_value="there is no such column",
        of_schema=_type_of_column,
    ),
    Metric(
        "extra_column_count",
        (Argument("columns", Kind.NAMES),),
        Unit.COLUMNS,
        "The number of columns of the dataset that are not listed.",
        "assert extra_column_count([order_id, line, price]) == 0",
        lambda _: (),
        scan=Scan.SCHEMA,
        of_schema=_extra_columns,
    ),
    Metric(
        "sql",
        (Argument("expression", Kind.SQL),),
        Unit.UNKNOWN,
        "One aggregate expression in Spark SQL.",
        'assert sql("sum(amount) / count(*)") > 10',
        lambda arguments: (Aggregate(arguments[0]),),
    ),
    Metric(
        "query",
        (Argument("select", Kind.SQL),),
        Unit.UNKNOWN,
        "One query in Spark SQL with one number, over the rows of the date.",
        'assert query("SELECT count(*) FROM orders JOIN returns USING (order_id)") < 100',
        lambda _: (),
        scan=Scan.QUERY,
        no_value="the query gave no row, or NULL",
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ENTRIES}
"""All metrics by name."""

CALLABLE: tuple[str, ...] = tuple(m.name for m in _ENTRIES if not m.is_internal)
"""The names that a suite may call."""
