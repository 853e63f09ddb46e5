"""The digits of decimals for which sums, differences, products and quotients are exact.

If the exact result of a sum, a difference or a product may have more than 38 digits, Spark
silently rounds off the last ones. So the operands get narrower types for which the result has
room: a value that does not fit its narrower type has no result, which is detected.
"""

from __future__ import annotations

from typing import TypeAlias

from dqx_airflow.metrics.types import LONGEST_DECIMAL, decimal_size

_Size: TypeAlias = tuple[int, int]

_LEAST_WHOLE = 12
"""The number of integer digits that an operand keeps, if its type has them."""

_LEAST_SCALE = 6


def exact_operands(
    op: str, left: str, right: str, are_literals: tuple[bool, bool] = (False, False)
) -> tuple[str, str]:
    """The types of two operands, one of which is a decimal, for an exact result.

    Quotients stay as Spark rounds them, and so do products of two columns that would have less than
    12 integer digits left.

    :param are_literals: whether an operand is a literal, whose type has exactly its digits.
    """
    sizes = decimal_size(left), decimal_size(right)
    whole, scale = exact_size(op, *sizes)
    if op == "/" or rounded_size(whole, scale)[1] == scale:
        return _spelled(*sizes)
    match op, are_literals:
        case ("*", (False, True)):
            return _spelled(_beside_literal(sizes[0], sizes[1][0]), sizes[1])
        case ("*", (True, False)):
            return _spelled(sizes[0], _beside_literal(sizes[1], sizes[0][0]))
        case ("*", _):
            return _spelled(*_factors(*sizes))
    literals = [size for size, is_literal in zip(sizes, are_literals, strict=True) if is_literal]
    return _spelled(*_terms(*sizes, max((size[0] - size[1] for size in literals), default=0)))


def exact_size(op: str, left: _Size, right: _Size) -> _Size:
    """The integer and fractional digits that a result may need; for a quotient, those that Spark
    gives it."""
    precision, scale = left
    other_precision, other_scale = right
    match op:
        case "*":
            digits = scale + other_scale
            return precision + other_precision + 1 - digits, digits
        case "/":
            digits = max(_LEAST_SCALE, scale + other_precision + 1)
            return precision - scale + other_scale, digits
        case _:
            whole = max(precision - scale, other_precision - other_scale)
            return whole + 1, max(scale, other_scale)


def rounded_size(whole: int, scale: int) -> _Size:
    """The size that Spark gives to a result; if there is no room, fractional digits are dropped."""
    if whole + scale <= LONGEST_DECIMAL:
        return whole + scale, scale
    return LONGEST_DECIMAL, max(LONGEST_DECIMAL - whole, min(scale, _LEAST_SCALE))


def _terms(left: _Size, right: _Size, whole_of_literal: int) -> tuple[_Size, _Size]:
    whole, scale = exact_size("+", left, right)
    room = LONGEST_DECIMAL - 1
    whole = min(whole - 1, room, max(room - scale, _LEAST_WHOLE, whole_of_literal))
    scale = min(scale, room - whole)
    return _within(left, whole, scale), _within(right, whole, scale)


def _beside_literal(size: _Size, digits_of_literal: int) -> _Size:
    room = LONGEST_DECIMAL - 1 - digits_of_literal
    if room < 1:
        return size
    whole = min(size[0] - size[1], max(room - size[1], min(_LEAST_WHOLE, room)))
    return _within(size, whole, room - whole)


def _factors(left: _Size, right: _Size) -> tuple[_Size, _Size]:
    wholes = left[0] - left[1], right[0] - right[1]
    room = LONGEST_DECIMAL - 1 - left[1] - right[1]
    for whole in range(max(wholes), _LEAST_WHOLE - 1, -1):
        if sum(min(digits, whole) for digits in wholes) <= room:
            return _within(left, whole, left[1]), _within(right, whole, right[1])
    return left, right


def _within(size: _Size, whole: int, scale: int) -> _Size:
    digits = min(size[1], scale)
    return max(min(size[0] - size[1], whole) + digits, 1), digits


def _spelled(*sizes: _Size) -> tuple[str, str]:
    first, second = (f"decimal({precision},{scale})" for precision, scale in sizes)
    return first, second
