"""Bounds of regular expressions: the length of strings for which time and stack are limited.

Java's matcher tries one way after the other, and uses a few stack frames for each iteration of a
group. It has a choice only where the next character does not decide. One rule excludes exponential
time: a string can be split into the iterations of a repeated group in one way only. Then the time
is at most the product of all choices: a repetition that may end at several places multiplies it by
the length of the string, and so does the search for the start of a match.

If the next character decides when to leave a group, the group is made possessive (`(ab|cd)+`
becomes `(ab|cd)++`): Java then matches it in a loop, with the same result. All others have a
maximum length; longer strings cannot be decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import product, takewhile
from math import inf
from operator import or_
from typing import TypeAlias

from dqx_airflow.metrics.patterns import syntax as chars
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
    PatternError,
    Repeat,
    Start,
    lengths,
    parts_of,
    pattern_tree,
)

_MOST_TURNS = 10
"""Repetitions of more are treated as unbounded."""
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
_PLAIN_GROUP = re.compile(r"\((?:\?:|\?<[a-zA-Z]\w*>|(?!\?))(?:(?!\(\?).)*", re.DOTALL)
Edit: TypeAlias = tuple[int, int, str]
_Rest: TypeAlias = tuple[Node, ...]
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
    by_time = _longest_by_time(tree)
    limits = [] if by_time is None else [by_time]
    frames_a_character = 0.0
    for repeat, follow in _repeated_groups(tree, chars.NO_CHARACTERS, is_given_back=True):
        frames = 3 + _size(repeat.body)
        if repeat.high is not None and repeat.high * frames <= _FRAMES // 8:
            continue
        # A lazy part may be asked for more characters later, which `++` would not allow.
        is_lazy = any(
            isinstance(part, Repeat) and part.mode == "lazy" for part in parts_of(repeat.body)
        )
        if not (is_as_written or is_lazy) and _is_left_in_one_way(repeat, follow):
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
    return _longest_by_time(pattern_tree(pattern))


def _longest_by_time(tree: Node) -> int | None:
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


def _ways(node: Node, rest: _Rest) -> tuple[int, int]:
    """A bound on the number of ways to match at one position: `ways`, `power` stand for `ways *
    length ** power`.

    The matcher tries several ways only where the next character does not decide.

    :param rest: all that follows, up to the end of the expression.
    :raises PatternError: the number may be exponential.
    """
    match node:
        case Concatenation(items=items):
            ways, power = 1, 0
            for at, item in enumerate(items):
                count, more = _ways(item, (*items[at + 1 :], *rest))
                ways, power = ways * count, power + more
                if ways > _MOST_WAYS or power > max(_LONGEST_BY_POWER):
                    break
        case Choice(branches=branches):
            each = [_ways(branch, rest) for branch in branches]
            firsts = [_first(branch).ranges for branch in branches]
            ways = max(
                sum(
                    count
                    for (count, _), ranges in zip(each, firsts, strict=True)
                    if any(low <= at <= high for low, high in ranges)
                )
                for at in {low for ranges in firsts for low, _ in ranges} or {0}
            )
            power = max(power for _, power in each)
        case Group(body=body, kind=kind):
            ways, power = _ways(body, rest if kind in ("plain", "atomic") else ())
        case Repeat(body=body, low=low, high=int(high)) if high == 1 or not _has_loop(node):
            again = (replace(node, low=0), *rest) if high > 1 else rest
            ways, power = _ways(body, again)
            is_decided = _is_left_in_one_way(node, _behind(rest, chars.NO_CHARACTERS))
            ways = ways**high * (1 if is_decided else high - low + 1)
        case Repeat(body=body):
            if not (isinstance(body, One) or node.mode == "possessive"):
                _refuse_ambiguous(node)
            again = (replace(node, low=0), *rest)
            ways, power = _ways(body, again)
            if node.mode != "possessive":
                ways, power = _ways_out(node, rest)
            elif _has_loop(body) and not _is_decided(body, _behind(again, chars.NO_CHARACTERS)):
                power += 1  # it is not given back, but each iteration may read ahead in vain
            opaque = [part for part in parts_of(body) if _is_opaque(part) and _has_loop(part)]
            power += max((1 + _ways(part, ())[1] for part in opaque), default=0)
        case _:
            ways, power = 1, 0
    return min(ways, _MOST_WAYS + 1), power


def _ways_out(repeat: Repeat, rest: _Rest) -> tuple[int, int]:
    """A bound on the number of ways to leave a repetition that have not failed, as for `_ways`.

    For each later way out, an earlier one has to match one more iteration, and what follows it at
    a fixed distance. If it can match only some characters that these need, the others have failed.
    """
    follow = _behind(rest, chars.NO_CHARACTERS)
    if _is_left_in_one_way(repeat, follow) or not any(map(_has_loop, rest)):
        return 1, 0
    head = takewhile(lambda item: len({*lengths(item)}) == 1, rest)
    needed = (*_needed(repeat.body), *_needed(Concatenation(tuple(head))))
    most = min((_most(Concatenation(rest), one) for one in needed), default=inf)
    return (1, 1) if most == inf else (2 + int(most), 0)


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
            return inf if _has_loop(node) else 0


def _is_opaque(node: Node) -> bool:
    return isinstance(node, Group) and node.kind != "plain"


def _refuse_ambiguous(repeat: Repeat) -> None:
    """Rejects a repetition of which two runs over one string may part and meet again.

    :raises PatternError: they do, or may do.
    """
    body = repeat.body
    if _is_empty(body) and repeat.low > 1:
        message = f"{_EXPLODES}iterations of a repetition that may be empty"
        raise ExplodingError(message, "let each iteration match at least one character")
    if _is_decided(body, _first(body)) and not _is_empty(body):
        return
    flat = "repetition whose alternatives or parts overlap"
    kind = "nested repetition" if _has_loop(body) else flat
    ambiguous = ExplodingError(f"{_EXPLODES}iterations of a {kind}", _HINT)
    if any(isinstance(part, Repeat) and _is_empty(part.body) for part in parts_of(body)):
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
    node, rest = items[0], items[1:]
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
            any_of_it = One(_characters_in(node))
            yield from _steps((Repeat(any_of_it, min(fewest, 1), most, "greedy", 0), *rest))
        case Repeat(body=body, low=low, high=high):
            if _is_loop(node):
                low, high = min(low, 1), None
            if high != 0:
                again = replace(node, low=max(low - 1, 0), high=high and high - 1)
                for characters, behind in _steps((body,)):
                    yield characters, (*behind, again, *rest)
            if low == 0 or _is_empty(body):
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


def _has_loop(node: Node) -> bool:
    return any(
        _is_loop(part) or (isinstance(part, Anything) and part.length is None)
        for part in parts_of(node)
    )


def _is_loop(node: Node) -> bool:
    return isinstance(node, Repeat) and (node.high is None or node.high > _MOST_TURNS)


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


@cache
def ended(pattern: str) -> str:
    """An expression of the package, fast as written, with `$` meaning the end of the string."""
    for start, stop in sorted(_ends(pattern_tree(pattern)), reverse=True):
        pattern = f"{pattern[:start]}\\z{pattern[stop:]}"
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
    is_decided = _is_decided(body, follow | again)
    return not _is_empty(body) and is_decided and (repeat.low == repeat.high or not again & follow)


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
                if seen & first or not _is_decided(branch, follow):
                    return False
                seen |= first
            return True
        case Repeat(body=body, low=low, high=high):
            is_fixed = isinstance(body, One) and low == high
            return is_fixed or _is_left_in_one_way(node, follow)
        case Group(body=body, kind="plain"):
            return _is_decided(body, follow)
        case Group(kind="atomic") | Anything():
            return False
        case _:
            return True


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
    return lengths(node)[0] == 0


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
                _written(item, pattern, _behind(items[number + 1 :], follow))
                for number, item in enumerate(items)
                if not (number and _is_certain(items[number - 1], item))
            )
            return f"(?:{''.join(parts)})"
        case Choice(branches=branches):
            return f"(?:{'|'.join(_written(branch, pattern, follow) for branch in branches)})"
        case Repeat(body=body, low=low, high=high, mode=mode):
            # A possessive part that is left in one way only takes what a greedy one takes.
            if mode != "possessive" or _is_left_in_one_way(node, follow):
                inside = _written(body, pattern, follow | _first(body))
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
            return not _is_empty(body)
    return False
