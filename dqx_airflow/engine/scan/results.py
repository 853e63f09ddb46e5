"""The requests of a scan to the rows of a dataset, and the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.metrics.merging import Merge
from dqx_airflow.metrics.metric import Aggregate
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
