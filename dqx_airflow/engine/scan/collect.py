"""Collects the few rows of a result into this process, as plain metric values."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from dqx_airflow.engine.session.spark_errors import spark_failures
from dqx_airflow.metrics.plain_values import plain
from dqx_airflow.values import MetricValue

_EPOCH = datetime(1970, 1, 1)

# Timestamps are collected as numbers: PySpark would convert them to the zone of this process, and
# fails on years that Python does not support.
_DAYS, _MICROSECONDS = "unix_date({})", "unix_micros({})"
_LOCAL = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})"
_COLLECTED_AS: dict[type[DataType], str] = {
    DateType: _DAYS,
    TimestampType: _MICROSECONDS,
    TimestampNTZType: _LOCAL,
    **dict.fromkeys((ArrayType, MapType, StructType, BinaryType), "NULL"),
}


def collect(frame: DataFrame) -> list[tuple[MetricValue, ...]]:
    """The values of a frame, row by row.

    Dates and timestamps become ISO strings, in UTC if they have a zone. Nested values, and
    timestamps outside the years 1 to 9999, become None. NaN and infinity are kept, so that an
    overflow differs from a missing result.
    """
    types = [type(field.dataType) for field in frame.schema.fields]
    numbered = frame.toDF(*map(str, range(len(types))))
    expressions = [_COLLECTED_AS.get(kind, "{}").format(f"`{nr}`") for nr, kind in enumerate(types)]
    with spark_failures():
        rows = numbered.selectExpr(*expressions).collect()
    columns = [
        values if kind in _PLAIN else [_value(one, kind) for one in values]
        for kind, values in zip(types, zip(*rows, strict=True), strict=False)
    ]
    return list(zip(*columns, strict=True))


_PLAIN = (LongType, IntegerType, StringType, DoubleType)
"""Types whose values are plain as they are: NaN and infinity, too, which stay what they are."""


def _value(collected: int | float | None, kind: type[DataType]) -> MetricValue:
    try:
        if collected is not None and kind is DateType:
            return plain((_EPOCH + timedelta(days=collected)).date())
        if collected is not None and kind in (TimestampType, TimestampNTZType):
            return plain(_EPOCH + timedelta(microseconds=collected))
    except OverflowError:
        return None
    return collected if isinstance(collected, float) else plain(collected)


def date_of(value: MetricValue) -> date:
    """A value as a date."""
    return date.fromisoformat(str(value))
