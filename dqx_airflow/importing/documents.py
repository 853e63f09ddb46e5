"""Files of other tools as plain values: JSON, and YAML with the position of each item; double
quotes in their SQL, which mean a column in some databases and a string in others."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

import yaml

from dqx_airflow.contracts.source.yaml_document import plain, read_document
from dqx_airflow.diagnostics.diagnostic import Level
from dqx_airflow.importing.foreign_rule import UntranslatableError
from dqx_airflow.values import SourceFile
from dqx_airflow.values.exact import MANY_DIGITS, TOO_LARGE, WrittenFloat, finite_number


def document_of(source: SourceFile) -> Any:
    """The contents of a file of JSON or YAML.

    :raises UntranslatableError: it is neither.
    """
    text = source.text.removeprefix("\ufeff")
    if match := MANY_DIGITS.search(text):
        raise _too_large(text, match.start())
    if text.lstrip().startswith(("{", "[")):
        try:
            return json.loads(text, parse_int=_number, parse_float=_number)
        except _LargeNumberError as error:
            raise _too_large(text, text.index(error.args[0])) from None
        except (ValueError, RecursionError) as error:
            if source.name.endswith(".json"):
                raise UntranslatableError(f"invalid JSON: {error}") from None
    read = read_document(SourceFile(source.name, text))
    for diagnostic in read.diagnostics:
        if diagnostic.level is Level.ERROR:
            raise UntranslatableError(f"line {diagnostic.span.line}: {diagnostic.message}")
    if read.root is None:
        raise UntranslatableError("neither JSON nor YAML")
    return plain(read.root)


class _LargeNumberError(Exception):
    """A number of JSON has no nearest float."""


def _too_large(text: str, position: int) -> UntranslatableError:
    line = text[:position].count("\n") + 1
    return UntranslatableError(f"line {line}: {TOO_LARGE}")


def _number(text: str) -> int | float:
    value = finite_number(text)
    if value is None:
        raise _LargeNumberError(text)
    return value


class _OneLineDumper(yaml.SafeDumper):
    """Writes floats as they were written, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_OneLineDumper.add_representer(
    WrittenFloat,
    lambda dumper, value: dumper.represent_scalar("tag:yaml.org,2002:float", value.digits),
)


def one_line(value: object) -> str:
    """A rule in YAML or JSON, on one line."""
    text = yaml.dump(
        value, Dumper=_OneLineDumper, default_flow_style=True, width=10_000, sort_keys=False
    )
    return " ".join(text.replace("\n...\n", "").split())


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
