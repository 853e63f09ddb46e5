"""The page of an incident: the slices that are blocked, their faults, the waiting tasks, the notes
of people; and the form for notes, for closing, and for clearing the tasks. The page of open slices:
every date that is still blocked, and the button that clears them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from functools import cache, partial
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID, uuid4, uuid5

from fastapi import Response

from dqx_airflow.errors import RequestError
from dqx_airflow.results import decisions
from dqx_airflow.results import incidents as records
from dqx_airflow.results.incidents import (
    ACCEPTED,
    ACKNOWLEDGED,
    CLOSED,
    COMMENT,
    Changes,
    Incident,
    LackingRows,
    changes_before,
    lacking_rows,
    open_slices,
)
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.schema import RunRow
from dqx_airflow.ui import airflow, responses
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.report_view import ReportView, failing_total, view_of_report
from dqx_airflow.ui.responses import Form, Page, Refused, form_token
from dqx_airflow.ui.store import Answer, StoreClient
from dqx_airflow.values import EnforcedContract, GateReport, Status, Verdict
from dqx_airflow.values.report import LONGEST_WAIVER, Waiver
from dqx_airflow.values.request import day_in, days_before


@dataclass(frozen=True, slots=True)
class Fault:
    """An assertion that did not pass in `run`, the last bad run of its suite for a slice. `failing`
    is the number of failing rows and of all rows."""

    run: RunRow
    verdict: Verdict
    blocks: bool
    failing: str


def faults_of(
    incidents: Sequence[Incident], reports: Mapping[str, GateReport]
) -> tuple[Fault, ...]:
    """The assertions that did not pass in the last bad reports of all slices: blocking ones first,
    then by severity, each with its dates, newest first."""
    runs = (run for incident in incidents for run in incident.last_of_each)
    found = [
        fault
        for run in runs
        if run.run_id in reports
        for fault in _faults(run, reports[run.run_id])
    ]
    found.sort(key=lambda fault: fault.run.run_key.date, reverse=True)
    return tuple(sorted(found, key=_rank))


def _rank(fault: Fault) -> tuple[object, ...]:
    verdict = fault.verdict
    return not fault.blocks, verdict.severity.value, verdict.check, verdict.name


def _faults(run: RunRow, report: GateReport) -> Iterator[Fault]:
    view = view_of_report(report)
    for verdict in view.verdicts:
        if view.is_wrong(verdict):
            blocks = view.fail_on is None or verdict.can_block(view.fail_on)
            yield Fault(run, verdict, blocks, failing_total(verdict, report.datasets))


router = PageRouter()

_MOST_NOTES, _MOST_LISTED, _MOST_FAULTS = 200, 50, 200
_LONGEST_TEXT = 2000
_DAYS_AROUND = 60
_CLEAR = "clear"
_FOREIGN_FORM = responses.Refused(
    HTTPStatus.BAD_REQUEST, "The form does not come from one of these pages."
)
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

    `gate` is the name in the results, `lacking` what targets lack by the id of the incident, `last`
    the reports of the newest, `changes` what changed for each gate since its last good run,
    `waiting` the next tasks with their states, and `assets` the DAGs that wait for each asset.
    """

    task: airflow.TaskRef
    gate: str
    group: tuple[Incident, ...]
    runs: int
    others: list[Incident]
    lacking: dict[str, tuple[records.LackingRows, ...]]
    last: list[ReportView]
    contract: EnforcedContract | None
    faults: tuple[Fault, ...]
    more_faults: int
    changes: tuple[tuple[str, Changes], ...]
    waiting: list[tuple[airflow.TaskRef, str]]
    assets: dict[str, tuple[str, ...]]
    owners: str
    waivers: list[Waiver]
    notes: list[records.IncidentNote]
    problem: str | None


@router.get("/incident", dependencies=[airflow.READS_DAG])
def incident(
    visitor: airflow.VisitorDep,
    dag_id: str = "",
    task_id: str = "",
    instance: str = "",
    on: str = "",
    first: str = "",
) -> responses.Page[IncidentPage] | Response:
    """The newest incident of a gate, or that of a date of its data, also after its end."""
    index = responses.whole_number(instance)
    task = airflow.TaskRef(dag_id, "", task_id, -1 if index is None else index)
    client = responses.store_client()
    found = _find(visitor.session, client, task, day_in(on), first)
    visitor.session.close()
    if not found.group:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No incident",
            found.problem
            or f"The results store has no incident of task {task_id} of DAG {dag_id}"
            f"{f' for the data of {on}' if on else ''}: it never had one, its "
            "runs were pruned, or it has another results root: see `dql incidents --root ROOT`.",
        )
    return _page(visitor, client, found, task)


