"""Where the text of a command goes, and in which format."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class TextOrJson(str, Enum):
    """For people, or as JSON."""

    TEXT = "text"
    JSON = "json"


class TableOrJson(str, Enum):
    """A table for people, or JSON."""

    TABLE = "table"
    JSON = "json"


TextFormatOption: TypeAlias = Annotated[
    TextOrJson, typer.Option("--format", help="Output format: text or json.")
]
TableFormatOption: TypeAlias = Annotated[
    TableOrJson, typer.Option("--format", help="Output format: table or json.")
]


class SheetFormat(str, Enum):
    """A table for people, JSON, or CSV for spreadsheets."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def print_or_write(text: str, output: Path | None) -> None:
    """:raises RequestError: the file cannot be written."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)


def write_text(path: Path, text: str) -> None:
    """:raises RequestError: the file cannot be written."""
    from dqx_airflow.errors import RequestError

    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror}") from error


def require_new(path: Path) -> None:
    """:raises RequestError: it exists."""
    from dqx_airflow.errors import RequestError

    if path.exists():
        raise RequestError(f"{path} already exists", "choose another file")
