"""From a report to the end of the task: success, a typed exception, the XCom summary, and the
assets that a gate declares as its outlets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from airflow.providers.common.compat.sdk import AirflowSkipException, Asset
from airflow.sdk.definitions.asset import AssetRef, BaseAsset

from dqx_airflow.diagnostics.verdicts import headline, on_call
from dqx_airflow.lineage.names import location_of
from dqx_airflow.operators.exceptions import GateBlocked, GateBroken
from dqx_airflow.values import DatasetSnapshot, GateReport, MetricValue, Outcome, RunKey, Status
from dqx_airflow.values.exact import exact_as_written, exact_text, is_decimal, nearest_float
from dqx_airflow.values.redact import redact_urls


def announce(
    report: GateReport, outlets: Sequence[Any], context: Any, *, is_told: bool = True
) -> list[Any]:
    """The outlets for which Airflow emits an update, with the extra of the event.

    Assets, references to assets and aliases are left out if the data did not pass: a gate that only
    warns lets the task succeed, but nothing was validated, unless it promotes although it is
    blocked: the extra says so. After a pass, an alias is left to the
    code that adds assets to it.

    :param is_told: False for a run that left assertions out, and must not announce the data.
    """
    if not is_told or not report.is_released:
        return [outlet for outlet in outlets if not isinstance(outlet, BaseAsset)]
    for outlet in outlets:
        if isinstance(outlet, Asset | AssetRef):
            context["outlet_events"][outlet].extra = asset_extra(report)
    return list(outlets)


def asset_extra(report: GateReport) -> dict[str, Any]:
    """The extra of an asset event about the data; `read_validated` accepts it like a summary."""
    contract = report.contract
    return {
        "gate": report.run_key.gate,
        "run_id": report.run_id,
        "date": report.dates,
        "outcome": report.outcome.value,
        "accepted": str(report.accepted) if report.accepted else None,
        "partial": partial_summary(report),
        "promoted_blocked": list(report.promoted_blocked),
        "left_out": list(report.left_out),
        "not_promoted": list(report.not_promoted),
        "versions": {name: rows.version for name, rows in report.validated.items()},
        "rows": {item.name: item.rows for item in report.datasets if item.rows is not None},
        "contract": contract.id if contract else None,
        "contract_version": contract.version if contract else None,
        "validated": validated_places(report),
    }


OnViolation: TypeAlias = Literal["fail", "skip", "warn", "ask"]

XCOM_KEY = "dqx_report"
"""The key of the report's summary in XCom."""

NO_REPORT = "no report"
"""The outcome in the summary of a gate that has no report."""

TEXTS_OF_A_VERDICT = (
    *("name", "expression", "expected", "reason", "clause", "let_by", "waived_by"),
    "accepted_by",
)
TEXTS_OF_A_CONTRACT = ("id", "version", "dialect", "pin", "name", "description", "status")
COUNTS_OF_A_CONTRACT = ("checked", "documented", "unsupported", "accepted")
"""What a summary repeats of a verdict and of a contract."""

_MOST_VERDICTS = 20
_MOST_DATASETS = 25
_LONGEST_TEXT = 200
_LONGEST_MESSAGE = 1000
_LONGEST_PLACE = 1000


def end_task(report: GateReport, on_violation: OnViolation) -> str:
    """Returns the outcome if the task succeeds, else raises the exception that ends it.

    :raises GateBlocked: blocked, and `on_violation` is neither "skip" nor "warn".
    :raises AirflowSkipException: blocked, and `on_violation` is "skip".
    :raises GateBroken: broken.
    """
    parts = filter(None, [headline(report), on_call(report)])
    message = _cut("; ".join(parts), _LONGEST_MESSAGE)
    if report.outcome is Outcome.BROKEN:
        raise GateBroken(message)
    if report.outcome is Outcome.BLOCKED and on_violation == "skip":
        raise AirflowSkipException(message)
    # Only the exact word lets blocked data through, never a typo.
    if report.outcome is Outcome.BLOCKED and on_violation != "warn":
        raise GateBlocked(message)
    outcome: str = report.outcome.value
    return outcome


