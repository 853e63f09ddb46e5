"""From a report to the end of the task: success, a typed exception, the XCom summary."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

# The exceptions moved between Airflow 3.1 and 3.3; the Spark provider brings this for all of them.
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)

from dqx_airflow.diagnostics.verdicts import headline
from dqx_airflow.values import GateReport, MetricValue, Outcome, Status

OnViolation: TypeAlias = Literal["fail", "skip", "warn"]

_MOST_VERDICTS = 20
_MOST_VERSIONS = 50
_LONGEST_TEXT = 200
_LONGEST_MESSAGE = 1000


class GateBlocked(AirflowFailException):
    """The data breaks a rule at or above `fail_on`. Not retried: the data would be the same."""


class GateBroken(AirflowFailException):
    """An assertion at or above `fail_on` could not be evaluated, or nothing was checked."""


class GateMisconfigured(AirflowFailException):
    """The gate cannot run as it is written: an error in the suite, an unknown connection."""


class GateInfrastructureError(AirflowException):
    """There is no report: Spark, the network or the results store failed. Retried as set."""


def end_task(report: GateReport, on_violation: OnViolation) -> str:
    """Returns the outcome where the task succeeds, else raises what ends it.

    :raises GateBlocked: blocked, and `on_violation` is "fail".
    :raises AirflowSkipException: blocked, and `on_violation` is "skip".
    :raises GateBroken: broken.
    """
    message = _cut(headline(report), _LONGEST_MESSAGE)
    if report.outcome is Outcome.BROKEN:
        raise GateBroken(message)
    if report.outcome is Outcome.BLOCKED and on_violation == "fail":
        raise GateBlocked(message)
    if report.outcome is Outcome.BLOCKED and on_violation == "skip":
        raise AirflowSkipException(message)
    outcome: str = report.outcome.value
    return outcome


def summary(report: GateReport) -> dict[str, Any]:
    """The report for XCom: counts and the verdicts that matter, a few kB at most."""
    shown = [
        *report.with_status(Status.FAILED),
        *report.with_status(Status.ERROR),
    ]
    versions = [
        (_cut(dataset.name), dataset.version)
        for dataset in report.datasets
        if dataset.version is not None
    ]
    quarantined = [
        (_cut(dataset.name), dataset.quarantined)
        for dataset in report.datasets
        if dataset.quarantined is not None
    ]
    return {
        "run_id": report.run_id,
        "gate": _cut(report.run_key.gate),
        "date": report.run_key.date.isoformat(),
        "suite": _cut(report.suite),
        "outcome": report.outcome.value,
        "headline": _cut(headline(report), _LONGEST_MESSAGE),
        "counts": {status.value: report.count(status) for status in Status},
        "versions": dict(versions[:_MOST_VERSIONS]),
        "quarantined": dict(quarantined[:_MOST_VERSIONS]),
        "verdicts": [
            {
                "name": _cut(verdict.name),
                "status": verdict.status.value,
                "severity": verdict.severity.value,
                "value": _cut_value(verdict.scaled_value),
                "expected": _cut(verdict.expected),
                "reason": _cut(verdict.reason) if verdict.reason else None,
            }
            for verdict in shown[:_MOST_VERDICTS]
        ],
        "more_verdicts": max(len(shown) - _MOST_VERDICTS, 0),
    }


def _cut(text: str, longest: int = _LONGEST_TEXT) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _cut_value(value: MetricValue) -> MetricValue:
    return _cut(value) if isinstance(value, str) else value
