"""The results of a scan, and how they are collected from Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from pyspark.errors import PySparkException
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
from dqx_airflow.engine.session.spark_versions import interval_types
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.metrics.metric import Aggregate, Merge
from dqx_airflow.metrics.spark_values import metric_value
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.values import DatasetRef, MetricValue, Origin


@dataclass(frozen=True, slots=True)
class AggregateRequest:
    """An aggregate over the rows of a date. `looks_into` are the datasets of its lookups.

    Results that may change over the same rows, and those that reveal masked columns, are not
    `is_storable`.
    """

    date: date | None
    aggregate: Aggregate
    looks_into: tuple[str, ...] = ()
    is_storable: bool = True

    @classmethod
    def of(cls, request: MetricRequest, aggregate: Aggregate, ref: DatasetRef) -> AggregateRequest:
        """An aggregate that a metric of a dataset needs."""
        looks_into = tuple(dict.fromkeys(lookup.reference for lookup in lookups_of(request)))
        # SQL written by the user may call rand() or current_date().
        is_storable = request.metric != "sql" and not reveals(request, {ref.name: ref.masked})
        return cls(request.date, aggregate, looks_into, is_storable)


@dataclass(frozen=True, slots=True)
class PartialState:
    """The result of an aggregate over all files of a date except those added since.

    :param spark_type: of the aggregated values.
    """

    result: MetricValue
    merge: Merge
    spark_type: str
    files: tuple[DataFile, ...]
    added: tuple[DataFile, ...]

    def merged(self, other: MetricValue) -> tuple[MetricValue] | None:
        """The result over all files, given that of the added ones; None if not exact."""
        merged_result = self.merge.merged(self.result, other)
        is_exact = all(
            self.merge.is_exact(self.spark_type, result) for result in (other, merged_result)
        )
        return (merged_result,) if is_exact else None


@dataclass(slots=True)
class ScanResults:
    """The results of aggregates: values by date and SQL, dates without rows, and reasons for
    failures. `partial_states` are results over a part of the files."""

    values: dict[tuple[date | None, str], MetricValue] = field(default_factory=dict)
    absent: dict[date | None, Origin] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    partial_states: dict[AggregateRequest, PartialState] = field(default_factory=dict)
    _origins: dict[tuple[date | None, str], Origin] = field(default_factory=dict)

    def __contains__(self, request: AggregateRequest) -> bool:
        return request.date in self.absent or (request.date, request.aggregate.sql) in self.values

    def add(self, on: date | None, results: Mapping[str, MetricValue], origin: Origin) -> None:
        for sql, value in results.items():
            self.values[on, sql] = value
            self._origins[on, sql] = origin
        if on is not None and results.get("count(1)") == 0:
            self.absent[on] = origin

    def add_pass(
        self,
        dates: Iterable[date | None],
        texts: Sequence[str],
        by_date: Mapping[date | None, Mapping[str, MetricValue]],
        broken: Mapping[str, str],
    ) -> None:
        """Adds the results of a pass over some dates that do not all need all of it. Results known
        for a date stay."""
        self.broken.update(broken)
        for on in dates:
            if on in by_date:
                results = by_date[on].items()
                new = {sql: value for sql, value in results if (on, sql) not in self.values}
                self.add(on, new, Origin.SCAN)
            elif len(broken) < len(texts):
                self.absent[on] = Origin.SCAN

    def complete(self, requests: Iterable[AggregateRequest], added: ScanResults) -> None:
        """Merges partial results with those of the added files. What cannot be merged exactly
        remains open."""
        for request in requests:
            partial, sql = self.partial_states[request], request.aggregate.sql
            if sql in added.broken:
                self.broken[sql] = added.broken[sql]
                continue
            is_absent = request.date in added.absent
            merged = (
                (partial.result,) if is_absent else partial.merged(added.values[request.date, sql])
            )
            if merged is not None:
                self.add(request.date, {sql: merged[0]}, Origin.MERGED)

    def origin(self, on: date | None, texts: Iterable[str]) -> Origin:
        """The origin of a value computed from several aggregates: the most expensive of theirs."""
        if on in self.absent:
            return self.absent[on]
        ways = {self._origins[on, sql] for sql in texts}
        return next((origin for origin in Origin if origin in ways), Origin.LOG)


_EPOCH = datetime(1970, 1, 1)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The period after which the Gregorian calendar repeats itself."""

# Timestamps are collected as numbers: PySpark would convert them to the zone of this process, and
# fails on years that Python does not support.
_DAYS, _MICROSECONDS = "unix_date({})", "unix_micros({})"
_LOCAL = "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {})"
NESTED = (ArrayType, MapType, StructType, BinaryType)
"""Types that have no value as a metric."""
_INTERVALS = interval_types()
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
        return collected if isinstance(collected, float) else metric_value(collected)
    try:
        if kind is DateType:
            return metric_value((_EPOCH + timedelta(days=collected)).date())
        return metric_value(_EPOCH + timedelta(microseconds=collected))
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
