"""Shared by the tests of the UI: an Airflow in which gates ran, reports, and an HTML reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from html.parser import HTMLParser
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from dqx_airflow.results.report_rows import digests_of
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import (
    Attempt,
    DatasetSnapshot,
    FailingRow,
    GateReport,
    Origin,
    Outcome,
    RunKey,
    Severity,
    SourceFile,
    Span,
    Status,
    Verdict,
)
from tests.made_reports import report_at, verdict_of

if TYPE_CHECKING:
    from httpx import Response

Get = Callable[..., "Response"]
"""Asks for a page; the fixtures `get`, `post` and `tab`."""

DAY = date(2024, 3, 20)
NOON = datetime(2024, 3, 20, 12, tzinfo=timezone.utc)
ASKED_AT = datetime(2024, 3, 20, 12, 1, tzinfo=timezone.utc)
ACCEPT, KEEP = "Accept this data", "Keep blocked"

PLACE = "s3://lake/orders"
"""Where the dataset `orders` of the reports is."""

NULLS = verdict_of(
    "orders.id.null_share",
    check="Completeness",
    expression="null_count(id) / num_rows()",
    expected="< MAX_NULLS (10%)",
    severity=Severity.P0,
    value=0.02,
    threshold=0.1,
    span=Span("orders.dql", 5, 16, 5, 43),
    source_line="        assert null_count(id) / num_rows() < MAX_NULLS",
    origin=Origin.SCAN,
)
NOT_EMPTY = verdict_of(
    "orders.not_empty", check="implicit", value=5000, threshold=0, origin=Origin.LOG
)
ROWS = (
    FailingRow("orders", "id is null", '{"day": "2024-03-20", "id": null, "tax_id": "***"}'),
    FailingRow("orders", "id is null", '{"day": "2024-03-20", "id": null, "tax_id": "***"}'),
)
BAD_NULLS = replace(NULLS, status=Status.FAILED, value=0.5, scaled_value=0.5, failing_rows=ROWS)


def report_of(
    number: int = 1,
    *,
    on: date = DAY,
    verdicts: tuple[Verdict, ...] = (BAD_NULLS, NOT_EMPTY),
    outcome: Outcome = Outcome.BLOCKED,
    dag_id: str = "lake",
    task_id: str = "gate",
    attempt: str = "",
    dataset: str = "orders",
    **changes: Any,
) -> GateReport:
    """The report number `number` of a gate, about the data of a day."""
    started = datetime(on.year, on.month, on.day, 12, tzinfo=timezone.utc)
    run_id = str(UUID(int=number, version=4))
    report = report_at(
        started,
        *verdicts,
        run_id=run_id,
        run_key=RunKey(f"{dag_id}.{task_id}", on, f"scheduled__{on}"),
        attempt=Attempt(1, attempt or run_id),
        outcome=outcome,
        datasets=(DatasetSnapshot(dataset, f"s3://lake/{dataset}", "delta", version=7, rows=5000),),
        finished_at=started + timedelta(seconds=40),
    )
    return replace(report, **changes)


HAS_TEAMS = tuple(map(int, version("apache-airflow-core").split(".")[:2])) >= (3, 2)
"""Whether Airflow's simple users belong to teams: it then hides the DAGs of other teams."""


def require_teams() -> None:
    """Skips a test with users of several teams on Airflow 3.1."""
    if not HAS_TEAMS:
        pytest.skip("Airflow 3.2 has teams of users")


