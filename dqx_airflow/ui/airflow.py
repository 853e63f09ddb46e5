"""Task instances of gates in Airflow's database, with their summaries, attempts and questions.

Airflow guarantees none of the names that the modules `airflow*` import. If one is missing, they
cannot be imported, and the pages are closed: see `closed` in `ui/__init__.py`.

The key of a summary is the id of its attempt, and the time at which it was pushed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from sqlalchemy import String, and_, func, or_, select, tuple_, type_coerce

from dqx_airflow.operators.ask import ACCEPT
from dqx_airflow.operators.summary import XCOM_KEY
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.ui.summary_view import Summary, parsed

DEPTH = 14
"""The number of recent runs of a DAG that are inspected."""

MOST_INSTANCES = 500
"""The maximum number of instances of a mapped task that are inspected."""

_MOST_ROWS = 20_000
_PARKED = ("awaiting_input", "deferred")
"""The states of a task that waits for an answer: from Airflow 3.3 on, and before."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a gate that waits for a person: since when, until when (None without an end),
    and the path in Airflow where it is answered. `default` is what happens at the end: `accepted`
    or `kept blocked`; None without an end."""

    since: datetime
    until: datetime | None
    default: str | None
    href: str


class TaskRun(NamedTuple):
    """A task instance of a run. `pushed` is its summary of the report in XCom: None if there is
    none, otherwise whatever its author stored there.

    `label` is the result of `map_index_template` for its map index, `run_state` the state of the
    DAG run, `logical_date` the logical date of the run, None if it has none. `question` is set
    while a gate waits for the answer of a person.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str | None
    operator: str | None
    attempt_id: str
    run_after: datetime | None = None
    pushed: NotInJson[object] = None
    logical_date: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    label: str = ""
    run_state: str | None = None
    question: Question | None = None

    @property
    def is_gate(self) -> bool:
        """Whether its operator is a gate, or it left a report."""
        return self.pushed is not None or "Gate" in (self.operator or "")


def instance_of(run: TaskRun) -> tuple[str, str, int]:
    """The DAG, the task and the map index of a run, which other runs of the instance share."""
    return run.dag_id, run.task_id, run.map_index


