"""Incidents: consecutive runs of a gate that were blocked or broken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from dqx_airflow.results.run_lines import RunLine
from dqx_airflow.values import Outcome

BAD = (Outcome.BLOCKED, Outcome.BROKEN)
"""The outcomes that form an incident."""


@dataclass(frozen=True, slots=True)
class Incident:
    """The runs of an incident, newest data first. `before` is the last good run before it, None if
    none is known; `recovery` the first good run after it, None while it lasts."""

    runs: tuple[RunLine, ...]
    before: RunLine | None
    recovery: RunLine | None

    @property
    def first(self) -> RunLine:
        """The run with the oldest data, which began the incident."""
        return self.runs[-1]

    @property
    def last(self) -> RunLine:
        """The run with the newest data."""
        return self.runs[0]

    @property
    def is_open(self) -> bool:
        """True until a run is good again."""
        return self.recovery is None

    @property
    def recovery_time(self) -> timedelta | None:
        """The time from the first verdict against the data to the first good one; None while it
        lasts."""
        if self.recovery is None:
            return None
        return abs(self.recovery.finished_at - self.first.finished_at)


def incidents_of(runs: Iterable[RunLine]) -> tuple[Incident, ...]:
    """The incidents among the runs of a gate, newest first.

    A partial run does not resolve what it did not judge: the incident ends with a complete run, or
    with one that has the same selection as the bad runs.

    :param runs: newest data first, none of them superseded by a later attempt.
    """
    incidents: list[Incident] = []
    goods: list[RunLine] = []
    bad: list[RunLine] = []
    open_: list[RunLine] = []
    before: RunLine | None = None
    for run in reversed(tuple(runs)):
        if run.outcome in BAD:
            if not bad:
                before = next((one for one in reversed(goods) if _settles(one, run)), None)
            bad.append(run)
            open_.append(run)
            continue
        goods.append(run)
        open_ = [one for one in open_ if not _settles(run, one)]
        if bad and not open_:
            incidents.append(Incident(tuple(reversed(bad)), before, run))
            bad = []
    if bad:
        incidents.append(Incident(tuple(reversed(bad)), before, None))
    return tuple(reversed(incidents))


def _settles(good: RunLine, bad: RunLine) -> bool:
    """True if a good run has judged everything that a bad one has."""
    if good.partial is None:
        return True
    return bad.partial is not None and bad.partial.selection == good.partial.selection
