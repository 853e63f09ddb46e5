"""Compares numbers exactly, or with the single tolerance for floats.

Exact numbers (counts, integers, decimals, and results computed from them) are compared exactly. A
float carries rounding errors, so two numbers, at least one of them a float, are equal if they
differ by at most a billionth of the larger one, for all six comparators alike. A float that was
not computed but taken from a column, such as an extreme, has no such error and no tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dqx_airflow.metrics.spark_values import COMPARATORS
from dqx_airflow.plan import model
from dqx_airflow.values.exact import Number, nearest_float

FLOAT_TOLERANCE = Fraction(1, 10**9)
"""Floats that differ by at most this much, relative to the larger one, are equal."""

CLEARLY = 1e-8
"""Floats that differ by more, relative to the larger one, are never near."""

NEARLY_EQUAL = "equal within the tolerance of floating-point numbers (relative 1e-9)"

_BEYOND_BIGINT = 2**63

_PICKS = frozenset({"min", "max", "coalesce", "abs", "negative"})
"""Functions whose value is one of their operands, except for the sign."""


@dataclass(frozen=True, slots=True)
class Side:
    """A number in a comparison.

    `is_picked`: it was not computed, but taken from a column or written by the user.
    """

    value: Number
    is_picked: bool = False
    is_written: bool = False

    @classmethod
    def of(cls, term: model.Term, value: Number, *, is_scaled: bool = False) -> Side:
        """The value of a term, or the multiple of it that is compared."""
        is_written = next(model.requests_of(term), None) is None
        return cls(value, not is_scaled and _picks(term), is_written)

    def beside(self, other: Side) -> Side:
        """The side in the form that is compared with the other one.

        Beside a float, a written number is replaced by the nearest float: no column of floats holds
        0.1 or 1e23 itself. As in a predicate over rows, a whole number that is a bigint stays.
        """
        if not self.is_written or not isinstance(other.value, float):
            return self
        if isinstance(self.value, int) and abs(self.value) < _BEYOND_BIGINT:
            return self
        return Side(nearest_float(self.value), is_picked=True)


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing two numbers: `order` is negative, 0 or positive if the left number is
    smaller, equal or larger; `exact_order` is the same without the tolerance."""

    order: int
    exact_order: int

    def holds(self, op: str) -> bool:
        """Whether `left op right`, with op one of < <= > >= == !=."""
        return COMPARATORS[op](self.order, 0)


def compare(left: Side, right: Side) -> Compared:
    left, right = left.beside(right), right.beside(left)
    a = left.value
    b = right.value
    order = (a > b) - (a < b)  # Python compares floats with integers and fractions exactly
    is_exact = not (isinstance(a, float) or isinstance(b, float))
    if order == 0 or is_exact or (left.is_picked and right.is_picked):
        return Compared(order, order)
    p = nearest_float(a)
    q = nearest_float(b)
    if abs(p - q) > CLEARLY * max(abs(p), abs(q)):
        return Compared(order, order)
    exact_a = Fraction(a)
    exact_b = Fraction(b)
    is_near = abs(exact_a - exact_b) <= FLOAT_TOLERANCE * max(abs(exact_a), abs(exact_b))
    return Compared(0 if is_near else order, order)


def is_within(left: Number, right: Number, tolerance: Number) -> bool:
    """Whether two numbers differ by at most the tolerance, inclusive.

    Floats also if they miss it only by binary rounding: |1.05 - 1| <= 0.05.
    """
    difference = abs(Fraction(left) - Fraction(right))
    most = Fraction(tolerance)
    is_exact = not (isinstance(left, float) or isinstance(right, float))
    return difference <= (most if is_exact else most * (1 + FLOAT_TOLERANCE))


def _picks(term: model.Term) -> bool:
    """True if the value of a term is a value of a column."""
    match term:
        case model.Measured(request=request):
            return request.definition.is_picked
        case model.Applied(function=function, terms=terms):
            return function in _PICKS and all(map(_picks, terms))
        case model.ConstantTerm() | model.Now() | model.KnownDay():
            return True
        case model.Claimed():
            return False
