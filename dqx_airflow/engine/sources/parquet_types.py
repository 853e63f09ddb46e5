"""Parquet files with types that Spark cannot read, read as the numbers that they store.

Timestamps in nanoseconds, which pandas writes, are converted to microseconds, and times of day to
strings: `06:30:00.000000`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.types import DataType, IntegerType, LongType, StructField, StructType

from dqx_airflow.engine.session.spark_versions import type_named
from dqx_airflow.engine.sources.listing import DataFile, for_spark, partition_names, read_each
from dqx_airflow.metrics.sql import quote_name

UNREADABLE = "PARQUET_TYPE_ILLEGAL"
"""Spark's error condition."""

_OF_A_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_UNSIGNED = {
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
}


def read_stored(
    fresh_reader: Callable[[], DataFrameReader], path: str, files: Sequence[DataFile]
) -> DataFrame | None:
    """A frame over Parquet files whose schema Spark rejects; None if they cannot be read.

    :param fresh_reader: returns a reader with the options of the dataset.
    """
    if not files or partition_names(files):
        return None
    try:
        schema = pa.unify_schemas(read_each(path, files, _schema))
        fields = [StructField(field.name, _stored(field.type)) for field in schema]
    except (OSError, ValueError, pa.ArrowException, PySparkException):
        return None
    frame = fresh_reader().schema(StructType(fields)).load(for_spark(path))
    return frame.selectExpr(*(f"{_value(field)} AS {quote_name(field.name)}" for field in schema))


def _schema(system: FileSystem, file: DataFile) -> pa.Schema:
    return pq.read_schema(file.path, filesystem=system)


def _stored(kind: pa.DataType) -> DataType:
    """The Spark type as which values are read.

    :raises PySparkException: there is none.
    :raises ValueError: it is nested, and contains one of those types.
    """
    from pyspark.sql.pandas.types import from_arrow_type

    if pa.types.is_time32(kind):
        return IntegerType()
    if pa.types.is_time64(kind) or _is_nanos(kind):
        return LongType()
    if kind in _UNSIGNED:
        return type_named(_UNSIGNED[kind])
    if any(map(_is_unreadable, _parts(kind))):
        raise ValueError(f"{kind} cannot be read in parts")
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def _parts(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types nested in a type, at any depth."""
    for number in range(kind.num_fields):
        part = kind.field(number).type
        yield part
        yield from _parts(part)


def _is_unreadable(kind: pa.DataType) -> bool:
    return pa.types.is_time(kind) or _is_nanos(kind) or kind in _UNSIGNED


def _value(field: pa.Field) -> str:
    """The value of a column, from the stored one, as Spark SQL."""
    column, kind = quote_name(field.name), field.type
    if pa.types.is_time(kind):
        timestamp = _timestamp(column, kind.unit)
        return f"date_format({timestamp}, 'HH:mm:ss.SSSSSS')"
    if not _is_nanos(kind):
        return column
    return (
        _timestamp(column, "ns")
        if kind.tz is None
        else f"timestamp_micros({_micros(column, 'ns')})"
    )


def _is_nanos(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _micros(column: str, unit: str) -> str:
    """Whole microseconds, rounded down."""
    units = _OF_A_SECOND[unit]
    if units <= _OF_A_SECOND["us"]:
        return f"(CAST({column} AS BIGINT) * {_OF_A_SECOND['us'] // units})"
    part = units // _OF_A_SECOND["us"]
    return f"(({column} - pmod({column}, {part})) div {part})"


def _timestamp(column: str, unit: str) -> str:
    """A timestamp without a zone."""
    epoch = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
    return f"timestampadd(MICROSECOND, {_micros(column, unit)}, {epoch})"
