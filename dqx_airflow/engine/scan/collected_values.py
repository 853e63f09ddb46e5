"""The values of a frame, collected as values of metrics."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.engine.session.spark_versions import interval_types
from dqx_airflow.metrics.spark_values import metric_value
from dqx_airflow.values import MetricValue

_EPOCH = datetime(1970, 1, 1)
_CYCLE_YEARS = 400
_CYCLE_DAYS = 146_097
"""The period after which the Gregorian calendar repeats itself."""

# Timestamps are collected as numbers: PySpark would convert them to the zone of this process, and
# fails on years that Python does not support.
_DAYS = "unix_date({})"
_MICROSECONDS = "unix_micros({})"
_LOCAL = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})"
NESTED = (T.ArrayType, T.MapType, T.StructType, T.BinaryType)
"""Types that have no value as a metric."""
_INTERVALS = frozenset(interval_types())
_COLLECTED_AS: dict[type[T.DataType], str] = {
    T.DateType: _DAYS,
    T.TimestampType: _MICROSECONDS,
    T.TimestampNTZType: _LOCAL,
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
    if not _INTERVALS.isdisjoint(types):
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


_PLAIN = (T.LongType, T.IntegerType, T.StringType, T.DoubleType)
"""Types whose values are plain as they are: NaN and infinity, too, which stay what they are."""


def _value(
    collected: int | float | None, kind: type[T.DataType], *, is_key: bool = False
) -> MetricValue:
    if collected is None or kind not in (T.DateType, T.TimestampType, T.TimestampNTZType):
        return collected if isinstance(collected, float) else metric_value(collected)
    try:
        if kind is T.DateType:
            return metric_value((_EPOCH + timedelta(days=collected)).date())
        return metric_value(_EPOCH + timedelta(microseconds=collected))
    except OverflowError:
        if is_key and kind is T.DateType:
            return _beyond_python(int(collected))
        message = "the value is a date or timestamp outside the years 1 to 9999"
        raise PySparkException(f"[DATETIME_OVERFLOW] {message}") from None


def _beyond_python(days: int) -> str:
    """A date outside the years of Python, in the notation of Spark: `+10000-01-01`.

    :param days: the days since 1970.
    """
    cycles, rest = divmod(days, _CYCLE_DAYS)
    alike = _EPOCH + timedelta(days=rest)
    return f"{alike.year + cycles * _CYCLE_YEARS:+05}-{alike:%m-%d}"


def date_of(value: MetricValue) -> date:
    """A value as a date."""
    return date.fromisoformat(str(value))
