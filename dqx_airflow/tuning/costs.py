"""The costs of verdicts according to labels of past days: false alarms and missed issues; the folds
on which they are compared; and the verdicts whose labels a tuner lacks most.

Folds are a rolling-origin evaluation (Tashman, "Out-of-sample tests of forecasting accuracy",
International Journal of Forecasting 16(4), 2000).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import mean, stdev
from typing import TypeAlias

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


def label_of(truth: KnownTruth | None) -> bool | None:
    """True if a label marks a real issue, False if it marks a fine day; None without a label."""
    return truth.is_issue if truth is not None and truth.is_label else None


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
        """The same truth, where failures without a label on some days do not count as issues.

        :param days: the bits of a number.
        """
        return replace(
            self,
            by_weight=tuple(
                (weight, issues if weight == 1 else issues & ~days, fine)
                for weight, issues, fine in self.by_weight
            ),
        )

    def price(self, failing: int, passing: int) -> float:
        """The cost of verdicts on some days: those that fail, and those that pass."""
        missed, false = self.cost.false_negative, self.cost.false_positive
        return sum(
            weight
            * (missed * (issues & passing).bit_count() + false * (fine & failing).bit_count())
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


MOST_FOLDS = 4
FEWEST_LABELLED_DAYS = 4
"""Two days to learn from, and two folds for testing."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Days to learn from, and later days for testing."""

    learned: tuple[int, ...]
    held_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of the held-out days of a fold, before and after."""

    fold: Fold
    before: Counts
    after: Counts

    @property
    def gain(self) -> float:
        return self.before.cost - self.after.cost


def folds_of(days: Sequence[int], labelled: Sequence[int]) -> tuple[Fold, ...]:
    """The folds over some days, oldest first, each with about as many labelled days.

    The first part of the days is only learned from. There are no folds if labels are on too few
    days.

    :param days: ascending.
    :param labelled: the days among them that have labels.
    """
    marked = sorted(set(labelled))
    if len(marked) < FEWEST_LABELLED_DAYS:
        return ()
    stretches = min(MOST_FOLDS, len(marked) // 2) + 1
    cuts = [marked[len(marked) * number // stretches] for number in range(1, stretches)]
    ends = [*cuts[1:], days[-1] + 1]
    return tuple(
        Fold(
            tuple(day for day in days if day < start),
            tuple(day for day in days if start <= day < end),
        )
        for start, end in zip(cuts, ends, strict=True)
    )


def noise_of(trials: Sequence[Trial]) -> float:
    """The standard error of the mean gain of a fold."""
    return stdev(trial.gain for trial in trials) / math.sqrt(len(trials))


def mean_gain(trials: Sequence[Trial]) -> float:
    return mean(trial.gain for trial in trials)


def wins(trials: Sequence[Trial]) -> bool:
    """True if the mean gain of a fold is at least the noise of the folds.

    If one fold gains and no other loses, the two are equal.
    """
    gain = mean_gain(trials)
    return gain > 1e-9 and gain >= noise_of(trials) * (1 - 1e-6)


_Cause: TypeAlias = tuple[tuple[str, ...], int]
"""Datasets, and the index of a day: the failures there have the same cause."""


@dataclass(frozen=True, slots=True)
class WantedLabel:
    """A failure to label. `failures` is the number of failures of its dataset on that day, which
    share the label; `map_index` is the index of an instance of a mapped gate, -1 for other gates.
    """

    check: str
    name: str
    date: date
    map_index: int
    failures: int
    expected_cost: float


def wanted_labels(
    backtest: Backtest, known: Sequence[Sequence[KnownTruth | None]], most: int = 5
) -> tuple[WantedLabel, ...]:
    """The failures whose labels would help most, by the expected cost of not having them.

    Without its label, a failure costs the cheaper of two mistakes: to go on with false alarms, or
    to silence real ones (Howard, "Information Value Theory", IEEE Transactions on Systems Science
    and Cybernetics 2(1), 1966). The chance of a false alarm comes from the labels of the assertion
    and, as long as these are few, from the labels of all assertions. A label helps with the other
    failures of an assertion as well, and the less the more labels there are. Failures of one
    dataset on one day share the cause. Of failures with equal costs, the newest comes first.

    :param known: the truth about each assertion on each day.
    """
    labels = [
        [truth.is_issue for truth in line if truth is not None and truth.is_label] for line in known
    ]
    causes = _unlabelled_causes(backtest, known)
    every = [is_issue for own in labels for is_issue in own]
    of_all = (every.count(False) + 1) / (len(every) + 2)
    waiting = Counter(row for rows in causes.values() for row in rows)
    counts = [*map(len, labels)]

    def expected_cost(row: int) -> float:
        false = (labels[row].count(False) + 2 * of_all) / (len(labels[row]) + 2)
        cost = backtest.assertions[row].cost
        of_one = min(false * cost.false_positive, (1 - false) * cost.false_negative)
        return of_one * waiting[row] / (counts[row] + 1)

    wanted: list[WantedLabel] = []
    while causes and len(wanted) < most:
        cost_of = {cause: sum(map(expected_cost, rows)) for cause, rows in causes.items()}
        cause = max(causes, key=lambda one: (cost_of[one], one[1]))
        rows = causes.pop(cause)
        day = backtest.days[cause[1]]
        first = backtest.assertions[max(rows, key=expected_cost)]
        wanted.append(
            WantedLabel(first.check, first.name, day.date, day.map_index, len(rows), cost_of[cause])
        )
        waiting.subtract(rows)
        for row in rows:
            counts[row] += 1
    return tuple(wanted)


def _unlabelled_causes(
    backtest: Backtest, known: Sequence[Sequence[KnownTruth | None]]
) -> dict[_Cause, list[int]]:
    """The rows of the assertions that failed by a cause, for each cause without a label."""
    failing: dict[_Cause, list[int]] = {}
    labelled = set()
    for row, line in enumerate(known):
        for index, truth in enumerate(line):
            cause = backtest.datasets[row], index
            if truth is not None and truth.is_label:
                labelled.add(cause)
            elif truth is not None and truth.is_issue:
                failing.setdefault(cause, []).append(row)
    return {cause: rows for cause, rows in failing.items() if cause not in labelled}
