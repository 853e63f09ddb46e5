"""Filters that select the same rows whenever they are applied.

Spark has a hundred ways to get the time: `now()`, `current_date` without parentheses,
`TIMESTAMP'now'`, `at <= 'today'`, `` `localtimestamp` ``, a variable, a function of the catalog. So
this is an allowlist: a filter is fixed if each of its tokens is known, that is, if it compares
columns of the dataset with plain literals.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

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
    {
        "current_catalog",
        "current_database",
        "current_date",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_timezone",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "system_user",
        "user",
    }
)
"""Columns with these names may be read as functions, which need no parentheses."""


@dataclass(frozen=True, slots=True)
class _Token:
    """A token of a condition, and the character that follows it and its white space."""

    kind: str
    text: str
    following: str


_NO_TOKEN = _Token("", "", "")


def is_fixed(condition: str, columns: Collection[str]) -> bool:
    """True for a filter that depends only on the columns of a row; False if that is not certain.

    :param columns: the columns of the dataset.
    """
    columns_by_key = {name.casefold() for name in columns}
    before = _NO_TOKEN
    for token in _tokens(condition):
        if token is None or not _is_fixed(token, before, columns_by_key):
            return False
        before = token
    return True


def _tokens(condition: str) -> Iterator[_Token | None]:
    """The tokens of a condition; ends with None if one is not recognized."""
    position = 0
    while position < len(condition):
        match = _TOKEN.match(condition, position)
        if match is None or match.lastgroup is None:
            yield None
            return
        position = match.end()
        following = condition[position : position + 1]
        yield _Token(match.lastgroup, match[match.lastgroup], following)


def _is_fixed(token: _Token, before: _Token, columns: Collection[str]) -> bool:
    """True for a token that stands for the same value in every run.

    :param columns: the columns of the dataset, in small letters.
    """
    match token.kind:
        case "text":
            return not _CLOCK.match(token.text) and _may_follow(before)
        case "quoted":
            return before.text == "." or _is_column(token, columns)
        case "word":
            return before.text == "." or _is_keyword(token) or _is_column(token, columns)
        case "sign" if token.text == "(":
            return _may_open(before)
        case _:
            return token.text not in _COMMENTS


def _is_keyword(word: _Token) -> bool:
    key = word.text.casefold()
    begins_literal = key in _TYPED and word.following == "'"
    return key in _WORDS or begins_literal


def _is_column(name: _Token, columns: Collection[str]) -> bool:
    key = name.text.strip("`").casefold()
    return key in columns and key not in _FUNCTIONS


def _may_open(before: _Token) -> bool:
    """False if a parenthesis opens what may be a function call."""
    if before.kind == "word":
        return before.text.casefold() in _WITH_OPERAND
    return before.kind in ("", "sign") and before.text != ")"


def _may_follow(before: _Token) -> bool:
    """False for a string that continues the token before it: `'n' 'ow'` and `X'6E6F77'`."""
    if before.kind == "word":
        return before.text.casefold() in _WITH_OPERAND | _TYPED
    return before.kind in ("", "sign")
