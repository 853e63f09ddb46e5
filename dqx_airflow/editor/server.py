"""The language server: the life cycle of a file in an editor, and the table of responses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris

from dqx_airflow.editor import handlers
from dqx_airflow.editor.session import DqlServer, name_of

PAUSE_S = 0.15
"""The pause in typing after which a changed file is checked."""


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
    ls.catalogs.clear()
    ls.check([name, *ls.board.importers(name)])


async def changed(ls: DqlServer, params: types.DidChangeTextDocumentParams) -> None:
    name, version = name_of(params.text_document.uri), params.text_document.version
    ls.files.opened[name] = ls.workspace.get_text_document(params.text_document.uri).source
    ls.versions[name] = version
    await asyncio.sleep(PAUSE_S)
    if ls.versions.get(name) == version:
        ls.check([name, *ls.board.importers(name)])


def saved(ls: DqlServer, _: object) -> None:
    """A file was saved, here or elsewhere: any open file may import it."""
    ls.catalogs.clear()
    ls.check(list(ls.files.opened))


def closed(ls: DqlServer, params: types.DidCloseTextDocumentParams) -> None:
    name = name_of(params.text_document.uri)
    ls.files.opened.pop(name, None)
    ls.versions.pop(name, None)
    touched = ls.board.forget(name)
    ls.check(ls.board.importers(name))
    ls.publish(touched)
    ls.uris.pop(name, None)


_TRIGGERS = ["@", "(", "[", "{", ".", '"']
_FEATURES: tuple[tuple[str, Callable[..., Any], Any], ...] = (
    (types.INITIALIZED, started, None),
    (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, folders_changed, None),
    (types.WORKSPACE_DID_CHANGE_WATCHED_FILES, saved, None),
    (types.TEXT_DOCUMENT_DID_OPEN, opened, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, changed, None),
    (types.TEXT_DOCUMENT_DID_SAVE, saved, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, closed, None),
    (types.TEXT_DOCUMENT_HOVER, handlers.answer_hover, None),
    (
        types.TEXT_DOCUMENT_COMPLETION,
        handlers.answer_completion,
        types.CompletionOptions(trigger_characters=_TRIGGERS),
    ),
    (types.TEXT_DOCUMENT_DEFINITION, handlers.answer_definition, None),
    (types.TEXT_DOCUMENT_PREPARE_RENAME, handlers.answer_prepare_rename, None),
    (types.TEXT_DOCUMENT_RENAME, handlers.answer_rename, None),
    (types.TEXT_DOCUMENT_FORMATTING, handlers.answer_formatting, None),
    (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, handlers.answer_symbols, None),
    (
        types.TEXT_DOCUMENT_CODE_ACTION,
        handlers.answer_fixes,
        types.CodeActionOptions([types.CodeActionKind.QuickFix]),
    ),
)


def create_server(search_path: Iterable[Path] = ()) -> DqlServer:
    """A server that waits for `start_io`.

    :param search_path: the folders that are searched last for imports.
    """
    server = DqlServer(search_path)
    for method, handler, options in _FEATURES:
        server.feature(method, options)(handler)
    return server