def _find(
    session: Any, client: StoreClient, task: airflow.TaskRef, on: date | None, first: str
) -> _Found:
    """The incidents of a task around a date of its data, or its newest ones."""
    name = f"{task.dag_id}.{task.task_id}"
    recent = airflow.recent_runs(session, [(task.dag_id, task.task_id)])
    known = client.ask(lambda store: store.gates_of({run.attempt_id for run in recent}))
    gates = known.found
    if on is not None:
        # The link stays if the gate has another name since, or Airflow has deleted the run.
        of_date, columns = RunsWanted(since=on, until=on), ("attempt_id", "gate")
        rows = client.ask(lambda store: tuple(store.run_rows(of_date, columns))).found
        tasks = airflow.tasks_of(session, {row["attempt_id"] for row in rows})
        gates += tuple(row["gate"] for row in rows if _task_of(row, tasks) == name)
    gates = tuple(dict.fromkeys(gates)) or (name,)
    wanted = RunsWanted(gates, map_index=task.map_index if task.map_index >= 0 else None)
    if on is not None:
        wanted = replace(
            wanted, since=days_before(on, _DAYS_AROUND), until=days_before(on, -_DAYS_AROUND)
        )
    answer = client.ask(lambda store: records.stored_incidents(store, wanted))
    incidents = answer.found
    at_date = [one for one in incidents if on in (None, one.date) and first in ("", one.id)]
    at_date.sort(key=lambda one: not one.is_open)  # stable: the newest of the open ones first
    group: tuple[Incident, ...] = ()
    if at_date:
        chosen_one = at_date[0]
        open_groups = records.groups_of(one for one in incidents if one.is_open)
        group = next((own for own in open_groups if chosen_one in own), (chosen_one,))
    return _Found(gates, incidents, group, known.problem or answer.problem)


def _task_of(row: Mapping[str, str], tasks: Mapping[str, airflow.TaskRef]) -> str:
    """The DAG and the task of a run; the name of its gate if Airflow has deleted the run."""
    ref = tasks.get(row["attempt_id"])
    return f"{ref.dag_id}.{ref.task_id}" if ref else row["gate"].partition("/")[0]


def _page(
    visitor: airflow.Visitor, client: StoreClient, found: _Found, task: airflow.TaskRef
) -> Page[IncidentPage]:
    """The page of one of the incidents of a task."""
    session, group = visitor.session, found.group
    newest, oldest = group[0], group[-1]
    last, bad = newest.last.run_key, {run.run_key.gate for one in group for run in one.runs}
    changes = client.ask(lambda store: changes_before(store, oldest))
    attempts = {run.attempt.id for one in group for run in one.last_of_each}
    answer = client.ask(lambda store: store.reports_of(attempts))
    lacking = client.ask(lambda store: tuple(records.lacking_rows(store, group).items()))
    own_ids = {run.run_id for one in group for run in one.last_of_each}
    waivers = client.ask(lambda store: decisions.waivers_of(store, bad))
    newest_reports = [report for report in answer.found if report.run_id in own_ids]
    now = datetime.now(timezone.utc)
    reports = {report.run_id: report for report in answer.found}
    after = sorted(airflow.graph_of_dag(session, task.dag_id).after(task.task_id))
    states = airflow.states_of(session, task.dag_id, last.dag_run_id, after)
    waiting = [
        (airflow.TaskRef(task.dag_id, last.dag_run_id, waiting_id, -1), states[waiting_id])
        for waiting_id in after
        if waiting_id in states
    ]
    views = [
        view_of_report(reports[run.run_id]) for run in newest.last_of_each if run.run_id in reports
    ]
    # A note on several slices is shown once.
    notes = {(note.at, note.author, note.kind): note for one in group for note in one.notes}
    faults = faults_of(group, reports)
    active = [one for one in waivers.found if one.is_active(now)]
    page = IncidentPage(
        task=task,
        gate=next(iter(bad)) if len(bad) == 1 else f"{task.dag_id}.{task.task_id}",
        group=group,
        runs=len({(run.run_key.date, run.attempt.id) for one in group for run in one.runs}),
        others=[other for other in found.incidents if other not in group][:_MOST_LISTED],
        lacking=dict(lacking.found),
        last=views,
        contract=next((view.contract for view in views if view.contract), None),
        faults=faults[:_MOST_FAULTS],
        more_faults=len(faults[_MOST_FAULTS:]),
        changes=changes.found,
        waiting=waiting,
        assets=airflow.assets_of(session, task.dag_id, [task.task_id, *after]),
        owners=airflow.owners_of(session, task.dag_id),
        waivers=active,
        notes=[notes[key] for key in sorted(notes)][-_MOST_NOTES:],
        problem=found.problem or answer.problem or changes.problem or lacking.problem,
    )
    edits = visitor.may_edit(task.dag_id)
    return Page(
        "incident.html",
        page,
        has_suites=len(bad) > 1,
        waivable={
            (fault.run.run_key.gate, fault.verdict.check, fault.verdict.name): fault
            for fault in faults
            if fault.verdict.status is Status.FAILED and not fault.verdict.is_protected
        },
        waived={(one.check, one.name): one for one in active},
        latest=now.date() + LONGEST_WAIVER,
        shown=" ".join(sorted(own_ids)),
        acceptable=not all(map(decisions.why_not_acceptable, newest_reports)),
        edits=edits,
        clears=visitor.may_clear(task.dag_id),
        read_only=client.read_only() if edits else None,
        token=form_token(visitor.user),
        note_id=uuid4(),
    )


