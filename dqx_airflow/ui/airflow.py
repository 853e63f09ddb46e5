"""All queries of the pages to Airflow: the user, the permissions, the results of tasks.

Airflow guarantees none of these names. If one is missing, this module cannot be imported, and the
pages are closed: see `closed` in `ui/__init__.py`.

The key of a summary is the id of its attempt, and the time at which it was pushed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import Annotated, Any, NamedTuple, TypeAlias
from urllib.parse import quote
from uuid import UUID

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.tokens import get_signing_key
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, get_user, requires_access_dag
from airflow.configuration import conf
from airflow.models.asset import AssetModel, DagScheduleAssetReference, TaskOutletAssetReference
from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from airflow.models.deadline import Deadline
from airflow.models.hitl import HITLDetail
from airflow.models.log import Log
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance, clear_task_instances
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.trigger import Trigger
from airflow.models.xcom import XComModel
from airflow.providers.common.compat.sdk import AirflowException
from fastapi import Depends, HTTPException, Request
from sqlalchemy import String, and_, func, or_, select, tuple_, type_coerce

from dqx_airflow.operators.ask import ACCEPT
from dqx_airflow.operators.results_location import ResultsLocation, results_location_of
from dqx_airflow.operators.summary import XCOM_KEY
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.ui.summary_view import Summary, parsed

try:
    from airflow.api_fastapi.common.dagbag import resolve_run_on_latest_version
except ImportError:  # before Airflow 3.3, only the user decides on the version
    resolve_run_on_latest_version = None
try:
    from airflow.models.taskinstance import find_relevant_relatives
except ImportError:  # Airflow 3.1 clears all instances of the tasks downstream
    find_relevant_relatives = None

__all__ = ["GetUserDep", "SessionDep"]

log = logging.getLogger(__name__)

DEPTH = 14
"""The number of recent runs of a DAG that are inspected."""

MOST_INSTANCES = 500
"""The maximum number of instances of a mapped task that are inspected."""

_MOST_ROWS = 20_000
_AT_REST = ("success", "failed", "skipped", "upstream_failed")
_MOST_MARKS = 20
_PARKED = ("awaiting_input", "deferred")
"""The states of a task that waits for an answer: from Airflow 3.3 on, and before."""

_OPERATORS = (
    "DqlGateOperator",
    "ContractGateOperator",
    "_DecoratedDqlGate",
    "_DecoratedContractGate",
)
"""The names of our operators, as Airflow stores them with each task instance."""

SIGNED_IN = Depends(get_user)
"""Requires a signed-in user: 401."""

READS_DAG = Depends(requires_access_dag("GET", DagAccessEntity.XCOM))
"""Requires permission to read the results of tasks of the DAG `dag_id`: 403."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The user who asks for a page, with the request, and the session of Airflow's database."""

    request: Request
    session: Any
    user: Any

    @property
    def name(self) -> str:
        """The name of the user."""
        return str(self.user.get_name())

    def may_read(self, dag_id: str, entity: DagAccessEntity = DagAccessEntity.XCOM) -> bool:
        """Whether the user may read the results of a DAG's tasks: by the same check as the tab, so
        that both always agree."""
        return self._is_allowed(dag_id, "GET", entity)

    def may_read_code(self, dag_id: str) -> bool:
        """Whether the user may read the code of a DAG, which includes suites and contracts."""
        return self.may_read(dag_id, DagAccessEntity.CODE)

    def may_edit(self, dag_id: str) -> bool:
        """Whether the user may edit a DAG, and see the results of its tasks."""
        return self._is_allowed(dag_id, "PUT", None) and self.may_read(dag_id)

    def may_clear(self, dag_id: str) -> bool:
        """Whether the user may clear tasks of a DAG, and see their results."""
        clears = self._is_allowed(dag_id, "PUT", DagAccessEntity.TASK_INSTANCE)
        return clears and self.may_read(dag_id)

    def _is_allowed(self, dag_id: str, method: Any, entity: Any) -> bool:
        guard: Any = requires_access_dag(method, entity, dag_id)
        try:
            refusal = guard(self.request, self.user)
        except HTTPException:
            return False
        # An unawaited coroutine, in some future version, has allowed nothing yet.
        return refusal is None

    def record(self, event: str, about: TaskRef | str, facts: dict[str, Any]) -> None:
        """Writes an action of the user into Airflow's audit log, before it is done.

        :param about: a task instance, or the id of a DAG: readers of its log see the entry.
        """
        where: dict[str, Any] = {"dag_id": about}
        if isinstance(about, TaskRef):
            where = asdict(about)
            del where["label"]
        names = {"owner": self.name, "owner_display_name": self.name}
        extra = json.dumps(facts, ensure_ascii=False, default=str)
        self.session.add(Log(event=event, extra=extra, **names, **where))
        self.session.commit()


def _visitor(request: Request, session: SessionDep, user: GetUserDep) -> Visitor:
    return Visitor(request, session, user)


