"""Documents of YAML with the position of each value, and the rows of examples in them.

Scalars are resolved as in YAML 1.2: `yes` is a string and so is `2024-01-31`; only numbers may
contain underscores, as in YAML 1.1.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import yaml

from dqx_airflow.contracts.model import ExampleRows
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.values import SourceFile, Span
from dqx_airflow.values.exact import (
    MANY_DIGITS,
    TOO_LARGE,
    WrittenFloat,
    finite_number,
    is_finite_number,
)

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes on the path from the top of a document."""

Plain: TypeAlias = "str | int | float | bool | None"

DEEPEST = 60
MOST_NODES = 200_000
"""The maximum number of nodes of a document; a node counts again for each alias of it."""


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

    def span_of(self, key: str) -> Span:
        """The position of a key; of the mapping if it is missing."""
        entry = self.entries.get(key)
        return entry.span if entry else self.span


Node: TypeAlias = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its text, and its top node; None if the text could not be parsed."""

    source: SourceFile
    root: Node | None
    diagnostics: tuple[Diagnostic, ...]


_is_plain_word = re.compile(r"[\w$-]+").fullmatch


def show_path(path: Path) -> str:
    """`models.orders.quality[0].mustBe`, with backticks around keys that are not plain words."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
            continue
        word = part if _is_plain_word(part) else f"`{part}`"
        shown += f".{word}" if shown else word
    return shown


def plain(node: Node | None) -> Any:
    """The node as dicts, lists and plain values."""
    match node:
        case Mapping():
            return {key: plain(entry.node) for key, entry in node.entries.items()}
        case Sequence():
            return [plain(item) for item in node.items]
        case Scalar():
            return node.value
    return None


def leaves(node: Node) -> Iterator[Node]:
    """The scalars below a node, and empty mappings and sequences."""
    match node:
        case Mapping(entries=entries) if entries:
            for entry in entries.values():
                yield from leaves(entry.node)
        case Sequence(items=items) if items:
            for item in items:
                yield from leaves(item)
        case _:
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


def read_document(source: SourceFile) -> Document:
    """The document in a text, with all YAML errors."""
    return _Composer(source).compose()


# Events to nodes -----------------------------------------------------------------------------

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MANY_DIGITS = 400

_TAGS = {"str", "int", "float", "bool", "null", "map", "seq", "timestamp"}
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_TAG_PREFIX = "tag:yaml.org,2002:"


def _resolved(text: str) -> Plain:
    if _NULL.fullmatch(text):
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if len(text) > _MANY_DIGITS:
        return text
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text) and text not in (".", "+.", "-."):
        return WrittenFloat(text)
    if match := _SPECIAL.fullmatch(text):
        return float("nan") if match[3] else float(f"{match[1]}inf")
    return text


def _is_too_large(text: str) -> bool:
    """True for a number without a nearest float."""
    if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
        return finite_number(text) is None
    return bool(_OTHER_BASE.fullmatch(text)) and not is_finite_number(_resolved(text))


class _RefusedYamlError(Exception):
    """The text is not a document; the diagnostic has been reported."""


