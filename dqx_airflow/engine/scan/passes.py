"""What is read together, and what need not be read.

With few rows all of them do, up to a few thousand, because a pass is cheaper than starting another
job. Aggregates that are not over the rows themselves have separate passes. With many rows, distinct
values are counted separately, a day that only serves as a baseline is not read for the aggregates
of the target date, and no pass has more aggregates than Spark compiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import date

from dqx_airflow.engine.scan.collect import AggregateRequest, ScanResults
from dqx_airflow.engine.scan.fused_pass import pass_key
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.metrics.metric import Aggregate, Frequencies, TypeOf
from dqx_airflow.plan.passes import MOST_COMPILED, defer_answerable
from dqx_airflow.values import Origin


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
