"""The language server: the life cycle of a file in an editor, and its responses, each of which
converts a function of this package to the protocol.

Texts are synchronised as a whole; positions are in the encoding of the editor.

Files are parsed and checked in threads, since that takes seconds for thousands of assertions. All
else happens in the event loop, which answers requests meanwhile: while a text is parsed, about the
last one that was. What was found in a text is dropped if there is a newer one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from lsprotocol import types
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from dqx_airflow import __version__
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Level
from dqx_airflow.dql.formatter import format_source
from dqx_airflow.editor import files, parsed_file
from dqx_airflow.editor.catalog import Catalog, find_catalog
from dqx_airflow.editor.completion import Sort, Suggestion, complete
from dqx_airflow.editor.hover import hover
from dqx_airflow.editor.occurrences import (
    definitions,
    occurrence_at,
    proposed,
    references,
    renamable,
    rename,
)
from dqx_airflow.editor.parsed_file import Lines, ParsedFile, Position
from dqx_airflow.editor.signatures import signature_at
from dqx_airflow.errors import RequestError, SourceError
from dqx_airflow.values import SourceFile, Span

_UNUSED = frozenset({"W004", "W005", "W007"})


PAUSE_S = 0.15
"""The pause in typing after which a changed file is checked."""


class PlaceBeforeChange(NamedTuple):
    """A file as it was last parsed, an offset in it, and by how many characters the text there has
    moved since."""

    reading: ParsedFile
    offset: int
    moved: int


class DqlServer(LanguageServer):
    """Holds the open files, in their last checked state."""

    def __init__(self, search_path: Iterable[Path] = ()) -> None:
        kind = types.TextDocumentSyncKind.Full
        super().__init__("dql", __version__, text_document_sync_kind=kind)
        self.files = files.Files(search_path=tuple(search_path))
        self.board = files.OpenFiles()
        self.uris: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.catalogs: dict[str, Catalog] = {}
        self.readings: dict[str, ParsedFile] = {}
        self.parsing: dict[str, tuple[str, asyncio.Task[ParsedFile]]] = {}
        self.unchecked: dict[str, None] = {}
        self.checking: asyncio.Task[None] | None = None
        self.shown_problems: set[str] = set()

    # Texts

    @property
    def encoding(self) -> str:
        return types.PositionEncodingKind(self.workspace.position_encoding or "utf-16").value

    def lines(self, file: str) -> Lines:
        text = self.board.text(file)
        return Lines((self.files.text(file) or "") if text is None else text, self.encoding)

    def lines_now(self, name: str) -> Lines:
        """The lines of a text as it is in the editor."""
        return Lines(self.files.text(name) or "", self.encoding)

    def read(self, name: str) -> ParsedFile:
        """A file with its tree, read again only if it or one of its imports has changed."""
        known = self.readings.get(name)
        text = self.files.text(name) or ""
        if known is None or known.source.text != text or not self._has_same_imports(known):
            source = SourceFile(name, text)
            known = parsed_file.parsed_file(source, self.files.reader(name), self.encoding)
            if name in self.files.opened:
                self.readings[name] = known
        return known

    async def read_in_thread(self, name: str) -> ParsedFile:
        """As `read`, while other requests are answered. If the text changes meanwhile, the newer
        one is read."""
        text = self.files.text(name) or ""
        while not self._knows(name, text):
            running = self.parsing.get(name)
            if running is None or running[0] != text or running[1].done():
                task = asyncio.create_task(self._parse(name))
                self.parsing[name] = (text, task)
            else:
                task = running[1]
            await asyncio.shield(task)
            if name not in self.files.opened:
                return task.result()
            text = self.files.text(name) or ""
        return self.readings[name]

    async def _parse(self, name: str) -> ParsedFile:
        files = self.files.as_now()
        source = SourceFile(name, files.text(name) or "")

        def parse() -> ParsedFile:
            reading = parsed_file.parsed_file(source, files.reader(name), self.encoding)
            occurrence_at(reading, 0)  # finds all names, for the requests about any
            return reading

        reading = await asyncio.to_thread(parse)
        if self.files.opened.get(name) == source.text:
            self.readings[name] = reading
        return reading

    def _knows(self, name: str, text: str) -> bool:
        known = self.readings.get(name)
        return known is not None and known.source.text == text and self._has_same_imports(known)

    async def read_while_typing(
        self, document: Any, position: types.Position
    ) -> tuple[ParsedFile, int]:
        """A file and an offset, as `read_at`, with the names of its last parsed state: what is
        being typed is parsed in the next pause."""
        name = name_of(document.uri)
        known = self.readings.get(name)
        text = self.files.text(name) or ""
        if known is None or known.source.text == text:
            return await self.read_at(document, position)
        typed = known.with_text(text)
        return typed, typed.lines.offset((position.line, position.character))

    def place_before_change(
        self, document: Any, position: types.Position
    ) -> PlaceBeforeChange | None:
        """A position in the last parsed text of a file; None if it is in what has changed since,
        or the file was never parsed."""
        name = name_of(document.uri)
        known = self.readings.get(name)
        if known is None:
            return None
        lines = self.lines_now(name)
        offset = lines.offset((position.line, position.character))
        before = known.offset_before(lines.text, offset)
        return None if before is None else PlaceBeforeChange(known, before, offset - before)

    def _has_same_imports(self, known: ParsedFile) -> bool:
        return all(
            self.files.text(file) == text
            for file, text in known.sources.items()
            if file != known.name
        )

    def forget_disk(self) -> None:
        """Forgets what was read of files that may have changed, or are there only now."""
        self.catalogs.clear()
        self.readings.clear()

    async def read_at(self, document: Any, position: types.Position) -> tuple[ParsedFile, int]:
        """A file, and the offset of a position in it."""
        reading = await self.read_in_thread(name_of(document.uri))
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
        """Checks open files, one after the other, while requests are answered."""
        self.unchecked.update(dict.fromkeys(names))
        if self.checking is None or self.checking.done():
            self.checking = asyncio.create_task(self._check_all())

    def check_in_pause(self, name: str) -> None:
        """Checks a changed file, and those that import it, unless it changes again before."""
        version = self.versions.get(name)

        def check() -> None:
            if self.versions.get(name) == version:
                self.check([name, *self.board.importers(name)])

        asyncio.get_running_loop().call_later(PAUSE_S, check)

    async def _check_all(self) -> None:
        """Checks what is to be checked, and then publishes what was found: a mistake in a library
        may be found only in the files that import it."""
        touched: set[str] = set()
        while self.unchecked:
            name = next(iter(self.unchecked))
            del self.unchecked[name]
            if name in self.files.opened:
                touched |= await self._check(name)
        self.publish(touched)

    async def _check(self, name: str) -> set[str]:
        """Checks an open file, and returns the files whose findings may have changed. Nothing is
        found if there is a newer text: its change has the file checked in the next pause."""
        snapshot = self.files.as_now()
        await self.read_in_thread(name)
        if self.files.opened.get(name) != snapshot.opened[name]:
            return set()
        checked = await asyncio.to_thread(files.checked_file, name, snapshot)
        if self.files.opened.get(name) != snapshot.opened[name]:
            return set()
        if any(
            self.files.opened.get(file) != snapshot.opened.get(file) for file in checked.sources
        ):
            self.unchecked[name] = None  # an import has changed, which did not know its importer
            return set()
        return self.board.take(name, checked)

    def publish(self, names: Iterable[str]) -> None:
        """Publishes what was found in files, except for those with a text that is not checked
        yet."""
        for file in sorted(names):
            if not self.is_checked(file):
                continue
            diagnostics = [self.diagnostic(finding) for finding in self.board.findings(file)]
            version = self.versions.get(file)
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(self.uri_of(file), diagnostics, version)
            )

    def is_checked(self, file: str) -> bool:
        """True if what was found in an open file was found in its newest text."""
        text = self.files.opened.get(file)
        return text is None or self.board.text(file) in (text, None)

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

    def range_now(self, span: Span) -> types.Range:
        """The range of a span in the text that is in the editor, which may not be checked yet."""
        return range_of(*self.lines_now(span.file).range(span))

    def location_now(self, span: Span) -> types.Location:
        return types.Location(self.uri_of(span.file), self.range_now(span))


def name_of(uri: str) -> str:
    """The name of a file: its path, or the address of an unsaved text."""
    path = uris.to_fs_path(uri)
    return os.path.normpath(path) if path else uri


def range_of(start: Position, end: Position) -> types.Range:
    return types.Range(types.Position(*start), types.Position(*end))


def stretch_of(lines: Lines, start: int, end: int) -> types.Range:
    return range_of(lines.position(start), lines.position(end))


T = TypeVar("T")

_SORTS = {
    Sort.KEYWORD: types.CompletionItemKind.Keyword,
    Sort.METRIC: types.CompletionItemKind.Function,
    Sort.FUNCTION: types.CompletionItemKind.Function,
    Sort.CONSTANT: types.CompletionItemKind.Constant,
    Sort.MACRO: types.CompletionItemKind.Method,
    Sort.PARAMETER: types.CompletionItemKind.Variable,
    Sort.COLUMN: types.CompletionItemKind.Field,
    Sort.DATASET: types.CompletionItemKind.Struct,
    Sort.VALUE: types.CompletionItemKind.EnumMember,
    Sort.FILE: types.CompletionItemKind.File,
}
_ENTRIES = {
    parsed_file.OutlineKind.SUITE: types.SymbolKind.Module,
    parsed_file.OutlineKind.CONSTANT: types.SymbolKind.Constant,
    parsed_file.OutlineKind.MACRO: types.SymbolKind.Method,
    parsed_file.OutlineKind.CHECK: types.SymbolKind.Class,
    parsed_file.OutlineKind.ASSERTION: types.SymbolKind.Property,
    parsed_file.OutlineKind.USE: types.SymbolKind.Property,
    parsed_file.OutlineKind.PROFILE: types.SymbolKind.Event,
}


async def answer_hover(ls: DqlServer, params: types.HoverParams) -> types.Hover | None:
    place = ls.place_before_change(params.text_document, params.position)
    if place is None:
        reading, offset = await ls.read_at(params.text_document, params.position)
        place = PlaceBeforeChange(reading, offset, 0)
    reading = place.reading
    shown = hover(reading, place.offset, ls.catalog(reading.name))
    ls.show_problems()
    if shown is None:
        return None
    content = types.MarkupContent(types.MarkupKind.Markdown, shown.markdown)
    lines = ls.lines_now(reading.name)
    return types.Hover(
        content, stretch_of(lines, shown.start + place.moved, shown.end + place.moved)
    )


async def answer_completion(ls: DqlServer, params: types.CompletionParams) -> types.CompletionList:
    reading, offset = await ls.read_while_typing(params.text_document, params.position)
    completion = complete(reading, offset, ls.catalog(reading.name), _importable(ls, reading.name))
    ls.show_problems()
    where = stretch_of(reading.lines, completion.start, completion.end)
    is_called = reading.source.text[completion.end : completion.end + 1] == "("
    has_snippets = _has_snippets(ls.client_capabilities) and not is_called
    items = [
        _completion_item(item, number, where, has_snippets)
        for number, item in enumerate(completion.items)
    ]
    return types.CompletionList(is_incomplete=False, items=items)


def _importable(ls: DqlServer, name: str) -> Iterator[str]:
    """The files that export something, as paths relative to a file."""
    for other in ls.files.suites():
        if other != name and "export" in (ls.files.text(other) or ""):
            yield Path(os.path.relpath(other, os.path.dirname(name))).as_posix()


def _has_snippets(capabilities: types.ClientCapabilities) -> bool:
    text = capabilities.text_document
    completion = text.completion if text else None
    item = completion.completion_item if completion else None
    return bool(item and item.snippet_support)


def _completion_item(
    item: Suggestion, number: int, where: types.Range, has_snippets: bool
) -> types.CompletionItem:
    text = item.text or item.label
    format = types.InsertTextFormat.PlainText
    if item.is_call and has_snippets:
        text = f"{text}($0)"
        format = types.InsertTextFormat.Snippet
    doc = types.MarkupContent(types.MarkupKind.Markdown, item.doc) if item.doc else None
    return types.CompletionItem(
        item.label,
        kind=_SORTS[item.sort],
        detail=item.detail or None,
        documentation=doc,
        sort_text=f"{number:04}",
        filter_text=item.text or item.label,
        insert_text_format=format,
        text_edit=types.TextEdit(where, text),
    )


async def answer_definition(ls: DqlServer, params: types.DefinitionParams) -> list[types.Location]:
    reading, offset = await ls.read_at(params.text_document, params.position)
    return [ls.location_now(span) for span in definitions(reading, offset)]


async def answer_references(ls: DqlServer, params: types.ReferenceParams) -> list[types.Location]:
    reading, offset = await ls.read_at(params.text_document, params.position)
    occurrence = occurrence_at(reading, offset)
    if occurrence is None:
        return []
    others = ls.others(reading, occurrence.text)
    with_definitions = params.context.include_declaration
    spans = references(reading, offset, others, with_definitions=with_definitions)
    return [ls.location_now(span) for span in spans]


async def answer_signature(
    ls: DqlServer, params: types.SignatureHelpParams
) -> types.SignatureHelp | None:
    reading, offset = await ls.read_while_typing(params.text_document, params.position)
    found = signature_at(reading, offset)
    if found is None:
        return None
    parameters = [types.ParameterInformation(label) for label in found.parameters]
    doc = types.MarkupContent(types.MarkupKind.Markdown, found.doc) if found.doc else None
    shown = types.SignatureInformation(found.label, doc, parameters, found.active)
    return types.SignatureHelp([shown], 0, found.active)


async def answer_prepare_rename(
    ls: DqlServer, params: types.PrepareRenameParams
) -> types.PrepareRenamePlaceholder:
    reading, offset = await ls.read_at(params.text_document, params.position)
    occurrence = _or_refuse(lambda: renamable(reading, offset))
    return types.PrepareRenamePlaceholder(
        range_of(*reading.lines.range(occurrence.span)), occurrence.text
    )


async def answer_rename(ls: DqlServer, params: types.RenameParams) -> types.WorkspaceEdit:
    reading, offset = await ls.read_at(params.text_document, params.position)
    occurrence = _or_refuse(lambda: renamable(reading, offset))
    others = ls.others(reading, occurrence.text, params.new_name)
    edits = _or_refuse(lambda: rename(reading, offset, params.new_name, others))
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        text_edit = types.TextEdit(ls.range_now(edit.span), edit.text)
        changes.setdefault(ls.uri_of(edit.span.file), []).append(text_edit)
    return types.WorkspaceEdit(changes)


def _or_refuse(respond: Callable[[], T]) -> T:
    """The response, or the error of the protocol if the request is refused."""
    try:
        return respond()
    except RequestError as error:
        code = types.LSPErrorCodes.RequestFailed.value
        raise JsonRpcException(error.problem, code) from error


def answer_formatting(
    ls: DqlServer, params: types.DocumentFormattingParams
) -> list[types.TextEdit] | None:
    name = name_of(params.text_document.uri)
    text = ls.files.text(name) or ""
    try:
        formatted = format_source(SourceFile(name, text))
    except SourceError:
        return None
    whole = stretch_of(Lines(text, ls.encoding), 0, len(text))
    return [types.TextEdit(whole, formatted)] if formatted != text else []


async def answer_symbols(
    ls: DqlServer, params: types.DocumentSymbolParams
) -> list[types.DocumentSymbol]:
    reading = await ls.read_in_thread(name_of(params.text_document.uri))

    def shown(symbol: parsed_file.Symbol) -> types.DocumentSymbol:
        return types.DocumentSymbol(
            symbol.name or symbol.entry.name.lower(),  # an editor rejects an empty name
            _ENTRIES[symbol.entry],
            range_of(*reading.lines.range(symbol.span)),
            range_of(*reading.lines.range(symbol.name_span)),
            detail=symbol.detail or None,
            children=[shown(child) for child in symbol.children],
        )

    return [shown(symbol) for symbol in parsed_file.outline(reading)]


def answer_fixes(ls: DqlServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    name = name_of(params.text_document.uri)
    if not ls.is_checked(name):
        return []
    lines = ls.lines(name)
    actions = []
    for diagnostic in ls.board.findings(name):
        edit = proposed(diagnostic, lines)
        shown = ls.diagnostic(diagnostic)
        if edit is not None and _meets(shown.range, params.range):
            change = types.TextEdit(ls.range(edit.span), edit.text)
            action = types.CodeAction(
                f"write {edit.text}",
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[shown],
                edit=types.WorkspaceEdit({params.text_document.uri: [change]}),
                is_preferred=True,
            )
            actions.append(action)
    return actions


def _meets(first: types.Range, second: types.Range) -> bool:
    return first.start <= second.end and second.start <= first.end


def started(ls: DqlServer, _: types.InitializedParams) -> None:
    _folders_changed(ls)
    watching = ls.client_capabilities.workspace and (
        ls.client_capabilities.workspace.did_change_watched_files
    )
    if watching and watching.dynamic_registration:
        watchers = [types.FileSystemWatcher(f"**/{name}") for name in ("*.dql", "dqx.toml")]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration("dql files", method, options)
        ls.client_register_capability(types.RegistrationParams([registration]))


def folders_changed(ls: DqlServer, _: types.DidChangeWorkspaceFoldersParams) -> None:
    _folders_changed(ls)
    ls.check(list(ls.files.opened))


def _folders_changed(ls: DqlServer) -> None:
    paths = [uris.to_fs_path(uri) for uri in ls.workspace.folders]
    paths = paths or [ls.workspace.root_path]
    ls.files.folders = tuple(Path(os.path.normpath(path)) for path in paths if path)


def opened(ls: DqlServer, params: types.DidOpenTextDocumentParams) -> None:
    name = name_of(params.text_document.uri)
    ls.uris[name] = params.text_document.uri
    ls.files.opened[name] = params.text_document.text
    ls.versions[name] = params.text_document.version
    ls.forget_disk()
    ls.check([name, *ls.board.importers(name)])


def changed(ls: DqlServer, params: types.DidChangeTextDocumentParams) -> None:
    name = name_of(params.text_document.uri)
    ls.files.opened[name] = ls.workspace.get_text_document(params.text_document.uri).source
    ls.versions[name] = params.text_document.version
    ls.check_in_pause(name)


def saved(ls: DqlServer, _: object) -> None:
    """A file was saved, here or elsewhere: any open file may import it."""
    ls.forget_disk()
    ls.check(list(ls.files.opened))


def closed(ls: DqlServer, params: types.DidCloseTextDocumentParams) -> None:
    name = name_of(params.text_document.uri)
    ls.files.opened.pop(name, None)
    ls.readings.pop(name, None)
    ls.versions.pop(name, None)
    touched = ls.board.forget(name)
    ls.check(ls.board.importers(name))
    ls.publish(touched)
    ls.uris.pop(name, None)


_TRIGGERS = ["@", "(", "[", "{", ".", '"']
_FEATURES: dict[str, Callable[..., Any]] = {
    types.INITIALIZED: started,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: folders_changed,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: saved,
    types.TEXT_DOCUMENT_DID_OPEN: opened,
    types.TEXT_DOCUMENT_DID_CHANGE: changed,
    types.TEXT_DOCUMENT_DID_SAVE: saved,
    types.TEXT_DOCUMENT_DID_CLOSE: closed,
    types.TEXT_DOCUMENT_HOVER: answer_hover,
    types.TEXT_DOCUMENT_COMPLETION: answer_completion,
    types.TEXT_DOCUMENT_DEFINITION: answer_definition,
    types.TEXT_DOCUMENT_REFERENCES: answer_references,
    types.TEXT_DOCUMENT_SIGNATURE_HELP: answer_signature,
    types.TEXT_DOCUMENT_PREPARE_RENAME: answer_prepare_rename,
    types.TEXT_DOCUMENT_RENAME: answer_rename,
    types.TEXT_DOCUMENT_FORMATTING: answer_formatting,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: answer_symbols,
    types.TEXT_DOCUMENT_CODE_ACTION: answer_fixes,
}
_OPTIONS: dict[str, Any] = {
    types.TEXT_DOCUMENT_COMPLETION: types.CompletionOptions(trigger_characters=_TRIGGERS),
    types.TEXT_DOCUMENT_SIGNATURE_HELP: types.SignatureHelpOptions(trigger_characters=["(", ","]),
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions([types.CodeActionKind.QuickFix]),
}


def create_server(search_path: Iterable[Path] = ()) -> DqlServer:
    """A server that waits for `start_io`.

    :param search_path: the folders that are searched last for imports.
    """
    server = DqlServer(search_path)
    for method, handler in _FEATURES.items():
        server.feature(method, _OPTIONS.get(method))(handler)
    return server
