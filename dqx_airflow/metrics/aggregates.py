"""Aggregates that others answer, and exact sums.

Shortcuts read no row: the extremes of a column answer how many values are out of a range as long as
none is. For any number of ranges on a column, two aggregates are computed.

Spark adds integers as bigints, and averages them as a double; an average of decimals is rounded to
four more digits. Here a sum has all its digits: integers are added as decimals, and decimals
without rounding. An average is the sum divided by the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from dqx_airflow.metrics.metric import Aggregate, Merge, Statistic, TypeOf
from dqx_airflow.metrics.spark_values import COMPARATORS, comparable, literal_type
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import LONGEST_DECIMAL, WHOLE_SIZES
from dqx_airflow.values import MetricValue

OVERFLOW = f"the sum overflows: it needs more than {LONGEST_DECIMAL} digits"

# Sums of parts of the bits cannot overflow below 2**42 rows, and are as fast as one of bigints; a
# sum of decimals takes twice the time.
_OF_PARTS = {
    "int": (("shiftright({0}, 16)", 65536), ("{0} & 65535", 1)),
    "bigint": (
        ("shiftright({0}, 42)", 4398046511104),
        ("shiftright({0}, 21) & 2097151", 2097152),
        ("{0} & 2097151", 1),
    ),
}


def sum_of(column: str) -> Aggregate:
    """The sum of a column."""
    name = quote_name(column)
    by_type = tuple((kind, _in_parts(name, kind)) for kind in _OF_PARTS)
    by_type += (("boolean", f"sum(CAST({name} AS INT))"),)
    return Aggregate(f"try_sum({name})", column=column, merge=Merge.SUM, sql_by_type=by_type)


def has_overflown(
    aggregates: Sequence[Aggregate], results: Sequence[MetricValue], type_of: TypeOf
) -> bool:
    """True if a sum of decimals has no value because it is too large: according to the count beside
    it, there are values."""
    first = aggregates[0] if aggregates else None
    if first is None or first.merge is not Merge.SUM or first.column is None:
        return False
    return results[0] is None and bool(results[1]) and type_of(first.column).startswith("decimal")


def typed(item: Aggregate, type_of: TypeOf) -> Aggregate:
    """The aggregate in the form for the type of its column."""
    if not item.sql_by_type or item.column is None:
        return item
    return item.of_type(type_of(item.column))


def _in_parts(name: str, kind: str) -> str:
    parts = (
        f"CAST(sum({part.format(name)}) AS DECIMAL(20,0)) * {factor}BD"
        for part, factor in _OF_PARTS[kind]
    )
    return " + ".join(parts)


Limit: TypeAlias = int | Decimal | float | str | date

_NAN = "NaN"


@dataclass(frozen=True, slots=True)
class ValueBound:
    """`op` is `<`, `<=`, `>`, `>=` or `==`; its left operand is the value of the column."""

    op: str
    limit: Limit


@dataclass(frozen=True, slots=True)
class WithinRanges:
    """Answers 0 if all values of a column lie within one of some ranges.

    A range is a set of bounds that hold together. NULL lies in every range.
    """

    column: str
    ranges: tuple[tuple[ValueBound, ...], ...]

    @property
    def asks(self) -> tuple[Aggregate, ...]:
        """The aggregates that answer it."""
        return _extremes_of(self.column)

    def fits(self, type_of: TypeOf) -> bool:
        """True for a column whose order is the same here as in Spark."""
        kind = type_of(self.column)
        is_text = any(isinstance(bound.limit, str) for range_ in self.ranges for bound in range_)
        if kind == "date":
            return True
        return not is_text and (kind in (*WHOLE_SIZES, "double") or kind.startswith("decimal"))

    def answer(self, results: tuple[MetricValue, ...], type_of: TypeOf) -> MetricValue:
        """0, or None if the rows have to be counted.

        :param results: those of what it `asks`.
        """
        if results == (None, None):
            return 0
        if _NAN in results:
            return None
        kind = type_of(self.column)
        try:
            extremes = [_value(str(result), kind) for result in results]
        except ValueError:  # a date in the year 10000
            return None
        is_within = any(
            all(_holds(extreme, kind, bound) for extreme in extremes for bound in range_)
            for range_ in self.ranges
        )
        return 0 if is_within else None


@dataclass(frozen=True, slots=True)
class NeverNan:
    """Answers 0 if the largest value of a column is not NaN, which Spark sorts after infinity."""

    column: str

    @property
    def asks(self) -> tuple[Aggregate, ...]:
        """The aggregates that answer it."""
        return _extremes_of(self.column)[1:]

    def fits(self, type_of: TypeOf) -> bool:
        """True for every column."""
        return True

    def answer(self, results: tuple[MetricValue, ...], type_of: TypeOf) -> MetricValue:
        """0 if no value is NaN; None if that is unknown."""
        return None if results == (_NAN,) else 0


@lru_cache
def _extremes_of(column: str) -> tuple[Aggregate, ...]:
    # A string loses no digit, and distinguishes NaN from NULL.
    return tuple(
        Aggregate(
            f"CAST({function}({quote_name(column)}) AS STRING)", statistic=statistic, column=column
        )
        for function, statistic in (("min", Statistic.LEAST), ("max", Statistic.MOST))
    )


def _value(text: str, kind: str) -> Limit:
    if kind == "date":
        return date.fromisoformat(text)
    if kind == "double":
        return float(text)
    return Decimal(text) if kind.startswith("decimal") else int(text)


def _holds(value: Limit, kind: str, bound: ValueBound) -> bool:
    left, right = comparable(value, kind, bound.limit, literal_type(bound.limit))
    return left is not None and right is not None and COMPARATORS[bound.op](left, right)
