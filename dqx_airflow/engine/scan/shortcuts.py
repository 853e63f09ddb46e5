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


def ask_log(dataset: OpenDataset, needs: Iterable[AggregateRequest], answers: ScanResults) -> None:
    """Takes from the transaction log what it answers exactly."""
    if dataset.log is None or dataset.ref.filter is not None:
        return
    by_date: dict[date | None, list[Aggregate]] = {}
    for need in needs:
        by_date.setdefault(need.date, []).append(need.aggregate)
    for on, wanted in by_date.items():
        answers.add(on, dataset.log.answers(wanted, on), Origin.LOG)


def scan_in_two_phases(
    needs: Sequence[AggregateRequest], dataset: OpenDataset, type_of: TypeOf, answers: ScanResults
) -> tuple[list[AggregateRequest], list[AggregateRequest]]:
    """The aggregates to read first, with those that shortcuts need, and those the shortcuts may
    answer.

    Adds at once what shortcuts answer from stored results. With few rows no other shortcut is used:
    one pass is cheaper than two.

    :param needs: with valid shortcuts.
    """
    asks = dict.fromkeys(
        AggregateRequest(need.date, ask, is_storable=False)
        for need in needs
        for ask in _asked_by(need.aggregate)
    )
    ask_log(dataset, asks, answers)
    known = {ask for ask in asks if ask in answers}
    take_shortcuts(needs, type_of, answers)
    open_ = [need for need in needs if need not in answers]
    if len(open_) <= MOST_COMPILED and has_few_rows(dataset, {need.date for need in open_}):
        return open_, []
    by_date: dict[date | None, list[AggregateRequest]] = {}
    for need in open_:
        by_date.setdefault(need.date, []).append(need)
    first: list[AggregateRequest] = []
    later: list[AggregateRequest] = []
    for on, wanted in by_date.items():
        deferral = defer_answerable(_waiting(need, known) for need in wanted)
        for need in wanted:
            (later if need.aggregate in deferral.later else first).append(need)
        first += [AggregateRequest(on, item, is_storable=False) for item in deferral.extra]
    return first, later


def take_shortcuts(
    needs: Iterable[AggregateRequest], type_of: TypeOf, answers: ScanResults
) -> None:
    """Adds the results of valid shortcuts."""
    for need in needs:
        shortcut = need.aggregate.shortcut
        if shortcut is None:
            continue
        asks = [item.sql for item in shortcut.asks]
        if all((need.date, sql) in answers.values for sql in asks):
            results = tuple(answers.values[need.date, sql] for sql in asks)
            answer = shortcut.answer(results, type_of)
            if answer is not None:
                answers.add(
                    need.date, {need.aggregate.sql: answer}, answers.origin(need.date, asks)
                )


def with_sound_shortcut(item: Aggregate, type_of: TypeOf) -> Aggregate:
    """The aggregate, without its shortcut if the types do not allow it."""
    if item.shortcut is None or item.shortcut.fits(type_of):
        return item
    return replace(item, shortcut=None)


def _waiting(need: AggregateRequest, known: AbstractSet[AggregateRequest]) -> Aggregate:
    """The aggregate, without its shortcut once that has been tried."""
    item = need.aggregate
    asks = (AggregateRequest(need.date, ask, is_storable=False) for ask in _asked_by(item))
    return replace(item, shortcut=None) if item.shortcut and known >= set(asks) else item


def _asked_by(item: Aggregate) -> tuple[Aggregate, ...]:
    return () if item.shortcut is None else item.shortcut.asks
