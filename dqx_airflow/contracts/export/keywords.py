"""Demands on single values as keywords of JSON Schema, which ODCS uses as well."""

from __future__ import annotations

from typing import Any

from dqx_airflow.contracts.demands import (
    Bound,
    Demand,
    Length,
    MultipleOf,
    Pattern,
    UniqueItems,
)

_BOUNDS = {
    ">=": "minimum",
    ">": "exclusiveMinimum",
    "<=": "maximum",
    "<": "exclusiveMaximum",
}


def keywords_of(demand: Demand, *, is_array: bool) -> dict[str, Any] | None:
    """The keyword of a demand with its value; None if there is none for it.

    :param is_array: the values are arrays, whose items are counted.
    """
    match demand:
        case Bound(op=op, value=value):
            return {_BOUNDS[op]: value}
        case Length(op=op, count=count):
            end = "min" if op == ">=" else "max"
            return {end + ("Items" if is_array else "Length"): count}
        case Pattern(expression=expression):
            return {"pattern": expression}
        case MultipleOf(divisor=divisor):
            return {"multipleOf": divisor}
        case UniqueItems():
            return {"uniqueItems": True}
    return None
