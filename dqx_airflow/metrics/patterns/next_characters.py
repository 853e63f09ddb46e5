"""The next characters of a match: which of them a part may begin with, and whether they decide how
the match goes on."""

from __future__ import annotations

from dqx_airflow.metrics.patterns import syntax as chars
from dqx_airflow.metrics.patterns.syntax import (
    Anything,
    Characters,
    Choice,
    Concatenation,
    End,
    Group,
    Node,
    One,
    Repeat,
    lengths,
    parts_of,
)

_MOST_TURNS = 10
"""Repetitions of more are treated as unbounded."""


def has_loop(node: Node) -> bool:
    """True if a part may match any number of characters."""
    return any(
        is_loop(part) or (isinstance(part, Anything) and part.length is None)
        for part in parts_of(node)
    )


def is_loop(node: Node) -> bool:
    """True for a repetition without a small limit."""
    return isinstance(node, Repeat) and (node.high is None or node.high > _MOST_TURNS)


def characters_in(node: Node) -> Characters:
    """All characters that a part may match."""
    characters = chars.NO_CHARACTERS
    for part in parts_of(node):
        match part:
            case One(characters=matched):
                characters |= matched
            case Anything():
                characters |= chars.EVERYTHING
    return characters


def is_left_in_one_way(repeat: Repeat, follow: Characters) -> bool:
    """True if the next character determines whether there is another iteration, and its path."""
    body = repeat.body
    again = first_of(body)
    if may_be_empty(body) or not is_decided(body, follow | again):
        return False
    return repeat.low == repeat.high or not again & follow


def is_decided(node: Node, follow: Characters) -> bool:
    """True if the next character always determines the path."""
    match node:
        case Concatenation(items=items):
            return all(
                is_decided(item, first_behind(items[number + 1 :], follow))
                for number, item in enumerate(items)
            )
        case Choice(branches=branches):
            seen = chars.NO_CHARACTERS
            for branch in branches:
                first = first_behind((branch,), follow)
                if seen & first or not is_decided(branch, follow):
                    return False
                seen |= first
            return True
        case Repeat(body=body, low=low, high=high):
            is_fixed = isinstance(body, One) and low == high
            return is_fixed or is_left_in_one_way(node, follow)
        case Group(body=body, kind="plain"):
            return is_decided(body, follow)
        case Group(kind="atomic") | Anything():
            return False
        case _:
            return True


def first_behind(items: tuple[Node, ...], follow: Characters) -> Characters:
    """The possible first characters of parts that follow each other.

    :param follow: the characters behind the last part, which count if all parts may be empty.
    """
    characters = chars.NO_CHARACTERS
    for item in items:
        characters |= first_of(item)
        if not may_be_empty(item):
            return characters
    return characters | follow


def first_of(node: Node) -> Characters:
    """The possible first characters of a part: all of them for a zero-width assertion."""
    match node:
        case One(characters=characters):
            return characters
        case End():
            return chars.END
        case Concatenation(items=items):
            return first_behind(items, chars.NO_CHARACTERS)
        case Choice(branches=branches):
            first = chars.NO_CHARACTERS
            for branch in branches:
                first |= first_of(branch)
            return first
        case Repeat(body=body) | Group(body=body, kind="plain" | "atomic"):
            return first_of(body)
        case _:
            return chars.ANYTHING


def may_be_empty(node: Node) -> bool:
    """True if a part may match the empty string."""
    return lengths(node)[0] == 0
