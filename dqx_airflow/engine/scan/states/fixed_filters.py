"""Filters that select the same rows at any time, in any session, for any user.

Spark has a hundred ways to ask for the time: `now()`, `current_date` without parentheses,
`TIMESTAMP'now'`, `at <= 'today'`, `` `localtimestamp` ``, a variable, a function of the catalog. So
this is an allowlist: a filter is fixed if each of its tokens is known, that is, if it compares
columns of the dataset with plain literals. For any other filter, no stored state is used.
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
"""A backslash or a dollar may begin an escape or a substitution: strings with one are rejected."""

_WORDS = frozenset({"and", "or", "not", "in", "is", "null", "between", "like", "true", "false"})
_TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})
_WITH_OPERAND = _WORDS - {"null", "true", "false"}
_COMMENTS = ("--", "/*")
_CLOCK = re.compile(r"'\s*(epoch|now|today|tomorrow|yesterday)", re.IGNORECASE)
"""Strings that Spark reads as a time when a timestamp is compared with them."""
_FUNCTIONS = frozenset(
    {*(f"current_{name}" for name in ("date", "time", "timestamp", "timezone", "user"))}
    | {"current_catalog", "current_database", "current_schema", "localtime", "localtimestamp"}
    | {"user", "session_user", "system_user"}
)
"""Columns with these names may be read as functions, which need no parentheses."""


def is_fixed(condition: str, columns: Collection[str]) -> bool:
    """True for a filter that depends only on the columns of a row; False if that is not certain.

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
    """False if a parenthesis opens what may be a function call."""
    if kind == "word":
        return before in _WITH_OPERAND
    return kind in ("", "sign") and before != ")"


def _may_follow(before: str, kind: str) -> bool:
    """False for a string that continues the token before it: `'n' 'ow'` and `X'6E6F77'`."""
    return kind in ("", "sign") or (kind == "word" and before in _WITH_OPERAND | _TYPED)
