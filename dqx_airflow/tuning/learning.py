"""A Gymnasium environment over backtests: an agent sets tunables, and past days determine the
costs.

A step sets all tunables and judges the next day with them, from stored metric values. Nothing is
measured, and no suite is changed: what an agent has learned is proposed like any other change.
Assertions of different suites that fail on the same days are found in past verdicts.

"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from statistics import StatisticsError, correlation
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces

from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.costs import Counts, counts, truths
from dqx_airflow.tuning.past_judge import JudgedDays
from dqx_airflow.tuning.protection import judge_values
from dqx_airflow.tuning.tunables import TunableInt, TunableNumber
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


Vector: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"
Values: TypeAlias = "dict[str, dict[str, float]]"

AGENT = "rl_environment"
_STEPS = 200
"""The resolution of an action: equal values are judged once."""


@dataclass(frozen=True, slots=True)
class Rewards:
    """Rewards in addition to the costs of false alarms and missed issues.

    :param early_stop: for a day that stops at a suite, if a later suite did not run.
    :param co_failure: for a real issue that two suites detect, multiplied by how often they fail
        together.
    """

    early_stop: float = 5.0
    co_failure: float = 5.0


@dataclass(frozen=True, slots=True)
class _Dial:
    """A tunable of a suite, and the range within which an algorithm may set it."""

    suite: str
    tunable: TunableNumber
    low: float
    high: float

    def value(self, action: float) -> float:
        share = round(min(max(action, 0.0), 1.0) * _STEPS) / _STEPS
        value = self.low + (self.high - self.low) * share
        return round(value) if isinstance(self.tunable, TunableInt) else value

    @property
    def today(self) -> float:
        span = self.high - self.low
        return (self.tunable.value - self.low) / span if span else 0.0


class ThresholdEnv(gymnasium.Env[Vector, Vector]):
    """Days of one or more suites, one per step.

    The action has a number from 0 to 1 for each tunable: its position between its bounds. The
    bounds of tunables that `@required` or P0 assertions depend on end at the current value, on the
    side that would weaken them. The observation has the current values in the same form, 1 for each
    profile that is active on the next day, and 1 for each suite that ran on it.

    :param backtests: by the name of the suite, in the order in which they run.
    :param dates: indexes of the days to use, among all days that a suite has; default: all.
    :param episode: the number of days in an episode.
    :raises ValueError: there are no tunables, or no days.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        backtests: Mapping[str, Backtest],
        *,
        dates: Sequence[int] | None = None,
        episode: int = 14,
        rewards: Rewards | None = None,
    ) -> None:
        self.backtests = dict(backtests)
        self._rewards = rewards or Rewards()
        all_dates = sorted(
            {day.date for backtest in self.backtests.values() for day in backtest.days}
        )
        self.dates = tuple(all_dates if dates is None else (all_dates[index] for index in dates))
        self._dials = tuple(
            _dial(name, backtest, tunable)
            for name, backtest in self.backtests.items()
            for tunable in backtest.tunables
        )
        if not self._dials or not self.dates:
            raise ValueError("an environment needs at least one tunable and one day")
        self._episode = min(episode, len(self.dates))
        self._places = {name: _by_date(backtest) for name, backtest in self.backtests.items()}
        self._known = {name: truths(backtest) for name, backtest in self.backtests.items()}
        self._profiles = {
            name: [profile.name.value for profile in backtest.suite.profiles]
            for name, backtest in self.backtests.items()
        }
        self.co_failures: tuple[CoFailure, ...] = co_failures(self.backtests, self.dates)
        size = len(self._dials) + sum(map(len, self._profiles.values())) + len(self.backtests)
        self.action_space = spaces.Box(0.0, 1.0, (len(self._dials),), np.float32)
        self.observation_space = spaces.Box(0.0, 1.0, (size,), np.float32)
        self._present = self.today
        self._first = self._step = 0

    @property
    def today(self) -> Vector:
        """The action that leaves all values unchanged, up to the resolution of actions."""
        return np.array([dial.today for dial in self._dials], np.float32)

    def values(self, action: Vector) -> Values:
        """The values of an action, by suite and name."""
        values: Values = {name: {} for name in self.backtests}
        for dial, share in zip(self._dials, action, strict=True):
            values[dial.suite][dial.tunable.name] = dial.value(float(share))
        return values

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Starts at a random day with the values of the suites; returns the observation and the
        info.
        """
        super().reset(seed=seed, options=options)
        self._present, self._step = self.today, 0
        self._first = int(self.np_random.integers(0, len(self.dates) - self._episode + 1))
        return self._observation(), {"date": self._date.isoformat()}

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Judges the day with these values; the reward is the cost that they save.

        Returns the next observation, the reward, whether the episode has ended, False, and the
        info.
        """
        self._present = np.clip(np.asarray(action, np.float32), 0.0, 1.0)
        on = self._date
        counts, bonus = self._outcome(self._judged(self._present), on)
        self._step += 1
        info = {
            "date": on.isoformat(),
            "false_alarms": counts.false_alarms,
            "missed": counts.missed,
            "cost": counts.cost,
            "bonus": bonus,
        }
        is_over = self._step >= self._episode
        return self._observation(), bonus - counts.cost, is_over, False, info

    def cost(self, action: Vector) -> Counts:
        """The cost of all days of the environment with the same values."""
        judged = self._judged(action)
        return sum((self._outcome(judged, on)[0] for on in self.dates), Counts())

    @property
    def _date(self) -> Any:
        return self.dates[min(self._first + self._step, len(self.dates) - 1)]

    def _observation(self) -> Vector:
        on = self._date
        active: list[float] = []
        for name, backtest in self.backtests.items():
            places = self._places[name].get(on)
            profiles = backtest.profiles[places[0]] if places else ()
            active += [float(profile in profiles) for profile in self._profiles[name]]
        ran = [float(on in places) for places in self._places.values()]
        return np.concatenate([self._present, active, ran]).astype(np.float32)

    def _judged(self, action: Vector) -> dict[str, JudgedDays]:
        """The verdicts of the suites on all days, with the values of an action."""
        values = self.values(action)
        return {name: backtest.judge(values[name]) for name, backtest in self.backtests.items()}

    def _outcome(self, judged: Mapping[str, JudgedDays], on: Any) -> tuple[Counts, float]:
        """The costs of a day, and the bonus for early detection."""
        total, bonus, is_stopped = Counts(), 0.0, False
        failed: set[tuple[str, int]] = set()
        real: set[tuple[str, int]] = set()
        for name, backtest in self.backtests.items():
            places = self._places[name].get(on)
            if places is None:
                bonus += self._rewards.early_stop if is_stopped else 0.0
                continue
            for row, line in enumerate(judged[name].statuses):
                known = self._known[name][row]
                total += counts(line, known, backtest.assertions[row].cost, places)
                for index in places:
                    truth = known[index]
                    if line[index] is Status.FAILED:
                        failed.add((name, row))
                        is_false = truth is not None and not truth.is_issue
                        is_stopped |= not is_false and not backtest.assertions[row].is_experimental
                    if truth is not None and truth.is_known_issue:
                        real.add((name, row))
        for pair in self.co_failures:
            assertions = {pair.one, pair.other}
            if assertions <= failed and assertions & real:
                bonus += self._rewards.co_failure * pair.strength
        return total, bonus


def _by_date(backtest: Backtest) -> dict[date, list[int]]:
    """The days of each date: instances of a mapped gate share it."""
    days: dict[date, list[int]] = {}
    for index, on in enumerate(backtest.dates):
        days.setdefault(on, []).append(index)
    return days


def _dial(suite: str, backtest: Backtest, tunable: TunableNumber) -> _Dial:
    low, high = tunable.bounds
    if judge_values(backtest.suite, {tunable.name: low}, AGENT).refusals:
        low = tunable.value
    if judge_values(backtest.suite, {tunable.name: high}, AGENT).refusals:
        high = tunable.value
    return _Dial(suite, tunable, low, high)
