"""The rows that go on although others are bad (`promote_valid`): all but those in quarantine.

They are judged again before they are promoted, so that the target holds what every assertion that
blocks is true of, whatever its severity.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from pyspark.sql import SparkSession

from dqx_airflow.diagnostics.verdicts import scaled_text
from dqx_airflow.engine.measure import measure_alone
from dqx_airflow.engine.outputs.quarantine import Judged, blamed_in
from dqx_airflow.engine.outputs.samples import with_conditions
from dqx_airflow.engine.scan.frames import ReferenceTables, rows_of
from dqx_airflow.engine.session.concurrency import jobs_called
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.plan.evaluate import evaluate, noted, with_waivers
from dqx_airflow.plan.failing import FailingRows
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned
from dqx_airflow.plan.predicates import lookups_of
from dqx_airflow.values import GateReport, Status, Verdict
from dqx_airflow.values.report import Waiver
from dqx_airflow.values.request import most_bad_rows

_log = logging.getLogger("dqx.gate")


@dataclass(frozen=True, slots=True)
class JudgedSuite:
    """One of the suites that a job judges for a date."""

    plan: Plan
    judged: Judged
    scanned: Scanned
    waivers: tuple[Waiver, ...]
    report: GateReport

    @property
    def blocking(self) -> list[Verdict]:
        failed = self.report.with_status(Status.FAILED)
        return [verdict for verdict in failed if verdict.can_block(self.report.fail_on)]

    def with_blocking(self, change: Callable[[Verdict], Verdict]) -> GateReport:
        """The report with a change of the verdicts that block."""
        blocking = self.blocking
        verdicts = (change(one) if one in blocking else one for one in self.report.verdicts)
        return replace(self.report, verdicts=tuple(verdicts))

    @property
    def undecided(self) -> list[Verdict]:
        """The verdicts that would break the gate if it were not blocked."""
        requires = self.judged.request.require_history or self.plan.require_history
        return [
            verdict
            for verdict in self.report.verdicts
            if verdict.can_block(self.report.fail_on)
            if verdict.status is Status.ERROR or (requires and verdict.is_not_evaluated)
        ]


@dataclass(frozen=True, slots=True)
class GoodRows:
    """The reports of the suites of a date, in their order. If the good rows go on, what blocked is
    marked there, `datasets` are those with bad rows, without them, and `left_out` is how many rows
    each has that stay behind. Else a note says why."""

    reports: tuple[GateReport, ...] = ()
    datasets: Mapping[str, OpenDataset] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


def good_rows(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    suites: Sequence[JudgedSuite],
    started: datetime,
) -> GoodRows:
    """What goes on of the data of a date for which a suite blocks."""
    references = ReferenceTables(opened, suites[0].plan.date)
    judged = [suite.judged for suite in suites]
    blamed = {name: [fault for *_, fault in blamed_in(judged, name)] for name in opened}
    bad = {
        one.name: one.quarantined or 0
        for suite in suites
        for one in suite.report.datasets
        if blamed.get(one.name)
    }
    objection = _objection(suites, references, bad)
    if objection is None:
        reduced = {name: _without(spark, references, name, blamed[name]) for name in bad}
        with jobs_called(spark, "the rows that are left"):
            objections = (_objection_to_rest(spark, opened, reduced, s, started) for s in suites)
            objection = next(filter(None, objections), None)
    if objection is None:
        change = partial(replace, rows_left_out=True)
        return GoodRows(tuple(suite.with_blocking(change) for suite in suites), reduced, bad)
    _log.warning("the good rows do not go on: %s", objection)
    change = partial(noted, note=f"the good rows do not go on: {objection}")
    return GoodRows(tuple(suite.with_blocking(change) for suite in suites))


def _objection(
    suites: Sequence[JudgedSuite], references: ReferenceTables, bad: Mapping[str, int]
) -> str | None:
    """Why no row goes on, as far as it is known without reading the rows again."""
    request = suites[0].judged.request
    places = dict(request.promote_to).keys() & dict(request.quarantine).keys()
    for suite in suites:
        if suite.judged.is_partial:
            return "only some assertions are selected"
        if suite.undecided:
            return f"{suite.undecided[0].name} could not be evaluated"
        of_rows = {
            (verdict.check, verdict.name)
            for verdict, own in zip(suite.judged.verdicts, suite.judged.faults, strict=True)
            if own and all(fault.request.dataset in places for fault in own)
            if not any(fault.is_of_two_datasets for fault in own)
        }
        for verdict in suite.blocking:
            if (verdict.check, verdict.name) not in of_rows:
                return f"{verdict.name} is not about single rows of a promoted dataset"
    limit = request.promote_valid or ""
    rows = {one.name: one.rows for suite in suites for one in suite.report.datasets}
    for name, count in bad.items():
        of_date = rows[name]
        if of_date is None:  # no assertion counts them
            of_date = rows_of(references.opened[name], references.date).count()
        if count > most_bad_rows(limit, of_date):
            return f"{count} of {of_date} rows of {name} are bad, more than {limit}"
    return None


def _without(
    spark: SparkSession, references: ReferenceTables, name: str, faults: Sequence[FailingRows]
) -> OpenDataset:
    """A dataset without the rows of faults; it has only the rows of the date."""
    dataset = references.opened[name]
    frame, conditions = with_conditions(dataset, references, [*dict.fromkeys(faults)])
    is_bad = " OR ".join(f"({condition})" for condition in conditions.values())
    kept = dataset.read({references.date}).columns
    rows = frame.where(f"NOT coalesce({is_bad}, false)").select(*map(quote_name, kept))
    return replace(dataset, read=lambda _: rows)


def _objection_to_rest(
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    reduced: Mapping[str, OpenDataset],
    suite: JudgedSuite,
    started: datetime,
) -> str | None:
    """What does not hold for the rows that are left, or is not known."""
    request, plan, fail_on = suite.judged.request, suite.plan, suite.report.fail_on
    asked = {
        one
        for assertion, verdict in zip(plan.assertions, suite.judged.verdicts, strict=True)
        if verdict.can_block(fail_on)
        for one in assertion.requests
        if one.date in (None, plan.date) and _reads(one, reduced)
    }
    known = suite.scanned.of(one for one in plan.requests if one not in asked)
    read = {**opened, **{name: scanned_whole(one) for name, one in reduced.items()}}
    measured = measure_alone(spark, read, {}, plan, known, None)
    verdicts = evaluate(plan, measured, request.skip_dates, now=started, sample_rows=0)
    for before, verdict in zip(
        suite.judged.verdicts, with_waivers(verdicts, suite.waivers, started), strict=True
    ):
        if before.can_block(fail_on) and verdict.can_block(fail_on):
            if verdict.status is Status.ERROR:
                return f"{verdict.name} could not be evaluated for the other rows"
            if verdict.status is Status.FAILED:
                shown = f"is {scaled_text(verdict)}, expected {verdict.expected}"
                return f"without the bad rows, {verdict.name} {shown}"
    return None


def _reads(request: MetricRequest, datasets: Mapping[str, object]) -> bool:
    """Whether a request may have another value without some rows of datasets."""
    looked_up = (lookup.reference for lookup in lookups_of(request))
    is_any = request.definition.scan is Scan.QUERY  # it sees all datasets
    return is_any or not datasets.keys().isdisjoint((*request.datasets, *looked_up))


def scanned_whole(dataset: OpenDataset) -> OpenDataset:
    """The dataset without what would answer for its rows without reading them."""
    committed = dataset.log.committed_at if dataset.log is not None else dataset.last_commit
    return replace(dataset, log=None, read_files=None, last_commit=committed)
