"""Metrics of the values of a column."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from typing import Any

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
    Shortcut,
    Statistic,
)
from dqx_airflow.metrics.spark_values import EXACT, ColumnValues, SumOverflow, has_room, order_key
from dqx_airflow.metrics.sql import quote_name, sum_of
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, decimal_size
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Number

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
    # Spark evaluates all conditions of its own `count_if` in one method before counting; with some
    # sixty of them it is too long for Java to compile.
    counted = f"count(CASE WHEN {condition} THEN 1 END)"
    return Aggregate(counted, merge=Merge.COUNT, shortcut=shortcut)


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


def _sum_and_count(arguments: Arguments) -> tuple[Aggregate, ...]:
    return sum_of(arguments[0]), value_aggregate(arguments[0])


def _length(function: str, column: str) -> Aggregate:
    merge = Merge.LEAST if function == "min" else Merge.MOST
    return Aggregate(f"{function}(char_length({quote_name(column)}))", merge=merge)


def _once(sql: str) -> str:
    """A number as a double that Spark computes once for each row.

    An aggregate of moments would cast a decimal to a double five times. `nullif` with NULL has no
    effect except that Spark computes its operand beforehand.
    """
    return f"nullif(CAST({sql} AS DOUBLE), NULL)"


def _correlation(arguments: Arguments) -> tuple[Aggregate, ...]:
    """Pearson's coefficient: the covariance divided by the product of the standard deviations."""
    # `corr` ends the scan in ANSI mode if a column is constant.
    first, second = map(quote_name, arguments)
    sql = f"covar_pop({_once(first)}, {_once(second)})"
    for column, other in ((first, second), (second, first)):
        spread = f"stddev_pop({_once(f'CASE WHEN {other} IS NOT NULL THEN {column} END')})"
        sql = f"({sql} / nullif({spread}, 0))"
    return (Aggregate(sql),)


def _variance(arguments: Arguments) -> tuple[Aggregate, ...]:
    """The sample variance. Spark merges partial sums of squares by the stable formula of Chan,
    Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances",
    1979)."""
    return Aggregate(f"var_samp({_once(quoted_column(arguments))})"), value_aggregate(arguments[0])


def _z_scores(arguments: Arguments) -> tuple[Aggregate, ...]:
    column = arguments[0]
    ends = (extreme_aggregate(function, column) for function in ("min", "max"))
    return (*_sum_and_count(arguments), *ends, _variance(arguments)[0])


