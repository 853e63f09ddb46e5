"""Whether a gate was stopped by nothing but what has stopped an earlier gate of its DAG on the same
date: its notification says so, and is sent."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.results_location import ResultsLocation
from dqx_airflow.values import GateReport, Outcome

if TYPE_CHECKING:
    from dqx_airflow.results.incidents import Incident
    from dqx_airflow.results.query import StoredResults

_BAD = (Outcome.BLOCKED, Outcome.BROKEN)

log = logging.getLogger(__name__)


def same_cause(
    context: Any, reports: Sequence[GateReport], location: ResultsLocation
) -> dict[str, str] | None:
    """The earlier gate of the DAG that had the same cause, if all bad reports of a task have it:
    its `gate`, its `incident`, and the time `at` which it was stopped."""
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.shared_causes import gate_of

    bad = [report for report in reports if report.outcome in _BAD]
    if not bad:
        return None
    results = StoredResults(location.root, location.storage_options)
    by_run = first_incidents_by_run(context, bad, results)
    first = [by_run.get(report.run_id) for report in bad]
    gates = {gate_of(one) if one is not None else None for one in first}
    if len(gates) > 1 or first[0] is None:
        return None
    began = first[0]
    return {"gate": gate_of(began), "incident": began.id, "at": began.detected_at.isoformat()}


def first_incidents_by_run(
    context: Any, reports: Sequence[GateReport], results: StoredResults
) -> Mapping[str, Incident]:
    """The incidents of earlier gates of the DAG with the same cause as reports of a task, by the
    ids of all runs of the incidents that say nothing new. Without an answer of the store there are
    none, which is logged: what else a gate says is not affected.
    """
    try:
        return _first_in_store(context, reports, results)
    except Exception:
        log.exception("it is unknown whether an earlier gate of the DAG had the same cause")
        return {}


def _first_in_store(
    context: Any, reports: Sequence[GateReport], results: StoredResults
) -> Mapping[str, Incident]:
    """:raises StoreError: the store exists and cannot be read."""
    from dqx_airflow.results.incidents import stored_incidents
    from dqx_airflow.results.query import RunsWanted
    from dqx_airflow.results.shared_causes import first_incidents, gate_of

    gates = _gates_of_dag(context.get("dag"))
    if len(gates) < 2:
        return {}
    dates = [report.run_key.date for report in reports]
    stored = stored_incidents(results, RunsWanted(since=min(dates), until=max(dates)))
    of_dag = [one for one in stored if gate_of(one) in gates]
    first = first_incidents(results, of_dag, lambda _: None)
    return {run.run_id: first[one.id] for one in of_dag if one.id in first for run in one.runs}


def _gates_of_dag(dag: Any) -> set[str]:
    """The names of the gates of a DAG, those that its tasks give included; of a DAG, since its id
    and those of its tasks may contain dots."""
    names: set[str] = set()
    for task in getattr(dag, "tasks", ()):
        given = getattr(task, "gate", None) or getattr(task, "partial_kwargs", {}).get("gate")
        names.add(given if isinstance(given, str) else f"{dag.dag_id}.{task.task_id}")
    return names
