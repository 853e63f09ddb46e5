"""Collects the few rows of a result into this process, as plain metric values."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CalendarIntervalType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.values import MetricValue

_EPOCH = datetime(1970, 1, 1)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The period after which the Gregorian calendar repeats itself."""

# Timestamps are collected as numbers: PySpark would convert them to the zone of this process, and
# fails on years that Python does not support.
_DAYS, _MICROSECONDS = "unix_date({})", "unix_micros({})"
_LOCAL = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})"
NESTED = (ArrayType, MapType, StructType, BinaryType)
"""Types that have no value as a metric."""
_INTERVALS = (DayTimeIntervalType, YearMonthIntervalType, CalendarIntervalType)
_COLLECTED_AS: dict[type[DataType], str] = {
    DateType: _DAYS,
    TimestampType: _MICROSECONDS,
    TimestampNTZType: _LOCAL,
    **dict.fromkeys(NESTED, "NULL"),
}


def collect(frame: DataFrame, *, keys: int = 0) -> list[tuple[MetricValue, ...]]:
    """The values of a frame, row by row.

    Dates and timestamps become ISO strings, in UTC if they have a zone. Nested values become None.
    NaN and infinity are kept, so that an overflow differs from a missing result.

    :param keys: how many of the columns, the first ones, only identify the rows: their dates may
        have any year.
    :raises PySparkException: a date or timestamp is outside the years 1 to 9999, or a value is
        an interval.
    """
    types = [type(field.dataType) for field in frame.schema.fields]
    if any(kind in _INTERVALS for kind in types):
        hint = "timestampdiff(SECOND, a, b) is its length in seconds"
        raise PySparkException(f"[NOT_A_NUMBER] it returns an interval: {hint}")
    numbered = frame.toDF(*map(str, range(len(types))))
    expressions = [_COLLECTED_AS.get(kind, "{}").format(f"`{nr}`") for nr, kind in enumerate(types)]
    with spark_failures():
        rows = numbered.selectExpr(*expressions).collect()
    columns = [
        values if kind in _PLAIN else [_value(value, kind, is_key=nr < keys) for value in values]
        for nr, (kind, values) in enumerate(zip(types, zip(*rows, strict=True), strict=False))
    ]
    return list(zip(*columns, strict=True))


_PLAIN = (LongType, IntegerType, StringType, DoubleType)
"""Types whose values are plain as they are: NaN and infinity, too, which stay what they are."""


def _value(
    collected: int | float | None, kind: type[DataType], *, is_key: bool = False
) -> MetricValue:
    if collected is None or kind not in (DateType, TimestampType, TimestampNTZType):
        return collected if isinstance(collected, float) else plain(collected)
    try:
        if kind is DateType:
            return plain((_EPOCH + timedelta(days=collected)).date())
        return plain(_EPOCH + timedelta(microseconds=collected))
    except OverflowError:
        if is_key and kind is DateType:
            return _beyond_python(int(collected))
        message = "the value is a date or timestamp outside the years 1 to 9999"
        raise PySparkException(f"[DATETIME_OVERFLOW] {message}") from None


def _beyond_python(days: int) -> str:
    """A date that Python does not have, in the notation of Spark: `+10000-01-01`.

    :param days: the days since 1970.
    """
    cycles, rest = divmod(days, _CYCLE_DAYS)
    alike = _EPOCH + timedelta(days=rest)
    return f"{alike.year + cycles * _CYCLE_YEARS:+05}-{alike:%m-%d}"


def date_of(value: MetricValue) -> date:
    """A value as a date."""
    return date.fromisoformat(str(value))
