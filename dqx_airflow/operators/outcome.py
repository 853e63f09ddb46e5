"""The end of the task of a gate: several reports combined into one, and its outcome turned into
success or a typed exception."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from airflow.providers.common.compat.sdk import AirflowSkipException

from dqx_airflow import values
from dqx_airflow.diagnostics import verdicts
from dqx_airflow.operators.exceptions import GateBlockedError, GateBrokenError
from dqx_airflow.operators.summary import LONGEST_MESSAGE, cut
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Promotion, Verdict

OnViolation: TypeAlias = Literal["fail", "skip", "warn", "ask"]


def end_task(report: GateReport, on_violation: OnViolation) -> str:
    """Returns the outcome if the task succeeds, else raises the exception that ends it.

    :raises GateBlockedError: blocked, and `on_violation` is neither "skip" nor "warn".
    :raises AirflowSkipException: blocked, and `on_violation` is "skip".
    :raises GateBrokenError: broken.
    """
    parts = filter(None, [verdicts.headline(report), verdicts.on_call(report)])
    message = cut("; ".join(parts), LONGEST_MESSAGE)
    if report.outcome is Outcome.BROKEN:
        raise GateBrokenError(message)
    if report.outcome is Outcome.BLOCKED and on_violation == "skip":
        raise AirflowSkipException(message)
    # Only the exact word lets blocked data through, never a typo.
    if report.outcome is Outcome.BLOCKED and on_violation != "warn":
        raise GateBlockedError(message)
    outcome: str = report.outcome.value
    return outcome


def combined_report(reports: Sequence[GateReport], gate: str) -> GateReport:
    """The reports as one, whose assertions are named after their date and their suite.

    Its outcome is the worst, and its run is the run of the first report with this outcome.

    :param gate: the name of the gate as a whole.
    """
    if len(reports) == 1:
        return reports[0]
    worst = _worst(reports)
    dates = sorted({report.run_key.date for report in reports})
    suites = tuple(dict.fromkeys(report.suite for report in reports))
    verdicts_of_all = tuple(
        _named(verdict, report, has_dates=len(dates) > 1, has_suites=len(suites) > 1)
        for report in reports
        for verdict in report.verdicts
    )
    return replace(
        worst,
        run_key=replace(worst.run_key, gate=gate, date=dates[0]),
        suite=", ".join(suites),
        verdicts=verdicts_of_all,
        datasets=_datasets(reports),
        started_at=min(report.started_at for report in reports),
        finished_at=max(report.finished_at for report in reports),
        sources=tuple(dict.fromkeys(source for report in reports for source in report.sources)),
        until=dates[-1] if len(dates) > 1 else None,
        unpromoted=_unpromoted(reports) if len(dates) > 1 else (),
    )


def _worst(reports: Sequence[GateReport]) -> GateReport:
    """The first report with the worst outcome."""
    outcome = values.worst_outcome(report.outcome for report in reports)
    return next(report for report in reports if report.outcome is outcome)


def _unpromoted(reports: Sequence[GateReport]) -> tuple[str, ...]:
    """The datasets that were not promoted, each with its date, once for several suites."""
    names = [
        f"{name} of {report.run_key.date}" for report in reports for name in report.not_promoted
    ]
    return tuple(dict.fromkeys(names))


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
    """One snapshot of a dataset on several dates; of one without dates, which all have read."""
    if len({snapshot.condition for snapshot in items}) == 1:
        return replace(items[0], promotion=_last_promotion(items))
    return replace(
        items[0],
        rows=_sum([snapshot.rows for snapshot in items]),
        metrics=(),
        quarantined=_sum([snapshot.quarantined for snapshot in items]),
        condition=" OR ".join(f"({snapshot.condition})" for snapshot in items),
        promotion=_joined_promotion(items),
    )


def _last_promotion(items: Sequence[DatasetSnapshot]) -> Promotion | None:
    """The last promotion of a dataset, which is blocked if one of them is; None without any."""
    promotions = _promotions(items)
    if not promotions:
        return None
    return replace(
        max(promotions, key=lambda promotion: promotion.version),
        is_blocked=any(promotion.is_blocked for promotion in promotions),
    )


def _joined_promotion(items: Sequence[DatasetSnapshot]) -> Promotion | None:
    """The last promotion of a dataset, with the rows of all dates; None without any."""
    last = _last_promotion(items)
    if last is None:
        return None
    promotions = _promotions(items)
    return replace(
        last,
        rows=sum(promotion.rows for promotion in promotions),
        left_out=sum(promotion.left_out for promotion in promotions),
    )


def _promotions(items: Sequence[DatasetSnapshot]) -> list[Promotion]:
    return [snapshot.promotion for snapshot in items if snapshot.promotion is not None]


def _sum(numbers: Sequence[int | None]) -> int | None:
    present = [number for number in numbers if number is not None]
    return sum(present) if present else None
