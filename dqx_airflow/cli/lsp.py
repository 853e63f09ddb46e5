"""`dql lsp`: the language server for editors."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

from dqx_airflow.errors import RequestError


def lsp(
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Use stdio (the default and only transport).")
    ] = False,
) -> None:
    """Run the language server for an editor, on standard input and output."""
    from dqx_airflow.dql.imports import search_path

    try:
        from dqx_airflow.editor.server import create_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise RequestError(
            "the language server needs pygls, which is not installed",
            "pip install 'dqx-airflow[lsp]'",
        ) from None
    # A rejected request, such as renaming a column, is a response and not an error.
    logging.getLogger("pygls.protocol").setLevel(logging.CRITICAL)
    if sys.stdin.isatty():
        typer.echo("dql lsp is waiting for an editor on stdin; press Ctrl+C to stop", err=True)
    create_server(search_path(os.environ)).start_io()
