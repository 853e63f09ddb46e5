"""Values nested in structs, arrays and maps, in DQL and in Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.rule_context import RuleContext
from dqx_airflow.contracts.model import Field
from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.sql import quote_name

ITEM = nodes.Name("item")
"""A value within a lambda function."""


@dataclass(frozen=True, slots=True)
class NestedField:
    """A field on the path to a nested one, and the DQL name of its value there.

    `array` is the array of which it is an item; None for a column and for a field of a struct.
    """

    field: Field
    operand: nodes.Name | nodes.Item
    array: nodes.Expression | None = None


def steps(way: tuple[Field, ...]) -> tuple[NestedField, ...]:
    """The steps of a path: `lines`, then `item` of `lines`, then `item.sku`.

    :raises NoCounterpartError: DQL has no name for one of the fields.
    """
    column, *rest = way
    to_value = [NestedField(column, terms.column_named(column.name))]
    for inner in rest:
        outer = to_value[-1].field
        operand = to_value[-1].operand
        if any(inner is part for part in outer.fields):
            to_value.append(NestedField(inner, terms.field_of(operand, inner.name)))
        elif inner is outer.items:
            to_value.append(NestedField(inner, nodes.Item(()), operand))
        else:
            part = "key" if inner is outer.keys else "value"
            to_value.append(NestedField(inner, nodes.Item((part,)), terms.call("entries", operand)))
    return tuple(to_value)


def of_every(way: Sequence[NestedField], predicate: nodes.Expression) -> nodes.Expression:
    """The predicate over the operand of the last step, for all values at the end of the path."""
    for step in reversed(way):
        if step.array is not None:
            predicate = nodes.Quantified(nodes.Name("every"), step.array, predicate)
    return predicate


def innermost(way: Sequence[NestedField]) -> Sequence[NestedField]:
    """The steps within the innermost scope: after the last array, or all."""
    last = max((number for number, step in enumerate(way) if step.array is not None), default=0)
    return way[last:]


def is_expressible(way: tuple[Field, ...]) -> bool:
    """False if a field of an item has a dot in its name, which would end the name in DQL."""
    is_within = False
    for outer, inner in pairwise(way):
        is_field = any(inner is part for part in outer.fields)
        if is_within and is_field and "." in inner.name:
            return False
        is_within = is_within or not is_field
    return True


def nested(way: tuple[Field, ...]) -> str:
    """The values at the end of a path in a row, as Spark SQL; if there are arrays on the path, all
    of them in one array."""
    sql = quote_name(way[0].name)
    is_array = False
    for outer, inner in pairwise(way):
        if any(inner is part for part in outer.fields):
            # Spark takes a field of each struct in an array in the same way.
            sql = f"{sql}.{quote_name(inner.name)}"
            continue
        step = "map_keys" if inner is outer.keys else ""
        step = "map_values" if inner is outer.values else step
        if not is_array:
            sql = f"{step}({sql})" if step else sql
        else:
            part = f"transform({sql}, part -> {step}(part))" if step else sql
            # NULL among the arrays would make the whole result NULL.
            sql = f"flatten(filter({part}, part -> part IS NOT NULL))"
        is_array = True
    return sql


def column_of(context: RuleContext) -> nodes.Name:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return terms.column(context.item.path)


def steps_of(context: RuleContext) -> tuple[NestedField, ...]:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return steps(context.way)


_AT_NO_COLUMN = "it applies to a column, but is not set on one"
