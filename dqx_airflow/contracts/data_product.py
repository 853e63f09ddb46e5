"""Data products of the Open Data Product Standard (ODPS): the contracts that their ports name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from typing import TypeAlias

from dqx_airflow.contracts.document import Document, Mapping, Scalar, show_path
from dqx_airflow.contracts.enforcement.pins import objection_to_version
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.model import Contract
from dqx_airflow.contracts.schema import schema_errors
from dqx_airflow.contracts.variables import Variables
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean

NamedContract: TypeAlias = tuple[Scalar, Scalar | None]
"""The id of a contract, and the version, if any, as written in a port."""


@dataclass(frozen=True, slots=True)
class DataProduct:
    """The contracts in the ports of a data product, and the diagnostics of its document."""

    contracts: tuple[NamedContract, ...]
    diagnostics: tuple[Diagnostic, ...]
    document: Document


def read_data_product(document: Document, variables: MappingType[str, str]) -> DataProduct:
    """Reads the data product in a document.

    :param variables: the values of its variables.
    """
    diagnostics = list(document.diagnostics)
    root = Variables(variables, diagnostics.append, are_defined=True).in_document(document).root
    if not isinstance(root, Mapping):
        return DataProduct((), tuple(diagnostics), document)
    diagnostics += schema_errors(root, "odps")
    contracts: list[NamedContract] = []
    ports = (*root.items("inputPorts"), *root.items("outputPorts"))
    for port in [port for port in ports if isinstance(port, Mapping)]:
        contracts += _named(port, "contractId")
        for needed in port.items("inputContracts"):
            contracts += _named(needed, "id") if isinstance(needed, Mapping) else ()
    return DataProduct(tuple(contracts), tuple(dict.fromkeys(diagnostics)), document)


def _named(node: Mapping, key: str) -> Iterator[NamedContract]:
    if (named := _given(node, key)) is not None:
        yield named, _given(node, "version")


def _given(node: Mapping, key: str) -> Scalar | None:
    """The value at a key, unless it has a variable without a value, which is reported."""
    given = node.get(key)
    if isinstance(given, Scalar) and given.value is not None and "${" not in given.text:
        return given
    return None


def unresolved(product: DataProduct, contracts: Iterable[Contract]) -> Iterator[Diagnostic]:
    """Reports contracts and versions in ports that do not exist.

    :param contracts: all versions of the existing contracts.
    """
    versions: dict[str, list[Contract]] = {}
    for contract in contracts:
        versions.setdefault(contract.id, []).append(contract)
    for named, wanted in product.contracts:
        found = versions.get(named.text, [])
        if not found:
            where = show_path(named.path)
            hint = did_you_mean(named.text, versions)
            yield mistake("no_contract", named.span, where=where, id=named.text, hint=hint)
        elif wanted is not None and not any(_is(one, wanted.text) for one in found):
            hint = did_you_mean("", [one.version or "without a version" for one in found])
            parts = {"where": show_path(wanted.path), "id": named.text, "version": wanted.text}
            yield mistake("no_contract_version", wanted.span, hint=hint, **parts)


def _is(contract: Contract, version: str) -> bool:
    """Whether a contract has the version written in a port, which may be `v1.0.0`."""
    forms = (version, version.removeprefix("v"))
    return any(objection_to_version(contract, form) is None for form in forms)
