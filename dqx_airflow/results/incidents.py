"""Incidents: slices of data for which a gate was blocked or broken, until they pass, are accepted,
or a person closes them; and users' notes on them, which are append-only.

A slice is what one run of a gate is about: a date of its datasets, of one instance of a mapped
task, of the rows in `promote_slice`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from itertools import groupby
from typing import Any

from dqx_airflow.results import schema
from dqx_airflow.results.query import OF_A_RUN, RunsWanted, StoredResults, is_in, of_dates, opened
from dqx_airflow.results.report_rows import (
    RunRow,
    gate_without_suite,
    run_from_row,
    verdict_from_row,
)
from dqx_airflow.results.schema import as_utc
from dqx_airflow.values import NO_REPORT, Outcome, Severity, Status, Verdict

BAD = (Outcome.BLOCKED, Outcome.BROKEN)
"""The outcomes that form an incident."""

ACKNOWLEDGED, COMMENT, CLOSED, ACCEPTED = "acknowledged", "comment", "closed", "accepted"
ASKED, KEPT = "asked", "kept blocked"
"""The notes of a gate: it asks a person about the data; and a person's answer that it stays so."""

WAITING = "waiting"
"""The status of an incident about which the gate waits for the answer of a person."""


@dataclass(frozen=True, slots=True)
class IncidentNote:
    """A note on a slice for which a gate is blocked or broken.

    `kind` is `acknowledged` (the author takes care of it, also of a date without a report),
    `comment`, `closed` (the author ends the incident, for the reason in `text`), `accepted` (the
    author accepts the data that the run `run_id` judged, for that reason), `asked` (the gate waits
    for an answer about that run, `until` then, if it is set, and then `text` is what happens), or
    `kept blocked` (the author's answer).
    `map_index` is the index of the instance of a mapped gate, -1 if the gate is not mapped; `slice`
    is the slice of the run. A gate whose run left no report notes `no report`, with the reason in
    `text`; `is_partial` is whether that run had a selection. `at` and `until` are in UTC.
    """

    gate: str
    date: date
    kind: str
    author: str
    text: str = ""
    map_index: int = -1
    slice: str | None = None
    run_id: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    until: datetime | None = None
    is_partial: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """The row of the note in the table `incident_notes`."""
        return {
            "event_id": self.id,
            "gate": self.gate,
            "dataset_date": self.date,
            "map_index": self.map_index,
            "slice": self.slice,
            "partial": self.is_partial,
            "kind": self.kind,
            "text": self.text,
            "run_id": self.run_id,
            "author": self.author,
            "until": as_utc(self.until) if self.until else None,
            "event_at": as_utc(self.at),
        }

    @classmethod
    def from_row(cls, row: schema.Row) -> IncidentNote:
        """The note of a row of the table `incident_notes`."""
        return cls(
            gate=row["gate"],
            date=row["dataset_date"],
            kind=row["kind"],
            author=row["author"],
            text=row.get("text") or "",
            map_index=row["map_index"],
            slice=row.get("slice"),
            run_id=row.get("run_id"),
            at=as_utc(row["event_at"]),
            id=row["event_id"],
            until=as_utc(row["until"]) if row.get("until") else None,
            is_partial=bool(row.get("partial")),
        )


