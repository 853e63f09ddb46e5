"""Brings the few rows of a result to this process, as plain metric values."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.values import MetricValue

_EPOCH = datetime(1970, 1, 1)

# Moments travel as numbers: PySpark would put them into the zone of this process, and would fail
# on a year that Python has not.
_DAYS, _MICROSECONDS = "unix_date({})", "unix_micros({})"
_LOCAL = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})"
_TOLD: dict[type[DataType], str] = {
    DateType: _DAYS,
    TimestampType: _MICROSECONDS,
    TimestampNTZType: _LOCAL,
    **dict.fromkeys((ArrayType, MapType, StructType, BinaryType), "NULL"),
}


def collect(frame: DataFrame) -> list[tuple[MetricValue, ...]]:
    """The values of a frame, row by row.

    Dates and timestamps become ISO text, in UTC where they have a zone. Nested values and moments
    outside the years from 1 to 9999 are no values. NaN and infinity stay what they are, so that a
    result that got lost differs from none.
    """
    types = [type(field.dataType) for field in frame.schema.fields]
    numbered = frame.toDF(*map(str, range(len(types))))
    told = [_TOLD.get(kind, "{}").format(f"`{nr}`") for nr, kind in enumerate(types)]
    with spark_failures():
        rows = numbered.selectExpr(*told).collect()
    return [tuple(map(_value, row, types)) for row in rows]


def _value(told: int | float | None, kind: type[DataType]) -> MetricValue:
    try:
        if told is not None and kind is DateType:
            return plain((_EPOCH + timedelta(days=told)).date())
        if told is not None and kind in (TimestampType, TimestampNTZType):
            return plain(_EPOCH + timedelta(microseconds=told))
    except OverflowError:
        return None
    return told if isinstance(told, float) else plain(told)


def date_of(value: MetricValue) -> date:
    """The date that a value is."""
    return date.fromisoformat(str(value))