@router.post("/incident")
def change(visitor: airflow.VisitorDep, form: responses.Form) -> Response:
    """Stores an acknowledgement, a comment or the end of incidents, also in Airflow's audit log; or
    clears the tasks of open ones, oldest data first."""
    kinds = {kind: kind for kind in (ACKNOWLEDGED, COMMENT, CLOSED, ACCEPTED, _CLEAR)}
    kind, text = responses.chosen(form, kinds, "kind", "text", _LONGEST_TEXT)
    if day_in(form.get("on", "")) is None:
        raise _FOREIGN_FORM
    if kind in (COMMENT, CLOSED, ACCEPTED) and not text:
        noun = "comment" if kind == COMMENT else "reason"
        raise responses.Refused(HTTPStatus.BAD_REQUEST, f"The {noun} is empty.")
    task, on, found = _of_form(visitor, form)
    if found.problem and not found.group:
        raise responses.Refused(HTTPStatus.SERVICE_UNAVAILABLE, found.problem)
    only, judged = form.get("only", ""), form.get("report", "")
    about = [
        one
        for one in found.group
        if only in ("", one.id) and judged in ("", *(run.run_id for run in one.last_of_each))
    ]
    if not about:
        raise _GONE
    shown, last = form.get("shown"), {run.run_id for one in about for run in one.last_of_each}
    if kind == ACCEPTED and shown is not None and not last <= {*shown.split()}:
        again = "The data has been judged again: reload the page."
        raise responses.Refused(HTTPStatus.CONFLICT, again)
    back = _address_of(task, about[0].date, about[0].id)
    if kind == _CLEAR:
        return clear_tasks(visitor, about, back)
    if kind == ACCEPTED:
        return _accept(visitor, about, text, back)
    own, now = _note_id(form.get("note", "")), datetime.now(timezone.utc)
    notes = [
        records.IncidentNote(
            one.last.run_key.gate,
            one.date,
            kind,
            visitor.name,
            text,
            one.map_index,
            one.last.slice,
            at=now,
            # The same for a form that is sent twice, and another one for each slice.
            id=str(own if len(about) == 1 else uuid5(own, one.id)),
        )
        for one in about
    ]
    dates = [one.date for one in about]
    facts: dict[str, Any] = {
        "gate": notes[0].gate,
        "date": on,
        "kind": kind,
        "text": text,
        "note": notes[0].id,
    }
    facts |= {"dates": dates} if len(dates) > 1 else {}
    write = partial(records.write_notes, notes=notes)
    return responses.recorded_change(visitor, "dqx incident", [task], facts, write, back)


