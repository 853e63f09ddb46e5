"""The page of a dataset, which its location identifies: the findings of all gates, with times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import Response

from dqx_airflow.diagnostics.verdicts import is_age
from dqx_airflow.lineage.names import trimmed_location
from dqx_airflow.results.incidents import CLOSED, IncidentNote
from dqx_airflow.ui import board_page, report_view, responses
from dqx_airflow.ui.airflow import TaskRun, instance_of
from dqx_airflow.ui.airflow_dags import TasksDep
from dqx_airflow.ui.airflow_users import SessionDep
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.assertion_view import WIDE_HEIGHT, WIDE_WIDTH, histories
from dqx_airflow.ui.board_page import GateRow, counts_line, gate_rows, with_closed_dates
from dqx_airflow.ui.chart import Chart, PastValue, chart_of
from dqx_airflow.ui.datasets_page import DatasetRow, dataset_rows
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.ui.open_slices import slices_of
from dqx_airflow.ui.responses import PageNumber, Paging, report_address
from dqx_airflow.ui.stored_summaries import reported_runs
from dqx_airflow.ui.summary_view import (
    Summary,
    list_of,
    mapping_of,
    outcome_of_summary,
    view_of_summary,
)
from dqx_airflow.ui.verdict_text import reading_of
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Status, Verdict


def runs_reading(runs: Iterable[TaskRun], location: str) -> list[TaskRun]:
    """The runs of the task instances that recently read or filled a location, in the same order.

    An instance of a mapped task that was about other data in another run is left out.
    """
    candidates = [(run, _is_about(run.pushed, location)) for run in runs]
    instances = {instance_of(run) for run, is_about in candidates if is_about}
    return [
        run
        for run, is_about in candidates
        if is_about or (instance_of(run) in instances and outcome_of_summary(run.pushed) is None)
    ]


def _is_about(pushed: object, location: str) -> bool:
    """True if a summary is about a location. Checked before parsing, since most are not."""
    if not isinstance(pushed, Mapping) or location not in _mentioned(pushed):
        return False
    return location in _about(pushed)


def _about(pushed: Mapping[str, Any]) -> frozenset[str]:
    """The locations that the report of a summary is about."""
    if isinstance(pushed, Summary) and hasattr(pushed, "about"):
        return pushed.about
    view = view_of_summary(pushed)
    found: frozenset[str] = frozenset()
    if view is not None:
        read = (dataset.location for dataset in report_view.datasets_in(view))
        found = frozenset((*read, *report_view.promotions_in(view)))
    if isinstance(pushed, Summary):
        pushed.about = found
    return found


def _mentioned(pushed: Mapping[str, Any]) -> frozenset[str]:
    """A superset of the locations that a summary may be about."""
    if not isinstance(pushed, Summary):
        return _locations_and_names(pushed)
    if not hasattr(pushed, "mentioned"):
        pushed.mentioned = _locations_and_names(pushed)
    return pushed.mentioned


def _locations_and_names(pushed: Mapping[str, Any]) -> frozenset[str]:
    read, validated, names = (pushed.get(key) for key in ("locations", "validated", "datasets"))
    filled = (mapping_of(entry).get("location") for entry in mapping_of(validated).values())
    return frozenset(
        {str(place) for place in mapping_of(read).values()}
        | {trimmed_location(place) for place in filled if isinstance(place, str)}
        | {f"{name} of {pushed.get('gate')}" for name in list_of(names)}
    )


_GATES_OF_A_PAGE = 6
_SHOWN_ASSERTIONS = 100
_SHOWN_PAST = 30
router = PageRouter()


@dataclass(frozen=True, slots=True)
class DatasetDay:
    """The data that a run of a gate read of a dataset; `href` is the address of its report, and
    `closing` the note of a person who closed the date."""

    date: date
    outcome: Outcome
    snapshot: DatasetSnapshot
    href: str
    closing: IncidentNote | None = None

    @property
    def state(self) -> str:
        """The outcome of the run, or `closed`."""
        return CLOSED if self.closing is not None else self.outcome.value


@dataclass(frozen=True, slots=True)
class AssertionHistory:
    """An assertion about a dataset: its last verdict, its past values oldest first, and how many of
    them failed."""

    newest: Verdict
    past: list[PastValue]
    failures: int
    chart: NotInJson[Chart | None]


@dataclass(frozen=True, slots=True)
class DatasetGate:
    """The findings of one gate in a dataset: its names there, what it read, newest first, and its
    assertions, those that failed most often first. `counted` is the sum of the last verdicts,
    `more` the number of assertions that are left out."""

    row: GateRow
    names: tuple[str, ...]
    chart: NotInJson[Chart | None]
    days: list[DatasetDay]
    assertions: list[AssertionHistory]
    more: int
    counted: str


def _gate(
    location: str, row: GateRow, reports: Sequence[GateReport], closed: Mapping[str, IncidentNote]
) -> DatasetGate:
    oldest_first = [report for report in reversed(reports) if _names(location, report)]
    days = [
        DatasetDay(
            report.run_key.date,
            report.outcome,
            snapshot,
            report_address(row.dag_id, row.task_id, report.run_key, report.attempt.id),
            closed.get(report.attempt.id),
        )
        for report in oldest_first
        for snapshot in report.datasets
        if report_view.is_at(location, report.run_key.gate, snapshot)
    ]
    last = oldest_first[-1] if oldest_first else None
    names = _names(location, last) if last else ()
    newest = (
        [verdict for verdict in last.verdicts if {*names} & {*verdict.datasets}] if last else []
    )
    keys = {(verdict.check, verdict.name) for verdict in newest}
    assertions = [
        _assertion(history)
        for key, history in histories(oldest_first, row.dag_id, row.task_id).items()
        if key in keys
    ]
    assertions.sort(key=lambda found: (-found.failures, found.newest.severity.value))
    return DatasetGate(
        row=row,
        names=names,
        chart=chart_of("rows", [*map(_counted_rows, days)], WIDE_WIDTH, WIDE_HEIGHT),
        days=days[::-1][:_SHOWN_PAST],
        assertions=assertions[:_SHOWN_ASSERTIONS],
        more=max(len(assertions) - _SHOWN_ASSERTIONS, 0),
        counted=counts_line(Counter(verdict.status for verdict in newest)) if newest else "",
    )


def _counted_rows(day: DatasetDay) -> PastValue:
    """The rows of a day in a chart, with a mark if they were promoted."""
    done = day.snapshot.promotion
    when = day.date.isoformat()
    event = f"promoted, version {done.version}" if done else ""
    rows = day.snapshot.rows
    return PastValue(
        when, rows, (), Status.PASSED, event=event, on=day.date, href=day.href, value=rows
    )


def _names(location: str, report: GateReport) -> tuple[str, ...]:
    """The names of the dataset at a location in a report; empty if it is about other locations."""
    gate = report.run_key.gate
    return tuple(
        snapshot.name for snapshot in report.datasets if report_view.is_at(location, gate, snapshot)
    )


def _assertion(history: Sequence[tuple[PastValue, Verdict]]) -> AssertionHistory:
    past = [value for value, _ in history]
    newest = history[-1][1]
    read = reading_of(newest)
    is_old = is_age(newest.expression)
    chart = chart_of(newest.name, past, WIDE_WIDTH, WIDE_HEIGHT, read, is_age=is_old)
    failures = sum(value.status is Status.FAILED for value in past)
    return AssertionHistory(newest, past, failures, chart)


class DatasetPage(NamedTuple):
    """A dataset, and a page of the findings of its gates."""

    dataset: DatasetRow
    gates: list[DatasetGate]
    paging: Paging
    problem: str | None


@router.get("/dataset")
def dataset(
    session: SessionDep, tasks: TasksDep, page: PageNumber, location: str = ""
) -> responses.Page[DatasetPage] | Response:
    """The findings of the gates of those DAGs in a dataset."""
    client = responses.store_client()
    recent = reported_runs(session, client, tasks.tasks)
    slices = slices_of(session, client, tasks, recent)
    session.close()
    runs = runs_reading(recent, location)
    own = slices.of_instances({instance_of(run) for run in runs})
    rows = dataset_rows(with_closed_dates(gate_rows(runs, tasks.dags), own))
    row_there = next((row for row in rows if row.location == location), None)
    if row_there is None:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No such dataset",
            f"No gate that you may read has recently reported on {location or 'a dataset'}: see "
            "the list of all datasets.",
        )
    paging = Paging.of(page, len(row_there.gates), _GATES_OF_A_PAGE)
    shown = paging.shown(row_there.gates)
    past, problem = board_page.past_of_gates(list(shown))
    contracts = {
        (contract.id, contract.version): contract
        for row in row_there.gates
        for contract in row.contracts
    }
    gates = [
        _gate(location, row, past.get((row.dag_id, row.task_id), ()), slices.closed)
        for row in shown
    ]
    return responses.Page(
        "dataset.html",
        DatasetPage(row_there, gates, paging, problem),
        contracts=[*contracts.values()],
        most_values=_SHOWN_PAST,
    )
