"""Checks that are written as chains of calls in Python, read by their syntax and never run:
`Check(level, "orders").is_complete("id").is_unique("id")`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime
from typing import Any, TypeGuard

from dqx_airflow.errors import NoCounterpartError


def assigned_checks(tree: ast.Module) -> dict[str, ast.Call]:
    """The calls of `Check` that are assigned to a variable, with or without constraints."""
    checks: dict[str, ast.Call] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            _, start = links_of(node.value)
            if is_check(start):
                checks[node.targets[0].id] = start
    return checks


def chains(tree: ast.Module) -> list[ast.Call]:
    """The calls that no method is called on: the last links of all chains."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    inner = {id(call.func.value) for call in calls if isinstance(call.func, ast.Attribute)}
    return [call for call in calls if id(call) not in inner]


def is_check(node: ast.expr | None) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and name_of(node.func) == "Check"


def links_of(node: ast.expr) -> tuple[list[ast.Call], ast.expr]:
    """The calls of a chain from the first one on, and its start."""
    links: list[ast.Call] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if is_check(node):
            break
        links.append(node)
        node = node.func.value
        if isinstance(node, ast.Attribute):  # a group of checks, as in `check.iso.iso_4217("c")`
            node = node.value
    return links[::-1], node


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def constants(tree: ast.Module) -> dict[str, Any]:
    """The literals that are assigned to a name at the top of a module."""
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with suppress(NoCounterpartError):
                found[node.targets[0].id] = value_of(node.value, found)
    return found


def value_of(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value of a literal, of a list of literals, of a date, or of a known name.

    :raises NoCounterpartError: it cannot be evaluated without running it.
    """
    match node:
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [value_of(item, known) for item in items]
        case ast.Call(func=function, args=parts, keywords=[]) if name_of(function) in _MOMENTS:
            numbers = [value_of(part, known) for part in parts]
            with suppress(TypeError, ValueError):
                return _MOMENTS[name_of(function)](*numbers)
        case ast.Dict():
            return {}
    with suppress(ValueError):
        return ast.literal_eval(node)
    raise NoCounterpartError(f"`{ast.unparse(node)}` cannot be evaluated without running it")


_MOMENTS: dict[str, Callable[..., Any]] = {"date": date, "datetime": datetime}
