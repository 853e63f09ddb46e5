"""The metrics that a gate reports to Airflow when its task ends."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from airflow.providers.common.compat.sdk import Stats
from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.diagnostics import verdicts
from dqx_airflow.errors import StoreError
from dqx_airflow.operators.results_location import ResultsLocation
from dqx_airflow.values import NO_REPORT, GateReport, RunKey, Status

log = logging.getLogger(__name__)


def emit_metrics(gate: str, context: Any, report: GateReport | None) -> None:
    """Reports a run of a gate to the metrics of Airflow: its outcome, its duration, the rows of its
    datasets, its assertions by status, and how many of those on the age of the data failed.

    :param report: None for a run without one, whose outcome is "no_report".
    """
    ti = context["ti"]
    tags = {"gate": gate, "dag_id": ti.dag_id, "task_id": ti.task_id}
    ended = report.outcome.value if report is not None else NO_REPORT.replace(" ", "_")
    Stats.incr("dqx.gate.outcome", tags={**tags, "outcome": ended})
    if report is None:
        return
    Stats.timing("dqx.gate.duration", report.finished_at - report.started_at, tags=tags)
    for dataset in report.datasets:
        if dataset.rows is not None:
            Stats.gauge("dqx.gate.rows", dataset.rows, tags={**tags, "dataset": dataset.name})
    for status in Status:
        tagged = {**tags, "status": status.value}
        Stats.gauge("dqx.gate.assertions", report.count(status), tags=tagged)
    ages = [one.status for one in report.verdicts if verdicts.is_age(one.expression)]
    if ages:
        Stats.gauge("dqx.gate.late", ages.count(Status.FAILED), tags=tags)


_SENDS_METRICS = ("statsd_on", "statsd_datadog_enabled", "otel_on")


def emit_open_slices(
    gate: str, context: Any, run_keys: Sequence[RunKey], location: ResultsLocation
) -> None:
    """Reports how many slices of a gate are still blocked or broken, or have no report, of all
    dates and map indexes.

    The results store is only queried, for the runs of this gate, if Airflow sends metrics.
    """
    from dqx_airflow.results.incidents import open_slices
    from dqx_airflow.results.missing_reports import missing_without_incident
    from dqx_airflow.results.query import StoredResults

    if not any(airflow_conf.getboolean("metrics", name, fallback=False) for name in _SENDS_METRICS):
        return
    ti = context["ti"]
    tags = {"gate": gate, "dag_id": ti.dag_id, "task_id": ti.task_id}
    try:
        results = StoredResults(location.root, location.storage_options)
        names = {run_key.gate for run_key in run_keys}
        still_open = open_slices(results, names)
        missing = missing_without_incident(still_open, results, names)
    except StoreError as error:
        log.warning("the open slices are not counted: %s", error)
        return
    Stats.gauge("dqx.gate.open_slices", len(still_open) + len(missing), tags=tags)
