"""The tree of a regular expression: the one form for judgements and translations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dqx_airflow.patterns.characters import Characters

Kind: TypeAlias = Literal["plain", "atomic", "ahead", "behind"]


Mode: TypeAlias = Literal["greedy", "lazy", "possessive"]


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set. `within` is how it is written between brackets."""

    characters: Characters
    within: str = ""


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after the other; without items, nothing."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`end` is where its quantifier ends in the text, without the sign of its mode."""

    body: Node
    low: int
    high: int | None
    mode: Mode
    end: int


@dataclass(frozen=True, slots=True)
class Group:
    """A group from `start` to `end` of the text.

    `opening` is what is behind its parenthesis as every dialect writes it, without a name or flags.
    """

    body: Node
    kind: Kind
    start: int
    end: int
    opening: str = "?:"


@dataclass(frozen=True, slots=True)
class ZeroWidth:
    r"""A zero-width assertion: `^` or `$` of a line, `\b`, `\B` or `\G`."""

    written: str


@dataclass(frozen=True, slots=True)
class Start:
    """The start of the string."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of the string, written in the text at `start` with two characters or one."""

    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Anything:
    """A string that is not known: what a group took, by its number, or a cluster of characters.

    `length` is how many characters it has, None where that is not known.
    """

    group: int | None
    length: int | None = None

    @property
    def is_reference(self) -> bool:
        return self.group is not None


Node: TypeAlias = One | Concatenation | Choice | Repeat | Group | ZeroWidth | Start | End | Anything


NOTHING = Concatenation(())


def parts_of(node: Node) -> Iterator[Node]:
    """The node and all nodes in it."""
    yield node
    match node:
        case Concatenation(items=parts) | Choice(branches=parts):
            for part in parts:
                yield from parts_of(part)
        case Repeat(body=body) | Group(body=body):
            yield from parts_of(body)


def longest(node: Node) -> int | None:
    """The most characters that a part can take; None without end."""
    match node:
        case One():
            return 1
        case Concatenation(items=parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else sum(filter(None, lengths))
        case Choice(branches=parts):
            lengths = [longest(part) for part in parts]
            return None if None in lengths else max(filter(None, lengths), default=0)
        case Repeat(body=body, high=high):
            length = longest(body)
            return 0 if length == 0 else None if length is None or high is None else length * high
        case Group(body=body, kind=kind):
            return longest(body) if kind in ("plain", "atomic") else 0
        case Anything(length=length):
            return length
        case _:
            return 0


def shortest(node: Node) -> int:
    """The fewest characters that a part can take."""
    match node:
        case One():
            return 1
        case Concatenation(items=parts):
            return sum(map(shortest, parts))
        case Choice(branches=parts):
            return min(map(shortest, parts))
        case Repeat(body=body, low=low):
            return shortest(body) * low
        case Group(body=body, kind=kind):
            return shortest(body) if kind in ("plain", "atomic") else 0
        case Anything(length=length):
            return length or 0
        case _:
            return 0
