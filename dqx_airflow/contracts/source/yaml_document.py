"""Documents of YAML with the position of each value, and the rows of examples in them.

Scalars are resolved as in YAML 1.2: `yes` is a string and so is `2024-01-31`; only numbers may
contain underscores, as in YAML 1.1. The parser's events are read without recursion, so that no text
is too deep for the stack.
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


@dataclass(slots=True)
class _Open:
    """A mapping or sequence that is being read."""

    is_mapping: bool
    path: Path
    span: Span
    anchor: str | None
    entries: dict[str, Entry] = field(default_factory=dict)
    merged: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    key: tuple[str, Span] | None = None


class _RefusedYamlError(Exception):
    """The text is not a document; the diagnostic has been reported."""


class _Composer:
    """Builds nodes from the events of the YAML parser."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        self.anchors: dict[str, Node] = {}
        self.sizes: dict[int, int] = {}
        self.nodes = 0
        self.open: list[_Open] = []
        self.root: Node | None = None

    def compose(self) -> Document:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = 0
        try:
            for event in yaml.parse(self.source.text, Loader=loader):
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        self._refuse(
                            "E401",
                            "a second YAML document starts here",
                            self._span(event),
                            "a file has one contract: move it to a separate file",
                        )
                self._take(event)
        except _RefusedYamlError:
            self.root = None
        except yaml.YAMLError as error:
            self._report_syntax(error)
            self.root = None
        if self.root is None and not self.found:
            start = Span(self.source.name, 1, 1, 1, 2)
            self._report(
                "E401", "the file is empty", start, "write a contract into it, or give another file"
            )
        return Document(self.source, self.root, tuple(self.found))

    def _take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()

    def _scalar(self, event: Any) -> None:
        span = self._span(event)
        name = self._tag_of(event, span)
        if name == "str" or (name is None and not event.implicit[0]):
            value, is_plain = event.value, False
        else:
            value, is_plain = _resolved(event.value), True
        top = self.open[-1] if self.open else None
        if top is not None and top.is_mapping and top.key is None:
            top.key = (event.value, span)
            return
        if MANY_DIGITS.search(event.value) or (is_plain and _is_too_large(event.value)):
            self._report("E405", TOO_LARGE, span, "write a smaller one, or a string in quotes")
        node = Scalar(value, event.value, self._path(), span, event.style == "|")
        self._keep(event.anchor, node, 1)
        self._put(node, 1)

    def _alias(self, event: Any) -> None:
        span = self._span(event)
        top = self.open[-1] if self.open else None
        node = self.anchors.get(event.anchor)
        if node is None:
            if any(item.anchor == event.anchor for item in self.open):
                message = f"the alias *{event.anchor} is inside the node that it refers to"
                self._refuse("E401", message, span, "write the value here instead")
            message = f"unknown alias *{event.anchor}"
            self._refuse(
                "E401", message, span, f"define it with &{event.anchor} before the node to repeat"
            )
        if top is not None and top.is_mapping and top.key is None:
            self._refuse("E401", "an alias cannot be a key", span, "write the key itself")
        self._put(node, self.sizes[id(node)])

    def _begin(self, event: Any) -> None:
        span = self._span(event)
        self._tag_of(event, span)
        if len(self.open) >= DEEPEST:
            self._refuse(
                "E409", "the document is nested too deeply", span, f"use at most {DEEPEST} levels"
            )
        top = self.open[-1] if self.open else None
        if top is not None and top.is_mapping and top.key is None:
            self._refuse(
                "E401", "a list or mapping cannot be a key", span, "write a string as the key"
            )
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self.open.append(_Open(is_mapping, self._path(), span, event.anchor))

    def _end(self) -> None:
        done = self.open.pop()
        if not done.is_mapping:
            sequence = Sequence(tuple(done.items), done.path, done.span)
            size = 1 + sum(self.sizes[id(item)] for item in done.items)
            self._keep(done.anchor, sequence, size)
            self._put(sequence, size)
            return
        entries = done.entries
        for node in done.merged:
            self._merge(entries, node)
        mapping = Mapping(entries, done.path, done.span)
        size = 1 + sum(self.sizes[id(entry.node)] for entry in entries.values())
        self._keep(done.anchor, mapping, size)
        self._put(mapping, size)

    def _merge(self, entries: dict[str, Entry], node: Node) -> None:
        """`<<: *base` adds the keys of `base` that are not written here."""
        for source in node.items if isinstance(node, Sequence) else (node,):
            if not isinstance(source, Mapping):
                self._report("E401", "<< needs a mapping", source.span, "write `<<: *anchor`")
                continue
            for key, entry in source.entries.items():
                entries.setdefault(key, entry)

    def _keep(self, anchor: str | None, node: Node, size: int) -> None:
        self.sizes[id(node)] = size
        self.nodes += 1
        if self.nodes > MOST_NODES:
            self._refuse_size(node, "split it into several contracts")
        if anchor is not None:
            self.anchors[anchor] = node

    def _put(self, node: Node, size: int) -> None:
        if size > MOST_NODES:
            self._refuse_size(node, "nested aliases multiply the nodes: use fewer of them")
        if not self.open:
            self.root = node
            return
        top = self.open[-1]
        if not top.is_mapping:
            top.items.append(node)
            return
        assert top.key is not None
        (key, span), top.key = top.key, None
        if key == "<<":
            top.merged.append(node)
        elif key in top.entries:
            first = Related(top.entries[key].span, "first here")
            message = f"duplicate key '{key}'"
            help_line = "remove one of them: other tools would silently use the last one"
            self.found.append(Diagnostic(message, span, "E402", related=(first,), help=help_line))
        else:
            top.entries[key] = Entry(key, node, span)

    def _path(self) -> Path:
        if not self.open:
            return ()
        top = self.open[-1]
        if not top.is_mapping:
            return (*top.path, len(top.items))
        return (*top.path, top.key[0]) if top.key else top.path

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