@dataclass(slots=True)
class Scene:
    """Airflow's database and a results store, and a way to put runs of gates into both."""

    root: Path
    session: Any
    _runs: set[tuple[str, str]] = field(default_factory=set)

    def dag(self, dag_id: str = "lake", *, team: str = "red", owners: str = "ada") -> None:
        """A DAG that the users of a team may read."""
        if team != "red":
            require_teams()
        from airflow.models.dag import DagModel

        self.session.add(DagModel(dag_id=dag_id, bundle_name=f"{team}-dags", owners=owners))
        self.session.commit()

    def task(
        self,
        dag_id: str = "lake",
        task_id: str = "gate",
        *,
        on: date = DAY,
        state: str | None = "failed",
        map_index: int = -1,
        operator: str = "DqlGateOperator",
        pushed: object = None,
        number: int = 1,
    ) -> str:
        """A task instance of the run of a day, with what it pushed; the id of its attempt. Its DAG
        is one of the red team, unless there is one."""
        from airflow.models.dag import DagModel
        from airflow.models.dagrun import DagRun
        from airflow.models.taskinstance import TaskInstance
        from airflow.models.xcom import XComModel
        from sqlalchemy import select

        if self.session.get(DagModel, dag_id) is None:
            self.dag(dag_id)
        run_id, after = (
            f"scheduled__{on}",
            datetime(on.year, on.month, on.day, 12, tzinfo=timezone.utc),
        )
        if (dag_id, run_id) not in self._runs:
            self._runs.add((dag_id, run_id))
            self._insert(
                DagRun,
                dag_id=dag_id,
                run_id=run_id,
                run_after=after,
                logical_date=after,
                run_type="scheduled",
                span_status="not_started",
            )
        attempt = UUID(int=number * 1000 + map_index + 1 + on.toordinal() * 10**9, version=4)
        place = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "map_index": map_index}
        self._insert(
            TaskInstance,
            id=attempt,
            **place,
            state=state,
            operator=operator,
            try_number=1,
            pool="default_pool",
            span_status="not_started",
        )
        if pushed is not None:
            run = self.session.scalar(
                select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
            )
            self._insert(XComModel, dag_run_id=run, key="dqx_report", value=pushed, **place)
        self.session.commit()
        return str(attempt)

    def ran(
        self,
        report: GateReport,
        *,
        stored: bool = True,
        pushed: bool = True,
        state: str | None = None,
        dag_id: str = "lake",
        task_id: str = "gate",
        number: int = 1,
        map_index: int = -1,
        attempt: int = 1,
        sources: tuple[SourceFile, ...] = (),
    ) -> GateReport:
        """A gate that went by these texts came to its end with this report, as the operator leaves
        it."""
        from dqx_airflow.operators.summary import summary

        ended = "success" if report.outcome in (Outcome.PASSED, Outcome.WARNED) else "failed"
        attempt_id = self.task(
            dag_id,
            task_id,
            on=report.run_key.date,
            state=state or ended,
            pushed=summary(report) if pushed else None,
            number=number,
            map_index=map_index,
        )
        report = replace(report, attempt=Attempt(attempt, attempt_id))
        return self.store(report, sources) if stored else report

    def days(self, outcomes: str, **changes: Any) -> None:
        """The runs of a gate on the last days, oldest first: p(assed) or b(locked)."""
        for place, letter in enumerate(reversed(outcomes)):
            is_bad = letter == "b"
            judged: dict[str, Any] = {
                "verdicts": (BAD_NULLS if is_bad else NULLS, NOT_EMPTY),
                "outcome": Outcome.BLOCKED if is_bad else Outcome.PASSED,
            }
            report = report_of(place + 1, on=DAY - timedelta(days=place), **{**judged, **changes})
            self.ran(report, number=place + 1)

    def store(self, report: GateReport, sources: tuple[SourceFile, ...] = ()) -> GateReport:
        """The job of a gate that went by these texts wrote this report."""
        report = replace(report, sources=digests_of(sources))
        ResultsStore(str(self.root)).write(report, sources)
        return report

    def history(self, attempt: str, dag_id: str = "lake", task_id: str = "gate") -> None:
        """An earlier attempt of the task instance of the day, as Airflow notes it at a retry."""
        from airflow.models.taskinstancehistory import TaskInstanceHistory

        self._insert(
            TaskInstanceHistory,
            task_instance_id=UUID(attempt),
            dag_id=dag_id,
            task_id=task_id,
            run_id=f"scheduled__{DAY}",
            map_index=-1,
            try_number=1,
            pool="default_pool",
            span_status="not_started",
        )
        self.session.commit()

    def chain(self, *task_ids: str, dag_id: str = "lake") -> None:
        """The DAG as Airflow keeps it: these tasks, one after the other."""
        from airflow.providers.standard.operators.empty import EmptyOperator
        from airflow.sdk import DAG

        with DAG(dag_id, schedule=None) as dag:
            tasks = [EmptyOperator(task_id=task_id) for task_id in task_ids]
            for task, following in pairwise(tasks):
                task >> following
        self.serialized(dag)

    def asks(self, attempt: str, until: datetime | None = None, default: str = KEEP) -> None:
        """The task instance waits for the answer of a person, as Airflow stores it."""
        from airflow.models.hitl import HITLDetail
        from airflow.models.taskinstance import TaskInstance
        from airflow.models.trigger import Trigger
        from airflow.utils.state import TaskInstanceState
        from sqlalchemy import update

        question = {"options": [ACCEPT, KEEP], "subject": "blocked", "params": {}}
        defaults = [default] if until else None
        asked = {"created_at": ASKED_AT, "params_input": {}}
        uuid = UUID(attempt) if TaskInstance.id.type.python_type is UUID else attempt
        self._insert(HITLDetail, ti_id=uuid, defaults=defaults, **question, **asked)
        if hasattr(TaskInstanceState, "AWAITING_INPUT"):
            parked: dict[str, Any] = {"state": "awaiting_input", "trigger_timeout": until}
        else:
            trigger = Trigger("a.trigger", {"timeout_datetime": until})
            self.session.add(trigger)
            self.session.flush()
            parked = {"state": "deferred", "trigger_id": trigger.id}
        of_attempt = update(TaskInstance).where(TaskInstance.id == uuid)
        self.session.execute(of_attempt.values(**parked))
        self.session.commit()

    def due(self, until: datetime, dag_id: str = "lake", on: date = DAY) -> None:
        """The run of a day has a deadline, as Airflow stores it."""
        from airflow.models.dagrun import DagRun
        from airflow.models.deadline import Deadline
        from sqlalchemy import select

        run_id = f"scheduled__{on}"
        run = self.session.scalar(
            select(DagRun.id).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        )
        known = {"id": uuid4(), "dagrun_id": run, "deadline_time": until, "missed": False}
        values: dict[str, Any] = {}
        for column in Deadline.__table__.columns:
            if column.name in known:
                values[column.name] = known[column.name]
            elif not column.nullable and column.default is None:
                # Airflow 3.1 has the callback in its column, later ones refer to it.
                is_time = column.name.endswith("_at")
                other: Any = uuid4() if column.name.endswith("_id") else {}
                values[column.name] = until if is_time else other
        self.session.commit()
        with self.session.get_bind().connect() as connection:
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")  # its callback is left out
            connection.execute(Deadline.__table__.insert().values(**values))
            connection.commit()
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")

    def go_on(self) -> None:
        """No DAG is paused."""
        from airflow.models.dag import DagModel
        from sqlalchemy import update

        self.session.execute(update(DagModel).values(is_paused=False))
        self.session.commit()

    def serialized(self, dag: Any) -> None:
        """A DAG as Airflow keeps it."""
        from airflow.models.serialized_dag import SerializedDagModel
        from airflow.serialization.serialized_objects import LazyDeserializedDAG

        lazy = LazyDeserializedDAG.from_dag(dag)
        SerializedDagModel.write_dag(lazy, bundle_name="red-dags", session=self.session)
        self.session.commit()

    def updates(self, task_id: str, asset: str, consumer: str, dag_id: str = "lake") -> None:
        """A task updates an asset on which another DAG is scheduled."""
        from airflow.models.asset import (
            AssetModel,
            DagScheduleAssetReference,
            TaskOutletAssetReference,
        )

        self._insert(AssetModel, id=1, name=asset, uri=f"s3://{asset}", group="asset", extra={})
        self._insert(TaskOutletAssetReference, asset_id=1, dag_id=dag_id, task_id=task_id)
        self._insert(DagScheduleAssetReference, asset_id=1, dag_id=consumer)
        self.session.commit()

    def _insert(self, model: Any, **values: Any) -> None:
        # Airflow makes instances from tasks of a serialized DAG; a page reads only the tables.
        from sqlalchemy import String

        table = model.__table__
        columns = {
            model.__mapper__.attrs[name].columns[0].key: value for name, value in values.items()
        }
        for key, value in columns.items():
            if isinstance(value, UUID) and isinstance(table.c[key].type, String):
                columns[key] = str(value)  # Airflow 3.1
        self.session.execute(table.insert().values(**columns))


