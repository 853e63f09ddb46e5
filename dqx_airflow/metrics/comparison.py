"""How values compare, as Spark compares them.

Values are as Python has them: int, float, Decimal, str, bool, date, datetime, timedelta, bytes;
tuples for arrays, dicts for structs, tuples of pairs in the order of their keys for maps, None for
NULL.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from typing import Any

from dqx_airflow.metrics.moments import date_in, moment_in
from dqx_airflow.metrics.types import Family, family_of

_FLOATING = ("float", "double")


def order_key(value: Any) -> Any:
    """What sorts and groups values of one type.

    NaN equals NaN and is larger than any number; -0.0 equals 0.0; within nested values NULL comes
    first. Text sorts by code points, which is the order of its bytes.
    """
    match value:
        case float():
            return (True, 0.0) if math.isnan(value) else (False, value)
        case tuple():
            return tuple((item is not None, order_key(item)) for item in value)
        case dict():
            return tuple((item is not None, order_key(item)) for item in value.values())
        case _:
            return value


def comparable(left: Any, left_type: str, right: Any, right_type: str) -> tuple[Any, Any]:
    """The order keys of two values of types that can be compared; None for NULL.

    Numbers are compared exactly, unless one of them is floating; a date is its midnight in UTC; a
    text beside a date or timestamp is read as one.
    """
    if left is None or right is None:
        return None, None
    if left_type in _FLOATING or right_type in _FLOATING:
        return order_key(float(left)), order_key(float(right))
    if Family.TIME in (family_of(left_type), family_of(right_type)):
        return _moment(left, right_type), _moment(right, left_type)
    return order_key(left), order_key(right)


def literal_type(value: object) -> str:
    """The type that Spark gives to a literal."""
    match value:
        case bool():
            return "boolean"
        case int():
            digits = len(str(abs(value)))
            if digits > 18 and not -(2**63) <= value < 2**63:
                return f"decimal({digits},0)"
            return "int" if -(2**31) <= value < 2**31 else "bigint"
        case float():
            return "double"
        case date():
            return "date"
        case _:
            return "string"


def moment_of(value: date | datetime | str | None) -> datetime | None:
    """The moment in UTC, without a zone, that a date, timestamp or text stands for."""
    match value:
        case str():
            return moment_in(value)
        case datetime(tzinfo=None) | None:
            return value
        case datetime():
            return value.astimezone(timezone.utc).replace(tzinfo=None)
        case _:
            return datetime(value.year, value.month, value.day)


def _moment(value: Any, beside: str) -> datetime | None:
    is_day_in_text = isinstance(value, str) and beside == "date"
    return moment_of(date_in(value) if is_day_in_text else value)
