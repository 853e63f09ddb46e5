"""Recognises claims about a share, a part of a whole. Profiles do not multiply it: twice 50% is not
100%, so with a scaled share, half of the required rows would be enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.dql import nodes
from dqx_airflow.dql.satisfiability import Surroundings
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import WINDOWS
from dqx_airflow.metrics.metric import MetricUnit

_SAME_KIND = frozenset({"abs", "min", "max", "coalesce", *WINDOWS})
"""Functions that turn shares into shares. A change, as from `day_over_day`, is no share."""


def is_about_share(claim: nodes.Claim, constants: nodes.Constants, dataset: str) -> bool:
    """True if a side of the comparison in an assertion is a share.

    Shares are `N% of rows`, a distribution, a metric that is a share, numbers of rows or values
    divided by others of the same dataset and date, and results of arithmetic between these and
    numbers; also a single metric in the unit of its column, or `sql` or `query`, if it is compared
    with a percentage.

    :param constants: the constants of the suite, evaluated.
    :param dataset: the default dataset of calls.
    """
    match claim:
        case nodes.Rows(share=share):
            return share is not None
        case nodes.RowsMatch(allowing=allowing):
            return allowing is not None
        case nodes.Composite():
            return True  # the result is whether claims hold, which cannot be multiplied
        case nodes.Measure(condition=nodes.MatchesShares()):
            return True
        case nodes.Measure(expression=expression, condition=condition):
            bounds = nodes.bounds_of(condition)
            surroundings = Surroundings({}, dataset)
            if any(_is_share(side, surroundings) for side in (expression, *bounds)):
                return True
            return _is_of_any_unit(expression) and any(
                _is_percentage(bound, constants) for bound in bounds
            )
        case _:
            return False


def _is_share(node: nodes.Expression, surroundings: Surroundings) -> bool:
    match node:
        case nodes.Call(name=name, arguments=arguments):
            if name.text in METRICS:
                return METRICS[name.text].unit is MetricUnit.SHARE
            return name.text in _SAME_KIND and any(
                _is_share(argument, surroundings) for argument in arguments
            )
        case nodes.Negative(operand=operand):
            return _is_share(operand, surroundings)
        case nodes.Arithmetic(op="/", left=left, right=right):
            if _is_share(left, surroundings):
                return not any(_calls_in(right))
            return _are_counts_of_same_rows(left, right, surroundings)
        case nodes.Arithmetic(op="*", left=left, right=right):
            sides = ((left, right), (right, left))
            return any(_is_share(a, surroundings) and not any(_calls_in(b)) for a, b in sides)
        case nodes.Arithmetic(left=left, right=right):
            return _is_share(left, surroundings) or _is_share(right, surroundings)
        case _:
            return False


def _are_counts_of_same_rows(
    part: nodes.Expression, whole: nodes.Expression, surroundings: Surroundings
) -> bool:
    """True if both count rows, or values in them, of one dataset on one date; only the numerator
    may have a filter of its own."""
    calls = [tuple(_calls_in(side)) for side in (part, whole)]
    if not calls[1] or any(not _is_count_of_rows(call) for side in calls for call in side):
        return False
    all_rows, *other_rows = (surroundings.rows_of(call) for call in calls[1])
    parts = [surroundings.rows_of(call) for call in calls[0]]
    are_whole = all(
        call.name.text == "num_rows" and rows == all_rows
        for call, rows in zip(calls[0], parts, strict=True)
    )
    if are_whole or any(other != all_rows for other in other_rows):
        return False  # rows per value are not a share
    return all(rows.are_among(all_rows) for rows in parts)


def _is_count_of_rows(call: nodes.Call) -> bool:
    metric = METRICS.get(call.name.text)
    return metric is not None and metric.unit.is_part_of_rows


def _calls_in(node: nodes.Expression) -> Iterator[nodes.Call]:
    """The outermost calls, including those within arithmetic functions."""
    match node:
        case nodes.Call(name=name, arguments=arguments) if name.text in _SAME_KIND:
            for argument in arguments:
                yield from _calls_in(argument)
        case nodes.Call():
            yield node
        case nodes.Negative(operand=operand):
            yield from _calls_in(operand)
        case nodes.Arithmetic(left=left, right=right):
            yield from _calls_in(left)
            yield from _calls_in(right)


def _is_of_any_unit(node: nodes.Expression) -> bool:
    """True for a single metric of unknown unit: it is a share if it is compared with one."""
    if not isinstance(node, nodes.Call) or node.name.text not in METRICS:
        return False
    return METRICS[node.name.text].unit in (MetricUnit.COLUMN, MetricUnit.UNKNOWN)


def _is_percentage(node: nodes.Expression, constants: nodes.Constants) -> bool:
    match node:
        case nodes.Number(unit=unit):
            return unit is nodes.Unit.PERCENT
        case nodes.Name(text=name) if name in constants:
            value = constants[name].value
            return isinstance(value, nodes.Number) and value.unit is nodes.Unit.PERCENT
        case _:
            return False
