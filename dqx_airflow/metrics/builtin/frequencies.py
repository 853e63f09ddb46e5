"""Metrics of how often values occur.

The ratios and the entropy are defined as in Deequ (`analyzers/Uniqueness.scala`,
`Distinctness.scala`, `UniqueValueRatio.scala`, `Entropy.scala`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from dqx_airflow.metrics.builtin import counts
from dqx_airflow.metrics.builtin.values import (
    ANY,
    NUMBER,
    ORDERED,
    columns_of,
    rows_where,
    value_aggregate,
)
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.drift import MOST_CATEGORIES, MOST_STEPS, summary_text
from dqx_airflow.metrics.metric import (
    COPIES,
    DIFFERENT,
    PRESENT,
    RANK,
    UP_TO,
    VALUE,
    Aggregate,
    Argument,
    ArgumentKind,
    Arguments,
    Frequencies,
    Merge,
    Metric,
    MetricUnit,
    RowsBehind,
)
from dqx_airflow.metrics.spark_values import ColumnValues, order_key
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.values import MetricValue

_COLUMNS = Argument("columns", ArgumentKind.COLUMNS)

_ONCE = f"count(CASE WHEN {COPIES} = 1 THEN 1 END)"


def _over_values(columns: tuple[str, ...], sql: str, *, is_ranked: bool = False) -> Aggregate:
    names = ", ".join(map(quote_name, columns))
    over = Frequencies(columns, sql, is_ranked)
    return Aggregate(f"{sql} over the values of {names}", over=over)


def _rows_with_values(columns: tuple[str, ...]) -> Aggregate:
    """The rows with a value in one of the columns."""
    if len(columns) == 1:
        return value_aggregate(columns[0])
    return Aggregate(f"count(CASE WHEN {_has_value(columns)} THEN 1 END)", merge=Merge.COUNT)


def _has_value(columns: tuple[str, ...]) -> str:
    return " OR ".join(f"{quote_name(column)} IS NOT NULL" for column in columns)


def _uniqueness(arguments: Arguments) -> tuple[Aggregate, ...]:
    columns = columns_of(arguments[0])
    return _over_values(columns, _ONCE), _rows_with_values(columns)


def _distinctness(arguments: Arguments) -> tuple[Aggregate, ...]:
    columns = columns_of(arguments[0])
    value = names = ", ".join(map(quote_name, columns))
    if len(columns) > 1:
        value = f"CASE WHEN {_has_value(columns)} THEN struct({names}) END"
    return Aggregate(f"count(DISTINCT {value})", distinct=columns), _rows_with_values(columns)


def _unique_value_ratio(arguments: Arguments) -> tuple[Aggregate, ...]:
    columns = columns_of(arguments[0])
    return _over_values(columns, _ONCE), _over_values(columns, f"count({COPIES})")


def _entropy(arguments: Arguments) -> tuple[Aggregate, ...]:
    parts = (f"sum({COPIES} * ln({COPIES}))", f"count({COPIES})")
    several = (_over_values((arguments[0],), part) for part in parts)
    return (*several, value_aggregate(arguments[0]))


def _entropy_of(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    """`ln(n) - sum(k * ln(k)) / n`, for `n` rows with values, and groups of `k` equal ones."""
    weighted, values, rows = results
    if not rows or not isinstance(weighted, float):
        return None
    return 0.0 if values == 1 else max(0.0, math.log(float(rows)) - weighted / float(rows))


def _mode(arguments: Arguments) -> tuple[Aggregate, ...]:
    # Among equally common values the smallest.
    pair = f"CASE WHEN {COPIES} IS NOT NULL THEN struct(-{COPIES}, {VALUE} AS value) END"
    return (_over_values((arguments[0],), f"min({pair}).value"),)


def _unlisted(arguments: Arguments) -> tuple[Aggregate, ...]:
    column, most, listed = arguments
    is_listed = counts.equal_to_any(VALUE, listed)
    sql = f"count(CASE WHEN {RANK} <= {most} AND NOT ({is_listed}) THEN {COPIES} END)"
    return _over_values((column,), sql, is_ranked=True), value_aggregate(column)


def _value_summary(arguments: Arguments) -> tuple[Aggregate, ...]:
    (column,) = arguments
    is_category = f"(typeof({VALUE}) LIKE 'string%' OR typeof({VALUE}) = 'boolean')"
    steps = f"{{}} * {MOST_STEPS} div {PRESENT}"
    passes = f"{steps.format(UP_TO)} > {steps.format(f'({UP_TO} - {COPIES})')}"
    sql = (
        f"to_json(sort_array(collect_list(CASE WHEN {COPIES} IS NOT NULL AND CASE"
        f" WHEN {is_category} THEN {DIFFERENT} <= {MOST_CATEGORIES}"
        f" ELSE {DIFFERENT} <= {MOST_STEPS} OR {UP_TO} = {COPIES} OR {passes} END THEN struct("
        f"CASE WHEN {is_category} THEN CAST({VALUE} AS STRING) END AS string,"
        f" CASE WHEN NOT {is_category} THEN CAST({VALUE} AS DOUBLE) END AS number,"
        f" {UP_TO} AS up_to, {COPIES} AS copies) END)))"
    )
    over = Aggregate(
        f"summary of the values of {quote_name(column)}",
        over=Frequencies((column,), sql, is_running=True),
    )
    return over, rows_where(f"{quote_name(column)} IS NULL"), value_aggregate(column)


def _summary_of(_: Arguments, results: tuple[MetricValue, ...]) -> MetricValue:
    listed_points, nulls, values = results
    points = []
    before = 0
    is_stepped = False
    for point in json.loads(str(listed_points or "[]")):
        if "string" in point:
            points.append((point["string"], point["copies"]))
        else:
            rows = point["up_to"] - before
            points.append((float(point["number"]) + 0.0, rows))
            is_stepped |= rows != point["copies"]
            before = point["up_to"]
    return summary_text(points, int(str(nulls)), int(str(values)), is_stepped=is_stepped)


def _repeated_values(arguments: Arguments) -> RowsBehind:
    columns = columns_of(arguments[0])
    return RowsBehind("", condition=_has_value(columns), repeated=columns)


# The same in Python, with Spark's results


def _frequencies(columns: ColumnValues | Sequence[ColumnValues]) -> Counter[Any]:
    """The number of rows of each combination that is not NULL throughout."""
    several = (columns,) if isinstance(columns, ColumnValues) else columns
    rows = zip(*(column.values for column in several), strict=True)
    return Counter(order_key(row) for row in rows if any(value is not None for value in row))


def _ratio(
    part: Callable[[Counter[Any]], int], whole: Callable[[Counter[Any]], int]
) -> Callable[[ColumnValues | Sequence[ColumnValues]], MetricValue]:
    """The ratio of two properties of the frequencies of the values."""

    def ratio(columns: ColumnValues | Sequence[ColumnValues]) -> MetricValue:
        frequencies = _frequencies(columns)
        return apply("/", (part(frequencies), whole(frequencies)))

    return ratio


def _once(frequencies: Counter[Any]) -> int:
    return list(frequencies.values()).count(1)


def _shannon(column: ColumnValues) -> float | None:
    """Shannon's entropy in nats ("A Mathematical Theory of Communication", 1948, section 6)."""
    frequencies = _frequencies(column)
    if not frequencies:
        return None
    rows = frequencies.total()
    return (
        math.fsum(-(count / rows) * math.log(count / rows) for count in frequencies.values()) + 0.0
    )


