"""Values as Spark has them: compared, parsed from strings, rounded, and converted to metric values.

Values are held as in Python: int, float, Decimal, str, bool, date, datetime, timedelta, bytes;
tuples for arrays, dicts for structs, tuples of pairs ordered by key for maps, None for NULL.

The step of a sequence is a number, or `("seconds", number)` for a duration, or None for 1 or one
day.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from dqx_airflow.metrics.types import WHOLE_SIZES, Family, decimal_size, decimal_type, family_of
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import Number, exact, exact_text, is_decimal, nearest_float
from dqx_airflow.values.json_form import PART_OF_SECOND

_DAY = r"(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
_DATE = re.compile(rf"{_DAY}([ T].*)?)?)?", re.ASCII | re.DOTALL)
_SECOND = r"(?P<second>\d{1,2})(\.(?P<part>\d*))?(?P<zone>[^\d.].*)?"
_CLOCK = rf"(?P<hour>\d{{1,2}})(:(?P<minute>\d{{1,2}})(:{_SECOND})?)?"
_MOMENT = re.compile(rf"{_DAY}([ T]{_CLOCK})?)?)?", re.ASCII)
_OFFSET = re.compile(r"(UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(:?(?P<minutes>\d{2}))?", re.A)
_LARGEST_OFFSET = timedelta(hours=18)
_BLANKS = "".join(map(chr, range(33)))


def is_day(text: str) -> bool:
    """True for a date in the form used in results: `2024-01-02`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def date_in(text: str) -> date | None:
    """The date at the beginning of a string, or None: `2024-1-2`, `2024-01-02T06:00`.

    Missing parts are 1: `2024` is the first of January.
    """
    match = _DATE.fullmatch(text.strip(_BLANKS))
    return _date(match) if match else None


def timestamp_in(text: str) -> datetime | None:
    """The timestamp in a string, in UTC and without a time zone, or None.

    Without a time zone in the string it is in UTC, and without a time it is midnight. A time zone
    can only follow seconds.
    """
    match = _MOMENT.fullmatch(text.strip(_BLANKS))
    day = _date(match) if match else None
    if match is None or day is None:
        return None
    try:
        zone = _zone((match["zone"] or "").strip())
        part = int((match["part"] or "")[:6].ljust(6, "0"))
        hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
        timestamp = datetime.combine(day, time(hour, minute, second, part, zone))
        return timestamp.astimezone(timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None


_DAY_OF_METRIC = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def moment_in_metric(text: str) -> tuple[datetime, str] | None:
    """The seconds and their fraction, which Python would truncate, in a metric value or in what it
    is compared with; None for other strings.

    So `2024-11-29`, `2024-11-29 00:00` and `2024-11-29T01:00:00+01:00` are equal: a timestamp
    without a time zone is in UTC.
    """
    if not _DAY_OF_METRIC.match(text):
        return None  # Python also parses `20241129` and `2024-W48-5`, which may be any codes
    part = PART_OF_SECOND.search(text)
    try:
        second = datetime.fromisoformat(PART_OF_SECOND.sub("", text).removesuffix("Z"))
    except ValueError:
        return None
    zoned = second if second.tzinfo else second.replace(tzinfo=timezone.utc)
    return zoned, part[1].rstrip("0") if part else ""


def has_nanoseconds(text: str) -> bool:
    """True if the timestamp in a string has more fractional digits than a Spark timestamp."""
    match = _MOMENT.fullmatch(text.strip(_BLANKS))
    return match is not None and bool((match["part"] or "")[6:].strip("0"))


def _date(match: re.Match[str]) -> date | None:
    try:
        return date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
    except ValueError:
        return None


def _zone(text: str) -> tzinfo:
    """The time zone at the end of a time.

    :raises ValueError: it is not valid.
    """
    if text in ("", "Z", "UTC", "GMT", "UT"):
        return timezone.utc
    offset = _OFFSET.fullmatch(text)
    if offset is None:
        return _region(text)
    size = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
    if size > _LARGEST_OFFSET:
        raise ValueError(f"unknown time zone: {text}")
    return timezone(-size if offset["sign"] == "-" else size)


def _region(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as error:
        raise ValueError(f"unknown time zone: {name}") from error


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

_LAST_FRACTION = 2**53
_LAST_BIGINT = 2**63
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


def spark_number(value: Number | Decimal) -> int | Decimal | float:
    """The number as Spark can hold it: an integer, a decimal, or else the nearest float."""
    if isinstance(value, float | Decimal):
        return value
    point = ".0" if isinstance(value, Fraction) and value.denominator == 1 else ""
    decimal = Decimal(exact_text(value) + point) if is_decimal(value) else None
    if decimal is None or decimal_type(decimal) is None:
        return nearest_float(value)
    return value if isinstance(value, int) else decimal


def is_finite(value: Any) -> bool:
    """False for NaN and the infinities."""
    return not isinstance(value, float) or math.isfinite(value)


def metric_value(value: Any) -> MetricValue:
    """Converts a value of a dataset to a metric value; None for NaN, infinite and nested values.

    Decimals and integers are exact, whatever their size. Timestamps are in UTC, or have no time
    zone.
    """
    match value:
        case None | str():
            return value
        case bool():
            return int(value)
        case int():
            return value
        case Decimal() | Fraction():
            return exact(value)
        case float():
            return value if is_finite(value) else None
        case datetime():
            return value.replace(tzinfo=None).isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return None


EXACT = Context(prec=200)
"""Decimal arithmetic without loss: what Spark would lose is rounded off afterwards."""


class SumOverflow(ArithmeticError):  # noqa: N818 - named like OverflowError's kin
    """A sum of decimals has more digits than a decimal can hold."""


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """The values of a column in row order, and its type as Spark writes it."""

    type: str
    values: tuple[Any, ...]

    @property
    def present(self) -> list[Any]:
        """The values that are not NULL."""
        return [value for value in self.values if value is not None]


def has_room(value: Decimal, precision: int, scale: int) -> bool:
    """True if the integer digits fit into a decimal of that size."""
    return value.copy_abs() < Decimal(10) ** (precision - scale)


def rounded_half_up(value: Decimal, digits: int) -> Decimal:
    """The number rounded to this many decimal places, halves away from zero, as Spark rounds."""
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, EXACT)


_DAY_S = 86_400
MICROSECONDS = 10**6
"""In a second."""
MOST_MICROSECONDS = 2**63 - 1
"""The longest duration that Spark holds."""

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
    return seconds / _DAY_S if kind == "date" else seconds * MICROSECONDS


def objection_to_step(given: Any, column: str, kind: str) -> str | None:
    """The reason why a step is invalid for a column of a type; None if it is valid."""
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