def _accept(
    visitor: airflow.Visitor, about: Sequence[Incident], reason: str, back: str
) -> Response:
    """Accepts the data of incidents exactly as it was judged, and clears their gates, which then
    promote it."""
    tasks = require_clearable(visitor, about)
    author = visitor.name
    made = responses.store_client().ask(lambda store: _acceptances(store, about, author, reason))
    notes = [note for note in made.found if isinstance(note, records.IncidentNote)]
    if made.problem or len(notes) < len(made.found):
        refusal = next((note for note in made.found if isinstance(note, str)), made.problem)
        raise responses.Refused(HTTPStatus.CONFLICT, str(refusal))
    facts = {"dates": [one.date for one in about], "reason": reason}
    facts |= {"judged": [note.run_id for note in notes]}
    write = partial(records.write_notes, notes=notes)
    response = responses.recorded_change(visitor, "dqx accept", tasks, facts, write, back)
    if response.status_code == HTTPStatus.SEE_OTHER:
        airflow.clear(visitor.session, tasks)
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
    visitor: airflow.Visitor, form: Mapping[str, str]
) -> tuple[airflow.TaskRef, date | None, _Found]:
    """The task of a form, which the user may edit, the date of its data, and its incidents."""
    dag_id, index = form.get("dag_id", ""), responses.whole_number(form.get("instance", ""))
    missing = responses.Refused(HTTPStatus.NOT_FOUND, "Gate not found.")
    forbidden = "You do not have permission to edit this DAG."
    responses.require_editor(visitor, [dag_id] if dag_id else [], missing, forbidden)
    task = airflow.TaskRef(dag_id, "", form.get("task_id", ""), -1 if index is None else index)
    on, client = day_in(form.get("on", "")), responses.store_client()
    return task, on, _find(visitor.session, client, task, on, form.get("first", ""))


def _address_of(task: airflow.TaskRef, on: object, first: str) -> str:
    return responses.incident_address(task.dag_id, task.task_id, task.map_index, on, first)


@router.post("/waive")
def waive(visitor: airflow.VisitorDep, form: responses.Form) -> Response:
    """Stores a waiver of an assertion of the incident, or ends one, also in the audit log."""
    task, on, found = _of_form(visitor, form)
    client, gate = responses.store_client(), form.get("gate", "")
    if gate not in {run.run_key.gate for one in found.group for run in one.runs}:
        raise _GONE
    if ended := form.get("end", ""):
        known = client.ask(lambda store: decisions.waivers_of(store, [gate])).found
        own = [one for one in known if one.id == ended]
        made: tuple[Waiver | str, ...] = tuple(
            replace(one, ended_by=visitor.name, at=datetime.now(timezone.utc)) for one in own
        )
    else:
        made = client.ask(lambda store: (_waiver(store, gate, form, visitor.name),)).found
    waivers = [one for one in made if isinstance(one, Waiver)]
    if not waivers:
        raise responses.Refused(
            HTTPStatus.BAD_REQUEST, str(made[0]) if made else "The waiver is unknown."
        )
    facts = {"gate": gate, "assertion": waivers[0].name, "waiver": str(waivers[0])}
    event = "dqx end waiver" if ended else "dqx waive"
    write = partial(decisions.write_waivers, waivers=waivers)
    back = _address_of(task, on, form.get("first", ""))
    return responses.recorded_change(visitor, event, [task], facts, write, back)


def _waiver(store: Any, gate: str, form: Mapping[str, str], author: str) -> Waiver | str:
    """The waiver in a form, or the mistake in it."""
    until = day_in(form.get("until", ""))
    if until is None:
        return "Give the last day of the waiver."
    assertion = f"{form.get('check', '')}::{form.get('name', '')}"
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
    own = _note_id(form.get("note", ""))
    # The same for a form that is sent twice.
    return replace(waiver, id=str(uuid5(own, assertion)))


def _note_id(text: str) -> UUID:
    """The id that the page assigned to the note, so that a form that is sent twice is stored
    once."""
    try:
        return UUID(text)
    except ValueError as error:
        raise _FOREIGN_FORM from error


def clear_tasks(visitor: airflow.Visitor, about: Sequence[Incident], back: str) -> Response:
    """Clears the gates of open slices in Airflow, oldest data first, each with everything
    downstream, so that the slices are judged again."""
    tasks = require_clearable(visitor, about)
    for task in tasks:
        visitor.record("dqx clear", task, {"dates": [one.date for one in about]})
    if not airflow.clear(visitor.session, tasks):
        return responses.Notice(
            HTTPStatus.CONFLICT, "Nothing to clear", "All of these tasks are waiting or running."
        )
    return responses.back_to(back)


