"""How the numbers of a condition are compared: exactly, or with the one tolerance of floats.

Exact numbers (counts, whole numbers, decimals, and what is computed of them) are compared as they
are. A float carries the rounding of what made it, so two numbers of which one is a float are equal
where they differ by a billionth of the larger one at most, for all six comparators alike. A float
that was not computed but picked from a column, as extremes are, has no such rounding and takes no
tolerance.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dqx_airflow.exact import Number, nearest_float
from dqx_airflow.plan.model import Applied, Claimed, Constant, Measured, Now, Term, requests_of

FLOAT_TOLERANCE = Fraction(1, 10**9)
"""Floats that differ by so much at most, relative to the larger one, are equal."""

_CLEARLY = 1e-8
"""Floats that differ by more, relative to the larger one, are not near, however it is computed."""

NEARLY_EQUAL = "equal within the tolerance of floating-point numbers (relative 1e-9)"

_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

_PICKS = frozenset({"min", "max", "coalesce", "abs", "negative"})
"""Functions whose value is one of their operands, the sign aside."""


@dataclass(frozen=True, slots=True)
class Side:
    """A number that is compared.

    `is_picked`: no arithmetic made it; it is as a column holds it, or as somebody wrote it.
    """

    value: Number
    is_picked: bool = False
    is_written: bool = False

    @classmethod
    def of(cls, term: Term, value: Number, *, is_scaled: bool = False) -> Side:
        """The value of a term; a multiple of it where that is compared instead."""
        is_written = next(requests_of(term), None) is None
        return cls(value, not is_scaled and _picks(term), is_written)

    def beside(self, other: Side) -> Side:
        """The side as the other one can be compared with it.

        The nearest float stands for a number that was written with a point: no column of floats
        holds 0.1 itself.
        """
        if self.is_written and isinstance(self.value, Fraction) and isinstance(other.value, float):
            return Side(float(self.value), is_picked=True)
        return self


@dataclass(frozen=True, slots=True)
class Compared:
    """`order` is below 0, 0 or above 0, as the left number is smaller, equal or larger;
    `exact_order` is that without the tolerance."""

    order: int
    exact_order: int

    def holds(self, op: str) -> bool:
        """Whether `left op right`, op one of < <= > >= == !=."""
        return _ORDERS[op](self.order, 0)

    def is_decided_by_tolerance(self, op: str) -> bool:
        return self.holds(op) != _ORDERS[op](self.exact_order, 0)


def compare(left: Side, right: Side) -> Compared:
    left, right = left.beside(right), right.beside(left)
    a, b = left.value, right.value
    order = (a > b) - (a < b)  # Python compares floats with whole numbers and fractions exactly
    is_exact = not (isinstance(a, float) or isinstance(b, float))
    if order == 0 or is_exact or (left.is_picked and right.is_picked):
        return Compared(order, order)
    p, q = nearest_float(a), nearest_float(b)
    if abs(p - q) > _CLEARLY * max(abs(p), abs(q)):
        return Compared(order, order)
    one, other = Fraction(a), Fraction(b)
    is_near = abs(one - other) <= FLOAT_TOLERANCE * max(abs(one), abs(other))
    return Compared(0 if is_near else order, order)


def is_within(left: Number, right: Number, tolerance: Number) -> bool:
    """Whether two numbers differ by the tolerance at most, which is inclusive.

    Of floats also where binary fractions miss it by a hair: |1.05 - 1| <= 0.05.
    """
    difference, most = abs(Fraction(left) - Fraction(right)), Fraction(tolerance)
    is_exact = not (isinstance(left, float) or isinstance(right, float))
    return difference <= (most if is_exact else most * (1 + FLOAT_TOLERANCE))


def _picks(term: Term) -> bool:
    """True where the value of a term is one that a column holds."""
    match term:
        case Measured(request=request):
            return request.definition.is_picked
        case Applied(function=function, terms=terms):
            return function in _PICKS and all(map(_picks, terms))
        case Constant() | Now():
            return True
        case Claimed():
            return False
