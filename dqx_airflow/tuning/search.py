"""Searches the values of tunables with the lowest cost on some days; deterministic.

Tunables that affect the same assertion are searched together. A limit keeps a distance from the
worst known fine day, since there will be worse ones: the distance is learned from the tail of the
fine days. Among values with equal cost, the strictest one is taken.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from statistics import median
from typing import TypeAlias

from dqx_airflow.metrics.usual_limits import MOST_LOAD
from dqx_airflow.tuning.backtest import Backtest, bits_of, kept
from dqx_airflow.tuning.costs import Counts, KnownTruth, PricedDays, counts
from dqx_airflow.tuning.past_judge import TunedAssertion
from dqx_airflow.tuning.tunables import TunableInt, TunableNumber
from dqx_airflow.values import Status

_STEPS = 40
_MOST_CANDIDATES = 240
_MOST_SWEEPS = 4
_COARSE = 5
_MOST_JOINT = 3
_DECIDED = (Status.PASSED, Status.FAILED)
_WORST_SHARE = 10
"""The tail is learned from the worst tenth of the days."""
_DAYS_OF_A_MISS = 20_000
"""The limit passes what is so rare that its false alarms cost as much, in this many days, as one
missed issue: at ten times the cost of a false alarm, an event of once in 2,000 days."""
_RETURN_DAYS = (50, 10_000_000)
"""The minimum and maximum return period of that event, in days."""
_USUAL_COSTS = 10
"""The cost of a missed issue, in false alarms, at which a limit goes halfway to a known issue."""
_FEWEST_WORST, _FEWEST_FINE = 3, 12
_MARGIN = 0.1
"""Without a known issue beyond it, a limit goes so far beyond the worst fine day: a tenth of it."""
_NO_COST = 1e-9
_STEPS_OF_MARGIN = {number: math.exp(-abs(number)) for number in range(-3, 4)}
"""How much the cost counts that many margins away from a value."""


Values: TypeAlias = tuple[float, ...]
"""A value of each tunable of a search."""
Price: TypeAlias = Callable[[Values], float]


@dataclass(frozen=True, slots=True)
class _Tail:
    """The distribution of fine days, in values of a tunable that grow as it gets looser.

    An exponential fit to the excesses over a high threshold (Davison and Smith, "Models for
    Exceedances over High Thresholds", Journal of the Royal Statistical Society B 52(3), 1990).

    :param usual: the median of all days.
    :param scale: the mean excess beyond the worst tenth of the days, taken from the median of the
        excesses (`scale * log(2)`), so that a few incidents do not stretch it.
    :param furthest: the value that one day in `return_days` exceeds.
    :param days: the days that do not exceed it.
    """

    usual: float
    scale: float
    furthest: float
    return_days: int
    days: tuple[int, ...]

    def reach(self, worst: float) -> float:
        """The distance beyond the worst known fine day that other fine days may reach."""
        return max(self.furthest, worst + (worst - self.furthest) / 2)


class Search:
    """The values of some tunables, and their effect on the assertions that they affect.

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
        names = {tunable.name for tunable in tunables}
        self.rows = tuple(
            row for row, assertion in enumerate(backtest.assertions) if assertion.tunables & names
        )
        self.now = tuple(tunable.value for tunable in tunables)
        self._backtest, self._known = backtest, known
        self._is_allowed = is_allowed
        self._base = tuple(backtest.judge().statuses[row] for row in self.rows)
        self._decided = tuple(
            bits_of(index for index, status in enumerate(line) if status in _DECIDED)
            for line in self._base
        )
        self._priced = tuple(
            PricedDays.of(known[row], backtest.assertions[row].cost) for row in self.rows
        )
        self.candidates = tuple(
            tuple(_candidates(tunable, max_move, self._limits(tunable))) for tunable in tunables
        )
        self._signs = tuple(self._sign(position) for position in range(len(self.tunables)))

    def best(self, days: Sequence[int]) -> Values:
        """The values with the lowest cost on these days, at a distance from both fine days and
        issues."""
        day_bits = bits_of(days)
        tails = [self._tail(position, days) for position in range(len(self.tunables))]
        as_usual = bits_of(index for tail in tails if tail for index in tail.days)
        priced = [priced_days.without_weak_issues(as_usual) for priced_days in self._priced]

        @cache
        def price(values: Values) -> float:
            return self.price(values, day_bits, priced)

        @cache
        def rank(values: Values) -> tuple[float, ...]:
            return self._rank(values, day_bits, tails, price)

        start = min(self._starts(), key=rank)
        for _ in range(_MOST_SWEEPS):
            before = start
            for position, options in enumerate(self.candidates):
                tried = [with_value(start, position, value) for value in options]
                start = min([start, *tried], key=rank)
            if start == before or len(self.tunables) == 1:
                break
        for position, tail in enumerate(tails):
            start = self._placed(start, position, tail, price, days)
        return start

    def counts(self, values: Values, days: Sequence[int]) -> Counts:
        counted = (
            counts(line, self._known[row], self._backtest.assertions[row].cost, days)
            for row, line in zip(self.rows, self.statuses(values), strict=True)
        )
        return sum(counted, Counts())

    def fine_days(self, position: int, days: Sequence[int]) -> dict[str, float] | None:
        """The fine days in values of a tunable: the usual one, the one that occurs once in
        `return_days`, and the maximum share of the way to a known issue that a limit goes. None if
        too few days are known."""
        tail, sign = self._tail(position, days), self._signs[position]
        if tail is None:
            return None
        return {
            "usual": float(f"{-sign * tail.usual:.6g}"),
            "return_days": tail.return_days,
            "reach": float(f"{-sign * tail.furthest:.6g}"),
            "share_of_way_to_issue": round(self._share_of_way(position), 6),
        }

    def statuses(self, values: Values) -> tuple[tuple[Status | None, ...], ...]:
        """The verdicts of all days: a row for each affected assertion."""
        judged = self._backtest.judge(self.named(values)).statuses
        return tuple(judged[row] for row in self.rows)

    def named(self, values: Values) -> dict[str, float]:
        """The values that differ from the current ones, by name."""
        return {
            tunable.name: value
            for tunable, value in zip(self.tunables, values, strict=True)
            if value != tunable.value
        }

    @kept
    def _failing_days(self, values: Values) -> tuple[int, ...] | None:
        """The days on which each assertion fails, as bits; None if the values are not allowed."""
        named = self.named(values)
        is_allowed = not named or self._is_allowed(named)
        return self._found_failing(values) if is_allowed else None

    def _found_failing(self, values: Values) -> tuple[int, ...] | None:
        quick = [self._backtest.failing_days(row) for row in self.rows]
        if all(quick):
            of_all = dict(zip((tunable.name for tunable in self.tunables), values, strict=True))
            return tuple(
                failing_days.at(of_all) for failing_days in quick if failing_days is not None
            )
        failing = []
        for line, decided in zip(self.statuses(values), self._decided, strict=True):
            if decided & ~bits_of(n for n, status in enumerate(line) if status in _DECIDED):
                return None
            failing.append(bits_of(n for n, status in enumerate(line) if status is Status.FAILED))
        return tuple(failing)

    def price(self, values: Values, day_bits: int, priced: Sequence[PricedDays] = ()) -> float:
        """The cost of values on some days, given as the bits of a number; infinite if they are not
        allowed."""
        failing = self._failing_days(values)
        if failing is None:
            return math.inf
        return sum(
            priced_days.price(bits & day_bits, decided & ~bits & day_bits)
            for priced_days, bits, decided in zip(
                priced or self._priced, failing, self._decided, strict=True
            )
        )

    def _starts(self) -> Iterator[Values]:
        yield self.now
        if 1 < len(self.tunables) <= _MOST_JOINT:
            yield from product(*(_spread(options) for options in self.candidates))

    def _rank(
        self, values: Values, day_bits: int, tails: Sequence[_Tail | None], price: Price
    ) -> tuple[float, ...]:
        failing = self._failing_days(values)
        if failing is None:
            return (math.inf,)
        failed = sum((bits & day_bits).bit_count() for bits in failing)
        stricter = [sign * value for sign, value in zip(self._signs, values, strict=True)]
        moved = sum(abs(value - was) for value, was in zip(values, self.now, strict=True))
        cost = round(self._cost_around(values, tails, price), 9)
        return (cost, -failed, *(-value for value in stricter), moved)

    def _cost_around(self, values: Values, tails: Sequence[_Tail | None], price: Price) -> float:
        """The mean cost of some values and of those a few margins away, by their weights."""
        total = weights = 0.0
        for position, tail in enumerate(tails):
            for steps, weight in _STEPS_OF_MARGIN.items():
                near = self._nearest(
                    position, values[position] + steps * (tail.scale if tail else 0.0)
                )
                cost = price(with_value(values, position, near))
                if cost < math.inf:
                    total, weights = total + weight * cost, weights + weight
        return total / weights

    def _placed(
        self, values: Values, position: int, tail: _Tail | None, price: Price, days: Sequence[int]
    ) -> Values:
        """The values with one of them moved, at equal cost, away from the worst fine day: as far as
        fine days may reach, and at most a share of the way to an issue. Failures that no one
        labelled are no reason to go further."""
        options, sign = self.candidates[position], self._signs[position]
        if tail is None or not sign:
            return values

        moved = partial(with_value, values, position)
        loosest_last = options[::-sign]
        index, cost = loosest_last.index(values[position]), price(values)
        first = last = index
        while first > 0 and abs(price(moved(loosest_last[first - 1])) - cost) < _NO_COST:
            first -= 1
        while (
            last + 1 < len(options) and abs(price(moved(loosest_last[last + 1])) - cost) < _NO_COST
        ):
            last += 1
        worst, furthest = loosest_last[first], loosest_last[last]
        goal = tail.reach(-sign * worst)
        missed = [self.counts(moved(value), days).missed for value in (worst, loosest_last[-1])]
        if missed[0] < missed[1]:
            goal = max(goal, -sign * worst + (-sign * worst - tail.usual) / 2)
            goal = min(goal, -sign * _between(worst, furthest, self._share_of_way(position)))
        else:  # nothing is known there
            goal = min(goal, -sign * worst + _MARGIN * abs(worst))
        most = tail.usual * (MOST_LOAD if sign < 0 else 1 / MOST_LOAD)
        is_of_volume = any(assertion.is_volume for assertion in self._assertions_of(position))
        if is_of_volume and -sign * worst < most:
            goal = min(goal, most)
        nearest = min(loosest_last[first : last + 1], key=lambda value: abs(-sign * value - goal))
        return moved(nearest)

    def _nearest(self, position: int, value: float) -> float:
        options = self.candidates[position]
        index = bisect_left(options, value)
        return min(options[max(0, index - 1) : index + 1], key=lambda option: abs(option - value))

    def _tail(self, position: int, days: Sequence[int]) -> _Tail | None:
        """The loose tail of the values of days, without known issues; None if too few days are
        known."""
        among, sign = frozenset(days), self._signs[position]
        needed = sorted(
            (-sign * value, index)
            for value, index in self._needed_values(position)
            if index in among
        )
        if len(needed) < _FEWEST_FINE or not sign:
            return None
        values = [value for value, _ in needed]
        count = max(_FEWEST_WORST, len(values) // _WORST_SHARE)
        start = values[-count - 1]
        scale = (median(values[-count:]) - start) / math.log(2)
        least, most = _RETURN_DAYS
        miss = self._price_of_a_miss(position)
        return_days = most if miss == 0 else round(min(max(_DAYS_OF_A_MISS / miss, least), most))
        furthest = start + scale * math.log(return_days / _WORST_SHARE)
        within = tuple(index for value, index in needed if value <= furthest)
        return _Tail(median(values), scale, furthest, return_days, within)

    @kept
    def _needed_values(self, position: int) -> list[tuple[float, int]]:
        """The strictest values of a tunable with which assertions pass, and their days; without
        known issues, and days on which no value passes."""
        remaining = [
            bits_of(
                n for n, truth in enumerate(self._known[row]) if truth and not truth.is_known_issue
            )
            for row in self.rows
        ]
        strictest_first = self.candidates[position][:: -self._signs[position] or 1]
        needed: list[tuple[float, int]] = []
        for value in strictest_first:
            failing = self._failing_days(with_value(self.now, position, value))
            if failing is None:
                continue
            for row, bits in enumerate(failing):
                passing = remaining[row] & self._decided[row] & ~bits
                remaining[row] &= ~passing
                needed += [(value, index) for index in _indexes(passing)]
        return needed

    def _share_of_way(self, position: int) -> float:
        """The maximum share of the way from the worst fine day to a known issue that a limit
        goes."""
        return _USUAL_COSTS / (_USUAL_COSTS + self._price_of_a_miss(position))

    def _price_of_a_miss(self, position: int) -> float:
        """The cost of a missed issue in false alarms: the maximum of the assertions that a tunable
        affects."""
        costs = (assertion.cost for assertion in self._assertions_of(position))
        ratios = (
            cost.false_negative / cost.false_positive if cost.false_positive else math.inf
            for cost in costs
        )
        return max(ratios, default=_USUAL_COSTS)

    def _assertions_of(self, position: int) -> Iterator[TunedAssertion]:
        name, assertions = self.tunables[position].name, self._backtest.assertions
        return (assertions[row] for row in self.rows if name in assertions[row].tunables)

    def _sign(self, position: int) -> int:
        """1 if larger values are stricter, -1 if smaller ones are, 0 if it does not matter on
        any of the days."""
        low, high = (
            sum(
                bits.bit_count()
                for bits in self._found_failing(with_value(self.now, position, end)) or ()
            )
            for end in self.tunables[position].bounds
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
    """The tunables in groups that affect the same assertion, in the order of the suite."""
    groups: list[set[str]] = []
    for tunable in backtest.tunables:
        together = {tunable.name}
        for assertion in backtest.assertions:
            if tunable.name in assertion.tunables:
                together |= assertion.tunables
        overlapping = [group for group in groups if group & together]
        groups = [group for group in groups if not group & together]
        groups.append(together.union(*overlapping))
    order = {tunable.name: number for number, tunable in enumerate(backtest.tunables)}
    by_first = sorted(groups, key=lambda group: min(order[name] for name in group))
    return tuple(
        tuple(tunable for tunable in backtest.tunables if tunable.name in group)
        for group in by_first
    )


def with_value(values: Sequence[float], position: int, value: float) -> tuple[float, ...]:
    """The values with another one at a position."""
    return (*values[:position], value, *values[position + 1 :])


def _between(start: float, end: float, share: float) -> float:
    """The value at a share of the way from start to end; by logarithms if both are positive, so
    that a distant issue does not pull a limit towards itself."""
    if start > 0 and end > 0:
        return start * math.exp(math.log(end / start) * share)
    return start + (end - start) * share


def _indexes(bits: int) -> Iterator[int]:
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


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
    near = sorted({limit for limit in limits if first - step <= limit <= last + step})
    stride = -(-len(near) // (_MOST_CANDIDATES // 3)) or 1
    for limit in near[::stride]:
        multiple = math.floor(limit / step)
        wanted |= {number * step for number in (multiple - 1, multiple, multiple + 1, multiple + 2)}
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
