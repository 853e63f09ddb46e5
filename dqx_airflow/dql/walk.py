"""Traverses and rewrites trees of nodes of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from dqx_airflow.values import Span


def parts_of(node: Any) -> Iterator[Any]:
    """The node and all nodes in it."""
    return _walked(node, _parts_of_kind)


def expressions_in(node: Any) -> Iterator[Any]:
    """The node and all expressions in it, but not the names of calls, tags or formats."""
    return _walked(node, _expressions_of)


def _walked(node: Any, fields_of: Callable[[type], tuple[str, ...] | None]) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        item = waiting.pop()
        kind: type = type(item)
        if isinstance(item, tuple):
            waiting.extend(reversed(item))
        elif (names := fields_of(kind)) is not None:
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
    names = _expressions_of(node.__class__)
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
def _parts_of_kind(kind: type) -> tuple[str, ...] | None:
    """The fields that may contain nodes; None if the type is not a node."""
    return _fields_without(kind, _PLAIN)


@cache
def _expressions_of(kind: type) -> tuple[str, ...] | None:
    """The fields that may contain expressions; None if the type is not a node."""
    return _fields_without(kind, _NO_EXPRESSIONS)


def _fields_without(kind: type, types: frozenset[str]) -> tuple[str, ...] | None:
    if not is_dataclass(kind) or kind is Span:
        return None
    return tuple(item.name for item in fields(kind) if str(item.type) not in types)


_PLAIN = frozenset(
    {"Span", "tuple[Span, ...]", "str", "tuple[str, ...]", "bool", "float", "int | float"}
)
_NO_EXPRESSIONS = _PLAIN | {"Name", "Name | None", "tuple[Name, ...]"}
