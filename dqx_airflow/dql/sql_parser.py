"""Parses SQL that a person wrote: the only callers of sqlglot's parser on such text.

sqlglot is slow to import: this module is imported when there is SQL.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import sqlglot
from sqlglot import TokenType, exp
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
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Errors of sqlglot over SQL that it does not expect."""
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)


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

    :raises InvalidSqlError: it cannot be parsed, or not to its end, which `DataType.build` of
        sqlglot ignores: `int foo`.
    """
    parsed = _parsed(text, dialect, lambda: sqlglot.parse_one(text, dialect, into=exp.DataType))
    if not isinstance(parsed, exp.DataType):
        raise InvalidSqlError("expected a type")
    return parsed


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
    """The maximum number of calls with the name of a type that enclose each other."""
    known = Dialect.get_or_raise(dialect)
    types = known.parser_class.TYPE_TOKENS
    enclosing: list[bool] = []
    nested = 0
    most = 0
    before = None
    for token in known.tokenize(text):
        if token.token_type in _OPENING:
            is_type = before in types
            enclosing.append(is_type)
            nested += is_type
            most = max(most, nested)
        elif token.token_type in _CLOSING and enclosing:
            nested -= enclosing.pop()
        before = token.token_type
    return most
