"""Tries a condition on a few made-up values: if one passes and one fails, the outcome is open.

This takes microseconds, and spares nearly every assertion the symbolic proof.
"""

from __future__ import annotations

from collections.abc import Mapping

from dqx_airflow.dql import nodes
from dqx_airflow.dql.satisfiability.metric_ranges import RequestedValue, range_of
from dqx_airflow.dql.satisfiability.question import Question
from dqx_airflow.exact import NUMBERS
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.comparison import COMPARATORS
from dqx_airflow.metrics.derived import apply
from dqx_airflow.values import MetricValue

_ROWS = (1, 2, 10, 1000)
_SHARES = (0, 1, 2)  # none, all, half of the rows
_NUMBERS = (1, 0, 10.5, -3, 250, 0.25, -1000)
_TRIALS = 12


def is_open(question: Question) -> bool:
    """True if some values pass and others fail; False proves nothing."""
    requests = list(dict.fromkeys(question.requests()))
    seen: set[bool] = set()
    for trial in range(_TRIALS):
        values = {
            request: _made_up(request, question, trial, number)
            for number, request in enumerate(requests)
        }
        passed = _passes(question, values)
        if passed is not None:
            seen.add(passed)
        if len(seen) > 1:
            return True
    return False


def _made_up(request: RequestedValue, question: Question, trial: int, number: int) -> MetricValue:
    name = request.call.name.text
    rows = _ROWS[trial % len(_ROWS)]
    if request.rows.where is not None:
        # The number of these that satisfy a filter, whatever it is.
        filters = [requested.rows.where for requested in question.requests()]
        rows //= 1 + (trial + filters.index(request.rows.where)) % 2
    if name == "num_rows":
        return rows
    if name in METRICS and METRICS[name].unit.is_part_of_rows:
        share = _SHARES[(trial + trial // len(_ROWS) * number) % len(_SHARES)]
        return share and rows // share
    span = range_of(request.call, question.surroundings)
    value = min(max(_NUMBERS[(trial + number * 3) % len(_NUMBERS)], span.low), span.high)
    return int(value) if span.is_whole else value


def _passes(question: Question, values: Mapping[RequestedValue, MetricValue]) -> bool | None:
    """Whether the values pass; None if there is no value, or it is unknown."""
    condition = question.condition
    sides = [_value(side, question, values) for side in (question.expression, *question.bounds)]
    if any(not isinstance(side, NUMBERS) for side in sides):
        return None
    subject, *bounds = sides
    match condition:
        case nodes.Between():
            return bool(bounds[0] <= subject <= bounds[1])  # type: ignore[operator]
        case nodes.Comparison(op="==" | "!=" as op):
            is_equal = abs(subject - bounds[0]) <= question.tolerance  # type: ignore[operator]
            return bool(is_equal == (op == "=="))
        case nodes.Comparison(op=op):
            return bool(COMPARATORS[op](subject, bounds[0]))
        case nodes.Is(keyword=nodes.Keyword.POSITIVE):
            return bool(subject > 0)  # type: ignore[operator]
        case nodes.Is(keyword=nodes.Keyword.NEGATIVE):
            return bool(subject < 0)  # type: ignore[operator]
        case _:
            return None


def _value(
    node: nodes.Expression, question: Question, values: Mapping[RequestedValue, MetricValue]
) -> MetricValue:
    match node:
        case nodes.Number(value=value):
            return value
        case nodes.Name():
            return range_of(node, question.surroundings).low
        case nodes.Negative(operand=operand):
            return apply("negative", (_value(operand, question, values),))
        case nodes.Arithmetic(op=op, left=left, right=right):
            parts = _value(left, question, values), _value(right, question, values)
            return apply(op, parts)
        case nodes.Call(name=name, arguments=arguments):
            request = question.surroundings.request_of(node)
            if request in values:
                return values[request]
            return apply(
                name.text, tuple(_value(argument, question, values) for argument in arguments)
            )
        case _:
            return None
