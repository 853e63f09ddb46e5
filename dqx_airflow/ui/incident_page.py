"""The page of an incident: the gate, its faults, the waiting tasks, the notes of people; and the
form for notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Request, Response

from dqx_airflow.results.incidents import (
    ACKNOWLEDGED,
    COMMENT,
    Incident,
    IncidentNote,
    incidents_of,
    notes_from,
    write_note,
)
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.ui import airflow, responses
from dqx_airflow.ui.board_page import DEPTH
from dqx_airflow.ui.forms import Form, Refused, chosen, form_token, recorded_change, require_editor
from dqx_airflow.ui.report_view import failing_total, view_of_report
from dqx_airflow.ui.store import StoreClient
from dqx_airflow.values import DatasetSnapshot, GateReport, Verdict


@dataclass(frozen=True, slots=True)
class Fault:
    """An assertion that did not pass in `run`, the last bad run of its suite. `since` is the first
    date of the incident from which on it never passed, `failing` the number of failing rows and of
    all rows."""

    run: RunRow
    verdict: Verdict
    blocks: bool
    since: date
    failing: str


def faults_of(
    incident: Incident, reports_by_run: Mapping[str, GateReport], past: Sequence[GateReport]
) -> tuple[Fault, ...]:
    """What did not pass in the last bad report of each suite, what blocks first."""
    faults: list[Fault] = []
    for run in incident.last_of_each:
        if run.run_id in reports_by_run:
            of_gate = [report for report in past if report.run_key.gate == run.run_key.gate]
            faults += _faults_of_run(run, reports_by_run[run.run_id], of_gate)
    return tuple(sorted(faults, key=lambda fault: not fault.blocks))


def _faults_of_run(run: RunRow, newest: GateReport, past: Sequence[GateReport]) -> Iterator[Fault]:
    view = view_of_report(newest)
    earlier = [report for report in past if report.run_key.date <= run.run_key.date]
    newest_first = sorted(earlier, key=lambda report: report.run_key.date, reverse=True)
    for verdict in view.verdicts:
        if not view.is_wrong(verdict):
            continue
        since = newest.run_key.date
        for report in newest_first:
            same_assertion = [
                earlier_verdict
                for earlier_verdict in report.verdicts
                if (earlier_verdict.check, earlier_verdict.name) == (verdict.check, verdict.name)
            ]
            if not same_assertion or not view.is_wrong(same_assertion[0]):
                break
            since = min(since, report.run_key.date)
        blocks = view.fail_on is None or verdict.can_block(view.fail_on)
        yield Fault(run, verdict, blocks, since, failing_total(verdict, newest.datasets))


def versions_of(
    incident: Incident, reports_by_run: Mapping[str, GateReport]
) -> tuple[tuple[DatasetSnapshot, int | None], ...]:
    """The datasets of all suites, each as the suite that was bad first read it, with the version
    that the last good run before it read; None if that is unknown."""
    versions: dict[str, tuple[DatasetSnapshot, int | None]] = {}
    for run in incident.first_of_each:
        before = incident.before.get(run.run_key.gate)
        report = reports_by_run.get(run.run_id)
        sound = reports_by_run.get(before.run_id) if before else None
        good = {dataset.name: dataset.version for dataset in sound.datasets} if sound else {}
        for dataset in report.datasets if report else ():
            versions.setdefault(dataset.name, (dataset, good.get(dataset.name)))
    return tuple(versions.values())


router = APIRouter()

_MOST_RUNS, _MOST_NOTES, _MOST_LISTED = 1000, 200, 10
_LONGEST_TEXT = 2000
_FOREIGN_FORM = Refused(HTTPStatus.BAD_REQUEST, "The form does not come from one of these pages.")


@router.get("/incident", dependencies=[airflow.READS_DAG])
def incident(
    request: Request,
    session: airflow.SessionDep,
    user: airflow.GetUserDep,
    dag_id: str = "",
    task_id: str = "",
    instance: str = "",
    on: str = "",
) -> Response:
    """The newest incident of a gate, or the one of a date of its data."""
    index = responses.whole_number(instance)
    task = airflow.TaskRef(dag_id, "", task_id, -1 if index is None else index)
    client = responses.store_client()
    gates, problem = _gates(session, client, dag_id, task_id)
    session.close()
    incidents: tuple[Incident, ...] = ()
    if gates:
        wanted = RunsWanted(gates, map_index=index)
        runs = client.ask(lambda store: store.runs(wanted, _MOST_RUNS))
        incidents, problem = incidents_of(runs.found), problem or runs.problem
    selected = _chosen(incidents, responses.day(on))
    if selected is None:
        return responses.notice(
            HTTPStatus.NOT_FOUND,
            "No incident",
            problem or f"The results store has no incident of task {task_id} of DAG {dag_id}.",
        )
    page, problem_inside = _page(session, client, selected, incidents, gates, task)
    edits = airflow.may_edit(request, user, dag_id)
    return responses.html_page(
        "incident.html",
        page=page,
        problem=problem or problem_inside,
        edits=edits,
        read_only=client.read_only() if edits else None,
        token=form_token(user),
        note_id=uuid4(),
    )


def _page(
    session: Any,
    client: StoreClient,
    incident: Incident,
    incidents: Sequence[Incident],
    gates: Sequence[str],
    task: airflow.TaskRef,
) -> tuple[dict[str, Any], str | None]:
    """The page of one of the incidents of a task, and why something is missing."""
    last, index = incident.last.run_key, task.map_index
    bad = {run.run_key.gate for run in incident.runs}
    lines = (*incident.last_of_each, *incident.first_of_each, *incident.before.values())
    attempts = {line.attempt.id for line in lines}
    most, since = len(incident.runs), incident.first.run_key.date
    reports = client.ask(lambda store: store.reports_of(attempts))
    past = client.ask(lambda store: store.past_reports(bad, last.date, most, index))
    notes = client.ask(lambda store: notes_from(store, gates, since, last.date, index))
    reports_by_run = {report.run_id: report for report in reports.found}
    after = sorted(airflow.graph_of_dag(session, task.dag_id).after(task.task_id))
    states = airflow.states_of(session, task.dag_id, last.dag_run_id, after)
    waiting = [
        (
            airflow.TaskRun(task.dag_id, last.dag_run_id, waiting_id, -1, None, None, ""),
            states[waiting_id],
        )
        for waiting_id in after
        if waiting_id in states
    ]
    newest = (reports_by_run.get(run.run_id) for run in incident.last_of_each)
    views = [view_of_report(report) for report in newest if report]
    acknowledged = [note for note in notes.found if note.kind == ACKNOWLEDGED]
    page = {
        "dag_id": task.dag_id,
        "task_id": task.task_id,
        "map_index": index,
        "gate": bad.pop() if len(bad) == 1 else f"{task.dag_id}.{task.task_id}",
        "incident": incident,
        "others": [other for other in incidents if other is not incident][:_MOST_LISTED],
        "last": views,
        "contract": next((view.contract for view in views if view.contract), None),
        "faults": faults_of(incident, reports_by_run, past.found),
        "versions": versions_of(incident, reports_by_run),
        "waiting": waiting,
        "assets": airflow.assets_of(session, task.dag_id, [task.task_id, *after]),
        "owners": airflow.owners_of(session, task.dag_id),
        "notes": notes.found[-_MOST_NOTES:],
        "acknowledged": acknowledged[-1] if acknowledged else None,
    }
    return page, reports.problem or past.problem or notes.problem


@router.post("/incident")
def add_note(
    request: Request, session: airflow.SessionDep, user: airflow.GetUserDep, form: Form
) -> Response:
    """Stores an acknowledgement or a comment, also in Airflow's audit log."""
    dag_id, task_id = form.get("dag_id", ""), form.get("task_id", "")
    kinds = {ACKNOWLEDGED: ACKNOWLEDGED, COMMENT: COMMENT}
    kind, text = chosen(form, kinds, "kind", "text", _LONGEST_TEXT)
    on = responses.day(form.get("on", ""))
    index = responses.whole_number(form.get("instance", ""))
    if on is None:
        raise _FOREIGN_FORM
    if kind == COMMENT and not text:
        raise Refused(HTTPStatus.BAD_REQUEST, "The comment is empty.")
    dags = [dag_id] if dag_id else []
    forbidden = "You do not have permission to edit this DAG."
    require_editor(request, user, dags, Refused(HTTPStatus.NOT_FOUND, "Gate not found."), forbidden)
    gates, problem = _gates(session, responses.store_client(), dag_id, task_id)
    if not gates:
        raise Refused(HTTPStatus.NOT_FOUND, problem or "Gate not found.")
    note = IncidentNote(
        gates[0],
        on,
        kind,
        user.get_name(),
        text,
        -1 if index is None else index,
        id=_note_id(form.get("note", "")),
    )
    return recorded_change(
        session,
        user,
        "dqx incident",
        [airflow.TaskRef(dag_id, "", task_id, note.map_index)],
        {"gate": note.gate, "date": on, "kind": kind, "text": text, "note": note.id},
        lambda results: write_note(results, note),
        responses.incident_address(dag_id, task_id, note.map_index, on),
    )


def _note_id(text: str) -> str:
    """The id that the page assigned to the note, so that a form that is sent twice is stored
    once."""
    try:
        return str(UUID(text))
    except ValueError as error:
        raise _FOREIGN_FORM from error


def _gates(
    session: Any, client: StoreClient, dag_id: str, task_id: str
) -> tuple[tuple[str, ...], str | None]:
    """The names under which the newest attempts of a task reported, one for each suite; and why
    there are none."""
    recent = airflow.recent_runs(session, [(dag_id, task_id)], DEPTH)
    gates = client.ask(lambda store: store.gates_of({run.attempt_id for run in recent}))
    return tuple(gates.found), gates.problem


def _chosen(incidents: Sequence[Incident], on: date | None) -> Incident | None:
    """The incident of a date of its data; the newest one without a date."""
    if on is None:
        return incidents[0] if incidents else None
    for incident in incidents:
        if incident.first.run_key.date <= on <= incident.last.run_key.date:
            return incident
    return None