@dataclass(frozen=True, slots=True)
class TaskRef:
    """The task instance of an attempt. `label` is the result of `map_index_template`."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    label: str | None = None


def tasks_of(session: Any, attempt_ids: Collection[str]) -> dict[str, TaskRef]:
    """The task instances of these attempts, including earlier ones, if Airflow knows them."""
    tasks: dict[str, TaskRef] = {}
    for model, column in (
        (TaskInstanceHistory, TaskInstanceHistory.task_instance_id),
        (TaskInstance, TaskInstance.id),
    ):
        if wanted := _ids_for(column, attempt_ids):
            task = model.dag_id, model.run_id, model.task_id, model.map_index
            query = select(column, *task, model.rendered_map_index).where(column.in_(wanted))
            rows = session.execute(query)
            tasks |= {str(attempt): TaskRef(*task) for attempt, *task in rows}
    return tasks


def _ids_for(column: Any, attempt_ids: Collection[str]) -> list[Any]:
    """The ids of attempts in the type of a column, without texts that are not ids."""
    ids = [known for one in attempt_ids if (known := parsed(UUID, one))]
    return ids if column.type.python_type is UUID else [str(attempt_id) for attempt_id in ids]


def questions_of(session: Any, attempt_ids: Collection[str]) -> dict[str, Question]:
    """The open questions of the attempts that wait for an answer, by the id of the attempt."""
    wanted = _ids_for(TaskInstance.id, attempt_ids)
    if not wanted:
        return {}
    rows = session.execute(
        select(
            TaskInstance.id,
            TaskInstance.dag_id,
            TaskInstance.run_id,
            TaskInstance.task_id,
            TaskInstance.map_index,
            TaskInstance.trigger_id,
            TaskInstance.trigger_timeout,
            HITLDetail.created_at,
            HITLDetail.defaults,
        )
        .join(HITLDetail, HITLDetail.ti_id == TaskInstance.id)
        .where(
            TaskInstance.id.in_(wanted),
            TaskInstance.state.in_(_PARKED),
            HITLDetail.responded_at.is_(None),
        )
    )
    return {str(row.id): _question(session, row) for row in rows}


def _question(session: Any, row: Any) -> Question:
    until = row.trigger_timeout or _end_in_trigger(session, row.trigger_id)
    default = "accepted" if row.defaults == [ACCEPT] else "kept blocked"
    instance = f"/mapped/{row.map_index}" if row.map_index >= 0 else ""
    dag, run, task = map(part_of_path, (row.dag_id, row.run_id, row.task_id))
    return Question(
        since=row.created_at,
        until=until,
        default=default if until is not None else None,
        href=f"../dags/{dag}/runs/{run}/tasks/{task}{instance}/required_actions",
    )


def _end_in_trigger(session: Any, trigger_id: int | None) -> datetime | None:
    """The end of the time for an answer, as Airflow 3.1 and 3.2 keep it; None without one."""
    trigger = session.get(Trigger, trigger_id) if trigger_id is not None else None
    until = (trigger.kwargs or {}).get("timeout_datetime") if trigger is not None else None
    return until if isinstance(until, datetime) else None


def part_of_path(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="", errors="replace")


def current_attempts(session: Any, tasks: Collection[TaskRef]) -> dict[TaskRef, str]:
    """The id of the current attempt of each task instance that Airflow knows."""
    known: dict[tuple[str, str, str, int], str] = {}
    for dag_id, run_id in {(task.dag_id, task.run_id) for task in tasks}:
        place = TaskInstance.task_id, TaskInstance.map_index
        rows = session.execute(
            select(TaskInstance.id, *place).where(*is_of(TaskInstance, dag_id, run_id))
        )
        known |= {
            (dag_id, run_id, task_id, index): str(attempt) for attempt, task_id, index in rows
        }
    own = {task: (task.dag_id, task.run_id, task.task_id, task.map_index) for task in tasks}
    return {task: known[place] for task, place in own.items() if place in known}


def task_runs(
    session: Any, dag_id: str, run_id: str, task_id: str, map_index: int | None = None
) -> tuple[TaskRun, ...]:
    """The instances of a task in a run, or the one with that map index."""
    where = is_of(TaskInstance, dag_id, run_id, task_id, map_index)
    return _runs(session, *where, order=[TaskInstance.map_index])


def attempts_of(session: Any, run: TaskRun) -> frozenset[str]:
    """The ids of all attempts of a task instance, including those before it was cleared."""
    earlier = session.scalars(
        select(TaskInstanceHistory.task_instance_id).where(
            *is_of(TaskInstanceHistory, run.dag_id, run.run_id, run.task_id, run.map_index)
        )
    )
    return frozenset({run.attempt_id, *map(str, earlier)})


def ended_gates(session: Any, run: TaskRun) -> tuple[TaskRun, ...]:
    """The other tasks of a DAG run that left a report, or ended without one."""
    return _runs(
        session,
        *is_of(TaskInstance, run.dag_id, run.run_id),
        TaskInstance.task_id != run.task_id,
        or_(XComModel.key.is_not(None), TaskInstance.state.in_(("failed", "upstream_failed"))),
        order=[TaskInstance.end_date, TaskInstance.task_id, TaskInstance.map_index],
    )


def ended_runs(session: Any, dag_id: str, task_id: str, most: int = 100) -> tuple[TaskRun, ...]:
    """The instances of a task that failed, or succeeded without a report, newest first."""
    is_mute = and_(TaskInstance.state == "success", XComModel.key.is_(None))
    return _runs(
        session,
        *is_of(TaskInstance, dag_id, task_id=task_id),
        or_(TaskInstance.state == "failed", is_mute),
        order=[DagRun.run_after.desc(), TaskInstance.map_index],
        most=most,
    )


MOST_FAILED = 1000


def failed_runs(
    session: Any, tasks: Collection[tuple[str, str]], most: int = MOST_FAILED
) -> tuple[TaskRun, ...]:
    """The instances of these tasks that failed, the run with the newest data first."""
    if not tasks:
        return ()
    data = func.coalesce(DagRun.logical_date, DagRun.run_after)
    rows = session.execute(
        _instances(XComModel.timestamp)
        .where(
            tuple_(TaskInstance.dag_id, TaskInstance.task_id).in_(tasks),
            TaskInstance.state == "failed",
        )
        .order_by(data.desc(), DagRun.id.desc(), TaskInstance.map_index)
        .limit(most)
    ).all()
    summaries = summaries_of(session, [(row.attempt_id, row.timestamp) for row in rows])
    return _task_runs(session, rows, summaries)


def recent_runs(session: Any, tasks: Collection[tuple[str, str]]) -> tuple[TaskRun, ...]:
    """The instances of these tasks in the last runs of their DAGs, newest run first.

    Runs are ordered by their data: one that is backfilled today is about the past.
    """
    if not tasks:
        return ()
    data = func.coalesce(DagRun.logical_date, DagRun.run_after)
    number = func.row_number().over(
        partition_by=DagRun.dag_id, order_by=(data.desc(), DagRun.id.desc())
    )
    recent = (
        select(DagRun.dag_id, DagRun.run_id, number.label("number"))
        .where(DagRun.dag_id.in_({dag_id for dag_id, _ in tasks}))
        .subquery()
    )
    newest = and_(
        TaskInstance.dag_id == recent.c.dag_id,
        TaskInstance.run_id == recent.c.run_id,
        recent.c.number <= DEPTH,
    )
    rows = session.execute(
        _instances_as_stored()
        .join(recent, newest)
        .where(tuple_(TaskInstance.dag_id, TaskInstance.task_id).in_(tasks))
        .order_by(recent.c.number, TaskInstance.map_index)
        .limit(_MOST_ROWS)
    ).all()
    return _parsed_once(session, [tuple(row) for row in rows])


_kept_runs: dict[str, tuple[tuple[object, ...], TaskRun]] = {}
"""The last task instances with the rows that they were parsed from, by the stored attempt."""


def _parsed_once(session: Any, stored: Sequence[tuple[object, ...]]) -> tuple[TaskRun, ...]:
    """The task instances of rows of `_instances_as_stored`: a page has thousands, of which few have
    changed since the last one, and the others are not parsed again."""
    found: dict[str, TaskRun] = {}
    changed: list[str] = []
    for row in stored:
        key = str(row[_PLACE_OF_ATTEMPT])
        known = _kept_runs.get(key)
        if known is not None and known[0] == row:
            found[key] = known[1]
        else:
            changed.append(key)
    if changed:
        parsed_runs = {run.attempt_id: run for run in _runs_of_attempts(session, changed)}
        rows = {str(row[_PLACE_OF_ATTEMPT]): row for row in stored}
        for key in changed:
            run = parsed_runs.get(str(UUID(key)))
            if run is None:
                continue  # it was deleted in between
            found[key] = run
            # An answer to a question changes no column of the task instance.
            if run.state not in _PARKED:
                _kept_runs[key] = rows[key], run
    for key in [*islice(_kept_runs, max(len(_kept_runs) - _MOST_ROWS, 0))]:
        _kept_runs.pop(key, None)
    keys = (str(row[_PLACE_OF_ATTEMPT]) for row in stored)
    return tuple(found[key] for key in keys if key in found)


def _runs_of_attempts(session: Any, attempt_ids: Sequence[str]) -> Iterator[TaskRun]:
    """The task instances of these attempts, with their summaries."""
    wanted = iter(_ids_for(TaskInstance.id, attempt_ids))
    while batch := list(islice(wanted, _ASKED_AT_ONCE)):
        rows = session.execute(
            _instances(XComModel.timestamp).where(TaskInstance.id.in_(batch))
        ).all()
        summaries = summaries_of(session, [(row.attempt_id, row.timestamp) for row in rows])
        yield from _task_runs(session, rows, summaries)


def is_of(
    model: Any,
    dag_id: str,
    run_id: str | None = None,
    task_id: str | None = None,
    map_index: int | None = None,
) -> list[Any]:
    """Conditions on the task instances of a DAG: of one run, of one task, of one map index."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    return [getattr(model, name) == value for name, value in names.items() if value is not None]


