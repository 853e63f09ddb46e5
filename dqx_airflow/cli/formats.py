"""Output formats shared by several commands."""

from __future__ import annotations

from enum import Enum
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
