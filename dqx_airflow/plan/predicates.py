"""Predicates over rows as Spark SQL text: quoted names, quoted literals, nothing that raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dqx_airflow.dql import nodes
from dqx_airflow.dql.claims import members_in
from dqx_airflow.dql.items import ITEM
from dqx_airflow.dql.walk import rewritten
from dqx_airflow.metrics.quick_patterns import quick_pattern, quicker
from dqx_airflow.metrics.registry import Aggregate, Arguments, RowCondition
from dqx_airflow.metrics.row_functions import ROW_FUNCTIONS
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from dqx_airflow.plan.model import Lookup, MetricRequest, RowPredicate
from dqx_airflow.plan.ranges import range_of

_COMPARATORS = {"==": "=", "!=": "<>"}
_ITEM = quote_name(ITEM)
_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide"}


def settled(node: nodes.Expression, constants: Mapping[str, nodes.Constant]) -> RowPredicate:
    """The predicate with literals for its constants, which are settled ones."""

    def fill(part: object) -> object:
        match part:
            case nodes.Name(text=name) if name in constants:
                return constants[name].value
            case nodes.Call(name=nodes.Name(text="values")):
                return part  # its names are those of a column and a dataset
            case _:
                return None

    return RowPredicate(rewritten(node, fill))


def lookups_of(request: MetricRequest) -> tuple[Lookup, ...]:
    """The lookups that the predicate of a request needs."""
    return tuple(
        lookup_of(request.dataset, member)
        for argument in request.arguments
        if isinstance(argument, RowPredicate)
        for member in members_in(argument.node)
        if isinstance(member.choices, nodes.Call)
    )


def aggregates_of(request: MetricRequest) -> tuple[Aggregate, ...]:
    """The aggregates that a request needs."""
    return request.definition.aggregates(arguments_of(request, _condition))


def arguments_of(request: MetricRequest, told: Callable[[nodes.Expression], object]) -> Arguments:
    """The arguments of a request, predicates as what `told` makes of them."""
    return tuple(
        told(argument.node) if isinstance(argument, RowPredicate) else argument
        for argument in request.arguments
    )


def _condition(node: nodes.Expression) -> RowCondition:
    shortcut = range_of(node)
    column = None if shortcut is None else shortcut.column
    return RowCondition(predicate_sql(node), shortcut, column)


def predicate_sql(node: nodes.Expression) -> str:
    """The predicate as Spark SQL; a lookup is the column of its alias."""
    match node:
        case nodes.Junction(op=op, left=left, right=right):
            return f"({predicate_sql(left)} {op.upper()} {predicate_sql(right)})"
        case nodes.Not(operand=operand):
            return f"(NOT {predicate_sql(operand)})"
        case nodes.Compare(op=op, left=left, right=right):
            return f"({_value(left)} {_COMPARATORS.get(op, op)} {_value(right)})"
        case nodes.Within(operand=operand, low=low, high=high):
            return f"({_value(operand)} BETWEEN {_value(low)} AND {_value(high)})"
        case nodes.Member(operand=operand, choices=nodes.Listing(items=items)):
            return f"({_value(operand)} IN ({', '.join(map(_value, items))}))"
        case nodes.Member(operand=operand):
            # NULL where the column is NULL: such a row is not evaluated.
            alias = quote_name(lookup_of("", node).alias)
            return f"(CASE WHEN {_value(operand)} IS NOT NULL THEN {alias} IS NOT NULL END)"
        case nodes.Matches(operand=operand, pattern=pattern):
            return _matches(operand, pattern.value)
        case nodes.Like(operand=operand, pattern=pattern):
            return f"({_value(operand)} LIKE {quote_literal(pattern.value)})"
        case nodes.HasFormat(operand=operand, format=name):
            return _matches(operand, whole(TEXT_FORMATS[name.text].pattern))
        case nodes.IsNull(operand=operand):
            return f"({_value(operand)} IS NULL)"
        case nodes.Quantified(name=nodes.Name(text="every"), array=array, predicate=predicate):
            return f"forall({_value(array)}, {_ITEM} -> {predicate_sql(predicate)})"
        case nodes.Quantified(array=array, predicate=predicate):
            # `exists` has no third truth value where a legacy option of Spark is set so.
            return f"(NOT forall({_value(array)}, {_ITEM} -> (NOT {predicate_sql(predicate)})))"
        case _:
            raise AssertionError(f"not a predicate: {node}")


def _matches(operand: nodes.Expression, pattern: str) -> str:
    """What is quicker is asked first, and the pattern itself where that says no."""
    text, quick = _value(operand), quick_pattern(pattern)
    plain = f"{text} RLIKE {quote_literal(quick)}"
    first = quicker(text, quick) if isinstance(operand, nodes.Name) else None
    return f"({plain})" if first is None else f"({first} OR {plain})"


def lookup_of(dataset: str, member: nodes.Member) -> Lookup:
    """The lookup behind `column in values(other_column, dataset other)`."""
    assert isinstance(member.operand, nodes.Name)
    assert isinstance(member.choices, nodes.Call)
    column, reference = member.choices.arguments[0], member.choices.parameters[0].value
    assert isinstance(column, nodes.Name)
    assert isinstance(reference, nodes.Name)
    return Lookup(dataset, member.operand.text, reference.text, column.text)


def _value(node: nodes.Expression) -> str:
    match node:
        case nodes.Name(text=name):
            return quote_name(name)
        case nodes.Item(path=path):
            return quote_name(ITEM, *path)
        case nodes.Number(value=seconds, unit=nodes.Unit.DURATION):
            return f"INTERVAL '{seconds}' SECOND"
        case nodes.Number(value=value) | nodes.Text(value=value) | nodes.Truth(value=value):
            return quote_literal(value)
        case nodes.Day(value=day):
            return quote_literal(day)
        case nodes.Negative(operand=operand):
            return f"try_subtract(0, {_value(operand)})"
        case nodes.Arithmetic(op=op, left=left, right=right):
            return f"{_TRY[op]}({_value(left)}, {_value(right)})"
        case nodes.Call(name=name, arguments=arguments):
            return ROW_FUNCTIONS[name.text].sql(*map(_value, arguments))
        case _:
            return "NULL"
