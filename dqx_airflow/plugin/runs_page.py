"""The list of the runs of a gate: every run in the results store, newest data first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from dqx_airflow.plugin.addresses import address, report_address
from dqx_airflow.plugin.airflow import TaskRun
from dqx_airflow.plugin.board_page import Cell
from dqx_airflow.plugin.parameters import day, whole_number
from dqx_airflow.plugin.report_view import PartialView, partial_view
from dqx_airflow.results.run_lines import RunLine, RunsWanted
from dqx_airflow.values import Outcome

RUNS_OF_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class RunFilters:
    """The filters as in the address; empty strings mean all."""

    outcome: str = ""
    since: str = ""
    until: str = ""
    instance: str = ""
    part: str = ""

    def wanted(self, gates: Sequence[str]) -> RunsWanted:
        """The matching runs; invalid filters match all."""
        return RunsWanted(
            gates,
            next((outcome for outcome in Outcome if outcome.value == self.outcome), None),
            day(self.since),
            day(self.until),
            whole_number(self.instance),
            {"partial": True, "whole": False}.get(self.part),
        )


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in the list, and the address of its report."""

    line: RunLine
    href: str

    @property
    def duration_s(self) -> float:
        return (self.line.finished_at - self.line.started_at).total_seconds()

    @property
    def partial(self) -> PartialView | None:
        """The selection of a partial run."""
        return partial_view(self.line.partial)


@dataclass(frozen=True, slots=True)
class RunsPage:
    """Page `page` of `pages`, counted from 1. `counts` are the runs by outcome, ignoring a filter
    on outcomes, and `total` the matching ones. `silent` are recent task instances that ended
    without a report, and `left` the summaries in Airflow if the store does not respond."""

    dag_id: str
    task_id: str
    gate: str
    rows: tuple[ListedRun, ...]
    page: int
    pages: int
    total: int
    counts: Mapping[str, int]
    filters: RunFilters
    is_mapped: bool
    silent: tuple[TaskRun, ...]
    left: tuple[Cell, ...]

    def at(self, page: int = 1, **changes: str) -> str:
        """The address of a page of the list, or of one with other filters."""
        chosen = {**asdict(self.filters), **changes}
        number = page if page > 1 else ""
        return address("runs", dag_id=self.dag_id, task_id=self.task_id, page=number, **chosen)


def rows_of(dag_id: str, task_id: str, lines: Sequence[RunLine]) -> tuple[ListedRun, ...]:
    """The runs of a task with the addresses of their reports."""
    return tuple(
        ListedRun(line, report_address(dag_id, task_id, line.run_key, line.attempt_id, line.run_id))
        for line in lines
    )
