"""The grammar, and what the parser knows of the language beside it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark, Token

RESERVED = frozenset({"assert", "check", "profile", "const", "macro", "use"})
"""At the beginning of a line these words are keywords, wherever the lexer takes them for names."""


def begins_line(token: Token, text: str) -> bool:
    return is_line_start(token.start_pos or 0, text)


def is_line_start(position: int, text: str) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


@cache
def grammar() -> Lark:
    text = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)
