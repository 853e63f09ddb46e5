"""Files of other tools as plain values: JSON, and YAML with the position of each item."""

from __future__ import annotations

import json
from typing import Any

import yaml

from dqx_airflow.contracts.source.yaml_document import plain, read_document
from dqx_airflow.diagnostics.diagnostic import Level
from dqx_airflow.exact import MANY_DIGITS, TOO_LARGE, WrittenFloat, finite_number
from dqx_airflow.migration.foreign_rule import UntranslatableError
from dqx_airflow.values import SourceFile


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
