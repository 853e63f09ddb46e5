"""Clears the tasks of open slices in Airflow, so that their data is judged again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from http import HTTPStatus
from typing import Any

from fastapi import Response

from dqx_airflow.results.incidents import Incident
from dqx_airflow.ui import airflow, airflow_clearing, airflow_users
from dqx_airflow.ui.responses import Notice, Refused, back_to, form_token, render

VERSIONS: Mapping[str, bool | None] = {"": None, "latest": True, "run": False}
"""The field `version` of a form: as Airflow is set, the newest version of the bundle, or the
version of the run."""


def clear_tasks(
    visitor: airflow_users.Visitor,
    tasks: Sequence[airflow.TaskRef],
    dates: Sequence[date | None],
    form: Mapping[str, str],
    action: str,
    back: str,
) -> Response:
    """Clears gates in Airflow in this order, each with what Airflow clears with it, so that their
    data is judged again. For gates that wait for an answer, the response asks first.

    :param dates: the dates of their data, for the audit log.
    :param form: the form; its field `version` chooses the version of the bundle, and `confirmed`
        clears gates that wait for an answer.
    :param action: the address of the form.
    """
    on_latest = version_in(form)
    require_may_clear(visitor, tasks)
    if not form.get("confirmed") and (waiting := _waiting(visitor.session, tasks)):
        return confirmation(visitor, waiting, form, action, back)
    at_rest = [task for task in tasks if airflow_clearing.is_at_rest(visitor.session, task)]
    if not at_rest:
        return _nothing_to_clear(visitor.session, tasks)
    for task in at_rest:
        latest = airflow_clearing.runs_on_latest(visitor.session, task.dag_id, on_latest)
        visitor.record("dqx clear", task, {"dates": dates, "on_latest_version": latest})
    airflow_clearing.clear(visitor.session, at_rest, on_latest=on_latest)
    return back_to(back)


def _nothing_to_clear(session: Any, tasks: Sequence[airflow.TaskRef]) -> Response:
    """The answer if all tasks run already: it says who has cleared them."""
    words = "All of these tasks are waiting or running."
    for task in tasks[:_MOST_NAMED]:
        by = airflow_clearing.last_cleared(session, task, _CLEARING_EVENTS)
        if by is not None:
            author, at = by
            words += f" {author} cleared {task.dag_id}.{task.task_id} of run {task.run_id} at "
            words += f"{at:%Y-%m-%d %H:%M} UTC."
    return Notice(HTTPStatus.CONFLICT, "Nothing to clear", words)


_MOST_NAMED = 3
_CLEARING_EVENTS = ("dqx clear", "dqx accept")
"""The entries in the audit log of what clears a task."""


def version_in(form: Mapping[str, str]) -> bool | None:
    """The choice of the bundle's version in a form.

    :raises Refused: it is none of the choices.
    """
    given = form.get("version", "")
    if given not in VERSIONS:
        raise Refused(HTTPStatus.BAD_REQUEST, "Send version=latest, version=run, or leave it out.")
    return VERSIONS[given]


def _waiting(
    session: Any, tasks: Sequence[airflow.TaskRef]
) -> list[tuple[airflow.TaskRef, airflow.Question]]:
    """The tasks that wait for the answer of a person."""
    attempts = airflow.current_attempts(session, tasks)
    questions = airflow.questions_of(session, attempts.values())
    return [(task, questions[attempts[task]]) for task in tasks if attempts.get(task) in questions]


def confirmation(
    visitor: airflow_users.Visitor,
    waiting: Sequence[tuple[airflow.TaskRef, airflow.Question]],
    form: Mapping[str, str],
    action: str,
    back: str,
) -> Response:
    """The page that asks whether tasks that wait for an answer are to be cleared all the same."""
    fields = {**form, "token": form_token(visitor.user), "confirmed": "yes"}
    content = render(
        "confirm.html", waiting=waiting, fields=fields, action=action, back=back, problem=None
    )
    return Response(content, HTTPStatus.OK, media_type="text/html")


def require_clearable(
    visitor: airflow_users.Visitor, about: Sequence[Incident]
) -> tuple[airflow.TaskRef, ...]:
    """The tasks of incidents, all of which the user may clear.

    :raises Refused: there are none, or the user may not.
    """
    tasks = tasks_of(visitor.session, about)
    require_may_clear(visitor, tasks)
    return tasks


def require_may_clear(visitor: airflow_users.Visitor, tasks: Sequence[airflow.TaskRef]) -> None:
    """Returns if there are tasks, and the user may clear all of them.

    :raises Refused: otherwise.
    """
    if not tasks:
        gone = "Airflow no longer knows these runs: trigger the DAG for the dates."
        raise Refused(HTTPStatus.NOT_FOUND, gone)
    for dag_id in {task.dag_id for task in tasks}:
        if not visitor.may_clear(dag_id):
            raise Refused(HTTPStatus.FORBIDDEN, f"You may not clear tasks of DAG {dag_id}.")


def tasks_of(session: Any, incidents: Sequence[Incident]) -> tuple[airflow.TaskRef, ...]:
    """The task instances of incidents that Airflow still knows, oldest data first, each once."""
    known = airflow.tasks_of(session, {one.last.attempt.id for one in incidents})
    ordered = sorted(incidents, key=lambda one: (one.date, one.map_index))
    refs = (known.get(one.last.attempt.id) for one in ordered)
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))
