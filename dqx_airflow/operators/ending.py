"""The ending of the job of a gate: its reports in the results store, or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dqx_airflow.errors import StoreError
from dqx_airflow.operators.exceptions import GateInfrastructureError, GateTimeoutError
from dqx_airflow.operators.results_location import ResultsLocation
from dqx_airflow.values import GateReport, GateRequest
from dqx_airflow.values.json_form import EXIT_TIMED_OUT

if TYPE_CHECKING:
    from dqx_airflow.operators.spark_log import SparkLog

_LONGEST_CAUSE = 300
_MORE_TIME = "increase the timeout, or reduce the data"
_OUTPUT = "see its output"


@dataclass(frozen=True, slots=True)
class Ending:
    """The ending of a job.

    `how` is the ending in words, and `advice` the hint for a job without a report. `is_late` is
    True if the job reached its time limit. `last_lines` are the last lines of its output, unless
    the task log contains them.
    """

    how: str
    advice: str
    is_late: bool = False
    has_failed: bool = True
    last_lines: tuple[str, ...] = ()


def ending_of_code(code: int | None, timeout_s: float | None) -> Ending:
    """The ending of a job with an exit code; a missing code counts as success.

    :param timeout_s: the time limit of the job, None without one.
    """
    if not code:
        return Ending(
            f"the Spark job succeeded (exit code {code})",
            "its driver must reach the same storage at this location as the worker",
            has_failed=False,
        )
    if code == EXIT_TIMED_OUT and timeout_s is not None:
        return _late(timeout_s)
    how = f"was killed by signal {-code}" if code < 0 else f"failed (exit code {code})"
    return Ending(f"the Spark job {how}", _OUTPUT)


def ending_of_submission(hook: Any, error: Exception | None, timeout_s: float | None) -> Ending:
    """The ending of a job that a hook submitted, or failed to submit with `error`."""
    if isinstance(error, FileNotFoundError):
        return Ending(
            f"program {error.filename!r} not found on the PATH of this worker",
            "install pyspark or a Spark distribution there, or set spark_binary",
        )
    code = getattr(getattr(hook, "_submit_sp", None), "returncode", None)
    # The exit code of the driver itself, if the cluster reports it.
    code = getattr(hook, "_spark_exit_code", None) or code
    if error is None or code:
        return ending_of_code(code, timeout_s)
    # This message of the hook contains the whole command, which is long, and may contain secrets.
    if str(error).startswith("Cannot execute"):
        return Ending("the Spark job failed", _OUTPUT)
    return Ending(f"the Spark job failed: {str(error)[:_LONGEST_CAUSE]}", _OUTPUT)


def with_cause(ending: Ending, spark: SparkLog) -> Ending:
    """The ending with the last error in the output of the job, and with the location of that
    output."""
    where = f"see {spark.path}" if spark.is_file else "see its output above"
    advice = where if ending.advice == _OUTPUT else ending.advice
    lines = spark.tail if spark.is_file else ()
    if not ending.has_failed or ending.is_late or not spark.cause:
        return replace(ending, advice=advice, last_lines=lines)
    return replace(ending, how=f"{ending.how}: {spark.cause}", advice=advice, last_lines=lines)


def ending_of_event(event: dict[str, Any], timeout_s: float | None) -> Ending:
    """The ending according to the event of a deferred gate's trigger."""
    if event["is_late"]:
        return Ending(event["how"], _MORE_TIME, is_late=True)
    if event.get("code") == EXIT_TIMED_OUT and timeout_s is not None:
        return _late(timeout_s)
    if event.get("code") == 0:
        return replace(ending_of_code(0, timeout_s), how=event["how"])
    logs = event.get("logs") or "the log of its driver in the cluster for the cause"
    return Ending(event["how"], f"see {logs}")


def _late(timeout_s: float) -> Ending:
    return Ending(f"the gate took longer than {timeout_s:g} seconds", _MORE_TIME, is_late=True)


def stored_reports(
    request: GateRequest, location: ResultsLocation
) -> tuple[GateReport, ...] | None:
    """The complete reports of exactly this attempt; None if one of them is missing.

    Called before the submission, it finds the reports of a task that was restarted within the same
    try, and detects an unreadable store before a JVM is started.

    :raises GateInfrastructureError: the store cannot be read.
    """
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.runs import read_reports

    results = StoredResults(request.results_root, location.storage_options)
    try:
        return read_reports(results, request.run_keys, request.attempt.id, request.answered)
    except StoreError as error:
        raise GateInfrastructureError(f"no report: {error}") from None


def require_reports(
    request: GateRequest, location: ResultsLocation, ending: Ending, log: Any
) -> tuple[GateReport, ...]:
    """The reports of the job from the results store.

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
