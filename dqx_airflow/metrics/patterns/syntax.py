"""Regular expressions of Java: sets of characters, the tree, and the parser that builds it.

The syntax follows `java.util.regex.Pattern`. Anything unknown is rejected, so that no result is
ever about another expression than Java's. What only Unicode's tables could decide is overestimated:
a set may contain more than the class.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["plain", "atomic", "ahead", "behind"]


Mode: TypeAlias = Literal["greedy", "lazy", "possessive"]


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set. `within` is how it is written between brackets."""

    characters: Characters
    within: str = ""


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Nodes one after the other; without items, the empty string."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repeated node. `end` is the position in the text after its quantifier, before the sign of
    its mode."""

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
    """An unknown string: the text that a group matched, or a cluster of characters.

    `length` is its number of characters, None if unknown.
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


def lengths(node: Node) -> tuple[int, int | None]:
    """The fewest and the most characters that a part can take; None without a maximum.

    The end of the string is one of the fewest: it is a position that nothing else takes.
    """
    match node:
        case One():
            return 1, 1
        case End():
            return 1, 0
        case Concatenation(items=items):
            fewest, most = _lengths_of(items)
            return sum(fewest), None if most is None else sum(most)
        case Choice(branches=branches):
            fewest, most = _lengths_of(branches)
            return min(fewest), None if most is None else max(most)
        case Repeat(body=body, low=low, high=high):
            least, length = lengths(body)
            is_endless = length is None or (high is None and length > 0)
            return least * low, None if is_endless else (length or 0) * (high or 0)
        case Group(body=body, kind="plain" | "atomic"):
            return lengths(body)
        case Anything(length=length):
            return length or 0, length
        case _:
            return 0, 0


def _lengths_of(nodes: Iterable[Node]) -> tuple[list[int], list[int] | None]:
    """The fewest and the most characters of each node; no list if one has no maximum."""
    fewest = []
    most: list[int] | None = []
    for node in nodes:
        low, high = lengths(node)
        fewest.append(low)
        if high is None:
            most = None
        elif most is not None:
            most.append(high)
    return fewest, most


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
        gaps = []
        start = 0
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


NO_CHARACTERS = Characters(())
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


LONGEST = 5_000
"""The maximum length of an expression."""
_DEEPEST = 50
_MOST_BEHIND = 255

_CODED = re.compile(
    r"x\{(?P<long>[0-9a-fA-F]{1,6})\}|x(?P<byte>[0-9a-fA-F]{2})|u(?P<unit>[0-9a-fA-F]{4})"
    r"|0(?P<octal>[0-3]?[0-7]{1,2})|c(?P<control>.)",
    re.DOTALL,
)
_PROPERTY = re.compile(r"[pP](?:\{(?P<name>\^?[\w=]+)\}|(?P<letter>\w))")
_NAMED = re.compile(r"\?<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS = re.compile(r"\?(?P<on>[a-zA-Z]*)(?:-(?P<off>[a-zA-Z]+))?(?P<end>[:)])")
_KINDS: dict[str, Kind] = {
    "?:": "plain", "?>": "atomic", "?=": "ahead", "?!": "ahead", "?<=": "behind", "?<!": "behind"
}  # fmt: skip
_KIND = re.compile(r"\?(?:<?[=!]|:|>)")
_COUNT = re.compile(r"\{(?P<low>\d{1,9})(?P<open>,(?P<high>\d{1,9})?)?\}")
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
_CLASSES = {
    "d": DIGITS, "s": SPACES, "w": WORD, "h": HORIZONTAL,
    "v": VERTICAL,
}  # fmt: skip