@dataclass(frozen=True, slots=True)
class Incident:
    """A slice that was blocked or broken. `runs` are its bad runs, of all attempts and of each
    suite of the gate, the last one first; `repair` is the run that left nothing bad; `notes` are
    written by people, oldest first."""

    runs: tuple[RunRow, ...]
    repair: RunRow | None = None
    notes: tuple[IncidentNote, ...] = ()

    @property
    def first(self) -> RunRow:
        """The run that began the incident."""
        return self.runs[-1]

    @property
    def last(self) -> RunRow:
        """The last bad run."""
        return self.runs[0]

    @property
    def id(self) -> str:
        """The permanent id of the incident: the id of its first run."""
        return self.first.run_id

    @property
    def date(self) -> date:
        """The date of the data."""
        return self.last.run_key.date

    @property
    def map_index(self) -> int:
        """The map index of the task, -1 if it is not mapped."""
        return self.last.run_key.map_index

    @property
    def rows(self) -> str:
        """The values of `promote_slice`: `store = basel`; empty without them."""
        return show_rows(self.last.slice)

    @property
    def last_of_each(self) -> tuple[RunRow, ...]:
        """The last bad run of each suite."""
        return tuple({run.run_key.gate: run for run in reversed(self.runs)}.values())

    @property
    def closing(self) -> IncidentNote | None:
        """The note that closed the incident; None if a bad run has opened it again since."""
        closed = [note for note in self.notes if note.kind == CLOSED]
        return next((note for note in closed if note.at >= self.last.finished_at), None)

    @property
    def acknowledgement(self) -> IncidentNote | None:
        """The first acknowledgement of the incident; None without one."""
        return next((note for note in self.notes if note.kind == ACKNOWLEDGED), None)

    @property
    def question(self) -> IncidentNote | None:
        """The note by which the gate asked about its last run; None without one, and after an
        answer."""
        runs = {run.run_id for run in self.last_of_each}
        question = None
        for note in self.notes:
            if note.kind == ASKED and note.run_id in runs:
                question = note
            elif note.kind in (ACCEPTED, KEPT):
                question = None
        return question if self.is_open else None

    @property
    def is_open(self) -> bool:
        """True until the slice is good, or a person closes it."""
        return self.repair is None and self.closing is None

    @property
    def status(self) -> str:
        """The status: `waiting`, `blocked`, `broken`, `repaired`, `warned`, `accepted` or `closed`.

        It is `warned` if the run that let the data through has a failure of a severity that stopped
        the gate before: a waiver covers it, or the gate is less strict now.
        """
        if self.repair is not None:
            if self.repair.outcome is Outcome.ACCEPTED:
                return ACCEPTED
            is_let = is_let_through(self.repair.failed_severity, self.last.fail_on)
            return Outcome.WARNED.value if is_let else "repaired"
        if self.closing is not None:
            return CLOSED
        return WAITING if self.question is not None else self.last.outcome.value

    @property
    def is_recovered(self) -> bool:
        """True if the data was repaired or accepted, and not just let through."""
        return self.status in ("repaired", ACCEPTED)

    @property
    def detected_at(self) -> datetime:
        """The time of the first verdict against the data."""
        return self.first.finished_at

    @property
    def ended_at(self) -> datetime | None:
        """The time of the good run or of the closing note; None while the incident is open."""
        if self.repair is not None:
            return self.repair.finished_at
        return self.closing.at if self.closing else None

    @property
    def time_to_detect(self) -> timedelta:
        """The time from the end of the date of the data, in UTC, to the first verdict; zero for
        data that was judged earlier."""
        midnight = datetime(self.date.year, self.date.month, self.date.day, tzinfo=timezone.utc)
        return max(self.detected_at - midnight - timedelta(days=1), timedelta(0))

    @property
    def time_to_acknowledge(self) -> timedelta | None:
        """The time from the first verdict to the acknowledgement; None without one."""
        note = self.acknowledgement
        return max(note.at - self.detected_at, timedelta(0)) if note else None

    @property
    def time_to_end(self) -> timedelta | None:
        """The time from the first verdict to the end; None while the incident is open."""
        return self.ended_at - self.detected_at if self.ended_at else None


def is_let_through(failed: Severity | None, before: Severity) -> bool:
    """Whether a run that does not stop has a failure of a severity that stopped the gate before: a
    waiver covers it, or the gate is less strict now.

    :param failed: its `failed_severity`.
    :param before: the `fail_on` of the run that stopped.
    """
    return failed is not None and failed.at_least(before)


def incidents_of(
    runs: Iterable[RunRow], notes: Iterable[IncidentNote] = ()
) -> tuple[Incident, ...]:
    """The incidents among the runs of a task, newest data first.

    A slice is settled by a good run of the same slice, whatever happens to other dates. A partial
    run does not settle what it did not judge: it takes a complete run, or one that has the same
    selection as the bad runs. Of several suites, each that was bad must have such a run.

    :param runs: all attempts, in any order.
    """
    found: list[Incident] = []
    by_place: dict[tuple[date, int], list[RunRow]] = {}
    for run in sorted(runs, key=lambda run: run.started_at):
        by_place.setdefault((run.run_key.date, run.run_key.map_index), []).append(run)
    for own in by_place.values():
        found += _of_one_place(own)
    of_place: dict[tuple[date, int], list[IncidentNote]] = {}
    for note in sorted(notes, key=lambda note: note.at):
        of_place.setdefault((note.date, note.map_index), []).append(note)
    found.sort(key=lambda incident: (incident.date, incident.last.started_at), reverse=True)
    later: dict[tuple[date, int, str | None], datetime] = {}
    with_notes = []
    for incident in found:
        key = incident.date, incident.map_index, incident.last.slice
        place = incident.date, incident.map_index
        of_slice = [note for note in of_place.get(place, ()) if _is_on_slice(note, incident)]
        since = _good_before(incident, by_place[place], of_slice)
        until = later.get(key)
        own_notes = tuple(note for note in of_slice if _is_about(note, incident, since, until))
        later[key] = incident.detected_at
        with_notes.append(replace(incident, notes=own_notes))
    return tuple(with_notes)


