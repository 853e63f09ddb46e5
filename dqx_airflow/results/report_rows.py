"""Converts a report to rows of the results store and back, losing nothing. The texts of its suites
and contracts are stored once for any number of runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from types import MappingProxyType

from dqx_airflow.limits import LONGEST_KEPT_SOURCE
from dqx_airflow.results.column import Row, Source, as_utc, written
from dqx_airflow.results.columns import FAILING_ROWS, RESULTS, RUNS
from dqx_airflow.values import (
    Attempt,
    DatasetSnapshot,
    EnforcedContract,
    FailingRow,
    GateReport,
    Outcome,
    PartialRun,
    RunKey,
    Severity,
    ShadowReport,
    SourceDigest,
    SourceFile,
    Verdict,
    from_json,
)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list of runs. `assertions` counts all of them, `errors` those that could not be
    evaluated; `worst` is None if everything passed or was skipped. `partial` describes the
    selection, None if nothing was left out."""

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
    partial: PartialRun | None = None


def results_rows(report: GateReport) -> list[Row]:
    """The rows of the table `results`, in the order of the suite."""
    return [
        written(RESULTS, Source(report, position, verdict))
        for position, verdict in enumerate(report.verdicts)
    ]


def shadow_rows(report: GateReport) -> list[Row]:
    """The rows of the table `results` for the verdicts of the shadow, in the order of its suite."""
    shadow = report.shadow
    if shadow is None:
        return []
    return [
        written(RESULTS, Source(report, position, verdict, shadow=shadow.name))
        for position, verdict in enumerate(shadow.verdicts)
    ]


def failing_rows(report: GateReport) -> list[Row]:
    """The rows of the table `failing_rows`, in the order of the suite."""
    return [
        written(FAILING_ROWS, Source(report, position, verdict, number, failing))
        for position, verdict in enumerate(report.verdicts)
        for number, failing in enumerate(verdict.failing_rows)
    ]


def run_row(report: GateReport) -> Row:
    """The one row of the table `runs`."""
    return written(RUNS, Source(report))


def report_from_rows(
    run: Row, results: Iterable[Row], failing: Iterable[Row] = (), shadow: Iterable[Row] = ()
) -> GateReport:
    """The report whose row in `runs` is `run`. The others are its rows, in any order.

    A repeated row counts once.

    :param shadow: the rows of its shadow, if requested.

    :raises ValueError: rows are missing, or contain what no report contains.
    """
    by_position = {row["position"]: row for row in results}
    expected = run["assertions"]
    if set(by_position) != set(range(expected)):
        raise ValueError(f"{len(by_position)} of its {expected} result rows were found")
    samples: dict[int, dict[int, FailingRow]] = {}
    for row in failing:
        sample = samples.setdefault(row["position"], {})
        sample[row["number"]] = FailingRow(row["dataset"], row["reason"], row["row"])
    found, sampled = sum(map(len, samples.values())), run.get("failing_rows") or 0
    if found != sampled:
        raise ValueError(f"{found} of its {sampled} failing rows were found")
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
            verdict_from_row(by_position[position], samples.get(position, {}))
            for position in range(expected)
        ),
        datasets=snapshots,
        started_at=as_utc(run["started_at"]),
        finished_at=as_utc(run["finished_at"]),
        contract=from_json(EnforcedContract, contract) if contract else None,
        sources=from_json(tuple[SourceDigest, ...], run.get("sources") or "[]"),
        shadow=_shadow(run, shadow),
        partial=_partial(run),
        spark_version=run.get("spark_version"),
        ansi=run.get("ansi"),
    )


def _partial(run: Row) -> PartialRun | None:
    text = run.get("selection")
    return from_json(PartialRun, text) if text else None


def _shadow(run: Row, rows: Iterable[Row]) -> ShadowReport | None:
    text = run.get("shadow_run")
    if not text:
        return None
    by_position = {row["position"]: row for row in rows}
    verdicts = tuple(verdict_from_row(row) for _, row in sorted(by_position.items()))
    return replace(from_json(ShadowReport, text), verdicts=verdicts)


def run_from_row(run: Row) -> RunRow:
    """The row of a list of runs.

    :raises ValueError: the row contains what no report contains.
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
        started_at=as_utc(run["started_at"]),
        finished_at=as_utc(run["finished_at"]),
        partial=_partial(run),
    )


def _run_key(row: Row) -> RunKey:
    on: date = row["dataset_date"]
    return RunKey(gate=row["gate"], date=on, scheduler_run=row["scheduler_run"])


def _attempt(row: Row) -> Attempt:
    return Attempt(number=row["attempt"], id=row["attempt_id"])


def verdict_from_row(row: Row, sample: Mapping[int, FailingRow] = MappingProxyType({})) -> Verdict:
    """The verdict of a row of `results`.

    :param sample: its failing rows, by number.
    """
    fields = {column.fills: column.field_value(row) for column in RESULTS if column.fills}
    return Verdict(failing_rows=tuple(sample[number] for number in sorted(sample)), **fields)


def digest_of(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()


def digests_of(sources: Iterable[SourceFile]) -> tuple[SourceDigest, ...]:
    """The digests of a gate's source texts in its report."""
    return tuple(SourceDigest(source.name, digest_of(source.text)) for source in sources)


def source_rows(report: GateReport, sources: Iterable[SourceFile]) -> dict[str, Row]:
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
