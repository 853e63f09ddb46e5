"""Binds `item`: within `every` and `some` it is an item of the array, never a column."""

from __future__ import annotations

from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.dql.walk import parts_of, rewritten
from dqx_airflow.metrics.row_functions import QUANTIFIERS

ITEM = "item"
"""The name of an item, case-insensitive like columns."""


def quantified(call: nodes.Call) -> nodes.Call | nodes.Quantified:
    """A call of a quantifier as a predicate over items; every other call unchanged."""
    match call:
        case nodes.Call(name=name, arguments=(array, predicate), parameters=()):
            if name.text in QUANTIFIERS:
                return nodes.Quantified(name, array, _bound(predicate), call.span)
    return call


def rebound(node: Any) -> Any:
    """The node with all items bound again, after arguments were filled in."""

    def rebind(part: object) -> object:
        match part:
            case nodes.Quantified(name=name, array=array, predicate=predicate, span=span):
                return nodes.Quantified(name, rebound(array), _bound(rebound(predicate)), span)
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
                return nodes.Item(tuple(path), span) if first.lower() == ITEM else None
            case nodes.Quantified(name=name, array=array, predicate=inner, span=span):
                return nodes.Quantified(name, _bound(array), inner, span)
            case nodes.Call(name=nodes.Name(text="values")):
                return part  # its names are a column and a dataset
            case _:
                return None

    bound: nodes.Expression = rewritten(predicate, bind)
    return bound


def _array_of(part: object) -> nodes.Expression | None:
    return part.array if isinstance(part, nodes.Quantified) else None
