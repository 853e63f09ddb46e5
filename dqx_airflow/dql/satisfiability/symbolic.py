"""The difference of two expressions in which a count occurs more than once.

Ranges treat every occurrence as a separate number. Here equal requests are equal sympy symbols that
are non-negative integers, and sympy determines the sign of the difference. Counts and results
computed from them are exact numbers, for which the computed value equals the algebraic one. Sympy
takes a second to import: import this module only where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import sympy

from dqx_airflow.dql import nodes
from dqx_airflow.dql.satisfiability.metric_ranges import (
    ANYTHING,
    Range,
    RequestedValue,
    Surroundings,
    is_part,
    range_of,
)
from dqx_airflow.values.exact import exact


def difference(left: nodes.Expression, right: nodes.Expression, given: Surroundings) -> Range:
    """The range of `left - right` wherever it has a value: a single number, or all non-negative or
    non-positive ones."""
    symbols: dict[RequestedValue, Any] = {}
    try:
        expression = _expression(left, given, symbols) - _expression(right, given, symbols)
    except _InexactError:
        return ANYTHING
    if expression.has(sympy.zoo, sympy.nan):  # a division by 0
        return ANYTHING
    for form in _forms(expression, given, symbols):
        # A divisor is never 0 if there is a value, and counts are not negative.
        above, below = sympy.fraction(sympy.cancel(form))
        if not below.is_nonnegative:
            continue
        if above.is_number and below.is_number:
            value = exact(Fraction(int(above), int(below)))
            return Range(value, value)
        for shape in (above, sympy.factor(above)):
            if shape.is_nonnegative:
                return Range(0, ANYTHING.high)
            if shape.is_nonpositive:
                return Range(ANYTHING.low, 0)
    return ANYTHING


class _InexactError(Exception):
    """The value of an expression may not be exact."""


def _expression(
    node: nodes.Expression, surroundings: Surroundings, symbols: dict[RequestedValue, Any]
) -> Any:
    """:raises _InexactError: floating point may round the value."""
    match node:
        case nodes.Number(value=int() | Fraction() as value):
            return sympy.Rational(value.numerator, value.denominator)
        case nodes.Negative(operand=operand):
            return -_expression(operand, surroundings, symbols)
        case nodes.Arithmetic(op=op, left=left, right=right):
            a = _expression(left, surroundings, symbols)
            b = _expression(right, surroundings, symbols)
            return {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": a.__truediv__}[op](b)
        case nodes.Call() if (
            range_of(node, surroundings).is_whole and range_of(node, surroundings).low >= 0
        ):
            symbol = sympy.Dummy(node.name.text, integer=True, nonnegative=True)
            return symbols.setdefault(surroundings.request_of(node), symbol)
        case _:
            raise _InexactError


def _forms(
    expression: Any, surroundings: Surroundings, symbols: dict[RequestedValue, Any]
) -> Iterator[Any]:
    """The expression, also with the number of rows as the sum of some of them and the rest."""
    yield expression
    for part, symbol in symbols.items():
        for rows, whole in symbols.items():
            if (
                part != rows
                and part.rows == rows.rows
                and is_part(part.call, rows.call, surroundings)
            ):
                rest = sympy.Dummy("rest", integer=True, nonnegative=True)
                yield expression.subs(whole, symbol + rest)
