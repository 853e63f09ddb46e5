"""The routes of a gate: its tab, its failing rows as a file, and the list of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from dqx_airflow.plugin.addresses import report_name
from dqx_airflow.plugin.airflow import (
    MOST_INSTANCES,
    READS_CODE,
    READS_DAG,
    GetUserDep,
    SessionDep,
    TaskRun,
    attempts_of,
    ended_runs,
    may_edit,
    recent_runs,
    task_runs,
)
from dqx_airflow.plugin.board_page import DEPTH, gate_rows
from dqx_airflow.plugin.failing_rows import csv_of
from dqx_airflow.plugin.gate_page import GateFilters, GatePage, chosen_report, gate_page
from dqx_airflow.plugin.paging import Paging
from dqx_airflow.plugin.parameters import PageNumber, whole_number
from dqx_airflow.plugin.report_view import view_of_summary
from dqx_airflow.plugin.responses import html_page, notice, store_client
from dqx_airflow.plugin.runs_page import (
    RUNS_OF_A_PAGE,
    RunFilters,
    RunsPage,
    rows_of,
)
from dqx_airflow.plugin.stoppers import STOPPED_STATES, stopped_by
from dqx_airflow.plugin.store import Answer, StoreClient
from dqx_airflow.plugin.writes import form_token
from dqx_airflow.results.labels import Label
from dqx_airflow.results.recent_alerts import labels_of
from dqx_airflow.values import GateReport, Outcome, SourceFile

router = APIRouter()

_MOST_SILENT = 20


@dataclass(frozen=True, slots=True)
class RequestedInstance:
    """The task instance and the attempt in an address. `map_index` is `{MAP_INDEX}`, as Airflow
    writes it, if the task is not mapped."""

    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    map_index: str = ""
    attempt: str = ""

    def runs(self, session: SessionDep) -> tuple[TaskRun, ...]:
        """The instances that Airflow knows: several without the map index of a mapped task."""
        index = whole_number(self.map_index)
        return task_runs(session, self.dag_id, self.run_id, self.task_id, index)

    def forgotten(self) -> TaskRun:
        """The same instance for a task that Airflow no longer knows."""
        index = whole_number(self.map_index)
        own = self.attempt.partition("/")[0]
        at = -1 if index is None else index
        return TaskRun(self.dag_id, self.run_id, self.task_id, at, None, None, own)


@dataclass(frozen=True, slots=True)
class AttemptReports:
    """The reports of the attempts of a task instance, and the one to display."""

    reports: tuple[GateReport, ...]
    chosen: GateReport | None
    problem: str | None


@router.get("/gate", dependencies=[READS_DAG])
def gate(
    request: Request,
    session: SessionDep,
    user: GetUserDep,
    reads_code: READS_CODE,
    instance: Annotated[RequestedInstance, Depends()],
    filters: Annotated[GateFilters, Depends()],
) -> Response:
    """The tab of a task instance."""
    runs = instance.runs(session)
    if len(runs) > 1:
        session.close()
        return _mapped(runs)
    run = runs[0] if runs else instance.forgotten()
    if runs and view_of_summary(run.pushed) is None and "Gate" not in (run.operator or ""):
        return html_page("not_a_gate.html", run=run)
    stoppers = stopped_by(run, session) if run.state in STOPPED_STATES else ()
    edits = may_edit(request, user, instance.dag_id)
    client = store_client()
    attempt_reports = reported(
        session, client, run, is_forgotten=not runs, attempt=instance.attempt
    )
    past: Answer[GateReport] = Answer()
    sources: Answer[SourceFile] = Answer()
    labels: Answer[Label] = Answer()
    if attempt_reports.chosen is not None:
        report, key = attempt_reports.chosen, attempt_reports.chosen.run_key
        labels = client.ask(lambda store: labels_of(store.select, key))
        past = client.ask(
            lambda store: store.past_reports({key.gate}, key.date, map_index=key.map_index)
        )
        if reads_code:
            sources = client.ask(lambda store: store.sources_of(report))
    page = gate_page(
        run, attempt_reports.reports, attempt_reports.chosen, past.found, sources.found, filters
    )
    if page is None and not runs:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such task instance",
            f"Task {instance.task_id} has no instance in run {instance.run_id} of DAG "
            f"{instance.dag_id}: it was removed, or has not been scheduled yet.",
        )
    if page is None:
        return html_page(
            "no_report.html", run=run, stoppers=stoppers, problem=attempt_reports.problem
        )
    return html_page(
        "gate.html",
        run=run,
        is_forgotten=not runs,
        page=page,
        attempt=_name_of(attempt_reports.chosen, page)
        if attempt_reports.chosen and instance.attempt
        else "",
        problem=attempt_reports.problem or past.problem or sources.problem,
        root=client.root or "",
        labels={(label.check, label.name): label for label in labels.found},
        edits=edits,
        read_only=client.read_only() if edits and attempt_reports.chosen else None,
        token=form_token(user),
    )


@router.get("/rows.csv", dependencies=[READS_DAG])
def failing_rows(
    session: SessionDep,
    instance: Annotated[RequestedInstance, Depends()],
    check: str = "",
    name: str = "",
) -> Response:
    """The stored failing rows of an assertion, all columns, as a file for spreadsheets."""
    runs = instance.runs(session)
    run = runs[0] if runs else instance.forgotten()
    attempt_reports = reported(
        session, store_client(), run, is_forgotten=not runs, attempt=instance.attempt
    )
    verdicts = attempt_reports.chosen.verdicts if attempt_reports.chosen and len(runs) < 2 else ()
    rows = next(
        (
            verdict.failing_rows
            for verdict in verdicts
            if (verdict.check, verdict.name) == (check, name)
        ),
        (),
    )
    if not rows:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No failing rows",
            attempt_reports.problem or "The results store has no failing rows of this assertion.",
        )
    return Response(
        csv_of(rows),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="failing_rows.csv"'},
    )


@router.get("/runs", dependencies=[READS_DAG])
def runs_of_gate(
    session: SessionDep,
    filters: Annotated[RunFilters, Depends()],
    page: PageNumber,
    dag_id: str = "",
    task_id: str = "",
) -> Response:
    """All runs of a gate."""
    recent = recent_runs(session, [(dag_id, task_id)], DEPTH)
    if not any(run.is_gate for run in recent):
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such gate",
            f"Task {task_id} of DAG {dag_id} has not reported as a gate.",
        )
    (row,) = gate_rows(recent, {})
    ended = ended_runs(session, dag_id, task_id)
    silent = tuple(run for run in ended if view_of_summary(run.pushed) is None)[:_MOST_SILENT]
    session.close()
    client = store_client()
    gates = client.ask(lambda store: store.gates_of({run.attempt_id for run in recent}))
    wanted = filters.wanted(gates.found)
    counted = client.ask(lambda store: store.count_runs(wanted))
    counts = dict(counted.found)
    total = sum(counts.values()) if wanted.outcome is None else counts.get(wanted.outcome, 0)
    paging = Paging.of(page, total, RUNS_OF_A_PAGE)
    lines = client.ask(lambda store: store.runs(wanted, RUNS_OF_A_PAGE, paging.skipped))
    return html_page(
        "runs.html",
        page=RunsPage(
            dag_id,
            task_id,
            row.gate,
            rows_of(dag_id, task_id, lines.found),
            paging.number,
            paging.pages,
            total,
            {outcome.value: counts.get(outcome.value, 0) for outcome in Outcome},
            filters,
            any(run.map_index >= 0 for run in recent),
            silent,
            () if gates.found else row.cells,
        ),
        problem=gates.problem or counted.problem or lines.problem,
    )


def reported(
    session: SessionDep, client: StoreClient, run: TaskRun, *, is_forgotten: bool, attempt: str
) -> AttemptReports:
    """The reports of a task instance; of a forgotten one those of the attempt, if it belonged to
    the same gate. The session is closed before the query to the store."""
    if not is_forgotten:
        attempts = attempts_of(session, run)
    elif _is_of_task(session, client, run):
        attempts = frozenset([run.attempt_id])
    else:
        attempts = frozenset()
    session.close()
    answer = client.ask(lambda store: store.reports_of(attempts))
    return AttemptReports(
        answer.found, chosen_report(run.pushed, answer.found, attempt), answer.problem
    )


def _name_of(chosen: GateReport, page: GatePage) -> str:
    """The identifier of the displayed report in addresses."""
    return report_name(chosen.attempt.id, chosen.run_id if page.parts else "")


def _is_of_task(session: SessionDep, client: StoreClient, run: TaskRun) -> bool:
    """Whether an attempt that Airflow has forgotten belonged to the gate of this task: attempts
    that Airflow still knows as attempts of the task reported on that gate."""
    if not run.attempt_id:
        return False
    recent = recent_runs(session, [(run.dag_id, run.task_id)], DEPTH)
    attempts = {recent_run.attempt_id for recent_run in recent}
    own = client.ask(lambda store: store.gates_of({run.attempt_id})).found
    return bool(own) and set(own) <= set(client.ask(lambda store: store.gates_of(attempts)).found)


def _mapped(runs: tuple[TaskRun, ...]) -> Response:
    """The instances of a mapped task to choose from."""
    (row,) = gate_rows(runs, {})
    instances = [(run, gate_rows([run], {})[0]) for run in runs]
    is_gate = any(gate_row.latest.report for _, gate_row in instances)
    if not is_gate and "Gate" not in (runs[0].operator or ""):
        return html_page("not_a_gate.html", run=runs[0])
    instances.sort(key=lambda instance: instance[0].map_index)
    attempts = {run.attempt_id for run in runs}
    stored = store_client().ask(lambda store: store.runs_of_attempts(attempts))
    places = {line.attempt_id: line.locations[0] for line in stored.found if line.locations}
    return html_page(
        "mapped.html",
        row=row,
        instances=instances,
        most=MOST_INSTANCES,
        places=places,
        problem=stored.problem,
    )
