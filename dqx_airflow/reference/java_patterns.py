"""Regular expressions as Java reads them, for Python's `re`.

Where the two differ, the expression is written anew: `.` stops at more line ends in Java, flags
hold from their place on, and there are more classes of characters. `$` is the very end. The
flag for ASCII makes `\\d`, `\\w`, `\\s` and `(?i)` mean in Python what they mean in Java.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

_LINE_END = r"\n\r\u0085\u2028\u2029"
_END_OF_LINE = r"(?:(?=\r\n)|(?<!\r)(?=\n)|(?=[\r\u0085\u2028\u2029])|\Z)"
_START_OF_LINE = r"(?!\Z)(?:\A|(?<=[\n\u0085\u2028\u2029])|(?<=\r)(?!\n))"

_HORIZONTAL = r" \t\u00a0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_VERTICAL = r"\n\x0b\f\r\u0085\u2028\u2029"
_CHARACTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
_CODED = re.compile(
    r"x\{(?P<long>[0-9a-fA-F]{1,6})\}|x(?P<byte>[0-9a-fA-F]{2})|u(?P<unit>[0-9a-fA-F]{4})"
    r"|0(?P<octal>[0-3]?[0-7]{1,2})|c(?P<control>.)",
    re.DOTALL,
)
_PROPERTY = re.compile(r"[pP](\{(?P<name>\^?\w+)\}|(?P<letter>\w))")
_GROUP = re.compile(r"\?(?:<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>|(?P<plain><?[=!]|:|>))")
_FLAGS = re.compile(r"\?(?P<on>[a-zA-Z]*)(?:-(?P<off>[a-zA-Z]+))?(?P<end>[:)])")


class UntranslatableError(ValueError):
    """Python has nothing for a part of the expression; the message says for which."""


@cache
def compile_java(pattern: str) -> re.Pattern[str]:
    """The expression for `search`, which finds what Java's `find` finds.

    :raises UntranslatableError: Python cannot do what it asks for.
    """
    try:
        return re.compile(_Translation(pattern).all(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise UntranslatableError(f'"{pattern}": {error}') from error


@cache
def compile_like(pattern: str) -> re.Pattern[str]:
    """A `like` pattern for `fullmatch`."""
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    return re.compile("".join(wild.get(part) or re.escape(part[-1]) for part in parts), re.DOTALL)


@dataclass(slots=True)
class _Level:
    """A group: the flags that hold in it, and those for which groups were opened in its midst."""

    flags: frozenset[str]
    opened: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Translation:
    """Reads a pattern from left to right."""

    pattern: str
    position: int = 0
    levels: list[_Level] = field(default_factory=lambda: [_Level(frozenset())])

    def all(self) -> str:
        parts = []
        while self.position < len(self.pattern):
            parts.append(self._next())
        return "".join(parts) + ")" * len(self.levels[-1].opened)

    def _next(self) -> str:
        character = self._take()
        flags = self.levels[-1].flags
        match character:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._open()
            case ")":
                return ")" * (1 + len(self._close().opened))
            case "|":
                opened = self.levels[-1].opened
                return ")" * len(opened) + "|" + "".join(opened)
            case ".":
                return r"[\s\S]" if "s" in flags else f"[^{_LINE_END}]"
            case "^":
                return _START_OF_LINE if "m" in flags else r"\A"
            case "$":
                return _END_OF_LINE if "m" in flags else r"\Z"
            case "#" if "x" in flags:
                self._skip_comment()
                return ""
            case _ if "x" in flags and character.isspace():
                return ""
            case _:
                return character

    def _take(self) -> str:
        character = self.pattern[self.position]
        self.position += 1
        return character

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self.pattern, self.position)
        if found:
            self.position = found.end()
        return found

    def _skip_comment(self) -> None:
        end = self.pattern.find("\n", self.position)
        self.position = len(self.pattern) if end < 0 else end + 1

    def _refuse(self, what: str) -> UntranslatableError:
        return UntranslatableError(f'"{self.pattern}": {what}')

    # Groups

    def _open(self) -> str:
        flags = self.levels[-1].flags
        found = self._match(_GROUP)
        if found or not self.pattern.startswith("?", self.position):
            self.levels.append(_Level(flags))
            if found is None:
                return "("
            return f"(?P<{found['name']}>" if found["name"] else f"(?{found['plain']}"
        found = self._match(_FLAGS)
        if found is None or set(found["on"] + (found["off"] or "")) - set("imsx"):
            raise self._refuse("a group or flag that Python has not")
        opening = _case_group(found["on"], found["off"] or "")
        changed = (flags | set(found["on"])) - set(found["off"] or "")
        if found["end"] == ":":
            self.levels.append(_Level(changed))
            return opening or "(?:"
        level = self.levels[-1]
        level.flags = changed
        if opening:
            level.opened.append(opening)
        return opening

    def _close(self) -> _Level:
        if len(self.levels) == 1:
            raise self._refuse("a parenthesis is closed that was not opened")
        return self.levels.pop()

    # Characters and their classes

    def _escape(self) -> str:
        """What stands behind a backslash, outside of brackets."""
        following = self.pattern[self.position : self.position + 1]
        match following:
            case "A" | "b" | "B":
                return "\\" + self._take()
            case "Z" | "z":
                self._take()
                return r"\Z"
            case "R":
                self._take()
                return rf"(?:\r\n|[{_VERTICAL}])"
            case "Q":
                return re.escape(self._quoted())
            case "k":
                found = self._match(re.compile(r"k<(\w+)>"))
                if found is None:
                    raise self._refuse(r"\k without a name")
                return f"(?P={found[1]})"
            case _ if following.isdigit() and following != "0":
                found = self._match(re.compile(r"\d+"))
                assert found is not None
                return rf"(?:\{found[0]})"
            case _:
                inside = self._in_class()
                return inside if len(inside) == 1 and inside.isalnum() else f"[{inside}]"

    def _quoted(self) -> str:
        self._take()
        end = self.pattern.find(r"\E", self.position)
        quoted = self.pattern[self.position : end if end >= 0 else None]
        self.position = end + 2 if end >= 0 else len(self.pattern)
        return quoted

    def _in_class(self) -> str:
        """What stands behind a backslash, as it is written within brackets."""
        found = self._match(_PROPERTY)
        if found:
            return self._property(found)
        found = self._match(_CODED)
        if found:
            return _literal(_coded(found))
        character = self._take() if self.position < len(self.pattern) else ""
        match character:
            case "d" | "D" | "w" | "W" | "s" | "S":
                return "\\" + character
            case "h" | "v":
                return _HORIZONTAL if character == "h" else _VERTICAL
            case "H" | "V":
                return _complement(_HORIZONTAL if character == "H" else _VERTICAL)
            case _ if character in _CHARACTERS:
                return _literal(_CHARACTERS[character])
            case _ if not character or (character.isascii() and character.isalnum()):
                raise self._refuse(f"\\{character}, which Python has not")
            case _:
                return _literal(character)

    def _property(self, found: re.Match[str]) -> str:
        name = found["letter"] or found["name"]
        is_negative = found[0].startswith("P")
        if name in _POSIX:
            inside = _POSIX[name]
        else:
            categories = _categories(name.removeprefix("Is"))
            if not categories:
                raise self._refuse(f"the class {name} of characters")
            inside = _ranges_of(categories)
        return _complement(inside) if is_negative else inside

    def _class(self) -> str:
        parts = ["["]
        if self.pattern.startswith("^", self.position):
            parts.append(self._take())
        is_first = True
        while self.position < len(self.pattern):
            character = self._take()
            if character == "]" and not is_first:
                return "".join(parts) + "]"
            if character == "[" or self.pattern.startswith("&&", self.position - 1):
                raise self._refuse("brackets within brackets, or &&")
            if character == "\\" and self.pattern.startswith("Q", self.position):
                parts.append("".join(map(_literal, self._quoted())))
            elif character == "\\":
                parts.append(self._in_class())
            else:
                parts.append(character if character == "-" else _literal(character))
            is_first = False
        raise self._refuse("a bracket is not closed")


def _case_group(on: str, off: str) -> str:
    """The group in which case is minded or not; empty where that stays as it is."""
    if "i" in off:
        return "(?-i:"
    return "(?i:" if "i" in on else ""


def _coded(found: re.Match[str]) -> str:
    if found["control"]:
        return chr(ord(found["control"]) ^ 64)
    if found["octal"]:
        return chr(int(found["octal"], 8))
    return chr(int(found["long"] or found["byte"] or found["unit"], 16))


def _literal(character: str) -> str:
    """One character as it is written within brackets."""
    return character if character.isalnum() else f"\\U{ord(character):08x}"


def _categories(name: str) -> frozenset[str]:
    """The general categories of Unicode that a name stands for: `L` for all letters."""
    known = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn"
    return frozenset(part for part in known.split() if part == name or part[0] == name)


@cache
def _ranges_of(categories: frozenset[str]) -> str:
    every = range(sys.maxunicode + 1)
    return _ranges(code for code in every if unicodedata.category(chr(code)) in categories)


@cache
def _complement(inside: str) -> str:
    held = re.compile(f"[{inside}]")
    return _ranges(code for code in range(sys.maxunicode + 1) if not held.match(chr(code)))


def _ranges(codes: Iterable[int]) -> str:
    """Ascending code points as ranges within brackets."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and runs[-1][1] + 1 == code:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in runs)
