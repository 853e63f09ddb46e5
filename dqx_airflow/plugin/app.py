"""The app that serves the pages, mounted into Airflow's API server under `/dqx`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timezone
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from dqx_airflow.plugin import alerts_routes, gate_routes, incident_routes, review_routes
from dqx_airflow.plugin.airflow import (
    SIGNED_IN,
    SessionDep,
    TasksDep,
    recent_runs,
)
from dqx_airflow.plugin.board_page import (
    DEPTH,
    Filters,
    GateRow,
    board_of,
    gate_rows,
    recent_attempts,
)
from dqx_airflow.plugin.contract_page import contract_page, runs_under
from dqx_airflow.plugin.dataset_index import IndexFilters, dataset_rows, index_of
from dqx_airflow.plugin.dataset_locations import runs_reading
from dqx_airflow.plugin.dataset_page import dataset_page, paging_of
from dqx_airflow.plugin.parameters import PageNumber
from dqx_airflow.plugin.render import HEADERS, ICON
from dqx_airflow.plugin.responses import html_page, notice, store_client
from dqx_airflow.plugin.store import Answer, StoreClient
from dqx_airflow.plugin.writes import Refused
from dqx_airflow.results.contract_uses import ContractRun
from dqx_airflow.values import GateReport

log = logging.getLogger(__name__)

_MOST_GATES = 10
_MOST_PAST, _MOST_PAST_OF_GATE = 300, 60

app = FastAPI(
    title="dqx-airflow",
    dependencies=[SIGNED_IN],
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
)

app.include_router(gate_routes.router)
app.include_router(incident_routes.router)
app.include_router(alerts_routes.router)
app.include_router(review_routes.router)

_Next = Callable[[Request], Awaitable[Response]]


@app.middleware("http")
async def guard(request: Request, call_next: _Next) -> Response:
    """Adds our headers to every response, including errors."""
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
    tasks: TasksDep,
    filters: Annotated[Filters, Depends()],
    page: PageNumber,
) -> Response:
    """The gates of all DAGs that the user may read."""
    now = datetime.now(timezone.utc)
    rows = gate_rows(recent_runs(session, tasks.tasks, DEPTH), tasks.dags, now)
    session.close()
    shown = board_of(rows, filters, page)
    alerts = alerts_routes.counts_of_rows(store_client(), list(shown.rows))
    return html_page("board.html", board=shown, alerts=alerts)


@app.get("/datasets")
def datasets(
    session: SessionDep,
    tasks: TasksDep,
    filters: Annotated[IndexFilters, Depends()],
    page: PageNumber,
) -> Response:
    """The datasets of the gates of all DAGs that the user may read."""
    rows = dataset_rows(gate_rows(recent_runs(session, tasks.tasks, DEPTH), tasks.dags))
    session.close()
    shown = index_of(rows, filters, page)
    return html_page("datasets.html", index=shown)


@app.get("/dataset")
def dataset(
    session: SessionDep,
    tasks: TasksDep,
    page: PageNumber,
    place: str = "",
) -> Response:
    """The findings of the gates of those DAGs in a dataset."""
    runs = runs_reading(recent_runs(session, tasks.tasks, DEPTH), place)
    session.close()
    rows = dataset_rows(gate_rows(runs, tasks.dags))
    row_there = next((row for row in rows if row.location == place), None)
    if row_there is None:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such dataset",
            f"No gate that you may read has recently reported on {place or 'a dataset'}: see the "
            "list of all datasets.",
        )
    paging = paging_of(row_there, page)
    past, problem = _past_of(list(paging.shown(row_there.gates)))
    return html_page("dataset.html", page=dataset_page(row_there, past, paging), problem=problem)


@app.get("/contract")
def contract(
    session: SessionDep,
    tasks: TasksDep,
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
        client = store_client()
        enforced = client.ask(lambda store: store.contract_runs(gates, contract_id, until))
    return html_page(
        "contract.html",
        page=contract_page(contract_id, shown, past, enforced.found, more),
        problem=problem or enforced.problem,
    )


@app.get("/icon.svg")
def icon() -> Response:
    """The icon of the pages in Airflow's menus."""
    return Response(ICON, media_type="image/svg+xml")


def _past_of(
    rows: list[GateRow], most: int = _MOST_PAST_OF_GATE
) -> tuple[dict[tuple[str, str], list[GateReport]], str | None]:
    """The reports of gates by DAG and task, newest first; and why there are none."""
    tasks = recent_attempts(rows)
    client = store_client()
    recent = client.ask(lambda store: store.reports_of(tasks))
    if not recent.found:
        return {}, recent.problem
    gates: dict[tuple[str, str], set[str]] = {}
    for report in recent.found:
        gates.setdefault(tasks[report.attempt.id], set()).add(report.run_key.gate)
    until = max(report.run_key.date for report in recent.found)
    most = max(1, min(_MOST_PAST // len(set().union(*gates.values())), most))
    instances = {(row.dag_id, row.task_id): _instance(row) for row in rows}
    past: dict[tuple[str, str], list[GateReport]] = {}
    problem = None
    for index in {instances[task] for task in gates}:
        of_index = {task: own for task, own in gates.items() if instances[task] == index}
        answer = _past_reports(client, set().union(*of_index.values()), until, most, index)
        problem = problem or answer.problem
        for task, own in of_index.items():
            past[task] = [report for report in answer.found if report.run_key.gate in own]
    return past, problem


def _past_reports(
    client: StoreClient, gates: set[str], until: date, most: int, map_index: int
) -> Answer[GateReport]:
    return client.ask(lambda store: store.past_reports(gates, until, most, map_index))


def _instance(row: GateRow) -> int:
    """The map index if a row is about one instance of a mapped gate; -1 for all of them."""
    instances = {cell.run.map_index if cell.instances == 1 else -1 for cell in row.cells}
    return instances.pop() if len(instances) == 1 else -1
