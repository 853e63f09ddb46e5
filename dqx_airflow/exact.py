"""Exact numbers: whole numbers and fractions, and the one text that each of them has.

A decimal is a fraction, so that sums, quotients and averages of decimals lose nothing. What is
whole is an `int`; every other exact number is a `Fraction`. A `float` is never exact.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias

Exact: TypeAlias = int | Fraction

Number: TypeAlias = int | Fraction | float

NUMBERS = (int, Fraction, float)
"""The classes of numbers, for `isinstance`."""

_MOST_BITS = 3000
"""Beyond, an exact number becomes a float: no data has such numbers, products of products would
double in size with every step, and Python writes no longer ones."""
_LARGEST_POWER = 1000
"""Exact numbers lie below this power of 2, and above its inverse: every one has a nearest float."""
_MOST_DIGITS = 4000

_ROOT = Context(prec=40)


class WrittenFloat(float):
    """A float that knows the digits which somebody wrote for it."""

    digits: str

    def __new__(cls, digits: str) -> WrittenFloat:
        """:raises ValueError: it is no number."""
        made = super().__new__(cls, digits.replace("_", ""))
        made.digits = digits
        return made

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        """What a copy is made of."""
        return (self.digits,)


def exact(number: int | Fraction | Decimal) -> Exact:
    """The number as an exact one: an `int` where it is whole.

    >>> exact(Decimal("2.50"))
    Fraction(5, 2)
    """
    if isinstance(number, int):
        return int(number)
    fraction = Fraction(number)
    return fraction.numerator if fraction.denominator == 1 else fraction


def parse_exact(text: str) -> Exact:
    """The number that a text stands for: `12`, `0.10`, `1e-7` or `1/3`.

    :raises ValueError: it is none, or it has more digits than a number may have.
    """
    bare = text.replace("_", "")
    exponent = bare.lower().partition("e")[2]
    if len(bare) > _MOST_DIGITS or (exponent and abs(int(exponent)) > _MOST_DIGITS):
        raise ValueError(f"too large for an exact number: {text[:40]}")
    return exact(Fraction(bare))


def exact_text(number: Exact) -> str:
    """The number in full: as a decimal where it has an end, else as a quotient.

    >>> exact_text(Fraction(1, 8)), exact_text(Fraction(1, 3))
    ('0.125', '1/3')
    """
    if isinstance(number, int):
        return str(number)
    digits = _digits_behind_the_point(number)
    if digits is None:
        return f"{number.numerator}/{number.denominator}"
    if not digits:
        return str(number.numerator)
    unscaled = str(abs(number.numerator) * 10**digits // number.denominator).zfill(digits + 1)
    sign = "-" if number < 0 else ""
    return f"{sign}{unscaled[:-digits]}.{unscaled[-digits:]}"


def is_decimal(number: Exact) -> bool:
    """True where the number can be written as a decimal, with an end."""
    return isinstance(number, int) or _digits_behind_the_point(number) is not None


def magnitude(number: Number) -> Number:
    """The number without its sign: `abs`, which the type checker does not know of a union."""
    return -number if number < 0 else number


def nearest_float(number: Number) -> float:
    """The float that is nearest to the number; infinite where none is as large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def as_told(number: int | float | Decimal | Fraction) -> Exact:
    """The number that a person meant who wrote it so: of a float, its digits as they were written,
    else as Python shows them.

    >>> as_told(0.1)
    Fraction(1, 10)

    :raises ValueError: it is not finite, or too large.
    """
    if isinstance(number, WrittenFloat):
        return parse_exact(number.digits)
    if isinstance(number, float):
        return parse_exact(repr(number))
    if isinstance(number, Decimal):
        return parse_exact(str(number))
    return exact(number)


def bounded(number: Number) -> Number:
    """The number, as a float where an exact one has become too large.

    :raises OverflowError: no float is as large.
    """
    if isinstance(number, float):
        return number
    above, below = number.numerator.bit_length(), number.denominator.bit_length()
    if max(above, below) > _MOST_BITS or abs(above - below) > _LARGEST_POWER:
        return float(number)
    return exact(number)


def square_root(square: Exact) -> Exact:
    """The root of a number that is not negative: exact where it is rational, else 40 digits."""
    found = Fraction(square)
    numerator, denominator = math.isqrt(found.numerator), math.isqrt(found.denominator)
    if (numerator**2, denominator**2) == (found.numerator, found.denominator):
        return exact(Fraction(numerator, denominator))
    quotient = _ROOT.divide(Decimal(found.numerator), Decimal(found.denominator))
    return exact(_ROOT.sqrt(quotient))


def _digits_behind_the_point(number: Fraction) -> int | None:
    """How many digits the decimal needs behind its point; None where it has no end."""
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None
