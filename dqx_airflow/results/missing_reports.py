"""Missing reports: dates of gates whose last run ended without a report, as far as the store knows
them. The task of a gate leaves a note there before it fails."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

from dqx_airflow.results import schema
from dqx_airflow.results.incidents import (
    ACKNOWLEDGED,
    CLOSED,
    Incident,
    IncidentNote,
    rows_in,
    show_rows,
    write_notes,
)
from dqx_airflow.results.query import RunsWanted, StoredResults, is_in, of_dates, opened
from dqx_airflow.results.report_rows import RunRow, is_of_gate
from dqx_airflow.results.schema import as_utc
from dqx_airflow.values import NO_REPORT, GateRequest, RunKey


@dataclass(frozen=True, slots=True)
class MissingReport:
    """A date for which the last run of a gate left no report. `error` says why, `at` is the time of
    its end, and `id` the id of its note. `gate` is the name without a suite, `slice` the slice of
    the run, and `is_partial` whether it was to evaluate a selection only. `acknowledgement` is the
    note of the person who takes care of the date."""

    gate: str
    date: date
    map_index: int
    slice: str | None
    is_partial: bool
    error: str
    at: datetime
    id: str
    acknowledgement: IncidentNote | None = None

    @property
    def gate_instance(self) -> str:
        """The name of the gate, with the map index of a mapped task: `shop.gate[3]`."""
        return self.gate if self.map_index < 0 else f"{self.gate}[{self.map_index}]"

    @property
    def rows(self) -> str:
        """The values of `promote_slice`: `store = basel`; empty without them."""
        return show_rows(self.slice)

    @property
    def time_to_acknowledge(self) -> timedelta | None:
        """The time from the end of the run to the acknowledgement; None without one."""
        note = self.acknowledgement
        return max(note.at - self.at, timedelta(0)) if note else None

    def note(self, kind: str, author: str, text: str = "") -> IncidentNote:
        """The note with which someone takes the date, or gives it up."""
        return IncidentNote(self.gate, self.date, kind, author, text, self.map_index, self.slice)


def write_missing_reports(results: StoredResults, request: GateRequest, error: str) -> None:
    """Stores that a run has ended without reports; nothing in a store without any run.

    :raises StoreError: the store cannot be written.
    """
    if results.table(schema.RUNS) is None:
        return
    gate = request.job_key.gate
    is_partial = request.selection is not None
    instances = sorted({(key.date, key.map_index) for key in request.run_keys})
    notes = [
        IncidentNote(
            gate, on, NO_REPORT, gate, error, map_index, request.slice, is_partial=is_partial
        )
        for on, map_index in instances
    ]
    write_notes(results, notes)


def missing_reports(
    results: StoredResults | str, gates: Collection[str] | None = None
) -> tuple[MissingReport, ...]:
    """The dates for which the last run left no report, oldest first: no run has judged them since,
    and no one has closed them.

    :param gates: the names of gates, also with suites; None for all.
    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    where = [f"\"kind\" = '{NO_REPORT}'"]
    last: dict[tuple[object, ...], MissingReport] = {}
    for row in results.whole_rows(schema.INCIDENT_NOTES, where, 'ORDER BY "event_at"'):
        one = _missing_report(IncidentNote.from_row(row))
        if gates is not None and not any(is_of_gate(name, one.gate) for name in gates):
            continue
        last[one.gate, one.date, one.map_index, one.rows, one.is_partial] = one
    if not last:
        return ()
    days = [one.date for one in last.values()]
    past = past_of_dates(results, min(days), max(days))
    found = [
        replace(one, acknowledgement=past.acknowledgement(one.gate, one.date, one.map_index, one))
        for one in last.values()
        if not any(_settles(end, one) for end in past.ends_of(one.date, one.map_index))
    ]
    return tuple(sorted(found, key=lambda one: (one.date, one.gate, one.map_index, one.rows)))


def _missing_report(note: IncidentNote) -> MissingReport:
    return MissingReport(
        gate=note.gate,
        date=note.date,
        map_index=note.map_index,
        slice=note.slice,
        is_partial=note.is_partial,
        error=note.text,
        at=note.at,
        id=note.id,
    )


def missing_without_incident(
    incidents: Iterable[Incident],
    results: StoredResults | str,
    gates: Collection[str] | None = None,
) -> tuple[MissingReport, ...]:
    """The dates for which the last run left no report, without those that have an open incident.

    :param gates: the names of gates, also with suites; None for all.
    :raises StoreError: the store exists and cannot be read.
    """
    known: dict[tuple[date, int, str], list[RunRow]] = {}
    for incident in incidents:
        if incident.is_open:
            place = incident.date, incident.map_index, incident.rows
            known.setdefault(place, []).extend(incident.runs)
    return tuple(
        one
        for one in missing_reports(results, gates)
        if not any(
            is_of_gate(run.run_key.gate, one.gate, run.job)
            for run in known.get((one.date, one.map_index, one.rows), ())
        )
    )


