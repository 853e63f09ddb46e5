"""Documents of YAML with the position of each value: their values, `$ref`, and variables.

Scalars are resolved as in YAML 1.2: `yes` is a string and so is `2024-01-31`; only numbers may
contain underscores, as in YAML 1.1.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

import yaml

from dqx_airflow.contracts.model import ExampleRows
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.errors import RequestError
from dqx_airflow.values import SourceFile, Span, exact
from dqx_airflow.values.files import table_rows
from dqx_airflow.values.redact import may_be_secret
from dqx_airflow.values.secret_forms import is_secret_setting

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes on the path from the top of a document."""

Plain: TypeAlias = "str | int | float | bool | None"

DEEPEST = 60
MOST_NODES = 200_000
"""The maximum number of nodes of a document; a node counts again for each alias of it."""
MOST_INCLUDED = 50_000
"""The maximum number of nodes that the `$ref`s of a contract include; a node counts again for each
`$ref` of it."""


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
    """A document: its text, and its top node; None if the text could not be parsed."""

    source: SourceFile
    root: Node | None
    diagnostics: tuple[Diagnostic, ...]


def listed_key_words(*names: str) -> list[list[str]]:
    """The words in the lines of `key_words.txt` with these names."""
    lines = files(__package__).joinpath("key_words.txt").read_text("utf-8").splitlines()
    return [line.partition(": ")[2].split() for line in lines if line.partition(":")[0] in names]


def key_words(*names: str) -> frozenset[str]:
    """The same, all together."""
    return frozenset(word for line in listed_key_words(*names) for word in line)


def mistake(
    name: str, span: Span, /, *related: Related, hint: Any = None, **named: object
) -> Diagnostic:
    """The diagnostic of a name in `contracts/diagnostics.txt`, with the values that its texts name.

    :param hint: what to write, if that is not in the table.
    """
    code, message, *helps = listed_texts("mistakes", name, **named)
    return Diagnostic(message, span, code, related=related, help=helps[0] if helps else hint)


def listed_texts(heading: str, name: str, /, **named: object) -> list[str]:
    """The texts of a name below a heading of the same table, with the values that they name."""
    rows = table_rows(__package__, "diagnostics.txt", heading)
    texts = next(texts for row_name, *texts in rows if row_name == name)
    return [text.format(**named) for text in texts]


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

    def __init__(self, source: SourceFile) -> None:
        self.source = source
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
        return Document(self.source, root, tuple(self.found))

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

    def _report(self, name: str, span: Span, *related: Related, **named: Any) -> None:
        self.found.append(mistake(name, span, *related, **named))

    def _refuse(self, name: str, span: Span, **named: Any) -> NoReturn:
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
            problem, help_line = "tab in the indentation", "indent with spaces"
            column = indent.index("\t") + 1
        span = Span(self.source.name, line, column, line, column + 1)
        if "maximum nesting depth" in problem:  # of the parser itself, since PyYAML 6.0.4
            self._report("too_deep", span, most=DEEPEST)
        else:
            self._report("syntax", span, problem=problem, hint=help_line)


def example_rows(node: Node) -> ExampleRows:
    """The rows of a mapping, of a list of mappings, or of a string with CSV or JSON.

    A cell is None if it is empty, or if only another row has the column.
    """
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return _of_text(node, node.value)
    rows = node.items if isinstance(node, Sequence) else (node,)
    mappings = [row for row in rows if isinstance(row, Mapping)]
    return _of_mappings(map(plain_value, mappings), node.span, [row.span for row in mappings])


