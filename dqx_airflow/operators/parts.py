"""The reports of a gate that judges several dates, or several suites, combined into one.

A gate with one date and one suite has one report, which stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.values import (
    DatasetSnapshot,
    GateReport,
    Outcome,
    SourceDigest,
    Verdict,
    worst_outcome,
)

_MOST_PARTS = 100


_BAD = (Outcome.BLOCKED, Outcome.BROKEN)


def combined_report(reports: Sequence[GateReport], gate: str) -> GateReport:
    """The reports as one, whose assertions are named after their date and their suite.

    Its outcome is the worst, and its run that of the first report with this outcome.

    :param gate: the name of the gate as a whole.
    """
    if len(reports) == 1:
        return reports[0]
    outcome = worst_outcome(report.outcome for report in reports)
    worst = next(report for report in reports if report.outcome is outcome)
    dates = sorted({report.run_key.date for report in reports})
    suites = tuple(dict.fromkeys(report.suite for report in reports))
    key = replace(worst.run_key, gate=gate, date=dates[0])
    return replace(
        worst,
        run_key=key,
        suite=", ".join(suites),
        outcome=outcome,
        verdicts=tuple(
            _named(verdict, report, has_dates=len(dates) > 1, has_suites=len(suites) > 1)
            for report in reports
            for verdict in report.verdicts
        ),
        datasets=_datasets(reports),
        started_at=min(report.started_at for report in reports),
        finished_at=max(report.finished_at for report in reports),
        sources=_sources(reports),
        until=dates[-1] if len(dates) > 1 else None,
        unpromoted=tuple(
            dict.fromkeys(
                f"{name} of {report.run_key.date}"
                for report in (reports if len(dates) > 1 else ())
                for name in report.not_promoted
            )
        ),
    )


def summaries_of_parts(reports: Sequence[GateReport]) -> dict[str, Any]:
    """The part of the XCom summary about each report; empty for a single one."""
    if len(reports) == 1:
        return {}
    ranked = sorted(reports, key=lambda report: report.outcome not in _BAD)
    return {
        "parts": [
            {
                "date": report.run_key.date.isoformat(),
                "suite": report.suite,
                "outcome": report.outcome.value,
                "run_id": report.run_id,
            }
            for report in ranked[:_MOST_PARTS]
        ],
        "more_parts": max(len(reports) - _MOST_PARTS, 0),
    }


def part_lines(reports: Sequence[GateReport]) -> list[str]:
    """A log line about the reports with each outcome, the worst last; none for one report."""
    lines = []
    for outcome in Outcome:
        own = [report for report in reports if report.outcome is outcome]
        if own and len(reports) > 1:
            named = [f"{report.run_key.date.isoformat()} {report.suite}" for report in own]
            lines.append(f"{outcome.value}: {len(own)} of {len(reports)}: {listed(named, most=5)}")
    return lines


def _named(verdict: Verdict, report: GateReport, *, has_dates: bool, has_suites: bool) -> Verdict:
    on = f"{report.run_key.date.isoformat()} " if has_dates else ""
    suite = f"{report.suite}: " if has_suites else ""
    return replace(verdict, name=f"{on}{suite}{verdict.name}")


def _datasets(reports: Sequence[GateReport]) -> tuple[DatasetSnapshot, ...]:
    """Each dataset once, with the rows of all dates, which were read in one version."""
    by_name: dict[str, dict[object, DatasetSnapshot]] = {}
    for report in reports:
        for snapshot in report.datasets:
            of_dates = by_name.setdefault(snapshot.name, {})
            earlier = of_dates.get(report.run_key.date)
            if earlier is None or earlier.quarantined is None:  # each has the rows of all suites
                quarantined = snapshot.quarantined
                of_dates[report.run_key.date] = replace(
                    earlier or snapshot, quarantined=quarantined
                )
    return tuple(_joined(tuple(of_dates.values())) for of_dates in by_name.values())


def _joined(items: Sequence[DatasetSnapshot]) -> DatasetSnapshot:
    """One snapshot of a dataset on several dates."""
    if len(items) == 1 or all(snapshot.condition is None for snapshot in items):
        return items[0]
    promotions = [snapshot.promotion for snapshot in items if snapshot.promotion is not None]
    newest = max(promotions, key=lambda promotion: promotion.version, default=None)
    return replace(
        items[0],
        rows=_sum([snapshot.rows for snapshot in items]),
        metrics=(),
        quarantined=_sum([snapshot.quarantined for snapshot in items]),
        condition=" OR ".join(f"({snapshot.condition})" for snapshot in items),
        promotion=newest
        if newest is None
        else replace(
            newest,
            rows=sum(promotion.rows for promotion in promotions),
            is_blocked=any(promotion.is_blocked for promotion in promotions),
            left_out=sum(promotion.left_out for promotion in promotions),
        ),
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None


def _sources(reports: Sequence[GateReport]) -> tuple[SourceDigest, ...]:
    return tuple(dict.fromkeys(source for report in reports for source in report.sources))