def _largest_z_score(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    """The distance of the more distant extreme from the mean, in standard deviations."""
    total, count, *ends, variance = results
    if count is None or int(count) < 2 or None in ends:
        return None
    mean = apply("/", (total, count))
    distances = (apply("abs", (apply("-", (end, mean)),)) for end in ends)
    return apply("/", (apply("max", tuple(distances)), apply("sqrt", (variance,))))


def _first(arguments: Arguments) -> tuple[Aggregate, ...]:
    column, order = arguments
    if order is None:
        return (Aggregate(f"first({quote_name(column)})"),)
    return (Aggregate(f"min_by({quote_name(column)}, {quote_name(order)})"),)


def _rows_beyond(arguments: Arguments) -> RowsBehind:
    return RowsBehind(arguments[0], compared=quoted_column(arguments))


def _lengths_beyond(arguments: Arguments) -> RowsBehind:
    length = f"char_length({quoted_column(arguments)})"
    return RowsBehind(f"length of {arguments[0]}", compared=length)


# The same in Python, with Spark's results


def _total(column: ColumnValues) -> Any:
    """The sum; None without values.

    :raises SumOverflow: it does not fit into a decimal.
    """
    values = column.present
    if not values:
        return None
    if not column.type.startswith("decimal"):
        return sum(values)
    _, scale = decimal_size(column.type)
    exact_sum = reduce(EXACT.add, values, Decimal(0))
    if not has_room(exact_sum, LONGEST_DECIMAL, scale):
        raise SumOverflow
    return exact_sum


def _mean(column: ColumnValues) -> Any:
    """The sum divided by the number of values.

    :raises SumOverflow: the sum does not fit into a decimal.
    """
    if not column.present:
        return None
    total = _total(column)
    count = len(column.present)
    return total / count if isinstance(total, float) else Fraction(total) / count


def _largest(column: ColumnValues) -> Any:
    """The largest value in Spark's order, where NaN is the largest; None without values."""
    return max(column.present, key=order_key, default=None)


def _sample_variance(column: ColumnValues) -> float | None:
    """The sum of squared distances from the mean, in two passes, divided by one less than the
    number of values (Bessel's correction); None for fewer than two values."""
    values = [float(value) for value in column.present]
    if len(values) < 2:
        return None
    return sum(move * move for move in _moves(values)) / (len(values) - 1)


def _pearson(left: ColumnValues, right: ColumnValues) -> float | None:
    """Pearson's correlation over the rows that have both values."""
    pairs = [
        (float(a), float(b))
        for a, b in zip(left.values, right.values, strict=True)
        if a is not None and b is not None
    ]
    if not pairs:
        return None
    moves, other_moves = (_moves(side) for side in zip(*pairs, strict=True))
    spread = math.hypot(*moves)
    other_spread = math.hypot(*other_moves)
    if not spread or not other_spread:
        return None
    coefficient: float = sum(map(operator.mul, moves, other_moves)) / spread / other_spread
    return coefficient if math.isnan(coefficient) else max(-1.0, min(1.0, coefficient))


def _z_score_in_python(column: ColumnValues) -> Any:
    values = [float(value) for value in column.present]
    variance = _sample_variance(column)
    if not variance or not math.isfinite(variance):
        return variance or None
    return max(map(abs, _moves(values))) / math.sqrt(variance)


def _percentile(column: ColumnValues, share: Number) -> float | None:
    """The percentile in floating point, interpolated between the two nearest values.

    Definition 7 of Hyndman and Fan ("Sample Quantiles in Statistical Packages", The American
    Statistician 50(4), 1996), as used by Spark's `percentile`, numpy and R: the position of a share
    `p` among `n` sorted values, counted from 0, is `(n - 1) * p`.

    :param share: from 0 to 1.
    """
    values = [float(value) for value in sorted(column.present, key=order_key)]
    if not values:
        return None
    place = (len(values) - 1) * float(share)
    below = math.floor(place)
    above = math.ceil(place)
    if below == above or values[below] == values[above]:
        return values[below]
    return (above - place) * values[below] + (place - below) * values[above]


def _first_value(column: ColumnValues, order: ColumnValues | None) -> Any:
    """The value in the first row, or in the row with the smallest value of `order`."""
    if order is None:
        return column.values[0] if column.values else None
    pairs = zip(order.values, column.values, strict=True)
    ordered = [(order_key(key), value) for key, value in pairs if key is not None]
    return min(ordered, key=lambda pair: pair[0])[1] if ordered else None


def _moves(values: Sequence[float]) -> list[float]:
    """The distance of each value from the mean, which is exactly 0 if all of them are equal."""
    center = values[0] + sum(value - values[0] for value in values) / len(values)
    return [value - center for value in values]


_of_values = partial(Metric, unit=MetricUnit.COLUMN, is_void_with_nan=True)
"""A metric in the unit of its column, without a value if that contains NaN."""

VALUES = (
    _of_values(
        "average",
        (NUMBER_OR_TRUTH,),
        "The mean of the column, NULL ignored; exact for whole numbers and decimals. For "
        "booleans, the share of true values.",
        "assert average(price) > 0",
        _sum_and_count,
        value=lambda _, results: apply("/", results),
        in_python=_mean,
    ),
    _of_values(
        "sum",
        (NUMBER_OR_TRUTH,),
        "The sum of the column, NULL ignored; exact for whole numbers and decimals, with up to 38"
        " digits. For booleans, the number of true values.",
        "assert sum(revenue) is positive",
        _sum_and_count,
        in_python=_total,
    ),
    _of_values(
        "minimum",
        (ORDERED,),
        "The smallest value of the column, NULL ignored.",
        "assert minimum(quantity) >= 0",
        lambda arguments: (extreme_aggregate("min", arguments[0]),),
        in_python=lambda column: min(column.present, key=order_key, default=None),
        is_picked=True,
        lowered_by=_rows_beyond,
    ),
    _of_values(
        "maximum",
        (ORDERED,),
        "The largest value of the column, NULL ignored.",
        "assert maximum(temperature) < 60",
        lambda arguments: (extreme_aggregate("max", arguments[0]),),
        in_python=_largest,
        is_picked=True,
        raised_by=_rows_beyond,
    ),
    Metric(
        "variance",
        (NUMBER,),
        "The sample variance of the column: the squared distances from the mean, divided by the "
        "number of values minus 1; no value for fewer than two values.",
        "assert sqrt(variance(score)) < 10",
        _variance,
        value=lambda _, results: (
            results[0] if isinstance(results[1], int) and results[1] > 1 else None
        ),
        no_value="fewer than two values",
        in_python=_sample_variance,
        is_void_with_nan=True,
        unit=MetricUnit.SQUARED,
    ),
)

STATISTICS = (
    Metric(
        "max_z_score",
        (NUMBER,),
        "The largest distance of a value from the mean, in sample standard deviations; no "
        "value if all values are equal.",
        "assert max_z_score(price) < 4",
        _z_scores,
        value=_largest_z_score,
        least=0,
        no_value="fewer than two values, or all values are equal",
        in_python=_z_score_in_python,
        is_void_with_nan=True,
        unit=MetricUnit.NUMBER,
    ),
    _of_values(
        "percentile",
        (NUMBER, Argument("share", ArgumentKind.SHARE)),
        "The value below which the given share of the column lies, NULL ignored; interpolated "
        "linearly between the two nearest values (definition 7 of Hyndman and Fan, as in numpy).",
        "assert percentile(latency_ms, 99%) < 500",
        lambda arguments: (Aggregate(f"percentile({quoted_column(arguments)}, {arguments[1]})"),),
        in_python=_percentile,
    ),
    _of_values(
        "median",
        (NUMBER,),
        "The middle value of the column, NULL ignored; for an even number of values, the mean "
        "of the middle two.",
        "assert median(latency_ms) < 200",
        lambda arguments: (Aggregate(f"percentile({quoted_column(arguments)}, 0.5)"),),
        in_python=lambda column: _percentile(column, Fraction(1, 2)),
    ),
    Metric(
        "first",
        (ORDERED,),
        "The column in the first row; without `order_by` any row may be the first.",
        'assert first(status, order_by created_at) == "open"',
        _first,
        parameters=(Argument("order_by", ArgumentKind.COLUMN, ORDERED.accepts),),
        in_python=_first_value,
        is_picked=True,
        unit=MetricUnit.COLUMN,
    ),
    Metric(
        "correlation",
        (NUMBER, NUMBER),
        "Pearson's correlation of two columns, from -1 to 1; no value if all values of a column "
        "are equal.",
        "assert correlation(distance, air_time) > 0.9",
        _correlation,
        # Rounding may carry it slightly beyond 1.
        value=lambda _, results: (
            None if results[0] is None else max(-1.0, min(1.0, float(results[0])))
        ),
        least=-1,
        no_value="fewer than two rows with both values, or all values of a column are equal",
        in_python=_pearson,
        is_void_with_nan=True,
        unit=MetricUnit.SHARE,
    ),
    Metric(
        "min_length",
        (TEXT,),
        "The length of the shortest string, NULL ignored.",
        "assert min_length(tax_id) == 64",
        lambda arguments: (_length("min", arguments[0]),),
        in_python=lambda column: min(map(len, column.present), default=None),
        lowered_by=_lengths_beyond,
        unit=MetricUnit.CHARACTERS,
    ),
    Metric(
        "max_length",
        (TEXT,),
        "The length of the longest string, NULL ignored.",
        "assert max_length(name) <= 80",
        lambda arguments: (_length("max", arguments[0]),),
        in_python=lambda column: max(map(len, column.present), default=None),
        raised_by=_lengths_beyond,
        unit=MetricUnit.CHARACTERS,
    ),
    Metric(
        "newest",
        (Argument("column", ArgumentKind.COLUMN, frozenset({Family.TIME, Family.TEXT})),),
        "The newest date or timestamp of the column, NULL ignored.",
        "assert freshness(updated_at) < 2 hours",
        lambda arguments: (extreme_aggregate("max", arguments[0]),),
        is_internal=True,
        in_python=_largest,
        unit=MetricUnit.COLUMN,
    ),
)
