"""The page of an incident: a gate that blocks, since when, what waits for it, who takes care."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Any
from uuid import UUID, uuid4

from fastapi import APIRouter, Request, Response

from dqx_airflow.plugin.addresses import incident_address
from dqx_airflow.plugin.airflow import (
    READS_DAG,
    GetUserDep,
    SessionDep,
    TaskPlace,
    TaskRun,
    assets_of,
    graph_of_dag,
    may_edit,
    may_read,
    owners_of,
    recent_runs,
    record,
    states_of,
)
from dqx_airflow.plugin.answers import back_to, html_page, known_desk, notice
from dqx_airflow.plugin.board_page import DEPTH
from dqx_airflow.plugin.failing_rows import failing_total
from dqx_airflow.plugin.parameters import day, whole_number
from dqx_airflow.plugin.report_view import ReportView, view_of_report
from dqx_airflow.plugin.store import Desk
from dqx_airflow.plugin.writes import Form, Refused, form_token
from dqx_airflow.results.incident_notes import (
    ACKNOWLEDGED,
    COMMENT,
    IncidentNote,
    notes_from,
    write_note,
)
from dqx_airflow.results.incidents import Incident, incidents_of
from dqx_airflow.results.run_lines import RunsWanted
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Verdict

router = APIRouter()

_MOST_RUNS, _MOST_NOTES, _MOST_LISTED = 1000, 200, 10
_LONGEST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Fault:
    """An assertion that did not pass in the last run. `since` is the first date of the incident
    from which on it never passed, `failing` how many rows fail of how many."""

    verdict: Verdict
    blocks: bool
    since: date
    failing: str


@dataclass(frozen=True, slots=True)
class DatasetVersions:
    """A dataset as the first run of the incident read it, and the version that the last good run
    before it read; None where it is not known."""

    bad: DatasetSnapshot
    good: int | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task downstream of the gate, with its state in the last run of the incident."""

    run: TaskRun
    state: str


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """What is known of an incident of a gate, and the earlier ones, newest first."""

    dag_id: str
    task_id: str
    map_index: int
    gate: str
    incident: Incident
    others: tuple[Incident, ...]
    last: ReportView | None
    faults: tuple[Fault, ...]
    versions: tuple[DatasetVersions, ...]
    waiting: tuple[Waiting, ...]
    assets: Mapping[str, tuple[str, ...]]
    owners: str
    notes: tuple[IncidentNote, ...]

    @property
    def acknowledged(self) -> IncidentNote | None:
        """The last acknowledgement."""
        return next((one for one in reversed(self.notes) if one.kind == ACKNOWLEDGED), None)


@router.get("/incident", dependencies=[READS_DAG])
def incident(
    request: Request,
    session: SessionDep,
    user: GetUserDep,
    dag_id: str = "",
    task_id: str = "",
    instance: str = "",
    on: str = "",
) -> Response:
    """The newest incident of a gate, or the one of a date of its data."""
    index = whole_number(instance)
    map_index = -1 if index is None else index
    desk = known_desk()
    gate, problem = _gate(session, desk, dag_id, task_id)
    session.close()
    incidents: tuple[Incident, ...] = ()
    if gate:
        wanted = RunsWanted([gate], map_index=index)
        runs = desk.ask(lambda store: store.runs(wanted, _MOST_RUNS))
        incidents, problem = incidents_of(runs.found), problem or runs.problem
    chosen = _chosen(incidents, day(on))
    if chosen is None:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No incident",
            problem or f"The results store has no incident of task {task_id} of DAG {dag_id}.",
        )
    last, first, before = chosen.last, chosen.first, chosen.before
    attempts = {one.attempt_id for one in (last, first, before) if one}
    reports = desk.ask(lambda store: store.reports_of(attempts))
    past = desk.ask(
        lambda store: store.past_reports(
            {gate},
            last.run_key.date,
            most=len(chosen.runs),
            map_index=map_index,
        )
    )
    known = {report.run_id: report for report in reports.found}
    notes = desk.ask(
        lambda store: notes_from(
            store.select,
            gate,
            first.run_key.date,
            last.run_key.date,
            map_index,
        )
    )
    after = sorted(graph_of_dag(session, dag_id).after(task_id))
    states = states_of(session, dag_id, last.run_key.dag_run_id, after)
    edits = may_edit(request, user, dag_id)
    newest = known.get(last.run_id)
    page = IncidentPage(
        dag_id,
        task_id,
        map_index,
        gate,
        chosen,
        tuple(one for one in incidents if one is not chosen)[:_MOST_LISTED],
        view_of_report(newest) if newest else None,
        _faults(newest, past.found),
        _versions(known.get(first.run_id), known.get(before.run_id) if before else None),
        tuple(
            Waiting(TaskRun(dag_id, last.run_key.dag_run_id, one, -1, None, None, ""), states[one])
            for one in after
            if one in states
        ),
        assets_of(session, dag_id, [task_id, *after]),
        owners_of(session, dag_id),
        notes.found[-_MOST_NOTES:],
    )
    return html_page(
        "incident.html",
        page=page,
        problem=problem or reports.problem or notes.problem,
        edits=edits,
        read_only=desk.read_only() if edits else None,
        token=form_token(user),
        note_id=uuid4(),
    )


