"""The days on which an assertion fails, for any values of the tunables in its limits.

Days are the bits of an integer, so that thousands of values are tried quickly. The compared value
and what is usual do not depend on a tunable. So each day has a turning point, the value at which
its verdict changes; in sorted turning points, bisection finds the failing days of a value. Days
whose turning point is close to the value are compared as in a gate.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from dqx_airflow.exact import NUMBERS, Number, nearest_float
from dqx_airflow.metrics.derived import apply
from dqx_airflow.plan.model import Applied, ConstantTerm, Term
from dqx_airflow.plan.number_comparison import Side, compare
from dqx_airflow.tuning.tunables import written_number

_FAR = 1e-6
"""Numbers that differ by more, relative to both, are never treated as equal."""


@dataclass(frozen=True, slots=True)
class ComparedNumber:
    """A compared number, and the float that decides most comparisons."""

    side: Side
    near: float

    @classmethod
    def of(cls, side: Side) -> ComparedNumber:
        return cls(side, nearest_float(side.value))

    def holds(self, op: str, limit: ComparedNumber) -> bool:
        """Whether the condition holds; `compare` decides if the two are close."""
        difference = self.near - limit.near
        if abs(difference) > _FAR * (abs(self.near) + abs(limit.near)):
            return (op[0] == ">") == (difference > 0) if op[0] in "<>" else op == "!="
        return compare(self.side, limit.side).holds(op)


@dataclass(frozen=True, slots=True)
class ComparedDay:
    """What is compared on a day, and what the limit is a multiple of: 1 where it is the tunable."""

    index: int
    subject: ComparedNumber
    usual: Number

    @property
    def turning_point(self) -> float | None:
        """The value of the tunable at which the verdict changes; None where none does."""
        try:
            return self.subject.near / nearest_float(self.usual)
        except (ZeroDivisionError, OverflowError):
            return None


class MovingLimit:
    """A limit that is a tunable or a multiple of it, and what is compared with it on some days.

    :param op: how it is compared, one of < <= > >=.
    :param bound: the limit as it is planned for some value.
    """

    def __init__(self, name: str, op: str, bound: Term, days: Iterable[ComparedDay]) -> None:
        self.name, self.op = name, op
        self._bound, self._days = bound, {day.index: day for day in days}
        above: list[tuple[float, int]] = []
        below: list[tuple[float, int]] = []
        self._same: list[int] = []
        for index, day in self._days.items():
            point = day.turning_point
            if point is None:
                self._same.append(index)
                continue
            (above if (day.usual > 0) == (op[0] == ">") else below).append((point, index))
        self._above, self._below = _Sorted(above), _Sorted(below)
        self._known: dict[float, int] = {}

    @property
    def points(self) -> Iterator[tuple[float, int]]:
        """The turning points, with their days."""
        yield from self._above
        yield from self._below

    def failing(self, value: float) -> int:
        """The days on which this limit does not hold."""
        if value not in self._known:
            close = 3 * _FAR * abs(value)
            failing = self._above.before(value - close) | self._below.after(value + close)
            near = (*self._above.within(value, close), *self._below.within(value, close))
            for index in (*near, *self._same):
                if not self._holds(self._days[index], value):
                    failing |= 1 << index
            self._known[value] = failing
        return self._known[value]

    def _holds(self, day: ComparedDay, value: float) -> bool:
        limit = apply("*", (written_number(value), day.usual))
        if not isinstance(limit, NUMBERS):
            return False
        return day.subject.holds(self.op, ComparedNumber.of(Side.of(self._bound, limit)))


class _Sorted:
    """Turning points in ascending order, and the days before each."""

    def __init__(self, points: list[tuple[float, int]]) -> None:
        points.sort()
        self._values = [value for value, _ in points]
        self._indexes = [index for _, index in points]
        self._before = [0]
        for index in self._indexes:
            self._before.append(self._before[-1] | 1 << index)

    def __iter__(self) -> Iterator[tuple[float, int]]:
        return zip(self._values, self._indexes, strict=True)

    def before(self, value: float) -> int:
        return self._before[bisect_left(self._values, value)]

    def after(self, value: float) -> int:
        return self._before[-1] ^ self._before[bisect_right(self._values, value)]

    def within(self, value: float, close: float) -> Sequence[int]:
        first = bisect_left(self._values, value - close)
        return self._indexes[first : bisect_right(self._values, value + close)]


@dataclass(frozen=True, slots=True)
class FailingDays:
    """The days on which an assertion fails: `always` with any values, the others by `limits`, each
    of which depends on one tunable."""

    always: int
    limits: tuple[MovingLimit, ...] = field(default=())

    @classmethod
    def over(cls, groups: Iterable[FailingDays]) -> FailingDays:
        """The failing days of several groups of days together."""
        always, limits = 0, list[MovingLimit]()
        for group in groups:
            always |= group.always
            limits += group.limits
        return cls(always, tuple(limits))

    def at(self, values: Mapping[str, float]) -> int:
        """The failing days, as the bits of a number.

        :param values: those of all tunables that the assertion depends on.
        """
        failing = self.always
        for limit in self.limits:
            failing |= limit.failing(values[limit.name])
        return failing


def usual_behind(bounds: Sequence[Term], values: Sequence[float]) -> Term | None:
    """What a limit is a multiple of, by how it is planned for two values of a tunable: 1 where it
    is the tunable itself; None where it is something else."""
    is_value = partial(_are_constants, values=values)
    if is_value(bounds):
        return ConstantTerm(1)
    match bounds:
        case (
            Applied(function="*", terms=(first, second)),
            Applied(function="*", terms=(third, fourth)),
        ):
            if is_value((first, third)) and second == fourth:
                return second
            if is_value((second, fourth)) and first == third:
                return first
    return None


def _are_constants(terms: Sequence[Term], values: Sequence[float]) -> bool:
    return all(
        isinstance(term, ConstantTerm) and term.value == written_number(value)
        for term, value in zip(terms, values, strict=True)
    )


def bits_of(indexes: Iterable[int]) -> int:
    """Days as the bits of a number."""
    bits = 0
    for index in indexes:
        bits |= 1 << index
    return bits
