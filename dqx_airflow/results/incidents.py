"""Incidents: the runs of a gate, one after the other, that were blocked or broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile

from dqx_airflow.results.run_lines import RunLine
from dqx_airflow.values import Outcome

BAD = (Outcome.BLOCKED, Outcome.BROKEN)
"""The outcomes that make an incident."""


@dataclass(frozen=True, slots=True)
class Incident:
    """The runs of an incident, newest data first. `before` is the last good run before it, None
    where none is known; `recovery` the first good run after it, None while it lasts."""

    runs: tuple[RunLine, ...]
    before: RunLine | None
    recovery: RunLine | None

    @property
    def first(self) -> RunLine:
        return self.runs[-1]

    @property
    def last(self) -> RunLine:
        return self.runs[0]

    @property
    def is_open(self) -> bool:
        return self.recovery is None

    @property
    def recovery_time(self) -> timedelta | None:
        """From the first verdict against the data to the first good one; None while it lasts."""
        if self.recovery is None:
            return None
        return abs(self.recovery.finished_at - self.first.finished_at)


def incidents_of(runs: Iterable[RunLine]) -> tuple[Incident, ...]:
    """The incidents among the runs of a gate, newest first.

    :param runs: newest data first, none of them superseded by a later attempt.
    """
    left: Sequence[RunLine] = tuple(runs)
    found: list[Incident] = []
    recovery: RunLine | None = None
    while left:
        bad = tuple(takewhile(lambda run: run.outcome in BAD, left))
        if not bad:
            recovery, left = left[0], left[1:]
            continue
        left = left[len(bad) :]
        found.append(Incident(bad, left[0] if left else None, recovery))
    return tuple(found)
