"""Runs of gates that ended without a report, and the dates of their data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from dqx_airflow.results.query import RunsWanted
from dqx_airflow.ui.airflow import TaskRun
from dqx_airflow.ui.store import StoreClient
from dqx_airflow.ui.stored_summaries import with_summaries
from dqx_airflow.ui.summary_view import mapping_of, outcome_of_summary, parsed


@dataclass(frozen=True, slots=True)
class RunWithoutReport:
    """A run of a gate that ended without a report. `gate` is the name of the gate, `date` the date
    of its data, None if that is unknown, and `error` why there is no report, empty if that is
    unknown."""

    run: TaskRun
    gate: str
    date: date | None
    error: str


def runs_without_report(
    client: StoreClient, ended: Iterable[TaskRun], recent: Sequence[TaskRun] = ()
) -> tuple[RunWithoutReport, ...]:
    """The runs without a report, in the same order.

    :param ended: runs of gates that have ended.
    :param recent: other runs of these gates: what their names and dates are.
    """
    known = with_summaries(client, [*ended])
    missing = [run for run in known if outcome_of_summary(run.pushed) is None]
    if not missing:
        return ()
    wanted = RunsWanted(attempt_ids={run.attempt_id for run in missing})
    rows = client.ask(lambda store: tuple(store.run_rows(wanted, ("attempt_id",)))).found
    stored = {row["attempt_id"] for row in rows}  # if Airflow has deleted their XComs
    days = _days_between([*recent, *known])
    names = _names_of_gates([*recent, *known])
    return tuple(
        _without_report(run, names, days) for run in missing if run.attempt_id not in stored
    )


def _without_report(
    run: TaskRun,
    names: Mapping[tuple[str, str], frozenset[str]],
    days: Mapping[tuple[str, str], frozenset[int]],
) -> RunWithoutReport:
    pushed = mapping_of(run.pushed)
    return RunWithoutReport(
        run=run,
        gate=_name_of(run, pushed, names),
        date=_date_of(run, pushed, days),
        error=str(pushed.get("error") or ""),
    )


def _name_of(
    run: TaskRun, pushed: Mapping[str, Any], names: Mapping[tuple[str, str], frozenset[str]]
) -> str:
    """The name of the gate of a run without a report: as the task stored it, else as in other runs
    of the task. The default name if they differ."""
    if pushed.get("gate"):
        return str(pushed["gate"])
    known = names.get((run.dag_id, run.task_id), frozenset())
    return min(known) if len(known) == 1 else f"{run.dag_id}.{run.task_id}"


def _names_of_gates(runs: Iterable[TaskRun]) -> dict[tuple[str, str], frozenset[str]]:
    """The names of gates in runs, by DAG and task."""
    found: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        name = mapping_of(run.pushed).get("gate")
        if name:
            found.setdefault((run.dag_id, run.task_id), set()).add(str(name))
    return {task: frozenset(names) for task, names in found.items()}


def _date_of(
    run: TaskRun, pushed: Mapping[str, Any], days: Mapping[tuple[str, str], frozenset[int]]
) -> date | None:
    """The date of the data of a run without a report: as the task stored it, else as far from the
    logical date as in other runs of the gate. None if they differ."""
    stored = parsed(date.fromisoformat, str(pushed.get("date") or ""))
    if stored is not None or run.logical_date is None:
        return stored
    known = days.get((run.dag_id, run.task_id), frozenset({0}))
    if len(known) != 1:
        return None
    return date.fromordinal(run.logical_date.date().toordinal() + min(known))


def _days_between(runs: Iterable[TaskRun]) -> dict[tuple[str, str], frozenset[int]]:
    """The days from the logical date of runs to the date of their data, by DAG and task."""
    found: dict[tuple[str, str], set[int]] = {}
    for run in runs:
        judged = parsed(date.fromisoformat, str(mapping_of(run.pushed).get("date") or ""))
        if judged is not None and run.logical_date is not None:
            days = judged.toordinal() - run.logical_date.date().toordinal()
            found.setdefault((run.dag_id, run.task_id), set()).add(days)
    return {task: frozenset(days) for task, days in found.items()}