def _most_common(column: ColumnValues) -> Any:
    """The most common value; among equally common ones the smallest."""
    numbers = Counter(column.present)
    return min(numbers, key=lambda value: (-numbers[value], order_key(value)), default=None)


def _unlisted_common(column: ColumnValues, most: int, listed: Collection[Any]) -> int | None:
    numbers = Counter(column.present)
    if not numbers:
        return None
    least = sorted(numbers.values(), reverse=True)[:most][-1]
    common = [value for value, rows in numbers.items() if rows >= least]
    return sum(not counts.is_equal_to_any(value, column.type, listed) for value in common)


def _summary_in_python(column: ColumnValues) -> str | None:
    rows = Counter(column.present)
    nulls = column.values.count(None)
    if family_of(column.type) is not Family.NUMBER:
        is_truth = column.type == "boolean"
        names = {str(value).lower() if is_truth else value: rows[value] for value in rows}
        points = [*names.items()] if len(names) <= MOST_CATEGORIES else []
        return summary_text(points, nulls, len(column.present))
    kept = []
    before = 0
    up_to = 0
    present = len(column.present)
    for value in sorted(rows):
        passed = up_to * MOST_STEPS // present
        up_to += rows[value]
        is_first = up_to == rows[value]
        if len(rows) <= MOST_STEPS or is_first or up_to * MOST_STEPS // present > passed:
            kept.append((float(value) + 0.0, up_to - before))
            before = up_to
    is_stepped = len(kept) < len(rows)
    return summary_text(kept, nulls, present, is_stepped=is_stepped)