_MAY_BREAK = "\N{ZERO WIDTH SPACE}"


class Html(HTMLParser):
    """A page as a test looks at it: its elements, its visible text, its links.

    Each element that opens is closed, in its place.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.links: dict[str, str] = {}
        self._open: list[str] = []
        self._texts: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._texts).replace(f" {_MAY_BREAK} ", "").split())

    @property
    def forms(self) -> list[dict[str, str]]:
        """The hidden fields of each form that changes something."""
        found: list[dict[str, str]] = []
        for tag, given in self.elements:
            if tag == "form":
                found.append({} if given.get("method") == "post" else {"": "no"})
            elif tag == "input" and given.get("type") == "hidden" and found:
                found[-1][given["name"] or ""] = given.get("value") or ""
        return [fields for fields in found if "" not in fields]

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [
            found
            for name, found in self.elements
            if name == tag
            and all(found.get(key.rstrip("_")) == value for key, value in attributes.items())
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "wbr":
            self._texts.append(_MAY_BREAK)
        elif tag not in ("meta", "br", "col", "link", "img", "input"):
            self._open.append(tag)
        if tag == "a":
            self._texts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "title", "script"):
            self._texts.append(data)
        if "a" in self._open:
            href = self.all("a")[-1].get("href") or ""
            self.links[data.strip()] = href
