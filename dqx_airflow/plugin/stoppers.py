"""The tasks that prevent another from running: the gates upstream of it that blocked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dqx_airflow.plugin.airflow import TaskRun, ended_gates, graph_of_dag
from dqx_airflow.plugin.report_view import ReportView, view_of_summary
from dqx_airflow.values import Outcome

STOPPED_STATES = ("upstream_failed", "skipped")
"""The states of a task that an upstream task prevented from running."""

_STOPS = (Outcome.BLOCKED, Outcome.BROKEN)


@dataclass(frozen=True, slots=True)
class Stopper:
    """A task upstream of another that it prevented from running; its report, if it is a gate with
    one."""

    run: TaskRun
    report: ReportView | None


def stopped_by(run: TaskRun, session: Any) -> tuple[Stopper, ...]:
    """The tasks that stopped a task, gates first; in the whole run if the graph of the DAG is
    unknown."""
    before = graph_of_dag(session, run.dag_id).before(run.task_id)
    stoppers = []
    for gate_run in ended_gates(session, run):
        if before and gate_run.task_id not in before:
            continue
        report = view_of_summary(gate_run.pushed)
        stops = report.outcome in _STOPS if report else gate_run.state == "failed"
        if stops and gate_run.state != "success":
            stoppers.append(Stopper(gate_run, report))
    return tuple(sorted(stoppers, key=lambda stopper: stopper.report is None))
