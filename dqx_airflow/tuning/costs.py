"""The costs of verdicts: false alarms and missed issues, according to labels of past days.

A day without a label is judged by the verdict of the gate: a failure was a real issue, a pass was
fine. That is weaker evidence than a label, and weighs less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from dqx_airflow.plan.model import Cost
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.values import Status

FAILURE_WEIGHT = 0.01
"""The maximum weight of an unlabelled failure as a real issue; a label has 1."""

FAILURES_SHARE = 0.25
"""The maximum total weight of the unlabelled failures of an assertion: a share of the cost of its
labelled false alarms, so that many unlabelled failures do not outvote the labels."""

PASS_WEIGHT = 0.5
"""The weight of an unlabelled pass as fine: no one complained."""


@dataclass(frozen=True, slots=True)
class KnownTruth:
    """The truth about one assertion on one day. `weight` is 1 for a label."""

    is_issue: bool
    weight: float = 1.0

    @property
    def is_label(self) -> bool:
        return self.weight == 1

    @property
    def is_known_issue(self) -> bool:
        return self.is_issue and self.is_label


@dataclass(frozen=True, slots=True)
class Counts:
    """Labelled false alarms, labelled issues that were missed, and the cost of all days."""

    false_alarms: int = 0
    missed: int = 0
    cost: float = 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.false_alarms + other.false_alarms,
            self.missed + other.missed,
            self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class PricedDays:
    """The truth about an assertion: for each weight the days with a real issue, and those without.
    Days are the bits of a number."""

    cost: Cost
    by_weight: tuple[tuple[float, int, int], ...]

    @classmethod
    def of(cls, known: Sequence[KnownTruth | None], cost: Cost) -> PricedDays:
        days_by_weight: dict[float, list[int]] = {}
        for index, truth in enumerate(known):
            if truth is not None:
                days_by_weight.setdefault(truth.weight, [0, 0])[not truth.is_issue] |= 1 << index
        return cls(cost, tuple((weight, *pair) for weight, pair in days_by_weight.items()))  # type: ignore[misc]

    def without_weak_issues(self, days: int) -> PricedDays:
        """The same, as if nothing were known of failures without a label on some days."""
        return replace(
            self,
            by_weight=tuple(
                (weight, issues if weight == 1 else issues & ~days, fine)
                for weight, issues, fine in self.by_weight
            ),
        )

    def price(self, failing: int, passing: int) -> float:
        """The cost of verdicts on some days: those that fail, and those that pass."""
        return sum(
            weight
            * (
                self.cost.false_negative * (issues & passing).bit_count()
                + self.cost.false_positive * (fine & failing).bit_count()
            )
            for weight, issues, fine in self.by_weight
        )


def truths(backtest: Backtest) -> tuple[tuple[KnownTruth | None, ...], ...]:
    """The truth about each assertion on each day; None without a label and a verdict."""
    statuses, labels = backtest.judge().statuses, backtest.labels
    known = []
    for row, assertion in enumerate(backtest.assertions):
        row_statuses = [
            stored.status if (stored := day.verdicts.get(assertion.key)) else statuses[row][index]
            for index, day in enumerate(backtest.days)
        ]
        weight = _failure_weight(assertion.cost, labels[row], row_statuses)
        known.append(
            tuple(
                _truth(label, status, weight)
                for label, status in zip(labels[row], row_statuses, strict=True)
            )
        )
    return tuple(known)


def _failure_weight(
    cost: Cost, labels: Sequence[bool | None], statuses: Sequence[Status | None]
) -> float:
    pairs = list(zip(labels, statuses, strict=True))
    unlabelled = cost.false_negative * pairs.count((None, Status.FAILED))
    false_alarms = cost.false_positive * pairs.count((False, Status.FAILED))
    if not unlabelled:
        return FAILURE_WEIGHT
    return min(FAILURE_WEIGHT, FAILURES_SHARE * false_alarms / unlabelled)


def counts(
    statuses: Sequence[Status | None],
    known: Sequence[KnownTruth | None],
    cost: Cost,
    days: Iterable[int],
) -> Counts:
    """The counts and costs of the verdicts of one assertion on some days."""
    false_alarms = missed = 0
    total = 0.0
    for index in days:
        truth, status = known[index], statuses[index]
        if truth is None:
            continue
        if status is Status.FAILED and not truth.is_issue:
            total += cost.false_positive * truth.weight
            false_alarms += truth.is_label
        elif status is Status.PASSED and truth.is_issue:
            total += cost.false_negative * truth.weight
            missed += truth.is_label
    return Counts(false_alarms, missed, total)


def labelled_days(
    known: Iterable[Sequence[KnownTruth | None]], days: Collection[int]
) -> tuple[int, ...]:
    """The days on which an assertion has a label, once for each label."""
    rows = list(known)
    return tuple(
        index for index in days for row in rows if (truth := row[index]) and truth.is_label
    )


def _truth(label: bool | None, status: Status | None, failure_weight: float) -> KnownTruth | None:
    if label is not None:
        return KnownTruth(label)
    if status is Status.FAILED:
        return KnownTruth(True, failure_weight)
    return KnownTruth(False, PASS_WEIGHT) if status is Status.PASSED else None
