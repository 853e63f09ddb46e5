"""All runs of a gate, newest first, with filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, NamedTuple

from fastapi import Depends, Response

from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.ui import airflow, responses
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import Cell, gate_rows
from dqx_airflow.ui.stored_summaries import reported_runs, with_summaries
from dqx_airflow.ui.summary_view import parsed, view_of_summary
from dqx_airflow.values import Outcome
from dqx_airflow.values.typed_values import day_in

RUNS_OF_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class RunFilters(responses.Filters):
    """The filters of the list of runs."""

    outcome: str = ""
    since: str = ""
    until: str = ""
    instance: str = ""
    part: str = ""

    def wanted(self, gates: Sequence[str]) -> RunsWanted:
        """The matching runs; invalid filters match all."""
        return RunsWanted(
            gates,
            parsed(Outcome, self.outcome),
            day_in(self.since),
            day_in(self.until),
            responses.whole_number(self.instance),
            {"partial": True, "whole": False}.get(self.part),
        )


router = PageRouter()

_MOST_SILENT = 20


class RunsPage(NamedTuple):
    """A page of the runs of a gate. `counts` are the runs by outcome, `silent` the last runs
    without a report, and `left` those in Airflow if the results store knows none."""

    gate: str
    rows: tuple[RunRow, ...]
    paging: responses.Paging
    counts: dict[str, int]
    silent: list[airflow.TaskRun]
    left: tuple[Cell, ...]
    problem: str | None


@router.get("/runs", dependencies=[airflow.READS_DAG])
def runs_of_gate(
    session: airflow.SessionDep,
    filters: Annotated[RunFilters, Depends()],
    page: responses.PageNumber,
    dag_id: str = "",
    task_id: str = "",
) -> responses.Page[RunsPage] | Response:
    """All runs of a gate."""
    client = responses.store_client()
    recent = reported_runs(session, client, [(dag_id, task_id)])
    if not any(run.is_gate for run in recent):
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No such gate",
            f"Task {task_id} of DAG {dag_id} has not reported as a gate.",
        )
    (row,) = gate_rows(recent, {})
    ended = with_summaries(client, airflow.ended_runs(session, dag_id, task_id))
    silent = [run for run in ended if view_of_summary(run.pushed) is None]
    session.close()
    gates = client.ask(lambda store: store.gates_of({run.attempt_id for run in recent}))
    wanted = filters.wanted(gates.found)
    counted = client.ask(lambda store: store.count_runs(wanted))
    counts = dict(counted.found)
    total = sum(counts.values()) if wanted.outcome is None else counts.get(wanted.outcome, 0)
    paging = responses.Paging.of(page, total, RUNS_OF_A_PAGE)
    lines = client.ask(lambda store: store.runs(wanted, RUNS_OF_A_PAGE, paging.skipped))
    at = partial(responses.address, "runs", dag_id=dag_id, task_id=task_id)
    return responses.Page(
        "runs.html",
        RunsPage(
            gate=row.gate,
            rows=lines.found,
            paging=paging,
            counts={outcome.value: counts.get(outcome.value, 0) for outcome in Outcome},
            silent=silent[:_MOST_SILENT],
            left=() if gates.found else row.cells,
            problem=gates.problem or counted.problem or lines.problem,
        ),
        dag_id=dag_id,
        task_id=task_id,
        at=lambda **changes: at(**{**filters.query, **changes}),
        filters=filters,
        is_mapped=any(run.map_index >= 0 for run in recent),
    )
