"""Spark SQL as its tokens: what Spark's lexer sees, however another parser reads the text.

Checks that must not be bypassed read these tokens. Anything that Spark might split in another way
(nested comments, characters outside of SQL) is rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["word", "quoted", "string", "sign"]

_TOKEN = re.compile(
    r"""
      (?P<blank> \s+ | --(?:\\\n|[^\r\n])* | /\*(?!\+)(?:(?!/\*|\*/).)*\*/ )
    | (?P<word> \w+ )
    | (?P<string> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<quoted> `(?:[^`]|``)*` )
    | (?P<sign> /\*\+ | (?!/\*)(?: \*/ | \|\| | :: | -> | [!\#%-&(-/:-@\[\]^{-~]) )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


class UnreadableError(ValueError):
    """Why a text is not Spark SQL, or is ambiguous."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of SQL: `text` as written; a string may have the prefix `r`."""

    kind: Kind
    text: str

    @property
    def name(self) -> str:
        """The identifier in lower case, without its quotes."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`").lower()
        return self.text.strip('"').lower()

    @property
    def value(self) -> str:
        """The characters of a string literal, with its escapes resolved as by Spark."""
        if self.text[0] in "rR":
            return self.text[2:-1]
        quote = self.text[0]
        inside = self.text[1:-1].replace(quote * 2, quote)
        return _ESCAPE.sub(_unescaped, inside)


def spark_tokens(text: str) -> list[Token]:
    """The tokens of a text, without spaces and comments.

    >>> [token.text for token in spark_tokens("max(x) -- highest")]
    ['max', '(', 'x', ')']

    :raises UnreadableError: Spark might read it in another way.
    """
    if "${" in text:
        raise UnreadableError("Spark may replace ${...} by settings or the environment")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnreadableError(_unread(text, position))
        kind, piece = match.lastgroup, match[0]
        if kind == "string" and _is_raw(tokens, text, position):
            if piece[-2] == "\\" or piece[0] in piece[1:-1]:
                raise UnreadableError("a raw string that contains a quotation mark")
            tokens[-1] = Token("string", tokens[-1].text + piece)
        elif kind in ("word", "quoted", "string", "sign"):
            tokens.append(Token(kind, piece))  # type: ignore[arg-type]
        position = match.end()
    return tokens


def _is_raw(tokens: list[Token], text: str, position: int) -> bool:
    return bool(tokens) and tokens[-1].text in ("r", "R") and text[position - 1] in "rR"


def _unread(text: str, position: int) -> str:
    character = text[position]
    if text.startswith("/*", position):
        return "an unclosed or nested comment"
    if character in "'\"`":
        return f"an unclosed quotation mark {character}"
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return f"the character {shown} outside quotes"


def _unescaped(match: re.Match[str]) -> str:
    short, long, octal, plain = match.groups()
    if octal:
        return chr(int(octal, 8))
    if short or long:
        code = int(short or long, 16)
        return chr(code) if code < 0x110000 else ""
    # Spark keeps the backslash of these two: they are escapes of LIKE.
    return "\\" + plain if plain in "%_" else _CONTROLS.get(plain, plain)
