"""The end of a gate's job, in words: the report has its findings, if there is one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dqx_airflow.operators.spark_log import SparkLog

_LONGEST_CAUSE = 300
_MORE_TIME = "increase the timeout, or reduce the data"
_OUTPUT = "see its output"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended, what to do if it left no report, and whether its time was up.

    `last_lines` are the last ones of its output, if the task log does not have them.
    """

    how: str
    advice: str
    is_late: bool = False
    has_failed: bool = True
    last_lines: tuple[str, ...] = ()


def ending_of_code(code: int | None, timeout_s: float | None) -> Ending:
    """The meaning of the job's exit code."""
    from dqx_airflow.request_arguments import EXIT_TIMED_OUT

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
    # The driver's own, if the cluster reports it.
    code = getattr(hook, "_spark_exit_code", None) or code
    if error is None or code:
        return ending_of_code(code, timeout_s)
    # This message of the hook contains the whole command, which is long, and may contain secrets.
    if str(error).startswith("Cannot execute"):
        return Ending("the Spark job failed", _OUTPUT)
    return Ending(f"the Spark job failed: {str(error)[:_LONGEST_CAUSE]}", _OUTPUT)


def with_cause(ending: Ending, spark: SparkLog) -> Ending:
    """The ending with the last error in the output of the job, and with the location of the
    rest."""
    where = f"see {spark.path}" if spark.is_file else "see its output above"
    advice = where if ending.advice == _OUTPUT else ending.advice
    lines = spark.tail if spark.is_file else ()
    if not ending.has_failed or ending.is_late or not spark.cause:
        return replace(ending, advice=advice, last_lines=lines)
    return replace(ending, how=f"{ending.how}: {spark.cause}", advice=advice, last_lines=lines)


def ending_of_event(event: dict[str, Any], timeout_s: float | None) -> Ending:
    """The ending according to the event of a deferred gate's trigger."""
    from dqx_airflow.request_arguments import EXIT_TIMED_OUT

    if event["is_late"]:
        return Ending(event["how"], _MORE_TIME, is_late=True)
    if event.get("code") == EXIT_TIMED_OUT and timeout_s is not None:
        return _late(timeout_s)
    return Ending(event["how"], "see the log of its driver in the cluster for the cause")


def _late(timeout_s: float) -> Ending:
    return Ending(f"the gate took longer than {timeout_s:g} seconds", _MORE_TIME, is_late=True)
