"""Incidents: consecutive runs of a gate that were blocked or broken; and users' notes on them,
acknowledgements and comments, which are append-only."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone

from dqx_airflow.results.query import StoredResults, is_in, of_dates, opened
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.results.schema import (
    INCIDENT_NOTES,
    INCIDENT_NOTES_COLUMNS,
    INCIDENT_NOTES_SCHEMA,
    fields_of,
    written,
)
from dqx_airflow.values import Outcome

BAD = (Outcome.BLOCKED, Outcome.BROKEN)
"""The outcomes that form an incident."""


@dataclass(frozen=True, slots=True)
class Incident:
    """The runs of an incident, newest data first: those of each suite of the gate that was bad.
    `before` has the last good run before it, by the name of the gate and suite, where one is known;
    `recovery` is the first run that left nothing bad, None while the incident lasts."""

    runs: tuple[RunRow, ...]
    before: Mapping[str, RunRow]
    recovery: RunRow | None

    @property
    def first(self) -> RunRow:
        """The run with the oldest data, which began the incident."""
        return self.runs[-1]

    @property
    def last(self) -> RunRow:
        """The run with the newest data."""
        return self.runs[0]

    @property
    def first_of_each(self) -> tuple[RunRow, ...]:
        """The run with the oldest data of each suite that was bad, oldest data first."""
        return _first_of_each(reversed(self.runs))

    @property
    def last_of_each(self) -> tuple[RunRow, ...]:
        """The run with the newest data of each suite that was bad, newest data first."""
        return _first_of_each(self.runs)

    @property
    def length(self) -> int:
        """The number of runs of the task, of which several suites have a report each."""
        return len({(run.run_key.date, run.run_key.scheduler_run) for run in self.runs})

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


def incidents_of(runs: Iterable[RunRow]) -> tuple[Incident, ...]:
    """The incidents among the runs of a gate, newest first.

    A partial run does not resolve what it did not judge: the incident ends with a complete run, or
    with one that has the same selection as the bad runs. Of several suites, each that was bad must
    have such a run.

    :param runs: newest data first, none of them superseded by a later attempt.
    """
    incidents: list[Incident] = []
    goods: list[RunRow] = []
    bad: list[RunRow] = []
    open_: list[RunRow] = []
    before: dict[str, RunRow] = {}
    for run in reversed(tuple(runs)):
        if run.outcome in BAD:
            if run.run_key.gate not in {bad_run.run_key.gate for bad_run in bad}:
                settled = next((good for good in reversed(goods) if _settles(good, run)), None)
                if settled is not None:
                    before[run.run_key.gate] = settled
            bad.append(run)
            open_.append(run)
            continue
        goods.append(run)
        open_ = [bad_run for bad_run in open_ if not _settles(run, bad_run)]
        if bad and not open_:
            incidents.append(Incident(tuple(reversed(bad)), before, run))
            bad, before = [], {}
    if bad:
        incidents.append(Incident(tuple(reversed(bad)), before, None))
    return tuple(reversed(incidents))


def _first_of_each(runs: Iterable[RunRow]) -> tuple[RunRow, ...]:
    by_gate: dict[str, RunRow] = {}
    for run in runs:
        by_gate.setdefault(run.run_key.gate, run)
    return tuple(by_gate.values())


def _settles(good: RunRow, bad: RunRow) -> bool:
    """True if a good run has judged everything that a bad one has."""
    if good.run_key.gate != bad.run_key.gate:
        return False
    if good.partial is None:
        return True
    return bad.partial is not None and bad.partial.selection == good.partial.selection


ACKNOWLEDGED, COMMENT = "acknowledged", "comment"


@dataclass(frozen=True, slots=True)
class IncidentNote:
    """A note on a gate that is blocked or broken, on a date of its data.

    `kind` is `acknowledged` (the author takes care of it) or `comment`. `map_index` is that of an
    instance of a mapped gate, -1 for others. `at` is in UTC.
    """

    gate: str
    date: date
    kind: str
    author: str
    text: str = ""
    map_index: int = -1
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


def write_note(results: StoredResults, note: IncidentNote) -> None:
    """Appends a note.

    :raises StoreError: the store cannot be written.
    """
    from dqx_airflow.results.store import ResultsStore  # pyarrow, which readers do not need

    store = ResultsStore(results.root, results.storage_options)
    store.append_rows({INCIDENT_NOTES: {note.id: [written(INCIDENT_NOTES_COLUMNS, note)]}})


def notes_from(
    results: StoredResults | str,
    gates: Collection[str],
    since: date,
    until: date,
    map_index: int = -1,
) -> tuple[IncidentNote, ...]:
    """The notes on a gate, of several suites on each, and the data of some days, oldest first.

    :raises StoreError: the store exists and cannot be read.
    """
    where = [is_in("gate", gates), *of_dates(since, until), f'"map_index" = {int(map_index)}']
    order = 'ORDER BY "event_at", "event_id"'
    rows = opened(results).select(INCIDENT_NOTES, INCIDENT_NOTES_SCHEMA.names, where, order)
    notes = (IncidentNote(**fields_of(INCIDENT_NOTES_COLUMNS, row)) for row in rows)
    return tuple({note.id: note for note in notes}.values())
