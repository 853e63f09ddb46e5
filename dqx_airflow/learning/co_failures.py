"""Assertions of different suites that fail on the same days, learned from past verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from statistics import StatisticsError, correlation

from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.values import Status

_WEAKEST = 0.3
_FEWEST_DAYS = 10
_DECIDED = (Status.PASSED, Status.FAILED)


@dataclass(frozen=True, slots=True)
class CoFailure:
    """Two assertions, by suite and row, and the correlation of their failures."""

    one: tuple[str, int]
    other: tuple[str, int]
    strength: float


def co_failures(
    backtests: Mapping[str, Backtest], dates: Collection[date]
) -> tuple[CoFailure, ...]:
    """The pairs that fail together, over the days on which both were judged: a suite that did not
    run has not passed."""
    pairs = []
    failures = {name: list(_failures(one, dates)) for name, one in backtests.items()}
    for one, other in combinations(backtests, 2):
        for row, mine in enumerate(failures[one]):
            for their_row, theirs in enumerate(failures[other]):
                both = sorted(mine.keys() & theirs.keys())
                if len(both) < _FEWEST_DAYS:
                    continue
                try:
                    strength = correlation([mine[on] for on in both], [theirs[on] for on in both])
                except StatisticsError:  # one of them is constant
                    continue
                if strength >= _WEAKEST:
                    pairs.append(CoFailure((one, row), (other, their_row), strength))
    return tuple(pairs)


def _failures(backtest: Backtest, dates: Collection[date]) -> Iterator[dict[date, float]]:
    """For each assertion 1 on the days on which it failed, in an instance of a mapped gate, and 0
    on those on which it passed."""
    wanted = frozenset(dates)
    for line in backtest.judge().statuses:
        failed: dict[date, float] = {}
        for on, status in zip(backtest.dates, line, strict=True):
            if on in wanted and status in _DECIDED:
                failed[on] = max(failed.get(on, 0.0), float(status is Status.FAILED))
        yield failed
