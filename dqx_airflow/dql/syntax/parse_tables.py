"""The LALR(1) parse tables of the grammar, generated when the package is built or installed.

Generating them takes lark longer than checking a suite. A seal identifies the grammar and the
version of lark that they were generated from: with any other they are generated again.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import lark
from lark import Lark

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
    """The parser with these tables; None if they are not those of the grammar."""
    seal, tables = sealed[:_SEAL_LENGTH], sealed[_SEAL_LENGTH:]
    return Lark.load(BytesIO(tables)) if seal == _seal(grammar, tables) else None


def _seal(grammar: str, tables: bytes) -> bytes:
    return sha256(f"{lark.__version__} {_OPTIONS} {grammar}".encode() + tables).digest()
