"""Filters that let the same rows through at any time, in any session, for any user.

Spark has a hundred ways to ask for the time: `now()`, `current_date` without brackets,
`TIMESTAMP'now'`, `at <= 'today'`, `` `localtimestamp` ``, a variable, a function of the catalog. So
nothing is looked for here. A filter is fixed where each of its words is known: the columns of the
dataset, compared with plain literals. Of any other filter, nothing is taken from stored states.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'[^'\\$]*')
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?!\w))
    |(?P<quoted>`[^`$]+`)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><=>|<=|>=|<>|!=|==|--|/\*|[=<>+*/%.,()-])
    )\s*""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
"""A backslash or a dollar may stand for other letters, so that texts with one are not known."""

_WORDS = frozenset({"and", "or", "not", "in", "is", "null", "between", "like", "true", "false"})
_TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})
_WITH_OPERAND = _WORDS - {"null", "true", "false"}
_COMMENTS = ("--", "/*")
_CLOCK = re.compile(r"'\s*(epoch|now|today|tomorrow|yesterday)", re.IGNORECASE)
"""Texts that Spark takes for a moment, where one is compared with them."""
_FUNCTIONS = frozenset(
    {*(f"current_{name}" for name in ("date", "time", "timestamp", "timezone", "user"))}
    | {"current_catalog", "current_database", "current_schema", "localtime", "localtimestamp"}
    | {"user", "session_user", "system_user"}
)
"""Columns of these names might be taken for the functions, which need no brackets."""


def is_fixed(condition: str, columns: Collection[str]) -> bool:
    """True for a filter that depends on the columns of a row alone; False where that is not sure.

    :param columns: those of the dataset.
    """
    known = {name.casefold() for name in columns}
    position, before, kind_before = 0, "", ""
    while position < len(condition):
        token = _TOKEN.match(condition, position)
        if token is None or token.lastgroup is None:
            return False
        position, kind = token.end(), token.lastgroup
        part = token[kind]
        word = part.casefold()
        if kind == "text":
            if _CLOCK.match(part) or not _may_follow(before, kind_before):
                return False
        elif kind in ("quoted", "word"):
            is_literal = kind == "word" and (
                word in _WORDS or (word in _TYPED and condition[position : position + 1] == "'")
            )
            name = part.strip("`")
            is_field = before == "."
            is_column = name.casefold() in known and name.casefold() not in _FUNCTIONS
            if not (is_literal or is_field or is_column):
                return False
        elif part in _COMMENTS or (part == "(" and not _may_open(before, kind_before)):
            return False
        before, kind_before = word, kind
    return True


def _may_open(before: str, kind: str) -> bool:
    """False where a bracket opens what may be a call."""
    if kind == "word":
        return before in _WITH_OPERAND
    return kind in ("", "sign") and before != ")"


def _may_follow(before: str, kind: str) -> bool:
    """False for a text that is part of what stands before it: `'n' 'ow'` and `X'6E6F77'`."""
    return kind in ("", "sign") or (kind == "word" and before in _WITH_OPERAND | _TYPED)
