"""How a gate takes its report from the batch that has checked it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dqx_airflow.errors import StoreError
from dqx_airflow.operators.exceptions import GateInfrastructureError

if TYPE_CHECKING:
    from dqx_airflow.operators.gate import GateOperator
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.results.batch_reports import BatchReports
    from dqx_airflow.values import GateReport, GateRequest


def clear_number(context: Any) -> int | None:
    """How often tasks of the DAG run were cleared; None if that is unknown."""
    return getattr(context.get("dag_run"), "clear_number", None)


def batch_reports(location: ResultsLocation, context: Any, batch: str) -> BatchReports | None:
    """Where the reports of a batch in the DAG run of a task are; None if the run is unknown.

    :param batch: the task of the batch.
    """
    from dqx_airflow.results.batch_reports import BatchReports, batch_name, run_name
    from dqx_airflow.results.tables import locate

    ti = context["ti"]
    cleared = clear_number(context)
    started = getattr(context.get("dag_run"), "start_date", None)
    if cleared is None or started is None:
        return None
    return BatchReports(
        locate(location.root, location.storage_options),
        batch_name(ti.dag_id, batch),
        run_name(ti.run_id, started, cleared),
    )


def reports_of_batch(
    gate: GateOperator, request: GateRequest, context: Any
) -> tuple[GateReport, ...] | None:
    """Takes the reports of a gate from its batch, and writes them as its own; None if it has none
    there, and the gate checks for itself.

    :raises GateInfrastructureError: the results store cannot be used.
    """
    from dqx_airflow.results.store import ResultsStore

    if gate.batch is None or request.answered is not None:
        return None
    location = gate.results_location
    batch = batch_reports(location, context, gate.batch)
    if batch is None:
        return None
    try:
        found = batch.take(request)
        if found.reports is None:
            gate.log.info("no report from the batch '%s': %s", gate.batch, found.why_not)
            return None
        sources = [part.sources for part in request.parts]
        store = ResultsStore(location.root, location.storage_options)
        store.write_all(list(zip(found.reports, sources, strict=True)))
    except StoreError as error:
        raise GateInfrastructureError(f"no report: {error}") from None
    batch.discard(request)
    gate.log.info("checked in the batch '%s', where the log of Spark is", gate.batch)
    return found.reports
