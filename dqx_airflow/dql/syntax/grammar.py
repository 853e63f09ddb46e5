"""The grammar, the facts about the language that it does not contain, and its LALR(1) parse tables,
generated when the package is built or installed.

Generating them takes lark longer than checking a suite. A seal identifies the grammar and the
version of lark that they were generated from: with any other they are generated again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from typing import Any

import lark
from lark import Lark, Token

_OPTIONS = {"parser": "lalr", "propagate_positions": True, "maybe_placeholders": True}
_SEAL_LENGTH = sha256().digest_size


def parser_of(grammar: str) -> Lark:
    """The parser of a grammar, with generated tables."""
    return Lark(grammar, **_OPTIONS)


def seal_tables(grammar: str) -> bytes:
    """The tables of a grammar behind their seal."""
    tables = BytesIO()
    parser_of(grammar).save(tables)
    return _seal(grammar, tables.getvalue()) + tables.getvalue()


def open_tables(sealed: bytes, grammar: str) -> Lark | None:
    """The parser with these tables; None if they were generated from another grammar or lark."""
    seal = sealed[:_SEAL_LENGTH]
    tables = sealed[_SEAL_LENGTH:]
    return Lark.load(BytesIO(tables)) if seal == _seal(grammar, tables) else None


def _seal(grammar: str, tables: bytes) -> bytes:
    return sha256(f"{lark.__version__} {_OPTIONS} {grammar}".encode() + tables).digest()


@contextmanager
def gc_paused() -> Iterator[None]:
    """Suspends the search for cycles in the block: trees and diagnostics contain none.

    Traversing a large tree again and again while it grows, the collector would take as long as
    everything else: 20,000 assertions would cost forty times as much as 1,000.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


LINE_KEYWORDS = frozenset({"assert", "check", "profile", "const", "macro", "use"})
"""At the beginning of a line these words are keywords, even where the lexer takes them for
names."""


def begins_line(token: Token, text: str) -> bool:
    return is_line_start(token.start_pos or 0, text)


def is_line_start(position: int, text: str) -> bool:
    while position > 0 and text[position - 1] != "\n":
        position -= 1
        if not text[position].isspace():
            return False
    return True


@cache
def grammar() -> Lark:
    """The parser of the language."""
    home = files(__package__)
    text = home.joinpath("grammar.lark").read_text(encoding="utf-8")
    tables = home.joinpath("grammar.tables")
    ready = open_tables(tables.read_bytes(), text) if tables.is_file() else None
    return ready or parser_of(text)


def scanners() -> list[Any]:
    """The scanners of all contexts. lark compiles each on its first use: a program that forks a
    process for each file compiles them once before."""
    return [lexer.scanner for lexer in grammar().parser.lexer.lexers.values()]


def unquoted(name: str) -> str:
    """The name without its backticks, of which two inside stand for one."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
