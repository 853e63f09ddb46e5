"""Clearing of tasks as Airflow does it: what goes along, on which version of the bundle, and
whether a task is at rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from sqlalchemy import and_, or_, select, tuple_

from dqx_airflow.ui.airflow import TaskRef, is_of, questions_of

try:
    from airflow.api_fastapi.common.dagbag import resolve_run_on_latest_version
except ImportError:  # before Airflow 3.3, only the user decides on the version
    resolve_run_on_latest_version = None
try:
    from airflow.models.taskinstance import find_relevant_relatives
except ImportError:  # Airflow 3.1 clears all instances of the tasks downstream
    find_relevant_relatives = None

_AT_REST = ("success", "failed", "skipped", "upstream_failed")


@dataclass(frozen=True, slots=True)
class Clearing:
    """What clearing a task instance does: the tasks that are cleared with it, in their order, with
    setups and teardowns as in Airflow; and the version of the DAG's bundle that then runs. Without
    `on_latest` it is the version of the run. None is a bundle without versions."""

    task: TaskRef
    tasks: tuple[str, ...]
    on_latest: bool
    run_version: str | None
    latest_version: str | None

    @property
    def version(self) -> str | None:
        """The version that runs."""
        return self.latest_version if self.on_latest else self.run_version

    @property
    def is_outdated(self) -> bool:
        """Whether there is a newer version than the one of the run."""
        return self.run_version is not None and self.run_version != self.latest_version


def runs_on_latest(session: Any, dag_id: str, wanted: bool | None = None) -> bool:
    """Whether a cleared task runs on the newest version of its bundle: as the user wants it, else
    as the DAG, and then Airflow, are set (from Airflow 3.3 on)."""
    if wanted is not None:
        return wanted
    if resolve_run_on_latest_version is None:
        return False
    return bool(resolve_run_on_latest_version(None, dag_id, session))


def clearing_of(session: Any, task: TaskRef, *, on_latest: bool | None = None) -> Clearing:
    """What clearing a task instance would do."""
    dag = _dag_of(session, DBDagBag(load_op_links=False), task)
    along = {one if isinstance(one, str) else one[0] for one in _along(session, dag, task)}
    run_version = session.scalar(
        select(DagRun.bundle_version).where(
            DagRun.dag_id == task.dag_id, DagRun.run_id == task.run_id
        )
    )
    latest = session.scalar(select(DagModel.bundle_version).where(DagModel.dag_id == task.dag_id))
    on_latest = runs_on_latest(session, task.dag_id, on_latest)
    ids = _in_order(dag, {task.task_id, *along})
    return Clearing(task, ids, on_latest, run_version, latest)


def clear(
    session: Any, tasks: Sequence[TaskRef], *, on_latest: bool | None = None
) -> tuple[TaskRef, ...]:
    """Clears task instances that have ended or wait for an answer, one after the other, each with
    everything downstream in its run, and with setups and teardowns; returns those that were
    cleared. The scheduler takes the oldest run first.

    :param on_latest: whether they run on the newest version of their bundle; None as it is set.
    """
    cleared = []
    bag = DBDagBag(load_op_links=False)
    for task in tasks:
        along = _along(session, _dag_of(session, bag, task), task)
        whole = [one for one in along if isinstance(one, str)]
        single = [one for one in along if not isinstance(one, str)]
        own = and_(TaskInstance.task_id == task.task_id, TaskInstance.map_index == task.map_index)
        instances = session.scalars(
            select(TaskInstance).where(
                *is_of(TaskInstance, task.dag_id, task.run_id),
                or_(
                    own,
                    TaskInstance.task_id.in_(whole),
                    tuple_(TaskInstance.task_id, TaskInstance.map_index).in_(single),
                ),
            )
        ).all()
        if is_at_rest(session, task):
            latest = runs_on_latest(session, task.dag_id, on_latest)
            clear_task_instances(list(instances), session, run_on_latest_version=latest)
            session.commit()
            cleared.append(task)
    return tuple(cleared)


def is_at_rest(session: Any, task: TaskRef) -> bool:
    """Whether a task instance has ended, or waits for an answer."""
    own = session.execute(
        select(TaskInstance.id, TaskInstance.state).where(
            *is_of(TaskInstance, task.dag_id, task.run_id, task.task_id, task.map_index)
        )
    ).first()
    if own is None:
        return False
    attempt = str(own.id)
    return str(own.state) in _AT_REST or attempt in questions_of(session, [attempt])


def last_cleared(
    session: Any, task: TaskRef, events: Collection[str]
) -> tuple[str, datetime] | None:
    """Who cleared a task instance last on our pages, and when; None if no one did.

    :param events: the entries in the audit log that stand for it.
    """
    row = session.execute(
        select(Log.owner, Log.dttm)
        .where(
            *is_of(Log, task.dag_id, task.run_id, task.task_id, task.map_index),
            Log.event.in_(events),
        )
        .order_by(Log.dttm.desc())
        .limit(1)
    ).first()
    return (str(row.owner), row.dttm) if row is not None else None


def _dag_of(session: Any, bag: Any, task: TaskRef) -> Any:
    """The DAG of a run as Airflow takes it to clear tasks; the newest one if its version is gone,
    and None if there is none."""
    run = session.scalar(
        select(DagRun).where(DagRun.dag_id == task.dag_id, DagRun.run_id == task.run_id)
    )
    dag = bag.get_dag_for_run(run, session) if run is not None else None
    return dag or bag.get_latest_version_of_dag(task.dag_id, session=session)


def _along(session: Any, dag: Any, task: TaskRef) -> set[str | tuple[str, int]]:
    """The tasks that Airflow clears with a task and everything downstream, setups and teardowns
    included; of a mapped task group only the instances that depend on this one."""
    if dag is None or not dag.has_task(task.task_id):
        return set()
    subset = dag.partial_subset(
        task_ids=[task.task_id], include_downstream=True, include_upstream=False
    )
    along: set[str | tuple[str, int]] = {*subset.task_dict} - {task.task_id}
    if find_relevant_relatives is None or task.map_index < 0:
        return along
    relatives = find_relevant_relatives(
        [],
        [(task.task_id, task.map_index)],
        direction="downstream",
        dag=dag,
        run_id=task.run_id,
        session=session,
    )
    single = {one for one in relatives if not isinstance(one, str)}
    of_group = {task_id for task_id, _ in single} - {*relatives}
    return (along - of_group) | {one for one in single if one[0] in of_group}


def _in_order(dag: Any, task_ids: Collection[str]) -> tuple[str, ...]:
    """Tasks of a DAG, each after those that it depends on."""

    def place(task_id: str) -> tuple[int, str]:
        if dag is None or not dag.has_task(task_id):
            return 0, task_id
        return len(dag.get_task(task_id).get_flat_relative_ids(upstream=True)), task_id

    return tuple(sorted(task_ids, key=place))
