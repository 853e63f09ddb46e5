"""Computes functions of metric values: derived metrics and the functions of arithmetic.

None propagates through every function except `coalesce`, `mean`, `usual`, drift and deviations; a
result outside the domain, NaN or infinite is None (design, ruling 4). Exact numbers stay exact
except in `sqrt`, `log`, `exp` and deviations; if one number is a float, so is the result. There is
no arithmetic on strings; dates and timestamps are ISO strings.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta, timezone, tzinfo
from fractions import Fraction
from functools import lru_cache, partial
from zoneinfo import ZoneInfo

from dqx_airflow.metrics.drift import DRIFT
from dqx_airflow.metrics.usual_limits import Kind, UsualLimits, day_before, usual_limits
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import NUMBERS, Exact, bounded, nearest_float, square_root
from dqx_airflow.values.json_form import iso_timestamp

Numbers = tuple[MetricValue, ...]


def apply(function: str, values: Numbers) -> MetricValue:
    """The value of `function` for `values`, or None."""
    if function not in _TAKES_NONE and any(value is None for value in values):
        return None
    if function not in _TAKES_TEXT and any(isinstance(value, str) for value in values):
        return None
    try:
        return _computed(function, values)
    except (ZeroDivisionError, ValueError, OverflowError, TypeError):
        return None


def _computed(function: str, values: Numbers) -> MetricValue:
    """:raises OverflowError: the result is beyond the range of floating-point numbers."""
    result = FUNCTIONS[function](*values)
    if isinstance(result, int | Fraction):
        return bounded(result)
    if isinstance(result, float):
        if math.isinf(result):
            raise OverflowError
        if math.isnan(result):
            return None
    return result


def takes_none(function: str) -> bool:
    """True if `function` may have a value although one of its operands is None."""
    return function in _TAKES_NONE


def is_infinite(function: str, values: Numbers) -> bool:
    """True if the result of `function` is beyond the range of floating-point numbers."""
    if any(value is None or isinstance(value, str) for value in values):
        return False
    try:
        _computed(function, values)
    except OverflowError:
        return True
    except (ZeroDivisionError, ValueError, TypeError):
        return False
    return False


def _stddev(*values: MetricValue) -> MetricValue:
    """Sample standard deviation of the existing values; 0 for a single value."""
    sample_stddev = _sample_stddev(*values)
    if sample_stddev is not None:
        return float(sample_stddev)
    is_single = any(value is not None for value in values)
    return 0.0 if is_single else None


def _sample_stddev(*values: MetricValue) -> MetricValue:
    """Sample standard deviation of the existing values; None for fewer than two.

    For exact values it has 40 digits, so that no tolerance is needed next to values whose deviation
    is small.
    """
    present = [value for value in values if value is not None]
    if len(present) < 2:
        return None
    exact_values = _exact(present)
    if exact_values is None:
        return statistics.stdev(map(float, present))
    mean = Fraction(sum(exact_values), len(present))
    moves = sum((value - mean) ** 2 for value in exact_values)
    return square_root(Fraction(moves, len(present) - 1))


def _coalesce(*values: MetricValue) -> MetricValue:
    """The first existing value."""
    for value in values:
        if value is not None:
            return value
    return None


def _mean(*values: MetricValue) -> MetricValue:
    present = [value for value in values if value is not None]
    if not present:
        return None
    exact_values = _exact(present)
    if exact_values is None:
        return statistics.fmean(map(float, present))
    return Fraction(sum(exact_values), len(present))


def _usual(*values: MetricValue) -> MetricValue:
    """The median of the existing values."""
    present = sorted(value for value in values if value is not None)
    if not present:
        return None
    low = present[(len(present) - 1) // 2]
    high = present[len(present) // 2]
    return low if low == high else _mean(low, high)


def _usual_limit(end: str, *values: MetricValue) -> MetricValue:
    limits = usual_behind(values)
    return None if limits is None else float(getattr(limits, end))


@lru_cache(maxsize=64)
def usual_behind(values: Numbers) -> UsualLimits | None:
    """The usual limits, from the operands of a limit: the date and labels (`known_text`), the kind,
    the country, today's value, and the values of the days before."""
    known, kind, country, _, *history = values
    (found,) = usual_limits(
        [day_before(str(known), [*map(as_float, history)])],
        Kind(str(kind)),
        None if country is None else str(country),
    )
    return found


def as_float(value: MetricValue) -> float | None:
    """A value of an earlier day as a float; None if it is not a number."""
    return nearest_float(value) if isinstance(value, NUMBERS) else None


def _exact(values: Sequence[MetricValue]) -> list[Exact] | None:
    """The values, if all of them are exact."""
    exact_values = [value for value in values if isinstance(value, int | Fraction)]
    return exact_values if len(exact_values) == len(values) else None


def _quotient(a: MetricValue, b: MetricValue) -> MetricValue:
    if isinstance(a, int | Fraction) and isinstance(b, int | Fraction):
        return Fraction(a, b)
    return a / b  # type: ignore[operator]


def _zone(name: MetricValue) -> tzinfo:
    return timezone.utc if name == "UTC" else ZoneInfo(str(name))


def _timestamp(text: MetricValue, zone: tzinfo = timezone.utc) -> datetime:
    """The timestamp, in UTC if it has no time zone, or the beginning of a date in a time zone."""
    timestamp = iso_timestamp(str(text))
    if timestamp.tzinfo:
        return timestamp
    is_day = len(str(text)) == len("2024-11-29")
    return timestamp.replace(tzinfo=zone if is_day else timezone.utc)


def _age(now: MetricValue, then: MetricValue, zone: MetricValue) -> MetricValue:
    """The seconds from `then`, which may be the beginning of a date in the time zone, to `now`."""
    since = _timestamp(then, _zone(zone)).astimezone(timezone.utc)
    return Fraction((_timestamp(now) - since) // timedelta(microseconds=1), 10**6)


def _midnight(newest: MetricValue, zone: MetricValue) -> MetricValue:
    """The beginning of the day of a date or timestamp in the time zone."""
    place = _zone(zone)
    day = _timestamp(newest, place).astimezone(place).date()
    return datetime.combine(day, time(), place).isoformat(sep=" ")


def _deadline(newest: MetricValue, clock: MetricValue, zone: MetricValue) -> MetricValue:
    """The given time on the day after `newest`, both in the time zone."""
    place = _zone(zone)
    day = _timestamp(newest, place).astimezone(place).date()
    deadline = datetime.combine(day + timedelta(days=1), time.fromisoformat(str(clock)), place)
    return deadline.isoformat(sep=" ")


FUNCTIONS: dict[str, Callable[..., MetricValue]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "negative": lambda a: -a,
    "abs": abs,
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "min": min,
    "max": max,
    "coalesce": _coalesce,
    "stddev": _stddev,
    "sample_stddev": _sample_stddev,
    "mean": _mean,
    "usual": _usual,
    "lowest_usual": partial(_usual_limit, "low"),
    "highest_usual": partial(_usual_limit, "high"),
    "age": _age,
    "midnight": _midnight,
    "deadline": _deadline,
    **DRIFT,
}

_TAKES_NONE = frozenset(
    {"coalesce", "stddev", "sample_stddev", "mean", "usual", "lowest_usual", "highest_usual"}
    | set(DRIFT)
)
_TAKES_TEXT = frozenset(
    {"coalesce", "min", "max", "age", "midnight", "deadline", "lowest_usual", "highest_usual"}
    | set(DRIFT)
)
