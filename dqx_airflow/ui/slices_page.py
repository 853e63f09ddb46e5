"""The page of open slices: every date that is still blocked, and the button that clears them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import Request, Response

from dqx_airflow.results.incidents import Incident, LackingRows, lacking_rows, open_slices
from dqx_airflow.ui import airflow, responses
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.responses import Form, Page, Refused, form_token
from dqx_airflow.ui.store import Answer, StoreClient


def clear_tasks(
    request: Request, session: Any, user: Any, about: Sequence[Incident], back: str
) -> Response:
    """Clears the gates of open slices in Airflow, oldest data first, each with everything
    downstream, so that the slices are judged again."""
    tasks = require_clearable(request, session, user, about)
    for task in tasks:
        airflow.record(session, user, "dqx clear", task, {"dates": [one.date for one in about]})
    if not airflow.clear(session, tasks):
        return responses.Notice(
            HTTPStatus.CONFLICT, "Nothing to clear", "All of these tasks are waiting or running."
        )
    return responses.back_to(back)


def require_clearable(
    request: Request, session: Any, user: Any, about: Sequence[Incident]
) -> tuple[airflow.TaskRef, ...]:
    """The tasks of incidents, all of which the user may clear.

    :raises Refused: there are none, or the user may not.
    """
    tasks = tasks_of(session, about)
    if not tasks:
        gone = "Airflow no longer knows these runs: trigger the DAG for the dates."
        raise Refused(HTTPStatus.NOT_FOUND, gone)
    for dag_id in {task.dag_id for task in tasks}:
        if not airflow.may_clear(request, user, dag_id):
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
    """The open slices of the gates that a user may read, oldest data first; and why there are
    none."""
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


router = PageRouter()

_MOST_SLICES = 500


class SlicesPage(NamedTuple):
    """The oldest open slices, and how many there are."""

    rows: list[OpenSlice]
    total: int
    more: int
    problem: str | None


@router.get("/slices")
def slices(
    request: Request, session: airflow.SessionDep, user: airflow.GetUserDep, tasks: airflow.TasksDep
) -> Page[SlicesPage]:
    """Every date that is still blocked in the gates that the user may read, oldest first."""
    client = responses.store_client()
    found, problem = open_of(session, client, tasks)
    session.close()
    shown = found[:_MOST_SLICES]
    lacking = client.ask(
        lambda store: tuple(lacking_rows(store, [one.incident for one in shown]).items())
    )
    missing = dict(lacking.found)
    rows = [replace(one, lacking=missing.get(one.incident.id, ())) for one in shown]
    gates: dict[tuple[str, str], list[OpenSlice]] = {}
    for one in rows:
        gates.setdefault((one.dag_id, one.task_id), []).append(one)
    clears = {dag_id for dag_id, _ in gates if airflow.may_clear(request, user, dag_id)}
    more = len(found) - len(shown)
    return Page(
        "slices.html",
        SlicesPage(rows, len(found), more, problem or lacking.problem),
        gates=gates,
        clears=clears,
        can_clear=sum(one.task is not None and one.dag_id in clears for one in rows),
        token=form_token(user),
    )


@router.post("/slices")
def clear_slices(
    request: Request,
    session: airflow.SessionDep,
    user: airflow.GetUserDep,
    tasks: airflow.TasksDep,
    form: Form,
) -> Response:
    """Clears all open slices that the user may clear, or those of one gate, oldest data first."""
    found, problem = open_of(session, responses.store_client(), tasks)
    wanted = form.get("dag_id", ""), form.get("task_id", "")
    about = [one for one in found if wanted in (("", ""), (one.dag_id, one.task_id))]
    if problem is not None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, problem)
    if not about:
        raise Refused(HTTPStatus.NOT_FOUND, "No open slice of a gate that you may read.")
    may = {dag_id: airflow.may_clear(request, user, dag_id) for dag_id in {o.dag_id for o in about}}
    allowed = [one.incident for one in about if may[one.dag_id]]
    if not allowed:
        raise Refused(HTTPStatus.FORBIDDEN, "You may not clear tasks of these DAGs.")
    return clear_tasks(request, session, user, allowed, responses.address("slices"))
