"""The end of a gate without a report: why, for XCom, metrics, and the results store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.exceptions import GateMisconfiguredError
from dqx_airflow.operators.gate_metrics import emit_metrics, emit_open_slices
from dqx_airflow.operators.summary import XCOM_KEY, failure_summary

if TYPE_CHECKING:
    from dqx_airflow.operators.gate import GateOperator
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.values import GateRequest


def end_without_report(
    gate: GateOperator, context: Any, error: Exception, location: ResultsLocation | None
) -> None:
    """Pushes the reason to XCom, for notifications, the UI and downstream tasks, and reports the
    metrics; unless Airflow tries again, stores that the dates have no report.

    :param location: the results store; None for a gate that fails before its dates are known, and
        stores nothing.
    """
    ti = context["ti"]
    request = gate.request
    key = request.run_key if request is not None else None
    name = gate.gate or f"{ti.dag_id}.{ti.task_id}"
    summary = failure_summary(error, name, key)
    ti.xcom_push(key=XCOM_KEY, value=summary)
    emit_metrics(name, context, None)
    if request is None or location is None or not _is_last_try(gate, ti, error):
        return
    _store_missing_reports(gate, request, summary["error"], location)
    emit_open_slices(name, context, request.run_keys, location)


def _is_last_try(gate: GateOperator, ti: Any, error: Exception) -> bool:
    """Whether Airflow does not try again. With a policy for retries that is not known, and a date
    that is tried again leaves the list with its report."""
    if isinstance(error, GateMisconfiguredError) or getattr(gate, "retry_policy", None):
        return True
    return int(ti.try_number) > int(getattr(ti, "max_tries", None) or 0)


def _store_missing_reports(
    gate: GateOperator, request: GateRequest, error: str, location: ResultsLocation
) -> None:
    from dqx_airflow.errors import StoreError
    from dqx_airflow.results.missing_reports import write_missing_reports
    from dqx_airflow.results.query import StoredResults

    results = StoredResults(location.root, location.storage_options)
    try:
        write_missing_reports(results, request, error)
    except StoreError as problem:
        gate.log.warning("`dql incidents` will not list a date without a report: %s", problem)
