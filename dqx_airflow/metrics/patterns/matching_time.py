"""The time that a match takes: the length of strings for which it is limited.

Java's matcher tries one way after the other. It has a choice only where the next character does not
decide. One rule excludes exponential time: a string can be split into the iterations of a repeated
group in one way only. Then the time is at most the product of all choices: a repetition that may
end at several places multiplies it by the length of the string, and so does the search for the
start of a match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product, takewhile
from math import inf
from typing import NamedTuple, TypeAlias

from dqx_airflow.metrics.patterns import syntax as chars
from dqx_airflow.metrics.patterns.next_characters import (
    characters_in,
    first_behind,
    first_of,
    has_loop,
    is_decided,
    is_left_in_one_way,
    is_loop,
    may_be_empty,
)
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
    lengths,
    parts_of,
)

_MOST_WAYS = 100_000
"""More ways to match parts of limited length may not be tried at one position."""
_EXPLODES = "some strings would take exponential time: there are many ways to split them among the "
_HINT = (
    "do not let a repetition begin with what may follow it: "
    "^[a-z]+(,[a-z]+)*$ instead of ^([a-z]+,?)+$"
)
_MOST_PAIRS = 8_000
"""Loops with more pairs of states cannot be analysed in reasonable time."""
_LONGEST_BY_POWER = {1: 100_000_000, 2: 10_000, 3: 700, 4: 150}
"""The number of characters that take about a second."""
_FEW_WAYS = 100
_Rest: TypeAlias = tuple[Node, ...]


def longest_by_time(tree: Node) -> int | None:
    """The length of strings that an expression decides in about a second; None without a limit.

    :raises ExplodingError: some strings would take exponential time, or nearly so.
    """
    everywhere = Repeat(One(chars.EVERYTHING), 0, None, "lazy", 0)
    start = () if _starts_anchored(tree) else (everywhere,)
    part = _fallible(tree)
    items = part.items if isinstance(part, Concatenation) else (part,)
    ways, power = _ways(Concatenation((*start, *items)), ())
    power += 1  # each of them reads up to the end of the string
    if power > max(_LONGEST_BY_POWER):
        raise ExplodingError(
            f"for some strings the time would grow with power {power} of their length, "
            f"because repetitions of the same characters follow each other",
            "begin with ^, and separate repetitions by a character that neither of them matches",
        )
    if ways > _MOST_WAYS:
        raise ExplodingError(f"{_EXPLODES}many optional parts", _HINT)
    if power == 1 and ways <= _FEW_WAYS:
        return None
    return int(_LONGEST_BY_POWER[power] / ways ** (1 / power))


def _fallible(node: Node) -> Node:
    """The node at the end of an expression, without the parts that always match there."""
    match node:
        case Concatenation(items=items):
            while items:
                *before, last = items
                match items[-2:]:
                    case (Repeat(body=One(characters=chars.EVERYTHING)), End()):
                        last = chars.NOTHING
                if (last := _fallible(last)) != chars.NOTHING:
                    return Concatenation((*before, last))
                items = tuple(before)
            return chars.NOTHING
        case Group(body=body, kind="plain"):
            return replace(node, body=_fallible(body))
        case Repeat(body=One(), low=low):
            return replace(node, high=low) if low else chars.NOTHING
        case _:
            return node


class _Ways(NamedTuple):
    """A bound on the number of ways to match at one position: `number * length ** power`."""

    number: int
    power: int


_ONE_WAY = _Ways(1, 0)


def _ways(node: Node, rest: _Rest) -> _Ways:
    """The ways to match a node. The matcher tries several only where the next character does not
    decide.

    :param rest: all that follows, up to the end of the expression.
    :raises PatternError: the number may be exponential.
    """
    match node:
        case Concatenation(items=items):
            ways = _ways_of_sequence(items, rest)
        case Choice(branches=branches):
            ways = _ways_of_choice(branches, rest)
        case Group(body=body, kind=kind):
            ways = _ways(body, rest if kind in ("plain", "atomic") else ())
        case Repeat(high=int(high)) if high == 1 or not has_loop(node):
            ways = _ways_of_few(node, high, rest)
        case Repeat():
            ways = _ways_of_loop(node, rest)
        case _:
            ways = _ONE_WAY
    return _Ways(min(ways.number, _MOST_WAYS + 1), ways.power)


def _ways_of_sequence(items: tuple[Node, ...], rest: _Rest) -> _Ways:
    """The product of the ways of each item."""
    number = 1
    power = 0
    for at, item in enumerate(items):
        ways = _ways(item, (*items[at + 1 :], *rest))
        number *= ways.number
        power += ways.power
        if number > _MOST_WAYS or power > max(_LONGEST_BY_POWER):
            break
    return _Ways(number, power)


def _ways_of_choice(branches: tuple[Node, ...], rest: _Rest) -> _Ways:
    """The most ways of branches that begin with the same character."""
    ways = [_ways(branch, rest) for branch in branches]
    firsts = [first_of(branch).ranges for branch in branches]
    beginnings = {low for ranges in firsts for low, _ in ranges} or {0}
    most = 0
    for character in beginnings:
        possible = (
            one.number
            for one, ranges in zip(ways, firsts, strict=True)
            if any(low <= character <= high for low, high in ranges)
        )
        most = max(most, sum(possible))
    return _Ways(most, max(one.power for one in ways))


def _ways_of_few(repeat: Repeat, high: int, rest: _Rest) -> _Ways:
    """The ways of a repetition with a small number of iterations."""
    again = (replace(repeat, low=0), *rest) if high > 1 else rest
    ways = _ways(repeat.body, again)
    is_left_early = not is_left_in_one_way(repeat, first_behind(rest, chars.NO_CHARACTERS))
    ends = high - repeat.low + 1 if is_left_early else 1
    return _Ways(ways.number**high * ends, ways.power)


def _ways_of_loop(repeat: Repeat, rest: _Rest) -> _Ways:
    """The ways of a repetition with any number of iterations.

    :raises PatternError: a string may be split into its iterations in several ways.
    """
    body = repeat.body
    is_possessive = repeat.mode == "possessive"
    if not (isinstance(body, One) or is_possessive):
        _refuse_ambiguous(repeat)
    again = (replace(repeat, low=0), *rest)
    number, power = _ways(body, again)
    if not is_possessive:
        number, power = _ways_out(repeat, rest)
    elif has_loop(body) and not is_decided(body, first_behind(again, chars.NO_CHARACTERS)):
        power += 1  # it is not given back, but each iteration may read ahead in vain
    opaque = [part for part in parts_of(body) if _is_opaque(part) and has_loop(part)]
    power += max((1 + _ways(part, ()).power for part in opaque), default=0)
    return _Ways(number, power)


def _ways_out(repeat: Repeat, rest: _Rest) -> _Ways:
    """The ways to leave a repetition that have not failed.

    For each later way out, an earlier one has to match one more iteration, and what follows it at
    a fixed distance. If it can match only some characters that these need, the others have failed.
    """
    follow = first_behind(rest, chars.NO_CHARACTERS)
    if is_left_in_one_way(repeat, follow) or not any(map(has_loop, rest)):
        return _ONE_WAY
    head = takewhile(lambda item: len({*lengths(item)}) == 1, rest)
    needed = (*_needed(repeat.body), *_needed(Concatenation(tuple(head))))
    most = min((_most(Concatenation(rest), one) for one in needed), default=inf)
    return _Ways(1, 1) if most == inf else _Ways(2 + int(most), 0)


def _most(node: Node, characters: Characters) -> float:
    """The maximum number of characters of a set that a node can match."""
    match node:
        case One(characters=own):
            return int(bool(own & characters))
        case Concatenation(items=parts) | Choice(branches=parts):
            return sum(_most(part, characters) for part in parts)
        case Repeat(body=body, high=high):
            each = _most(body, characters)
            return each and each * (inf if high is None else high)
        case Group(body=body, kind="plain" | "atomic"):
            return _most(body, characters)
        case Anything(length=length):
            return inf if length is None else length
        case _:
            return inf if has_loop(node) else 0


def _is_opaque(node: Node) -> bool:
    return isinstance(node, Group) and node.kind != "plain"


def _refuse_ambiguous(repeat: Repeat) -> None:
    """Rejects a repetition of which two runs over one string may part and meet again.

    :raises PatternError: they do, or may do.
    """
    body = repeat.body
    if may_be_empty(body) and repeat.low > 1:
        message = f"{_EXPLODES}iterations of a repetition that may be empty"
        raise ExplodingError(message, "let each iteration match at least one character")
    if is_decided(body, first_of(body)) and not may_be_empty(body):
        return
    flat = "repetition whose alternatives or parts overlap"
    kind = "nested repetition" if has_loop(body) else flat
    ambiguous = ExplodingError(f"{_EXPLODES}iterations of a {kind}", _HINT)
    if any(isinstance(part, Repeat) and may_be_empty(part.body) for part in parts_of(body)):
        raise ambiguous
    steps = cache(lambda rest: tuple(enumerate(_steps(rest))))
    start: _Rest = (replace(repeat, low=0, high=None),)
    seen = {(start, start)}
    waiting = [*seen]
    while waiting:
        left, right = waiting.pop()
        for (one, (some, a)), (other, (more, b)) in product(steps(left), steps(right)):
            if some & more:
                if a == b and (left != right or one != other):
                    raise ambiguous
                if (a, b) not in seen:
                    seen.add((a, b))
                    waiting.append((a, b))
        if len(seen) > _MOST_PAIRS:
            message = "the pattern is too large to bound its run time"
            raise ExplodingError(message, "use several assertions, or `in [...]`")


def _steps(items: _Rest) -> Iterator[tuple[Characters, _Rest]]:
    """The next character in each way to match the items, with what is left to match behind it.

    These are the partial derivatives of Antimirov, "Partial derivatives of regular expressions and
    finite automaton constructions" (1996), each as often as it occurs.
    """
    if not items:
        return
    node = items[0]
    rest = items[1:]
    match node:
        case One(characters=characters):
            yield characters, rest
        case Concatenation(items=inner):
            yield from _steps((*inner, *rest))
        case Choice(branches=branches):
            for branch in branches:
                yield from _steps((branch, *rest))
        case Group(kind="plain", body=body):
            yield from _steps((body, *rest))
        case Group(kind="atomic") | Anything():
            # There is one way to match it: as its characters, in any order.
            fewest, most = lengths(node)
            any_of_it = One(characters_in(node))
            yield from _steps((Repeat(any_of_it, min(fewest, 1), most, "greedy", 0), *rest))
        case Repeat(body=body, low=low, high=high):
            if is_loop(node):
                low = min(low, 1)
                high = None
            if high != 0:
                again = replace(node, low=max(low - 1, 0), high=high and high - 1)
                for characters, behind in _steps((body,)):
                    yield characters, (*behind, again, *rest)
            if low == 0 or may_be_empty(body):
                yield from _steps(rest)
        case _:
            yield from _steps(rest)


def _needed(node: Node) -> tuple[Characters, ...]:
    """Sets of characters of which a part takes at least one each."""
    match node:
        case One(characters=characters):
            return (characters,)
        case Concatenation(items=items):
            return tuple(characters for item in items for characters in _needed(item))
        case Repeat(body=body, low=low) if low > 0:
            return _needed(body)
        case Group(body=body, kind="plain" | "atomic"):
            return _needed(body)
        case _:
            return ()


def _starts_anchored(node: Node) -> bool:
    """True if it can only match at the start of a string."""
    match node:
        case Start():
            return True
        case Concatenation(items=items):
            for item in items:
                if _starts_anchored(item):
                    return True
                if lengths(item) != (0, 0):
                    return False
            return False
        case Choice(branches=branches):
            return all(map(_starts_anchored, branches))
        case Group(body=body, kind="plain" | "atomic"):
            return _starts_anchored(body)
        case _:
            return False
