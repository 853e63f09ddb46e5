"""Columns of a contract as DQL, nested ones too, and demands on their values.

Where DQL has no syntax, Spark SQL is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.context import (
    CompiledClaim,
    EnforcedByType,
    RuleContext,
    each_row,
    no_rows,
    sql,
)
from dqx_airflow.contracts.compile.ecma_regex import java_pattern
from dqx_airflow.contracts.compile.terms import ValueKind, kind_of
from dqx_airflow.contracts.model import Field, column_path, parts_of
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_text
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.patterns.bounds import bounded, ended
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.predicates import predicate_sql

_NEARLY = 0.000001
"""The tolerance for multiples, as a share of the divisor, for floating-point numbers."""


def matches(
    operand: nodes.Expression, demand: demands.Pattern, item: Field | None
) -> nodes.Expression:
    try:
        pattern = java_pattern(demand.expression)
    except NoCounterpartError as error:
        raise NoCounterpartError(f"the pattern cannot be translated to Java: {error}") from error
    try:
        bounded(pattern)
    except PatternError as error:
        raise NoCounterpartError(f"the pattern is refused: {error}") from error
    return nodes.Matches(operand, terms.text(pattern), terms.NOWHERE)


def has_format(
    operand: nodes.Expression, demand: demands.OfFormat, item: Field | None
) -> nodes.Expression:
    if demand.name not in TEXT_FORMATS:
        hint = did_you_mean(demand.name, TEXT_FORMATS)
        raise NoCounterpartError(f"unknown format '{demand.name}': {hint}")
    return nodes.HasFormat(operand, terms.name(demand.name), terms.NOWHERE)


def one_of(
    operand: nodes.Expression, demand: demands.OneOf, item: Field | None
) -> nodes.Expression:
    return among(operand, demand.values, item)


def among(
    operand: nodes.Expression, values: tuple[demands.Literal, ...], item: Field | None
) -> nodes.Expression:
    """A value is one of these. NULL and values that the type cannot have are dropped."""
    kind = kind_of(item)
    if kind in (ValueKind.NESTED, ValueKind.BINARY):
        raise NoCounterpartError(f"a list cannot contain values of type {kind.value}")
    present = [value for value in values if value is not None]
    if kind is ValueKind.UNKNOWN and len({_sort_of(value) for value in present}) > 1:
        kind = ValueKind.TEXT
    choices: dict[nodes.Expression, None] = {}
    for value in present:
        try:
            choices[terms.literal(value, kind)] = None
        except NoCounterpartError:
            continue
    if not choices and present:
        raise NoCounterpartError(f"none of the values is of type {kind.value}")
    return terms.member(operand, *choices) if choices else terms.is_null(operand)


def bound(operand: nodes.Expression, demand: demands.Bound, item: Field | None) -> nodes.Expression:
    kind = kind_of(item)
    if kind in (ValueKind.NESTED, ValueKind.BINARY, ValueKind.BOOLEAN):
        raise NoCounterpartError(f"values of type {kind.value} have no order")
    if kind is ValueKind.TEXT and not isinstance(demand.value, str):
        raise NoCounterpartError("a string cannot be compared with a number")
    return terms.compare(operand, demand.op, terms.literal(demand.value, kind))


def length(
    operand: nodes.Expression, demand: demands.Length, item: Field | None
) -> nodes.Expression:
    kind = kind_of(item)
    if kind not in (ValueKind.TEXT, ValueKind.NESTED, ValueKind.UNKNOWN) or (
        item and item.type == "struct"
    ):
        raise NoCounterpartError(
            f"values of type {kind.value} have no length: only strings and arrays do"
        )
    measured = terms.call("size" if kind is ValueKind.NESTED else "length", operand)
    return terms.compare(measured, demand.op, terms.number(demand.count))


def multiple_of(
    operand: nodes.Expression, demand: demands.MultipleOf, item: Field | None
) -> nodes.Expression:
    _demand_number(item, "a multiple")
    if demand.divisor <= 0:
        raise NoCounterpartError(f"{demand.divisor} is not a valid divisor: write a number above 0")
    terms.number(demand.divisor)
    divisor = Fraction(str(demand.divisor))
    if divisor.denominator == 1:
        times = terms.call("round", _over(operand, divisor.numerator))
        return terms.compare(_times(times, divisor.numerator), "==", operand)
    quotient = _over(_times(operand, divisor.denominator), divisor.numerator)
    rest = terms.arithmetic(quotient, "-", terms.call("round", quotient))
    return terms.compare(terms.call("abs", rest), "<=", terms.number(_NEARLY))


def digits(
    operand: nodes.Expression, demand: demands.Digits, item: Field | None
) -> nodes.Expression:
    _demand_number(item, "digits")
    rounded = terms.call("round", operand, terms.number(demand.scale))
    has_scale = terms.compare(rounded, "==", operand)
    limit = terms.number(10 ** max(0, demand.precision - demand.scale))
    has_room = terms.compare(terms.call("abs", operand), "<", limit)
    return has_room if terms.is_whole(item) else terms.both(has_scale, has_room)


PREDICATES: dict[type, Callable[[nodes.Expression, Any, Field | None], nodes.Expression]] = {
    demands.Pattern: matches,
    demands.OfFormat: has_format,
    demands.OneOf: one_of,
    demands.Bound: bound,
    demands.Length: length,
    demands.MultipleOf: multiple_of,
    demands.Digits: digits,
}
"""The predicate of each demand over one value."""


def _sort_of(value: demands.Literal) -> type:
    if isinstance(value, bool | str):
        return type(value)
    return float


def _demand_number(item: Field | None, limit: str) -> None:
    kind = kind_of(item)
    if kind not in (ValueKind.NUMBER, ValueKind.UNKNOWN):
        raise NoCounterpartError(f"only a number has {limit}, and this is a {kind.value}")


def _over(operand: nodes.Expression, divisor: int) -> nodes.Expression:
    return operand if divisor == 1 else terms.arithmetic(operand, "/", terms.number(divisor))


def _times(operand: nodes.Expression, factor: int) -> nodes.Expression:
    return operand if factor == 1 else terms.arithmetic(operand, "*", terms.number(factor))


_AT_NO_COLUMN = "it applies to a column, but is not set on one"
_SIMPLE_TYPE = re.compile(r"\w+(\(\d+(, \d+)*\))?", re.ASCII)


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


def presence(context: RuleContext, _: demands.Presence) -> CompiledClaim | EnforcedByType:
    if not context.is_reachable:
        return EnforcedByType(context.reachable[-1])
    return CompiledClaim(f"column {show(_column_of(context))} exists")


def of_type(context: RuleContext, _: demands.OfType) -> CompiledClaim | EnforcedByType:
    if not context.is_reachable:
        return EnforcedByType(context.reachable[-1])
    column, item = _column_of(context), context.item
    assert item is not None
    if item.type == "struct":
        # A field with a rule about its own type is left to that rule.
        item = replace(item, fields=tuple(part for part in item.fields if not _is_typed(part)))
    wanted = type_text(item)
    bare = wanted.replace(",", ", ")
    written = bare if _SIMPLE_TYPE.fullmatch(bare) else show_text(wanted)
    return CompiledClaim(f"column {show(column)} fits {written}")


def type_text(item: Field) -> str:
    """The type of a field as DQL writes it, including nested fields."""
    match item.type:
        case "array":
            return f"array<{_part(item.items)}>"
        case "map":
            return f"map<{_part(item.keys)},{_part(item.values)}>"
        case "struct":
            inner = (f"{_field_name(part.name)}:{type_text(part)}" for part in item.fields)
            return f"struct<{','.join(inner)}>"
        case None:
            return "any"
        case kind:
            return kind


def only_columns(context: RuleContext, _: demands.OnlyColumns) -> CompiledClaim:
    names = ", ".join(show(terms.column_named(item.name)) for item in context.model.fields)
    if not names:
        raise NoCounterpartError("the contract lists no columns")
    return CompiledClaim(f"extra_column_count([{names}]) == 0")


def required(context: RuleContext, _: demands.Required) -> CompiledClaim:
    if not is_sayable(context.way):
        return no_rows(sql(nested(context.way).count_of_rows_with_null()))
    way = _steps(context)
    *outer, field = innermost(way)
    optional = [step.operand for step in outer if step.field.is_nullable]
    if context.is_reachable and not optional:
        return CompiledClaim(f"null_count({show(field.operand)}) == 0")
    present = terms.negated(terms.is_null(field.operand))
    if optional:
        # A missing field cannot have missing values.
        present = terms.either(terms.is_null(optional[-1]), present)
    return each_row(of_every(way, present))


def single_values(context: RuleContext, demand: demands.Demand) -> CompiledClaim:
    """A demand on single values: on those of a column, or on those nested in it."""
    share = context.rule.share
    predicate_of, kind = PREDICATES[type(demand)], kind_of(context.item)
    if isinstance(demand, demands.Pattern | demands.OfFormat) and kind not in (
        ValueKind.TEXT,
        ValueKind.UNKNOWN,
    ):
        return _matches_as_text(context, demand, kind)
    if not is_sayable(context.way):
        values = nested(context.way)
        predicate = predicate_of(values.operand, demand, context.item)
        return no_rows(sql(values.count_of_rows_without(predicate)), share)
    way = _steps(context)
    return each_row(of_every(way, predicate_of(way[-1].operand, demand, context.item)), share)


def unique_items(context: RuleContext, _: demands.UniqueItems) -> CompiledClaim:
    """No array contains a value twice; NULL counts as a value."""
    if context.item is None or context.item.type != "array":
        raise NoCounterpartError("only the items of an array can be unique")
    if not is_sayable(context.way):
        repeated = "item -> size(item) <> size(array_distinct(item))"
        repeating = f"exists({nested(context.way).sql}, {repeated})"
        return no_rows(sql(f"count_if({repeating})"), context.rule.share)
    way = _steps(context)
    array = way[-1].operand
    once = terms.call("size", terms.call("distinct", array))
    predicate = terms.compare(terms.call("size", array), "==", once)
    return each_row(of_every(way, predicate), context.rule.share)


def _matches_as_text(
    context: RuleContext, demand: demands.Pattern | demands.OfFormat, kind: ValueKind
) -> CompiledClaim:
    """A pattern on values that are not strings, applied to their string form."""
    share = context.rule.share
    if kind in (ValueKind.NESTED, ValueKind.BINARY):
        raise NoCounterpartError(
            f"only strings can match a pattern, and this is of type {kind.value}"
        )
    if not context.is_reachable:
        values = nested(context.way)
        claim = PREDICATES[type(demand)](values.operand, demand, None)
        return no_rows(sql(values.count_of_rows_without(claim)), share)
    claim = PREDICATES[type(demand)](_column_of(context), demand, None)
    assert context.item is not None
    column = quote_name(*parts_of(context.item.path))
    text = f"CAST({column} AS STRING)"
    if isinstance(claim, nodes.Matches):
        like = like_pattern(text, claim.pattern.value)
    else:
        assert isinstance(claim, nodes.HasFormat)
        form = TEXT_FORMATS[claim.format.text]
        like = form.sql(text, like_pattern(text, whole(form.pattern)))
    unlike = f"count_if(NOT {like})"
    return no_rows(sql(unlike), share, sql(f"count({column})"))


def _is_typed(item: Field) -> bool:
    return any(isinstance(rule.demand, demands.OfType) for rule in item.rules)


def _column_of(context: RuleContext) -> nodes.Name:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return terms.column(context.item.path)


def _steps(context: RuleContext) -> tuple[NestedField, ...]:
    if context.item is None:
        raise NoCounterpartError(_AT_NO_COLUMN)
    return steps(context.way)


def _part(item: Field | None) -> str:
    return "any" if item is None else type_text(item)


def _field_name(name: str) -> str:
    """:raises NoCounterpartError: DQL cannot write a type with it."""
    if "`" in name or "\n" in name or not name:
        raise NoCounterpartError(f"a type cannot contain the name {name!r}")
    return column_path(name)


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
