"""Clears the tasks of incidents in Airflow, so that their data is judged again."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import Response

from dqx_airflow.results.incidents import Incident
from dqx_airflow.ui import airflow
from dqx_airflow.ui.responses import Notice, Refused, back_to


def clear_tasks(visitor: airflow.Visitor, about: Sequence[Incident], back: str) -> Response:
    """Clears the gates of open slices in Airflow, oldest data first, each with everything
    downstream, so that the slices are judged again."""
    tasks = require_clearable(visitor, about)
    for task in tasks:
        visitor.record("dqx clear", task, {"dates": [one.date for one in about]})
    if not airflow.clear(visitor.session, tasks):
        return Notice(
            HTTPStatus.CONFLICT, "Nothing to clear", "All of these tasks are waiting or running."
        )
    return back_to(back)


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
