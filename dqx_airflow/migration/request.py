"""What a reader gets beside the document: the file, the dataset that was asked for, its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """`dataset` is None where the file says which one it is about, or has to.

    `read_beside` gives the document of another file, by its path from the folder of this one; None
    where there is none.
    """

    file: str
    text: str
    dataset: str | None = None
    read_beside: Callable[[str], Any] = lambda path: None
