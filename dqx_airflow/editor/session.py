"""The state of an editor in the language server: open texts, findings, and its position encoding.

It uses pygls. Texts are synchronised as a whole; positions are in the encoding of the editor.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from dqx_airflow import __version__
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level
from dqx_airflow.editor.catalog import Catalog, find_catalog
from dqx_airflow.editor.diagnosis import OpenFiles
from dqx_airflow.editor.files import Files
from dqx_airflow.editor.parsed_file import ParsedFile, read
from dqx_airflow.editor.positions import Lines, Position
from dqx_airflow.values import SourceFile, Span

_UNUSED = frozenset({"W004", "W005", "W007"})


class DqlServer(LanguageServer):
    """Holds the open files, in their last checked state."""

    def __init__(self, search_path: Iterable[Path] = ()) -> None:
        kind = types.TextDocumentSyncKind.Full
        super().__init__("dql", __version__, text_document_sync_kind=kind)
        self.files = Files(search_path=tuple(search_path))
        self.board = OpenFiles()
        self.uris: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.catalogs: dict[str, Catalog] = {}
        self.shown_problems: set[str] = set()

    # Texts

    @property
    def encoding(self) -> str:
        return types.PositionEncodingKind(self.workspace.position_encoding or "utf-16").value

    def lines(self, file: str) -> Lines:
        text = self.board.text(file)
        return Lines((self.files.text(file) or "") if text is None else text, self.encoding)

    def read(self, name: str) -> ParsedFile:
        source = SourceFile(name, self.files.text(name) or "")
        return read(source, self.files.reader(name), self.encoding)

    def read_at(self, document: Any, position: types.Position) -> tuple[ParsedFile, int]:
        """A file, and the offset of a position in it."""
        reading = self.read(name_of(document.uri))
        return reading, reading.lines.offset((position.line, position.character))

    def others(self, reading: ParsedFile, *words: str) -> Iterator[ParsedFile]:
        """The imports of a file, and all other files that contain one of the words."""
        names = (name for name in self.files.suites() if self._has_one(name, words))
        for name in dict.fromkeys((*reading.sources, *names)):
            if name != reading.name:
                yield self.read(name)

    def _has_one(self, name: str, words: Iterable[str]) -> bool:
        text = self.files.text(name) or ""
        return any(word in text for word in words)

    def catalog(self, name: str) -> Catalog:
        folder = os.path.dirname(name)
        if folder not in self.catalogs:
            self.catalogs[folder] = find_catalog(name)
        return self.catalogs[folder]

    def show_problems(self) -> None:
        """Reports once which datasets could not be read."""
        for catalog in self.catalogs.values():
            for problem in catalog.problems:
                if problem not in self.shown_problems:
                    self.shown_problems.add(problem)
                    kind = types.MessageType.Warning
                    self.window_show_message(types.ShowMessageParams(kind, problem))

    # Findings

    def check(self, names: Iterable[str]) -> None:
        touched: set[str] = set()
        for name in names:
            if name in self.files.opened:
                touched |= self.board.check(name, self.files)
        self.publish(touched)

    def publish(self, files: Iterable[str]) -> None:
        for file in sorted(files):
            diagnostics = [self.diagnostic(finding) for finding in self.board.findings(file)]
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(self.uri_of(file), diagnostics)
            )

    def diagnostic(self, diagnostic: Diagnostic) -> types.Diagnostic:
        is_error = diagnostic.level is Level.ERROR
        label = [diagnostic.label] if diagnostic.label else []
        advice = [f"help: {diagnostic.help}"] if diagnostic.help else []
        return types.Diagnostic(
            self.range(diagnostic.span),
            "\n".join([diagnostic.message, *label, *advice]),
            types.DiagnosticSeverity.Error if is_error else types.DiagnosticSeverity.Warning,
            code=diagnostic.code,
            source="dql",
            tags=[types.DiagnosticTag.Unnecessary] if diagnostic.code in _UNUSED else None,
            related_information=[
                types.DiagnosticRelatedInformation(self.location(related.span), related.label)
                for related in diagnostic.related
            ],
        )

    # Places

    def uri_of(self, file: str) -> str:
        return self.uris.get(file) or uris.from_fs_path(file) or file

    def range(self, span: Span) -> types.Range:
        return range_of(*self.lines(span.file).range(span))

    def location(self, span: Span) -> types.Location:
        return types.Location(self.uri_of(span.file), self.range(span))


def name_of(uri: str) -> str:
    """The name of a file: its path, or the address of an unsaved text."""
    path = uris.to_fs_path(uri)
    return os.path.normpath(path) if path else uri


def range_of(start: Position, end: Position) -> types.Range:
    return types.Range(types.Position(*start), types.Position(*end))


def stretch_of(lines: Lines, start: int, end: int) -> types.Range:
    return range_of(lines.position(start), lines.position(end))
