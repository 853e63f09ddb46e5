"""The difference of two expressions in which a count occurs more than once.

Ranges treat every occurrence as a separate number. Here equal counts are equal sympy symbols that
are non-negative integers, and sympy determines the sign of the difference. Counts and results
computed from them are exact numbers, for which the computed value equals the algebraic one. Sympy
takes a second to import: import this module only where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

import sympy

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.values.exact import Number, exact

IsPart: TypeAlias = Callable[[nodes.Call, nodes.Call], bool]


def difference(
    left: nodes.Expression, right: nodes.Expression, is_part: IsPart
) -> tuple[Number, Number]:
    """The range of `left - right` wherever it has a value: a single number, all numbers that are
    not negative or not positive, or all numbers.

    :param is_part: whether the rows that one call counts are among the rows of another.
    """
    symbols: dict[nodes.Call, Any] = {}
    try:
        expression = _expression(left, symbols) - _expression(right, symbols)
    except _InexactError:
        return -math.inf, math.inf
    if not expression.has(sympy.zoo, sympy.nan):  # a division by 0
        for form in _forms(expression, symbols, is_part):
            # A divisor is never 0 if there is a value, and counts are not negative.
            above, below = sympy.fraction(sympy.cancel(form))
            if not below.is_nonnegative:
                continue
            if above.is_number and below.is_number:
                value = exact(Fraction(int(above), int(below)))
                return value, value
            for shape in (above, sympy.factor(above)):
                if shape.is_nonnegative or shape.is_nonpositive:
                    return (0, math.inf) if shape.is_nonnegative else (-math.inf, 0)
    return -math.inf, math.inf


class _InexactError(Exception):
    """The value of an expression may not be exact."""


def _expression(node: nodes.Expression, symbols: dict[nodes.Call, Any]) -> Any:
    """:raises _InexactError: floating point may round the value."""
    match node:
        case nodes.Number(value=int() | Fraction() as value):
            return sympy.Rational(value.numerator, value.denominator)
        case nodes.Negative(operand=operand):
            return -_expression(operand, symbols)
        case nodes.Arithmetic(op=op, left=left, right=right):
            a = _expression(left, symbols)
            b = _expression(right, symbols)
            return {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": a.__truediv__}[op](b)
        case nodes.Call(name=name) if name.text in METRICS and METRICS[name.text].unit.is_whole:
            symbol = sympy.Dummy(name.text, integer=True, nonnegative=True)
            return symbols.setdefault(node, symbol)
        case _:
            raise _InexactError


def _forms(expression: Any, symbols: dict[nodes.Call, Any], is_part: IsPart) -> Iterator[Any]:
    """The expression, also with the number of rows as the sum of some of them and the rest."""
    yield expression
    for part, symbol in symbols.items():
        for rows, whole in symbols.items():
            if part != rows and is_part(part, rows):
                rest = sympy.Dummy("rest", integer=True, nonnegative=True)
                yield expression.subs(whole, symbol + rest)