def _of_text(node: Scalar, text: str) -> ExampleRows:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            parsed = json.loads(text)
        except ValueError:
            try:
                parsed = [json.loads(line) for line in text.splitlines() if line.strip()]
            except ValueError:
                parsed = []
        rows = parsed if isinstance(parsed, list) else [parsed]
        mappings = [row for row in rows if isinstance(row, dict)]
        return _of_mappings(mappings, node.span, [node.span] * len(mappings))
    lines = [
        (number, line)
        for number, line in enumerate(csv.reader(io.StringIO(text)))
        if any(cell.strip() for cell in line)
    ]
    if not lines:
        return ExampleRows((), (), node.span)
    names = tuple(name.strip() for name in lines[0][1])
    cells = tuple(tuple(cell if cell else None for cell in line) for _, line in lines[1:])
    places = tuple(_line_of(node, number) for number, _ in lines[1:])
    return ExampleRows(names, cells, node.span, places, is_text=True)


def _line_of(node: Scalar, number: int) -> Span:
    """The position of a line of a string, if the document has a line for each."""
    if not node.is_block:
        return node.span
    line = node.span.line + 1 + number
    return Span(node.span.file, line, 1, line, 2)


def _of_mappings(
    mappings: Iterable[dict[str, object]], span: Span, spans: Iterable[Span]
) -> ExampleRows:
    rows = list(mappings)
    names = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    cells = tuple(tuple(row.get(name) for name in names) for row in rows)
    return ExampleRows(names, cells, span, tuple(spans))


FileReader: TypeAlias = Callable[[str, str], "SourceFile | str"]
"""Called with the name of the referring file and the path as written: the file, or why there is
none."""

MOST_FILES = 100
TOO_MANY_FILES = f"more than {MOST_FILES} files"
_LONGEST_CHAIN = 50


def no_files(_referrer: str, path: str) -> str:
    """Reads nothing: for a contract that is not a file."""
    return f"'{path}' is relative to the contract, but this contract is not a file"


@dataclass(frozen=True, slots=True)
class FolderReader:
    """Reads files in a folder and below; `$ref` leads nowhere else."""

    folder: FilePath

    def __call__(self, referrer: str, path: str) -> SourceFile | str:
        if "://" in path:
            return "only local files are read: download it, and refer to the copy"
        root = self.folder.resolve()
        try:
            place = (root / FilePath(referrer).parent / path).resolve()
        except (OSError, ValueError, RuntimeError):  # a NUL in it, or circular links
            return f"{path!a} is not a file path"
        if not place.is_relative_to(root):
            return f"'{path}' is outside the folder of the contract: move it there"
        source = read_source(place, place.relative_to(root).as_posix())
        return source.reason if isinstance(source, Unreadable) else source


