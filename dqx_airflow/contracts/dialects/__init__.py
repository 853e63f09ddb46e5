"""The dialects of contracts: ONE module each, which is imported for its documents alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.document import Mapping, Node, Scalar
from dqx_airflow.contracts.model import Contract, Dialect
from dqx_airflow.contracts.unknown_keys import has_misspelled

ClauseKind: TypeAlias = "tuple[tuple[str, ...], str, tuple[str, ...]]"
"""The last key of a clause, or two keys on its path; the kind of its change; and the texts that
mean the same as no clause."""


@dataclass(frozen=True, slots=True)
class DialectReader:
    """A dialect: its reader, and its properties.

    `read` may assume that the document is valid if the schema reports nothing; it is also called
    for invalid documents, and reads their valid elements. `versions` are the supported versions of
    the dialect, found at `version_key`; a dialect without versions has none.

    Other properties of a dialect:

    - `reading`: the class of the readings of its documents, which `read` takes.
    - `is_open`: its standard allows additional keys. Those that begin with `x-` are always allowed.
    - `meaning_key`: the key with the meaning of a field. `weighs_meaning`: the meaning is more than
      a description, and another meaning is another contract.
    - `elements`: the required parts of the document, by their keys.
    - `not_expressible`: the lint rules about facts that the dialect cannot express.
    - `versions_models`: the document has no version, but each of its models does.
    - `change_kinds`: the kinds of changes of clauses that only this dialect has, by their
      keys.
    - `names_types_as_written`: exported expectations keep the types as written, and compound keys
      of two columns as in its own generator.
    """

    dialect: Dialect
    read: Callable[[Any], Contract]
    sign: str
    reading: type[ClauseReader] = ClauseReader
    version_key: str | None = None
    versions: tuple[str, ...] = ()
    is_open: bool = False
    meaning_key: str = "description"
    weighs_meaning: bool = False
    elements: tuple[str, ...] = ()
    not_expressible: frozenset[str] = frozenset()
    versions_models: bool = False
    change_kinds: tuple[ClauseKind, ...] = ()
    names_types_as_written: bool = False


def reader_of(dialect: Dialect) -> DialectReader:
    """The reader of a dialect, imported on first use."""
    reader: DialectReader = import_module(f"{__name__}.{dialect.value}").READER
    return reader


def _is_odcs(root: Mapping) -> bool:
    kind = root.get("kind")
    is_named = isinstance(kind, Scalar) and kind.value == "DataContract"
    return is_named or {"apiVersion", "schema"} <= set(root.entries)


def _is_fabric(root: Mapping) -> bool:
    contract = root.get("contract")
    if not isinstance(contract, Mapping):
        return False
    if "schema" in contract.entries:
        return True
    return "schema" not in root.entries and not has_misspelled(root, "schema")


def _is_product(root: Mapping) -> bool:
    contract = root.get("contract")
    if not isinstance(contract, Mapping) or "schema" in root.entries:
        return isinstance(contract, Mapping)
    # With a typo in the key it is still the intended dialect.
    return "schema" not in contract.entries and has_misspelled(root, "schema")


_SIGNS: dict[Dialect, Callable[[Mapping], bool]] = {
    Dialect.DCS: lambda root: "dataContractSpecification" in root.entries,
    Dialect.ODCS: _is_odcs,
    Dialect.FABRIC: _is_fabric,
    Dialect.PRODUCT: _is_product,
    Dialect.DATALEX: lambda root: {"manifestSpecVersion", "domains"} <= set(root.entries),
}
"""By what the documents of a dialect are recognised."""


def is_data_product(root: Node | None) -> bool:
    """Whether a document is of the Open Data Product Standard: it is not a contract, but refers to
    contracts."""
    return isinstance(root, Mapping) and root.literal("kind") == "DataProduct"


def recognised(root: Mapping) -> tuple[DialectReader, ...]:
    """The dialects that recognise a document: exactly one for a valid document."""
    return tuple(reader_of(dialect) for dialect in Dialect if _SIGNS[dialect](root))
