"""Dates of gates whose last run ended without a report, as far as the store knows them: the task of
a gate leaves a note there before it fails."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from dqx_airflow.results import schema
from dqx_airflow.results.incidents import CLOSED, Incident, IncidentNote, write_notes
from dqx_airflow.results.query import RunsWanted, StoredResults, is_in, of_dates, opened
from dqx_airflow.results.schema import as_utc
from dqx_airflow.values import NO_REPORT, RunKey


@dataclass(frozen=True, slots=True)
class SilentDate:
    """A date for which the last run of a gate left no report. `error` says why, `at` is the time of
    its end, and `id` the id of its note. `gate` is the name without a suite."""

    gate: str
    date: date
    map_index: int
    error: str
    at: datetime
    id: str

    @property
    def gate_instance(self) -> str:
        """The name of the gate, with the map index of a mapped task: `shop.gate[3]`."""
        return self.gate if self.map_index < 0 else f"{self.gate}[{self.map_index}]"

    def closed_by(self, author: str, reason: str) -> IncidentNote:
        """The note with which someone gives the date up."""
        return IncidentNote(self.gate, self.date, CLOSED, author, reason, self.map_index)


def write_silence(results: StoredResults, run_keys: Iterable[RunKey], error: str) -> None:
    """Stores that a run has ended without a report; nothing in a store without any run.

    :raises StoreError: the store cannot be written.
    """
    if results.table(schema.RUNS) is None:
        return
    dates = {(_task_of(key.gate), key.date, key.map_index) for key in run_keys}
    notes = [
        IncidentNote(gate, on, NO_REPORT, gate, error, map_index)
        for gate, on, map_index in sorted(dates)
    ]
    write_notes(results, notes)


def silent_dates(
    results: StoredResults | str, gates: Collection[str] | None = None
) -> tuple[SilentDate, ...]:
    """The dates for which the last run left no report, oldest first: no run has judged them since,
    and no one has closed them.

    :param gates: the names of gates, also with suites; None for all.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    where = [f"\"kind\" = '{NO_REPORT}'"]
    if gates is not None:
        where.append(is_in("gate", {_task_of(gate) for gate in gates}))
    last: dict[tuple[str, date, int], IncidentNote] = {}
    for row in results.whole_rows(schema.INCIDENT_NOTES, where, 'ORDER BY "event_at"'):
        note = IncidentNote.from_row(row)
        last[note.gate, note.date, note.map_index] = note
    if not last:
        return ()
    days = [note.date for note in last.values()]
    settled = settled_at(results, min(days), max(days))
    found = [
        SilentDate(*place, note.text, note.at, note.id)
        for place, note in last.items()
        if place not in settled or settled[place] < note.at
    ]
    return tuple(sorted(found, key=lambda one: (one.date, one.gate, one.map_index)))


def silent_beside(
    incidents: Iterable[Incident],
    results: StoredResults | str,
    gates: Collection[str] | None = None,
) -> tuple[SilentDate, ...]:
    """The dates of gates whose last run left no report, without those that have an open incident.

    :raises StoreError: the store exists and cannot be read.
    """
    known = {
        (_task_of(run.run_key.gate), one.date, one.map_index)
        for one in incidents
        if one.is_open
        for run in one.runs
    }
    found = silent_dates(results, gates)
    return tuple(one for one in found if (one.gate, one.date, one.map_index) not in known)


def settled_at(
    results: StoredResults | str, since: date, until: date
) -> Mapping[tuple[str, date, int], datetime]:
    """The end of the last run on each date of some days, or the time at which someone closed the
    date after it: by the name of the gate without a suite, the date and the map index.

    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    found: dict[tuple[str, date, int], datetime] = {}
    columns = ("gate", "dataset_date", "scheduler_run", "finished_at")
    for row in results.run_rows(RunsWanted(since=since, until=until), columns):
        key = RunKey(row["gate"], row["dataset_date"], row["scheduler_run"])
        _keep_last(found, (_task_of(key.gate), key.date, key.map_index), row["finished_at"])
    closed = [f"\"kind\" = '{CLOSED}'", *of_dates(since, until)]
    for row in results.whole_rows(schema.INCIDENT_NOTES, closed):
        note = IncidentNote.from_row(row)
        _keep_last(found, (_task_of(note.gate), note.date, note.map_index), note.at)
    return found


def _keep_last(
    found: dict[tuple[str, date, int], datetime], place: tuple[str, date, int], at: datetime
) -> None:
    moment = as_utc(at)
    found[place] = max(found.get(place, moment), moment)


def _task_of(gate: str) -> str:
    """The name of a gate without its suite."""
    return gate.partition("/")[0]
