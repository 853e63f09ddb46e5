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
    failures = {name: list(_failures(backtest, dates)) for name, backtest in backtests.items()}
    for name, other_name in combinations(backtests, 2):
        for row, own_failures in enumerate(failures[name]):
            for their_row, other_failures in enumerate(failures[other_name]):
                shared_dates = sorted(own_failures.keys() & other_failures.keys())
                if len(shared_dates) < _FEWEST_DAYS:
                    continue
                try:
                    strength = correlation(
                        [own_failures[on] for on in shared_dates],
                        [other_failures[on] for on in shared_dates],
                    )
                except StatisticsError:  # one of them is constant
                    continue
                if strength >= _WEAKEST:
                    pairs.append(CoFailure((name, row), (other_name, their_row), strength))
    return tuple(pairs)


def _failures(backtest: Backtest, dates: Collection[date]) -> Iterator[dict[date, float]]:
    """For each assertion its failures by date: 1 if it failed, in any instance of a mapped gate, 0
    if it passed."""
    wanted = frozenset(dates)
    for line in backtest.judge().statuses:
        failed: dict[date, float] = {}
        for on, status in zip(backtest.dates, line, strict=True):
            if on in wanted and status in _DECIDED:
                failed[on] = max(failed.get(on, 0.0), float(status is Status.FAILED))
        yield failed
