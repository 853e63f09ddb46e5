"""Where the text of a command goes: to stdout, or to a file."""

from __future__ import annotations

from pathlib import Path

import typer

from dqx_airflow.errors import RequestError


def print_or_write(text: str, output: Path | None) -> None:
    """:raises RequestError: the file cannot be written."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)


def write_text(path: Path, text: str) -> None:
    """:raises RequestError: the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}") from error


def require_new(path: Path) -> None:
    """:raises RequestError: it exists."""
    if path.exists():
        raise RequestError(f"{path} already exists", "choose another file")