VisitorDep: TypeAlias = Annotated[Visitor, Depends(_visitor)]


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
        .join(DagRun, _of_run())
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
            select(TaskInstance.id, *place).where(*_is_of(TaskInstance, dag_id, run_id))
        )
        known |= {
            (dag_id, run_id, task_id, index): str(attempt) for attempt, task_id, index in rows
        }
    own = {task: (task.dag_id, task.run_id, task.task_id, task.map_index) for task in tasks}
    return {task: known[place] for task, place in own.items() if place in known}


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
                *_is_of(TaskInstance, task.dag_id, task.run_id),
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
            *_is_of(TaskInstance, task.dag_id, task.run_id, task.task_id, task.map_index)
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
            *_is_of(Log, task.dag_id, task.run_id, task.task_id, task.map_index),
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


def signing_key() -> str:
    """The secret that the API servers of a deployment share."""
    return str(get_signing_key("api", "secret_key"))


def own_origin() -> str:
    """The public address of this server; empty if it is not configured."""
    return str(conf.get("api", "base_url", fallback="") or "")


def task_runs(
    session: Any, dag_id: str, run_id: str, task_id: str, map_index: int | None = None
) -> tuple[TaskRun, ...]:
    """The instances of a task in a run, or the one with that map index."""
    where = _is_of(TaskInstance, dag_id, run_id, task_id, map_index)
    return _runs(session, *where, order=[TaskInstance.map_index])


def attempts_of(session: Any, run: TaskRun) -> frozenset[str]:
    """The ids of all attempts of a task instance, including those before it was cleared."""
    earlier = session.scalars(
        select(TaskInstanceHistory.task_instance_id).where(
            *_is_of(TaskInstanceHistory, run.dag_id, run.run_id, run.task_id, run.map_index)
        )
    )
    return frozenset({run.attempt_id, *map(str, earlier)})


def graph_of_dag(session: Any, dag_id: str) -> DagGraph:
    """The tasks of the newest version of a DAG; an empty graph if it is unknown."""
    serialized = session.scalar(SerializedDagModel.latest_item_select_object(dag_id))
    return graph_of(serialized.data if serialized else None)


def states_of(session: Any, dag_id: str, run_id: str, task_ids: Collection[str]) -> dict[str, str]:
    """The states of tasks in a run of their DAG; for a mapped task, of its first instance."""
    rows = session.execute(
        select(TaskInstance.task_id, TaskInstance.state)
        .where(*_is_of(TaskInstance, dag_id, run_id), TaskInstance.task_id.in_(task_ids))
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
        .where(
            *_is_of(Log, run.dag_id, run.run_id, run.task_id), Log.event == "patch_task_instance"
        )
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
            *_is_of(TaskInstance, run.dag_id, run.run_id, run.task_id, run.map_index)
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


def ended_gates(session: Any, run: TaskRun) -> tuple[TaskRun, ...]:
    """The other tasks of a DAG run that left a report, or ended without one."""
    return _runs(
        session,
        *_is_of(TaskInstance, run.dag_id, run.run_id),
        TaskInstance.task_id != run.task_id,
        or_(XComModel.key.is_not(None), TaskInstance.state.in_(("failed", "upstream_failed"))),
        order=[TaskInstance.end_date, TaskInstance.task_id, TaskInstance.map_index],
    )


def ended_runs(session: Any, dag_id: str, task_id: str, most: int = 100) -> tuple[TaskRun, ...]:
    """The instances of a task that failed, or succeeded without a report, newest first."""
    is_mute = and_(TaskInstance.state == "success", XComModel.key.is_(None))
    return _runs(
        session,
        *_is_of(TaskInstance, dag_id, task_id=task_id),
        or_(TaskInstance.state == "failed", is_mute),
        order=[DagRun.run_after.desc(), TaskInstance.map_index],
        most=most,
    )


def failed_runs(
    session: Any, tasks: Collection[tuple[str, str]], most: int = 1000
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


def _is_of(
    model: Any,
    dag_id: str,
    run_id: str | None = None,
    task_id: str | None = None,
    map_index: int | None = None,
) -> list[Any]:
    """Conditions on the task instances of a DAG: of one run, of one task, of one map index."""
    names = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
    return [getattr(model, name) == value for name, value in names.items() if value is not None]


def known_results() -> ResultsLocation | None:
    """The results store configured for this server, as for the operators."""
    try:
        return results_location_of()
    except AirflowException as error:
        log.warning("%s", error)
        return None


def lineage_events() -> str | None:
    """The file or folder with OpenLineage events configured for this server."""
    return conf.get("dqx", "lineage_events", fallback=None) or None


def dag_ids(session: Any) -> frozenset[str]:
    """The ids of all DAGs, whoever may read them."""
    return frozenset(session.scalars(select(DagModel.dag_id)))


def _is_pushed() -> Any:
    """The SQL condition that joins a task instance with its summary."""
    return and_(
        XComModel.dag_id == TaskInstance.dag_id,
        XComModel.task_id == TaskInstance.task_id,
        XComModel.run_id == TaskInstance.run_id,
        XComModel.map_index == TaskInstance.map_index,
        XComModel.key == XCOM_KEY,
    )


def _of_run() -> Any:
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
    return of_instances.join(DagRun, _of_run()).join(XComModel, _is_pushed(), isouter=True)


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


@dataclass(frozen=True, slots=True)
class DagGraph:
    """The tasks of a DAG by their ids, each with its direct successors."""

    following: Mapping[str, frozenset[str]]

    def after(self, task_id: str) -> frozenset[str]:
        """All tasks downstream of a task."""
        return _reached(self.following, task_id)

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
