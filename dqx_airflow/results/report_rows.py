"""A report as rows of the results store, and back, losing nothing.

Each column of the tables `runs`, `results` and `failing_rows` is a line in a function that writes a
row, and in one that reads it. `columns.md` describes the columns. The sources of suites and
contracts are stored once for any number of runs.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from dqx_airflow import values
from dqx_airflow.results.schema import Row, as_utc
from dqx_airflow.values.contracts import LONGEST_KEPT_SOURCE
from dqx_airflow.values.exact import Exact, exact_text, is_decimal, nearest_float, parse_exact
from dqx_airflow.values.report import Acceptance


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list of runs. `assertions` counts all of them, `errors` those that could not be
    evaluated; `worst` is None if everything passed or was skipped. `partial` describes the
    selection, None if nothing was left out. `slice`, `job` and `failed_severity` are those of the
    report; of an earlier version, the last is None."""

    run_id: str
    run_key: values.RunKey
    attempt: values.Attempt
    suite: str
    outcome: values.Outcome
    fail_on: values.Severity
    assertions: int
    passed: int
    failed: int
    skipped: int
    errors: int
    worst: str | None
    worst_severity: values.Severity | None
    started_at: datetime
    finished_at: datetime
    partial: values.PartialRun | None = None
    slice: str | None = None
    job: str | None = None
    failed_severity: values.Severity | None = None


def gate_without_suite(gate: str, suite: str, job: str | None) -> str:
    """The name of a gate, of which each of several suites has a run: `shop.gate` of
    `shop.gate/Orders`. A name that someone has given a gate may have slashes itself.

    :param suite: the suite of the run.
    :param job: the stored name; None from an earlier version, in which a name that ends with the
        suite counts as one of several.
    """
    return gate.removesuffix(f"/{suite}") if job is None else job


def is_of_gate(stored: str, gate: str, job: str | None = None) -> bool:
    """Whether a name in the store is of a gate, or of one of its suites: `shop.gate/Orders`.

    :param job: the stored name without a suite; None of a note, and from an earlier version, in
        which any name that begins with the gate and a slash counts.
    """
    if job is not None:
        return job == gate
    return stored == gate or stored.startswith(f"{gate}/")


def run_row(report: values.GateReport) -> dict[str, Any]:
    """The row of a report in the table `runs`."""
    worst = report.worst
    contract = report.contract
    return {
        **_keys(report),
        "outcome": report.outcome.value,
        "fail_on": report.fail_on.value,
        "started_at": as_utc(report.started_at),
        "assertions": len(report.verdicts),
        "passed": report.count(values.Status.PASSED),
        "failed": report.count(values.Status.FAILED),
        "skipped": report.count(values.Status.SKIPPED),
        "errors": report.count(values.Status.ERROR),
        "worst": worst.name if worst else None,
        "worst_severity": worst.severity.value if worst else None,
        "datasets": values.to_json(report.datasets),
        "failing_rows": sum(len(verdict.failing_rows) for verdict in report.verdicts),
        "contract_id": contract.id if contract else None,
        "contract_version": contract.version if contract else None,
        "contract": values.to_json(contract) if contract else None,
        "sources": values.to_json(report.sources),
        "shadow_run": _shadow_run(report.shadow),
        "partial": report.partial is not None,
        "selection": values.to_json(report.partial) if report.partial else None,
        "slice": report.slice,
        "accepted": values.to_json(report.accepted) if report.accepted else None,
        "accept_required": report.accept_required,
        "answered": report.answered,
        "spark_version": report.spark_version,
        "ansi": report.ansi,
        "engine_proof": report.engine_proof,
        "job": report.job,
        "failed_severity": report.failed_severity.value if report.failed_severity else None,
    }


def results_rows(report: values.GateReport) -> list[dict[str, Any]]:
    """The rows of the table `results`, in the order of the suite."""
    return [
        result_row(report, position, verdict) for position, verdict in enumerate(report.verdicts)
    ]


def shadow_rows(report: values.GateReport) -> list[dict[str, Any]]:
    """The rows of the table `results` for the verdicts of the shadow, in the order of its suite."""
    shadow = report.shadow
    if shadow is None:
        return []
    return [
        result_row(report, position, verdict, shadow=shadow.name)
        for position, verdict in enumerate(shadow.verdicts)
    ]


def result_row(
    report: values.GateReport, position: int, verdict: values.Verdict, shadow: str | None = None
) -> dict[str, Any]:
    """The row of a verdict in the table `results`.

    :param position: the position of its assertion in the suite, from 0.
    :param shadow: the name of the shadow suite whose verdict it is.
    """
    span = verdict.span
    contract = report.contract
    return {
        **_keys(report),
        "position": position,
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
        "contract_id": contract.id if contract else None,
        "contract_version": contract.version if contract else None,
        "clause": verdict.clause,
        "disabled_by": verdict.disabled_by,
        "experimental": verdict.is_experimental,
        "let_by": verdict.let_by,
        "measured": verdict.measured,
        "shadow": shadow,
        "groups": verdict.groups,
        "failed_groups": verdict.failed_groups,
        "worst_group": verdict.worst_group,
        "required": verdict.is_required,
        "waived_by": verdict.waived_by,
        "accepted_by": verdict.accepted_by,
        "rows_left_out": verdict.rows_left_out,
        "condition": verdict.condition,
        "partial": report.partial is not None,
    }


