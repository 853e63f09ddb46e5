"""The names of variables that contracts refer to as `${NAME}`."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z_]\w*(?:[.-]\w+)*")

HOW_TO_NAME = "begin with a letter or _, followed by letters, digits, _, . and -, such as REGION_2"
"""What to write instead of another name."""


def is_variable_name(name: object) -> bool:
    """True for a string that a contract can refer to."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
