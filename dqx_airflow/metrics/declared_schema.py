"""Declared schemas of files, such as `id int, total decimal(18, 2)`: finds typos in their types.

Spark decides which types exist: only what resembles one of them is reported here.
"""

from __future__ import annotations

import re

from dqx_airflow.diagnostics.nearest import slip_of
from dqx_airflow.metrics.types import TYPE_NAMES

_COLUMN = re.compile(r"(?:`(?:[^`]|``)+`|\w+)[\s:]+(\w+)")
_RARE = ("void", "null", "time", "geometry", "geography", "character", "numeric")
"""Names of types that Spark knows, and that resemble typos of others."""


def slip_in_schema(schema: str) -> tuple[str, str] | None:
    """The first misspelled type of a column, and the intended type; None if there is none.

    >>> slip_in_schema("id itn, total decimal(18, 2) NOT NULL")
    ('itn', 'int')
    """
    for column in _columns(schema):
        match = _COLUMN.match(column.strip())
        if match is not None and match[1].lower() not in (*TYPE_NAMES, *_RARE):
            near = slip_of(match[1], TYPE_NAMES)
            if near is not None:
                return match[1], near
    return None


def _columns(schema: str) -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in schema:
        if quote or letter in "`'\"":
            quote = "" if letter == quote else quote or letter
        depth += 0 if quote else (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
