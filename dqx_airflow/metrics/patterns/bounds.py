"""Bounds of regular expressions: the length of strings for which time and stack are limited.

Java's matcher tries one way after the other (`matching_time`), and uses a few stack frames for each
iteration of a group.

If the next character decides when to leave a group, the group is made possessive (`(ab|cd)+`
becomes `(ab|cd)++`): Java then matches it in a loop, with the same result. All others have a
maximum length; longer strings cannot be decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import or_
from typing import TypeAlias

from dqx_airflow.metrics.patterns import syntax as chars
from dqx_airflow.metrics.patterns.matching_time import longest_by_time
from dqx_airflow.metrics.patterns.next_characters import first_behind, first_of, is_left_in_one_way
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
    pattern_tree,
)

_PLAIN_GROUP = re.compile(r"\((?:\?:|\?<[a-zA-Z]\w*>|(?!\?))(?:(?!\(\?).)*", re.DOTALL)
Edit: TypeAlias = tuple[int, int, str]
_FRAMES = 5_000
"""The number of Java stack frames that a match may use. A thread of 1 MB has room for at least
13,000."""


@dataclass(frozen=True, slots=True)
class BoundedPattern:
    """An expression for Spark. Strings of more than `longest` characters cannot be decided."""

    text: str
    longest: int | None


@cache
def bounded(pattern: str, *, is_as_written: bool = False) -> BoundedPattern:
    r"""The expression for Spark: `$` is the end of the string, and the stack stays small.

    >>> bounded("^(open|paid)$")
    BoundedPattern(text='^(open|paid)\\z', longest=None)
    >>> bounded("^(a|b)+$").text
    '^[ab]+\\z'

    :param is_as_written: Spark gets the expression unchanged, and `text` does not matter.
    :raises PatternError: it is invalid, or some strings would take exponential time.
    """
    tree = pattern_tree(pattern)
    edits: list[Edit] = [(*place, r"\z") for place in _ends(tree)]
    has_references = any(
        isinstance(part, Anything) and part.is_reference for part in parts_of(tree)
    )
    if not (is_as_written or has_references):
        tree = _with_classes(tree, pattern, edits)
    by_time = longest_by_time(tree)
    limits = [] if by_time is None else [by_time]
    frames_a_character = 0.0
    for repeat, follow in _repeated_groups(tree, chars.NO_CHARACTERS, is_given_back=True):
        frames = 3 + _size(repeat.body)
        if repeat.high is not None and repeat.high * frames <= _FRAMES // 8:
            continue
        # A lazy part may have to match more characters later, which `++` would not allow.
        is_lazy = any(
            isinstance(part, Repeat) and part.mode == "lazy" for part in parts_of(repeat.body)
        )
        if not (is_as_written or is_lazy) and is_left_in_one_way(repeat, follow):
            edits.append((repeat.end, repeat.end + (repeat.mode == "lazy"), "+"))
        else:
            frames_a_character += frames / max(1, lengths(repeat.body)[0])
    if frames_a_character:
        limits.append(int(_FRAMES / frames_a_character))
    text = pattern
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return BoundedPattern(text, min(limits, default=None))


@cache
def longest_in_python(pattern: str) -> int | None:
    """The longest string that Python's `re`, which uses no stack, decides in limited time.

    :raises PatternError: it is invalid, or some strings would take exponential time.
    """
    return longest_by_time(pattern_tree(pattern))


@cache
def ended(pattern: str) -> str:
    """An expression of the package, fast as written, with `$` meaning the end of the string."""
    for start, stop in sorted(_ends(pattern_tree(pattern)), reverse=True):
        pattern = f"{pattern[:start]}\\z{pattern[stop:]}"
    return pattern


_AT_END_IN_JAVA = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?$)"


def ending_as_in_java(pattern: str) -> str:
    """A pattern of Spark's RLIKE for DQL: there, `$` is also before a line break that ends the
    string.

    :raises PatternError: it is invalid.
    """
    for start, stop in sorted(_ends(pattern_tree(pattern)), reverse=True):
        if pattern[start:stop] != "\\z":
            pattern = f"{pattern[:start]}{_AT_END_IN_JAVA}{pattern[stop:]}"
    return pattern


def bounded_like(pattern: str) -> int | None:
    """The longest string that a `like` pattern decides; None if there is no limit.

    :raises PatternError: it contains too many `%`.
    """
    return bounded(regular_expression(pattern)).longest


def regular_expression(like: str) -> str:
    """The expression for a `like` pattern."""
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|%+|.", like, re.DOTALL)
    written = "".join(wild.get(part[:1]) or _escaped(part[-1]) for part in parts)
    return f"(?s)^{written}$"


def _escaped(character: str) -> str:
    return character if character.isalnum() else f"\\x{{{ord(character):x}}}"


def _ends(tree: Node) -> list[tuple[int, int]]:
    """The positions in the text that mean the end of the string."""
    ends = (part for part in parts_of(tree) if isinstance(part, End))
    return [(end.start, end.start + end.size) for end in ends]


def _size(node: Node) -> int:
    """A bound on the stack frames of one iteration, which tries a single branch of a choice."""
    sizes = {Concatenation: 0, Group: 2, Choice: 2, Repeat: 3}
    of_one = sum(isinstance(part, Repeat) and isinstance(part.body, One) for part in parts_of(node))
    return sum(sizes.get(type(part), 1) for part in parts_of(node)) - 3 * of_one


def _repeated_groups(
    node: Node, follow: Characters, *, is_given_back: bool
) -> Iterator[tuple[Repeat, Characters]]:
    """The repetitions whose iterations are recursive calls in Java, with what may follow each."""
    match node:
        case Repeat(body=body, high=high, mode=mode):
            is_tried = is_given_back or mode != "lazy"
            if not isinstance(body, One) and mode != "possessive" and high != 1:
                yield node, follow if is_tried else chars.ANYTHING
            yield from _repeated_groups(
                body,
                follow | first_of(body) if high != 1 else follow,
                is_given_back=is_given_back and mode != "possessive",
            )
        case Concatenation(items=items):
            for number, item in enumerate(items):
                yield from _repeated_groups(
                    item, first_behind(items[number + 1 :], follow), is_given_back=is_given_back
                )
        case Choice(branches=branches):
            for branch in branches:
                yield from _repeated_groups(branch, follow, is_given_back=is_given_back)
        case Group(body=body, kind=kind):
            inside = follow if kind in ("plain", "atomic") else chars.NO_CHARACTERS
            is_open = is_given_back and kind != "atomic"
            yield from _repeated_groups(body, inside, is_given_back=is_open)
        case _:
            return


def _with_classes(node: Node, pattern: str, edits: list[Edit]) -> Node:
    """The tree with classes for repeated groups of single characters, which Java matches in a loop.

    `(a|[b-c])+` becomes `[a[b-c]]+`.
    """
    match node:
        case Repeat(body=Group(body=inside, kind="plain", start=start, end=end)) if node.high != 1:
            branches = inside.branches if isinstance(inside, Choice) else (inside,)
            ones = [branch for branch in branches if isinstance(branch, One) and branch.within]
            # Flags in the group would be lost: `((?i)a|b)+`.
            if len(ones) == len(branches) and _PLAIN_GROUP.fullmatch(pattern, start, end):
                edits.append((start, end, f"[{''.join(branch.within for branch in ones)}]"))
                return replace(node, body=One(reduce(or_, (branch.characters for branch in ones))))
            return replace(node, body=_with_classes(node.body, pattern, edits))
        case Repeat(body=body) | Group(body=body):
            return replace(node, body=_with_classes(body, pattern, edits))
        case Concatenation(items=items):
            return Concatenation(tuple(_with_classes(item, pattern, edits) for item in items))
        case Choice(branches=branches):
            return Choice(tuple(_with_classes(branch, pattern, edits) for branch in branches))
        case _:
            return node
