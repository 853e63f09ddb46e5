"""`$ref`: a mapping includes the contents of another one, in this file or in one next to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TypeAlias
from urllib.parse import unquote

from dqx_airflow.contracts.source.yaml_document import (
    Document,
    Mapping,
    Node,
    Scalar,
    find,
    read_document,
)
from dqx_airflow.contracts.source.yaml_document import Sequence as SequenceNode
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean
from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
from dqx_airflow.values import SourceFile, Span

FileReader: TypeAlias = Callable[[str, str], "SourceFile | str"]
"""Called with the name of the referring file and the path as written: the file, or why there is
none."""

MOST_FILES = 100
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
    used: set[int] = field(default_factory=set)
    """The `id` of each mapping that something refers to."""
    _documents: dict[str, Document] = field(default_factory=dict)
    _told: set[Span] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._documents[self.top.source.name] = self.top
        self.sources[self.top.source.name] = self.top.source.text

    def resolve(self, node: Mapping) -> Mapping:
        """The mapping with the contents that it includes; its own keys win."""
        entries = dict(node.entries)
        chain: list[Scalar] = []
        mapping = node
        while isinstance(reference := mapping.get("$ref"), Scalar):
            spans = [link.span for link in chain]
            if reference.span in spans or len(chain) >= _LONGEST_CHAIN:
                first = spans.index(reference.span) if reference.span in spans else 0
                circle = " → ".join(str(link.value) for link in (*chain[first:], reference))
                related = tuple(Related(span, "through this") for span in spans[first + 1 :])
                self._error("E407", f"circular $ref: {circle}", reference, None, related)
                break
            chain.append(reference)
            target = self.target(reference)
            if target is None:
                break
            if self._leads_back(target, reference):
                circle = f"{reference.value} contains this $ref"
                self._error("E407", f"circular $ref: {circle}", reference, None)
                break
            self.used.add(id(target))
            for key, entry in target.entries.items():
                entries.setdefault(key, entry)
            mapping = target
        return Mapping(entries, node.path, node.span)

    def _leads_back(self, target: Mapping, reference: Scalar) -> bool:
        """True if something within a target refers back, directly or indirectly.

        Empty targets that refer to each other are found because they form a chain.
        """
        chain: set[int] = set()
        waiting: list[Node] = []
        mapping: Mapping | None = target
        while mapping is not None and id(mapping) not in chain:
            chain.add(id(mapping))
            waiting += [entry.node for entry in mapping.entries.values()]
            further = mapping.get("$ref")
            mapping = self.target(further) if isinstance(further, Scalar) else None
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            if isinstance(node, Scalar) or id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, SequenceNode):
                waiting += node.items
                continue
            waiting += [entry.node for entry in node.entries.values()]
            inner = node.get("$ref")
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
        document = self._document(place, reference) if place else self._home(reference)
        if document is None or document.root is None:
            return None
        target: Node | None = document.root
        walked: list[str | int] = []
        for part in (unquote(part) for part in pointer.split("/") if part):
            key = part.replace("~1", "/").replace("~0", "~")
            step: str | int = key
            if isinstance(target, SequenceNode) and key.isdigit():
                step = int(key)
            known = tuple(target.entries) if isinstance(target, Mapping) else ()
            target = find(target, (step,)) if target is not None else None
            if target is None:
                where = "/".join(map(str, walked)) or "the top"
                hint = did_you_mean(key, known) or f"{where} is empty"
                self._error("E406", f"unresolved $ref: no '{key}' in {where}", reference, hint)
                return None
            walked.append(step)
        if not isinstance(target, Mapping):
            self._error("E406", f"$ref does not point to a mapping: {written}", reference, None)
            return None
        return target

    def _home(self, reference: Scalar) -> Document:
        return self._documents.get(reference.span.file, self.top)

    def _document(self, place: str, reference: Scalar) -> Document | None:
        source = self.read(reference.span.file, place)
        if isinstance(source, str):
            code = "E408" if "only files" in source or "outside" in source else "E406"
            self._error(code, f"cannot follow $ref '{reference.value}'", reference, source)
            return None
        if source.name not in self._documents:
            if len(self._documents) >= MOST_FILES:
                self._error("E406", f"more than {MOST_FILES} files", reference, "refer to fewer")
                return None
            document = self.prepare(read_document(source))
            self._documents[source.name] = document
            self.sources[source.name] = source.text
            for diagnostic in document.diagnostics:
                self.report(diagnostic)
        return self._documents[source.name]

    def _error(
        self,
        code: str,
        message: str,
        reference: Scalar,
        help_line: str | None,
        related: tuple[Related, ...] = (),
    ) -> None:
        if reference.span not in self._told:
            self._told.add(reference.span)
            self.report(Diagnostic(message, reference.span, code, related=related, help=help_line))
