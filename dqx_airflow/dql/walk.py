"""Traverses and rewrites trees of nodes of any kind: their parts, the items of arrays, the filters.

Within `every` and `some`, `item` is an item of the array, never a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.metrics.row_functions import QUANTIFIERS
from dqx_airflow.values import Span


def parts_of(node: Any) -> Iterator[Any]:
    """The node and all nodes in it."""
    return _walked(node, _PLAIN)


def expressions_in(node: Any) -> Iterator[Any]:
    """The node and all expressions in it, but not the names of calls, tags or formats."""
    return _walked(node, _NO_EXPRESSIONS)


def _walked(node: Any, others: frozenset[str]) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        item = waiting.pop()
        kind: type = type(item)
        if isinstance(item, tuple):
            waiting.extend(reversed(item))
        elif (names := _fields_without(kind, others)) is not None:
            yield item
            waiting.extend(getattr(item, name) for name in reversed(names))


def rewritten(node: Any, change: Callable[[Any], Any]) -> Any:
    """The node with `change` applied to its expressions, from the outside in.

    None from `change` keeps a node. A name of a call, a tag or a format is not an expression and
    stays, even if a column or constant of that name changes.
    """
    if isinstance(node, tuple):
        items = tuple(rewritten(item, change) for item in node)
        return items if any(a is not b for a, b in zip(items, node, strict=True)) else node
    names = _fields_without(node.__class__, _NO_EXPRESSIONS)
    if names is None:
        return node
    changed = change(node)
    if changed is not None:
        return changed
    changes = {}
    for name in names:
        part = getattr(node, name)
        new = rewritten(part, change)
        if new is not part:
            changes[name] = new
    return replace(node, **changes) if changes else node


@cache
def _fields_without(kind: type, types: frozenset[str]) -> tuple[str, ...] | None:
    """The fields of other types than these; None if the kind is not a node."""
    if not is_dataclass(kind) or kind is Span:
        return None
    return tuple(item.name for item in fields(kind) if str(item.type) not in types)


_PLAIN = frozenset(
    {"Span", "tuple[Span, ...]", "str", "tuple[str, ...]", "bool", "float", "int | float"}
)
_NO_EXPRESSIONS = _PLAIN | {"Name", "Name | None", "tuple[Name, ...]"}

ITEM = "item"
"""The name of an item, case-insensitive like columns."""


def quantified(call: nodes.Call) -> nodes.Call | nodes.Quantified:
    """A call of a quantifier as a predicate over items; every other call unchanged."""
    match call:
        case nodes.Call(name=name, arguments=(array, predicate), parameters=()):
            if name.text in QUANTIFIERS:
                return nodes.Quantified(name, array, _bound(predicate), span=call.span)
    return call


def rebound(node: Any) -> Any:
    """The node with all items bound again, after arguments were filled in."""

    def rebind(part: object) -> object:
        match part:
            case nodes.Quantified(name=name, array=array, predicate=predicate, span=span):
                return nodes.Quantified(name, rebound(array), _bound(rebound(predicate)), span=span)
            case _:
                return None

    return rewritten(node, rebind)


def is_about_items(node: nodes.Quantified) -> bool:
    """False if the predicate uses no item of this very array."""
    outer = rewritten(node.predicate, _array_of)
    return any(isinstance(part, nodes.Item) for part in parts_of(outer))


def _bound(predicate: nodes.Expression) -> nodes.Expression:
    """The predicate with items instead of their names. Those of nested arrays are bound already."""

    def bind(part: object) -> object:
        match part:
            case nodes.Name(text=text, span=span):
                first, *path = text.split(".")
                return nodes.Item(tuple(path), span=span) if first.lower() == ITEM else None
            case nodes.Quantified(name=name, array=array, predicate=inner, span=span):
                return nodes.Quantified(name, _bound(array), inner, span=span)
            case nodes.Call(name=nodes.Name(text="values")):
                return part  # its names are a column and a dataset
            case _:
                return None

    bound: nodes.Expression = rewritten(predicate, bind)
    return bound


def _array_of(part: object) -> nodes.Expression | None:
    return part.array if isinstance(part, nodes.Quantified) else None


def repetitions(names: Iterable[nodes.Name | nodes.Text]) -> Iterator[tuple[Any, Span]]:
    """The names that occur before, each with the place of the first one."""
    first: dict[str, Span] = {}
    for name in names:
        text = name.text if isinstance(name, nodes.Name) else name.value
        if text in first:
            yield name, first[text]
        first.setdefault(text, name.span)


def joined(*filters: nodes.Expression | None) -> nodes.Expression | None:
    """The conjunction of some filters; None if there is none."""
    whole: nodes.Expression | None = None
    for part in filters:
        if part is not None:
            whole = part if whole is None else nodes.Junction("and", whole, part, span=part.span)
    return whole


def simple_claims(claim: nodes.Claim) -> Iterator[nodes.Claim]:
    """The claim itself, or the claims that it is composed of."""
    if isinstance(claim, nodes.Composite):
        for part in claim.parts:
            yield from simple_claims(part.claim)
    else:
        yield claim


def calls_in(claim: nodes.Claim) -> Iterator[nodes.Call]:
    """The calls that a claim compares, including nested ones, except for those in filters."""
    if not isinstance(claim, nodes.Measure):
        return
    in_filters: set[int] = set()
    for part in parts_of(claim):  # a call comes before its filter
        if isinstance(part, nodes.Call) and id(part) not in in_filters:
            in_filters.update(map(id, parts_of(part.where)))
            yield part


def filters_over(check: nodes.Check, assertion: nodes.Assertion) -> tuple[nodes.Expression, ...]:
    """The filters on the rows of an assertion, one for each metric with a filter of its own."""
    around = joined(check.where, assertion.where)
    if isinstance(assertion.claim, nodes.Composite):
        inner = replace(check, where=around)
        of_parts = (filters_over(inner, part) for part in assertion.claim.parts)
        return tuple(dict.fromkeys(where for filters in of_parts for where in filters))
    of_calls = [joined(around, call.where) for call in calls_in(assertion.claim)]
    return tuple(dict.fromkeys(filter(None, of_calls or [around])))
