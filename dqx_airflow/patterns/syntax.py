"""Parses a regular expression of Java into its tree.

The syntax is that of `java.util.regex.Pattern`. Anything unknown is rejected, so that no result is
ever about another expression than Java's.
"""

from __future__ import annotations

import re

from dqx_airflow.patterns import characters as chars
from dqx_airflow.patterns.characters import Characters
from dqx_airflow.patterns.tree import (
    NOTHING,
    Anything,
    Choice,
    Concatenation,
    End,
    Group,
    Kind,
    Mode,
    Node,
    One,
    Repeat,
    Start,
    ZeroWidth,
    longest,
    shortest,
)

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
    "d": chars.DIGITS, "s": chars.SPACES, "w": chars.WORD, "h": chars.HORIZONTAL,
    "v": chars.VERTICAL,
}  # fmt: skip


class PatternError(ValueError):
    """What is wrong with an expression, and what to write instead, if known."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.hint = problem, hint


class ExplodingError(PatternError):
    """Some strings would take the matcher practically forever."""


def read(pattern: str, *, has_exact_classes: bool = False) -> Node:
    """The tree of an expression.

    :param has_exact_classes: classes of Unicode's categories are looked up completely, which takes
        half a second for each of them.
    :raises PatternError: it is not valid in Java, or contains what cannot be analysed.
    """
    if len(pattern) > LONGEST:
        raise PatternError(
            f"it has {len(pattern):,} characters; the maximum is {LONGEST:,}",
            "use `in [...]` for a list of values",
        )
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

    def _one(self, characters: Characters, within: str) -> One:
        if "i" in self.flags:
            characters = characters.in_any_case(unicode=bool(self.flags & set("uU")))
        return One(characters, within)

    def _atom(self) -> list[Node] | None:
        """The nodes that begin here; None for a flag or a space. A quantifier applies to the
        last."""
        start, character = self.position, self._take()
        match character:
            case "(":
                return self._open(start)
            case "[":
                characters = self._class()
                return [One(characters, self.pattern[start : self.position])]
            case "\\":
                return self._escape(start)
            case "." if "s" in self.flags:
                return [One(chars.EVERYTHING, r"\x{0}-\x{10ffff}")]
            case ".":
                ends = r"[^\n\r\u0085\u2028\u2029]"
                return [One(chars.LINE_ENDS.inverted(), ends)]
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
                return [self._one(chars.one(code), within)]

    def _open(self, start: int) -> list[Node] | None:
        kind: Kind = "plain"
        before = self.flags
        number = None
        opening = "?:"
        if match := self._match(_KIND):
            kind, opening = _KINDS[match[0]], match[0]
        elif self._sees("?P"):
            raise PatternError("a group is named with (?<name>...)")
        elif (match := self._match(_NAMED)) or not self._sees("?"):
            number, opening = len(self.groups), ""
            self.groups.append(None)
            if match and self.names.setdefault(match["name"], number) != number:
                raise PatternError(f"two groups are named {match['name']}")
        else:
            match = self._match(_FLAGS)
            if match is None or set(match["on"] + (match["off"] or "")) - set("imsxuU"):
                raise PatternError(
                    "unknown group or flag",
                    "the flags are i, m, s, x, u and U, as in (?i)",
                )
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
        if kind == "behind" and (longest(body) or 0) > _MOST_BEHIND:
            raise PatternError(f"the look-behind spans more than {_MOST_BEHIND} characters")
        if kind == "behind" and longest(body) is None:
            raise PatternError("the look-behind is unbounded: give the repetition a maximum")
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
                signs = [self._one(chars.one(ord(sign)), "") for sign in quoted]
                return [*signs] if signs else [NOTHING]
            case "E":
                return [NOTHING]
            case "R":
                both_characters = Concatenation((One(chars.one(13)), One(chars.one(10))))
                return [Choice((both_characters, One(chars.VERTICAL)))]
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
                return [self._one(characters, self.pattern[start : self.position])]

    def _reference(self, number: int) -> Node:
        if number > len(self.groups):
            raise PatternError(f"invalid group reference {number}")
        group = self.groups[number - 1]
        if group is None or longest(group) != shortest(group):
            return Anything(number)
        return Anything(number, longest(group))

    def _character(self) -> Characters:
        """One character, or a class of them, after a backslash, which has been consumed."""
        if match := self._match(_PROPERTY):
            name = match["letter"] or match["name"]
            is_inverted = match[0].startswith("P") is not name.startswith("^")
            name_alone = name.lstrip("^")
            characters = chars.property_of(name_alone, is_exact=self.has_exact_classes)
            if "i" in self.flags:  # \p{Lu} is any letter with a case then
                characters = Characters(chars.EVERYTHING.ranges, is_vague=True)
            return characters.inverted() if is_inverted else characters
        if match := self._match(_CODED):
            if match["control"]:
                return chars.one(ord(match["control"]) ^ 64)
            if match["octal"]:
                return chars.one(int(match["octal"], 8))
            code = int(match["long"] or match["byte"] or match["unit"], 16)
            if code > 0x10FFFF:
                raise PatternError(f"unknown character {match[0]}")
            return chars.one(code)
        character = self._take()
        if character.lower() in _CLASSES:
            characters = _CLASSES[character.lower()]
            if "U" in self.flags and character.lower() in "dsw":
                characters = chars.vague(characters)
            return characters if character.islower() else characters.inverted()
        if character in _CONTROLS:
            return chars.one(_CONTROLS[character])
        if character.isascii() and character.isalnum():
            raise PatternError(f"bad escape \\{character}")
        return chars.one(ord(character))

    def _class(self) -> Characters:
        """The contents of brackets; the first one has been consumed."""
        is_inverted = self._sees("^")
        self.position += is_inverted
        characters, is_first = chars.NOTHING, True
        self.depth += 1
        if self.depth > _DEEPEST:
            raise PatternError("nested too deeply")
        while True:
            if self.position == len(self.pattern):
                raise PatternError("unterminated character set")
            if self._sees("]") and not is_first:
                self.position += 1
                break
            if self._sees("&&"):
                self.position += 2
                rest = self._rest_of_class()
                characters = characters & rest if not is_first else rest
                break
            characters |= self._of_class()
            is_first = False
        self.depth -= 1
        return characters.inverted() if is_inverted else characters

    def _rest_of_class(self) -> Characters:
        """What follows `&&`, up to the bracket that closes the class."""
        characters = chars.NOTHING
        while not self._sees("]"):
            if self.position == len(self.pattern):
                raise PatternError("unterminated character set")
            if self._sees("&&"):
                self.position += 2
                return characters & self._rest_of_class()
            characters |= self._of_class()
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
            return self._cased(chars.listed(quoted))
        first = self._single()
        if self._sees("-") and not self._sees("-]") and not self._sees("-["):
            self.position += 1
            last = self._single()
            if first.ranges[0][0] != first.ranges[-1][1] or last.ranges[0][0] != last.ranges[-1][1]:
                raise PatternError("bad character range", r"write \- for the hyphen")
            if first.ranges[0][0] > last.ranges[0][0]:
                raise PatternError("bad character range", r"write \- for the hyphen")
            return self._cased(chars.between(first.ranges[0][0], last.ranges[0][0]))
        return self._cased(first)

    def _single(self) -> Characters:
        character = self._take()
        return self._character() if character == "\\" else chars.one(ord(character))

    def _cased(self, characters: Characters) -> Characters:
        if "i" not in self.flags:
            return characters
        return characters.in_any_case(unicode=bool(self.flags & set("uU")))
