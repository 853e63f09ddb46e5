"""Searches the values of tunables that cost least on some days: the same for equal input.

Tunables that reach the same assertion are searched together. A value must also do well a little
further on: the worst fine day of some past days is rarely the worst that there will be. How far is
learned from how far the worst fine days lie apart. Of values that cost the same, the stricter one
is taken.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.costs import Counts, KnownTruth, counts
from dqx_airflow.tuning.tunables import TunableInt, TunableNumber
from dqx_airflow.values import Status

_STEPS = 40
_MOST_CANDIDATES = 240
_MOST_SWEEPS = 4
_COARSE = 5
_MOST_JOINT = 3
_DECIDED = (Status.PASSED, Status.FAILED)
_WORST_DAYS = 10
"""From how many of the worst fine days the margin is learned: a tenth of them, where that is
enough."""
_FEWEST_WORST, _FEWEST_FINE = 3, 12
_STEPS_OF_MARGIN = {number: math.exp(-abs(number)) for number in range(-3, 4)}
"""How much the cost counts that many margins away from a value."""


class Search:
    """The values of some tunables, and what the assertions that they reach come to with them.

    :param max_move: how far a value may move, as a share of the range between its bounds.
    :param is_allowed: which values may be proposed at all.
    """

    def __init__(
        self,
        backtest: Backtest,
        known: Sequence[Sequence[KnownTruth | None]],
        tunables: Sequence[TunableNumber],
        *,
        max_move: float,
        is_allowed: Callable[[dict[str, float]], bool],
    ) -> None:
        self.tunables = tuple(tunables)
        names = {one.name for one in tunables}
        self.rows = tuple(
            row for row, one in enumerate(backtest.assertions) if one.tunables & names
        )
        self.now = tuple(one.value for one in tunables)
        self._backtest, self._known = backtest, known
        self._is_allowed = is_allowed
        self._statuses: dict[tuple[float, ...], tuple[tuple[Status | None, ...], ...] | None] = {}
        self._needed: dict[int, dict[tuple[int, int], float]] = {}
        self._base = tuple(backtest.judge().statuses[row] for row in self.rows)
        self.candidates = tuple(
            tuple(_candidates(one, max_move, self._limits(one))) for one in tunables
        )
        self._signs = tuple(self._sign(place) for place in range(len(self.tunables)))

    def best(self, days: Sequence[int]) -> tuple[float, ...]:
        """The values that cost least on these days."""
        margins = [self._margin(place, days) for place in range(len(self.tunables))]
        costs: dict[tuple[float, ...], float] = {}

        def rank(values: tuple[float, ...]) -> tuple[float, ...]:
            return self._rank(values, days, margins, costs)

        start = min(self._starts(), key=rank)
        for _ in range(_MOST_SWEEPS):
            before = start
            for place, options in enumerate(self.candidates):
                tried = [(*start[:place], value, *start[place + 1 :]) for value in options]
                start = min([start, *tried], key=rank)
            if start == before or len(self.tunables) == 1:
                break
        return start

    def counts(self, values: tuple[float, ...], days: Sequence[int]) -> Counts:
        statuses = self.statuses(values)
        assert statuses is not None
        counted = (
            counts(line, self._known[row], self._backtest.assertions[row].cost, days)
            for row, line in zip(self.rows, statuses, strict=True)
        )
        return sum(counted, Counts())

    def statuses(self, values: tuple[float, ...]) -> tuple[tuple[Status | None, ...], ...] | None:
        """A row for each assertion that is reached; None where these values may not be proposed, or
        where days that are judged today would not be."""
        if values == self.now:
            return self._base
        if values not in self._statuses:
            self._statuses[values] = self._judged(values)
        return self._statuses[values]

    def named(self, values: tuple[float, ...]) -> dict[str, float]:
        """What differs from today, by name."""
        return {
            one.name: value
            for one, value in zip(self.tunables, values, strict=True)
            if value != one.value
        }

    def _judged(self, values: tuple[float, ...]) -> tuple[tuple[Status | None, ...], ...] | None:
        named = self.named(values)
        if not self._is_allowed(named):
            return None
        judged = self._backtest.judge(named)
        statuses = tuple(judged.statuses[row] for row in self.rows)
        for line, base in zip(statuses, self._base, strict=True):
            for status, was in zip(line, base, strict=True):
                if was in _DECIDED and status not in _DECIDED:
                    return None  # what is not judged costs nothing, and is no gain
        return statuses

    def _starts(self) -> Iterator[tuple[float, ...]]:
        yield self.now
        if 1 < len(self.tunables) <= _MOST_JOINT:
            yield from product(*(_spread(options) for options in self.candidates))

    def _rank(
        self,
        values: tuple[float, ...],
        days: Sequence[int],
        margins: Sequence[float],
        costs: dict[tuple[float, ...], float],
    ) -> tuple[float, ...]:
        statuses = self.statuses(values)
        if statuses is None:
            return (math.inf,)
        failed = sum(line[index] is Status.FAILED for line in statuses for index in days)
        stricter = [sign * value for sign, value in zip(self._signs, values, strict=True)]
        moved = sum(abs(value - was) for value, was in zip(values, self.now, strict=True))
        cost = round(self._cost_around(values, days, margins, costs), 9)
        return (cost, -failed, *(-one for one in stricter), moved)

    def _cost_around(
        self,
        values: tuple[float, ...],
        days: Sequence[int],
        margins: Sequence[float],
        costs: dict[tuple[float, ...], float],
    ) -> float:
        """The mean cost of some values and of those a few margins away, by their weights."""
        total = weights = 0.0
        for place, margin in enumerate(margins):
            for steps, weight in _STEPS_OF_MARGIN.items():
                near = self._nearest(place, values[place] + steps * margin)
                moved = (*values[:place], near, *values[place + 1 :])
                if moved not in costs:
                    known = self.statuses(moved) is not None
                    costs[moved] = self.counts(moved, days).cost if known else math.inf
                if costs[moved] < math.inf:
                    total, weights = total + weight * costs[moved], weights + weight
        return total / weights

    def _nearest(self, place: int, value: float) -> float:
        options = self.candidates[place]
        at = bisect_left(options, value)
        return min(options[max(0, at - 1) : at + 1], key=lambda one: abs(one - value))

    def _margin(self, place: int, days: Sequence[int]) -> float:
        """By how much the worst fine days are worse, on average, than the next one: in the unit of
        the tunable. 0 where too few days tell."""
        among = frozenset(days)
        worst = sorted(
            (
                -self._signs[place] * value
                for (row, index), value in self._needed_values(place).items()
                if index in among and (truth := self._known[row][index]) and not truth.is_issue
            ),
            reverse=True,
        )
        count = min(_WORST_DAYS, max(_FEWEST_WORST, len(worst) // 10))
        if len(worst) < _FEWEST_FINE:
            return 0.0
        return sum(worst[:count]) / count - worst[count]

    def _needed_values(self, place: int) -> dict[tuple[int, int], float]:
        """The strictest value of a tunable with which an assertion passes on a day, where one does:
        by the row of the assertion and the day."""
        if place not in self._needed:
            needed = {}
            loosest_first = self.candidates[place][:: self._signs[place] or 1]
            for value in loosest_first:
                statuses = self.statuses((*self.now[:place], value, *self.now[place + 1 :]))
                for row, line in zip(self.rows, statuses or (), strict=bool(statuses)):
                    for index, status in enumerate(line):
                        if status is Status.PASSED:
                            needed[row, index] = value
            self._needed[place] = needed
        return self._needed[place]

    def _sign(self, place: int) -> int:
        """1 where larger values are stricter, -1 where smaller ones are, 0 where it makes no
        difference on any of the days."""
        one = self.tunables[place]
        low, high = (
            sum(row.count(Status.FAILED) for row in self._backtest.judge({one.name: end}).statuses)
            for end in one.bounds
        )
        return (high > low) - (high < low)

    def _limits(self, tunable: TunableNumber) -> list[float]:
        """The values of a tunable at which verdicts change."""
        return [
            value
            for row in self.rows
            if tunable.name in self._backtest.assertions[row].tunables
            for value in self._backtest.turning_points(row, tunable.name)
        ]


def groups_of(backtest: Backtest) -> tuple[tuple[TunableNumber, ...], ...]:
    """The tunables, those together that reach the same assertion, in the order of the suite."""
    groups: list[set[str]] = []
    for tunable in backtest.tunables:
        together = {tunable.name}
        for one in backtest.assertions:
            if tunable.name in one.tunables:
                together |= one.tunables
        met = [group for group in groups if group & together]
        groups = [group for group in groups if not group & together]
        groups.append(together.union(*met))
    order = {one.name: number for number, one in enumerate(backtest.tunables)}
    by_first = sorted(groups, key=lambda group: min(order[name] for name in group))
    return tuple(tuple(one for one in backtest.tunables if one.name in group) for group in by_first)


def allowed_range(tunable: TunableNumber, max_move: float) -> tuple[float, float]:
    """The values that one proposal may reach."""
    low, high = tunable.bounds
    furthest = (high - low) * max_move
    return max(low, tunable.value - furthest), min(high, tunable.value + furthest)


def _candidates(
    tunable: TunableNumber, max_move: float, limits: Sequence[float]
) -> Iterator[float]:
    """Values to try, ascending: short numbers, evenly spread, and on both sides of each limit."""
    low, high = tunable.bounds
    if high <= low:
        return
    first, last = allowed_range(tunable, max_move)
    decimals = 3 - math.floor(math.log10(high - low))
    if isinstance(tunable, TunableInt):
        decimals = min(decimals, 0)
    step = 10.0**-decimals
    wanted = {first + (last - first) * number / _STEPS for number in range(_STEPS + 1)}
    near = sorted({one for one in limits if first - step <= one <= last + step})
    stride = -(-len(near) // (_MOST_CANDIDATES // 3)) or 1
    for limit in near[::stride]:
        place = math.floor(limit / step)
        wanted |= {number * step for number in (place - 1, place, place + 1, place + 2)}
    if near:
        wanted |= {near[-1] + step}
    candidates = set()
    for value in wanted:
        rounded = round(value, decimals)
        number = int(rounded) if isinstance(tunable, TunableInt) else rounded
        if first <= number <= last:
            candidates.add(number)
    yield from sorted(candidates | {tunable.value})


def _spread(options: Sequence[float]) -> list[float]:
    last = len(options) - 1
    return sorted({options[last * number // (_COARSE - 1)] for number in range(_COARSE)})
