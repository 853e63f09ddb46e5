"""The validation of the datasets of a run: measure, judge, quarantine, report, promote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone

from pyspark.sql import SparkSession

from dqx_airflow.engine.gate_report import MeasuredPart, MeasuredRun, judge, report_on
from dqx_airflow.engine.job_parts import JobPart
from dqx_airflow.engine.measure import measure_together
from dqx_airflow.engine.outputs.good_rows import GoodRows, JudgedSuite, good_rows
from dqx_airflow.engine.outputs.promotion import Promoted, promote
from dqx_airflow.engine.outputs.quarantine import quarantine_rows
from dqx_airflow.engine.proof.engine_key import KnownEngine
from dqx_airflow.engine.scan.states import StateCache
from dqx_airflow.engine.session.job_ending import require_time
from dqx_airflow.engine.session.spark_session import engine_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.plan.model import joined
from dqx_airflow.results.receipts import ReceiptWriter
from dqx_airflow.values import DatasetSnapshot, GateReport, Outcome, Severity, Status
from dqx_airflow.values.report import Acceptance, Waiver


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a job.

    :param receipts: writes a receipt of each promotion.
    :param known: the proofs for its engine.
    :param cache: the states of earlier runs; without it everything is computed.
    """

    spark: SparkSession
    started: datetime
    receipts: ReceiptWriter
    known: KnownEngine
    cache: StateCache | None = None


def validate(parts: Sequence[JobPart], run: Run) -> tuple[GateReport, ...]:
    """The reports of the parts, after the rows of their dates are promoted if they may be."""
    measured_run, measured = _measure(parts, run)
    judged = [judge(measured_run, part) for part in measured]
    quarantined: Mapping[tuple[date, str], int] = {}
    if any(part.request.quarantine for part in parts):
        quarantined = quarantine_rows(run.spark, measured_run.opened, judged)
    reports = tuple(
        report_on(measured_run, part, judged_part, quarantined)
        for part, judged_part in zip(measured, judged, strict=True)
    )
    if not any(part.request.promote_to for part in parts):
        return reports
    gates = [
        _Gate(one.part, JudgedSuite(one.part.plan, judged_part, one.own, _waivers(one), report))
        for one, judged_part, report in zip(measured, judged, reports, strict=True)
    ]
    return _promote(gates, run, measured_run.opened)


def _measure(parts: Sequence[JobPart], run: Run) -> tuple[MeasuredRun, list[MeasuredPart]]:
    """Opens and scans each dataset once, for all parts."""
    refs = {ref.name: ref for part in parts for ref in part.request.datasets}
    plans = [joined(part.plans) for part in parts]
    engine = engine_of(run.spark)  # now: the verdicts survive the loss of the session
    engine["engine_proof"] = run.known.mark
    opened, scanned = measure_together(run.spark, tuple(refs.values()), plans, run.cache, run.known)
    measured = [MeasuredPart(part, one) for part, one in zip(parts, scanned, strict=True)]
    return MeasuredRun(run.spark, run.started, engine, opened), measured


def _waivers(measured: MeasuredPart) -> tuple[Waiver, ...]:
    return measured.part.decisions.waivers


@dataclass(frozen=True, slots=True)
class _Gate:
    """A part, and what was judged of it."""

    part: JobPart
    suite: JudgedSuite


def _promote(
    gates: Sequence[_Gate], run: Run, opened: Mapping[str, OpenDataset]
) -> tuple[GateReport, ...]:
    """Promotes the rows of each date for which all gates passed, or may be promoted although
    blocked, and returns the reports with the results, in the order of the gates."""
    by_date: dict[date, list[int]] = {}
    for number, gate in enumerate(gates):
        by_date.setdefault(gate.suite.report.run_key.date, []).append(number)
    reports = [gate.suite.report for gate in gates]
    for numbers in by_date.values():
        of_date = _promote_date([gates[number] for number in numbers], run, opened)
        for number, report in zip(numbers, of_date, strict=True):
            reports[number] = report
    return tuple(reports)


def _promote_date(
    gates: Sequence[_Gate], run: Run, opened: Mapping[str, OpenDataset]
) -> list[GateReport]:
    """Promotes the rows of a date if its gates allow that, and returns their reports."""
    first = gates[0].part
    reports = [gate.suite.report for gate in gates]
    good = GoodRows()
    if first.request.promote_valid and _has_blocked(reports):
        good = good_rows(run.spark, opened, [gate.suite for gate in gates])
        reports = [
            replace(report, outcome=gate.part.decide(report.verdicts))
            for gate, report in zip(gates, good.reports, strict=True)
        ]
    if not all(
        _may_promote(gate.part, report) for gate, report in zip(gates, reports, strict=True)
    ):
        return reports
    require_time(first.request, run.started)
    judged = [
        (gate.part.request, report.verdicts) for gate, report in zip(gates, reports, strict=True)
    ]
    promoted, refused = promote(
        run.spark,
        {**opened, **good.datasets},
        first.request,
        reports[0],
        _has_blocked(reports),
        _acceptance(reports),
        good.left_out,
        replace(run.receipts, judged=judged),
    )
    if refused and good.left_out:
        reports = [gate.suite.report for gate in gates]
    verdicts = reports[0].verdicts + refused
    reports[0] = replace(reports[0], verdicts=verdicts, outcome=first.decide(verdicts))
    return [_with_promotions(report, promoted) for report in reports]


def _has_blocked(reports: Iterable[GateReport]) -> bool:
    return any(report.outcome is Outcome.BLOCKED for report in reports)


def _acceptance(reports: Iterable[GateReport]) -> Acceptance | None:
    """The first acceptance of the data of a gate."""
    for report in reports:
        if report.accepted is not None:
            return report.accepted
    return None


def _may_promote(part: JobPart, report: GateReport) -> bool:
    """True if the gate is neither blocked nor broken; or if it is blocked, the request has
    `promote_blocked`, and no P0, protected or implicit assertion blocks it."""
    if report.outcome is Outcome.BROKEN:
        return False
    if report.outcome is not Outcome.BLOCKED:
        return True
    if not part.request.promote_blocked:
        return False
    kept = {
        (assertion.check, assertion.name)
        for assertion in part.plan.assertions
        if assertion.is_protected or assertion.is_implicit
    }
    for verdict in report.with_status(Status.FAILED):
        is_kept = verdict.severity is Severity.P0 or (verdict.check, verdict.name) in kept
        if is_kept and verdict.can_block(report.fail_on):
            return False
    return True


def _with_promotions(report: GateReport, promoted: Mapping[str, Promoted]) -> GateReport:
    """The report with the promotions of its datasets, by name.

    The conditions then leave out the other slices of the targets, which it does not vouch for.
    """
    datasets = tuple(
        _promoted(snapshot, promoted[snapshot.name]) if snapshot.name in promoted else snapshot
        for snapshot in report.datasets
    )
    return replace(report, datasets=datasets, finished_at=datetime.now(timezone.utc))


def _promoted(snapshot: DatasetSnapshot, done: Promoted) -> DatasetSnapshot:
    if done.of_slice is None:
        return replace(snapshot, promotion=done.promotion)
    parts = (snapshot.condition, f"({done.of_slice})")
    condition = " AND ".join(filter(None, parts))
    return replace(snapshot, promotion=done.promotion, condition=condition)
