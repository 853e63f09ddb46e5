"""Parses the parameters of an address."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, TypeAlias

from fastapi import Depends

_NUMBER = re.compile(r"[0-9]{1,9}")


def whole_number(text: str) -> int | None:
    """The number in a parameter; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None


def _page_number(page: str = "") -> int:
    return whole_number(page) or 1


PageNumber: TypeAlias = Annotated[int, Depends(_page_number)]
"""The parameter `page`, counted from 1."""


def day(text: str) -> date | None:
    """The date in a parameter; None for anything else."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
