"""Converts a report to rows of the results store and back, losing nothing. The texts of its suites
and contracts are stored once for any number of runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from dqx_airflow import values
from dqx_airflow.limits import LONGEST_KEPT_SOURCE
from dqx_airflow.results import schema
from dqx_airflow.results.schema import Row, Source, written
from dqx_airflow.values.report import Acceptance


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list of runs. `assertions` counts all of them, `errors` those that could not be
    evaluated; `worst` is None if everything passed or was skipped. `partial` describes the
    selection, None if nothing was left out. `slice` is that of the report."""

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


def results_rows(report: values.GateReport) -> list[Row]:
    """The rows of the table `results`, in the order of the suite."""
    return [
        written(schema.RESULTS_COLUMNS, Source(report, position, verdict))
        for position, verdict in enumerate(report.verdicts)
    ]


def shadow_rows(report: values.GateReport) -> list[Row]:
    """The rows of the table `results` for the verdicts of the shadow, in the order of its suite."""
    shadow = report.shadow
    if shadow is None:
        return []
    return [
        written(schema.RESULTS_COLUMNS, Source(report, position, verdict, shadow=shadow.name))
        for position, verdict in enumerate(shadow.verdicts)
    ]


def failing_rows(report: values.GateReport) -> list[Row]:
    """The rows of the table `failing_rows`, in the order of the suite."""
    return [
        written(schema.FAILING_ROWS_COLUMNS, Source(report, position, verdict, number, failing))
        for position, verdict in enumerate(report.verdicts)
        for number, failing in enumerate(verdict.failing_rows)
    ]


def run_row(report: values.GateReport) -> Row:
    """The one row of the table `runs`."""
    return written(schema.RUNS_COLUMNS, Source(report))


def report_from_rows(
    run: Row, results: Iterable[Row], failing: Iterable[Row] = (), shadow: Iterable[Row] = ()
) -> values.GateReport:
    """The report whose row in `runs` is `run`. The others are its rows, in any order.

    A repeated row counts once.

    :param shadow: the rows of its shadow, if requested.

    :raises ValueError: rows are missing, or contain what no report contains.
    """
    by_position = {row["position"]: row for row in results}
    expected = run["assertions"]
    if set(by_position) != set(range(expected)):
        raise ValueError(f"{len(by_position)} of its {expected} result rows were found")
    samples: dict[int, dict[int, values.FailingRow]] = {}
    for row in failing:
        sample = samples.setdefault(row["position"], {})
        sample[row["number"]] = values.FailingRow(row["dataset"], row["reason"], row["row"])
    found, sampled = sum(map(len, samples.values())), run.get("failing_rows") or 0
    if found != sampled:
        raise ValueError(f"{found} of its {sampled} failing rows were found")
    snapshots: tuple[values.DatasetSnapshot, ...] = values.from_json(
        tuple[values.DatasetSnapshot, ...], run.get("datasets") or "[]"
    )
    contract, accepted = run.get("contract"), run.get("accepted")
    return values.GateReport(
        **_of_run(run),
        verdicts=tuple(
            verdict_from_row(by_position[position], samples.get(position, {}))
            for position in range(expected)
        ),
        datasets=snapshots,
        contract=values.from_json(values.EnforcedContract, contract) if contract else None,
        sources=values.from_json(tuple[values.SourceDigest, ...], run.get("sources") or "[]"),
        shadow=_shadow(run, shadow),
        accepted=values.from_json(Acceptance, accepted) if accepted else None,
        answered=run.get("answered"),
        accept_required=bool(run.get("accept_required")),
        spark_version=run.get("spark_version"),
        ansi=run.get("ansi"),
        engine_proof=run.get("engine_proof"),
    )


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
    severity = run.get("worst_severity")
    return RunRow(
        **_of_run(run),
        **{name: run[name] for name in ("assertions", "passed", "failed", "skipped", "errors")},
        worst=run.get("worst"),
        worst_severity=values.Severity(severity) if severity else None,
    )


def _of_run(run: Row) -> dict[str, Any]:
    """The fields that a report and its row in a list have in common."""
    selection = run.get("selection")
    return {
        "run_id": run["run_id"],
        "run_key": values.RunKey(run["gate"], run["dataset_date"], run["scheduler_run"]),
        "attempt": values.Attempt(run["attempt"], run["attempt_id"]),
        "suite": run["suite"],
        "outcome": values.Outcome(run["outcome"]),
        "fail_on": values.Severity(run["fail_on"]),
        "started_at": schema.as_utc(run["started_at"]),
        "finished_at": schema.as_utc(run["finished_at"]),
        "partial": values.from_json(values.PartialRun, selection) if selection else None,
        "slice": run.get("slice"),
    }


def verdict_from_row(
    row: Row, sample: Mapping[int, values.FailingRow] = MappingProxyType({})
) -> values.Verdict:
    """The verdict of a row of `results`.

    :param sample: its failing rows, by number.
    """
    failing = tuple(sample[number] for number in sorted(sample))
    return values.Verdict(failing_rows=failing, **schema.fields_of(schema.RESULTS_COLUMNS, row))


def digest_of(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()


def digests_of(sources: Iterable[values.SourceFile]) -> tuple[values.SourceDigest, ...]:
    """The digests of a gate's source texts in its report."""
    return tuple(values.SourceDigest(source.name, digest_of(source.text)) for source in sources)


def source_rows(report: values.GateReport, sources: Iterable[values.SourceFile]) -> dict[str, Row]:
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
