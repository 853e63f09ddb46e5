"""The steps of a sequence: the distance between its values, by the type of its column.

A step is a number, or `("seconds", number)` for a duration, or None for 1 or one day.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dqx_airflow.metrics.types import Family, family_of

_DAY_S = 86_400
_MICROSECONDS = 10**6

POSITIONS = {
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})",
}
"""The position of a date or timestamp on the number line, as Spark SQL: in days, or
microseconds."""


def step_of(given: Any, kind: str) -> Fraction:
    """The step on that line: days for dates, microseconds for timestamps.

    :param kind: the type of the column.
    """
    if given is None:
        given = ("seconds", _DAY_S) if kind in POSITIONS else 1
    if not isinstance(given, tuple):
        return Fraction(given)
    seconds = Fraction(given[1])
    return seconds / _DAY_S if kind == "date" else seconds * _MICROSECONDS


def objection_to_step(given: Any, column: str, kind: str) -> str | None:
    """Why a step is invalid for a column of a type; None if it is valid."""
    if given is None:
        return None
    is_time = family_of(kind) is Family.TIME
    if is_time is not isinstance(given, tuple):
        unit = "day" if kind == "date" else "hour"
        duration = f"a duration, such as `step 1 {unit}`"
        wanted = duration if is_time else "a number, such as `step 10`"
        return f"'{column}' is of type {kind}: its step is {wanted}"
    if kind == "date" and step_of(given, kind).denominator != 1:
        return f"'{column}' is of type date: its step is a whole number of days"
    return None
