"""What can be computed from metric values: extended metrics and the functions of arithmetic.

None propagates through every function but `coalesce`, `stddev` and `mean`; a result outside the
domain, NaN or infinite is None (design, ruling 4). There is no arithmetic on text and dates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from dqx_airflow.values import MetricValue

Numbers = tuple[MetricValue, ...]


def apply(function: str, values: Numbers) -> MetricValue:
    """The value of `function` for `values`; None where there is no value."""
    compute = FUNCTIONS[function]
    if function not in _TAKES_NONE and any(value is None for value in values):
        return None
    if function not in _TAKES_TEXT and any(isinstance(value, str) for value in values):
        return None
    try:
        result = compute(*values)
        if isinstance(result, int) and abs(result) > _LARGEST_WHOLE:
            result = float(result)
    except (ZeroDivisionError, ValueError, OverflowError, TypeError):
        return None
    if isinstance(result, float) and not math.isfinite(result):
        return None
    return result


def _coalesce(*values: MetricValue) -> MetricValue:
    return next((value for value in values if value is not None), None)


def _stddev(*values: MetricValue) -> MetricValue:
    """Sample standard deviation of the values that there are; one value gives 0."""
    present = [float(value) for value in values if value is not None]
    if not present:
        return None
    return statistics.stdev(present) if len(present) > 1 else 0.0


def _mean(*values: MetricValue) -> MetricValue:
    present = [float(value) for value in values if value is not None]
    return statistics.fmean(present) if present else None


FUNCTIONS: dict[str, Callable[..., MetricValue]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "negative": lambda a: -a,
    "abs": abs,
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "min": min,
    "max": max,
    "coalesce": _coalesce,
    "stddev": _stddev,
    "mean": _mean,
}

_TAKES_NONE = frozenset({"coalesce", "stddev", "mean"})
_TAKES_TEXT = frozenset({"coalesce", "min", "max"})
_LARGEST_WHOLE = 10**38  # what a column may hold; beyond, whole numbers would only grow and grow

ARITY: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "sqrt": (1, 1),
    "log": (1, 1),
    "exp": (1, 1),
    "min": (2, None),
    "max": (2, None),
    "coalesce": (1, None),
}
"""The functions that a suite may call on metrics: fewest and most arguments."""

CHANGES: dict[str, int] = {"day_over_day": 1, "week_over_week": 7}
"""Absolute change `abs((today - base) / base)` against so many days before (seed 001)."""

WINDOWS: tuple[str, ...] = ("stddev", "mean")
"""Functions over the values of the last `n` days, the target date included."""

SHORTCUTS: dict[str, str] = {
    "unique": "duplicate_count([columns]) == 0",
    "not_null": "null_count(column) == 0, for each column",
    "positive": "minimum(column) > 0",
    "non_negative": "minimum(column) >= 0",
    "in_set": "each row: column in [values]",
    "not_empty": "num_rows() > 0",
}
"""Calls that are assertions of their own, and what they stand for."""
