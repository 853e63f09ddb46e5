"""Reads YAML into nodes with positions, and reports all errors of the text.

Scalars are resolved as in YAML 1.2: `yes` is a string and so is `2024-01-31`; only numbers may
contain underscores, as in YAML 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from dqx_airflow.contracts.document import (
    DEEPEST,
    Document,
    Entry,
    Mapping,
    Node,
    Path,
    Plain,
    Scalar,
    Sequence,
    children,
)
from dqx_airflow.contracts.mistakes import MistakeName, mistake
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related
from dqx_airflow.values import SourceFile, Span, exact

MOST_NODES = 200_000
"""The maximum number of nodes of a document; a node counts again for each alias of it."""


def read_document(source: SourceFile, *, last_key_counts: bool = False) -> Document:
    """The document in a text, with all YAML errors.

    :param last_key_counts: a key that occurs twice in a mapping is no error, and its last value
        counts, as for many tools.
    """
    return _Composer(source, last_key_counts=last_key_counts).compose()


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


def is_read_as_text(text: str) -> bool:
    """Whether a scalar without quotes is a string."""
    return isinstance(_resolved(text), str)


def _resolved(text: str) -> Plain:
    if _NULL.fullmatch(text):
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if len(text) > _MANY_DIGITS:
        return text
    if _OTHER_BASE.fullmatch(text):
        return exact.WrittenInt(int(text, 0), text)
    if _INTEGER.fullmatch(text):
        number = int(text.replace("_", ""))
        return number if str(number) == text else exact.WrittenInt(number, text)
    if _FLOAT.fullmatch(text) and text not in (".", "+.", "-."):
        return exact.WrittenFloat(text)
    if match := _SPECIAL.fullmatch(text):
        return float("nan") if match[3] else float(f"{match[1]}inf")
    return text


def _is_too_large(text: str) -> bool:
    """True for a number without a nearest float."""
    if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
        return exact.finite_number(text) is None
    return bool(_OTHER_BASE.fullmatch(text)) and not exact.is_finite_number(_resolved(text))


class _RefusedYamlError(Exception):
    """The text is not a document; the diagnostic has been reported."""


class _Composer:
    """Builds nodes from the events of the YAML parser. Its recursion ends at `DEEPEST`."""

    def __init__(self, source: SourceFile, *, last_key_counts: bool) -> None:
        self.source = source
        self.last_key_counts = last_key_counts
        self.repeated: list[Diagnostic] = []
        self.lines = source.text.split("\n")
        self.found: list[Diagnostic] = []
        self.anchors: dict[str | None, Node] = {}
        self.unfinished: list[str | None] = []
        """The anchors of the enclosing mappings and sequences."""
        self.sizes: dict[int, int] = {}
        self.levels: dict[int, int] = {}
        self.nodes = 0

    def compose(self) -> Document:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        root = None
        try:
            self.events: Iterator[Any] = iter(yaml.parse(self.source.text, Loader=loader))
            for event in self.events:
                if isinstance(event, yaml.DocumentStartEvent):
                    if root is not None:
                        self._refuse("second_document", self._span(event))
                    root = self._node(next(self.events), ())
        except (_RefusedYamlError, yaml.YAMLError) as error:
            root = None
            if isinstance(error, yaml.YAMLError):
                self._report_syntax(error)
        if root is None and not self.found:
            self._report("empty_file", Span(self.source.name, 1, 1, 1, 2))
        return Document(self.source, root, tuple(self.found), tuple(self.repeated))

    def _node(self, event: Any, path: Path) -> Node:
        """The node that begins with an event."""
        span = self._span(event)
        if isinstance(event, yaml.AliasEvent):
            return self._repeated(event.anchor, span)
        if isinstance(event, yaml.ScalarEvent):
            node: Node = self._scalar(event, path, span)
            size = 1
            levels = 0
        else:
            self._tag_of(event, span)
            self._check_depth(1, span)
            self.unfinished.append(event.anchor)
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            node = self._mapping(path, span) if is_mapping else self._sequence(path, span)
            self.unfinished.pop()
            inner = children(node)
            size = 1 + sum(self.sizes[id(item)] for item in inner)
            levels = 1 + max((self.levels[id(item)] for item in inner), default=0)
        self.sizes[id(node)] = size
        self.levels[id(node)] = levels
        self.nodes += 1
        if self.nodes > MOST_NODES:
            hint = "split it into several contracts"
            self._refuse("too_many_nodes", node.span, most=MOST_NODES, hint=hint)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return self._counted(node)

    def _scalar(self, event: Any, path: Path, span: Span) -> Scalar:
        name = self._tag_of(event, span)
        is_text = name == "str" or (name is None and not event.implicit[0])
        value = event.value if is_text else _resolved(event.value)
        if exact.MANY_DIGITS.search(event.value) or (not is_text and _is_too_large(event.value)):
            self._report("number_too_large", span, what=exact.TOO_LARGE)
        return Scalar(value, event.value, path, span, event.style == "|")

    def _repeated(self, anchor: str | None, span: Span) -> Node:
        """The node that an alias refers to."""
        if anchor not in self.anchors and anchor in self.unfinished:
            self._refuse("alias_within", span, anchor=anchor)
        if anchor not in self.anchors:
            self._refuse("unknown_alias", span, anchor=anchor)
        node = self.anchors[anchor]
        self._check_depth(self.levels[id(node)], span)
        return self._counted(node)

    def _check_depth(self, levels: int, span: Span) -> None:
        """Refuses a node with this number of levels inside the enclosing ones."""
        if len(self.unfinished) + levels > DEEPEST:
            self._refuse("too_deep", span, most=DEEPEST)

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
                self._report("duplicate_key", key_span, first, key=key)
                if self.last_key_counts:
                    self.repeated.append(self.found.pop())
                    entries[key] = Entry(key, node, key_span)
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
            self._refuse("alias_as_key", span)
        self._tag_of(event, span)
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse("collection_as_key", span)
        return event.value, span

    def _merge(self, entries: dict[str, Entry], node: Node) -> None:
        """`<<: *base` adds the keys of `base` that are not written here."""
        for source in node.items if isinstance(node, Sequence) else (node,):
            if not isinstance(source, Mapping):
                self._report("merged", source.span)
                continue
            for key, entry in source.entries.items():
                entries.setdefault(key, entry)

    def _counted(self, node: Node) -> Node:
        """The node, if it is not too large."""
        if self.sizes[id(node)] > MOST_NODES:
            hint = "nested aliases multiply the nodes: use fewer of them"
            self._refuse("too_many_nodes", node.span, most=MOST_NODES, hint=hint)
        return node

    def _tag_of(self, event: Any, span: Span) -> str | None:
        """The short name of an explicit tag, if there is one."""
        tag = event.tag
        if tag is None or tag == "!":
            return "str" if tag else None
        name = str(tag).removeprefix(_TAG_PREFIX)
        if name not in _TAGS:
            self._report("tag", span, tag=tag)
        return name

    def _span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        end_line, end_column = end.line + 1, end.column + 1
        if isinstance(event, _OPENING):
            end_line, end_column = start.line + 1, start.column + 2
        elif end_line > start.line + 1:  # a multi-line string is displayed by its first line
            end_line, end_column = start.line + 1, len(self.lines[start.line].rstrip()) + 1
        end_column = max(end_column, start.column + 2)
        return Span(self.source.name, start.line + 1, start.column + 1, end_line, end_column)

    def _report(self, name: MistakeName, span: Span, *related: Related, **named: Any) -> None:
        self.found.append(mistake(name, span, *related, **named))

    def _refuse(self, name: MistakeName, span: Span, **named: Any) -> NoReturn:
        self._report(name, span, **named)
        raise _RefusedYamlError

    def _report_syntax(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        help_line = None
        written = self.lines[line - 1] if line <= len(self.lines) else ""
        indent = written[: len(written) - len(written.lstrip())]
        if "\t" in indent:
            problem = "tab in the indentation"
            help_line = "indent with spaces"
            column = indent.index("\t") + 1
        span = Span(self.source.name, line, column, line, column + 1)
        if "maximum nesting depth" in problem:  # of the parser itself, since PyYAML 6.0.4
            self._report("too_deep", span, most=DEEPEST)
        else:
            self._report("syntax", span, problem=problem, hint=help_line)
