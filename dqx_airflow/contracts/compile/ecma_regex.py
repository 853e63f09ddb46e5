r"""Translates regular expressions of the ECMA dialect, as in contracts, for Java and thus Spark.

Both mean nearly the same (ECMA-262, section "RegExp Objects"; `java.util.regex.Pattern`). The
differences are rewritten: `$` is the end of the string in ECMA and may be before a final line break
in Java, `\s` matches more spaces, nested brackets are literals, `[^]` is any character, and
so on. Anything without a counterpart is rejected with the reason; the reader of Java's expressions
judges the rest. One difference is accepted to keep patterns readable: `.` stops at U+0085 in Java
and not in ECMA.
"""

from __future__ import annotations

import re

from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.patterns.syntax import PatternError, pattern_tree


class BrokenPatternError(NoCounterpartError):
    """A pattern that is invalid in every dialect, with the reason."""


def java_pattern(pattern: str) -> str:
    r"""The Java expression with the same matches as `pattern` in ECMA.

    >>> java_pattern("^M[0-9]{4}$")
    '^M[0-9]{4}\\z'

    :raises NoCounterpartError: there is none, or the pattern is invalid.
    """
    groups: list[str | None] = []
    translated = _TOKEN.sub(lambda token: _written(token, groups), pattern)
    try:
        pattern_tree(translated)
    except PatternError as error:
        raise BrokenPatternError(str(error)) from error
    return translated


_SPACES = r"\s\p{Z}\x{feff}"
_WORD_EDGE = {"b": r"(?:(?<=\w)(?!\w)|(?<!\w)(?=\w))", "B": r"(?:(?<=\w)(?=\w)|(?<!\w)(?!\w))"}
_WRITTEN = {"$": r"\z", "{": r"\{", "}": r"\}", "]": r"\]"}
_PUNCTUATION = "^$\\.*+?()[]{}|"
_CLASSES = (r"\d", r"\D", r"\w", r"\W", _SPACES)
_OPPOSITES = ({r"\d", r"\D"}, {r"\w", r"\W"})
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "v": r"\x0b", "0": r"\x00"}
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
"""The short names of categories of Unicode, by their long names."""
_OF_OTHERS = {
    "A": "write ^",
    "Z": "write $",
    "z": "write $",
    "h": r"write [ \t]",
    "H": r"write [^ \t]",
    "R": r"write \r?\n",
    "Q": "escape each character",
    "E": "escape each character",
    "G": "remove it",
    "K": "remove it",
    "X": "write .",
}
"""Escapes that mean something in other dialects, and what to write in ECMA-262."""
_ESCAPE = (
    r"\\(?:(?P<sign>[pP])\{(?:(?P<key>\w+)=)?(?P<property>\w+)\}"
    r"|x(?P<byte>[0-9a-fA-F]{2})|u\{(?P<long>[0-9a-fA-F]{1,8})\}|c(?P<control>[a-zA-Z])"
    r"|u(?P<unit>[0-9a-fA-F]{4})(?:\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))?"
    r"|(?P<zeros>0[0-9]+)|(?P<character>.)|(?P<end>\Z))"
)
_TOKEN = re.compile(
    r"\\(?P<edge>[bB])|\\(?P<space>[sS])|\\(?P<back>[1-9]\d*)|\\k<(?P<back_name>[^>]*)>"
    rf"|{_ESCAPE}|\[(?P<inverted>\^)?(?P<inside>(?:\\.|[^\]\\])*)(?P<closed>\])?"
    r"|\(\?<(?P<name>[^=!>][^>]*)>|\(\?(?P<plain><?[=!]|:|[is]+[:)])|(?P<refused>\(\?.{0,2})"
    r"|(?P<group>\()|(?P<count>\{\d+(?:,\d*)?\})|(?P<written>[${}\]])|(?P<half>[\ud800-\udfff])",
    re.DOTALL,
)
"""Syntax that Java may read in another way, outside of brackets."""
_INSIDE = re.compile(rf"\\(?P<space>[sS])|\\(?P<back>b)|{_ESCAPE}|(?P<plain>.)", re.DOTALL)
"""One character, or a class of them, between brackets."""
_JAVA_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")

_SHORT_CATEGORY = re.compile(r"C[cfon]?|L[ulmot]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?")
_BINARY = ("Alphabetic", "Uppercase", "Lowercase", "White_Space", "Ideographic")