def _is_pushed() -> Any:
    """The SQL condition that joins a task instance with its summary."""
    return and_(
        XComModel.dag_id == TaskInstance.dag_id,
        XComModel.task_id == TaskInstance.task_id,
        XComModel.run_id == TaskInstance.run_id,
        XComModel.map_index == TaskInstance.map_index,
        XComModel.key == XCOM_KEY,
    )


def of_run() -> Any:
    """The SQL condition that joins a task instance with its DAG run."""
    return and_(DagRun.dag_id == TaskInstance.dag_id, DagRun.run_id == TaskInstance.run_id)


def _instances(of_pushed: Any = XComModel.value) -> Any:
    """Selects task instances with their summaries: the fields of `TaskRun`, in its order.

    :param of_pushed: the selected column of the summary.
    """
    return _joined(select(*_columns_of_runs(of_pushed)))


def _instances_as_stored() -> Any:
    """Selects task instances as `_instances` does, each column as the database returns it, with the
    time of the summary: equal rows are equal task instances."""
    columns = _columns_of_runs(XComModel.timestamp)
    return _joined(select(*(type_coerce(column, String) for column in columns)))


_PLACE_OF_ATTEMPT = 6


def _columns_of_runs(of_pushed: Any) -> list[Any]:
    """The columns of the fields of `TaskRun`, in its order."""
    return [
        TaskInstance.dag_id,
        TaskInstance.run_id,
        TaskInstance.task_id,
        TaskInstance.map_index,
        TaskInstance.state,
        TaskInstance.operator,
        TaskInstance.id.label("attempt_id"),
        DagRun.run_after,
        of_pushed,
        DagRun.logical_date,
        TaskInstance.start_date.label("started"),
        TaskInstance.end_date.label("ended"),
        TaskInstance.rendered_map_index.label("label"),
        DagRun.state.label("run_state"),
    ]


