"""Folds in temporal order: what is learned on earlier days is tested on later ones.

This is a rolling-origin evaluation (Tashman, "Out-of-sample tests of forecasting accuracy",
International Journal of Forecasting 16(4), 2000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from dqx_airflow.tuning.costs import Counts

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
    :param labelled: those of them that have labels.
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
