"""Checks that are written as chains of calls in Python, read by their syntax and never run:
`Check(level, "orders").is_complete("id").is_unique("id")`.

A name stands for the value that is assigned to it last before its use, in its own scope. Where
another value is possible (branches, loops, arguments of functions), it is unknown.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeAlias

from dqx_airflow.errors import NoCounterpartError


def of_unknown_check(dataset: str) -> str:
    """The difference of a rule whose `Check` is not known, as for an argument of a function."""
    return f"its Check(...) is not known: its level counts as error, its dataset as {dataset}"


@dataclass(frozen=True, slots=True)
class CheckChain:
    """A chain of calls from the first one on; `check` is None if it starts on an unknown object."""

    links: list[ast.Call]
    check: ast.Call | None


def links_of(
    node: ast.expr, classes: frozenset[str] = frozenset({"Check"})
) -> tuple[list[ast.Call], ast.expr]:
    """The calls of a chain from the first one on, and its start.

    :param classes: the names of the class `Check`, whose call starts a chain.
    """
    links: list[ast.Call] = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if name_of(node.func) in classes:
            break
        links.append(node)
        node = _receiver(node.func)
    return links[::-1], node


def _receiver(method: ast.Attribute) -> ast.expr:
    """The object that a method is called on, without the group in `check.iso.iso_4217("c")`."""
    receiver = method.value
    return receiver.value if isinstance(receiver, ast.Attribute) else receiver


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


_Position: TypeAlias = tuple[int, int]
_Block: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class _Binding:
    """An assignment to a name: its end, and its value; None if the value is unknown."""

    end: _Position
    block: _Block
    value: ast.expr | None


@dataclass(frozen=True, slots=True)
class _Place:
    """The scopes around an expression, the innermost first, and the blocks of statements."""

    scopes: tuple[ast.AST, ...]
    blocks: tuple[_Block, ...]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class PythonChecks:
    """The chains of calls in a file of Python, and the values of its names."""

    def __init__(self, tree: ast.Module, ends: frozenset[str] = frozenset()) -> None:
        """
        :param ends: the methods of a check whose result is no check.
        """
        self._ends = ends
        self._bindings: dict[tuple[ast.AST, str], list[_Binding]] = defaultdict(list)
        self._places: dict[ast.AST, _Place] = {}
        self._imported: set[str] = set()
        self._changed: set[str] = set()
        self._classes = {"Check"}
        self._calls: list[ast.Call] = []
        self._visit(tree, _Place((tree,), ()))

    # Reading the names ---------------------------------------------------------------------------

    def _visit(self, node: ast.AST, place: _Place) -> None:
        self._places[node] = place
        self._record(node, place)
        inner = place
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            outer = [scope for scope in place.scopes if not isinstance(scope, ast.ClassDef)]
            inner = _Place((node, *outer), place.blocks)
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self._visit(child, _in_block(node, field, child, inner))

    def _record(self, node: ast.AST, place: _Place) -> None:
        """Records the names that a node binds or changes, and its call."""
        match node:
            case ast.Call():
                self._calls.append(node)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, value, node, place)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind_target(target, value, node, place)
            case ast.NamedExpr(target=target, value=value):
                self._bind_target(target, value, node, place)
            case ast.AugAssign(target=target):
                self._bind_target(target, None, node, place)
            case ast.For(target=target) | ast.AsyncFor(target=target):
                self._bind_target(target, None, node.iter, place)
            case ast.comprehension(target=target):
                self._bind_target(target, None, target, place)
            case ast.withitem(optional_vars=ast.expr() as target):
                self._bind_target(target, None, target, place)
            case ast.arg(arg=name):
                self._bind(name, None, node, place)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                self._bind(name, None, node, place)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._bind(name, None, node, place)
            case ast.ClassDef(name=name):
                self._bind(name, None, node, place)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self._bind(name, None, node, _Place(place.scopes[-1:], place.blocks))
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                self._record_imports(names)
            case ast.Attribute(value=ast.Name(id=name)):
                self._changed.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                self._changed.add(name)

    def _record_imports(self, names: list[ast.alias]) -> None:
        for alias in names:
            self._imported.add(alias.asname or alias.name.partition(".")[0])
            if alias.name == "Check" and alias.asname:
                self._classes.add(alias.asname)

    def _bind_target(
        self, target: ast.expr, value: ast.expr | None, node: ast.AST, place: _Place
    ) -> None:
        """Binds the names of a target: each of several ones to an unknown value."""
        if isinstance(target, ast.Name):
            self._bind(target.id, value, node, place)
            return
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self._bind(part.id, None, node, place)

    def _bind(self, name: str, value: ast.expr | None, node: Any, place: _Place) -> None:
        end = (node.end_lineno, node.end_col_offset)
        block = place.blocks[-1] if place.blocks else (0, "")
        self._bindings[place.scopes[0], name].append(_Binding(end, block, value))

    # Looking them up -----------------------------------------------------------------------------

    def _assigned(self, name: ast.Name) -> ast.expr | None:
        """The expression that a name stands for; None if it is unknown."""
        place = self._places[name]
        for scope in place.scopes:
            bindings = self._bindings.get((scope, name.id))
            if not bindings:
                continue
            if scope is not place.scopes[0]:  # a function runs after any of them
                return bindings[0].value if len(bindings) == 1 else None
            before = [it for it in bindings if it.end <= (name.lineno, name.col_offset)]
            if not before:
                return None
            last = max(before, key=lambda it: it.end)
            return last.value if last.block in place.blocks else None
        return None

    def _check_of(self, start: ast.expr) -> ast.Call | None:
        """The call of `Check` that a chain starts on."""
        value: ast.expr | None = start
        while value is not None:
            links, value = links_of(value, frozenset(self._classes))
            if any(name_of(link.func) in self._ends for link in links):
                return None
            match value:
                case ast.Call():
                    return value if name_of(value.func) in self._classes else None
                case ast.NamedExpr(value=inner):
                    value = inner
                case ast.Name():
                    value = self._assigned(value)
                case _:
                    return None
        return None

    def chains(self) -> Iterator[CheckChain]:
        """The chains in the order of the file, but calls of modules."""
        receivers = {
            _receiver(call.func) for call in self._calls if isinstance(call.func, ast.Attribute)
        }
        for call in sorted(self._calls, key=lambda call: (call.lineno, call.col_offset)):
            if call in receivers:
                continue
            links, start = links_of(call, frozenset(self._classes))
            is_module = isinstance(start, ast.Name) and start.id in self._imported
            if links and not is_module:
                yield CheckChain(links, self._check_of(start))

    def value_of(self, node: ast.expr) -> Any:
        """The value of a literal, of a list of literals, of a date, or of a name for one.

        :raises NoCounterpartError: it cannot be evaluated without running it.
        """
        match node:
            case ast.Name() if (assigned := self._assigned(node)) is not None:
                value = self.value_of(assigned)
                if not isinstance(value, list) or node.id not in self._changed:
                    return value
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self.value_of(item) for item in items]
            case ast.Call(func=function, args=parts, keywords=[]) if name_of(function) in _MOMENTS:
                numbers = [self.value_of(part) for part in parts]
                with suppress(TypeError, ValueError):
                    return _MOMENTS[name_of(function)](*numbers)
            case ast.Dict():
                return {}
        with suppress(ValueError):
            return ast.literal_eval(node)
        raise NoCounterpartError(f"`{ast.unparse(node)}` cannot be evaluated without running it")


def _in_block(node: ast.AST, field: str, child: ast.AST, place: _Place) -> _Place:
    """The place of a child: in a block of its own if it is a statement. The block of a `with` is
    always run, so it is not a block of its own."""
    if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
        return place
    if isinstance(node, ast.With | ast.AsyncWith):
        return place
    return _Place(place.scopes, (*place.blocks, (id(node), field)))


_MOMENTS: dict[str, Callable[..., Any]] = {"date": date, "datetime": datetime}
