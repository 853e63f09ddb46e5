"""Expressions in the form that every engine reads alike."""

from __future__ import annotations

from functools import cache

from dqx_airflow.metrics.patterns import syntax as chars
from dqx_airflow.metrics.patterns.next_characters import (
    first_behind,
    first_of,
    is_left_in_one_way,
    may_be_empty,
)
from dqx_airflow.metrics.patterns.syntax import (
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
    pattern_tree,
)


@cache
def without_java(pattern: str) -> str:
    r"""An expression for Spark in the form that every engine reads alike: what a class means is
    listed, and the ends of the string are `\A` and `\z`.

    >>> without_java(r"^\d+\z")
    '(?:\\A(?:[\\x{30}-\\x{39}]){1,}\\z)'

    :raises PatternError: it uses look-around, a reference to a group, or something that engines
        read differently.
    """
    # That of a format of strings may be longer than one of a user.
    tree = pattern_tree(pattern, longest=4 * chars.LONGEST)
    return _written(tree, pattern, chars.NO_CHARACTERS)


def _written(node: Node, pattern: str, follow: Characters) -> str:
    match node:
        case One(characters=characters) if characters and not characters.is_vague:
            ranges = (f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in characters.ranges)
            return f"[{''.join(ranges)}]"
        case Concatenation(items=items):
            parts = (
                _written(item, pattern, first_behind(items[number + 1 :], follow))
                for number, item in enumerate(items)
                if not (number and _is_certain(items[number - 1], item))
            )
            return f"(?:{''.join(parts)})"
        case Choice(branches=branches):
            return f"(?:{'|'.join(_written(branch, pattern, follow) for branch in branches)})"
        case Repeat(body=body, low=low, high=high, mode=mode):
            # A possessive part that is left in one way only takes what a greedy one takes.
            if mode != "possessive" or is_left_in_one_way(node, follow):
                inside = _written(body, pattern, follow | first_of(body))
                most = "" if high is None else high
                return f"(?:{inside}){{{low},{most}}}{'?' if mode == 'lazy' else ''}"
        case Group(body=body, kind="plain"):
            return _written(body, pattern, follow)
        case Start():
            return r"\A"
        case End(start=start, size=size) if pattern[start : start + size] == r"\z":
            return r"\z"
    raise PatternError("it uses look-around, references, or what engines read differently")


def _is_certain(before: Node, node: Node) -> bool:
    """True for a negative lookahead behind the end of the string, where it always holds."""
    match before, node:
        case End(), Group(opening="?!", body=body):
            return not may_be_empty(body)
    return False
