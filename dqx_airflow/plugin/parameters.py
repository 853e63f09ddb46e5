"""What the parameters of an address mean."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[0-9]{1,9}")


def whole_number(text: str) -> int | None:
    """The number that a parameter is; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None
