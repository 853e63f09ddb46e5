"""The summary of a gate in XCom, for notifications, the UI and downstream tasks: a few kB."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from dqx_airflow import values
from dqx_airflow.diagnostics import verdicts
from dqx_airflow.lineage.names import location_of
from dqx_airflow.values import NO_REPORT, DatasetSnapshot, GateReport, Outcome, Status
from dqx_airflow.values.exact import exact_as_written, exact_text, is_decimal, nearest_float
from dqx_airflow.values.output_form import output_key, run_head
from dqx_airflow.values.redact import redact_urls

XCOM_KEY = "dqx_report"
"""The key of the report's summary in XCom."""

TEXTS_OF_A_VERDICT = (
    "expression",
    "expected",
    "reason",
    "clause",
    "let_by",
    "waived_by",
    "accepted_by",
    "worst_group",
)
TEXTS_OF_A_CONTRACT = ("id", "version", "dialect", "pin", "name", "description", "status")
COUNTED_AS = {status: "errors" if status is Status.ERROR else status.value for status in Status}
"""The keys of the numbers of assertions, by their status: an error is one, errors are counted."""
COUNTS_OF_A_CONTRACT = ("checked", "documented", "unsupported", "accepted")
"""The fields of a verdict and of a contract that a summary contains."""

MOST_VERDICTS = 20
_MOST_DATASETS = 25
_LONGEST_TEXT = 200
LONGEST_MESSAGE = 1000
_LONGEST_PLACE = 1000


def summary(report: GateReport, parts: Sequence[GateReport] = ()) -> dict[str, Any]:
    """The report for XCom: counts and the relevant verdicts, a few kB at most.

    :param parts: the reports that were combined into this one, with the dates of its verdicts.
    """
    from dqx_airflow.results.causes import cause_numbers, failures_of  # not while DAGs are parsed

    failed = report.with_status(Status.FAILED)
    errors = report.with_status(Status.ERROR)
    lacking = report.not_evaluated
    is_blocked = report.outcome is Outcome.BLOCKED
    shown = failed + errors + lacking if is_blocked else lacking + failed + errors
    failures = failures_of(parts or [report])
    numbers = zip(report.verdicts, cause_numbers(failures), strict=True)
    cause_of = {id(verdict): cause for verdict, cause in numbers}
    head = run_head(report.run_id, report.run_key)
    return {
        **head,
        "gate": cut(head["gate"]),
        "suite": cut(report.suite),
        "fail_on": report.fail_on.value,
        "finished_at": report.finished_at.isoformat(),
        "datasets": [cut(dataset.name) for dataset in report.datasets[:_MOST_DATASETS]],
        "locations": _locations(report),
        "contract": _contract(report),
        "partial": partial_summary(report),
        "outcome": report.outcome.value,
        "accepted": cut(str(report.accepted)) if report.accepted else None,
        "waived": len(report.waived),
        "headline": cut(verdicts.headline(report), LONGEST_MESSAGE),
        "counts": {COUNTED_AS[status]: report.count(status) for status in Status},
        "not_evaluated": len(lacking),
        "causes": max(cause_of.values(), default=0),
        "versions": _by_dataset(report, lambda dataset: dataset.version),
        "quarantined": _by_dataset(report, lambda dataset: dataset.quarantined),
        "promoted": _by_dataset(
            report, lambda dataset: dataset.promotion and dataset.promotion.version
        ),
        "left_out": [cut(rows) for rows in report.left_out[:_MOST_DATASETS]],
        "not_promoted": [cut(name) for name in report.not_promoted[:_MOST_DATASETS]],
        "promoted_blocked": [cut(name) for name in report.promoted_blocked[:_MOST_DATASETS]],
        "validated": validated_places(report),
        "verdicts": [
            {
                "assertion": cut(verdict.name),
                **_texts(verdict, TEXTS_OF_A_VERDICT),
                "status": verdict.status.value,
                "severity": verdict.severity.value,
                "value": _cut_value(verdict.value),
                "multiplier": verdict.multiplier,
                "scaled_value": _cut_value(verdict.scaled_value),
                "rows_left_out": verdict.rows_left_out,
                "cause": cause_of[id(verdict)] or None,
            }
            for verdict in shown[:MOST_VERDICTS]
        ],
        "more_verdicts": max(len(shown) - MOST_VERDICTS, 0),
    }


