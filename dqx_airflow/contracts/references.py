"""Resolves the `$ref`s of a contract, inside a file and across files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, TypeAlias
from urllib.parse import unquote

from dqx_airflow.contracts.document import (
    DEEPEST,
    Document,
    Mapping,
    Node,
    Scalar,
    Sequence,
    children,
    find,
)
from dqx_airflow.contracts.mistakes import MistakeName, mistake
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import SourceFile, Span

MOST_INCLUDED = 50_000
"""The maximum number of nodes that the `$ref`s of a contract include; a node counts again for each
`$ref` of it."""
FileReader: TypeAlias = Callable[[str, str], "SourceFile | NotRead"]
"""Called with the name of the referring file and the path as written."""
MOST_FILES = 100
_LONGEST_CHAIN = 50


@dataclass(frozen=True, slots=True)
class NotRead:
    """The reason why a file is not read, and the mistake of the `$ref` that leads to it."""

    reason: str
    mistake: MistakeName = "not_followed"


def no_files(_referrer: str, path: str) -> NotRead:
    """Reads nothing: for a contract that is not a file."""
    return NotRead(f"'{path}' is relative to the contract, but this contract is not a file")


@dataclass(frozen=True, slots=True)
class FolderReader:
    """Reads files in a folder and below; `$ref` leads nowhere else."""

    folder: FilePath

    def __call__(self, referrer: str, path: str) -> SourceFile | NotRead:
        if "://" in path:
            return NotRead("only local files are read: download it, and refer to the copy")
        root = self.folder.resolve()
        try:
            place = (root / FilePath(referrer).parent / path).resolve()
        except (OSError, ValueError, RuntimeError):  # a NUL in it, or circular links
            return NotRead(f"{path!a} is not a file path")
        if not place.is_relative_to(root):
            reason = f"'{path}' is outside the folder of the contract: move it there"
            return NotRead(reason, "outside")
        source = read_source(place, place.relative_to(root).as_posix())
        return NotRead(source.reason) if isinstance(source, Unreadable) else source


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

    def parsed(self, referrer: str, place: str) -> Document | NotRead:
        """The document in a file, before it is prepared."""
        source = self.read(referrer, place)
        if isinstance(source, NotRead):
            return source
        if source.name == self.top.source.name:
            return self.top
        if source.name not in self._parsed:
            if len(self._parsed) >= MOST_FILES:
                return NotRead(f"more than {MOST_FILES} files", "too_many_files")
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
        if isinstance(document, NotRead):
            if document.mistake == "too_many_files":
                self._error("too_many_files", reference, most=MOST_FILES)
            else:
                written = reference.value
                self._error(document.mistake, reference, written=written, hint=document.reason)
            return None
        source = document.source
        if source.name not in self._documents:
            self._documents[source.name] = self.prepare(document)
            self.sources[source.name] = source.text
            for diagnostic in document.diagnostics:
                self.report(diagnostic)
        return self._documents[source.name]

    def _error(self, name: MistakeName, reference: Scalar, *related: Related, **named: Any) -> None:
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
        document: Document | NotRead = self.references.as_written(reference.span.file)
        if place:
            document = self.references.parsed(reference.span.file, place)
        target = document.root if isinstance(document, Document) else None
        for key in _keys_of(pointer):
            if target is not None:
                target = find(target, (_step(target, key),))
        self.targets[id(node)] = target
        return target
