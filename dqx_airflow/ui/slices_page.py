"""The page of open slices: every date that is still blocked, and the buttons that clear them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import Response

from dqx_airflow.results.incidents import Incident, LackingRows, lacking_rows, open_slices
from dqx_airflow.ui import airflow, responses
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.clearing import clear_tasks
from dqx_airflow.ui.responses import Form, Page, Refused, form_token
from dqx_airflow.ui.store import Answer, StoreClient

router = PageRouter()


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
    """Clears all open slices that the user may clear, or only the slices of one gate, oldest data
    first."""
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
