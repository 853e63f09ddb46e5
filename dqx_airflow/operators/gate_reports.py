"""The reports of an attempt in the results store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dqx_airflow.operators.exceptions import GateInfrastructureError, GateTimeoutError

if TYPE_CHECKING:
    from dqx_airflow.operators.job_outcome import Ending
    from dqx_airflow.operators.results_location import ResultsLocation
    from dqx_airflow.values import GateReport, GateRequest


def stored_reports(
    request: GateRequest, location: ResultsLocation
) -> tuple[GateReport, ...] | None:
    """The complete reports of exactly this attempt, if all exist.

    Before the submission it serves a task that was restarted within the same try, and detects an
    unreadable store before a JVM is started.

    :raises GateInfrastructureError: the store cannot be read.
    """
    from dqx_airflow.errors import StoreError
    from dqx_airflow.results.reader import read_reports

    try:
        return read_reports(
            request.results_root,
            request.run_keys,
            request.attempt.id,
            storage_options=location.storage_options,
        )
    except StoreError as error:
        raise GateInfrastructureError(f"no report: {error}") from None


def require_reports(
    request: GateRequest, location: ResultsLocation, ending: Ending, log: Any
) -> tuple[GateReport, ...]:
    """The reports that the job has left.

    :raises GateInfrastructureError: there are none; the error says how the job ended.
    """
    reports = stored_reports(request, location)
    if reports is not None:
        return reports
    key = request.run_key
    if ending.last_lines:
        log.error("the last lines of Spark:\n%s", "\n".join(ending.last_lines))
    kind = GateTimeoutError if ending.is_late else GateInfrastructureError
    raise kind(
        f"no report in {request.results_root}: gate {key.gate_instance}, "
        f"date {key.date.isoformat()}: {ending.how}; {ending.advice}"
    )