@dataclass(frozen=True, slots=True)
class DateEnd:
    """The end of a run that left a report, or the time at which someone closed a date: `gate` is
    the name in the store, with a suite if there are several; `job` the stored name without it, None
    of a note, and from an earlier version."""

    gate: str
    date: date
    map_index: int
    slice: str | None
    is_partial: bool
    at: datetime
    closing: IncidentNote | None = None
    job: str | None = None

    def is_of_gate(self, gate: str) -> bool:
        """Whether it is of this gate, or of one of its suites."""
        return is_of_gate(self.gate, gate, self.job)


@dataclass(frozen=True, slots=True)
class PastOfDates:
    """The ends of some dates, and the acknowledgements of these, oldest first; both by date and map
    index."""

    ends: Mapping[tuple[date, int], list[DateEnd]] = field(default_factory=dict)
    acknowledgements: Mapping[tuple[date, int], list[IncidentNote]] = field(default_factory=dict)

    def ends_of(self, on: date | None, map_index: int) -> Sequence[DateEnd]:
        """The ends of a date; none of an unknown one."""
        return () if on is None else self.ends.get((on, map_index), ())

    def acknowledgement(
        self, gate: str, on: date | None, map_index: int, missing: MissingReport | None = None
    ) -> IncidentNote | None:
        """The note of the person who has a date without a report: the first one since the date was
        checked or closed; None without one.

        :param gate: the name without a suite.
        :param missing: the missing report, if the store knows it.
        """
        ends = [
            end.at
            for end in self.ends_of(on, map_index)
            if end.is_of_gate(gate) and not end.is_partial and _is_on_rows(end.slice, missing)
        ]
        last = max(ends, default=None)
        for note in () if on is None else self.acknowledgements.get((on, map_index), ()):
            is_about = is_of_gate(note.gate, gate) and _is_on_rows(note.slice, missing)
            if is_about and (last is None or note.at > last):
                return note
        return None


def _is_on_rows(slice: str | None, missing: MissingReport | None) -> bool:
    """Whether a run or a note is on the rows of a missing report: all of the date, or these rows of
    it. An earlier version stored no slice."""
    return slice is None or missing is None or rows_in(slice) == rows_in(missing.slice)


def past_of_dates(results: StoredResults | str, since: date, until: date) -> PastOfDates:
    """The ends of runs on some days, the closings of these days, and who has taken them.

    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    columns = (
        *("gate", "job", "dataset_date", "scheduler_run"),
        *("slice", "partial", "finished_at"),
    )
    ends: dict[tuple[date, int], list[DateEnd]] = {}
    for row in results.run_rows(RunsWanted(since=since, until=until), columns):
        key = RunKey(row["gate"], row["dataset_date"], row["scheduler_run"])
        end = DateEnd(
            gate=key.gate,
            date=key.date,
            map_index=key.map_index,
            slice=row.get("slice"),
            is_partial=bool(row.get("partial")),
            at=as_utc(row["finished_at"]),
            job=row.get("job"),
        )
        ends.setdefault((key.date, key.map_index), []).append(end)
    acknowledgements: dict[tuple[date, int], list[IncidentNote]] = {}
    where = [is_in("kind", (ACKNOWLEDGED, CLOSED)), *of_dates(since, until)]
    for row in results.whole_rows(schema.INCIDENT_NOTES, where, 'ORDER BY "event_at"'):
        note = IncidentNote.from_row(row)
        place = note.date, note.map_index
        if note.kind == ACKNOWLEDGED:
            acknowledgements.setdefault(place, []).append(note)
            continue
        end = DateEnd(
            gate=note.gate,
            date=note.date,
            map_index=note.map_index,
            slice=note.slice,
            is_partial=False,
            at=note.at,
            closing=note,
        )
        ends.setdefault(place, []).append(end)
    return PastOfDates(ends, acknowledgements)


def _settles(end: DateEnd, missing: MissingReport) -> bool:
    """Whether a run has judged what a run without a report was about, or someone closed it.

    :param end: of the same date and map index.
    """
    if end.at <= missing.at or not end.is_of_gate(missing.gate):
        return False
    if end.is_partial and not missing.is_partial:
        return False
    return _is_on_rows(end.slice, missing)
