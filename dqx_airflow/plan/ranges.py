"""Row predicates that limit one column to ranges."""

from __future__ import annotations

from decimal import Decimal

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.comparison import MIRRORED
from dqx_airflow.metrics.plain_values import spark_number
from dqx_airflow.metrics.shortcuts import Limit, ValueBound, WithinRanges

_MOST_RANGES = 16
"""The maximum number of ranges: beyond it, the extremes of a column seldom lie within one."""


def range_of(node: nodes.Expression) -> WithinRanges | None:
    """The range to which a predicate limits a column; None for any other predicate."""
    match node:
        case nodes.Junction(op="and", left=left, right=right):
            return _both(range_of(left), range_of(right))
        case nodes.Compare(op="!=", left=nodes.Name(text=column), right=right):
            limit = _limit(right)
            ranges = (
                ((ValueBound("<", limit),), (ValueBound(">", limit),)) if limit is not None else ()
            )
            return WithinRanges(column, ranges) if ranges else None
        case nodes.Compare(op=op, left=nodes.Name(text=column), right=right):
            return _within(column, (op, right))
        case nodes.Compare(op=op, left=left, right=nodes.Name(text=column)) if op != "!=":
            return _within(column, (MIRRORED[op], left))
        case nodes.Within(operand=nodes.Name(text=column), low=low, high=high):
            return _within(column, (">=", low), ("<=", high))
        case _:
            return None


def _within(column: str, *bounds: tuple[str, nodes.Expression]) -> WithinRanges | None:
    limits = [(op, _limit(node)) for op, node in bounds]
    known = tuple(ValueBound(op, limit) for op, limit in limits if limit is not None)
    return WithinRanges(column, (known,)) if len(known) == len(bounds) else None


def _both(first: WithinRanges | None, second: WithinRanges | None) -> WithinRanges | None:
    if first is None or second is None or first.column != second.column:
        return None
    if len(first.ranges) * len(second.ranges) > _MOST_RANGES:
        return None  # `x != 1 and x != 2 and ...` doubles the number with each term
    return WithinRanges(
        first.column, tuple(left + right for left in first.ranges for right in second.ranges)
    )


def _limit(node: nodes.Expression) -> Limit | None:
    match node:
        case nodes.Number(value=value, unit=unit) if unit is not nodes.Unit.DURATION:
            return spark_number(value)
        case nodes.Negative(operand=operand):
            limit = _limit(operand)
            return -limit if isinstance(limit, int | float | Decimal) else None
        case nodes.Day(value=value) | nodes.Text(value=value):
            return value
        case _:
            return None
