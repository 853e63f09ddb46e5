"""What a gate reports to Airflow's own metrics (StatsD, OpenTelemetry, Datadog)."""

from __future__ import annotations

from typing import Any

from airflow.providers.common.compat.sdk import Stats

from dqx_airflow.operators.outcome import NO_REPORT
from dqx_airflow.values import GateReport, Status


def emit_outcome(gate: str, context: Any, report: GateReport | None) -> None:
    """Counts a run of a gate by its outcome, its duration, the rows of its datasets, and its
    assertions by status.

    :param report: None for a run without one, whose outcome is "no report".
    """
    ti = context["ti"]
    tags = {"gate": gate, "dag_id": ti.dag_id, "task_id": ti.task_id}
    outcome = report.outcome.value if report is not None else NO_REPORT
    Stats.incr("dqx.gate.outcome", tags={**tags, "outcome": outcome.replace(" ", "_")})
    if report is None:
        return
    Stats.timing("dqx.gate.duration", report.finished_at - report.started_at, tags=tags)
    for dataset in report.datasets:
        if dataset.rows is not None:
            Stats.gauge("dqx.gate.rows", dataset.rows, tags={**tags, "dataset": dataset.name})
    for status in Status:
        tagged = {**tags, "status": status.value}
        Stats.gauge("dqx.gate.assertions", report.count(status), tags=tagged)
