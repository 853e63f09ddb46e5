"""Regular expressions of the ECMA dialect, as contracts have them, as Java and so Spark reads them.

Both mean nearly the same. What differs is written anew: `$` is the very end in ECMA and may stand
before a last line end in Java, `\\s` knows more blanks, brackets within brackets are plain
characters, `[^]` is any character, and so on. What has no counterpart is refused with the reason.
One thing is left alone to keep patterns readable: `.` stops at U+0085 in Java and not in ECMA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class UntranslatableError(ValueError):
    """Why a pattern has no counterpart in Java, in a few words."""


def java_pattern(pattern: str) -> str:
    """The expression that finds with Java what `pattern` finds with ECMA.

    >>> java_pattern("^M[0-9]{4}$")
    '^M[0-9]{4}\\\\z'

    :raises UntranslatableError: there is none, or the pattern is broken.
    """
    return _Translation(pattern).all()


_SPACES = r"\s\p{Z}\x{feff}"
_WORD_EDGE = {
    "b": r"(?:(?<=\w)(?!\w)|(?<!\w)(?=\w))",
    "B": r"(?:(?<=\w)(?=\w)|(?<!\w)(?!\w))",
}
_SIGNS = "^$\\.*+?()[]{}|"
_CLASSES = (r"\d", r"\D", r"\w", r"\W", _SPACES)
_OPPOSITES = ({r"\d", r"\D"}, {r"\w", r"\W"})
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "v": r"\x0b"}
_OF_OTHERS = {
    "A": "write ^",
    "Z": "write $",
    "z": "write $",
    "h": r"write [ \t]",
    "H": r"write [^ \t]",
    "R": r"write \r?\n",
    "Q": "escape each sign",
    "E": "escape each sign",
    "G": "leave it out",
    "K": "leave it out",
    "X": "write .",
}
"""Letters that mean something behind a backslash to other dialects, and what ECMA has instead."""

_CODED = re.compile(
    r"x(?P<byte>[0-9a-fA-F]{2})|u\{(?P<long>[0-9a-fA-F]{1,8})\}|c(?P<control>[a-zA-Z])"
    r"|u(?P<unit>[0-9a-fA-F]{4})(?:\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))?"
)
_PROPERTY = re.compile(r"(?P<sign>[pP])\{(?:(?P<key>\w+)=)?(?P<name>\w+)\}")
_GROUP = re.compile(r"\?(?:<(?P<name>[^=!>][^>]*)>|(?P<plain><?[=!]|:)|(?P<flags>[is]+[:)]))")
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_BACK = re.compile(r"[1-9]\d*")
_NAMED_BACK = re.compile(r"k<([^>]*)>")
_JAVA_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_MOST_TURNS = 2**31 - 1

_CATEGORIES = {
    "Letter": "L",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "Punctuation": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Other": "C",
    "Control": "Cc",
}
_SHORT_CATEGORY = re.compile(r"C[cfon]?|L[ulmot]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?")
_BINARY = {
    "Alphabetic": "IsAlphabetic",
    "Uppercase": "IsUppercase",
    "Lowercase": "IsLowercase",
    "White_Space": "IsWhite_Space",
    "Ideographic": "IsIdeographic",
    "ASCII": "ASCII",
}


@dataclass(slots=True)
class _Translation:
    """Reads a pattern from left to right. `groups` are the names of the groups that were opened."""

    pattern: str
    position: int = 0
    groups: list[str | None] = field(default_factory=list)
    opened: list[bool] = field(default_factory=list)
    """The groups around the position: True for those that look behind."""

    def all(self) -> str:
        parts = []
        while self.position < len(self.pattern):
            parts.append(self._next())
        if self.opened:
            raise UntranslatableError("a parenthesis is not closed")
        return "".join(parts)

    def _next(self) -> str:
        character = self._take()
        match character:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._open()
            case ")":
                if not self.opened:
                    raise UntranslatableError("a parenthesis is closed that was not opened")
                self.opened.pop()
                return ")"
            case "$":
                return r"\z"
            case "*" | "+":
                self._refuse_endless()
                return character
            case "{":
                return self._count()
            case "}" | "]":
                return "\\" + character
            case _ if 0xD800 <= ord(character) < 0xE000:
                raise UntranslatableError("half of a character")
            case _:
                return character

    def _take(self) -> str:
        if self.position == len(self.pattern):
            raise UntranslatableError("a backslash stands at the end")
        character = self.pattern[self.position]
        self.position += 1
        return character

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self.pattern, self.position)
        if found:
            self.position = found.end()
        return found

    def _sees(self, text: str) -> bool:
        return self.pattern.startswith(text, self.position)

    # Groups and repetitions

    def _open(self) -> str:
        found = self._match(_GROUP)
        if found is None:
            if self._sees("?"):
                what = self.pattern[self.position - 1 : self.position + 3]
                raise UntranslatableError(f"ECMA has no group that begins with {what}")
            self.opened.append(False)
            self.groups.append(None)
            return "("
        if found["flags"]:
            if found["flags"].endswith(":"):
                self.opened.append(False)
            return f"(?{found['flags']}"
        self.opened.append((found["plain"] or "").startswith("<"))
        if found["plain"]:
            return f"(?{found['plain']}"
        if found["name"] in self.groups:
            raise UntranslatableError(f"two groups have the name {found['name']}")
        self.groups.append(found["name"])
        # What it is called matters to nobody but to what refers back to it, which we number.
        return f"(?<{found['name']}>" if _JAVA_NAME.fullmatch(found["name"]) else "("

    def _count(self) -> str:
        self.position -= 1
        found = self._match(_COUNT)
        if found is None:
            self._take()
            return r"\{"
        if found[2] == ",":
            self._refuse_endless()
        if max(int(digits or 0) for digits in (found[1], found[3])) > _MOST_TURNS:
            raise UntranslatableError(f"{found[0]} are too many turns")
        return found[0]

    def _refuse_endless(self) -> None:
        if any(self.opened):
            raise UntranslatableError("Java looks behind only so far: give the repetition an end")

    # Characters and their classes

    def _escape(self) -> str:
        """What stands behind a backslash, outside of brackets."""
        following = self.pattern[self.position : self.position + 1]
        if following in _WORD_EDGE:
            return _WORD_EDGE[self._take()]
        if following in ("s", "S"):
            return f"[{_SPACES}]" if self._take() == "s" else f"[^{_SPACES}]"
        if found := self._match(_BACK):
            return self._back(int(found[0]))
        if found := self._match(_NAMED_BACK):
            if found[1] not in self.groups:
                raise UntranslatableError(f"no group before it has the name {found[1]}")
            return self._back(self.groups.index(found[1]) + 1)
        return self._character(is_in_class=False)

    def _back(self, number: int) -> str:
        if number > len(self.groups):
            raise UntranslatableError(f"\\{number} refers to a group that is not before it")
        # In parentheses, so that a digit behind it stays one.
        return f"(?:\\{number})"

    def _character(self, *, is_in_class: bool) -> str:
        """One character, or a class of them, that a backslash begins."""
        if found := self._match(_PROPERTY):
            return _property(found)
        if found := self._match(_CODED):
            return _coded(found)
        character = self._take()
        if character in "dDwW":
            return "\\" + character
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "0" and not self.pattern[self.position : self.position + 1].isdigit():
            return r"\x00"
        if character in _OF_OTHERS:
            help_ = _OF_OTHERS[character]
            raise UntranslatableError(f"\\{character} is the letter {character} to ECMA: {help_}")
        if character.isascii() and character.isalnum():
            raise UntranslatableError(f"\\{character} means nothing to ECMA")
        is_sign = character in _SIGNS or (is_in_class and character in "-&")
        return "\\" + character if is_sign else character

    def _class(self) -> str:
        """What stands in brackets; the first one is taken already."""
        is_negated = self._sees("^")
        if is_negated:
            self._take()
        inside: list[str] = []
        spaces: set[str] = set()
        while True:
            if self.position == len(self.pattern):
                raise UntranslatableError("a bracket is not closed")
            character = self._take()
            if character == "]":
                return _bracketed(inside, spaces, is_negated=is_negated)
            if character != "\\":
                before = inside[-1] if inside else ""
                is_sign = (
                    character == "["
                    or (character == "^" and not inside)
                    or (character == "&" and before == "&")
                    or (character == "-" and before in _CLASSES)
                )
                inside.append("\\" + character if is_sign else character)
            elif self._sees("s") or self._sees("S"):
                spaces.add(self._take())
                if "s" in spaces and _SPACES not in inside:
                    inside.append(_SPACES)
            elif self._sees("b"):
                self._take()
                inside.append(r"\x08")
            else:
                inside.append(self._character(is_in_class=True))


def _bracketed(inside: list[str], spaces: set[str], *, is_negated: bool) -> str:
    """A class of characters; `spaces` are `s` and `S` where these are in it."""
    is_everything = len(spaces) == 2 or any(pair <= set(inside) for pair in _OPPOSITES)
    if is_everything or not (inside or spaces):
        return r"[\s\S]" if is_everything is not is_negated else "(?!)"
    text = "".join(inside)
    if "S" not in spaces:
        return f"[^{text}]" if is_negated else f"[{text}]"
    if is_negated:  # blanks alone, and none of those that are listed
        return f"(?:(?![{text}])[{_SPACES}])" if text else f"[{_SPACES}]"
    return f"(?:[^{_SPACES}]|[{text}])" if text else f"[^{_SPACES}]"


def _property(found: re.Match[str]) -> str:
    """A class of Unicode as Java spells it."""
    sign, key, name = found["sign"], found["key"], found["name"]
    if key in ("Script", "sc"):
        return f"\\{sign}{{script={name}}}"
    if key in (None, "General_Category", "gc"):
        category = _CATEGORIES.get(name, name)
        if _SHORT_CATEGORY.fullmatch(category):
            return f"\\{sign}{{{category}}}"
    if key is None and name in _BINARY:
        return f"\\{sign}{{{_BINARY[name]}}}"
    raise UntranslatableError(f"Java has no class {found[0]} of characters")


def _coded(found: re.Match[str]) -> str:
    """A character by its number."""
    if found["control"]:
        return f"\\x{ord(found['control']) % 32:02x}"
    if found["byte"]:
        return f"\\x{found['byte']}"
    code = int(found["long"] or found["unit"], 16)
    if found["low"] and 0xD800 <= code < 0xDC00:
        code = 0x10000 + ((code - 0xD800) << 10) + int(found["low"], 16) - 0xDC00
    elif found["low"] or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise UntranslatableError("half of a character, or a character that does not exist")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\x{{{code:x}}}"