def require_clearable(
    visitor: airflow.Visitor, about: Sequence[Incident]
) -> tuple[airflow.TaskRef, ...]:
    """The tasks of incidents, all of which the user may clear.

    :raises Refused: there are none, or the user may not.
    """
    tasks = tasks_of(visitor.session, about)
    if not tasks:
        gone = "Airflow no longer knows these runs: trigger the DAG for the dates."
        raise Refused(HTTPStatus.NOT_FOUND, gone)
    for dag_id in {task.dag_id for task in tasks}:
        if not visitor.may_clear(dag_id):
            raise Refused(HTTPStatus.FORBIDDEN, f"You may not clear tasks of DAG {dag_id}.")
    return tasks


def tasks_of(session: Any, incidents: Sequence[Incident]) -> tuple[airflow.TaskRef, ...]:
    """The task instances of incidents that Airflow still knows, oldest data first, each once."""
    known = airflow.tasks_of(session, {one.last.attempt.id for one in incidents})
    ordered = sorted(incidents, key=lambda one: (one.date, one.map_index))
    refs = (known.get(one.last.attempt.id) for one in ordered)
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))


@dataclass(frozen=True, slots=True)
class OpenSlice:
    """An open slice on the page of all of them, with its task if Airflow still knows it."""

    incident: Incident
    dag_id: str
    task_id: str
    task: airflow.TaskRef | None
    lacking: tuple[LackingRows, ...] = ()


def open_of(
    session: Any, client: StoreClient, tasks: airflow.GateTasks
) -> tuple[tuple[OpenSlice, ...], str | None]:
    """The open slices of the gates that a user may read, oldest data first; and the problem if the
    store does not respond."""
    answer: Answer[Incident] = client.ask(open_slices)
    known = airflow.tasks_of(session, {one.last.attempt.id for one in answer.found})
    readable = {f"{dag_id}.{task_id}": (dag_id, task_id) for dag_id, task_id in tasks.tasks}
    found = []
    for one in answer.found:
        ref = known.get(one.last.attempt.id)
        gate = one.last.run_key.gate
        place = (ref.dag_id, ref.task_id) if ref else readable.get(gate.partition("/")[0])
        if place in tasks.tasks:
            found.append(OpenSlice(one, *place, ref))
    return tuple(found), answer.problem


_MOST_SLICES = 500


class SlicesPage(NamedTuple):
    """The oldest open slices, and how many there are."""

    rows: list[OpenSlice]
    total: int
    more: int
    problem: str | None


@router.get("/slices")
def slices(visitor: airflow.VisitorDep, tasks: airflow.TasksDep) -> Page[SlicesPage]:
    """Every date that is still blocked in the gates that the user may read, oldest first."""
    client = responses.store_client()
    found, problem = open_of(visitor.session, client, tasks)
    visitor.session.close()
    shown = found[:_MOST_SLICES]
    lacking = client.ask(
        lambda store: tuple(lacking_rows(store, [one.incident for one in shown]).items())
    )
    missing = dict(lacking.found)
    rows = [replace(one, lacking=missing.get(one.incident.id, ())) for one in shown]
    gates: dict[tuple[str, str], list[OpenSlice]] = {}
    for one in rows:
        gates.setdefault((one.dag_id, one.task_id), []).append(one)
    clears = {dag_id for dag_id, _ in gates if visitor.may_clear(dag_id)}
    more = len(found) - len(shown)
    return Page(
        "slices.html",
        SlicesPage(rows, len(found), more, problem or lacking.problem),
        gates=gates,
        clears=clears,
        can_clear=sum(one.task is not None and one.dag_id in clears for one in rows),
        token=form_token(visitor.user),
    )


@router.post("/slices")
def clear_slices(visitor: airflow.VisitorDep, tasks: airflow.TasksDep, form: Form) -> Response:
    """Clears all open slices that the user may clear, or those of one gate, oldest data first."""
    found, problem = open_of(visitor.session, responses.store_client(), tasks)
    wanted = form.get("dag_id", ""), form.get("task_id", "")
    about = [one for one in found if wanted in (("", ""), (one.dag_id, one.task_id))]
    if problem is not None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, problem)
    if not about:
        raise Refused(HTTPStatus.NOT_FOUND, "No open slice of a gate that you may read.")
    may_clear = cache(visitor.may_clear)
    allowed = [one.incident for one in about if may_clear(one.dag_id)]
    if not allowed:
        raise Refused(HTTPStatus.FORBIDDEN, "You may not clear tasks of these DAGs.")
    return clear_tasks(visitor, allowed, responses.address("slices"))
