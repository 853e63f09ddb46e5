"""Java's regular expressions for Python's `re`.

The tree of the expression is rewritten: every character as a set of characters, so that line ends,
flags and classes are those of Java; `$` is the end of the string. What Python does not support is
rejected.
"""

from __future__ import annotations

import re
from functools import cache

from dqx_airflow.patterns.syntax import (
    Anything,
    Characters,
    Choice,
    Concatenation,
    End,
    Group,
    Node,
    One,
    PatternError,
    Repeat,
    Start,
    ZeroWidth,
    read,
)

_CONDITIONS = {
    "^": r"(?!\Z)(?:\A|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n))",
    "$": r"(?:(?=\r\n)|(?<!\r)(?=\n)|(?=[\r\u0085\u2028\u2029])|\Z)",
    r"\b": r"\b",
    r"\B": r"\B",
}
_MODES = {"greedy": "", "lazy": "?", "possessive": "+"}


class UntranslatablePatternError(ValueError):
    """Python does not support a part of the expression; the message names it."""


@cache
def compile_java(pattern: str) -> re.Pattern[str]:
    """The expression for `search` with the matches of Java's `find`.

    :raises UntranslatablePatternError: Python does not support a part of it.
    """
    try:
        return re.compile(_written(read(pattern, has_exact_classes=True)), re.ASCII)
    except (PatternError, re.error, OverflowError, RecursionError) as error:
        raise UntranslatablePatternError(f'"{pattern}": {error}') from error


@cache
def compile_like(pattern: str) -> re.Pattern[str]:
    """A `like` pattern for `fullmatch`."""
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return re.compile("".join(wild.get(part) or re.escape(part[-1]) for part in parts), re.DOTALL)


def _written(node: Node) -> str:
    """The node in Python's syntax; in a group if it would otherwise be split."""
    match node:
        case One(characters=characters):
            return _set(characters)
        case Concatenation(items=items):
            return "".join(map(_written, items))
        case Choice(branches=branches):
            return f"(?:{'|'.join(map(_written, branches))})"
        case Repeat(body=body, low=low, high=high, mode=mode):
            most = "" if high is None else high
            return f"(?:{_written(body)}){{{low},{most}}}{_MODES[mode]}"
        case Group(body=body, opening=opening):
            return f"({opening}{_written(body)})"
        case Start():
            return r"\A"
        case End():
            return r"\Z"
        case ZeroWidth(written=written) if written in _CONDITIONS:
            return _CONDITIONS[written]
        case Anything(group=int(number)):
            return rf"(?:\{number})"
        case _:
            raise PatternError(r"Python does not support \G and \X")


def _set(characters: Characters) -> str:
    if characters.is_vague:
        raise PatternError("Python does not support this character class or flag")
    if not characters:
        return "(?!)"
    ranges = (f"\\U{low:08x}-\\U{high:08x}" for low, high in characters.ranges)
    return f"[{''.join(ranges)}]"