def _of_one_place(runs: Sequence[RunRow]) -> list[Incident]:
    """The incidents of one date and map index.

    :param runs: in the order of their start."""
    ended: list[Incident] = []
    bad: dict[int, list[RunRow]] = {}
    unsettled: dict[int, list[RunRow]] = {}
    for number, run in enumerate(runs):
        same = [key for key, own in bad.items() if same_slice(own[-1].slice, run.slice)]
        if run.outcome in BAD:
            key = same[0] if same else number
            bad.setdefault(key, []).append(run)
            unsettled.setdefault(key, []).append(run)
            continue
        for key in same:
            unsettled[key] = [bad_run for bad_run in unsettled[key] if not _settles(run, bad_run)]
            if not unsettled[key]:
                ended.append(Incident(tuple(reversed(bad.pop(key))), run))
    return ended + [Incident(tuple(reversed(own))) for own in bad.values()]


def same_slice(one: str | None, other: str | None) -> bool:
    """Whether two runs on the same date judged the same rows, by their `slice`: each dataset that
    both read has the same location. A run of an earlier version has no `slice`, and counts as
    equal."""
    if one is None or other is None or one == other:
        return True
    first, second = _slice_of(one), _slice_of(other)
    places = first.get("read") or {}
    others = second.get("read") or {}
    is_elsewhere = any(places[name] != others[name] for name in places.keys() & others.keys())
    return rows_in(one) == rows_in(other) and not is_elsewhere


def rows_in(text: str | None) -> Mapping[str, Any]:
    """The values of `promote_slice` in the `slice` of a run."""
    return _slice_of(text).get("rows") or {}


def show_rows(text: str | None) -> str:
    """The values of `promote_slice` in the `slice` of a run: `store = basel`; empty without
    them."""
    return ", ".join(f"{name} = {value}" for name, value in rows_in(text).items())


