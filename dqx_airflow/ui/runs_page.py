"""All runs of a gate, newest data first, with filters; runs without a report are among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timezone
from functools import partial
from http import HTTPStatus
from typing import Annotated, NamedTuple

from fastapi import Depends, Query, Response

from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.results.schema import as_utc
from dqx_airflow.ui import airflow, airflow_dags, airflow_users, responses
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import Cell, gate_rows
from dqx_airflow.ui.open_slices import key_of_slice, slices_of
from dqx_airflow.ui.runs_without_report import RunWithoutReport, runs_without_report
from dqx_airflow.ui.store import Answer, StoreClient
from dqx_airflow.ui.stored_summaries import reported_runs
from dqx_airflow.ui.summary_view import parsed
from dqx_airflow.values import NO_REPORT, Outcome
from dqx_airflow.values.typed_values import day_in

RUNS_OF_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class RunFilters(responses.Filters):
    """The filters of the list of runs. `first` and `last` are the first and the last date of the
    data; in addresses they are `from` and `to`, as in commands."""

    outcome: str = ""
    first: str = ""
    last: str = ""
    map_index: str = ""
    part: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The filters as parameters of an address."""
        named = asdict(self)
        return {"from": named.pop("first"), "to": named.pop("last"), **named}

    def wanted(self, gates: Sequence[str]) -> RunsWanted:
        """The matching runs; invalid filters match all."""
        return RunsWanted(
            gates,
            parsed(Outcome, self.outcome),
            day_in(self.first),
            day_in(self.last),
            responses.whole_number(self.map_index),
            {"partial": True, "whole": False}.get(self.part),
        )

    def wants_run_without_report(self, one: RunWithoutReport) -> bool:
        """Whether a run without a report matches: it has judged no assertion."""
        first, last = day_in(self.first), day_in(self.last)
        index = responses.whole_number(self.map_index)
        if parsed(Outcome, self.outcome) is not None or self.part in ("partial", "whole"):
            return False
        if index is not None and index != one.run.map_index:
            return False
        if one.date is None:
            return first is None and last is None
        return (first or date.min) <= one.date <= (last or date.max)


router = PageRouter()


class RunsPage(NamedTuple):
    """A page of the runs of a gate. `rows` are those with a report, `without_report` the others,
    `counts` all of them by outcome, and `left` those in Airflow if the results store knows none."""

    gate: str
    rows: tuple[RunRow, ...]
    without_report: tuple[RunWithoutReport, ...]
    paging: responses.Paging
    counts: dict[str, int]
    left: tuple[Cell, ...]
    problem: str | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """A line of the table: a run with a report, or one without."""

    report: RunRow | None = None
    without_report: RunWithoutReport | None = None

    @property
    def age(self) -> tuple[date, datetime]:
        """The date of the data and the start of the run, by which lines are ordered. A run whose
        date is unknown stands at the time of its DAG run."""
        if self.report is not None:
            return self.report.run_key.date, as_utc(self.report.started_at)
        assert self.without_report is not None
        run = self.without_report.run
        at = as_utc(run.started or run.run_after or _NEVER)
        return self.without_report.date or as_utc(run.run_after or at).date(), at


_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def _lines_of(
    page: responses.Paging,
    reports: Sequence[RunRow],
    skipped: int,
    without_report: Sequence[RunWithoutReport],
) -> list[RunLine]:
    """The lines of a page: runs with and without a report in one order, newest data first.

    :param reports: the reports around those of the page, in their order, after the first `skipped`.
    :param without_report: all runs without one.
    """
    lines = [RunLine(report=one) for one in reports] + [
        RunLine(without_report=one) for one in without_report
    ]
    lines.sort(key=lambda line: line.age, reverse=True)
    return lines[page.skipped - skipped :][: page.size]


def _filters_of(
    outcome: str = "",
    first: Annotated[str, Query(alias="from")] = "",
    last: Annotated[str, Query(alias="to")] = "",
    map_index: str = "",
    part: str = "",
) -> RunFilters:
    # FastAPI of Airflow 3.1 does not resolve the annotations of a dataclass.
    return RunFilters(outcome, first, last, map_index, part)


@router.get("/runs", dependencies=[airflow_users.READS_DAG])
def runs_of_gate(
    visitor: airflow_users.VisitorDep,
    filters: Annotated[RunFilters, Depends(_filters_of)],
    page: responses.PageNumber,
    dag_id: str = "",
    task_id: str = "",
) -> responses.Page[RunsPage] | Response:
    """All runs of a gate."""
    session = visitor.session
    client = responses.store_client()
    recent = reported_runs(session, client, [(dag_id, task_id)])
    if not any(run.is_gate for run in recent):
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No such gate",
            f"Task {task_id} of DAG {dag_id} has not reported as a gate.",
        )
    (row,) = gate_rows(recent, {})
    ended = airflow.ended_runs(session, dag_id, task_id)
    ended_without = runs_without_report(client, ended, recent)
    without_report = [one for one in ended_without if filters.wants_run_without_report(one)]
    keys = _keys_to_clear(visitor, client, (dag_id, task_id), recent) if without_report else {}
    session.close()
    gates = client.ask(lambda store: store.gates_of({run.attempt_id for run in recent}))
    wanted = filters.wanted(gates.found)
    counted = client.ask(lambda store: store.count_runs(wanted))
    counts = dict(counted.found)
    judged = sum(counts.values()) if wanted.outcome is None else counts.get(wanted.outcome, 0)
    if filters.outcome == NO_REPORT:
        judged = 0
    paging = responses.Paging.of(page, judged + len(without_report), RUNS_OF_A_PAGE)
    # Each run without a report moves the reports after it by one line.
    skipped = max(paging.skipped - len(without_report), 0)
    most = RUNS_OF_A_PAGE + len(without_report)
    found: Answer[RunRow] = Answer()
    if judged:
        found = client.ask(lambda store: store.runs(wanted, most, skipped))
    lines = _lines_of(paging, found.found, skipped, without_report)
    at = partial(responses.address, "runs", dag_id=dag_id, task_id=task_id)
    return responses.Page(
        "runs.html",
        RunsPage(
            gate=row.gate,
            rows=tuple(line.report for line in lines if line.report is not None),
            without_report=tuple(
                line.without_report for line in lines if line.without_report is not None
            ),
            paging=paging,
            counts={outcome.value: counts.get(outcome.value, 0) for outcome in Outcome}
            | {NO_REPORT: len(without_report)},
            left=() if gates.found else row.cells,
            problem=gates.problem or counted.problem or found.problem,
        ),
        lines=lines,
        keys=keys,
        token=responses.form_token(visitor.user),
        dag_id=dag_id,
        task_id=task_id,
        at=lambda **changes: at(**{**filters.query, **changes}),
        filters=filters,
        is_mapped=any(run.map_index >= 0 for run in recent),
    )


def _keys_to_clear(
    visitor: airflow_users.Visitor,
    client: StoreClient,
    task: tuple[str, str],
    recent: Sequence[airflow.TaskRun],
) -> dict[tuple[str, int], str]:
    """The keys of the open dates without a report that the user may clear, by the DAG run and the
    map index of their tasks."""
    if not visitor.may_clear(task[0]):
        return {}
    tasks = airflow_dags.GateTasks(frozenset([task]), {})
    known = slices_of(visitor.session, client, tasks, recent)
    return {
        (one.task.run_id, one.map_index): key_of_slice(one)
        for one in known.open
        if one.state == NO_REPORT and one.task is not None
    }