def failure_summary(error: Exception, gate: str, key: values.RunKey | None) -> dict[str, Any]:
    """The XCom summary of a gate without a report: `error` is the exception, `error_type` its name.

    :param key: the run of the gate, None if it is not known yet.
    """
    message = redact_urls(" ".join(str(error).split()))
    return {
        **run_head(None, key),
        "gate": cut(gate),
        "outcome": NO_REPORT,
        "headline": cut(f"{NO_REPORT}: gate {gate}: {message}", LONGEST_MESSAGE),
        "error": cut(message, LONGEST_MESSAGE),
        "error_type": type(error).__name__,
    }


def validated_places(report: GateReport) -> dict[str, dict[str, Any]]:
    """The locations of the validated rows, promoted or not, never truncated."""
    places = {name: asdict(rows) for name, rows in report.validated.items()}
    short = (name for name in places if len(f"{name}{places[name]}") <= _LONGEST_PLACE)
    return {name: places[name] for name in [*short][:_MOST_DATASETS]}


def _locations(report: GateReport) -> dict[str, str]:
    """The locations of the datasets over time. One that is too long is left out: truncated, it
    would be another location."""
    places = {
        cut(dataset.name): location_of(dataset) for dataset in report.datasets[:_MOST_DATASETS]
    }
    return {name: place for name, place in places.items() if place and len(place) <= _LONGEST_PLACE}


def partial_summary(report: GateReport) -> dict[str, Any] | None:
    """The selection of a partial run: None if no assertion was left out."""
    partial = report.partial
    if partial is None:
        return None
    return {
        "selection": cut(str(partial.selection)),
        "selected": partial.selected,
        "assertions": partial.assertions,
        "left_out": [cut(name) for name in partial.protected[:MOST_VERDICTS]],
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
            name: cut(text) for name, text in (responsible.facts if responsible else ())
        },
    }


def _by_dataset(report: GateReport, fact: Callable[[DatasetSnapshot], object]) -> dict[str, object]:
    """A fact about each dataset for which it is known."""
    found = [(cut(dataset.name), fact(dataset)) for dataset in report.datasets]
    return dict([pair for pair in found if pair[1] is not None][:_MOST_DATASETS])


def _texts(value: object, names: Sequence[str]) -> dict[str, str | None]:
    """Some string fields of a verdict or a contract, shortened; None for empty ones."""
    kind = type(value).__name__
    texts = {output_key(kind, name): getattr(value, name) for name in names}
    return {name: cut(text) if text else None for name, text in texts.items()}


def cut(text: str, longest: int = _LONGEST_TEXT) -> str:
    """A string of at most `longest` characters; a longer one ends in three dots."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _cut_value(value: values.MetricValue) -> values.MetricValue:
    """A value for JSON: a fraction as a float, or as its exact text if that would round it."""
    if isinstance(value, Fraction):
        near = nearest_float(value)
        is_kept = math.isfinite(near) and (exact_as_written(near) == value or not is_decimal(value))
        return near if is_kept else cut(exact_text(value))
    return cut(value) if isinstance(value, str) else value


_MOST_PARTS = 100
_BAD = (Outcome.BLOCKED, Outcome.BROKEN)


def summaries_of_parts(reports: Sequence[GateReport]) -> dict[str, Any]:
    """The key `parts` of the XCom summary, with an entry for each report; empty for one report."""
    if len(reports) == 1:
        return {}
    ranked = sorted(reports, key=lambda report: report.outcome not in _BAD)
    return {
        "parts": [
            {
                **run_head(report.run_id, report.run_key),
                "suite": report.suite,
                "outcome": report.outcome.value,
            }
            for report in ranked[:_MOST_PARTS]
        ],
        "more_parts": max(len(reports) - _MOST_PARTS, 0),
    }
