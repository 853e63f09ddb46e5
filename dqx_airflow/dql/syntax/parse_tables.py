"""The LALR(1) parse tables of the grammar, worked out when the package is built or installed.

Lark takes longer over them than a suite takes to be checked. A seal names the grammar and the lark
that they were made from: with any other they do not count, and are worked out anew.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO

import lark
from lark import Lark

_OPTIONS = {"parser": "lalr", "propagate_positions": True, "maybe_placeholders": True}
_SEAL_LENGTH = sha256().digest_size


def parser_of(grammar: str) -> Lark:
    """The parser of a grammar, its tables worked out."""
    return Lark(grammar, **_OPTIONS)


def seal_tables(grammar: str) -> bytes:
    """The tables of a grammar behind their seal."""
    tables = BytesIO()
    parser_of(grammar).save(tables)
    return _seal(grammar, tables.getvalue()) + tables.getvalue()


def open_tables(sealed: bytes, grammar: str) -> Lark | None:
    """The parser with these tables; None where they are not those of the grammar."""
    seal, tables = sealed[:_SEAL_LENGTH], sealed[_SEAL_LENGTH:]
    return Lark.load(BytesIO(tables)) if seal == _seal(grammar, tables) else None


def _seal(grammar: str, tables: bytes) -> bytes:
    return sha256(f"{lark.__version__} {_OPTIONS} {grammar}".encode() + tables).digest()
