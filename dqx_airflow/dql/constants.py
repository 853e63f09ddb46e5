"""Evaluates what does not depend on data: constants, bounds, literals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.derived import apply
from dqx_airflow.values import MetricValue
from dqx_airflow.values.exact import NUMBERS


def settle(constants: Iterable[nodes.Constant]) -> dict[str, nodes.Constant]:
    """The constants by name, each evaluated: `const B = A * 2` with A = 3 becomes 6.

    A constant may use earlier ones. Of two with the same name the first counts. One without a value
    stays as it is.
    """
    settled: dict[str, nodes.Constant] = {}
    for constant in constants:
        if constant.name.text not in settled:
            settled[constant.name.text] = settle_one(constant, settled)
    return settled


def settle_one(constant: nodes.Constant, earlier: nodes.Constants) -> nodes.Constant:
    """The constant with a literal as its value."""
    value = constant.value
    match value:
        case nodes.Name(text=name) if name in earlier:
            literal = earlier[name].value
        case nodes.Negative() | nodes.Arithmetic():
            folded = fold(value, earlier)
            if not isinstance(folded, NUMBERS):
                return constant
            literal = nodes.Number(folded, nodes.Unit.PLAIN, span=value.span)
        case _:
            return constant
    return replace(constant, value=literal)


def fold(node: nodes.Expression, constants: nodes.Constants) -> MetricValue:
    """The value of an expression without metrics, or None. Dates become ISO strings.

    :param constants: evaluated ones.
    """
    match node:
        case nodes.Number(value=value) | nodes.Text(value=value) | nodes.Truth(value=value):
            return value
        case nodes.Day(value=day):
            return day.isoformat()
        case nodes.Negative(operand=operand):
            return apply("negative", (fold(operand, constants),))
        case nodes.Arithmetic(op=op, left=left, right=right):
            return apply(op, (fold(left, constants), fold(right, constants)))
        case nodes.Name(text=name) if name in constants:
            return fold(constants[name].value, {})
        case _:
            return None
