"""The aggregates of a scan and their results: what is read together, and what need not be read.

With few rows all of them do, up to a few thousand, because a pass is cheaper than starting another
job. Aggregates that are not over the rows themselves have separate passes. With many rows, distinct
values are counted separately, a day that only serves as a baseline is not read for the aggregates
of the target date, and no pass has more aggregates than Spark compiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date

from dqx_airflow.engine.scan.fused_pass import pass_key
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.engine.sources.listing import DataFile
from dqx_airflow.metrics.metric import Aggregate, Frequencies, Merge, TypeOf
from dqx_airflow.plan.masks import reveals
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.passes import MOST_COMPILED, defer_answerable
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


def ask_log(
    dataset: OpenDataset, requests: Iterable[AggregateRequest], answers: ScanResults
) -> None:
    """Takes from the transaction log what it answers exactly."""
    if dataset.log is None or dataset.ref.filter is not None:
        return
    by_date: dict[date | None, list[Aggregate]] = {}
    for request in requests:
        by_date.setdefault(request.date, []).append(request.aggregate)
    for on, wanted in by_date.items():
        answers.add(on, dataset.log.answers(wanted, on), Origin.LOG)


def scan_in_two_phases(
    requests: Sequence[AggregateRequest],
    dataset: OpenDataset,
    type_of: TypeOf,
    answers: ScanResults,
) -> tuple[list[AggregateRequest], list[AggregateRequest]]:
    """The aggregates to read first, with those that shortcuts need, and those the shortcuts may
    answer.

    Adds at once what shortcuts answer from stored results. With few rows no other shortcut is used:
    one pass is cheaper than two.

    :param requests: with valid shortcuts.
    """
    asks = dict.fromkeys(
        AggregateRequest(request.date, ask, is_storable=False)
        for request in requests
        for ask in _asked_by(request.aggregate)
    )
    ask_log(dataset, asks, answers)
    known = {ask for ask in asks if ask in answers}
    take_shortcuts(requests, type_of, answers)
    open_ = [request for request in requests if request not in answers]
    if len(open_) <= MOST_COMPILED and has_few_rows(dataset, {request.date for request in open_}):
        return open_, []
    by_date: dict[date | None, list[AggregateRequest]] = {}
    for request in open_:
        by_date.setdefault(request.date, []).append(request)
    first: list[AggregateRequest] = []
    later: list[AggregateRequest] = []
    for on, wanted in by_date.items():
        deferral = defer_answerable(_waiting(request, known) for request in wanted)
        for request in wanted:
            (later if request.aggregate in deferral.later else first).append(request)
        first += [
            AggregateRequest(on, aggregate, is_storable=False) for aggregate in deferral.extra
        ]
    return first, later


def take_shortcuts(
    requests: Iterable[AggregateRequest], type_of: TypeOf, answers: ScanResults
) -> None:
    """Adds the results of valid shortcuts."""
    for request in requests:
        shortcut = request.aggregate.shortcut
        if shortcut is None:
            continue
        asks = [aggregate.sql for aggregate in shortcut.asks]
        if all((request.date, sql) in answers.values for sql in asks):
            results = tuple(answers.values[request.date, sql] for sql in asks)
            answer = shortcut.answer(results, type_of)
            if answer is not None:
                answers.add(
                    request.date,
                    {request.aggregate.sql: answer},
                    answers.origin(request.date, asks),
                )


def with_sound_shortcut(item: Aggregate, type_of: TypeOf) -> Aggregate:
    """The aggregate, without its shortcut if the types do not allow it."""
    if item.shortcut is None or item.shortcut.fits(type_of):
        return item
    return replace(item, shortcut=None)


def _waiting(request: AggregateRequest, known: AbstractSet[AggregateRequest]) -> Aggregate:
    """The aggregate, without its shortcut once that has been tried."""
    item = request.aggregate
    asks = (AggregateRequest(request.date, ask, is_storable=False) for ask in _asked_by(item))
    return replace(item, shortcut=None) if item.shortcut and known >= set(asks) else item


def _asked_by(item: Aggregate) -> tuple[Aggregate, ...]:
    return () if item.shortcut is None else item.shortcut.asks


MOST_ROWS_FUSED = 250_000
"""Up to this many rows, one pass over everything is cheaper than starting another job."""

MOST_FUSED = 2_500
"""The maximum number of aggregates in a pass over few rows: Spark's planning time grows faster than
their number, and its stack is limited."""

MOST_DISTINCT = 50
"""The maximum number of columns or keys whose distinct values one pass counts: Spark copies the
rows for each of them."""

MOST_BYTES_FUSED = 4_000_000
"""Files up to this size, in bytes, have few rows whatever their format."""

_LEAST_WASTE = 0.5
"""Days are read separately if one pass would waste at least this share of its work."""


def split_into_passes(
    dataset: OpenDataset, requests: Sequence[AggregateRequest], most_compiled: int = MOST_COMPILED
) -> Iterator[list[AggregateRequest]]:
    """The aggregates of each pass, bounded in number.

    :param most_compiled: the bound for many rows.
    """
    by_pass: dict[object, list[AggregateRequest]] = {}
    for request in requests:
        by_pass.setdefault(pass_key(request.aggregate), []).append(request)
    requests = by_pass.pop(None, [])
    yield from by_pass.values()
    keys = [
        request for request in requests if request.aggregate.distinct and request.aggregate.is_key
    ]
    values = [
        request
        for request in requests
        if request.aggregate.distinct and not request.aggregate.is_key
    ]
    rest = [request for request in requests if not request.aggregate.distinct]
    distinct = {request.aggregate for request in (*keys, *values)}
    is_one = len(distinct) <= MOST_DISTINCT
    if rest and is_one and has_few_rows(dataset, {request.date for request in requests}):
        yield from _by_width(requests, MOST_FUSED)
        return
    for part in _by_day(rest):
        few = has_few_rows(dataset, {request.date for request in part})
        yield from _by_width(part, MOST_FUSED if few else most_compiled)
    yield from _by_width(keys, MOST_DISTINCT)
    yield from _by_width(values, MOST_DISTINCT)


def describe_pass(aggregates: Sequence[Aggregate]) -> str:
    """A short description of a pass."""
    if all(isinstance(aggregate.over, Frequencies) for aggregate in aggregates):
        return "values and the numbers of their rows"
    if all(aggregate.over for aggregate in aggregates):
        return "rows in order"
    if all(aggregate.distinct for aggregate in aggregates):
        return "keys" if all(aggregate.is_key for aggregate in aggregates) else "distinct values"
    return f"{len(aggregates)} aggregates" if len(aggregates) > 1 else "one aggregate"


def has_few_rows(dataset: OpenDataset, dates: Iterable[date | None]) -> bool:
    """True if the transaction log says so, or the files are small."""
    if dataset.log is None:
        files = dataset.files
        return files is not None and sum(file.size for file in files) <= MOST_BYTES_FUSED
    rows = [dataset.log.rows_of(on) for on in dates]
    return None not in rows and sum(filter(None, rows)) <= MOST_ROWS_FUSED


def _by_day(requests: list[AggregateRequest]) -> Iterator[list[AggregateRequest]]:
    """All aggregates at once, or those of the day with the most of them apart from the others."""
    by_date: dict[date | None, list[AggregateRequest]] = {}
    for request in requests:
        by_date.setdefault(request.date, []).append(request)
    computed = len(by_date) * len({request.aggregate for request in requests})
    if computed - len(requests) <= _LEAST_WASTE * len(requests):
        if requests:
            yield requests
        return
    busiest = max(by_date, key=lambda on: len(by_date[on]))
    yield by_date[busiest]
    yield [request for request in requests if request.date != busiest]


def _by_width(requests: Sequence[AggregateRequest], most: int) -> Iterator[list[AggregateRequest]]:
    """The aggregates in as few parts of equal size as can be compiled."""
    aggregates = list(dict.fromkeys(request.aggregate for request in requests))
    parts = math.ceil(len(aggregates) / most)
    for number in range(parts):
        chosen = frozenset(aggregates[number::parts])
        yield [request for request in requests if request.aggregate in chosen]