class _Composer:
    """Builds nodes from the events of the YAML parser. Its recursion ends at `DEEPEST`."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        self.anchors: dict[str | None, Node] = {}
        self.unfinished: list[str | None] = []
        """The anchors of the enclosing mappings and sequences."""
        self.sizes: dict[int, int] = {}
        self.nodes = 0

    def compose(self) -> Document:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        root = None
        try:
            self.events: Iterator[Any] = iter(yaml.parse(self.source.text, Loader=loader))
            for event in self.events:
                if isinstance(event, yaml.DocumentStartEvent):
                    if root is not None:
                        message = "a second YAML document starts here"
                        help_line = "a file has one contract: move it to a separate file"
                        self._refuse("E401", message, self._span(event), help_line)
                    root = self._node(next(self.events), ())
        except _RefusedYamlError:
            root = None
        except yaml.YAMLError as error:
            self._report_syntax(error)
            root = None
        if root is None and not self.found:
            start = Span(self.source.name, 1, 1, 1, 2)
            self._report(
                "E401", "the file is empty", start, "write a contract into it, or give another file"
            )
        return Document(self.source, root, tuple(self.found))

    def _node(self, event: Any, path: Path) -> Node:
        """The node that begins with an event."""
        span = self._span(event)
        if isinstance(event, yaml.AliasEvent):
            return self._repeated(event.anchor, span)
        if isinstance(event, yaml.ScalarEvent):
            node: Node = self._scalar(event, path, span)
            size = 1
        else:
            self._tag_of(event, span)
            if len(self.unfinished) >= DEEPEST:
                message = "the document is nested too deeply"
                self._refuse("E409", message, span, f"use at most {DEEPEST} levels")
            self.unfinished.append(event.anchor)
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            node = self._mapping(path, span) if is_mapping else self._sequence(path, span)
            self.unfinished.pop()
            inner = (
                [entry.node for entry in node.entries.values()]
                if isinstance(node, Mapping)
                else node.items
            )
            size = 1 + sum(self.sizes[id(item)] for item in inner)
        self.sizes[id(node)] = size
        self.nodes += 1
        if self.nodes > MOST_NODES:
            self._refuse_size(node, "split it into several contracts")
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return self._counted(node)

    def _scalar(self, event: Any, path: Path, span: Span) -> Scalar:
        name = self._tag_of(event, span)
        is_text = name == "str" or (name is None and not event.implicit[0])
        value = event.value if is_text else _resolved(event.value)
        if MANY_DIGITS.search(event.value) or (not is_text and _is_too_large(event.value)):
            self._report("E405", TOO_LARGE, span, "write a smaller one, or a string in quotes")
        return Scalar(value, event.value, path, span, event.style == "|")

    def _repeated(self, anchor: str | None, span: Span) -> Node:
        """The node that an alias refers to."""
        if anchor not in self.anchors and anchor in self.unfinished:
            message = f"the alias *{anchor} is inside the node that it refers to"
            self._refuse("E401", message, span, "write the value here instead")
        if anchor not in self.anchors:
            help_line = f"define it with &{anchor} before the node to repeat"
            self._refuse("E401", f"unknown alias *{anchor}", span, help_line)
        return self._counted(self.anchors[anchor])

    def _sequence(self, path: Path, span: Span) -> Sequence:
        items: list[Node] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return Sequence(tuple(items), path, span)

    def _mapping(self, path: Path, span: Span) -> Mapping:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, key_span = self._key(event)
            node = self._node(next(self.events), (*path, key))
            if key == "<<":
                merged.append(node)
            elif key in entries:
                first = Related(entries[key].span, "first here")
                message = f"duplicate key '{key}'"
                help_line = "remove one of them: other tools would silently use the last one"
                self.found.append(
                    Diagnostic(message, key_span, "E402", related=(first,), help=help_line)
                )
            else:
                entries[key] = Entry(key, node, key_span)
        for node in merged:
            self._merge(entries, node)
        return Mapping(entries, path, span)

    def _key(self, event: Any) -> tuple[str, Span]:
        span = self._span(event)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                self._repeated(event.anchor, span)
            self._refuse("E401", "an alias cannot be a key", span, "write the key itself")
        self._tag_of(event, span)
        if not isinstance(event, yaml.ScalarEvent):
            message = "a list or mapping cannot be a key"
            self._refuse("E401", message, span, "write a string as the key")
        return event.value, span

    def _merge(self, entries: dict[str, Entry], node: Node) -> None:
        """`<<: *base` adds the keys of `base` that are not written here."""
        for source in node.items if isinstance(node, Sequence) else (node,):
            if not isinstance(source, Mapping):
                self._report("E401", "<< needs a mapping", source.span, "write `<<: *anchor`")
                continue
            for key, entry in source.entries.items():
                entries.setdefault(key, entry)

    def _counted(self, node: Node) -> Node:
        """The node, if it is not too large."""
        if self.sizes[id(node)] > MOST_NODES:
            self._refuse_size(node, "nested aliases multiply the nodes: use fewer of them")
        return node

    def _tag_of(self, event: Any, span: Span) -> str | None:
        """The short name of an explicit tag, if there is one."""
        tag = event.tag
        if tag is None or tag == "!":
            return "str" if tag else None
        name = str(tag).removeprefix(_TAG_PREFIX)
        if name not in _TAGS:
            self._report("E401", f"the tag {tag} is not allowed", span, "remove it")
        return name

    def _span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        end_line, end_column = end.line + 1, end.column + 1
        if isinstance(event, _OPENING):
            end_line, end_column = start.line + 1, start.column + 2
        elif end_line > start.line + 1:  # a multi-line string is displayed by its first line
            lines = self.source.text.split("\n")
            end_line, end_column = start.line + 1, len(lines[start.line].rstrip()) + 1
        end_column = max(end_column, start.column + 2)
        return Span(self.source.name, start.line + 1, start.column + 1, end_line, end_column)

    def _refuse_size(self, node: Node, help_line: str) -> NoReturn:
        message = f"the document has more than {MOST_NODES:,} nodes"
        self._refuse("E409", message, node.span, help_line)

    def _report(self, code: str, message: str, span: Span, help_line: str | None) -> None:
        self.found.append(Diagnostic(message, span, code, help=help_line))

    def _refuse(self, code: str, message: str, span: Span, help_line: str) -> NoReturn:
        self._report(code, message, span, help_line)
        raise _RefusedYamlError

    def _report_syntax(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        help_line = None
        lines = self.source.text.split("\n")
        written = lines[line - 1] if line <= len(lines) else ""
        indent = written[: len(written) - len(written.lstrip())]
        if "\t" in indent:
            problem, help_line = "tab in the indentation", "indent with spaces"
            column = indent.index("\t") + 1
        span = Span(self.source.name, line, column, line, column + 1)
        self._report("E401", f"invalid YAML: {problem}", span, help_line)


def example_rows(node: Node) -> ExampleRows:
    """The rows of a mapping, of a list of mappings, or of a string with CSV or JSON.

    A cell is None if it is empty, or if only another row has the column.
    """
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return _of_text(node, node.value)
    rows = node.items if isinstance(node, Sequence) else (node,)
    mappings = [row for row in rows if isinstance(row, Mapping)]
    return _of_mappings(
        [plain(row) for row in mappings], node.span, tuple(row.span for row in mappings)
    )


def _of_text(node: Scalar, text: str) -> ExampleRows:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            try:
                parsed = [json.loads(line) for line in text.splitlines() if line.strip()]
            except ValueError:
                return ExampleRows((), (), node.span)
        rows = parsed if isinstance(parsed, list) else [parsed]
        mappings = [row for row in rows if isinstance(row, dict)]
        return _of_mappings(mappings, node.span, (node.span,) * len(mappings))
    lines = [
        (number, line)
        for number, line in enumerate(csv.reader(io.StringIO(text)))
        if any(cell.strip() for cell in line)
    ]
    if not lines:
        return ExampleRows((), (), node.span)
    names = tuple(name.strip() for name in lines[0][1])
    cells = tuple(tuple(cell if cell else None for cell in line) for _, line in lines[1:])
    return ExampleRows(
        names,
        cells,
        node.span,
        tuple(_line_of(node, number) for number, _ in lines[1:]),
        is_text=True,
    )


def _line_of(node: Scalar, number: int) -> Span:
    """The position of a line of a string, if the document has a line for each."""
    if not node.is_block:
        return node.span
    line = node.span.line + 1 + number
    return Span(node.span.file, line, 1, line, 2)


def _of_mappings(rows: list[dict[str, object]], span: Span, spans: tuple[Span, ...]) -> ExampleRows:
    names = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    return ExampleRows(
        names, tuple(tuple(row.get(name) for name in names) for row in rows), span, spans
    )
