"""The page of an incident: the dates that are blocked, their faults, the waiting tasks, what
happened; and the forms for notes, waivers, acceptances, and for clearing the tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from uuid import uuid5

from fastapi import Query, Response

from dqx_airflow.errors import RequestError
from dqx_airflow.limits import LONGEST_WAIVER
from dqx_airflow.results import decisions
from dqx_airflow.results import incidents as records
from dqx_airflow.results.incidents import ACCEPTED, ACKNOWLEDGED, CLOSED, COMMENT, Incident
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.report_rows import gate_without_suite
from dqx_airflow.results.schema import Row
from dqx_airflow.results.what_changed import Changes, changes_before
from dqx_airflow.ui import (
    airflow,
    airflow_clearing,
    airflow_dags,
    airflow_users,
    deciding,
    responses,
)
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.clearing import clear_tasks, require_clearable, tasks_of, version_in
from dqx_airflow.ui.questions import as_airflow_knows
from dqx_airflow.ui.report_view import ReportView, view_of_report
from dqx_airflow.ui.responses import Page, form_token
from dqx_airflow.ui.store import Answer, StoreClient
from dqx_airflow.ui.verdict_text import counted_value, failing_total, limit_words
from dqx_airflow.values import EnforcedContract, GateReport, Status
from dqx_airflow.values.report import Waiver
from dqx_airflow.values.typed_values import day_in, days_before

router = PageRouter()

_MOST_NOTES = 200
_MOST_LISTED = 50
_MOST_FAULTS = 200
_MOST_CLEARINGS = 20
_LONGEST_TEXT = 2000
_DAYS_AROUND = 60
_CLEAR = "clear"
_GONE = responses.Refused(HTTPStatus.NOT_FOUND, "Incident not found: reload the page.")


@dataclass(frozen=True, slots=True)
class _Found:
    """The names of a gate, one for each suite, and the incidents of its task; `group` are the
    incidents to show: one, or the open ones of neighbouring dates."""

    gates: tuple[str, ...]
    incidents: tuple[Incident, ...]
    group: tuple[Incident, ...]
    problem: str | None


class IncidentPage(NamedTuple):
    """One incident, or the open ones of neighbouring dates, newest first.

    `gate` is the name in the results, `judged` the rows and where they are by the id of the
    incident, `last` the reports of the newest, `changes` what changed for each gate since its last
    good run, `waiting` the next tasks with their states, and `assets` the DAGs that wait for each
    asset. `questions` are those about which the gate waits, by the id of the incident; `clearings`
    what clearing each open slice does, oldest data first; `marks` the states that people set by
    hand, by the id of the incident.
    """

    task: airflow.TaskRef
    gate: str
    group: tuple[Incident, ...]
    runs: int
    others: list[Incident]
    judged: dict[str, tuple[records.JudgedRows, ...]]
    questions: dict[str, airflow.Question]
    clearings: list[airflow_clearing.Clearing]
    marks: dict[str, airflow_dags.Mark]
    last: list[ReportView]
    contract: EnforcedContract | None
    faults: tuple[deciding.Fault, ...]
    more_faults: int
    changes: tuple[tuple[str, Changes], ...]
    waiting: list[tuple[airflow.TaskRef, str]]
    assets: dict[str, tuple[str, ...]]
    owners: str
    waivers: list[Waiver]
    notes: list[records.IncidentNote]
    problem: str | None


@router.get("/incident", dependencies=[airflow_users.READS_DAG])
def incident(
    visitor: airflow_users.VisitorDep,
    dag_id: str = "",
    task_id: str = "",
    map_index: str = "",
    on: Annotated[str, Query(alias="date")] = "",
    incident: str = "",
) -> responses.Page[IncidentPage] | Response:
    """The newest incident of a gate, or the incident on a date of its data, also after its end."""
    index = responses.whole_number(map_index)
    task = airflow.TaskRef(dag_id, "", task_id, -1 if index is None else index)
    client = responses.store_client()
    found = _find(visitor.session, client, task, day_in(on), incident)
    visitor.session.close()
    if not found.group:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No incident",
            found.problem
            or f"The results store has no incident of task {task_id} of DAG {dag_id}"
            f"{f' for the data of {on}' if on else ''}: it never had one, its "
            "runs were pruned, or it has another results root: see "
            "`dql incidents --results-root ROOT`.",
        )
    return _page(visitor, client, found, task)


def _find(
    session: Any, client: StoreClient, task: airflow.TaskRef, on: date | None, first: str
) -> _Found:
    """The incidents of a task around a date of its data, or its newest ones."""
    recent = airflow.recent_runs(session, [(task.dag_id, task.task_id)])
    known = client.ask(lambda store: store.gates_of({run.attempt_id for run in recent}))
    gates = known.found
    if on is not None:
        gates += _gates_on(session, client, task, on)
    gates = tuple(dict.fromkeys(gates)) or (_name_of(task),)
    wanted = RunsWanted(gates, map_index=task.map_index if task.map_index >= 0 else None)
    if on is not None:
        wanted = replace(
            wanted, since=days_before(on, _DAYS_AROUND), until=days_before(on, -_DAYS_AROUND)
        )
    answer = client.ask(lambda store: records.stored_incidents(store, wanted))
    questions = airflow.questions_of(session, {one.last.attempt.id for one in answer.found})
    incidents = as_airflow_knows(answer.found, questions)
    group = deciding.group_to_show(incidents, on, first)
    return _Found(gates, incidents, group, known.problem or answer.problem)


def _gates_on(
    session: Any, client: StoreClient, task: airflow.TaskRef, on: date
) -> tuple[str, ...]:
    """The names under which a task reported on a date: the link to an incident stays if the gate
    has another name since, or Airflow has deleted the run."""
    wanted = RunsWanted(since=on, until=on)
    columns = ("attempt_id", "gate", "suite", "job")
    rows = client.ask(lambda store: tuple(store.run_rows(wanted, columns))).found
    tasks = airflow.tasks_of(session, {row["attempt_id"] for row in rows})
    return tuple(row["gate"] for row in rows if _task_of(row, tasks) == _name_of(task))


def _name_of(task: airflow.TaskRef) -> str:
    """The name of the gate of a task, unless it has been given another one."""
    return f"{task.dag_id}.{task.task_id}"


def _task_of(row: Row, tasks: Mapping[str, airflow.TaskRef]) -> str:
    """The DAG and the task of a run; the name of its gate if Airflow has deleted the run."""
    ref = tasks.get(row["attempt_id"])
    if ref is not None:
        return f"{ref.dag_id}.{ref.task_id}"
    return gate_without_suite(row["gate"], row["suite"], row.get("job"))


@dataclass(frozen=True, slots=True)
class _Context:
    """The stored context of incidents: their last reports, their rows and where they are, the
    changes before them, and the waivers of their gates."""

    reports: Answer[GateReport]
    judged: Answer[tuple[str, tuple[records.JudgedRows, ...]]]
    changes: Answer[tuple[str, Changes]]
    waivers: Answer[Waiver]

    @classmethod
    def of(cls, client: StoreClient, group: Sequence[Incident], gates: set[str]) -> _Context:
        """Queries the store about incidents, newest first."""
        attempts = {run.attempt.id for one in group for run in one.last_of_each}
        return cls(
            changes=client.ask(lambda store: changes_before(store, group[-1])),
            reports=client.ask(lambda store: store.reports_of(attempts)),
            judged=client.ask(lambda store: tuple(records.judged_rows(store, group).items())),
            waivers=client.ask(lambda store: decisions.waivers_of(store, gates)),
        )

    @property
    def problem(self) -> str | None:
        """The reason why the page is incomplete."""
        return self.reports.problem or self.changes.problem or self.judged.problem


def _page(
    visitor: airflow_users.Visitor, client: StoreClient, found: _Found, task: airflow.TaskRef
) -> Page[IncidentPage]:
    """The page of one of the incidents of a task."""
    group = found.group
    gates = {run.run_key.gate for one in group for run in one.runs}
    last_runs = {run.run_id for one in group for run in one.last_of_each}
    context = _Context.of(client, group, gates)
    reports = {report.run_id: report for report in context.reports.found}
    faults = deciding.faults_of(group, reports)
    now = datetime.now(timezone.utc)
    waivers = [waiver for waiver in context.waivers.found if waiver.is_active(now)]
    clearings = []
    if group[0].is_open:
        refs = tasks_of(visitor.session, group)
        clearings = [
            airflow_clearing.clearing_of(visitor.session, ref) for ref in refs[:_MOST_CLEARINGS]
        ]
    last_run = group[0].last.run_key.dag_run_id
    downstream = deciding.Downstream.of(visitor.session, task.dag_id, task.task_id, last_run)
    page = _incident_page(
        visitor.session, found, task, context, faults, waivers, clearings, downstream
    )
    newest = group[0]
    open_dates = deciding.OpenDates(
        task, group, reports, faults, page.judged, downstream, clearings, page.questions
    )
    return Page(
        "incident.html",
        page,
        has_suites=len(gates) > 1,
        reads_code=visitor.may_read_code(task.dag_id),
        ended=None if newest.is_open else deciding.Ended(newest, page.judged.get(newest.id, ())),
        short=deciding.in_short(open_dates, page.owners, page.contract),
        ways=deciding.ways_out(visitor, client, open_dates),
        table=_dates_table(page, reports, faults),
        timeline=_timeline(page),
        fields={
            "dag_id": task.dag_id,
            "task_id": task.task_id,
            "map_index": task.map_index if task.map_index >= 0 else "",
            "date": newest.date,
            "incident": newest.id,
        },
        waived={(waiver.check, waiver.name): waiver for waiver in waivers},
        latest=now.date() + LONGEST_WAIVER,
        shown=" ".join(sorted(last_runs)),
        token=form_token(visitor.user),
    )


_MOST_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class _Column:
    """An assertion that failed on a date of the group, with its gate."""

    gate: str
    check: str
    name: str
    limit: str


@dataclass(frozen=True, slots=True)
class _Judged:
    """An assertion on a date: its value as shown, a sign for its status, its failing rows."""

    value: str
    sign: str
    is_wrong: bool
    failing: str


@dataclass(frozen=True, slots=True)
class _DateRow:
    """A date of the group. `cells` are its assertions in the order of the columns, None for one
    that its report does not have."""

    incident: Incident
    cells: tuple[_Judged | None, ...]
    held_back: deciding.HeldBack


@dataclass(frozen=True, slots=True)
class _DatesTable:
    """The dates of a group, and the first assertions that failed on any of them."""

    columns: tuple[_Column, ...]
    rows: tuple[_DateRow, ...]


_SIGNS = {Status.FAILED: "✕", Status.ERROR: "?", Status.PASSED: "✓", Status.SKIPPED: "\N{EN DASH}"}


def _dates_table(
    page: IncidentPage, reports: Mapping[str, GateReport], faults: Iterable[deciding.Fault]
) -> _DatesTable:
    """The table of dates and assertions, oldest date first."""
    columns: dict[tuple[str, str, str], _Column] = {}
    for fault in faults:
        verdict, gate = fault.verdict, fault.run.run_key.gate
        key = gate, verdict.check, verdict.name
        columns.setdefault(key, _Column(*key, limit_words(verdict)))
    shown = tuple(columns.values())[:_MOST_COLUMNS]
    rows = [
        _DateRow(
            one,
            tuple(_judged(one, column, reports) for column in shown),
            deciding.HeldBack.of([page.judged.get(one.id, ())]),
        )
        for one in reversed(page.group)
    ]
    return _DatesTable(shown, tuple(rows))


def _judged(
    incident: Incident, column: _Column, reports: Mapping[str, GateReport]
) -> _Judged | None:
    """An assertion in the last bad report on a date."""
    for run in incident.last_of_each:
        report = reports.get(run.run_id)
        if report is None or run.run_key.gate != column.gate:
            continue
        for verdict in report.verdicts:
            if (verdict.check, verdict.name) == (column.check, column.name):
                return _Judged(
                    value=counted_value(verdict),
                    sign=_SIGNS[verdict.status],
                    is_wrong=verdict.status in (Status.FAILED, Status.ERROR),
                    failing=failing_total(verdict, report.datasets),
                )
    return None


@dataclass(frozen=True, slots=True)
class _Event:
    """An entry of the timeline of an incident: a run, a decision, or a note."""

    at: datetime
    kind: str
    who: str = ""
    words: str = ""
    text: str = ""


_MOST_EVENTS = 100
_WORDS_OF_NOTES = {
    ACKNOWLEDGED: "takes it",
    CLOSED: "closed it",
    ACCEPTED: "accepted the data",
    records.ASKED: "asked",
    records.KEPT: "kept it blocked",
}


def _timeline(page: IncidentPage) -> list[_Event]:
    """What happened to the dates of a group, newest first: bad runs, the run that ended it, the
    states that people gave the task in Airflow, and their notes."""
    events = [
        _Event(one.at, "marked", one.author, f"set the task to {one.state} in Airflow", one.note)
        for one in page.marks.values()
    ]
    for one in page.group:
        for run in one.runs:
            again = "" if run is one.first else "again, "
            worst = f"; worst: {run.worst}" if run.worst else ""
            failed = f"{run.failed} of {run.assertions} failed{worst}"
            words = f"{again}data of {one.date}, attempt {run.attempt.number}: {failed}"
            events.append(_Event(run.finished_at, run.outcome.value, words=words))
        if one.repair is not None:
            words = f"data of {one.date}, attempt {one.repair.attempt.number}"
            for rows in deciding.Ended(one, page.judged.get(one.id, ())).promoted:
                assert rows.promoted is not None
                where = f"version {rows.promoted.version} of {rows.target}"
                words += f"; {rows.promoted.rows:,} rows promoted as {where}"
            events.append(_Event(one.repair.finished_at, one.status, words=words))
    for note in page.notes:
        words = _WORDS_OF_NOTES.get(note.kind, "")
        events.append(_Event(note.at, note.kind, note.author, words, note.text))
    events.sort(key=lambda event: event.at, reverse=True)
    return events[:_MOST_EVENTS]


def _incident_page(
    session: Any,
    found: _Found,
    task: airflow.TaskRef,
    context: _Context,
    faults: Sequence[deciding.Fault],
    waivers: list[Waiver],
    clearings: list[airflow_clearing.Clearing],
    downstream: deciding.Downstream,
) -> IncidentPage:
    group = found.group
    newest = group[0]
    gates = {run.run_key.gate for one in group for run in one.runs}
    reports = {report.run_id: report for report in context.reports.found}
    views = [
        view_of_report(reports[run.run_id]) for run in newest.last_of_each if run.run_id in reports
    ]
    contracts = [view.contract for view in views if view.contract is not None]
    questions = airflow.questions_of(session, {one.last.attempt.id for one in group})
    return IncidentPage(
        task=task,
        gate=gates.pop() if len(gates) == 1 else _name_of(task),
        group=group,
        runs=len({(run.run_key.date, run.attempt.id) for one in group for run in one.runs}),
        others=[other for other in found.incidents if other not in group][:_MOST_LISTED],
        judged=dict(context.judged.found),
        questions={
            one.id: questions[attempt]
            for one in group
            if one.is_open and (attempt := one.last.attempt.id) in questions
        },
        clearings=clearings,
        marks=_marks(session, group),
        last=views,
        contract=contracts[0] if contracts else None,
        faults=tuple(faults[:_MOST_FAULTS]),
        more_faults=len(faults[_MOST_FAULTS:]),
        changes=context.changes.found,
        waiting=_waiting(session, task, newest.last.run_key.dag_run_id, downstream.tasks),
        assets=dict(downstream.assets),
        owners=airflow_dags.owners_of(session, task.dag_id),
        waivers=waivers,
        notes=_notes_of(group),
        problem=found.problem or context.problem,
    )


def _marks(session: Any, group: Sequence[Incident]) -> dict[str, airflow_dags.Mark]:
    """The marks by hand of the tasks of incidents, by the id of the incident."""
    known = airflow.tasks_of(session, {one.last.attempt.id for one in group})
    marks = {}
    for one in group[:_MOST_CLEARINGS]:
        ref = known.get(one.last.attempt.id)
        if ref is None:
            continue
        for run in airflow.task_runs(session, ref.dag_id, ref.run_id, ref.task_id, ref.map_index):
            mark = airflow_dags.mark_of(session, run)
            if mark is not None:
                marks[one.id] = mark
    return marks


def _waiting(
    session: Any, task: airflow.TaskRef, run_id: str, after: Sequence[str]
) -> list[tuple[airflow.TaskRef, str]]:
    """The next tasks of a run that Airflow knows, with their states."""
    states = airflow_dags.states_of(session, task.dag_id, run_id, after)
    return [
        (airflow.TaskRef(task.dag_id, run_id, waiting_id, -1), states[waiting_id])
        for waiting_id in after
        if waiting_id in states
    ]


def _notes_of(group: Sequence[Incident]) -> list[records.IncidentNote]:
    """The notes on incidents, oldest first; a note on several slices once."""
    notes = {(note.at, note.author, note.kind): note for one in group for note in one.notes}
    return [notes[key] for key in sorted(notes)][-_MOST_NOTES:]


@router.post("/incident")
def change(visitor: airflow_users.VisitorDep, form: responses.Form) -> Response:
    """Stores an acknowledgement, a comment or the end of incidents, also in Airflow's audit log; or
    clears the tasks of open ones, oldest data first."""
    kinds = {kind: kind for kind in (ACKNOWLEDGED, COMMENT, CLOSED, ACCEPTED, _CLEAR)}
    kind, text = responses.chosen(form, kinds, "kind", _LONGEST_TEXT)
    if day_in(form.get("date", "")) is None:
        raise responses.FOREIGN_FORM
    if kind in (COMMENT, CLOSED, ACCEPTED) and not text:
        noun = "comment" if kind == COMMENT else "reason"
        raise responses.Refused(HTTPStatus.BAD_REQUEST, f"The {noun} is empty.")
    with responses.one_at_a_time():
        return _change(visitor, form, kind, text)


def _change(
    visitor: airflow_users.Visitor, form: Mapping[str, str], kind: str, text: str
) -> Response:
    """Does what a form asks for, unless that is done already."""
    task, on, found = _of_form(visitor, form)
    about = _incidents_in_form(form, found)
    back = _address_of(task, about[0].date, about[0].id)
    if _is_sent_again(form, about, kind):
        return responses.back_to(back)
    if kind != COMMENT:
        _require_open(about)
    if kind == _CLEAR:
        return _clear(visitor, about, form, text, back)
    if kind in (ACCEPTED, CLOSED):
        _require_judged_as_shown(form, about)
    if kind == ACCEPTED:
        return _accept(visitor, about, form, text, back)
    if kind == ACKNOWLEDGED:
        about = _without_owner(about, visitor.name)
        if not about:
            return responses.back_to(back)
    notes = _notes_in_form(form, about, kind, visitor.name, text)
    facts: dict[str, Any] = {
        "gate": notes[0].gate,
        "date": on,
        "kind": kind,
        "text": text,
        "note": notes[0].id,
    }
    if len(about) > 1:
        facts["dates"] = [one.date for one in about]
    write = partial(records.write_notes, notes=notes)
    return responses.recorded_change(visitor, "dqx incident", [task], facts, write, back)


def _incidents_in_form(form: Mapping[str, str], found: _Found) -> list[Incident]:
    """The incidents that a form is about: all incidents of the page, or only one. A date that was
    blocked after the page was made is not among them.

    :raises Refused: there are none, or the store did not respond.
    """
    if found.problem and not found.group:
        raise responses.Refused(HTTPStatus.SERVICE_UNAVAILABLE, found.problem)
    only = form.get("only", "")
    judged = form.get("report", "")
    shown = {*form.get("shown", "").split()}
    among = found.incidents if only else found.group  # it may have left the group since
    about = []
    for one in among:
        runs = {run.run_id for run in one.runs}
        is_named = only in ("", one.id) and (not judged or judged in runs)
        if is_named and (not shown or shown & runs):
            about.append(one)
    if not about and shown and found.group and not only:
        raise responses.Refused(HTTPStatus.CONFLICT, _CHECKED_AGAIN)
    if not about:
        raise _GONE
    return about


_CHECKED_AGAIN = "The data has been checked again: reload the page."


def _require_judged_as_shown(form: Mapping[str, str], about: Sequence[Incident]) -> None:
    """:raises Refused: the data was judged again after the page was made."""
    shown = form.get("shown")
    last = {run.run_id for one in about for run in one.last_of_each}
    if shown is not None and not last <= {*shown.split()}:
        raise responses.Refused(HTTPStatus.CONFLICT, _CHECKED_AGAIN)


def _is_sent_again(form: Mapping[str, str], about: Sequence[Incident], kind: str) -> bool:
    """Whether the notes of a form are stored already, as after a double click."""
    if kind == _CLEAR:
        return False  # Airflow knows whether the tasks run
    own = responses.note_id(form.get("note", ""))
    return all(
        {str(uuid5(own, part)) for part in _parts_of(one, kind)} <= {note.id for note in one.notes}
        for one in about
    )


def _parts_of(incident: Incident, kind: str) -> tuple[str, ...]:
    """The parts of an incident about each of which a form writes a note: its suites if their data
    is accepted, else the slice."""
    if kind == ACCEPTED:
        return tuple(run.run_id for run in incident.last_of_each)
    return (incident.id,)


def _require_open(about: Sequence[Incident]) -> None:
    """:raises Refused: one of the incidents has ended; says how, and by whom."""
    ended = [f"data of {one.date}: {deciding.end_of(one)}" for one in about if not one.is_open]
    if ended:
        raise responses.no_longer_open(ended)


def _without_owner(about: Sequence[Incident], author: str) -> list[Incident]:
    """The incidents that no one has taken.

    :raises Refused: others have taken all of them.
    """
    free = [one for one in about if one.acknowledgement is None]
    notes = [one.acknowledgement for one in about if one.acknowledgement is not None]
    if not free and author not in {note.author for note in notes}:
        raise responses.no_longer_open([deciding.decision_in_words(note) for note in notes[:1]])
    return free


def _notes_in_form(
    form: Mapping[str, str], about: Sequence[Incident], kind: str, author: str, text: str
) -> list[records.IncidentNote]:
    """A note for each slice."""
    own = responses.note_id(form.get("note", ""))
    now = datetime.now(timezone.utc)
    return [
        records.IncidentNote(
            one.last.run_key.gate,
            one.date,
            kind,
            author,
            text,
            one.map_index,
            one.last.slice,
            at=now,
            # The same for a form that is sent twice, and another one for each slice.
            id=str(uuid5(own, one.id)),
        )
        for one in about
    ]


def _clear(
    visitor: airflow_users.Visitor,
    about: Sequence[Incident],
    form: Mapping[str, str],
    text: str,
    back: str,
) -> Response:
    """Clears the gates of incidents; a text in the form becomes a comment on each."""
    tasks = require_clearable(visitor, about)
    dates = [one.date for one in about]
    response = clear_tasks(visitor, tasks, dates, form, "incident", back)
    if text and response.status_code == HTTPStatus.SEE_OTHER:
        notes = _notes_in_form(form, about, COMMENT, visitor.name, text)
        problem = responses.store_client().change(partial(records.write_notes, notes=notes))
        if problem is not None:
            return responses.Notice(
                HTTPStatus.SERVICE_UNAVAILABLE, "Cleared, without the comment", problem
            )
    return response


def _accept(
    visitor: airflow_users.Visitor,
    about: Sequence[Incident],
    form: Mapping[str, str],
    reason: str,
    back: str,
) -> Response:
    """Accepts the data of incidents exactly as it was checked, and clears their gates, which then
    promote it."""
    on_latest = version_in(form)
    tasks = require_clearable(visitor, about)
    accepted = [
        f"data of {one.date}: {deciding.decision_in_words(note)}"
        for one in about
        for note in one.notes
        if note.kind == ACCEPTED and note.run_id in {run.run_id for run in one.last_of_each}
    ]
    if accepted:
        raise responses.no_longer_open([*accepted, "the gate then runs again: clear it if not"])
    author = visitor.name
    made = responses.store_client().ask(lambda store: _acceptances(store, about, author, reason))
    notes = [note for note in made.found if isinstance(note, records.IncidentNote)]
    if made.problem or len(notes) < len(made.found):
        refusal = next((note for note in made.found if isinstance(note, str)), made.problem)
        raise responses.Refused(HTTPStatus.CONFLICT, str(refusal))
    own = responses.note_id(form.get("note", ""))
    # The same ids for a form that is sent twice.
    notes = [replace(note, id=str(uuid5(own, note.run_id or ""))) for note in notes]
    facts = {"dates": [one.date for one in about], "reason": reason}
    facts |= {"judged": [note.run_id for note in notes]}
    write = partial(records.write_notes, notes=notes)
    response = responses.recorded_change(visitor, "dqx accept", tasks, facts, write, back)
    if response.status_code == HTTPStatus.SEE_OTHER:
        airflow_clearing.clear(visitor.session, tasks, on_latest=on_latest)
    return response


def _acceptances(
    store: Any, about: Sequence[Incident], author: str, reason: str
) -> tuple[records.IncidentNote | str, ...]:
    """The notes that accept incidents; for an incident that cannot be accepted, the reason."""
    notes: list[records.IncidentNote | str] = []
    for one in about:
        try:
            notes += decisions.acceptances(store, one, author, reason)
        except RequestError as error:
            notes.append(error.in_one_line)
    return tuple(notes)


def _of_form(
    visitor: airflow_users.Visitor, form: Mapping[str, str]
) -> tuple[airflow.TaskRef, date | None, _Found]:
    """The task of a form, which the user may edit, the date of its data, and its incidents."""
    dag_id = form.get("dag_id", "")
    index = responses.whole_number(form.get("map_index", ""))
    missing = responses.Refused(HTTPStatus.NOT_FOUND, "Gate not found.")
    forbidden = "You do not have permission to edit this DAG."
    responses.require_editor(visitor, [dag_id] if dag_id else [], missing, forbidden)
    task = airflow.TaskRef(dag_id, "", form.get("task_id", ""), -1 if index is None else index)
    on = day_in(form.get("date", ""))
    client = responses.store_client()
    return task, on, _find(visitor.session, client, task, on, form.get("incident", ""))


def _address_of(task: airflow.TaskRef, on: object, first: str) -> str:
    return responses.incident_address(task.dag_id, task.task_id, task.map_index, on, first)


@router.post("/waive")
def waive(visitor: airflow_users.VisitorDep, form: responses.Form) -> Response:
    """Stores a waiver of an assertion of the incident, or ends one, also in the audit log."""
    with responses.one_at_a_time():
        return _waive(visitor, form)


def _waive(visitor: airflow_users.Visitor, form: Mapping[str, str]) -> Response:
    task, on, found = _of_form(visitor, form)
    client = responses.store_client()
    gate = form.get("gate", "")
    if gate not in {run.run_key.gate for one in found.group for run in one.runs}:
        raise _GONE
    back = _address_of(task, on, form.get("incident", ""))
    known = client.ask(lambda store: decisions.waivers_of(store, [gate])).found
    if ended := form.get("waiver", ""):
        own = [one for one in known if one.id == ended]
        if own and own[0].ended_by == visitor.name:
            return responses.back_to(back)
        if own and own[0].ended_by is not None:
            raise responses.no_longer_open([f"the waiver was ended by {own[0].ended_by}"])
        made: tuple[Waiver | str, ...] = tuple(
            replace(one, ended_by=visitor.name, at=datetime.now(timezone.utc)) for one in own
        )
    else:
        made = client.ask(lambda store: (_waiver(store, gate, form, visitor.name),)).found
        waived = _same_waiver(made, known)
        if waived is not None and waived.id in {one.id for one in made if isinstance(one, Waiver)}:
            return responses.back_to(back)
        if waived is not None:
            raise responses.no_longer_open(
                [f"{waived.name} is {waived}, by {waived.author}", "end that waiver first"]
            )
    waivers = [one for one in made if isinstance(one, Waiver)]
    if not waivers:
        raise responses.Refused(
            HTTPStatus.BAD_REQUEST, str(made[0]) if made else "The waiver is unknown."
        )
    facts = {"gate": gate, "assertion": waivers[0].name, "waiver": str(waivers[0])}
    event = "dqx end waiver" if ended else "dqx waive"
    write = partial(decisions.write_waivers, waivers=waivers)
    return responses.recorded_change(visitor, event, [task], facts, write, back)


def _same_waiver(made: Sequence[Waiver | str], known: Iterable[Waiver]) -> Waiver | None:
    """The waiver that is in force for the assertion of a new one; None without one."""
    now = datetime.now(timezone.utc)
    new = {(one.check, one.name) for one in made if isinstance(one, Waiver)}
    for one in known:
        if (one.check, one.name) in new and one.is_active(now):
            return one
    return None


def _waiver(store: Any, gate: str, form: Mapping[str, str], author: str) -> Waiver | str:
    """The waiver in a form, or the mistake in it."""
    until = day_in(form.get("until", ""))
    if until is None:
        return "Give the last day of the waiver."
    assertion = f"{form.get('check', '')}::{form.get('assertion', '')}"
    try:
        waiver = decisions.new_waiver(
            store,
            gate,
            assertion,
            until=until,
            reason=form.get("reason", ""),
            owner=form.get("owner", ""),
            author=author,
            below=form.get("below"),
            above=form.get("above"),
        )
    except RequestError as error:
        return error.in_one_line
    own = responses.note_id(form.get("note", ""))
    # The same for a form that is sent twice.
    return replace(waiver, id=str(uuid5(own, assertion)))
