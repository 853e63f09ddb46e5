"""Exact numbers: integers and fractions, each with a unique string form.

A decimal is a fraction, so that sums, quotients and averages of decimals lose nothing. An integer
is an `int`; every other exact number is a `Fraction`. A `float` is never exact.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from typing import TypeAlias, TypeGuard

Exact: TypeAlias = int | Fraction

Number: TypeAlias = int | Fraction | float

NUMBERS = (int, Fraction, float)
"""The types of numbers, for `isinstance`."""

MANY_DIGITS = re.compile(r"\d{1000}")
"""Matches 1,000 digits: a version, size or literal has fewer, and Python converts at most 4,300."""
TOO_LARGE = "the number is larger than every double: 1.8e308"

_MOST_BITS = 3000
"""Larger exact numbers become floats: no data contains such numbers, repeated products would double
in size with every step, and Python prints no longer ones."""
_LARGEST_POWER = 1000
"""The exponents of exact numbers in base 2 are below this: every one has a nearest float."""
_MOST_DIGITS = 4000

_ROOT = Context(prec=40)


class WrittenFloat(float):
    """A float that keeps the digits with which it was written."""

    digits: str

    def __new__(cls, digits: str) -> WrittenFloat:
        """:raises ValueError: it is not a number."""
        made = super().__new__(cls, digits.replace("_", ""))
        made.digits = digits
        return made

    def __getnewargs__(self) -> tuple[str]:  # type: ignore[override]
        """The arguments of `__new__` for copies and pickles."""
        return (self.digits,)


class WrittenInt(int):
    """An integer that keeps the digits with which it was written: `007`, `0x1F`, `1_000`."""

    digits: str

    def __new__(cls, value: int, digits: str) -> WrittenInt:
        made = super().__new__(cls, value)
        made.digits = digits
        return made

    def __getnewargs__(self) -> tuple[int, str]:  # type: ignore[override]
        """The arguments of `__new__` for copies and pickles."""
        return (int(self), self.digits)


def exact(number: int | Fraction | Decimal) -> Exact:
    """The number as an exact one: an `int` if it is an integer.

    >>> exact(Decimal("2.50"))
    Fraction(5, 2)
    """
    if isinstance(number, int):
        return int(number)
    numerator, denominator = number.as_integer_ratio()
    return numerator if denominator == 1 else Fraction(numerator, denominator)


def parse_exact(text: str) -> Exact:
    """The number in a string: `12`, `0.10`, `1e-7` or `1/3`.

    :raises ValueError: it is not a number, or has too many digits.
    """
    bare = text.replace("_", "")
    exponent = bare.lower().partition("e")[2]
    if len(bare) > _MOST_DIGITS or (exponent and abs(int(exponent)) > _MOST_DIGITS):
        raise ValueError(f"too large for an exact number: {text[:40]}")
    return exact(Fraction(bare))


def exact_text(number: Exact) -> str:
    """The number in full: as a decimal if that is finite, else as a quotient.

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
    """True if the number is a finite decimal."""
    return isinstance(number, int) or _digits_behind_the_point(number) is not None


def magnitude(number: Number) -> Number:
    """The absolute value: `abs`, which the type checker does not support for a union."""
    return -number if number < 0 else number


def nearest_float(number: Number) -> float:
    """The float nearest to the number; infinite if it is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """True for a number that has a nearest float; not for NaN, an infinite one, or a boolean.

    >>> is_finite_number(10**308), is_finite_number(10**320), is_finite_number("1")
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        return False
    return math.isfinite(nearest_float(value))


def finite_number(text: str) -> int | float | None:
    """Parses a finite number; None if the text is none.

    >>> finite_number("10"), finite_number("0.5"), finite_number("1" * 320), finite_number("inf")
    (10, 0.5, None, None)
    """
    try:
        value = int(text) if text.strip().lstrip("+-").isdigit() else WrittenFloat(text)
    except ValueError:
        return None
    return value if is_finite_number(value) else None


def exact_as_written(number: int | float | Decimal | Fraction) -> Exact:
    """The number meant by its written form: for a float, the digits as written, or else as Python
    prints them.

    >>> exact_as_written(0.1)
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
    """The number, as a float if an exact one has become too large.

    :raises OverflowError: it exceeds every float.
    """
    if isinstance(number, float):
        return number
    above = number.numerator.bit_length()
    below = number.denominator.bit_length()
    if max(above, below) > _MOST_BITS or abs(above - below) > _LARGEST_POWER:
        return float(number)
    return exact(number)


def square_root(square: Exact) -> Exact:
    """The square root of a non-negative number: exact if it is rational, else with 40 digits."""
    ratio = Fraction(square)
    numerator = math.isqrt(ratio.numerator)
    denominator = math.isqrt(ratio.denominator)
    if (numerator**2, denominator**2) == (ratio.numerator, ratio.denominator):
        return exact(Fraction(numerator, denominator))
    quotient = _ROOT.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return exact(_ROOT.sqrt(quotient))


def _digits_behind_the_point(number: Fraction) -> int | None:
    """The number of fractional digits that the decimal needs; None if it is not finite."""
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None
