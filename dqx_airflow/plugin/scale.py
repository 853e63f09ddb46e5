"""The scale of a chart: round numbers from below the minimum to above the maximum."""

from __future__ import annotations

import math
from datetime import date, timedelta

_STEPS = (1, 2, 5, 10)
_AGES = (
    *(1.0, 5.0, 15.0, 30.0),
    *(60.0, 300.0, 900.0, 1800.0),
    *(3600.0, 7200.0, 10_800.0, 21_600.0, 43_200.0),
    *(86_400.0, 172_800.0, 432_000.0, 864_000.0, 2_592_000.0, 8_640_000.0),
)
_INTERVALS = 4
_SMALLEST, _LARGEST = 1e-300, 1e300


def levels_of(
    low: float, high: float, *, is_count: bool = False, is_age: bool = False
) -> tuple[float, ...]:
    """The levels of a scale for values from `low` to `high`, ascending and evenly spaced.

    Counts begin at zero, and so do values close to it. A constant has a single level, and numbers
    that are too large or too small have only the two ends.

    :param is_age: whether the values are seconds, whose steps are minutes, hours and days.

    >>> levels_of(0.03, 0.508)
    (0.0, 0.2, 0.4, 0.6)
    """
    if low > 0 and (is_count or low < high / 2):
        low = 0.0
    elif high < 0 and (is_count or high > low / 2):
        high = 0.0
    span = high - low
    if span == 0 or not _SMALLEST < span < _LARGEST:
        return (low,) if low == high else (low, high)
    step = _age_step(span) if is_age else _step(span)
    if is_count:
        step = max(step, 1.0)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(-math.floor(math.log10(step)), 0)
    return tuple(round(multiple * step, digits) for multiple in range(first, last + 1))


def _step(span: float) -> float:
    rough = span / _INTERVALS
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(unit * step for step in _STEPS if unit * step >= rough * (1 - 1e-9))


def _age_step(span: float) -> float:
    return next((age for age in _AGES if age >= span / _INTERVALS), None) or _step(span)


def days_of(first: date, last: date) -> tuple[date, ...]:
    """The labelled days of a time axis, as evenly spaced as days can be."""
    days = (last - first).days
    parts = min(days, _INTERVALS)
    if parts < 1:
        return (first,)
    return tuple(first + timedelta(days=round(days * part / parts)) for part in range(parts + 1))
