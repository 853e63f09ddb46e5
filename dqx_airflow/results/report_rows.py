"""The way of a report into rows of the results store and back, losing nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from fractions import Fraction
from typing import Any, TypeAlias

from dqx_airflow.exact import exact_text, is_decimal, nearest_float, parse_exact
from dqx_airflow.values import (
    Attempt,
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    GateReport,
    MetricValue,
    Origin,
    Outcome,
    RunKey,
    Severity,
    SourceDigest,
    Span,
    Status,
    Verdict,
    from_json,
    to_json,
)

Row: TypeAlias = Mapping[str, Any]

_INTEGER, _DECIMAL, _FRACTION = "integer", "decimal", "fraction"
_NUMBER, _TEXT = "number", "text"


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as a list of runs shows it. `assertions` counts all of them, `errors` those that
    could not be evaluated; `worst` is None where everything passed or was skipped."""

    run_id: str
    run_key: RunKey
    attempt: Attempt
    suite: str
    outcome: Outcome
    fail_on: Severity
    assertions: int
    passed: int
    failed: int
    skipped: int
    errors: int
    worst: str | None
    worst_severity: Severity | None
    started_at: datetime
    finished_at: datetime


def results_rows(report: GateReport) -> list[Row]:
    """The rows of the table `results`, in the order of the suite."""
    keys = _key_columns(report)
    return [
        {**keys, "position": position, **_verdict_columns(verdict), **_contract_columns(report)}
        for position, verdict in enumerate(report.verdicts)
    ]


def failing_rows(report: GateReport) -> list[Row]:
    """The rows of the table `failing_rows`, in the order of the suite."""
    keys = _key_columns(report)
    return [
        {
            **keys,
            "position": position,
            "number": number,
            "name": verdict.name,
            "check": verdict.check,
            "dataset": failing.dataset,
            "reason": failing.reason,
            "row": failing.row,
        }
        for position, verdict in enumerate(report.verdicts)
        for number, failing in enumerate(verdict.failing_rows)
    ]


def run_row(report: GateReport) -> Row:
    """The one row of the table `runs`."""
    worst = report.worst
    return {
        **_key_columns(report),
        "outcome": report.outcome.value,
        "fail_on": report.fail_on.value,
        "started_at": _utc(report.started_at),
        "assertions": len(report.verdicts),
        "passed": report.count(Status.PASSED),
        "failed": report.count(Status.FAILED),
        "skipped": report.count(Status.SKIPPED),
        "errors": report.count(Status.ERROR),
        "worst": worst.name if worst else None,
        "worst_severity": worst.severity.value if worst else None,
        "datasets": to_json(report.datasets),
        "failing_rows": sum(len(verdict.failing_rows) for verdict in report.verdicts),
        **_contract_columns(report),
        "contract": to_json(report.contract) if report.contract else None,
        "sources": to_json(report.sources),
    }


def report_from_rows(run: Row, results: Iterable[Row], failing: Iterable[Row] = ()) -> GateReport:
    """The report whose row in `runs` is `run`. The others are its rows, in any order.

    A row that is there twice counts once.

    :raises ValueError: rows are missing, or hold what no report holds.
    """
    by_position = {row["position"]: row for row in results}
    expected = run["assertions"]
    if set(by_position) != set(range(expected)):
        raise ValueError(f"{len(by_position)} of its {expected} result rows are there")
    samples: dict[int, dict[int, FailingRow]] = {}
    for row in failing:
        sample = samples.setdefault(row["position"], {})
        sample[row["number"]] = FailingRow(row["dataset"], row["reason"], row["row"])
    there, sampled = sum(map(len, samples.values())), run.get("failing_rows") or 0
    if there != sampled:
        raise ValueError(f"{there} of its {sampled} failing rows are there")
    snapshots: tuple[DatasetSnapshot, ...] = from_json(
        tuple[DatasetSnapshot, ...], run.get("datasets") or "[]"
    )
    contract = run.get("contract")
    return GateReport(
        run_id=run["run_id"],
        run_key=_run_key(run),
        attempt=_attempt(run),
        suite=run["suite"],
        fail_on=Severity(run["fail_on"]),
        outcome=Outcome(run["outcome"]),
        verdicts=tuple(
            _verdict(by_position[position], samples.get(position, {}))
            for position in range(expected)
        ),
        datasets=snapshots,
        started_at=_utc(run["started_at"]),
        finished_at=_utc(run["finished_at"]),
        contract=from_json(EnforcedContract, contract) if contract else None,
        sources=from_json(tuple[SourceDigest, ...], run.get("sources") or "[]"),
    )


def run_from_row(run: Row) -> RunRow:
    """The row of a list of runs.

    :raises ValueError: the row holds what no report holds.
    """
    severity = run.get("worst_severity")
    return RunRow(
        run_id=run["run_id"],
        run_key=_run_key(run),
        attempt=_attempt(run),
        suite=run["suite"],
        outcome=Outcome(run["outcome"]),
        fail_on=Severity(run["fail_on"]),
        assertions=run["assertions"],
        passed=run["passed"],
        failed=run["failed"],
        skipped=run["skipped"],
        errors=run["errors"],
        worst=run.get("worst"),
        worst_severity=Severity(severity) if severity else None,
        started_at=_utc(run["started_at"]),
        finished_at=_utc(run["finished_at"]),
    )


