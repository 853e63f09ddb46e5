"""Double quotes in the SQL of rule files: a column in some databases, a string in others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from dqx_airflow.migration.foreign_rule import UntranslatableError


class DoubleQuotes(str, Enum):
    """The meaning of double quotes in SQL: columns in Postgres and Snowflake, strings in
    BigQuery."""

    COLUMNS = "columns"
    STRINGS = "strings"


_KEYS = re.compile(
    r"where|filter|row_condition|from_condition|(.*[ _])?(expression|query|condition)(_sql)?"
)
_PARTS = re.compile(r"""(?P<string>'(?:[^'\\]|''|\\.)*'|`[^`]*`)|"(?P<held>[^"]*)\"""")


def rewritten(document: Any, meaning: DoubleQuotes) -> Any:
    """A document whose SQL has backticks or single quotes, like Spark, and no double quotes."""
    match document:
        case Mapping():
            return {key: _value(str(key), item, meaning) for key, item in document.items()}
        case list():
            return [rewritten(item, meaning) for item in document]
    return document


def _value(key: str, item: Any, meaning: DoubleQuotes) -> Any:
    if not isinstance(item, str) or _KEYS.fullmatch(key) is None:
        return rewritten(item, meaning)
    sign = "`" if meaning is DoubleQuotes.COLUMNS else "'"
    return _PARTS.sub(lambda part: part["string"] or f"{sign}{part['held']}{sign}", item)


def spark_sql(text: object) -> str:
    """The SQL of a tool for several databases, if Spark reads it in the same way.

    :raises UntranslatableError: it is not SQL, or has double quotes.
    """
    if not isinstance(text, str) or not text.strip():
        raise UntranslatableError("it has no SQL")
    quoted = next((part for part in _PARTS.finditer(text) if part["string"] is None), None)
    if quoted is not None:
        raise UntranslatableError(
            f"{quoted[0]} is a column in some databases and a string in others: add "
            f"--double-quotes columns, or strings"
        )
    return text
