"""The dialects of contracts: ONE module each, which recognises its documents and reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dqx_airflow.contracts.document import Mapping
from dqx_airflow.contracts.model import Contract, Dialect
from dqx_airflow.contracts.reading import Reading


@dataclass(frozen=True, slots=True)
class DialectReader:
    """A dialect: whether a document is written in it, its JSON Schema, and how it is read.

    `read` may rely on the document being valid against the schema where that says nothing wrong; it
    is called for others too, and takes from them what it can. `versions` are the versions of the
    dialect that are read, found at `version_key`; a dialect without versions has none.
    """

    dialect: Dialect
    recognises: Callable[[Mapping], bool]
    schema: Callable[[], dict[str, Any]]
    read: Callable[[Reading], Contract]
    sign: str
    version_key: str | None = None
    versions: tuple[str, ...] = ()


def reader_of(dialect: Dialect) -> DialectReader:
    """The reader of a dialect; its module is imported when it is asked for."""
    reader: DialectReader = import_module(f"{__name__}.{dialect.value}").READER
    return reader


def recognised(root: Mapping) -> tuple[DialectReader, ...]:
    """The readers that take a document for one of theirs: one, if it is sound."""
    readers = map(reader_of, Dialect)
    return tuple(reader for reader in readers if reader.recognises(root))