def _key_columns(report: GateReport) -> dict[str, Any]:
    return {
        "run_id": report.run_id,
        "gate": report.run_key.gate,
        "dataset_date": report.run_key.date,
        "scheduler_run": report.run_key.scheduler_run,
        "attempt": report.attempt.number,
        "attempt_id": report.attempt.id,
        "finished_at": _utc(report.finished_at),
        "suite": report.suite,
    }


def _contract_columns(report: GateReport) -> dict[str, Any]:
    contract = report.contract
    return {
        "contract_id": contract.id if contract else None,
        "contract_version": contract.version if contract else None,
    }


def _run_key(row: Row) -> RunKey:
    on: date = row["dataset_date"]
    return RunKey(gate=row["gate"], date=on, scheduler_run=row["scheduler_run"])


def _attempt(row: Row) -> Attempt:
    return Attempt(number=row["attempt"], id=row["attempt_id"])


def _verdict_columns(verdict: Verdict) -> dict[str, Any]:
    span = verdict.span
    return {
        "name": verdict.name,
        "check": verdict.check,
        "status": verdict.status.value,
        "severity": verdict.severity.value,
        "datasets": verdict.datasets,
        "expression": verdict.expression,
        "expected": verdict.expected,
        **_value_columns("value", verdict.value),
        "multiplier": verdict.multiplier,
        **_value_columns("scaled_value", verdict.scaled_value),
        **_value_columns("threshold", verdict.threshold),
        "reason": verdict.reason,
        "tags": verdict.tags,
        "profiles": verdict.profiles,
        "metric": verdict.metric,
        "column": verdict.column,
        "span_file": span.file if span else None,
        "span_line": span.line if span else None,
        "span_column": span.column if span else None,
        "span_end_line": span.end_line if span else None,
        "span_end_column": span.end_column if span else None,
        "source_line": verdict.source_line,
        "origin": verdict.origin.value if verdict.origin else None,
        "note": verdict.note,
        "clause": verdict.clause,
        "disabled_by": verdict.disabled_by,
    }


def _verdict(row: Row, sample: Mapping[int, FailingRow]) -> Verdict:
    multiplier = row.get("multiplier")
    return Verdict(
        name=row["name"],
        check=row["check"],
        datasets=tuple(row["datasets"]),
        expression=row["expression"],
        expected=row["expected"],
        severity=Severity(row["severity"]),
        status=Status(row["status"]),
        value=_value(row, "value"),
        multiplier=1.0 if multiplier is None else multiplier,
        scaled_value=_value(row, "scaled_value"),
        threshold=_value(row, "threshold"),
        reason=row.get("reason"),
        tags=tuple(row.get("tags") or ()),
        profiles=tuple(row.get("profiles") or ()),
        metric=row.get("metric"),
        column=row.get("column"),
        span=_span(row),
        source_line=row.get("source_line"),
        origin=Origin(row["origin"]) if row.get("origin") else None,
        failing_rows=tuple(sample[number] for number in sorted(sample)),
        note=row.get("note"),
        clause=row.get("clause"),
        disabled_by=row.get("disabled_by") or _disabling_profile(row),
    )


def _disabling_profile(row: Row) -> str | None:
    """The profile that disabled an assertion, of a row that was written without the column."""
    found = re.fullmatch(r"disabled by profile '(.*)'", row.get("reason") or "", re.DOTALL)
    return found[1] if found and row["status"] == Status.SKIPPED else None


def _span(row: Row) -> Span | None:
    if row.get("span_file") is None:
        return None
    return Span(
        file=row["span_file"],
        line=row["span_line"],
        column=row["span_column"],
        end_line=row["span_end_line"],
        end_column=row["span_end_column"],
    )


def _value_columns(name: str, value: MetricValue) -> dict[str, Any]:
    number, text, kind = _split(value)
    return {name: number, f"{name}_text": text, f"{name}_kind": kind}


def _split(value: MetricValue) -> tuple[float | None, str | None, str | None]:
    if value is None:
        return None, None, None
    if isinstance(value, str):
        return None, value, _TEXT
    if isinstance(value, float):
        return value, repr(value), _NUMBER
    near = nearest_float(value)
    number = near if math.isfinite(near) else None
    if isinstance(value, Fraction):
        return number, exact_text(value), _DECIMAL if is_decimal(value) else _FRACTION
    return number, str(int(value)), _INTEGER


def _value(row: Row, name: str) -> MetricValue:
    text, kind = row.get(f"{name}_text"), row.get(f"{name}_kind")
    if text is None or kind is None:
        return None
    if kind in (_INTEGER, _DECIMAL, _FRACTION):
        return parse_exact(text)
    return float(text) if kind == _NUMBER else str(text)


def _utc(moment: datetime) -> datetime:
    """The moment with `timezone.utc` itself; one without a time zone is taken as UTC."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc)
