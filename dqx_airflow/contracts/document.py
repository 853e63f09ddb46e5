"""Nodes of YAML documents, each with its path and its position."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.values import SourceFile, Span, exact

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes on the path from the top of a document."""

Plain: TypeAlias = "str | int | float | bool | None"

DEEPEST = 60
"""The maximum number of levels of a document, also after each `$ref` is replaced by its target."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf. `text` is as written, without quotes; `value` is its meaning.

    `is_block`: the text begins on the next line, as with `|`. `written` is the text before its
    variables were resolved, if there were any.
    """

    value: Plain
    text: str
    path: Path
    span: Span = field(compare=False)
    is_block: bool = field(default=False, compare=False)
    written: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]
    path: Path
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping, with its position."""

    key: str
    node: Node
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Mapping:
    entries: dict[str, Entry]
    path: Path
    span: Span = field(compare=False)

    def get(self, key: str) -> Node | None:
        entry = self.entries.get(key)
        return entry.node if entry else None

    def items(self, key: str) -> tuple[Node, ...]:
        """The items of the list at a key; none if it is not a list."""
        child = self.get(key)
        return child.items if isinstance(child, Sequence) else ()

    def scalars(self, key: str) -> tuple[Scalar, ...]:
        """The scalars in the list at a key."""
        return tuple(item for item in self.items(key) if isinstance(item, Scalar))

    def values(self, key: str) -> tuple[Plain, ...]:
        """The values of the scalars in the list at a key."""
        return tuple(item.value for item in self.scalars(key))

    def literal(self, key: str) -> Plain:
        """The value at a key; None for a mapping and for a list."""
        child = self.get(key)
        return child.value if isinstance(child, Scalar) else None

    def text(self, key: str) -> str | None:
        """The text at a key, with numbers and versions as they are spelled."""
        child = self.get(key)
        return child.text if isinstance(child, Scalar) and child.value is not None else None

    def texts(self, key: str) -> tuple[str, ...]:
        """The strings in the list at a key; a single string counts as a list."""
        alone = self.text(key)
        return (alone,) if alone is not None else tuple(item.text for item in self.scalars(key))

    def truth(self, key: str) -> bool | None:
        value = self.literal(key)
        return value if isinstance(value, bool) else None

    def number(self, key: str) -> int | float | None:
        """The finite number at a key, which may be written as a string."""
        value = self.literal(key)
        if isinstance(value, str):
            return exact.finite_number(value)
        return value if exact.is_finite_number(value) else None

    def whole_number(self, key: str) -> int | None:
        """The number at a key, without what is after the point."""
        number = self.number(key)
        return int(number) if number is not None else None

    def span_of(self, key: str) -> Span:
        """The position of a key; of the mapping if it is missing."""
        entry = self.entries.get(key)
        return entry.span if entry else self.span


Node: TypeAlias = Scalar | Sequence | Mapping

NOTHING = Mapping({}, (), Span("", 1, 1, 1, 1))
"""Stands for a mapping that is missing: no key has a value, and it is not a leaf."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its text, and its top node; None if the text could not be parsed.

    `repeated` are the mistakes of keys that occur twice in a mapping; if the last one counts, they
    are not among the diagnostics."""

    source: SourceFile
    root: Node | None
    diagnostics: tuple[Diagnostic, ...]
    repeated: tuple[Diagnostic, ...] = ()


_is_plain_word = re.compile(r"[\w$-]+").fullmatch


def show_path(path: Path) -> str:
    """A path as text, such as `models.orders.quality[0].mustBe`, with backticks around keys that
    are not plain words."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
            continue
        word = part if _is_plain_word(part) else f"`{part}`"
        shown += f".{word}" if shown else word
    return shown


def plain_value(node: Node | None) -> Any:
    """The node as dicts, lists and scalars."""
    match node:
        case Mapping():
            return {key: plain_value(entry.node) for key, entry in node.entries.items()}
        case Sequence():
            return [plain_value(item) for item in node.items]
        case Scalar():
            return node.value
    return None


def children(node: Node) -> tuple[Node, ...]:
    """The child nodes of a mapping or a sequence; none for a scalar."""
    if isinstance(node, Mapping):
        return tuple(entry.node for entry in node.entries.values())
    return node.items if isinstance(node, Sequence) else ()


def leaves(node: Node) -> Iterator[Node]:
    """The scalars below a node, and empty mappings and sequences."""
    inner = children(node)
    for item in inner:
        yield from leaves(item)
    if not inner and node is not NOTHING:
        yield node


def find(root: Node, path: Path) -> Node | None:
    """The node at the end of a path."""
    node: Node | None = root
    for part in path:
        if isinstance(node, Mapping) and isinstance(part, str):
            node = node.get(part)
        elif isinstance(node, Sequence) and isinstance(part, int) and 0 <= part < len(node.items):
            node = node.items[part]
        else:
            return None
    return node


# Events to nodes -----------------------------------------------------------------------------
