"""The dialects of contracts: ONE module each, which recognises its documents and reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.model import Contract, Dialect
from dqx_airflow.contracts.source.yaml_document import Mapping


@dataclass(frozen=True, slots=True)
class DialectReader:
    """A dialect: whether a document is written in it, its JSON Schema, and how it is read.

    `read` may rely on the document being valid against the schema where that says nothing wrong; it
    is called for others too, and takes from them what it can. `versions` are the versions of the
    dialect that are read, found at `version_key`; a dialect without versions has none.

    What else a dialect does differently:

    - `is_open`: its standard permits keys of one's own. Those that begin with `x-` always are.
    - `meaning_key`: where a field says what it means. `weighs_meaning`: that is more than a
      description, and another meaning is another contract.
    - `elements`: the parts of the document that every contract has, by their keys.
    - `cannot_say`: the rules of lint about what the dialect has no words for.
    - `versions_models`: the document has no version, each of its models has one.
    - `change_kinds`: the kinds of changes of clauses that it alone has, by two keys in their paths
      or by the last one.
    - `names_types_as_written`: expectations that are exported keep the types as they are written,
      and compound keys of two columns as its own generator has them.
    """

    dialect: Dialect
    recognises: Callable[[Mapping], bool]
    schema: Callable[[], dict[str, Any]]
    read: Callable[[ClauseReader], Contract]
    sign: str
    version_key: str | None = None
    versions: tuple[str, ...] = ()
    is_open: bool = False
    meaning_key: str = "description"
    weighs_meaning: bool = False
    elements: tuple[str, ...] = ()
    cannot_say: frozenset[str] = frozenset()
    versions_models: bool = False
    change_kinds: tuple[tuple[tuple[str, ...], str], ...] = ()
    names_types_as_written: bool = False


def reader_of(dialect: Dialect) -> DialectReader:
    """The reader of a dialect, imported on first use."""
    reader: DialectReader = import_module(f"{__name__}.{dialect.value}").READER
    return reader


def recognised(root: Mapping) -> tuple[DialectReader, ...]:
    """The dialects that recognise a document: exactly one for a valid document."""
    readers = map(reader_of, Dialect)
    return tuple(reader for reader in readers if reader.recognises(root))
