"""Sets of characters, as in classes of regular expressions.

What only Unicode's tables could decide is overestimated: a set may contain more than the class.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

_LAST = 0x10FFFF
_ASCII = range(128)
_BEYOND = (128, _LAST)
_POSIX: dict[str, Callable[[str], bool]] = {
    "Lower": str.islower,
    "Upper": str.isupper,
    "ASCII": str.isascii,
    "Alpha": str.isalpha,
    "Digit": str.isdigit,
    "Alnum": str.isalnum,
    "Blank": lambda c: c in " \t",
    "Cntrl": lambda c: ord(c) < 32 or ord(c) == 127,
    "XDigit": lambda c: c in "0123456789abcdefABCDEF",
    "Space": lambda c: c in " \t\n\x0b\f\r",
    "Graph": lambda c: 33 <= ord(c) <= 126,
    "Print": lambda c: 32 <= ord(c) <= 126,
    "Punct": lambda c: 33 <= ord(c) <= 126 and not c.isalnum(),
}


@dataclass(frozen=True, slots=True)
class Characters:
    """Ranges of code points, ascending. `is_vague`: the characters beyond ASCII may be fewer."""

    ranges: tuple[tuple[int, int], ...]
    is_vague: bool = False

    def __or__(self, other: Characters) -> Characters:
        return Characters(_merged((*self.ranges, *other.ranges)), self.is_vague or other.is_vague)

    def __and__(self, other: Characters) -> Characters:
        ranges = [
            (max(a, c), min(b, d))
            for a, b in self.ranges
            for c, d in other.ranges
            if max(a, c) <= min(b, d)
        ]
        return Characters(_merged(ranges), self.is_vague or other.is_vague)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def inverted(self) -> Characters:
        gaps, start = [], 0
        for low, high in self.ranges:
            if low > start:
                gaps.append((start, low - 1))
            start = high + 1
        if start <= _LAST:
            gaps.append((start, _LAST))
        if self.is_vague:
            gaps.append(_BEYOND)
        return Characters(_merged(gaps), self.is_vague)

    def in_any_case(self, *, unicode: bool) -> Characters:
        ranges = list(self.ranges)
        for low, high in self.ranges:
            letters = (chr(code) for code in range(max(low, 65), min(high, 122) + 1))
            ranges += [(ord(c.swapcase()),) * 2 for c in letters if c.isalpha()]
        if unicode:  # the Kelvin sign is a k
            return Characters(_merged([*ranges, _BEYOND]), is_vague=True)
        return Characters(_merged(ranges), self.is_vague)


def _merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def one(code: int) -> Characters:
    return Characters(((code, code),))


def between(low: int, high: int) -> Characters:
    return Characters(((low, high),))


def listed(text: str) -> Characters:
    return Characters(_merged((ord(c), ord(c)) for c in text))


NOTHING = Characters(())
EVERYTHING = between(0, _LAST)
END = one(_LAST + 1)
"""The position after the last character, represented as a character."""
ANYTHING = EVERYTHING | END
LINE_ENDS = listed("\n\r\u0085\u2028\u2029")
DIGITS = between(48, 57)
SPACES = listed(" \t\n\x0b\f\r")
WORD = DIGITS | between(65, 90) | between(97, 122) | one(95)
HORIZONTAL = listed(" \t\u00a0\u1680\u180e\u202f\u205f\u3000") | between(0x2000, 0x200A)
VERTICAL = listed("\n\x0b\f\r\u0085\u2028\u2029")


def vague(characters: Characters) -> Characters:
    """The ASCII characters of a set, and possibly any beyond."""
    return Characters(_merged([*characters.ranges, _BEYOND]), is_vague=True)


def property_of(name: str, *, is_exact: bool) -> Characters:
    r"""The characters of `\p{name}`; with `is_exact` also those beyond ASCII."""
    bare = name.removeprefix("Is").removeprefix("general_category=").removeprefix("gc=")
    if name in _POSIX:
        return listed("".join(c for c in map(chr, _ASCII) if _POSIX[name](c)))
    if _CATEGORY.fullmatch(bare):
        return _of_category(bare, _LAST) if is_exact else vague(_of_category(bare, _ASCII[-1]))
    return Characters(EVERYTHING.ranges, is_vague=True)


_CATEGORY = re.compile("C[cfnos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")


@cache
def _of_category(name: str, last: int) -> Characters:
    """The characters of a general category of Unicode: `L` for all letters."""
    every = map(chr, range(last + 1))
    return listed("".join(c for c in every if unicodedata.category(c).startswith(name)))
