"""What is read of a dataset at first, and what only if the answers to that leave it open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import date

from dqx_airflow.engine.found import Found, Need
from dqx_airflow.engine.opened import OpenDataset
from dqx_airflow.engine.readings import has_few_rows
from dqx_airflow.metrics.registry import Aggregate, TypeOf
from dqx_airflow.plan.passes import MOST_COMPILED, take_turns
from dqx_airflow.values import Origin


def ask_log(dataset: OpenDataset, needs: Iterable[Need], found: Found) -> None:
    """Takes from the transaction log what it answers exactly."""
    if dataset.log is None or dataset.ref.filter is not None:
        return
    by_date: dict[date | None, list[Aggregate]] = {}
    for need in needs:
        by_date.setdefault(need.date, []).append(need.aggregate)
    for on, wanted in by_date.items():
        found.add(on, dataset.log.answers(wanted, on), Origin.LOG)


def in_turns(
    needs: Sequence[Need], dataset: OpenDataset, type_of: TypeOf, found: Found
) -> tuple[list[Need], list[Need]]:
    """What is read first, with what shortcuts need besides, and what these may answer then.

    Adds what they answer at once, of what is known already. With few rows no other shortcut is
    waited for: a pass takes less than a second one.

    :param needs: with sound shortcuts.
    """
    asks = dict.fromkeys(
        Need(need.date, ask, is_storable=False)
        for need in needs
        for ask in _asked_by(need.aggregate)
    )
    ask_log(dataset, asks, found)
    known = {ask for ask in asks if ask in found}
    take_shortcuts(needs, type_of, found)
    open_ = [need for need in needs if need not in found]
    if len(open_) <= MOST_COMPILED and has_few_rows(dataset, {need.date for need in open_}):
        return open_, []
    by_date: dict[date | None, list[Need]] = {}
    for need in open_:
        by_date.setdefault(need.date, []).append(need)
    first: list[Need] = []
    later: list[Need] = []
    for on, wanted in by_date.items():
        turns = take_turns(_waiting(need, known) for need in wanted)
        for need in wanted:
            (later if need.aggregate in turns.later else first).append(need)
        first += [Need(on, item, is_storable=False) for item in turns.extra]
    return first, later


def take_shortcuts(needs: Iterable[Need], type_of: TypeOf, found: Found) -> None:
    """Adds what the shortcuts of needs answer, which are sound ones."""
    for need in needs:
        shortcut = need.aggregate.shortcut
        if shortcut is None:
            continue
        asks = [item.sql for item in shortcut.asks]
        if all((need.date, sql) in found.values for sql in asks):
            results = tuple(found.values[need.date, sql] for sql in asks)
            answer = shortcut.answer(results, type_of)
            if answer is not None:
                found.add(need.date, {need.aggregate.sql: answer}, found.origin(need.date, asks))


def with_sound_shortcut(item: Aggregate, type_of: TypeOf) -> Aggregate:
    """The aggregate, without its shortcut where the types do not allow that."""
    if item.shortcut is None or item.shortcut.fits(type_of):
        return item
    return replace(item, shortcut=None)


def _waiting(need: Need, known: AbstractSet[Need]) -> Aggregate:
    """The aggregate, without its shortcut where that has had its say."""
    item = need.aggregate
    asks = (Need(need.date, ask, is_storable=False) for ask in _asked_by(item))
    return replace(item, shortcut=None) if item.shortcut and known >= set(asks) else item


def _asked_by(item: Aggregate) -> tuple[Aggregate, ...]:
    return () if item.shortcut is None else item.shortcut.asks