def _slice_of(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _settles(good: RunRow, bad: RunRow) -> bool:
    """True if a good run has judged everything that a bad one has."""
    if good.run_key.gate != bad.run_key.gate:
        return False
    if good.partial is None:
        return True
    return bad.partial is not None and bad.partial.selection == good.partial.selection


def _is_on_slice(note: IncidentNote, incident: Incident) -> bool:
    """Whether a note on the date of an incident is on its slice, or on all of the date."""
    return any(same_slice(note.slice, run.slice) for run in incident.runs)


def _good_before(
    incident: Incident, runs: Iterable[RunRow], notes: Iterable[IncidentNote]
) -> datetime | None:
    """The last time before an incident at which its slice was good, or someone closed it; None if
    it never was.

    :param runs: all runs of the date and the map index.
    :param notes: on the slice.
    """
    gates = {run.run_key.gate for run in incident.runs}
    ends = [
        run.finished_at
        for run in runs
        if run.outcome not in BAD
        and run.run_key.gate in gates
        and run.partial is None
        and run.started_at < incident.first.started_at
        and same_slice(run.slice, incident.last.slice)
    ]
    ends += [
        note.at for note in notes if note.kind == CLOSED and note.at < incident.first.started_at
    ]
    return max(ends, default=None)


_WITHOUT_A_REPORT = (ACKNOWLEDGED, NO_REPORT)
"""The notes on a date that has no report yet. They stay when a run of it is then bad: who has taken
the date still has it."""


def _is_about(
    note: IncidentNote, incident: Incident, since: datetime | None, until: datetime | None
) -> bool:
    """Whether a note on the slice of an incident is about this incident.

    :param since: the last time before it at which the slice was good.
    :param until: when the next incident of the slice began.
    """
    if note.run_id is not None and note.run_id in {run.run_id for run in incident.runs}:
        return True
    if until is not None and note.at >= until:
        return False
    if note.at < incident.detected_at:
        # The clocks of two machines differ, and a first note is about a first incident.
        return since is None or (note.at >= since and note.kind in _WITHOUT_A_REPORT)
    is_over = incident.ended_at is not None and note.at > incident.ended_at
    return not (is_over and note.kind in _WITHOUT_A_REPORT)


def groups_of(incidents: Iterable[Incident]) -> tuple[tuple[Incident, ...], ...]:
    """Groups incidents of neighbouring dates, newest data first."""
    newest_first = sorted(incidents, key=lambda incident: incident.date, reverse=True)
    groups: list[list[Incident]] = []
    for incident in newest_first:
        if groups and groups[-1][-1].date - incident.date <= timedelta(days=1):
            groups[-1].append(incident)
        else:
            groups.append([incident])
    return tuple(map(tuple, groups))


_OF_AN_INCIDENT = tuple(name for name in OF_A_RUN if name not in ("contract", "sources"))
_EVER_BAD = (
    'concat("gate", \' \', "dataset_date") IN (SELECT concat("gate", \' \', "dataset_date") '
    "FROM stored WHERE \"outcome\" IN ('blocked', 'broken'))"
)
_MOST_RUNS = 20_000


def stored_incidents(results: StoredResults | str, wanted: RunsWanted) -> tuple[Incident, ...]:
    """The incidents of gates in the store, newest data first; suites of the same task share an
    incident.

    :raises StoreError: the store exists and cannot be read.
    """
    results = opened(results)
    if wanted.is_nothing:
        return ()
    order = f'ORDER BY "dataset_date" DESC, "finished_at", "run_id" LIMIT {_MOST_RUNS}'
    where = [*wanted.conditions, _EVER_BAD]
    # An attempt has a second report if it ran again after an answer.
    first_of_attempt: dict[tuple[Any, ...], RunRow] = {}
    for row in results.select(schema.RUNS, _OF_AN_INCIDENT, where, order):
        try:
            run = run_from_row(row)
        except (ValueError, KeyError, TypeError):
            continue  # of an incompatible newer version
        first_of_attempt.setdefault((run.run_key, run.attempt.id, row.get("answered")), run)
    runs = [*first_of_attempt.values()]
    if not runs:
        return ()
    dates = [run.run_key.date for run in runs]
    tasks = _tasks_among(runs)
    of_notes = dict(tasks)
    for run in runs:
        # A note on a date without a report has the name of the gate without a suite.
        gate = run.run_key.gate
        of_notes.setdefault(gate_without_suite(gate, run.suite, run.job), tasks[gate])
    notes = notes_from(results, of_notes, min(dates), max(dates))
    runs.sort(key=lambda run: tasks[run.run_key.gate])
    found: list[Incident] = []
    for task, own in groupby(runs, key=lambda run: tasks[run.run_key.gate]):
        of_task = (note for note in notes if of_notes.get(note.gate) == task)
        found += incidents_of(own, of_task)
    return tuple(sorted(found, key=lambda incident: incident.date, reverse=True))


def open_slices(
    results: StoredResults | str, gates: Collection[str] | None = None
) -> tuple[Incident, ...]:
    """The slices that are still blocked or broken, oldest data first.

    :raises StoreError: the store exists and cannot be read.
    """
    found = stored_incidents(results, RunsWanted(gates))
    return tuple(incident for incident in reversed(found) if incident.is_open)


def _tasks_among(runs: Iterable[RunRow]) -> dict[str, str]:
    """Maps the name of each gate to the name of the first suite of the same task."""
    tasks: dict[str, str] = {}
    by_attempt: dict[str, set[str]] = {}
    for run in runs:
        by_attempt.setdefault(run.attempt.id, set()).add(run.run_key.gate)
    for gates in by_attempt.values():
        tasks |= dict.fromkeys(gates, min({tasks.get(gate, gate) for gate in gates}))
    return tasks


@dataclass(frozen=True, slots=True)
class PromotedRows:
    """The promotion of a dataset's rows: their number, the version that they became, the number of
    the attempt, and the time of its verdict. `left_out` is the number of rows left out of it."""

    rows: int
    version: int
    attempt: int
    at: datetime
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """The rows of a dataset that an incident is about, and where they are now.

    :param target: where the gate promotes them; empty for a gate without a target.
    :param rows: how many the last run judged; None if that is unknown.
    :param promoted: None while the target does not have them.
    """

    dataset: str
    target: str
    rows: int | None
    promoted: PromotedRows | None = None


def judged_rows(
    results: StoredResults | str, incidents: Collection[Incident]
) -> Mapping[str, tuple[JudgedRows, ...]]:
    """The rows of each incident, by its id, and where they are: of an open incident, and of one
    that a person closed, by its last run; of another one by the run that ended it.

    :raises StoreError: the store exists and cannot be read.
    """
    if not incidents:
        return {}
    last = {one.id: one.repair or one.last for one in incidents}
    days = [one.date for one in incidents]
    attempts = {run.attempt.id for run in last.values()}
    where = [is_in("attempt_id", attempts), *of_dates(min(days), max(days))]
    columns = ("run_id", "attempt_id", "attempt", "dataset_date", "finished_at", "datasets")
    by_attempt: dict[tuple[str, date], list[schema.Row]] = {}
    for row in opened(results).select(schema.RUNS, columns, where, 'ORDER BY "finished_at"'):
        by_attempt.setdefault((row["attempt_id"], row["dataset_date"]), []).append(row)
    found = {}
    for one in incidents:
        run = last[one.id]
        # Several suites, or a second report after an answer: one of them may have promoted.
        of_attempt = by_attempt.get((run.attempt.id, one.date), [])
        own = [row for row in of_attempt if one.repair or row["run_id"] == run.run_id]
        found[one.id] = _rows_of(own)
    return found


def worst_verdicts(
    results: StoredResults | str, incidents: Collection[Incident]
) -> Mapping[str, Verdict]:
    """The worst verdict of the last run of each incident, by the id of the incident; without those
    that the store does not have.

    :raises StoreError: the store exists and cannot be read.
    """
    last = {one.last.run_id: one for one in incidents if one.last.worst is not None}
    if not last:
        return {}
    days = [one.date for one in last.values()]
    names = {str(one.last.worst) for one in last.values()}
    where = [is_in("run_id", last), is_in("name", names), *of_dates(min(days), max(days))]
    found: dict[str, Verdict] = {}
    for row in opened(results).select(schema.RESULTS, schema.RESULTS_SCHEMA.names, where):
        try:
            verdict = verdict_from_row(row)
        except (ValueError, KeyError, TypeError):
            continue  # of an incompatible newer version
        one = last[row["run_id"]]
        # An assertion of another check may have the same name.
        is_worst = (verdict.name, verdict.severity) == (one.last.worst, one.last.worst_severity)
        if is_worst and verdict.status is not Status.PASSED:
            found.setdefault(one.id, verdict)
    return found


@dataclass(frozen=True, slots=True)
class JudgedPlace:
    """The data that a run judged: the location of its first dataset, the condition on its rows, and
    the values of `promote_slice`, as in `store = basel`; both empty without one."""

    location: str
    condition: str
    rows: str


def judged_places(
    results: StoredResults, attempt_ids: Collection[str]
) -> tuple[tuple[str, JudgedPlace], ...]:
    """The data that each of these attempts judged, of the newest date.

    :raises StoreError: the store exists and cannot be read.
    """
    wanted = RunsWanted(attempt_ids=attempt_ids)
    columns = ("attempt_id", "datasets", "slice")
    found = []
    for row in results.run_rows(wanted, columns, 'ORDER BY "dataset_date"'):
        datasets = json.loads(row.get("datasets") or "[]")
        if datasets:
            first = datasets[0]
            rows = show_rows(row.get("slice"))
            place = JudgedPlace(first["location"], first.get("condition") or "", rows)
            found.append((row["attempt_id"], place))
    return tuple(found)


def _rows_of(runs: Sequence[schema.Row]) -> tuple[JudgedRows, ...]:
    """The rows of some runs of an attempt, oldest first."""
    judged: dict[str, JudgedRows] = {}
    for run in runs:
        datasets = json.loads(run.get("datasets") or "[]")
        for item in [one for one in datasets if one.get("promote_to")] or datasets[:1]:
            known = judged.get(item["name"])
            promoted = _promoted(item.get("promotion"), run) or (known.promoted if known else None)
            target = item.get("promote_to") or ""
            judged[item["name"]] = JudgedRows(item["name"], target, item.get("rows"), promoted)
    return tuple(judged.values())


def _promoted(promotion: Mapping[str, Any] | None, run: schema.Row) -> PromotedRows | None:
    if not promotion:
        return None
    return PromotedRows(
        rows=promotion["rows"],
        version=promotion["version"],
        attempt=run["attempt"],
        at=as_utc(run["finished_at"]),
        left_out=promotion.get("left_out") or 0,
    )


def write_notes(results: StoredResults, notes: Iterable[IncidentNote]) -> None:
    """Appends notes.

    :raises StoreError: the store cannot be written.
    """
    results.write(schema.INCIDENT_NOTES, {note.id: note.row for note in notes})


def notes_from(
    results: StoredResults | str, gates: Collection[str], since: date, until: date
) -> tuple[IncidentNote, ...]:
    """The notes on gates and the data of some days, oldest first.

    :raises StoreError: the store exists and cannot be read.
    """
    where = [is_in("gate", gates), *of_dates(since, until)]
    order = 'ORDER BY "event_at", "event_id"'
    rows = opened(results).whole_rows(schema.INCIDENT_NOTES, where, order)
    notes = map(IncidentNote.from_row, rows)
    return tuple({note.id: note for note in notes}.values())