@dataclass(slots=True)
class References:
    """Resolves the `$ref`s of one contract. `sources` are the contents of all files, by name."""

    top: Document
    read: FileReader
    report: Callable[[Diagnostic], None]
    sources: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Document], Document] = lambda document: document
    """Applied to each document that is read."""
    _parsed: dict[str, Document] = field(default_factory=dict)
    """The documents of other files as written, including files that only unused nodes refer to."""
    _documents: dict[str, Document] = field(default_factory=dict)
    _circles: dict[Span, bool] = field(default_factory=dict)
    """Whether the target of a reference leads back to the reference, by its position."""
    _reported: set[Span] = field(default_factory=set)
    """The positions of references with a reported error."""

    def __post_init__(self) -> None:
        self._documents[self.top.source.name] = self.top
        self.sources[self.top.source.name] = self.top.source.text

    def are_bounded(self) -> bool:
        """Whether the document stays small and flat enough if each `$ref` is replaced by its
        target; the `$ref` that includes too much is reported."""
        assert self.top.root is not None
        expansion = _Expansion(self)
        size = expansion.size_of(self.top.root)
        if size.reference is None:
            return True
        place = self.as_written(size.reference.span.file).source
        self.sources[place.name] = place.text
        if size.included > MOST_INCLUDED:
            self._error("too_much_included", size.reference, most=MOST_INCLUDED)
            return False
        if size.levels > DEEPEST:
            self._error("included_too_deep", size.reference, most=DEEPEST)
            return False
        return True

    def as_written(self, file: str) -> Document:
        """The document of a file that has been parsed."""
        return self._parsed.get(file, self.top)

    def parsed(self, referrer: str, place: str) -> Document | str:
        """The document in a file, before it is prepared, or the reason why there is none."""
        source = self.read(referrer, place)
        if isinstance(source, str):
            return source
        if source.name == self.top.source.name:
            return self.top
        if source.name not in self._parsed:
            if len(self._parsed) >= MOST_FILES:
                return TOO_MANY_FILES
            self._parsed[source.name] = read_document(source)
        return self._parsed[source.name]

    def resolve(self, node: Mapping) -> Mapping:
        """The mapping with the contents that its `$ref` includes; its own keys win."""
        entries = dict(node.entries)
        chain: list[Scalar] = []
        mapping = node
        while isinstance(reference := mapping.get("$ref"), Scalar):
            spans = [link.span for link in chain]
            if reference.span in spans or len(chain) >= _LONGEST_CHAIN:
                first = spans.index(reference.span) if reference.span in spans else 0
                circle = " → ".join(str(link.value) for link in (*chain[first:], reference))
                related = tuple(Related(span, "through this") for span in spans[first + 1 :])
                self._error("circular_chain", reference, *related, circle=circle)
                break
            chain.append(reference)
            target = self.target(reference)
            if target is None:
                break
            if self._leads_back(target, reference):
                self._error("circular", reference, target=reference.value)
                break
            for key, entry in target.entries.items():
                entries.setdefault(key, entry)
            mapping = target
        return Mapping(entries, node.path, node.span)

    def _leads_back(self, target: Mapping, reference: Scalar) -> bool:
        """True if a node within a target refers back to it, directly or indirectly.

        Empty targets that refer to each other are found because they form a chain.
        """
        if reference.span not in self._circles:
            self._circles[reference.span] = self._is_within(target, reference)
        return self._circles[reference.span]

    def _is_within(self, target: Mapping, reference: Scalar) -> bool:
        chain: set[int] = set()
        waiting: list[Node] = []
        mapping: Mapping | None = target
        while mapping is not None and id(mapping) not in chain:
            chain.add(id(mapping))
            waiting += children(mapping)
            further = mapping.get("$ref")
            mapping = self.target(further) if isinstance(further, Scalar) else None
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            if isinstance(node, Scalar) or id(node) in seen:
                continue
            seen.add(id(node))
            waiting += children(node)
            inner = node.get("$ref") if isinstance(node, Mapping) else None
            if isinstance(inner, Scalar):
                if inner.span == reference.span:
                    return True
                if (further_target := self.target(inner)) is not None:
                    waiting.append(further_target)
        return False

    def target(self, reference: Scalar) -> Mapping | None:
        """The mapping that a reference leads to; None, and reported, if there is none."""
        written = str(reference.value)
        place, _, pointer = written.partition("#")
        home = self._documents.get(reference.span.file, self.top)
        document = self._document(place, reference) if place else home
        if document is None or document.root is None:
            return None
        target = document.root
        walked: list[str | int] = []
        for key in _keys_of(pointer):
            known = tuple(target.entries) if isinstance(target, Mapping) else ()
            step = _step(target, key)
            inner = find(target, (step,))
            if inner is None:
                where = "/".join(map(str, walked)) or "the top"
                hint = did_you_mean(key, known) or f"{where} is empty"
                self._error("unresolved", reference, key=key, where=where, hint=hint)
                return None
            target = inner
            walked.append(step)
        if not isinstance(target, Mapping):
            self._error("no_mapping", reference, written=written)
            return None
        return target

    def _document(self, place: str, reference: Scalar) -> Document | None:
        document = self.parsed(reference.span.file, place)
        if document == TOO_MANY_FILES:
            self._error("too_many_files", reference, most=MOST_FILES)
            return None
        if isinstance(document, str):
            is_outside = "only files" in document or "outside" in document
            name = "outside" if is_outside else "not_followed"
            self._error(name, reference, written=reference.value, hint=document)
            return None
        source = document.source
        if source.name not in self._documents:
            self._documents[source.name] = self.prepare(document)
            self.sources[source.name] = source.text
            for diagnostic in document.diagnostics:
                self.report(diagnostic)
        return self._documents[source.name]

    def _error(self, name: str, reference: Scalar, *related: Related, **named: Any) -> None:
        if reference.span not in self._reported:
            self._reported.add(reference.span)
            self.report(mistake(name, reference.span, *related, **named))