class PatternError(ValueError):
    """A regular expression is invalid or not supported: the mistake, and a hint if there is one."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


class ExplodingError(PatternError):
    """Some strings would take the matcher practically forever."""


def pattern_tree(pattern: str, *, has_exact_classes: bool = False, longest: int = LONGEST) -> Node:
    """The tree of an expression.

    :param has_exact_classes: classes of Unicode's categories are looked up completely, which takes
        half a second for each of them.
    :param longest: the maximum length.
    :raises PatternError: it is not valid in Java, or contains what cannot be analysed.
    """
    if len(pattern) > longest:
        message = f"it has {len(pattern):,} characters; the maximum is {longest:,}"
        raise PatternError(message, "use `in [...]` for a list of values")
    return _PatternReader(pattern, has_exact_classes).whole()


class _PatternReader:
    def __init__(self, pattern: str, has_exact_classes: bool) -> None:
        self.pattern = pattern
        self.has_exact_classes = has_exact_classes
        self.position = 0
        self.flags: frozenset[str] = frozenset()
        self.depth = 0
        self.groups: list[Node | None] = []
        self.names: dict[str, int] = {}

    def whole(self) -> Node:
        choice = self._choice()
        if self.position < len(self.pattern):
            raise PatternError("unbalanced parenthesis")
        return choice

    def _sees(self, text: str) -> bool:
        return self.pattern.startswith(text, self.position)

    def _take(self) -> str:
        if self.position == len(self.pattern):
            raise PatternError("unexpected end of the pattern")
        self.position += 1
        return self.pattern[self.position - 1]

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self.pattern, self.position)
        if match:
            self.position = match.end()
        return match

    def _choice(self) -> Node:
        branches = [self._row()]
        while self._sees("|"):
            self.position += 1
            branches.append(self._row())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _row(self) -> Node:
        items: list[Node] = []
        while self.position < len(self.pattern) and not (self._sees("|") or self._sees(")")):
            atom = self._atom()
            if atom is None:
                continue
            items += atom[:-1]
            items.append(self._repeated(atom[-1]))
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def _repeated(self, node: Node) -> Node:
        if "x" in self.flags:
            self._skip_blanks()
        if match := self._match(_COUNT):
            low = int(match["low"])
            high = int(match["high"]) if match["high"] else None if match["open"] else low
            if high is not None and high < low:
                raise PatternError("min repeat greater than max repeat")
        elif self._sees("{"):
            raise PatternError("an unescaped brace", r"write \{ for a literal brace")
        elif self.position < len(self.pattern) and self.pattern[self.position] in "*+?":
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self._take()]
        else:
            return node
        end = self.position
        mode: Mode = "greedy"
        if self._sees("?") or self._sees("+"):
            mode = "lazy" if self._take() == "?" else "possessive"
        if self.position < len(self.pattern) and self.pattern[self.position] in "*+?{":
            raise PatternError("multiple repeat")
        return Repeat(node, low, high, mode, end)

    def _skip_blanks(self) -> None:
        while self.position < len(self.pattern):
            if self.pattern[self.position] == "#":
                end = self.pattern.find("\n", self.position)
                self.position = len(self.pattern) if end < 0 else end + 1
            elif self.pattern[self.position].isspace():
                self.position += 1
            else:
                return

    def _atom(self) -> list[Node] | None:
        """The nodes that begin here; None for a flag or a space. A quantifier applies to the
        last."""
        start = self.position
        character = self._take()
        match character:
            case "(":
                return self._open(start)
            case "[":
                characters = self._class()
                return [One(characters, self.pattern[start : self.position])]
            case "\\":
                return self._escape(start)
            case "." if "s" in self.flags:
                return [One(EVERYTHING, r"\x{0}-\x{10ffff}")]
            case ".":
                ends = r"[^\n\r\u0085\u2028\u2029]"
                return [One(LINE_ENDS.inverted(), ends)]
            case "^":
                return [ZeroWidth("^") if "m" in self.flags else Start()]
            case "$":
                return [ZeroWidth("$") if "m" in self.flags else End(start, 1)]
            case "*" | "+" | "?":
                raise PatternError("nothing to repeat")
            case "{":
                raise PatternError("an unescaped brace", r"write \{ for a literal brace")
            case "#" if "x" in self.flags:
                self.position = start
                self._skip_blanks()
                return None
            case _ if "x" in self.flags and character.isspace():
                return None
            case _:
                code = ord(character)
                within = character if character.isalnum() else f"\\x{{{code:x}}}"
                return [One(self._cased(one(code)), within)]

    def _open(self, start: int) -> list[Node] | None:
        kind: Kind = "plain"
        before = self.flags
        number = None
        opening = "?:"
        if match := self._match(_KIND):
            kind = _KINDS[match[0]]
            opening = match[0]
        elif self._sees("?P"):
            raise PatternError("a group is named with (?<name>...)")
        elif (match := self._match(_NAMED)) or not self._sees("?"):
            number = len(self.groups)
            opening = ""
            self.groups.append(None)
            if match and self.names.setdefault(match["name"], number) != number:
                raise PatternError(f"two groups are named {match['name']}")
        else:
            match = self._match(_FLAGS)
            if match is None or set(match["on"] + (match["off"] or "")) - set("imsxuU"):
                message = "unknown group or flag"
                raise PatternError(message, "the flags are i, m, s, x, u and U, as in (?i)")
            self.flags = (before | set(match["on"])) - set(match["off"] or "")
            if match["end"] == ")":
                return None
        self.depth += 1
        if self.depth > _DEEPEST:
            raise PatternError("nested too deeply")
        body = self._choice()
        if not self._sees(")"):
            raise PatternError("missing ), unterminated subpattern")
        self.position += 1
        self.depth -= 1
        self.flags = before
        if number is not None:
            self.groups[number] = body
        most = lengths(body)[1] if kind == "behind" else 0
        if most is None:
            raise PatternError("the look-behind is unbounded: give the repetition a maximum")
        if most > _MOST_BEHIND:
            raise PatternError(f"the look-behind spans more than {_MOST_BEHIND} characters")
        return [Group(body, kind, start, self.position, opening)]

    def _escape(self, start: int) -> list[Node]:
        character = self._take()
        match character:
            case "A":
                return [Start()]
            case "Z" | "z":
                return [End(start, 2)]
            case "b" | "B" | "G":
                if self._sees("{"):
                    raise PatternError(r"\b{...} is not supported")
                return [ZeroWidth("\\" + character)]
            case "Q":
                end = self.pattern.find(r"\E", self.position)
                quoted = self.pattern[self.position : end if end >= 0 else None]
                self.position = end + 2 if end >= 0 else len(self.pattern)
                return [One(self._cased(one(ord(sign)))) for sign in quoted] or [NOTHING]
            case "E":
                return [NOTHING]
            case "R":
                both_characters = Concatenation((One(one(13)), One(one(10))))
                return [Choice((both_characters, One(VERTICAL)))]
            case "X":
                return [Anything(None)]
            case "k":
                match = self._match(re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>"))
                if match is None:
                    raise PatternError(r"\k without a name")
                if match[1] not in self.names:
                    raise PatternError(f"no earlier group is named {match[1]}")
                return [self._reference(self.names[match[1]] + 1)]
            case _ if character in "123456789":
                match = self._match(re.compile(r"\d*"))
                return [self._reference(int(character + (match[0] if match else "")))]
            case _:
                self.position -= 1
                characters = self._character()
                return [One(self._cased(characters), self.pattern[start : self.position])]

    def _reference(self, number: int) -> Node:
        if number > len(self.groups):
            raise PatternError(f"invalid group reference {number}")
        group = self.groups[number - 1]
        fewest, most = (0, None) if group is None else lengths(group)
        return Anything(number, most if fewest == most else None)

    def _character(self) -> Characters:
        """One character, or a class of them, after a backslash, which has been consumed."""
        if match := self._match(_PROPERTY):
            name = match["letter"] or match["name"]
            is_inverted = match[0].startswith("P") is not name.startswith("^")
            name_alone = name.lstrip("^")
            characters = property_of(name_alone, is_exact=self.has_exact_classes)
            if "i" in self.flags:  # \p{Lu} is any letter with a case then
                characters = Characters(EVERYTHING.ranges, is_vague=True)
            return characters.inverted() if is_inverted else characters
        if match := self._match(_CODED):
            if match["control"]:
                return one(ord(match["control"]) ^ 64)
            if match["octal"]:
                return one(int(match["octal"], 8))
            code = int(match["long"] or match["byte"] or match["unit"], 16)
            if code > 0x10FFFF:
                raise PatternError(f"unknown character {match[0]}")
            return one(code)
        character = self._take()
        if character.lower() in _CLASSES:
            characters = _CLASSES[character.lower()]
            if "U" in self.flags and character.lower() in "dsw":
                characters = vague(characters)
            return characters if character.islower() else characters.inverted()
        if character in _CONTROLS:
            return one(_CONTROLS[character])
        if character.isascii() and character.isalnum():
            raise PatternError(f"bad escape \\{character}")
        return one(ord(character))

    def _class(self) -> Characters:
        """The contents of brackets; the first one has been consumed."""
        is_inverted = self._sees("^")
        self.position += is_inverted
        self.depth += 1
        if self.depth > _DEEPEST:
            raise PatternError("nested too deeply")
        characters = self._rest_of_class(is_start=True)
        self.depth -= 1
        return characters.inverted() if is_inverted else characters

    def _rest_of_class(self, *, is_start: bool = False) -> Characters:
        """The characters of a class after its start or `&&`, up to its closing bracket."""
        characters = NO_CHARACTERS
        while is_start or not self._sees("]"):
            if self.position == len(self.pattern):
                raise PatternError("unterminated character set")
            if self._sees("&&"):
                self.position += 2
                rest = self._rest_of_class()
                return rest if is_start else characters & rest
            characters |= self._of_class()
            is_start = False
        self.position += 1
        return characters

    def _of_class(self) -> Characters:
        if self._sees("["):
            self.position += 1
            return self._class()
        if self._sees(r"\Q"):
            end = self.pattern.find(r"\E", self.position)
            if end < 0:
                raise PatternError("unterminated character set")
            quoted = self.pattern[self.position + 2 : end]
            self.position = end + 2
            return self._cased(listed(quoted))
        first = self._single()
        if self._sees("-") and not self._sees("-]") and not self._sees("-["):
            self.position += 1
            last = self._single()
            if first.ranges[0][0] != first.ranges[-1][1] or last.ranges[0][0] != last.ranges[-1][1]:
                raise PatternError("bad character range", r"write \- for the hyphen")
            if first.ranges[0][0] > last.ranges[0][0]:
                raise PatternError("bad character range", r"write \- for the hyphen")
            return self._cased(between(first.ranges[0][0], last.ranges[0][0]))
        return self._cased(first)

    def _single(self) -> Characters:
        character = self._take()
        return self._character() if character == "\\" else one(ord(character))

    def _cased(self, characters: Characters) -> Characters:
        if "i" not in self.flags:
            return characters
        return characters.in_any_case(unicode=bool(self.flags & set("uU")))
