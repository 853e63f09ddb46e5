"""The app that serves the pages, mounted into Airflow's API server under `/dqx`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from dqx_airflow.plugin import gate_tab, incident, labelling, reviewing
from dqx_airflow.plugin.airflow import (
    SIGNED_IN,
    GateTasks,
    SessionDep,
    gate_tasks,
    recent_runs,
)
from dqx_airflow.plugin.answers import html_page, known_desk, notice
from dqx_airflow.plugin.board_page import DEPTH, Filters, GateRow, board_of, gate_rows
from dqx_airflow.plugin.contract_page import contract_page, runs_under
from dqx_airflow.plugin.dataset_page import dataset_page
from dqx_airflow.plugin.parameters import whole_number
from dqx_airflow.plugin.render import HEADERS, ICON
from dqx_airflow.plugin.store import Answer
from dqx_airflow.plugin.writes import Refused
from dqx_airflow.results.contract_uses import ContractRun
from dqx_airflow.values import GateReport

log = logging.getLogger(__name__)

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

app.include_router(gate_tab.router)
app.include_router(incident.router)
app.include_router(labelling.router)
app.include_router(reviewing.router)

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
    shown = board_of(rows, filters, whole_number(page) or 1)
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
