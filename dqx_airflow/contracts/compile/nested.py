"""Paths to nested fields, and predicates on the values there, in DQL and in Spark SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.context import RuleContext
from dqx_airflow.contracts.model import Field
from dqx_airflow.dql import nodes
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.patterns.bounds import bounded, ended
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.predicates import predicate_sql


def spark_text(node: nodes.Expression) -> str:
    """A predicate as Spark SQL.

    :raises NoCounterpartError: a pattern in it cannot decide strings of every length.
    """
    match node:
        case nodes.Junction(op=op, left=left, right=right):
            return f"({spark_text(left)} {op.upper()} {spark_text(right)})"
        case nodes.Not(operand=operand):
            return f"(NOT {spark_text(operand)})"
        case nodes.Matches(operand=nodes.Name(text=name), pattern=pattern):
            decided = bounded(pattern.value)
            if decided.longest is not None:
                raise NoCounterpartError(
                    f"Spark SQL has no bound for the pattern, which can decide strings of "
                    f"{decided.longest:,} characters"
                )
            return f"({quote_name(name)} RLIKE {quote_literal(decided.text)})"
        case nodes.HasFormat(operand=nodes.Name(text=name), format=kind):
            form, text = TEXT_FORMATS[kind.text], quote_name(name)
            return form.sql(text, f"({text} RLIKE {quote_literal(ended(whole(form.pattern)))})")
        case _:
            return predicate_sql(node)


def like_pattern(value: str, pattern: str) -> str:
    """A value, given as Spark SQL, matches a regular expression.

    A string that is too long to be decided does not match: count the rows that do not match.
    """
    decided = bounded(pattern)
    short = "" if decided.longest is None else f"length({value}) <= {decided.longest} AND "
    return f"({short}{value} RLIKE {quote_literal(decided.text)})"


_ITEM = "item"
"""The name of a value within a lambda function."""


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
        outer, operand = to_value[-1].field, to_value[-1].operand
        if any(inner is part for part in outer.fields):
            to_value.append(NestedField(inner, terms.field_of(operand, inner.name)))
        elif inner is outer.items:
            to_value.append(NestedField(inner, terms.item(), operand))
        else:
            part = "key" if inner is outer.keys else "value"
            to_value.append(NestedField(inner, terms.item(part), terms.call("entries", operand)))
    return tuple(to_value)


def of_every(way: Sequence[NestedField], predicate: nodes.Expression) -> nodes.Expression:
    """The predicate over the operand of the last step, for all values at the end of the path."""
    for step in reversed(way):
        if step.array is not None:
            predicate = terms.every(step.array, predicate)
    return predicate


def innermost(way: Sequence[NestedField]) -> Sequence[NestedField]:
    """The steps within the innermost scope: after the last array, or all."""
    last = max((number for number, step in enumerate(way) if step.array is not None), default=0)
    return way[last:]


def is_sayable(way: tuple[Field, ...]) -> bool:
    """False if a field of an item has a dot in its name, which would end the name in DQL."""
    is_within = False
    for outer, inner in pairwise(way):
        is_field = any(inner is part for part in outer.fields)
        if is_within and is_field and "." in inner.name:
            return False
        is_within = is_within or not is_field
    return True


@dataclass(frozen=True, slots=True)
class Nested:
    """The values of a field in a row, as Spark SQL of an array with all of them."""

    sql: str

    def count_of_rows_without(self, predicate: nodes.Expression) -> str:
        """The number of rows with a value for which the predicate over `operand` is false."""
        return f"count_if(exists({self.sql}, {quote_name(_ITEM)} -> NOT {spark_text(predicate)}))"

    def count_of_rows_with_null(self) -> str:
        """The number of rows with NULL instead of a value."""
        return f"count_if(exists({self.sql}, {quote_name(_ITEM)} -> {quote_name(_ITEM)} IS NULL))"

    @property
    def operand(self) -> nodes.Name:
        """The name of a value in predicates."""
        return terms.name(_ITEM)


def ways(column: Field) -> Iterator[tuple[Field, ...]]:
    """The paths from a column to everything nested in it, its own first, in the order of
    `Field.walk`."""
    yield (column,)
    for inner in (*column.fields, column.items, column.keys, column.values):
        if inner is not None:
            yield from ((column, *way) for way in ways(inner))


def nested(way: tuple[Field, ...]) -> Nested:
    """The values at the end of a path, those of all items on it in one array."""
    sql, is_array = quote_name(way[0].name), False
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
    return Nested(sql)


def column_of(context: RuleContext) -> nodes.Name:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return terms.column(context.item.path)


def steps_of(context: RuleContext) -> tuple[NestedField, ...]:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return steps(context.way)


_AT_NO_COLUMN = "it applies to a column, but is not set on one"