def _written(token: re.Match[str], groups: list[str | None]) -> str:
    """A token in Java's syntax; `groups` are the names of the groups so far, None for an unnamed
    one."""
    match token.lastgroup:
        case "edge":
            return _WORD_EDGE[token["edge"]]
        case "space":
            return f"[{_SPACES}]" if token["space"] == "s" else f"[^{_SPACES}]"
        case "back":
            return _back(int(token["back"]), groups)
        case "back_name":
            if token["back_name"] not in groups:
                raise NoCounterpartError(f"no earlier group is named {token['back_name']}")
            return _back(groups.index(token["back_name"]) + 1, groups)
        case "inverted" | "inside" | "closed":
            if token["closed"] is None:
                raise BrokenPatternError("unclosed bracket")
            return _class(token["inside"], is_inverted=token["inverted"] is not None)
        case "name":
            if token["name"] in groups:
                raise NoCounterpartError(f"two groups are named {token['name']}")
            groups.append(token["name"])
            # Only back references need the name of a group, and they become numbers.
            return token[0] if _JAVA_NAME.fullmatch(token["name"]) else "("
        case "refused":
            raise NoCounterpartError(f"ECMA-262 has no group that begins with {token[0]}")
        case "group":
            groups.append(None)
            return "("
        case "plain" | "count":
            return token[0]
        case "written":
            return _WRITTEN[token[0]]
        case "half":
            raise NoCounterpartError("half of a surrogate pair")
        case _:
            return _escaped(token, is_in_class=False)


def _back(number: int, groups: list[str | None]) -> str:
    if number > len(groups):
        raise NoCounterpartError(f"\\{number} refers to a group that does not precede it")
    # In parentheses, so that a following digit is not part of it.
    return f"(?:\\{number})"


def _escaped(token: re.Match[str], *, is_in_class: bool) -> str:
    """The escape of one character, or of a class of characters, in Java's syntax."""
    if token["property"]:
        return _property(token["sign"], token["key"], token["property"])
    if token["control"]:
        return f"\\x{ord(token['control']) % 32:02x}"
    if token["byte"]:
        return f"\\x{token['byte']}"
    if token["long"] or token["unit"]:
        return _coded(int(token["long"] or token["unit"], 16), token["low"])
    character = token["character"]
    if token["zeros"] or character is None:
        if character is None:
            raise BrokenPatternError("trailing backslash")
        raise NoCounterpartError(f"{token[0]} is undefined in ECMA-262")
    if character in "dDwW":
        return token[0]
    if character in _CONTROLS:
        return _CONTROLS[character]
    if character in _OF_OTHERS:
        help_ = _OF_OTHERS[character]
        raise NoCounterpartError(f"\\{character} means the letter {character} in ECMA-262: {help_}")
    if character.isascii() and character.isalnum():
        raise NoCounterpartError(f"\\{character} is undefined in ECMA-262")
    is_special = character in _PUNCTUATION or (is_in_class and character in "-&")
    return "\\" + character if is_special else character


def _class(text: str, *, is_inverted: bool) -> str:
    """A class of characters in Java's syntax, by the contents of its brackets."""
    inside: list[str] = []
    spaces: set[str] = set()
    for token in _INSIDE.finditer(text):
        if token["space"]:
            spaces.add(token["space"])
            if token["space"] == "s" and _SPACES not in inside:
                inside.append(_SPACES)
        elif token["back"]:
            inside.append(r"\x08")
        elif (character := token["plain"]) is None:
            inside.append(_escaped(token, is_in_class=True))
        else:
            before = inside[-1] if inside else ""
            is_special = (
                character == "["
                or (character == "^" and not inside)
                or (character == "&" and before == "&")
                or (character == "-" and before in _CLASSES)
            )
            inside.append("\\" + character if is_special else character)
    return _bracketed(inside, spaces, is_negated=is_inverted)


def _bracketed(inside: list[str], spaces: set[str], *, is_negated: bool) -> str:
    """A class of characters; `spaces` are `s` and `S` if these are in it."""
    is_everything = len(spaces) == 2 or any(pair <= set(inside) for pair in _OPPOSITES)
    if is_everything or not (inside or spaces):
        return r"[\s\S]" if is_everything is not is_negated else "(?!)"
    text = "".join(inside)
    if "S" not in spaces:
        return f"[^{text}]" if is_negated else f"[{text}]"
    if is_negated:  # only spaces, except for those that are listed
        return f"(?:(?![{text}])[{_SPACES}])" if text else f"[{_SPACES}]"
    return f"(?:[^{_SPACES}]|[{text}])" if text else f"[^{_SPACES}]"


def _property(sign: str, key: str | None, name: str) -> str:
    """A Unicode class in Java's spelling."""
    if key in ("Script", "sc"):
        return f"\\{sign}{{script={name}}}"
    if key in (None, "General_Category", "gc"):
        category = _CATEGORIES.get(name, name)
        if _SHORT_CATEGORY.fullmatch(category):
            return f"\\{sign}{{{category}}}"
    if key is None and name in (*_BINARY, "ASCII"):
        java_name = f"Is{name}" if name in _BINARY else name
        return f"\\{sign}{{{java_name}}}"
    raise NoCounterpartError(f"Java has no class {sign}{{{name}}} of characters")


def _coded(code: int, low: str | None) -> str:
    """A character by its number, or by a surrogate pair of UTF-16."""
    if low and 0xD800 <= code < 0xDC00:
        code = 0x10000 + ((code - 0xD800) << 10) + int(low, 16) - 0xDC00
    elif low or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
        raise NoCounterpartError("half of a surrogate pair, or a character that does not exist")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\x{{{code:x}}}"
