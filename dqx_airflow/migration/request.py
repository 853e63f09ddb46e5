"""The context of a reader besides the document: the file, the requested dataset, its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """`dataset` is None if the file determines it.

    `read_beside` returns the document of another file, by its path relative to the folder of this
    one; None if there is none.
    """

    file: str
    text: str
    dataset: str | None = None
    read_beside: Callable[[str], Any] = lambda path: None