def failing_rows(report: values.GateReport) -> list[dict[str, Any]]:
    """The rows of the table `failing_rows`, in the order of the suite."""
    return [
        {
            **_keys(report),
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


def _keys(report: values.GateReport) -> dict[str, Any]:
    """The columns `keys` of every row of a report."""
    return {
        "run_id": report.run_id,
        "gate": report.run_key.gate,
        "dataset_date": report.run_key.date,
        "scheduler_run": report.run_key.scheduler_run,
        "attempt": report.attempt.number,
        "attempt_id": report.attempt.id,
        "finished_at": as_utc(report.finished_at),
        "suite": report.suite,
    }


def _shadow_run(shadow: values.ShadowReport | None) -> str | None:
    """The shadow of a report without its verdicts, which are rows of `results`, as JSON."""
    return values.to_json(replace(shadow, verdicts=())) if shadow else None


_INTEGER, _DECIMAL, _FRACTION = "integer", "decimal", "fraction"
_FLOAT, _STRING = "number", "text"


def _value_columns(name: str, value: values.MetricValue) -> dict[str, Any]:
    """The three columns of a value: a double for charts, the exact value as text, and its kind."""
    number, text, kind = _split(value)
    return {name: number, f"{name}_text": text, f"{name}_kind": kind}


def _split(value: values.MetricValue) -> tuple[float | None, str | None, str | None]:
    """The value as a double, the value as a string, and its kind."""
    if value is None:
        return None, None, None
    if isinstance(value, str):
        return None, value, _STRING
    if isinstance(value, float):
        return value, repr(value), _FLOAT
    near = nearest_float(value)
    number = near if math.isfinite(near) else None
    if isinstance(value, Fraction):
        return number, exact_text(value), _DECIMAL if is_decimal(value) else _FRACTION
    return number, str(int(value)), _INTEGER


def value_from_row(row: Row, name: str) -> values.MetricValue:
    """The original value, from its columns of text and kind."""
    text = row.get(f"{name}_text")
    kind = row.get(f"{name}_kind")
    if text is None or kind is None:
        return None
    if kind in (_INTEGER, _DECIMAL, _FRACTION):
        return _exact_of(text) if len(text) <= _LONGEST_KEPT else parse_exact(text)
    return float(text) if kind == _FLOAT else str(text)


_LONGEST_KEPT = 40


@lru_cache(maxsize=10_000)
def _exact_of(text: str) -> Exact:
    """The number in a short string: many values of a store are equal, such as limits."""
    return parse_exact(text)


def report_from_rows(
    run: Row, results: Iterable[Row], failing: Iterable[Row] = (), shadow: Iterable[Row] = ()
) -> values.GateReport:
    """Builds a report from its row in `runs` and its rows in the other tables, in any order.

    A repeated row counts once.

    :param shadow: the rows of its shadow, if requested.

    :raises ValueError: rows are missing, or contain what no report contains.
    """
    by_position = {row["position"]: row for row in results}
    expected = run["assertions"]
    if set(by_position) != set(range(expected)):
        raise ValueError(f"{len(by_position)} of its {expected} result rows were found")
    samples = _samples(run, failing)
    contract = run.get("contract")
    accepted = run.get("accepted")
    return values.GateReport(
        run_id=run["run_id"],
        run_key=_run_key(run),
        attempt=values.Attempt(run["attempt"], run["attempt_id"]),
        suite=run["suite"],
        fail_on=values.Severity(run["fail_on"]),
        outcome=values.Outcome(run["outcome"]),
        verdicts=tuple(
            verdict_from_row(by_position[position], samples.get(position, {}))
            for position in range(expected)
        ),
        datasets=values.from_json(tuple[values.DatasetSnapshot, ...], run.get("datasets") or "[]"),
        started_at=as_utc(run["started_at"]),
        finished_at=as_utc(run["finished_at"]),
        contract=values.from_json(values.EnforcedContract, contract) if contract else None,
        sources=values.from_json(tuple[values.SourceDigest, ...], run.get("sources") or "[]"),
        shadow=_shadow(run, shadow),
        partial=_partial(run),
        slice=run.get("slice"),
        accepted=values.from_json(Acceptance, accepted) if accepted else None,
        answered=run.get("answered"),
        accept_required=bool(run.get("accept_required")),
        spark_version=run.get("spark_version"),
        ansi=run.get("ansi"),
        engine_proof=run.get("engine_proof"),
        job=run.get("job"),
    )


def _samples(run: Row, failing: Iterable[Row]) -> dict[int, dict[int, values.FailingRow]]:
    """The failing rows of a run, by the position of the assertion, then by number.

    :raises ValueError: rows are missing.
    """
    samples: dict[int, dict[int, values.FailingRow]] = {}
    for row in failing:
        sample = samples.setdefault(row["position"], {})
        sample[row["number"]] = values.FailingRow(row["dataset"], row["reason"], row["row"])
    found = sum(map(len, samples.values()))
    expected = run.get("failing_rows") or 0
    if found != expected:
        raise ValueError(f"{found} of its {expected} failing rows were found")
    return samples


def _shadow(run: Row, rows: Iterable[Row]) -> values.ShadowReport | None:
    text = run.get("shadow_run")
    if not text:
        return None
    by_position = {row["position"]: row for row in rows}
    verdicts = tuple(verdict_from_row(row) for _, row in sorted(by_position.items()))
    return replace(values.from_json(values.ShadowReport, text), verdicts=verdicts)


def run_from_row(run: Row) -> RunRow:
    """The row of a list of runs.

    :raises ValueError: the row contains what no report contains.
    """
    worst, failed = (
        values.Severity(found) if (found := run.get(column)) else None
        for column in ("worst_severity", "failed_severity")
    )
    return RunRow(
        run_id=run["run_id"],
        run_key=_run_key(run),
        attempt=values.Attempt(run["attempt"], run["attempt_id"]),
        suite=run["suite"],
        outcome=values.Outcome(run["outcome"]),
        fail_on=values.Severity(run["fail_on"]),
        assertions=run["assertions"],
        passed=run["passed"],
        failed=run["failed"],
        skipped=run["skipped"],
        errors=run["errors"],
        worst=run.get("worst"),
        worst_severity=worst,
        started_at=as_utc(run["started_at"]),
        finished_at=as_utc(run["finished_at"]),
        partial=_partial(run),
        slice=run.get("slice"),
        job=run.get("job"),
        failed_severity=failed,
    )


def _run_key(run: Row) -> values.RunKey:
    return values.RunKey(run["gate"], run["dataset_date"], run["scheduler_run"])


def _partial(run: Row) -> values.PartialRun | None:
    selection = run.get("selection")
    return values.from_json(values.PartialRun, selection) if selection else None


def verdict_from_row(
    row: Row, sample: Mapping[int, values.FailingRow] = MappingProxyType({})
) -> values.Verdict:
    """The verdict of a row of `results`.

    :param sample: its failing rows, by number.
    """
    multiplier = row.get("multiplier")
    origin = row.get("origin")
    return values.Verdict(
        name=row["name"],
        check=row["check"],
        datasets=tuple(row["datasets"] or ()),
        expression=row["expression"],
        expected=row["expected"],
        severity=values.Severity(row["severity"]),
        status=values.Status(row["status"]),
        value=value_from_row(row, "value"),
        multiplier=1.0 if multiplier is None else multiplier,
        scaled_value=value_from_row(row, "scaled_value"),
        threshold=value_from_row(row, "threshold"),
        reason=row.get("reason"),
        tags=tuple(row.get("tags") or ()),
        profiles=tuple(row.get("profiles") or ()),
        metric=row.get("metric"),
        column=row.get("column"),
        span=_span(row),
        source_line=row.get("source_line"),
        origin=None if origin is None else values.Origin(origin),
        failing_rows=tuple(sample[number] for number in sorted(sample)),
        note=row.get("note"),
        clause=row.get("clause"),
        disabled_by=_disabled_by(row),
        is_experimental=bool(row.get("experimental")),
        measured=row.get("measured"),
        let_by=row.get("let_by"),
        groups=row.get("groups"),
        failed_groups=row.get("failed_groups"),
        worst_group=row.get("worst_group"),
        is_required=bool(row.get("required")),
        waived_by=row.get("waived_by"),
        accepted_by=row.get("accepted_by"),
        rows_left_out=bool(row.get("rows_left_out")),
        condition=row.get("condition"),
    )


def _span(row: Row) -> values.Span | None:
    if row.get("span_file") is None:
        return None
    return values.Span(
        row["span_file"],
        row["span_line"],
        row["span_column"],
        row["span_end_line"],
        row["span_end_column"],
    )


def _disabled_by(row: Row) -> str | None:
    """The profile that disabled an assertion, also for a row written without the column."""
    if name := row.get("disabled_by"):
        return str(name)
    match = re.fullmatch(r"disabled by profile '(.*)'", row.get("reason") or "", re.DOTALL)
    return match[1] if match and row["status"] == values.Status.SKIPPED else None


def digest_of(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()


def digests_of(sources: Iterable[values.SourceFile]) -> tuple[values.SourceDigest, ...]:
    """The digests of a gate's source texts in its report."""
    return tuple(values.SourceDigest(source.name, digest_of(source.text)) for source in sources)


def source_rows(
    report: values.GateReport, sources: Iterable[values.SourceFile]
) -> dict[str, dict[str, Any]]:
    """A row of the table `sources` for each distinct text to store, by its digest."""
    texts = {digest_of(source.text): source.text for source in sources}
    return {
        digest: {
            "run_id": report.run_id,
            "digest": digest,
            "text": text,
            "stored_at": report.finished_at,
        }
        for digest, text in texts.items()
        if len(text) <= LONGEST_KEPT_SOURCE
    }
