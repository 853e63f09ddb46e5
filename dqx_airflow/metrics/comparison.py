"""Compares values as Spark does.

Values are held as in Python: int, float, Decimal, str, bool, date, datetime, timedelta, bytes;
tuples for arrays, dicts for structs, tuples of pairs ordered by key for maps, None for NULL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timezone
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Any

from dqx_airflow.metrics.datetime_text import timestamp_in
from dqx_airflow.metrics.types import WHOLE_SIZES, Family, decimal_size, decimal_type, family_of

COMPARATORS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
    }
)
"""The comparators of the language."""

MIRRORED = MappingProxyType({"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="})
"""The comparators with their sides exchanged: `a < b` is `b > a`."""

FLOATING = ("float", "double")

_WIDE = Context(prec=5000)
"""The types that may hold NaN."""

_LAST_FRACTION, _LAST_BIGINT = 2**53, 2**63
"""From the first on, every double is an integer; from the second on, none is a bigint."""


def order_key(value: Any) -> Any:
    """A key to sort and group values of one type.

    NaN equals NaN and is larger than any number; -0.0 equals 0.0; in nested values NULL comes
    first. Strings sort by code point, which is the order of their UTF-8 bytes.
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
    """The order keys of two values of comparable types; None for NULL.

    Numbers are compared exactly; a date is its midnight in UTC; a string next to a date or
    timestamp is parsed as one. Next to a decimal, a floating-point number is the decimal that it
    prints as: 0.1, not the nearest binary fraction.
    """
    if left is None or right is None:
        return None, None
    types = left_type, right_type
    if FLOATING[0] in types or FLOATING[1] in types:
        is_decimal = any(kind.startswith("decimal") for kind in types)
        return (
            _number_key(left, left_type, is_decimal),
            _number_key(right, right_type, is_decimal),
        )
    if Family.TIME in (family_of(left_type), family_of(right_type)):
        return timestamp_of(left), timestamp_of(right)
    return order_key(literal_value(left)), order_key(literal_value(right))


def literal_value(value: Any) -> Any:
    """A literal as Spark reads it: a decimal if it has a point, and not too many digits."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    written = Decimal(repr(value))
    return value if decimal_type(written) is None else written


def _number_key(value: Any, spark_type: str, is_beside_decimal: bool) -> tuple[bool, Any]:
    if spark_type in WHOLE_SIZES:
        return False, value
    if spark_type not in FLOATING:
        return False, literal_value(value)
    number = float(value)
    if math.isnan(number):
        return True, 0
    if not is_beside_decimal or math.isinf(number):
        return False, number
    is_whole = _LAST_FRACTION <= abs(number) < _LAST_BIGINT
    return False, Decimal(int(number)) if is_whole else Decimal(repr(number))


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
        case float() | Decimal():
            return decimal_type(Decimal(str(value))) or "double"
        case date():
            return "date"
        case _:
            return "string"


def literal_of_type(value: Any, spark_type: str) -> Any:
    """A literal as the value of a column type that equals it exactly; None if there is none.

    Spark would compare two decimals after rounding both to a common size, and numbers next to a
    double as the nearest doubles.
    """
    if isinstance(value, str) and spark_type == "date":
        timestamp = timestamp_in(value)  # of which Spark would drop the time of day
        return value if timestamp is None or timestamp.time() == time.min else None
    if isinstance(value, bool | str | date) or family_of(spark_type) is not Family.NUMBER:
        return value
    written = Decimal(str(value))
    if spark_type in FLOATING:
        is_rounded = isinstance(value, int) and float(value) != value
        return None if is_rounded else written
    precision, scale = decimal_size(spark_type)
    _, digits, exponent = written.normalize(_WIDE).as_tuple()
    if not isinstance(exponent, int) or -exponent > scale:
        return None
    if spark_type in WHOLE_SIZES:
        return int(written)
    is_held = len(digits) + exponent <= precision - scale
    return written.quantize(Decimal(1).scaleb(-scale), context=_WIDE) if is_held else None


def timestamp_of(value: date | datetime | str | None) -> datetime | None:
    """The timestamp in UTC, without a time zone, that a date, timestamp or string denotes."""
    match value:
        case str():
            return timestamp_in(value)
        case datetime(tzinfo=None) | None:
            return value
        case datetime():
            return value.astimezone(timezone.utc).replace(tzinfo=None)
        case _:
            return datetime(value.year, value.month, value.day)
