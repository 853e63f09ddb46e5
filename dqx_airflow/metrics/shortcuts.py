"""Shortcuts: aggregates that others answer, so that no row is read for them.

The extremes of a column answer how many values are out of a range as long as none is: for any
number of ranges on a column, two aggregates are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias

from dqx_airflow.metrics.comparison import COMPARATORS, comparable, literal_type
from dqx_airflow.metrics.metric import Aggregate, Statistic, TypeOf
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import WHOLE_SIZES
from dqx_airflow.values import MetricValue

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
