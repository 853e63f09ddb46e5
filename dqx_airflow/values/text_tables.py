"""The tables in texts beside the modules of this package: what is data, one row in each line."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def table_rows(package: str, name: str, heading: str) -> tuple[list[str], ...]:
    """The rows below a heading of a text in a package, each as its columns."""
    rows = _text(package, name).partition(f"\n{heading}\n")[2].partition("\n\n")[0]
    return tuple(line.strip().split(" | ") for line in rows.splitlines())


@cache
def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")
