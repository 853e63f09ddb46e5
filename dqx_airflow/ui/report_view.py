"""The report of a gate as displayed: complete, or the summary of its task; its values, failing rows
and datasets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, TypeVar

from dqx_airflow import values
from dqx_airflow.diagnostics.verdicts import headline
from dqx_airflow.lineage.names import location_of, trimmed_location
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.values import DatasetSnapshot, Outcome, Status, Verdict

if TYPE_CHECKING:
    pass


T = TypeVar("T")

WORST_FIRST = (Status.FAILED, Status.ERROR, Status.SKIPPED, Status.PASSED)


@dataclass(frozen=True, slots=True)
class PromotionView:
    """The target of a dataset's rows on a pass: `validated` is the version that they were read
    from, `version` the one that they became there, None if the gate did not pass. Not every summary
    has the place and the number of rows."""

    dataset: str
    validated: int | None
    location: str
    version: int | None
    rows: int | None


@dataclass(frozen=True, slots=True)
class PartialView:
    """The selection of a partial run, with the numbers of its assertions and of all."""

    selection: str
    selected: int
    assertions: int

    @property
    def shown(self) -> str:
        """As displayed: `2 of 5 assertions selected (tag slow)`."""
        return f"{self.selected} of {self.assertions} assertions selected ({self.selection})"


@dataclass(frozen=True, slots=True)
class ReportView:
    """A report for display. `is_whole` is False if only the summary is known: its verdicts are
    those that did not pass, and `more_verdicts` of these are missing. `not_evaluated` is the number
    of assertions that could fail the gate and lack data of other dates. `results_root` is where a
    report is of which only the summary is known; empty if that does not say."""

    run_id: str
    gate: str
    date: date | None
    suite: str
    outcome: Outcome
    headline: str
    counts: Mapping[Status, int]
    verdicts: NotInJson[tuple[Verdict, ...]]
    datasets: tuple[DatasetSnapshot, ...]
    fail_on: values.Severity | None
    finished_at: datetime | None
    is_whole: bool
    more_verdicts: int = 0
    contract: values.EnforcedContract | None = None
    promotions: tuple[PromotionView, ...] = ()
    not_evaluated: int = 0
    partial: PartialView | None = None
    results_root: str = ""
    map_index: int = -1

    @property
    def summary(self) -> str:
        """The headline without the gate and the date, which are displayed above it."""
        head, _, tail = self.headline.partition(f"date {self.date}: ")
        if not tail:
            return self.headline
        own = rf"gate {re.escape(self.gate)}(?:\[\d+\])?, "
        first = re.split(own, head.removeprefix(f"{self.outcome.value}: "), maxsplit=1)[0]
        return first + tail

    @property
    def worst(self) -> Verdict | None:
        """The verdict that the headline names, or the first one in the summary."""
        bad = [verdict for verdict in self.verdicts if self.is_wrong(verdict)]
        if self.outcome is Outcome.BROKEN:
            bad.sort(
                key=lambda verdict: (verdict.status is not Status.ERROR, not self.lacks(verdict))
            )
        elif self.outcome is Outcome.BLOCKED:
            bad.sort(key=self.lacks)
        return bad[0] if bad else None

    def is_wrong(self, verdict: Verdict) -> bool:
        """True for an assertion that failed, or that could fail the gate and was not evaluated."""
        return is_bad(verdict) or self.lacks(verdict)

    def lacks(self, verdict: Verdict) -> bool:
        """True for an assertion that could fail the gate, and lacks data of other dates."""
        is_severe = self.fail_on is None or verdict.can_block(self.fail_on)
        return verdict.is_not_evaluated and is_severe


def is_bad(verdict: Verdict) -> bool:
    return verdict.status in (Status.FAILED, Status.ERROR)


def view_of_report(report: values.GateReport) -> ReportView:
    """A complete report. Its verdicts are in the order of their importance."""
    return ReportView(
        run_id=report.run_id,
        gate=report.run_key.gate,
        date=report.run_key.date,
        suite=report.suite,
        outcome=report.outcome,
        headline=headline(report),
        counts={status: report.count(status) for status in Status},
        verdicts=_ranked(report),
        not_evaluated=len(report.not_evaluated),
        datasets=report.datasets,
        fail_on=report.fail_on,
        finished_at=report.finished_at,
        is_whole=True,
        contract=report.contract,
        promotions=tuple(filter(None, map(promotion_of, report.datasets))),
        partial=partial_view(report.partial),
        map_index=report.run_key.map_index,
    )


def partial_view(partial: values.PartialRun | None) -> PartialView | None:
    """The selection of a partial run; None for a complete one."""
    if partial is None:
        return None
    return PartialView(str(partial.selection), partial.selected, partial.assertions)


def _ranked(report: values.GateReport) -> tuple[Verdict, ...]:
    """The verdicts by importance: assertions that were not evaluated first, unless the gate is
    blocked, then the worst status."""
    ranked = [verdict for status in WORST_FIRST for verdict in report.with_status(status)]
    lacking = report.not_evaluated
    if lacking and report.outcome is not Outcome.BLOCKED:
        ranked.sort(key=lambda verdict: verdict not in lacking)
    return tuple(ranked)


def promotion_of(snapshot: DatasetSnapshot) -> PromotionView | None:
    """The promotion of a dataset; None if it was not to be promoted."""
    done = snapshot.promotion
    if done is not None:
        return PromotionView(
            snapshot.name, snapshot.version, done.location, done.version, done.rows
        )
    if snapshot.promote_to is None:
        return None
    return PromotionView(snapshot.name, snapshot.version, snapshot.promote_to, None, None)


@dataclass(frozen=True, slots=True)
class LocatedDataset:
    """A dataset of a gate: its name in the gate, and its location."""

    name: str
    location: str


def location_in(gate: str, snapshot: DatasetSnapshot) -> str:
    """The location of a dataset of a gate; for a query, or if it is unknown, its name there."""
    location = location_of(snapshot) if snapshot.location else None
    return location or _name_in(gate, snapshot)


def is_at(location: str, gate: str, snapshot: DatasetSnapshot) -> bool:
    """True if a dataset of a gate is at a location; older summaries only have its name."""
    return location in (location_in(gate, snapshot), _name_in(gate, snapshot))


def _name_in(gate: str, snapshot: DatasetSnapshot) -> str:
    return f"{snapshot.name} of {gate}"


def datasets_in(report: ReportView) -> tuple[LocatedDataset, ...]:
    """The datasets of a report."""
    return tuple(
        LocatedDataset(snapshot.name, location_in(report.gate, snapshot))
        for snapshot in report.datasets
    )


def promotions_in(report: ReportView) -> tuple[str, ...]:
    """The locations into which a report's rows were promoted."""
    done = (
        promotion.location
        for promotion in report.promotions
        if promotion.version is not None and promotion.location
    )
    return tuple(map(trimmed_location, done))