def _keys_of(pointer: str) -> Iterator[str]:
    """The keys in the part of a `$ref` after the `#`."""
    for part in pointer.split("/"):
        if part:
            yield unquote(part).replace("~1", "/").replace("~0", "~")


def _step(node: Node, key: str) -> str | int:
    """A key, or the index of an item."""
    return int(key) if isinstance(node, Sequence) and key.isdigit() else key


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a node whose `$ref`s are replaced by their targets.

    `included` are the nodes below targets, and `reference` is the `$ref` below which most of them
    are; None if there is no `$ref`.
    """

    nodes: int
    levels: int
    included: int = 0
    reference: Scalar | None = None

    @property
    def is_too_large(self) -> bool:
        is_too_much = self.included > MOST_INCLUDED or self.levels > DEEPEST
        return is_too_much and self.reference is not None


class _Expansion:
    """Computes the sizes of nodes, each once. A `$ref` that leads back to itself, or nowhere,
    includes nothing: the error is reported when it is resolved.

    It has no recursion, since a chain of `$ref`s may be as long as the files.
    """

    def __init__(self, references: References) -> None:
        self.references = references
        self.sizes: dict[int, _Size] = {}
        self.targets: dict[int, Node | None] = {}
        """The target of each mapping with a `$ref`, by its `id`."""

    def size_of(self, root: Node) -> _Size:
        """The size of a document, or of the first node in it that is too large."""
        begun: set[int] = set()
        waiting = [(root, False)]
        while waiting:
            node, is_complete = waiting.pop()
            if is_complete:
                size = self.sizes[id(node)] = self._sum(node)
                if size.is_too_large:
                    return size
            elif id(node) not in begun:
                begun.add(id(node))
                waiting.append((node, True))
                waiting += [(inner, False) for inner in reversed(children(node))]
                target = self._target_of(node)
                if target is not None:
                    waiting.append((target, False))
        return self.sizes[id(root)]

    def _sum(self, node: Node) -> _Size:
        """The size of a node, from the sizes of its children and its target. A target without a
        size encloses the node, and counts nothing."""
        nodes = 1
        levels = 0
        included = 0
        largest = None
        for inner in children(node):
            size = self.sizes.get(id(inner))
            if size is not None:
                nodes += size.nodes
                levels = max(levels, size.levels)
                included += size.included
                if size.reference and (largest is None or size.included > largest.included):
                    largest = size
        levels += not isinstance(node, Scalar)
        reference = largest.reference if largest is not None else None
        target = self.targets.get(id(node))
        size = self.sizes.get(id(target)) if target is not None else None
        if size is not None and isinstance(node, Mapping):
            nodes += size.nodes
            levels = max(levels, size.levels)
            included += size.nodes
            written = node.get("$ref")
            assert isinstance(written, Scalar)
            reference = written
        return _Size(nodes, levels, included, reference)

    def _target_of(self, node: Node) -> Node | None:
        """The target of the `$ref` of a mapping, which is cached; None without one."""
        reference = node.get("$ref") if isinstance(node, Mapping) else None
        if not isinstance(reference, Scalar):
            return None
        place, _, pointer = str(reference.value).partition("#")
        document: Document | str = self.references.as_written(reference.span.file)
        if place:
            document = self.references.parsed(reference.span.file, place)
        target = document.root if isinstance(document, Document) else None
        for key in _keys_of(pointer):
            if target is not None:
                target = find(target, (_step(target, key),))
        self.targets[id(node)] = target
        return target


_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*(?:[.-]\w+)*")
_OF_READERS, _OF_PLACES = key_words("for readers"), key_words("for places")
_PLACEHOLDERS = key_words("placeholders")


def given_variables(
    words: Iterable[str], environment: MappingType[str, str], option: str = "--variable"
) -> dict[str, str]:
    """The variables of `NAME=VALUE`, or of `NAME` for one of the environment.

    :raises RequestError: a word has another form, or may be a secret.
    """
    found = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if not _NAME.fullmatch(name):
            hint = "write NAME=VALUE, or NAME to read the environment"
            raise RequestError(f"{option} {name}: not the name of a variable", hint)
        if is_given or name in environment:
            found[name] = value if is_given else environment[name]
        # Also of a name that the environment lacks here: the worker may have it.
        refuse_secrets({name: found.get(name, "")}, option)
    return found


def refuse_secrets(variables: MappingType[str, str], option: str = "variables:") -> None:
    """Refuses variables whose name or value looks like a secret: results show them.

    :raises RequestError: a variable may be a secret.
    """
    for name, value in variables.items():
        if is_secret_setting(name) or may_be_secret(value):
            hint = "the results keep the values of contracts: name a connection to read the data"
            raise RequestError(f"{option} {name} may be a secret", hint)


@dataclass(slots=True)
class Variables:
    """The variables of one contract; None keeps all references. Dialects and versions without
    variables treat a reference as text, and report a warning."""

    known: MappingType[str, str] | None
    report: Callable[[Diagnostic], None]
    are_defined: bool

    def in_document(self, document: Document) -> Document:
        """The document with the values of its references."""
        if document.root is None or self.known is None or "${" not in document.source.text:
            return document
        return replace(document, root=self._node(document.root, ()))

    def _node(self, node: Node, path: Path) -> Node:
        """:param path: where the node is used: an alias, elsewhere than its anchor."""
        if isinstance(node, Scalar):
            return self._scalar(node, path)
        if isinstance(node, Sequence):
            items = (self._node(item, (*path, number)) for number, item in enumerate(node.items))
            return replace(node, items=tuple(items))
        entries = (
            replace(entry, node=self._node(entry.node, (*path, entry.key)))
            for entry in node.entries.values()
        )
        return replace(node, entries={entry.key: entry for entry in entries})

    def _scalar(self, node: Scalar, path: Path) -> Scalar:
        if not isinstance(node.value, str) or not _REFERENCE.search(node.text):
            return node
        text = _REFERENCE.sub(lambda match: self._value(match, node.span, path), node.text)
        if text == node.text:
            return node
        return replace(node, value=text, text=text, written=node.text)

    def _value(self, match: re.Match[str], span: Span, path: Path) -> str:
        assert self.known is not None
        name, has_default, default = match[1].partition(":-")
        if path[-1:] == ("query",) and name.lower() in _PLACEHOLDERS and not has_default:
            return match[0]
        if not self.are_defined:
            if _NAME.fullmatch(name) and _is_used(path):
                self.report(mistake("no_variables_yet", span, written=match[0]))
            return match[0]
        is_variable = _NAME.fullmatch(name) and "${" not in default
        value = self.known.get(name) or (default if has_default else None)
        if (value is None or not is_variable) and _is_used(path):
            kind, parts = "no_variable", {"where": show_path(path), "written": match[0]}
            if is_variable:
                kind, parts = "unknown_variable", {"where": show_path(path), "name": name}
            self.report(mistake(kind, span, **parts))
        return match[0] if value is None else value


def _is_used(path: Path) -> bool:
    """True for a value that decides what is checked, and where."""
    if path[:1] == ("servers",):
        return len(path) > 2 and path[2] in _OF_PLACES
    return not _OF_READERS & set(path)
