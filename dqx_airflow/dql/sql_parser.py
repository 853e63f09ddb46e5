"""Parses SQL that a person wrote: the only callers of sqlglot's parser on such text.

sqlglot is slow to import: this module is imported when there is SQL.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

if TYPE_CHECKING:
    from sqlglot import Expr

Parsed = TypeVar("Parsed")

MOST_NESTED_TYPES = 6
"""How many calls with the name of a type, such as `date(...)` or `array[...]`, may enclose each
other. sqlglot reads each first as a type and then as a call, so its time doubles with each."""
SQLGLOT_DEFECTS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Errors of sqlglot over SQL that it does not expect."""
_BRACKETS = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
    r"|(?P<name>[A-Za-z_]\w*)\s*(?P<call>[(\[])|(?P<open>[(\[])|(?P<close>[)\]])",
    re.DOTALL,
)
"""Strings and comments, whose brackets are not those of the SQL, and brackets with their names."""


class InvalidSqlError(Exception):
    """SQL that cannot be parsed. The message is the reason."""


class TooDeepSqlError(InvalidSqlError):
    """SQL whose parts are nested too deeply."""

    def __init__(self) -> None:
        super().__init__("the SQL is nested too deeply")


def parse_sql(text: str, dialect: str | None) -> list[Expr]:
    """The statements of SQL in a dialect of sqlglot.

    :raises InvalidSqlError: it cannot be parsed.
    """
    return _parsed(
        text, dialect, lambda: [tree for tree in sqlglot.parse(text, dialect=dialect) if tree]
    )


def parse_type(text: str, dialect: str | None) -> exp.DataType:
    """A type of columns in a dialect of sqlglot.

    :raises InvalidSqlError: it cannot be parsed.
    """
    return _parsed(text, dialect, lambda: exp.DataType.build(text, dialect=dialect))


def transpiled(text: str, dialect: str | None, to: str | None) -> str:
    """A statement in another dialect, written as sqlglot writes it.

    :raises InvalidSqlError: it cannot be parsed, or is not one statement.
    """
    statements = parse_sql(text, dialect)
    if len(statements) != 1:
        raise InvalidSqlError("expected one statement")
    return _parsed(text, dialect, lambda: statements[0].sql(dialect=to))


def _parsed(text: str, dialect: str | None, parse: Callable[[], Parsed]) -> Parsed:
    # What sqlglot cannot parse is the reason of an error: its own warning would add nothing.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        if _nested_types(text, dialect) <= MOST_NESTED_TYPES:
            return parse()
    except RecursionError:
        raise TooDeepSqlError from None
    except SqlglotError as error:
        raise InvalidSqlError(_reason(error)) from error
    except ValueError as error:
        raise InvalidSqlError(str(error)) from error
    except SQLGLOT_DEFECTS as error:
        raise InvalidSqlError("unexpected syntax") from error
    raise TooDeepSqlError


def _reason(error: SqlglotError) -> str:
    details = error.errors if isinstance(error, ParseError) else []
    description = details[0]["description"] if details else str(error)
    return str(description).splitlines()[0].split(" for <class")[0].rstrip(". ")


def _nested_types(text: str, dialect: str | None) -> int:
    """The number of calls with the name of a type that enclose each other."""
    types = _names_of_types(dialect)
    enclosing: list[bool] = []
    most = 0
    for match in _BRACKETS.finditer(text):
        if match["call"]:
            enclosing.append(match["name"].lower() in types)
            most = max(most, sum(enclosing))
        elif match["open"]:
            enclosing.append(False)
        elif match["close"] and enclosing:
            enclosing.pop()
    return most


@cache
def _names_of_types(dialect: str | None) -> frozenset[str]:
    """The names of types in a dialect, in lower case; of several words the last one."""
    known = Dialect.get_or_raise(dialect)
    tokens = known.parser_class.TYPE_TOKENS
    keywords = known.tokenizer_class.KEYWORDS.items()
    return frozenset(word.lower().split()[-1] for word, token in keywords if token in tokens)
