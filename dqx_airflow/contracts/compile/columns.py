"""Demands on columns, and on each of their values: one function for each demand."""

from __future__ import annotations

import re
from dataclasses import replace

from dqx_airflow.contracts.column_paths import column_path, parts_of
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
from dqx_airflow.contracts.demands import (
    Demand,
    OfFormat,
    OfType,
    OnlyColumns,
    Pattern,
    Presence,
    Required,
    UniqueItems,
)
from dqx_airflow.contracts.model import Field
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_text
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole

_AT_NO_COLUMN = "it applies to a column, but is not set on one"
_SIMPLE_TYPE = re.compile(r"\w+(\(\d+(, \d+)*\))?", re.ASCII)


def presence(context: RuleContext, _: Presence) -> CompiledClaim | EnforcedByType:
    if not context.is_reachable:
        return EnforcedByType(context.reachable[-1])
    return CompiledClaim(f"column {show(_column_of(context))} exists")


def of_type(context: RuleContext, _: OfType) -> CompiledClaim | EnforcedByType:
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


def only_columns(context: RuleContext, _: OnlyColumns) -> CompiledClaim:
    names = ", ".join(show(terms.column_named(item.name)) for item in context.model.fields)
    if not names:
        raise UnenforceableError("the contract lists no columns")
    return CompiledClaim(f"extra_column_count([{names}]) == 0")


def required(context: RuleContext, _: Required) -> CompiledClaim:
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


def value(context: RuleContext, demand: Demand) -> CompiledClaim:
    """A demand on single values: on those of a column, or on those nested in it."""
    share = context.rule.share
    predicate_of, kind = PREDICATES[type(demand)], kind_of(context.item)
    if isinstance(demand, Pattern | OfFormat) and kind not in (ValueKind.TEXT, ValueKind.UNKNOWN):
        return _matches_as_text(context, demand, kind)
    if not is_sayable(context.way):
        values = nested(context.way)
        predicate = predicate_of(values.operand, demand, context.item)
        return no_rows(sql(values.count_of_rows_without(predicate)), share)
    way = _steps(context)
    return each_row(of_every(way, predicate_of(way[-1].operand, demand, context.item)), share)


def unique_items(context: RuleContext, _: UniqueItems) -> CompiledClaim:
    """No array contains a value twice; NULL counts as a value."""
    if context.item is None or context.item.type != "array":
        raise UnenforceableError("only the items of an array can be unique")
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
    context: RuleContext, demand: Pattern | OfFormat, kind: ValueKind
) -> CompiledClaim:
    """A pattern on values that are not strings, applied to their string form."""
    share = context.rule.share
    if kind in (ValueKind.NESTED, ValueKind.BINARY):
        raise UnenforceableError(
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
    return any(isinstance(rule.demand, OfType) for rule in item.rules)


def _column_of(context: RuleContext) -> nodes.Name:
    if context.item is None:
        raise UnenforceableError(_AT_NO_COLUMN)
    return terms.column(context.item.path)


def _steps(context: RuleContext) -> tuple[NestedField, ...]:
    if context.item is None:
        raise UnenforceableError(_AT_NO_COLUMN)
    return steps(context.way)


def _part(item: Field | None) -> str:
    return "any" if item is None else type_text(item)


def _field_name(name: str) -> str:
    """:raises UnenforceableError: DQL cannot write a type with it."""
    if "`" in name or "\n" in name or not name:
        raise UnenforceableError(f"a type cannot contain the name {name!r}")
    return column_path(name)
