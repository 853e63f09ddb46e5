"""DAGs in Airflow: the gates in them, what is downstream, assets, deadlines, owners, and the states
that people set by hand."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter
from itertools import groupby
from typing import Annotated, Any, TypeAlias

from airflow.models.asset import AssetModel, DagScheduleAssetReference, TaskOutletAssetReference
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.deadline import Deadline
from airflow.models.log import Log
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from fastapi import Depends
from sqlalchemy import func, select, tuple_

from dqx_airflow.operators.summary import XCOM_KEY
from dqx_airflow.ui.airflow import TaskRun, is_of, of_run
from dqx_airflow.ui.airflow_users import VisitorDep
from dqx_airflow.ui.summary_view import parsed

_MOST_MARKS = 20


_OPERATORS = (
    "DqlGateOperator",
    "ContractGateOperator",
    "_DecoratedDqlGate",
    "_DecoratedContractGate",
)
"""The names of our operators, as Airflow stores them with each task instance."""


@dataclass(frozen=True, slots=True)
class GateDag:
    """The facts about a DAG with gates: its owners, joined as in Airflow, and the next scheduled
    run. `due` is None without one, as for a DAG that assets trigger."""

    owners: str = ""
    is_paused: bool = False
    due: datetime | None = None


@dataclass(frozen=True, slots=True)
class GateTasks:
    """The gates of the DAGs that the user may read: the tasks that ever left a report, and the
    tasks of our operators in the newest run of each DAG, which may never have left one."""

    tasks: frozenset[tuple[str, str]]
    dags: dict[str, GateDag]


def gate_tasks(visitor: VisitorDep) -> GateTasks:
    """The gates that the user may see on pages about more than one DAG, as a dependency."""
    pushing = visitor.session.execute(
        select(XComModel.dag_id, XComModel.task_id).where(XComModel.key == XCOM_KEY).distinct()
    )
    newest = select(func.max(DagRun.id)).group_by(DagRun.dag_id)
    mute = visitor.session.execute(
        select(TaskInstance.dag_id, TaskInstance.task_id)
        .join(DagRun, of_run())
        .where(DagRun.id.in_(newest), TaskInstance.operator.in_(_OPERATORS))
        .distinct()
    )
    tasks = {(dag_id, task_id) for rows in (pushing, mute) for dag_id, task_id in rows}
    readable = {dag_id for dag_id, _ in tasks if visitor.may_read(dag_id)}
    dags = visitor.session.execute(
        select(
            DagModel.dag_id,
            DagModel.owners,
            DagModel.is_paused,
            DagModel.is_stale,
            DagModel.next_dagrun_create_after,
        ).where(DagModel.dag_id.in_(readable))
    )
    return GateTasks(
        frozenset((dag_id, task_id) for dag_id, task_id in tasks if dag_id in readable),
        {
            dag_id: GateDag(owners or "", bool(is_paused), None if is_paused or is_stale else due)
            for dag_id, owners, is_paused, is_stale, due in dags
        },
    )


TasksDep: TypeAlias = Annotated[GateTasks, Depends(gate_tasks)]


def graph_of_dag(session: Any, dag_id: str) -> DagGraph:
    """The tasks of the newest version of a DAG; an empty graph if it is unknown."""
    serialized = session.scalar(SerializedDagModel.latest_item_select_object(dag_id))
    return graph_of(serialized.data if serialized else None)


def states_of(session: Any, dag_id: str, run_id: str, task_ids: Collection[str]) -> dict[str, str]:
    """The states of tasks in a run of their DAG; for a mapped task, of its first instance."""
    rows = session.execute(
        select(TaskInstance.task_id, TaskInstance.state)
        .where(*is_of(TaskInstance, dag_id, run_id), TaskInstance.task_id.in_(task_ids))
        .order_by(TaskInstance.map_index.desc())
    )
    return {task_id: str(state or "") for task_id, state in rows}


def assets_of(session: Any, dag_id: str, task_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The assets that tasks update, each with the DAGs that are scheduled on it."""
    rows = session.execute(
        select(AssetModel.name, DagScheduleAssetReference.dag_id)
        .join(TaskOutletAssetReference, TaskOutletAssetReference.asset_id == AssetModel.id)
        .join(
            DagScheduleAssetReference,
            DagScheduleAssetReference.asset_id == AssetModel.id,
            isouter=True,
        )
        .where(
            TaskOutletAssetReference.dag_id == dag_id,
            TaskOutletAssetReference.task_id.in_(task_ids),
        )
        .order_by(AssetModel.name, DagScheduleAssetReference.dag_id)
    )
    return {
        name: tuple(dict.fromkeys(consumer for _, consumer in own if consumer))
        for name, own in groupby(rows, lambda row: row[0])
    }