def summary(report: GateReport) -> dict[str, Any]:
    """The report for XCom: counts and the relevant verdicts, a few kB at most."""
    failed, errors = report.with_status(Status.FAILED), report.with_status(Status.ERROR)
    lacking = report.not_evaluated
    is_blocked = report.outcome is Outcome.BLOCKED
    shown = failed + errors + lacking if is_blocked else lacking + failed + errors
    return {
        "run_id": report.run_id,
        "gate": _cut(report.run_key.gate),
        "date": report.run_key.date.isoformat(),
        "suite": _cut(report.suite),
        "fail_on": report.fail_on.value,
        "finished_at": report.finished_at.isoformat(),
        "datasets": [_cut(dataset.name) for dataset in report.datasets[:_MOST_DATASETS]],
        "places": _places(report),
        "contract": _contract(report),
        "partial": partial_summary(report),
        "outcome": report.outcome.value,
        "accepted": _cut(str(report.accepted)) if report.accepted else None,
        "waived": len(report.waived),
        "headline": _cut(headline(report), _LONGEST_MESSAGE),
        "counts": {status.value: report.count(status) for status in Status},
        "not_evaluated": len(lacking),
        "versions": _by_dataset(report, lambda dataset: dataset.version),
        "quarantined": _by_dataset(report, lambda dataset: dataset.quarantined),
        "promoted": _by_dataset(
            report, lambda dataset: dataset.promotion and dataset.promotion.version
        ),
        "left_out": [_cut(rows) for rows in report.left_out[:_MOST_DATASETS]],
        "not_promoted": [_cut(name) for name in report.not_promoted[:_MOST_DATASETS]],
        "promoted_blocked": [_cut(name) for name in report.promoted_blocked[:_MOST_DATASETS]],
        "validated": validated_places(report),
        "verdicts": [
            {
                **_texts(verdict, TEXTS_OF_A_VERDICT),
                "status": verdict.status.value,
                "severity": verdict.severity.value,
                "value": _cut_value(verdict.scaled_value),
                "raw_value": _cut_value(verdict.value) if verdict.multiplier != 1 else None,
                "multiplier": verdict.multiplier,
                "rows_left_out": verdict.rows_left_out,
            }
            for verdict in shown[:_MOST_VERDICTS]
        ],
        "more_verdicts": max(len(shown) - _MOST_VERDICTS, 0),
    }


def failure_summary(error: Exception, gate: str, key: RunKey | None) -> dict[str, Any]:
    """Why there is no report, for XCom: `error` is the exception and `error_type` its name.

    :param key: the run of the gate, None if it is not known yet.
    """
    message = redact_urls(" ".join(str(error).split()))
    return {
        "outcome": NO_REPORT,
        "gate": _cut(gate),
        "date": key.date.isoformat() if key is not None else None,
        "headline": _cut(f"{NO_REPORT}: gate {gate}: {message}", _LONGEST_MESSAGE),
        "error": _cut(message, _LONGEST_MESSAGE),
        "error_type": type(error).__name__,
    }


def validated_places(report: GateReport) -> dict[str, dict[str, Any]]:
    """The locations of the validated rows, promoted or not, never truncated."""
    places = {name: asdict(rows) for name, rows in report.validated.items()}
    short = (name for name in places if len(f"{name}{places[name]}") <= _LONGEST_PLACE)
    return {name: places[name] for name in [*short][:_MOST_DATASETS]}


def _places(report: GateReport) -> dict[str, str]:
    """The locations of the datasets over time. One that is too long is left out: truncated, it
    would be another location."""
    places = {
        _cut(dataset.name): location_of(dataset) for dataset in report.datasets[:_MOST_DATASETS]
    }
    return {name: place for name, place in places.items() if place and len(place) <= _LONGEST_PLACE}


def partial_summary(report: GateReport) -> dict[str, Any] | None:
    """The selection of a partial run: None if no assertion was left out."""
    partial = report.partial
    if partial is None:
        return None
    return {
        "selection": _cut(str(partial.selection)),
        "selected": partial.selected,
        "assertions": partial.assertions,
        "left_out": [_cut(name) for name in partial.protected[:_MOST_VERDICTS]],
    }


def _contract(report: GateReport) -> dict[str, Any] | None:
    """The enforced contract, with the number of its clauses that were checked."""
    contract = report.contract
    if contract is None:
        return None
    responsible = contract.responsible
    return {
        **_texts(contract, TEXTS_OF_A_CONTRACT),
        **{name: getattr(contract, name) for name in COUNTS_OF_A_CONTRACT},
        "responsible": {
            name: _cut(text) for name, text in (responsible.facts if responsible else ())
        },
    }


def _by_dataset(report: GateReport, fact: Callable[[DatasetSnapshot], object]) -> dict[str, object]:
    """A fact about each dataset for which it is known."""
    found = [(_cut(dataset.name), fact(dataset)) for dataset in report.datasets]
    return dict([pair for pair in found if pair[1] is not None][:_MOST_DATASETS])


def _texts(value: object, names: Sequence[str]) -> dict[str, str | None]:
    """Some texts of a verdict or a contract; None for one that is missing."""
    texts = {name: getattr(value, name) for name in names}
    return {name: _cut(text) if text else None for name, text in texts.items()}


def _cut(text: str, longest: int = _LONGEST_TEXT) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _cut_value(value: MetricValue) -> MetricValue:
    """A JSON value; the exact text if a float would round it."""
    if isinstance(value, Fraction):
        near = nearest_float(value)
        is_told = math.isfinite(near) and (exact_as_written(near) == value or not is_decimal(value))
        return near if is_told else _cut(exact_text(value))
    return _cut(value) if isinstance(value, str) else value
