"""Regular expressions that take exponential time on some texts, such as `(a+)+b`.

A backtracking matcher, Java's as well as Python's, tries every way to split a text among nested
repetitions. There are many ways where a turn of the outer repetition can be as long or as short as
the inner one likes, and nothing between two turns marks where one ends.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any, TypeAlias

if sys.version_info >= (3, 11):
    from re import _constants as constants
    from re import _parser as parser
else:
    import sre_constants as constants
    import sre_parse as parser

Characters: TypeAlias = frozenset[int]
Sequence: TypeAlias = list[tuple[Any, Any]]

_SAMPLE = (*range(128), 0xE4, 0x3B1, 0x4E2D, 0x1F600)
"""The characters by which sets are compared: all of ASCII, and one of each kind beyond it."""
_EVERYTHING: Characters = frozenset(_SAMPLE)
_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT)
_MANY = 20
"""A repetition that may take so many turns counts as endless."""


def may_explode(pattern: str) -> bool:
    """True where a repetition in the pattern, which compiles, can split a text in many ways."""
    return _explodes(list(parser.parse(pattern)))


def _explodes(items: Sequence) -> bool:
    for operation, argument in items:
        if operation in _REPEATS and argument[1] >= _MANY and _is_ambiguous(list(argument[2])):
            return True
        if any(_explodes(inner) for inner in _inner(operation, argument)):
            return True
    return False


def _is_ambiguous(body: Sequence) -> bool:
    """True where turns of a repetition of `body` have no mark between them."""
    body = _unwrapped(body)
    if len(body) == 1 and body[0][0] is constants.BRANCH:
        return any(_is_ambiguous(list(branch)) for branch in body[0][1][1])
    for number, (operation, argument) in enumerate(body):
        if operation not in _REPEATS or argument[1] < _MANY:
            continue
        repeated = _everything_in(list(argument[2]))
        others = body[:number] + body[number + 1 :]
        if not any(_marks(other, repeated) for other in others):
            return True
    return False


def _marks(item: tuple[Any, Any], repeated: Characters) -> bool:
    """True where the item has to stand in every turn, and cannot be taken for what is repeated."""
    operation, argument = item
    if operation in _REPEATS and argument[0] == 0:
        return False
    characters = _everything_in([item])
    return bool(characters) and not characters & repeated


def _unwrapped(body: Sequence) -> Sequence:
    """What stands in a group that is all of the body."""
    while len(body) == 1 and body[0][0] is constants.SUBPATTERN:
        body = list(body[0][1][-1])
    return body


def _inner(operation: Any, argument: Any) -> list[Sequence]:
    """The sequences within an item."""
    if operation in _REPEATS:
        return [list(argument[2])]
    if operation is constants.SUBPATTERN:
        return [list(argument[-1])]
    if operation is constants.BRANCH:
        return [list(branch) for branch in argument[1]]
    if operation in (constants.ASSERT, constants.ASSERT_NOT):
        return [list(argument[1])]
    return []


def _everything_in(items: Sequence) -> Characters:
    """All characters that may stand in what the items match."""
    found: set[int] = set()
    for operation, argument in items:
        characters = _characters(operation, argument)
        if characters is not None:
            found |= characters
        for inner in _inner(operation, argument):
            found |= _everything_in(inner)
    return frozenset(found)


def _characters(operation: Any, argument: Any) -> Characters | None:
    """The characters of an item that matches one; None for other items."""
    if operation is constants.LITERAL:
        return frozenset({argument if argument < 128 else _SAMPLE[-1]})
    if operation is constants.NOT_LITERAL:
        return _EVERYTHING - {argument}
    if operation is constants.ANY:
        return _EVERYTHING - {10}
    if operation is not constants.IN:
        return None
    found: set[int] = set()
    for kind, value in argument:
        if kind is constants.LITERAL:
            found.add(value if value < 128 else _SAMPLE[-1])
        elif kind is constants.RANGE:
            found |= {code for code in _SAMPLE if value[0] <= code <= value[1]}
        elif kind is constants.CATEGORY:
            found |= _category(value)
    is_negated = argument[0][0] is constants.NEGATE
    return _EVERYTHING - found if is_negated else frozenset(found)


@cache
def _category(name: Any) -> Characters:
    """The characters of a class such as `\\d`."""
    sign = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(name).rsplit("_", 1)[-1]]
    pattern = f"\\{sign.upper() if '_NOT_' in str(name) else sign}"
    return frozenset(code for code in _SAMPLE if re.match(pattern, chr(code)))
