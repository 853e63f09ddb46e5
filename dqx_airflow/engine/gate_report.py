"""Judges the measured requests of a part, and builds the report of its gate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from dqx_airflow.engine.contract_properties import published_contracts
from dqx_airflow.engine.job_parts import JobPart
from dqx_airflow.engine.measure import snapshots
from dqx_airflow.engine.outputs.quarantine import Judged
from dqx_airflow.engine.outputs.samples import with_failing_rows
from dqx_airflow.engine.scan.frames import condition_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.clause_verdicts import verdicts_on_tables, with_clauses
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.failing import FailingRows, faults_of
from dqx_airflow.plan.model import PlannedAssertion, Scanned
from dqx_airflow.plan.selection import shadow_report
from dqx_airflow.results.report_rows import digests_of
from dqx_airflow.values import DatasetSnapshot, GateReport, GateRequest, Outcome, Status, Verdict
from dqx_airflow.values.report import Arrival


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run whose datasets are opened, by name.

    :param engine: the fields of reports about its engine.
    """

    spark: SparkSession
    started: datetime
    engine: Mapping[str, Any]
    opened: Mapping[str, OpenDataset]


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """A part, with the results of its requests, and of its shadow suite."""

    part: JobPart
    scanned: Scanned

    @property
    def own(self) -> Scanned:
        """The results of its own requests."""
        return self.scanned.of(self.part.plan.requests)


def judge(run: MeasuredRun, measured: MeasuredPart) -> Judged:
    """Judges a part: its verdicts, and the failing rows for each."""
    part = measured.part
    request, plan = part.request, part.plan
    scanned = measured.own
    verdicts: Sequence[Verdict] = evaluate(
        plan, scanned, request.skip_dates, now=run.started, sample_rows=request.sample_rows
    )
    if any(dataset.notes or dataset.partial for dataset in run.opened.values()):
        verdicts = [
            _with_notes(run.opened, assertion, verdict)
            for assertion, verdict in zip(plan.assertions, verdicts, strict=True)
        ]
    verdicts, _ = part.with_decisions(verdicts, run.opened, run.started)
    faults: tuple[tuple[FailingRows, ...], ...] = ((),) * len(verdicts)
    if any(verdict.status is Status.FAILED for verdict in verdicts):
        opened = _opened_for(run, request)
        schemas = {name: dataset.schema for name, dataset in opened.items()}
        faults = faults_of(
            plan, verdicts, scanned, schemas, skip_dates=request.skip_dates, now=run.started
        )
    # A suite of which nothing is selected has no part at all.
    may_lack_suites = request.selection is not None and request.job_key != request.run_key
    is_partial = plan.partial is not None or may_lack_suites
    return Judged(request, part.run_id, verdicts, faults, is_partial)


def _opened_for(run: MeasuredRun, request: GateRequest) -> dict[str, OpenDataset]:
    """The opened datasets of a request, by name."""
    names = [ref.name for ref in request.datasets]
    return {name: run.opened[name] for name in names if name in run.opened}


def _with_notes(
    opened: Mapping[str, OpenDataset], assertion: PlannedAssertion, verdict: Verdict
) -> Verdict:
    """The verdict with notes about the datasets, and about the columns in the assertion."""
    is_about_columns = any(one.definition.scan is Scan.SCHEMA for one in assertion.requests)
    notes = [verdict.note] if verdict.note else []
    for name in assertion.datasets:
        if name not in opened:
            continue
        if (partial := opened[name].partial) is not None:
            notes.append(partial)
        for column, note in opened[name].notes.items():
            names_column = re.search(rf"\b{re.escape(column)}\b", assertion.expression) is not None
            if names_column if column else is_about_columns:
                notes.append(note)
    return replace(verdict, note="; ".join(notes) or None)


def report_on(
    run: MeasuredRun,
    measured: MeasuredPart,
    judged: Judged,
    quarantined: Mapping[tuple[date, str], int],
) -> GateReport:
    """The report of a part, before anything is promoted.

    :param quarantined: the number of rows in quarantine, by date and dataset.
    """
    part = measured.part
    request, plan = part.request, part.plan
    verdicts, accepted = part.with_decisions(_explained(run, part, judged), run.opened, run.started)
    outcome = part.decide(verdicts)
    return GateReport(
        run_id=part.run_id,
        run_key=request.run_key,
        attempt=request.attempt,
        suite=plan.suite,
        fail_on=request.fail_on,
        outcome=outcome,
        verdicts=verdicts,
        datasets=_snapshots(run, measured, outcome, quarantined),
        started_at=run.started,
        finished_at=datetime.now(timezone.utc),
        contract=request.contract and request.contract.in_report,
        sources=digests_of(request.sources),
        shadow=shadow_report(request, part.shadow, measured.scanned, run.started),
        partial=plan.partial,
        slice=request.slice,
        accepted=accepted,
        answered=request.answered,
        accept_required=request.accept_required,
        job=request.job_key.gate,
        **run.engine,
    )


def _explained(run: MeasuredRun, part: JobPart, judged: Judged) -> tuple[Verdict, ...]:
    """The verdicts with samples of failing rows, and with the clauses of the contract."""
    request = part.request
    opened = _opened_for(run, request)
    verdicts = tuple(judged.verdicts)
    if any(judged.faults):
        verdicts = with_failing_rows(
            run.spark, opened, part.plan, verdicts, judged.faults, request.sample_rows
        )
    if request.contract is not None:
        verdicts = with_clauses(verdicts, request.contract)
        published = published_contracts(run.spark, opened)
        verdicts += verdicts_on_tables(request.contract, published)
    return verdicts


def _snapshots(
    run: MeasuredRun,
    measured: MeasuredPart,
    outcome: Outcome,
    quarantined: Mapping[tuple[date, str], int],
) -> tuple[DatasetSnapshot, ...]:
    """The datasets of a part as they were measured, and what becomes of their rows."""
    part = measured.part
    request, plan = part.request, part.plan
    opened = _opened_for(run, request)
    targets = dict(request.promote_to)
    quarantines = dict(request.quarantine)
    fingerprints: Mapping[str, str | None] = {}
    if outcome is Outcome.BLOCKED:
        fingerprints = part.fingerprints(opened, run.started)
    described = []
    for snapshot in snapshots(request.datasets, opened, plan, measured.own):
        name = snapshot.name
        dataset = opened.get(name)
        condition = None
        arrivals: tuple[Arrival, ...] = ()
        if dataset is not None:
            condition = condition_of(run.spark, dataset, plan.date)
            if outcome in (Outcome.BLOCKED, Outcome.BROKEN):
                arrivals = dataset.arrivals(plan.date)
        in_quarantine = quarantined.get((plan.date, name)) if name in quarantines else None
        described.append(
            replace(
                snapshot,
                quarantined=in_quarantine,
                condition=condition,
                promote_to=targets.get(name),
                quarantine=quarantines.get(name),
                fingerprint=fingerprints.get(name),
                arrivals=arrivals,
            )
        )
    return tuple(described)
