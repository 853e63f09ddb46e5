"""The app that serves the pages, mounted into Airflow's API server under `/dqx`."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from dqx_airflow.plugin import labelling
from dqx_airflow.plugin.airflow import (
    MOST_INSTANCES,
    READS_CODE,
    READS_DAG,
    SIGNED_IN,
    GateTasks,
    GetUserDep,
    SessionDep,
    TaskRun,
    attempts_of,
    gate_tasks,
    may_edit,
    recent_runs,
    silent_runs,
    task_runs,
)
from dqx_airflow.plugin.answers import html_page, known_desk, notice
from dqx_airflow.plugin.board_page import DEPTH, Filters, GateRow, board_of, gate_rows
from dqx_airflow.plugin.contract_page import contract_page, runs_under
from dqx_airflow.plugin.dataset_page import dataset_page
from dqx_airflow.plugin.gate_page import chosen_report, gate_page
from dqx_airflow.plugin.render import HEADERS, ICON
from dqx_airflow.plugin.report_view import view_of_summary
from dqx_airflow.plugin.runs_page import (
    RUNS_OF_A_PAGE,
    RunFilters,
    RunsPage,
    page_within,
    rows_of,
)
from dqx_airflow.plugin.stoppers import STOPPED_STATES, stopped_by
from dqx_airflow.plugin.store import Answer, Desk
from dqx_airflow.plugin.writes import Refused, form_token
from dqx_airflow.results.contract_uses import ContractRun
from dqx_airflow.results.labels import Label
from dqx_airflow.results.recent_alerts import labels_of_day
from dqx_airflow.values import GateReport, Outcome, SourceFile

log = logging.getLogger(__name__)

_NUMBER = re.compile(r"[0-9]{1,9}")
_LAST_RUNS = 3
_MOST_GATES = 10
_MOST_PAST, _MOST_PAST_OF_GATE = 300, 60

app = FastAPI(
    title="dqx-airflow",
    dependencies=[SIGNED_IN],
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
)

app.include_router(labelling.router)

_Next = Callable[[Request], Awaitable[Response]]


@app.middleware("http")
async def guard(request: Request, call_next: _Next) -> Response:
    """Puts our headers on every answer, also on that to a mistake of ours."""
    try:
        response = await call_next(request)
    except Exception:
        log.exception("the page %s failed", request.url.path)
        response = notice(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "This page failed",
            "See the log of the API server for the cause. The report itself is not affected: "
            "`dql results show` prints it.",
        )
    response.headers.update(HEADERS)
    return response


@app.exception_handler(StarletteHTTPException)
async def refuse(request: Request, error: StarletteHTTPException) -> Response:
    advice = {
        HTTPStatus.UNAUTHORIZED: "Sign in to Airflow first.",
        HTTPStatus.FORBIDDEN: "You do not have permission to read the XComs of this DAG.",
    }
    status = HTTPStatus(error.status_code)
    text = error.detail if isinstance(error, Refused) else advice.get(status, "")
    return notice(status, status.phrase, text)


@app.get("/gate", dependencies=[READS_DAG])
def gate(
    request: Request,
    session: SessionDep,
    user: GetUserDep,
    reads_code: READS_CODE,
    dag_id: str = "",
    run_id: str = "",
    task_id: str = "",
    map_index: str = "",
    attempt: str = "",
) -> Response:
    """The tab of a task instance. Airflow writes `{MAP_INDEX}` where there is none."""
    runs = task_runs(session, dag_id, run_id, task_id, _number(map_index))
    if len(runs) > 1:
        session.close()
        return _mapped(runs)
    desk = known_desk()
    if runs:
        (run,) = runs
        if view_of_summary(run.pushed) is None and "Gate" not in (run.operator or ""):
            return html_page("not_a_gate.html", run=run)
        attempts = attempts_of(session, run)
        stoppers = stopped_by(run, session) if run.state in STOPPED_STATES else ()
    else:
        # Airflow forgets its runs before the store does.
        index = _number(map_index)
        run = TaskRun(dag_id, run_id, task_id, -1 if index is None else index, None, None, attempt)
        attempts = frozenset([attempt]) if _is_of_task(session, desk, run) else frozenset()
        stoppers = ()
    edits = may_edit(request, user, dag_id)
    session.close()  # the store may take seconds: meanwhile the connection serves others
    known = desk.ask(lambda store: store.reports_of(attempts))
    chosen = chosen_report(run.pushed, known.found, attempt)
    past: Answer[GateReport] = Answer()
    sources: Answer[SourceFile] = Answer()
    labels: Answer[Label] = Answer()
    if chosen is not None:
        report, key = chosen, chosen.run_key
        labels = desk.ask(lambda store: labels_of_day(store.select, key.gate, key.date))
        past = desk.ask(
            lambda store: store.past_reports({key.gate}, key.date, map_index=key.map_index)
        )
        if reads_code:
            sources = desk.ask(lambda store: store.sources_of(report))
    page = gate_page(run, known.found, chosen, past.found, sources.found)
    if page is None and not runs:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such task instance",
            f"Task {task_id} has no instance in run {run_id} of DAG {dag_id}: it was removed, "
            "or has not been scheduled yet.",
        )
    if page is None:
        return html_page("no_report.html", run=run, stoppers=stoppers, problem=known.problem)
    return html_page(
        "gate.html",
        run=run,
        is_forgotten=not runs,
        page=page,
        problem=known.problem or past.problem or sources.problem,
        root=desk.root or "",
        labels={(label.check, label.name): label for label in labels.found},
        edits=edits,
        read_only=desk.read_only() if edits and chosen else None,
        token=form_token(user),
    )


@app.get("/runs", dependencies=[READS_DAG])
def runs_of_gate(
    session: SessionDep,
    dag_id: str = "",
    task_id: str = "",
    outcome: str = "",
    since: str = "",
    until: str = "",
    instance: str = "",
    page: str = "",
) -> Response:
    """All runs of a gate."""
    known = recent_runs(session, [(dag_id, task_id)], DEPTH)
    if not any(run.is_gate for run in known):
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such gate",
            f"Task {task_id} of DAG {dag_id} has not reported as a gate.",
        )
    (row,) = gate_rows(known, {})
    silent = silent_runs(session, dag_id, task_id)
    session.close()
    desk = known_desk()
    gates = desk.ask(lambda store: store.gates_of({run.attempt_id for run in known}))
    filters = RunFilters(outcome, since, until, instance)
    wanted = filters.wanted(gates.found)
    counted = desk.ask(lambda store: store.count_runs(wanted))
    counts = dict(counted.found)
    total = sum(counts.values()) if wanted.outcome is None else counts.get(wanted.outcome, 0)
    number, pages = page_within(_number(page) or 1, total)
    lines = desk.ask(
        lambda store: store.runs(wanted, RUNS_OF_A_PAGE, (number - 1) * RUNS_OF_A_PAGE)
    )
    return html_page(
        "runs.html",
        page=RunsPage(
            dag_id,
            task_id,
            row.gate,
            rows_of(dag_id, task_id, lines.found),
            number,
            pages,
            total,
            {one.value: counts.get(one.value, 0) for one in Outcome},
            filters,
            any(run.map_index >= 0 for run in known),
            silent,
            () if gates.found else row.cells,
        ),
        problem=gates.problem or counted.problem or lines.problem,
    )


@app.get("/board")
def board(
    session: SessionDep,
    tasks: Annotated[GateTasks, Depends(gate_tasks)],
    dag: str = "",
    dataset: str = "",
    contract: str = "",
    outcome: str = "",
    severity: str = "",
    owner: str = "",
    late: str = "",
    page: str = "",
) -> Response:
    """The gates of all DAGs that the user may read."""
    now = datetime.now(timezone.utc)
    rows = gate_rows(recent_runs(session, tasks.tasks, DEPTH), tasks.dags, now)
    session.close()
    filters = Filters(dag, dataset, contract, outcome, severity, owner, late)
    shown = board_of(rows, filters, _number(page) or 1)
    alerts = labelling.counts_of_rows(known_desk(), list(shown.rows))
    return html_page("board.html", board=shown, alerts=alerts)


@app.get("/dataset")
def dataset(
    session: SessionDep, tasks: Annotated[GateTasks, Depends(gate_tasks)], name: str = ""
) -> Response:
    """What the gates of those DAGs found in a dataset."""
    found = gate_rows(recent_runs(session, tasks.tasks, DEPTH), tasks.dags)
    session.close()
    rows = [row for row in found if name in row.datasets]
    if not rows:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such dataset",
            f"No gate that you may read has recently reported on dataset {name}.",
        )
    shown, more = rows[:_MOST_GATES], max(len(rows) - _MOST_GATES, 0)
    past, problem = _past_of(shown)
    return html_page("dataset.html", page=dataset_page(name, shown, past, more), problem=problem)


@app.get("/contract")
def contract(
    session: SessionDep,
    tasks: Annotated[GateTasks, Depends(gate_tasks)],
    contract_id: Annotated[str, Query(alias="id")] = "",
) -> Response:
    """How the gates of those DAGs enforce a contract."""
    runs = recent_runs(session, tasks.tasks, DEPTH)
    session.close()
    rows = gate_rows(runs_under(runs, contract_id), tasks.dags)
    if not rows:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such contract",
            f"No gate that you may read has recently enforced contract {contract_id}.",
        )
    shown, more = list(rows[:_MOST_GATES]), max(len(rows) - _MOST_GATES, 0)
    past, problem = _past_of(shown, DEPTH)
    enforced: Answer[ContractRun] = Answer()
    newest = [reports[0].run_key for reports in past.values() if reports]
    if newest:
        gates, until = {key.gate for key in newest}, max(key.date for key in newest)
        desk = known_desk()
        enforced = desk.ask(lambda store: store.contract_runs(gates, contract_id, until))
    return html_page(
        "contract.html",
        page=contract_page(contract_id, shown, past, enforced.found, more),
        problem=problem or enforced.problem,
    )


@app.get("/icon.svg")
def icon() -> Response:
    """The sign of the pages in Airflow's menus."""
    return Response(ICON, media_type="image/svg+xml")