def _joined(query: Any) -> Any:
    """A query over task instances with their runs, and their summaries if there are any."""
    of_instances = query.select_from(TaskInstance)
    return of_instances.join(DagRun, of_run()).join(XComModel, _is_pushed(), isouter=True)


def _runs(
    session: Any, *where: Any, order: Sequence[Any], most: int = MOST_INSTANCES
) -> tuple[TaskRun, ...]:
    """The first task instances that satisfy conditions, with their summaries."""
    rows = session.execute(_instances().where(*where).order_by(*order).limit(most)).all()
    return _task_runs(session, rows, [as_pushed(row.value) for row in rows])


def _task_runs(
    session: Any, rows: Sequence[Any], summaries: Sequence[object]
) -> tuple[TaskRun, ...]:
    """The task instances of rows, with their summaries, and the questions of those that wait."""
    parked = {str(row.attempt_id) for row in rows if row.state in _PARKED}
    questions = questions_of(session, parked)
    return tuple(
        _task_run(row, pushed, questions.get(str(row.attempt_id)) if questions else None)
        for row, pushed in zip(rows, summaries, strict=True)
    )


def _task_run(row: Any, pushed: object, question: Question | None) -> TaskRun:
    """The task instance of a row of `_instances`, whose columns are unpacked at once: a page has
    thousands of rows."""
    dag_id, run_id, task_id, map_index, state, operator, attempt_id, run_after, *rest = row
    _, logical_date, started, ended, label, run_state = rest
    return TaskRun(
        dag_id,
        run_id,
        task_id,
        map_index,
        str(state) if state else None,
        operator,
        str(attempt_id),
        run_after,
        pushed,
        logical_date,
        started,
        ended,
        str(label or ""),
        str(run_state) if run_state else None,
        question,
    )


_MOST_KEPT = 10_000
_ASKED_AT_ONCE = 500

_kept: dict[object, tuple[datetime, object]] = {}
"""The parsed summaries with their times, by the attempt."""


def summaries_of(session: Any, attempts: Sequence[tuple[Any, datetime | None]]) -> list[object]:
    """The summary of each attempt under our key, or None.

    :param attempts: their ids, and the times of their summaries, or None.
    """
    # Few look-ups: Python computes the hash of a UUID each time.
    kept = [_kept.get(attempt_id) if at else None for attempt_id, at in attempts]
    missing = {
        attempt_id: place
        for place, ((attempt_id, at), known) in enumerate(zip(attempts, kept, strict=True))
        if at and (known is None or known[0] != at)
    }
    wanted = iter([*missing])
    while batch := list(islice(wanted, _ASKED_AT_ONCE)):
        query = select(TaskInstance.id, XComModel.timestamp, XComModel.value)
        query = query.join(XComModel, _is_pushed()).where(TaskInstance.id.in_(batch))
        for attempt_id, at, value in session.execute(query):
            _kept[attempt_id] = kept[missing[attempt_id]] = at, as_pushed(value)
    for key in [*islice(_kept, max(len(_kept) - _MOST_KEPT, 0))]:
        _kept.pop(key, None)
    return [known[1] if known else None for known in kept]


def as_pushed(value: object) -> object:
    """The summary of a task, as in Airflow's table; a string if an XCom backend keeps it elsewhere:
    its place."""
    if isinstance(value, str):
        # Some ways into the table store the text of the JSON, not the JSON.
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, dict) and not isinstance(value, Summary):
        return Summary(value)
    return value
