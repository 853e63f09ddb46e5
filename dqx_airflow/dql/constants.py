"""Folds what can be computed without data: constants, bounds, literals."""

from __future__ import annotations

from collections.abc import Mapping

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.derived import apply
from dqx_airflow.values import MetricValue


def fold(node: nodes.Expression, constants: Mapping[str, nodes.Constant]) -> MetricValue:
    """The value of an expression without metrics; None where it has none.

    Dates become ISO text. A constant may use those defined before it.
    """
    match node:
        case nodes.Number(value=value) | nodes.Text(value=value):
            return value
        case nodes.Day(value=day):
            return day.isoformat()
        case nodes.Negative(operand=operand):
            return apply("negative", (fold(operand, constants),))
        case nodes.Arithmetic(op=op, left=left, right=right):
            return apply(op, (fold(left, constants), fold(right, constants)))
        case nodes.Name(text=name) if name in constants:
            earlier = {key: value for key, value in constants.items() if key != name}
            return fold(constants[name].value, earlier)
        case _:
            return None