@dataclass(frozen=True, slots=True)
class Mark:
    """The state in which a person marked a task instance by hand, with its note in Airflow."""

    state: str
    author: str
    at: datetime
    note: str


def mark_of(session: Any, run: TaskRun) -> Mark | None:
    """The mark to which a task instance owes its state; None if it ended by itself."""
    rows = session.execute(
        select(Log.dttm, Log.owner, Log.extra, Log.map_index)
        .where(*is_of(Log, run.dag_id, run.run_id, run.task_id), Log.event == "patch_task_instance")
        .order_by(Log.dttm.desc())
        .limit(_MOST_MARKS)
    )
    for at, owner, extra, map_index in rows:
        state = _get(parsed(json.loads, extra or "{}"), "new_state")
        is_own = map_index in (None, run.map_index)
        if not is_own or state is None:
            continue
        if state != run.state or (run.started is not None and at < run.started):
            return None
        return Mark(str(state), str(owner or ""), at, _note_of(session, run))
    return None


def _note_of(session: Any, run: TaskRun) -> str:
    """The note of a task instance in Airflow."""
    instance = session.scalar(
        select(TaskInstance).where(
            *is_of(TaskInstance, run.dag_id, run.run_id, run.task_id, run.map_index)
        )
    )
    return str(getattr(instance, "note", None) or "")


def deadline_of(session: Any, dag_id: str, run_id: str) -> datetime | None:
    """The next deadline of a run of a DAG; None without one."""
    return deadlines_of(session, [(dag_id, run_id)]).get((dag_id, run_id))


def deadlines_of(
    session: Any, runs: Collection[tuple[str, str]]
) -> dict[tuple[str, str], datetime]:
    """The next deadline of each run that has one.

    :param runs: the DAGs and the ids of the runs.
    """
    if not runs:
        return {}
    rows = session.execute(
        select(DagRun.dag_id, DagRun.run_id, func.min(Deadline.deadline_time))
        .join(Deadline, Deadline.dagrun_id == DagRun.id)
        .where(tuple_(DagRun.dag_id, DagRun.run_id).in_(runs))
        .group_by(DagRun.dag_id, DagRun.run_id)
    )
    return {(dag_id, run_id): until for dag_id, run_id, until in rows}


def owners_of(session: Any, dag_id: str) -> str:
    """The owners of a DAG, joined as in Airflow."""
    return str(session.scalar(select(DagModel.owners).where(DagModel.dag_id == dag_id)) or "")


def dag_ids(session: Any) -> frozenset[str]:
    """The ids of all DAGs, whoever may read them."""
    return frozenset(session.scalars(select(DagModel.dag_id)))


@dataclass(frozen=True, slots=True)
class DagGraph:
    """The tasks of a DAG by their ids, each with its direct successors."""

    following: Mapping[str, frozenset[str]]

    def after(self, task_id: str) -> frozenset[str]:
        """All tasks downstream of a task."""
        return _reached(self.following, task_id)

    def in_order_after(self, task_id: str) -> tuple[str, ...]:
        """The same, each after those that it follows, else in the order of their ids."""
        found = sorted(self.after(task_id))
        order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(found, ()))
        for task in found:
            for follower in self.following.get(task, ()):
                order.add(follower, task)
        return tuple(order.static_order())

    def before(self, task_id: str) -> frozenset[str]:
        """All tasks upstream of a task."""
        preceding: dict[str, set[str]] = {}
        for task, followers in self.following.items():
            for follower in followers:
                preceding.setdefault(follower, set()).add(task)
        return _reached(preceding, task_id)


def graph_of(data: object) -> DagGraph:
    """The graph of a serialized DAG; an empty one for invalid input."""
    tasks = _get(_get(data, "dag"), "tasks")
    upstream: dict[str, frozenset[str]] = {}
    for task in tasks if isinstance(tasks, list) else ():
        fields = _get(task, "__var") or task
        task_id = _get(fields, "task_id")
        following = _get(fields, "downstream_task_ids")
        if isinstance(task_id, str):
            ids = following if isinstance(following, list) else ()
            upstream[task_id] = frozenset(follower for follower in ids if isinstance(follower, str))
    return DagGraph(upstream)


def _get(value: object, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _reached(edges: Mapping[str, Iterable[str]], start: str) -> frozenset[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = set(edges.get(waiting.pop(), ())) - seen
        seen |= fresh
        waiting += fresh
    return frozenset(seen)
