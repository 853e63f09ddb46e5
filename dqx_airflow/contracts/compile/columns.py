"""Demands on columns, and on each of their values: one function for each demand."""

from __future__ import annotations

import re
from dataclasses import replace

from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.nested import (
    NestedField,
    innermost,
    is_sayable,
    nested,
    of_every,
    steps,
)
from dqx_airflow.contracts.compile.rule_context import (
    CompiledClaim,
    EnforcedByType,
    RuleContext,
    each_row,
    no_rows,
    sql,
)
from dqx_airflow.contracts.compile.spark_text import like_pattern
from dqx_airflow.contracts.compile.terms import UnenforceableError, ValueKind, kind_of
from dqx_airflow.contracts.compile.values import PREDICATES
from dqx_airflow.contracts.demands import OfFormat, OfType, Pattern
from dqx_airflow.contracts.model import Field
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_text
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole

_AT_NO_COLUMN = "it applies to a column, but is not set on one"
_SIMPLE_TYPE = re.compile(r"\w+(\(\d+(, \d+)*\))?", re.ASCII)


def presence(place: RuleContext) -> CompiledClaim | EnforcedByType:
    if not place.is_reachable:
        return EnforcedByType(place.reachable[-1])
    return CompiledClaim(f"column {show(_column_of(place))} exists")


def of_type(place: RuleContext) -> CompiledClaim | EnforcedByType:
    if not place.is_reachable:
        return EnforcedByType(place.reachable[-1])
    column, item = _column_of(place), place.item
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


def only_columns(place: RuleContext) -> CompiledClaim:
    names = ", ".join(show(terms.column_named(item.name)) for item in place.model.fields)
    if not names:
        raise UnenforceableError("the contract lists no columns")
    return CompiledClaim(f"extra_column_count([{names}]) == 0")


def required(place: RuleContext) -> CompiledClaim:
    if not is_sayable(place.way):
        return no_rows(sql(nested(place.way).count_of_rows_with_null()))
    way = _steps(place)
    *outer, own = innermost(way)
    optional = [step.operand for step in outer if step.field.is_nullable]
    if place.is_reachable and not optional:
        return CompiledClaim(f"null_count({show(own.operand)}) == 0")
    present = terms.negated(terms.is_null(own.operand))
    if optional:
        # A missing field cannot have missing values.
        present = terms.either(terms.is_null(optional[-1]), present)
    return each_row(of_every(way, present))


def value(place: RuleContext) -> CompiledClaim:
    """A demand on single values: on those of a column, or on those nested in it."""
    demand, share = place.rule.demand, place.rule.share
    tell, kind = PREDICATES[type(demand)], kind_of(place.item)
    if isinstance(demand, Pattern | OfFormat) and kind not in (ValueKind.TEXT, ValueKind.UNKNOWN):
        return _matches_as_text(place, kind)
    if not is_sayable(place.way):
        values = nested(place.way)
        predicate = tell(values.operand, demand, place.item)
        return no_rows(sql(values.count_of_rows_without(predicate)), share)
    way = _steps(place)
    return each_row(of_every(way, tell(way[-1].operand, demand, place.item)), share)


def unique_items(place: RuleContext) -> CompiledClaim:
    """No array contains a value twice; NULL counts as a value."""
    if place.item is None or place.item.type != "array":
        raise UnenforceableError("only the items of an array can be unique")
    if not is_sayable(place.way):
        repeated = "item -> size(item) <> size(array_distinct(item))"
        repeating = f"exists({nested(place.way).sql}, {repeated})"
        return no_rows(sql(f"count_if({repeating})"), place.rule.share)
    way = _steps(place)
    array = way[-1].operand
    once = terms.call("size", terms.call("distinct", array))
    predicate = terms.compare(terms.call("size", array), "==", once)
    return each_row(of_every(way, predicate), place.rule.share)


def _matches_as_text(place: RuleContext, kind: ValueKind) -> CompiledClaim:
    """A pattern on values that are not strings, applied to their string form."""
    demand, share = place.rule.demand, place.rule.share
    if kind in (ValueKind.NESTED, ValueKind.BINARY):
        raise UnenforceableError(
            f"only strings can match a pattern, and this is of type {kind.value}"
        )
    if not place.is_reachable:
        values = nested(place.way)
        claim = PREDICATES[type(demand)](values.operand, demand, None)
        return no_rows(sql(values.count_of_rows_without(claim)), share)
    claim = PREDICATES[type(demand)](_column_of(place), demand, None)
    if isinstance(claim, nodes.Matches):
        pattern = claim.pattern.value
    else:
        assert isinstance(claim, nodes.HasFormat)
        pattern = whole(TEXT_FORMATS[claim.format.text].pattern)
    assert place.item is not None
    column = quote_name(*terms.parts_of(place.item.path))
    unlike = f"count_if(NOT {like_pattern(f'CAST({column} AS STRING)', pattern)})"
    return no_rows(sql(unlike), share, sql(f"count({column})"))


def _is_typed(item: Field) -> bool:
    return any(isinstance(rule.demand, OfType) for rule in item.rules)


def _column_of(place: RuleContext) -> nodes.Name:
    if place.item is None:
        raise UnenforceableError(_AT_NO_COLUMN)
    return terms.column(place.item.path)


def _steps(place: RuleContext) -> tuple[NestedField, ...]:
    if place.item is None:
        raise UnenforceableError(_AT_NO_COLUMN)
    return steps(place.way)


def _part(item: Field | None) -> str:
    return "any" if item is None else type_text(item)


def _field_name(name: str) -> str:
    """:raises UnenforceableError: DQL cannot write a type with it."""
    if name.isidentifier() and name.isascii():
        return name
    if "`" in name or "\n" in name or not name:
        raise UnenforceableError(f"a type cannot contain the name {name!r}")
    return f"`{name}`"
