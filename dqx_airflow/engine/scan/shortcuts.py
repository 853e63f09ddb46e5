"""What is read of a dataset first, and what only if the first results leave it open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import date

from dqx_airflow.engine.scan.passes import has_few_rows
from dqx_airflow.engine.scan.results import AggregateRequest, ScanResults
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.metrics.metric import Aggregate, TypeOf
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
