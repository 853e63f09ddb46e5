"""The alarms of a gate and of its shadow over past days, assertion by assertion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol, TypeAlias

from dqx_airflow.values import Status, day_of_instance

_Key: TypeAlias = tuple[str, str]


class ShadowedDay(Protocol):
    """A day with the verdicts of both, by check and name, and its labels."""

    @property
    def date(self) -> date: ...
    @property
    def map_index(self) -> int: ...
    @property
    def own(self) -> Mapping[_Key, Status]: ...
    @property
    def other(self) -> Mapping[_Key, Status]: ...
    @property
    def labels(self) -> Mapping[_Key, bool]: ...


@dataclass(frozen=True, slots=True)
class Alarms:
    """The alarms of one suite: their number, the false ones, and the missed issues, according to
    labels. `days` are those on which it passed or failed."""

    days: int
    alarms: int
    false: int
    missed: int


@dataclass(frozen=True, slots=True)
class ShadowedAssertion:
    """An assertion in the gate and in its shadow. On the days `only_own` and `only_shadow`, such as
    `2024-03-20`, or `2024-03-20[3]` for an instance of a mapped gate, only one of the two alarms:
    the other one passed, was skipped, or lacks the assertion."""

    check: str
    name: str
    own: Alarms
    shadow: Alarms
    only_own: tuple[str, ...]
    only_shadow: tuple[str, ...]


def compare_alarms(days: Sequence[ShadowedDay]) -> tuple[ShadowedAssertion, ...]:
    """A comparison for each assertion of the gate or the shadow, in the order of the gate."""
    keys = dict.fromkeys(
        key for side in ("own", "other") for day in days for key in getattr(day, side)
    )
    return tuple(_compared(key, days) for key in keys)


def _compared(key: _Key, days: Sequence[ShadowedDay]) -> ShadowedAssertion:
    def fails(statuses: Mapping[_Key, Status]) -> bool:
        return statuses.get(key) is Status.FAILED

    def shown(day: ShadowedDay) -> str:
        return day_of_instance(day.date, day.map_index)

    return ShadowedAssertion(
        *key,
        _alarms(key, [(day.own, day.labels) for day in days]),
        _alarms(key, [(day.other, day.labels) for day in days]),
        tuple(shown(day) for day in days if fails(day.own) and not fails(day.other)),
        tuple(shown(day) for day in days if fails(day.other) and not fails(day.own)),
    )


def _alarms(key: _Key, days: Sequence[tuple[Mapping[_Key, Status], Mapping[_Key, bool]]]) -> Alarms:
    judged = [
        (statuses[key] is Status.FAILED, labels.get(key))
        for statuses, labels in days
        if statuses.get(key) in (Status.PASSED, Status.FAILED)
    ]
    return Alarms(
        len(judged),
        sum(failed for failed, _ in judged),
        sum(failed and label is False for failed, label in judged),
        sum(not failed and label is True for failed, label in judged),
    )