_CATEGORY_OR_NUMBER = Argument(
    "column", ArgumentKind.COLUMN, frozenset({Family.NUMBER, Family.TEXT, Family.BOOLEAN})
)
_of_summary = partial(
    Metric,
    unit=MetricUnit.COLUMN,  # it contains values of the column: of a masked one nothing is stored
    doc="How many rows have each value, for `psi`, `js` and `ks` (`metrics.drift`).",
    example="assert psi(country, usual n 28) < 0.2",
    aggregates=_value_summary,
    value=_summary_of,
    is_internal=True,
    in_python=_summary_in_python,
    is_void_with_nan=True,
)

_of_repetitions = partial(
    Metric,
    unit=MetricUnit.SHARE,
    value=lambda _, results: apply("/", results),
    lowered_by=_repeated_values,
)
"""A share of the rows, or of the values, by how often values occur."""

FREQUENCIES = (
    _of_repetitions(
        "uniqueness",
        (_COLUMNS,),
        "The share of rows whose value, or combination of values, occurs once. Rows that are NULL"
        " in all of the columns do not count.",
        "assert uniqueness([first_name, birthday]) > 99%",
        _uniqueness,
        in_python=_ratio(_once, Counter.total),
    ),
    _of_repetitions(
        "distinctness",
        (_COLUMNS,),
        "The number of distinct values, or combinations of values, divided by the number of rows."
        " Rows that are NULL in all of the columns do not count.",
        "assert distinctness(session) between 10% and 50%",
        _distinctness,
        in_python=_ratio(len, Counter.total),
    ),
    _of_repetitions(
        "unique_value_ratio",
        (_COLUMNS,),
        "The share of distinct values, or combinations of values, that occur once.",
        "assert unique_value_ratio(email) > 95%",
        _unique_value_ratio,
        in_python=_ratio(_once, len),
    ),
    Metric(
        "entropy",
        (ANY,),
        "Shannon's entropy of the values, NULL ignored: the sum of `-p * log(p)` over the share "
        "`p` of each value, in nats. It is 0 if all values are equal, and `log(n)` for `n` equally "
        "common values.",
        "assert entropy(country) > 1.5",
        _entropy,
        value=_entropy_of,
        least=0,
        in_python=_shannon,
        unit=MetricUnit.NUMBER,
    ),
    Metric(
        "mode",
        (ORDERED,),
        "The most common value of the column, NULL ignored; the smallest one if several are "
        "equally common.",
        'assert mode(status) == "paid"',
        _mode,
        in_python=_most_common,
        is_picked=True,
        is_void_with_nan=True,
        unit=MetricUnit.COLUMN,
    ),
    Metric(
        "unlisted_common_values",
        (ORDERED, Argument("n", ArgumentKind.COUNT), Argument("values", ArgumentKind.LITERALS)),
        "How many of the `n` most common values are not in the list. Values as common as the "
        "last of them count too.",
        'assert most_common(status, 2) in ["paid", "open", "closed"]',
        _unlisted,
        value=lambda _, results: results[0] if results[1] else None,
        is_internal=True,
        in_python=_unlisted_common,
        is_void_with_nan=True,
        unit=MetricUnit.VALUES,
    ),
    _of_summary("value_summary", (_CATEGORY_OR_NUMBER,)),
    _of_summary("number_summary", (NUMBER,)),
)
