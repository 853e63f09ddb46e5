"""The alarms of a gate and of its shadow by assertion, with the days on which only one of the two
alarms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dqx_airflow.results.past_days import AssertionKey, ShadowDay
from dqx_airflow.values import Status, day_of_instance


@dataclass(frozen=True, slots=True)
class Alarms:
    """The number of alarms of one suite, of the false ones, and of the missed issues, according to
    labels. `days` is the number of days on which the assertion passed or failed."""

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


def compare_alarms(days: Sequence[ShadowDay]) -> tuple[ShadowedAssertion, ...]:
    """A comparison for each assertion of the gate or the shadow, in the order of the gate."""
    own = [key for day in days for key in day.own]
    of_shadow = [key for day in days for key in day.other]
    return tuple(_shadowed(key, days) for key in dict.fromkeys([*own, *of_shadow]))


def _shadowed(key: AssertionKey, days: Sequence[ShadowDay]) -> ShadowedAssertion:
    check, name = key
    only_own, only_shadow = [], []
    for day in days:
        own_fails = day.own.get(key) is Status.FAILED
        shadow_fails = day.other.get(key) is Status.FAILED
        shown = day_of_instance(day.date, day.map_index)
        if own_fails and not shadow_fails:
            only_own.append(shown)
        if shadow_fails and not own_fails:
            only_shadow.append(shown)
    return ShadowedAssertion(
        check,
        name,
        own=_alarms(key, [(day.own, day.labels) for day in days]),
        shadow=_alarms(key, [(day.other, day.labels) for day in days]),
        only_own=tuple(only_own),
        only_shadow=tuple(only_shadow),
    )


def _alarms(
    key: AssertionKey,
    days: Sequence[tuple[Mapping[AssertionKey, Status], Mapping[AssertionKey, bool]]],
) -> Alarms:
    judged = [
        (statuses[key] is Status.FAILED, labels.get(key))
        for statuses, labels in days
        if statuses.get(key) in (Status.PASSED, Status.FAILED)
    ]
    return Alarms(
        days=len(judged),
        alarms=sum(failed for failed, _ in judged),
        false=judged.count((True, False)),
        missed=judged.count((False, True)),
    )