@router.post("/incident")
def say(request: Request, session: SessionDep, user: GetUserDep, form: Form) -> Response:
    """Stores an acknowledgement or a comment, also in Airflow's audit log."""
    dag_id, task_id = form.get("dag_id", ""), form.get("task_id", "")
    kind, text, on = form.get("kind", ""), form.get("text", "").strip(), day(form.get("on", ""))
    index = whole_number(form.get("instance", ""))
    if kind not in (ACKNOWLEDGED, COMMENT) or len(text) > _LONGEST_TEXT or on is None:
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            f"Send acknowledged or comment, with a comment of at most {_LONGEST_TEXT} characters.",
        )
    if kind == COMMENT and not text:
        raise Refused(HTTPStatus.BAD_REQUEST, "The comment is empty.")
    if not dag_id or not may_read(request, user, dag_id):
        raise Refused(HTTPStatus.NOT_FOUND, "Gate not found.")
    if not may_edit(request, user, dag_id):
        raise Refused(HTTPStatus.FORBIDDEN, "You do not have permission to edit this DAG.")
    desk = known_desk()
    gate, problem = _gate(session, desk, dag_id, task_id)
    if not gate:
        raise Refused(HTTPStatus.NOT_FOUND, problem or "Gate not found.")
    note = IncidentNote(
        gate,
        on,
        kind,
        user.get_name(),
        text,
        -1 if index is None else index,
        id=_note_id(form.get("note", "")),
    )
    facts = {"gate": gate, "date": on, "kind": kind, "text": text, "note": note.id}
    record(session, user, "dqx incident", TaskPlace(dag_id, "", task_id, note.map_index), facts)
    session.close()
    problem = desk.change(lambda root, options: write_note(root, note, storage_options=options))
    if problem is not None:
        return notice(HTTPStatus.SERVICE_UNAVAILABLE, "Not stored", problem)
    return back_to(incident_address(dag_id, task_id, note.map_index, on))


def _note_id(text: str) -> str:
    """The id that the page gave the note, so that a form that is sent twice is stored once."""
    try:
        return str(UUID(text))
    except ValueError as error:
        raise Refused(
            HTTPStatus.BAD_REQUEST, "The form does not come from one of these pages."
        ) from error


def _gate(session: Any, desk: Desk, dag_id: str, task_id: str) -> tuple[str, str | None]:
    """The gate on which the newest attempts of a task reported, as the store knows it; of several
    suites the one that stopped the task last."""
    known = recent_runs(session, [(dag_id, task_id)], DEPTH)
    gates = desk.ask(lambda store: store.gates_of({run.attempt_id for run in known}))
    if len(gates.found) < 2:
        return (gates.found[0] if gates.found else ""), gates.problem
    runs = desk.ask(lambda store: store.runs(RunsWanted(gates.found), _MOST_RUNS))
    stops = (one for one in runs.found if one.outcome in (Outcome.BLOCKED, Outcome.BROKEN))
    stopped = next((one.run_key.gate for one in stops), gates.found[0])
    return stopped, gates.problem or runs.problem


def _chosen(incidents: Sequence[Incident], on: date | None) -> Incident | None:
    if on is None:
        return incidents[0] if incidents else None
    of_day = (one for one in incidents if one.first.run_key.date <= on <= one.last.run_key.date)
    return next(of_day, None)


def _faults(newest: GateReport | None, past: Sequence[GateReport]) -> tuple[Fault, ...]:
    """What did not pass in the newest report, what blocks first."""
    if newest is None:
        return ()
    view = view_of_report(newest)
    by_date = sorted(past, key=lambda one: one.run_key.date, reverse=True)
    faults = []
    for verdict in view.verdicts:
        if not view.is_wrong(verdict):
            continue
        since = newest.run_key.date
        for report in by_date:
            same = [
                one
                for one in report.verdicts
                if (one.check, one.name) == (verdict.check, verdict.name)
            ]
            if not same or not view.is_wrong(same[0]):
                break
            since = min(since, report.run_key.date)
        blocks = view.fail_on is None or verdict.can_block(view.fail_on)
        faults.append(Fault(verdict, blocks, since, failing_total(verdict, newest.datasets)))
    return tuple(sorted(faults, key=lambda one: not one.blocks))


def _versions(first: GateReport | None, before: GateReport | None) -> tuple[DatasetVersions, ...]:
    good = {one.name: one.version for one in before.datasets} if before else {}
    return tuple(
        DatasetVersions(one, good.get(one.name)) for one in (first.datasets if first else ())
    )