def _is_of_task(session: SessionDep, desk: Desk, run: TaskRun) -> bool:
    """Whether an attempt that Airflow has forgotten was one of the gate of this task: of a gate on
    which attempts reported that Airflow still knows to be of the task."""
    if not run.attempt_id:
        return False
    known = recent_runs(session, [(run.dag_id, run.task_id)], DEPTH)
    attempts = {one.attempt_id for one in known}
    own = desk.ask(lambda store: store.gates_of({run.attempt_id})).found
    return bool(own) and set(own) <= set(desk.ask(lambda store: store.gates_of(attempts)).found)


def _past_of(
    rows: list[GateRow], most: int = _MOST_PAST_OF_GATE
) -> tuple[dict[tuple[str, str], list[GateReport]], str | None]:
    """The reports of gates by DAG and task, newest first; and why there are none.

    A task says under which name its gate reported, and could say anything. The store knows it by
    the id of the attempt, which Airflow gave.
    """
    tasks = {
        cell.run.attempt_id: (row.dag_id, row.task_id)
        for row in rows
        for cell in [cell for cell in row.cells if cell.report][-_LAST_RUNS:]
    }
    desk = known_desk()
    known = desk.ask(lambda store: store.reports_of(tasks))
    if not known.found:
        return {}, known.problem
    gates = {tasks[report.attempt.id]: report.run_key.gate for report in known.found}
    names = set(gates.values())
    until = max(report.run_key.date for report in known.found)
    most = min(_MOST_PAST // len(names), most)
    past = desk.ask(lambda store: store.past_reports(names, until, most))
    by_gate: dict[str, list[GateReport]] = {name: [] for name in names}
    for report in past.found:
        by_gate[report.run_key.gate].append(report)
    return {task: by_gate[name] for task, name in gates.items()}, past.problem


def _mapped(runs: tuple[TaskRun, ...]) -> Response:
    """The instances of a mapped task, to choose from."""
    (row,) = gate_rows(runs, {})
    instances = [(run, gate_rows([run], {})[0]) for run in runs]
    is_gate = any(one.latest.report for _, one in instances)
    if not is_gate and "Gate" not in (runs[0].operator or ""):
        return html_page("not_a_gate.html", run=runs[0])
    instances.sort(key=lambda one: one[0].map_index)
    attempts = {run.attempt_id for run in runs}
    stored = known_desk().ask(lambda store: store.runs_of_attempts(attempts))
    places = {line.attempt_id: line.locations[0] for line in stored.found if line.locations}
    return html_page(
        "mapped.html",
        row=row,
        instances=instances,
        most=MOST_INSTANCES,
        places=places,
        problem=stored.problem,
    )


def _number(text: str) -> int | None:
    """The number that a parameter is; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None
