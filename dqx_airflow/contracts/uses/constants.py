"""The values of Python expressions, as far as they are constant: nothing is imported or run.

    CONTRACT = Path(__file__).parent / "contracts" / "orders.yaml"

A name counts if the file binds it once; values built at run time are unknown.
"""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DEEPEST = 50
_WRAPPING_CALLS = ("Path", "PurePath", "str", "fspath", "abspath", "realpath", "expanduser")
_WRAPPING_METHODS = ("resolve", "absolute", "as_posix", "expanduser")
_JOINING_CALLS = ("Path", "PurePath", "join")


@dataclass(frozen=True, slots=True)
class Constants:
    """The names that a file binds once, with their values."""

    place: Path
    bound: dict[str, ast.expr]

    @classmethod
    def of(cls, tree: ast.Module, place: Path) -> Constants:
        """:param place: the file, for `__file__`."""
        count = Counter(name for node in ast.walk(tree) for name in _names_bound(node))
        values = (
            assignment for node in ast.walk(tree) if (assignment := _assignment(node)) is not None
        )
        return cls(place, {name: value for name, value in values if count[name] == 1})

    def behind(self, node: ast.expr) -> ast.expr:
        """The value of a name; any other expression unchanged."""
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name) or node.id not in self.bound:
                break
            node = self.bound[node.id]
        return node

    def text(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """The string, number or path that an expression denotes; None if it is unknown."""
        if node is None or depth > _DEEPEST:
            return None
        match self.behind(node):
            case ast.Constant(value=str() | int() | float() as value) if not isinstance(
                value, bool
            ):
                return str(value)
            case ast.Name(id="__file__"):
                return str(self.place.absolute())
            case ast.JoinedStr(values=parts):
                return self._joined(parts, "", depth)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self.text(inner, depth + 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([left, right], "", depth)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined([left, right], os.sep, depth)
            case ast.Attribute(value=inner, attr="parent"):
                return self._parent(inner, 0, depth)
            case ast.Subscript(
                value=ast.Attribute(value=inner, attr="parents"), slice=ast.Constant(value=int(up))
            ):
                return self._parent(inner, up, depth)
            case ast.Call() as call:
                return self._called(call, depth)
        return None

    def _called(self, call: ast.Call, depth: int) -> str | None:
        name = name_of(call.func)
        if isinstance(call.func, ast.Attribute) and not call.args and name in _WRAPPING_METHODS:
            return self.text(call.func.value, depth + 1)
        if isinstance(call.func, ast.Attribute) and name == "joinpath":
            return self._joined([call.func.value, *call.args], os.sep, depth)
        if name == "dirname" and len(call.args) == 1:
            return self._parent(call.args[0], 0, depth)
        if name in _WRAPPING_CALLS and len(call.args) == 1:
            return self.text(call.args[0], depth + 1)
        if name in _JOINING_CALLS and len(call.args) > 1:
            return self._joined(call.args, os.sep, depth)
        return None

    def _joined(self, parts: list[ast.expr], sign: str, depth: int) -> str | None:
        texts = [self.text(part, depth + 1) for part in parts]
        known = [text for text in texts if text is not None]
        if len(known) < len(texts):
            return None
        return sign.join(known) if not sign else str(Path(*known))

    def _parent(self, node: ast.expr, up: int, depth: int) -> str | None:
        text = self.text(node, depth + 1)
        parents = Path(text).parents if text is not None else ()
        return str(parents[up]) if 0 <= up < len(parents) else None


def name_of(function: ast.expr) -> str:
    """The last part of the name of a called function: `join` for `os.path.join`."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _assignment(node: ast.AST) -> tuple[str, ast.expr] | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name, value
    return None


def _names_bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
