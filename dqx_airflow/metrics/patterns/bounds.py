"""Bounds of regular expressions: the length of strings for which time and stack are limited.

Java's matcher tries one way after the other, and uses a few stack frames for each iteration of a
group. An expression that may take exponential time is rejected. If there is only one way to leave a
repeated group, it is made possessive (`(ab|cd)+` becomes `(ab|cd)++`): Java then matches it in a
loop, with the same result. All others have a maximum length; longer strings cannot be decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from math import prod
from operator import or_
from typing import TypeAlias

from dqx_airflow.metrics.patterns import syntax as chars
from dqx_airflow.metrics.patterns.ambiguity import power
from dqx_airflow.metrics.patterns.syntax import (
    Anything,
    Characters,
    Choice,
    Concatenation,
    End,
    ExplodingError,
    Group,
    Node,
    One,
    Repeat,
    Start,
    ZeroWidth,
    parts_of,
    read,
    shortest,
)

_LONGEST_BY_POWER = {2: 10_000, 3: 700, 4: 150}
"""The number of characters that take about a second."""
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
    tree = read(pattern)
    edits: list[Edit] = [(*place, r"\z") for place in _ends(tree)]
    has_references = any(
        isinstance(part, Anything) and part.is_reference for part in parts_of(tree)
    )
    if not (is_as_written or has_references):
        tree = _with_classes(tree, pattern, edits)
    by_time = _longest_by_time(tree)
    limits = [] if by_time is None else [by_time]
    frames_a_character = 0.0
    for repeat, follow in _repeated_groups(tree, chars.NO_CHARACTERS, is_given_back=True):
        frames = 3 + _size(repeat.body)
        if repeat.high is not None and repeat.high * frames <= _FRAMES // 8:
            continue
        if not is_as_written and _is_left_in_one_way(repeat, follow):
            edits.append((repeat.end, repeat.end + (repeat.mode == "lazy"), "+"))
        else:
            frames_a_character += frames / max(1, shortest(repeat.body))
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
    return _longest_by_time(read(pattern))


def _longest_by_time(tree: Node) -> int | None:
    by_power = power(_without_rest(tree), is_anchored=False)
    if by_power > max(_LONGEST_BY_POWER):
        raise ExplodingError(
            f"for some strings the time would grow with power {by_power} of their length, "
            f"because repetitions of the same characters follow each other",
            "begin with ^, and separate repetitions by a character that neither of them matches",
        )
    longest = _LONGEST_BY_POWER.get(by_power)
    if longest is None:
        return None
    return int(longest / _choices(tree, _characters_of_loops(tree)) ** (1 / by_power))


def _choices(node: Node, loops: Characters) -> int:
    """The number of ways in which bounded repetitions may share characters with unbounded ones.

    `a{2,5}` next to `a+` tries four lengths for each position at which `a+` may end.
    """
    match node:
        case Repeat(body=body, low=low, high=int(high)):
            is_shared = bool(_characters_in(body) & loops)
            return (high - low + 1 if is_shared else 1) * _choices(body, loops)
        case Repeat(body=body) | Group(body=body):
            return _choices(body, loops)
        case Concatenation(items=parts) | Choice(branches=parts):
            return prod(_choices(part, loops) for part in parts)
        case _:
            return 1


def _characters_of_loops(node: Node) -> Characters:
    """The characters of unbounded repetitions."""
    loops = (part for part in parts_of(node) if isinstance(part, Repeat) and part.high is None)
    return reduce(or_, (_characters_in(loop.body) for loop in loops), chars.NO_CHARACTERS)


def _characters_in(node: Node) -> Characters:
    """All characters that a part may match."""
    characters = chars.NO_CHARACTERS
    for part in parts_of(node):
        match part:
            case One(characters=matched):
                characters |= matched
            case Anything():
                characters |= chars.EVERYTHING
    return characters


def _without_rest(tree: Node) -> Node:
    """The tree without a suffix that matches everything, such as `(?s).*$`."""
    match tree:
        case Concatenation(
            items=(*items, Repeat(body=One(characters=rest), low=0, high=None), End())
        ) if rest.ranges == chars.EVERYTHING.ranges:
            return Concatenation(tuple(items))
        case Concatenation(items=(*items, Group(kind="plain", body=body) as group)):
            return Concatenation((*items, replace(group, body=_without_rest(body))))
        case _:
            return tree


@cache
def ended(pattern: str) -> str:
    """One of our expressions, which are fast as written, with `$` as the end."""
    for start, stop in sorted(_ends(read(pattern)), reverse=True):
        pattern = f"{pattern[:start]}\\z{pattern[stop:]}"
    return pattern


def bounded_like(pattern: str) -> int | None:
    """The longest string that a `like` pattern decides; None if there is no limit.

    :raises PatternError: it contains too many `%`.
    """
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|%+|.", pattern, re.DOTALL)
    written = "".join(wild.get(part[:1]) or _escaped(part[-1]) for part in parts)
    return bounded(f"(?s)^{written}$").longest


def _escaped(character: str) -> str:
    return character if character.isalnum() else f"\\x{{{ord(character):x}}}"


def _ends(tree: Node) -> list[tuple[int, int]]:
    """The positions in the text that mean the end of the string."""
    ends = (part for part in parts_of(tree) if isinstance(part, End))
    return [(end.start, end.start + end.size) for end in ends]


def _size(node: Node) -> int:
    """The approximate number of frames of one iteration."""
    match node:
        case One():
            return 1
        case Choice(branches=branches):
            return 2 + max(map(_size, branches))
        case Concatenation(items=items):
            return sum(map(_size, items))
        case Repeat(body=One()):
            return 1
        case Repeat(body=body):
            return 3 + _size(body)
        case Group(body=body):
            return 2 + _size(body)
        case _:
            return 1


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
                follow | _first(body) if high != 1 else follow,
                is_given_back=is_given_back and mode != "possessive",
            )
        case Concatenation(items=items):
            for number, item in enumerate(items):
                yield from _repeated_groups(
                    item, _behind(items[number + 1 :], follow), is_given_back=is_given_back
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


def _is_left_in_one_way(repeat: Repeat, follow: Characters) -> bool:
    """True if the next character determines whether there is another iteration, and its path."""
    body = repeat.body
    again = _first(body)
    if repeat.low == repeat.high:
        return not _is_empty(body) and _is_decided(body, follow | again)
    return not _is_empty(body) and not again & follow and _is_decided(body, follow | again)


def _is_decided(node: Node, follow: Characters) -> bool:
    """True if the next character always determines the path."""
    match node:
        case Concatenation(items=items):
            return all(
                _is_decided(item, _behind(items[number + 1 :], follow))
                for number, item in enumerate(items)
            )
        case Choice(branches=branches):
            seen = chars.NO_CHARACTERS
            for branch in branches:
                first = _first(branch) | (follow if _is_empty(branch) else chars.NO_CHARACTERS)
                if seen & first:
                    return False
                seen |= first
            return all(_is_decided(branch, follow) for branch in branches)
        case Repeat(body=body, low=low, high=high):
            if isinstance(body, One) and low == high:
                return True
            # A reluctant part may be asked for more characters later.
            return node.mode != "lazy" and _is_left_in_one_way(node, follow)
        case Group(body=body, kind="plain"):
            return _is_decided(body, follow)
        case One() | End() | Start() | ZeroWidth():
            return True
        case _:
            return False


def _behind(items: tuple[Node, ...], follow: Characters) -> Characters:
    characters = chars.NO_CHARACTERS
    for item in items:
        characters |= _first(item)
        if not _is_empty(item):
            return characters
    return characters | follow


def _first(node: Node) -> Characters:
    """The possible first characters of a part: all of them for a zero-width assertion."""
    match node:
        case One(characters=characters):
            return characters
        case End():
            return chars.END
        case Concatenation(items=items):
            return _behind(items, chars.NO_CHARACTERS)
        case Choice(branches=branches):
            first = chars.NO_CHARACTERS
            for branch in branches:
                first |= _first(branch)
            return first
        case Repeat(body=body) | Group(body=body, kind="plain" | "atomic"):
            return _first(body)
        case _:
            return chars.ANYTHING


def _is_empty(node: Node) -> bool:
    """True if a part may match the empty string."""
    match node:
        case Concatenation(items=items):
            return all(map(_is_empty, items))
        case Choice(branches=branches):
            return any(map(_is_empty, branches))
        case Repeat(body=body, low=low):
            return low == 0 or _is_empty(body)
        case Group(body=body, kind="plain" | "atomic"):
            return _is_empty(body)
        case One() | End():
            return False
        case _:
            return True
