"""Interval arithmetic: between which numbers a result lies when its operands lie in ranges.

The ends are computed by the operations that compute a value, on the same kinds of numbers. These
round the same way for larger and smaller operands, so that an end holds for the value as it is
computed, rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from dqx_airflow.exact import Number, bounded, magnitude, nearest_float

INFINITY = math.inf

_SLACK = 1e-12
"""What `log`, `exp` and means of many days may be off, relative to their size."""

_EXACT_IN_A_MEAN = 2**40
"""Sums of so large whole numbers over a window of days are exact in floating point."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values of an expression lie from `low` to `high`, both included.

    `is_whole` where they are whole numbers; `is_certain` where there always is a value. Where
    there never is one, `low` lies above `high`.
    """

    low: Number
    high: Number
    is_whole: bool = False
    is_certain: bool = False

    @property
    def is_empty(self) -> bool:
        return self.low > self.high

    @property
    def is_point(self) -> bool:
        return self.low == self.high


ANYTHING = Range(-INFINITY, INFINITY)
"""A number, a text, a date or no value."""

NOTHING = Range(INFINITY, -INFINITY)
"""Never a value."""


def spanned(low: Number, high: Number, is_certain: bool, is_whole: bool = False) -> Range:
    """The range with its ends as values are: exact up to a size, beyond that floating."""
    if low > high or low == INFINITY or high == -INFINITY:
        return NOTHING
    low, high = _as_values_are(low), _as_values_are(high)
    if low == high and not is_whole:
        is_whole = isinstance(low, int) or (isinstance(low, float) and low.is_integer())
    return Range(low, high, is_whole, is_certain)


def _as_values_are(end: Number) -> Number:
    try:
        return bounded(end)
    except OverflowError:
        return nearest_float(end)


def _computed(low: Number, high: Number, is_certain: bool, is_whole: bool = False) -> Range:
    """The range of an operation: it has no value where the result is infinite, or of a text."""
    is_finite = low > -INFINITY and high < INFINITY
    return spanned(low, high, is_certain and is_finite, is_whole)


def _mean(inner: Range) -> Range:
    if inner.is_empty:
        return NOTHING
    return _computed(_loosened(inner.low, -1), _loosened(inner.high, 1), inner.is_certain)


def _stddev(inner: Range) -> Range:
    if inner.is_empty:
        return NOTHING
    return _computed(0.0, float(inner.high) - float(inner.low), inner.is_certain)


def _loosened(end: Number, direction: int) -> float:
    """The end a little further out, unless means of whole numbers reach it exactly."""
    if float(end).is_integer() and magnitude(end) <= _EXACT_IN_A_MEAN:
        return float(end)
    return end + direction * magnitude(end) * _SLACK


def absolute(inner: Range) -> Range:
    if inner.low >= 0 or inner.is_empty:
        return inner
    low = 0 if inner.high >= 0 else -inner.high
    return _computed(low, max(-inner.low, inner.high), inner.is_certain, inner.is_whole)


def _square_root(inner: Range) -> Range:
    if inner.is_empty or inner.high < 0:
        return NOTHING
    low = math.sqrt(max(inner.low, 0))
    return spanned(low, math.sqrt(inner.high), inner.is_certain and inner.low >= 0)


def _logarithm(inner: Range) -> Range:
    if inner.is_empty or inner.high <= 0:
        return NOTHING
    smallest = max(inner.low, 1) if inner.is_whole else inner.low
    low = math.log(smallest) if smallest > 0 else -INFINITY
    high = math.log(inner.high) if inner.high < INFINITY else INFINITY
    is_certain = inner.is_certain and inner.low > 0
    return spanned(low - abs(low) * _SLACK, high + abs(high) * _SLACK, is_certain)


def _exponential(inner: Range) -> Range:
    if inner.is_empty:
        return NOTHING
    low, high = _exp(inner.low), _exp(inner.high)
    return _computed(low * (1 - _SLACK), high * (1 + _SLACK), inner.is_certain)


def _exp(number: Number) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return INFINITY


def _smallest(parts: list[Range]) -> Range:
    return _picked(parts, min)


def _largest(parts: list[Range]) -> Range:
    return _picked(parts, max)


_Pick: TypeAlias = Callable[[list[Number]], Number]


def _picked(parts: list[Range], pick: _Pick) -> Range:
    if any(part.is_empty for part in parts):
        return NOTHING
    return _computed(
        pick([part.low for part in parts]),
        pick([part.high for part in parts]),
        all(part.is_certain for part in parts),
        all(part.is_whole for part in parts),
    )


def _first_with_a_value(parts: list[Range]) -> Range:
    reached: list[Range] = []
    for part in parts:
        if not part.is_empty:
            reached.append(part)
        if part.is_certain:
            break
    if not reached:
        return NOTHING
    return spanned(
        min(part.low for part in reached),
        max(part.high for part in reached),
        reached[-1].is_certain,
        all(part.is_whole for part in reached),
    )


WINDOW_RANGES: dict[str, Callable[[Range], Range]] = {"mean": _mean, "stddev": _stddev}
FUNCTION_RANGES: dict[str, Callable[[list[Range]], Range]] = {
    "abs": lambda parts: absolute(parts[0]),
    "sqrt": lambda parts: _square_root(parts[0]),
    "log": lambda parts: _logarithm(parts[0]),
    "exp": lambda parts: _exponential(parts[0]),
    "min": _smallest,
    "max": _largest,
    "coalesce": _first_with_a_value,
}


# Arithmetic


def narrowed(plain: Range, known: tuple[Number, Number] | None) -> Range:
    """The range between the ends that are known otherwise, if they are."""
    if known is None or plain.is_empty:
        return plain
    low, high = max(plain.low, known[0]), min(plain.high, known[1])
    return spanned(low, high, plain.is_certain, plain.is_whole)


def negative(inner: Range) -> Range:
    if inner.is_empty:
        return NOTHING
    return _computed(-inner.high, -inner.low, inner.is_certain, inner.is_whole)


def added(left: Range, right: Range) -> Range:
    if left.is_empty or right.is_empty:
        return NOTHING
    is_certain = left.is_certain and right.is_certain
    is_whole = left.is_whole and right.is_whole
    return _computed(left.low + right.low, left.high + right.high, is_certain, is_whole)


def multiplied(left: Range, right: Range) -> Range:
    if left.is_empty or right.is_empty:
        return NOTHING
    corners = [
        # Zero times anything finite is zero, however large.
        a * b if a and b else 0
        for a in (left.low, left.high)
        for b in (right.low, right.high)
    ]
    is_certain = left.is_certain and right.is_certain
    is_whole = left.is_whole and right.is_whole
    return _computed(min(corners), max(corners), is_certain, is_whole)


def divided(left: Range, right: Range) -> Range:
    """The range of quotients; a division by zero gives no value."""
    if left.is_empty or right.is_empty:
        return NOTHING
    smallest = 1 if right.is_whole else 0
    is_certain = left.is_certain and right.is_certain and not right.low <= 0 <= right.high
    parts = []
    if right.high > 0:
        parts.append(_by_positive(left, max(right.low, smallest), right.high))
    if right.low < 0:
        by_positive = _by_positive(left, max(-right.high, smallest), -right.low)
        parts.append((-by_positive[1], -by_positive[0]))
    if not parts:
        return NOTHING
    return _computed(min(low for low, _ in parts), max(high for _, high in parts), is_certain)


def _by_positive(left: Range, least: Number, most: Number) -> tuple[Number, Number]:
    """The ends of quotients by a number above 0, from `least` to `most`."""
    low = _quotient(left.low, most if left.low >= 0 else least)
    high = _quotient(left.high, least if left.high >= 0 else most)
    return low, high


def _quotient(number: Number, by: Number) -> Number:
    if number == 0 or by == 0:
        return math.copysign(INFINITY, number) if number else 0
    if isinstance(number, float) or isinstance(by, float):
        return number / by
    return Fraction(number) / by
