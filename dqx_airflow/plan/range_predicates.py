"""Row predicates that limit one column to ranges."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from dqx_airflow.dql import nodes
from dqx_airflow.metrics import spark_values, sql

_MOST_RANGES = 16
"""The maximum number of ranges: beyond it, the extremes of a column seldom lie within one."""


def range_of(node: nodes.Expression) -> sql.WithinRanges | None:
    """The range to which a predicate limits a column; None for any other predicate."""
    match node:
        case nodes.Junction(op="and", left=left, right=right):
            return _both(range_of(left), range_of(right))
        case nodes.Compare(op="!=", left=nodes.Name(text=column), right=right):
            below = _within(column, ("<", right))
            above = _within(column, (">", right))
            return replace(below, ranges=below.ranges + above.ranges) if below and above else None
        case nodes.Compare(op=op, left=nodes.Name(text=column), right=right):
            return _within(column, (op, right))
        case nodes.Compare(op=op, left=left, right=nodes.Name(text=column)) if op != "!=":
            return _within(column, (spark_values.MIRRORED[op], left))
        case nodes.Within(operand=nodes.Name(text=column), low=low, high=high):
            return _within(column, (">=", low), ("<=", high))
        case _:
            return None


def _within(column: str, *bounds: tuple[str, nodes.Expression]) -> sql.WithinRanges | None:
    limits = [(op, _limit(node)) for op, node in bounds]
    known = tuple(sql.ValueBound(op, limit) for op, limit in limits if limit is not None)
    return sql.WithinRanges(column, (known,)) if len(known) == len(bounds) else None


def _both(
    first: sql.WithinRanges | None, second: sql.WithinRanges | None
) -> sql.WithinRanges | None:
    if first is None or second is None or first.column != second.column:
        return None
    if len(first.ranges) * len(second.ranges) > _MOST_RANGES:
        return None  # `x != 1 and x != 2 and ...` doubles the number with each term
    return sql.WithinRanges(
        first.column, tuple(left + right for left in first.ranges for right in second.ranges)
    )


def _limit(node: nodes.Expression) -> sql.Limit | None:
    match node:
        case nodes.Number(value=value, unit=unit) if unit is not nodes.Unit.DURATION:
            return spark_values.spark_number(value)
        case nodes.Negative(operand=operand):
            limit = _limit(operand)
            return -limit if isinstance(limit, int | float | Decimal) else None
        case nodes.Day(value=value) | nodes.Text(value=value):
            return value
        case _:
            return None
