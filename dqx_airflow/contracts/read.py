"""Reads a contract from its text: recognises the dialect, and reports all mistakes at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, replace
from types import MappingProxyType

from dqx_airflow.contracts.dialects import DialectReader, is_data_product, reader_of, recognised
from dqx_airflow.contracts.dialects.extensions import read_acceptances, read_renames, with_extension
from dqx_airflow.contracts.dialects.unread_formats import older_odcs_version, standard_of_products
from dqx_airflow.contracts.document import Document, Mapping, Scalar
from dqx_airflow.contracts.mistakes import MistakeName, mistake
from dqx_airflow.contracts.model import Contract, Dialect, Field, Model
from dqx_airflow.contracts.references import FileReader, References, no_files
from dqx_airflow.contracts.schema import load_schema, schema_errors
from dqx_airflow.contracts.unknown_keys import undefined_keys
from dqx_airflow.contracts.variables import Variables
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import Diagnostic, Related, did_you_mean, errors_of
from dqx_airflow.values import SourceFile, Span

_WITHOUT = ("3.0", "3.1")
"""The versions of ODCS without variables."""


@dataclass(frozen=True, slots=True)
class ReadContract:
    """A contract, and the diagnostics of its document.

    `contract` is valid if there is no error, and None if the text could not be read. `sources` are
    the contents of all files that diagnostics refer to, by name.
    """

    contract: Contract | None
    document: Document
    diagnostics: tuple[Diagnostic, ...]
    sources: MappingType[str, str]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return errors_of(self.diagnostics)


def read_contract(
    source: SourceFile,
    read: FileReader = no_files,
    *,
    variables: MappingType[str, str] | None = MappingProxyType({}),
) -> ReadContract:
    """Reads the contract in a text.

    :param read: reads the files that a `$ref` refers to.
    :param variables: the values of variables in the contract; None keeps references to variables as
        text, for callers that only store the contract.
    """
    if source.name.endswith(".dql"):
        first = Span(source.name, 1, 1, 1, 2)
        document = Document(source, None, (mistake("a_suite", first, file=source.name),))
    else:
        document = read_document(source)
    diagnostics = list(document.diagnostics)
    sources = {source.name: source.text}
    contract = None
    if document.root is not None:
        reader = _reader(document, diagnostics)
        if reader is not None and isinstance(document.root, Mapping):
            if reader.dialect is Dialect.DATALEX:
                variables = None  # it has templates of its own
            known = Variables(variables, diagnostics.append, _has_variables(document.root, reader))
            document = known.in_document(document)
            assert isinstance(document.root, Mapping)
            references = References(
                document, read, diagnostics.append, sources, prepare=known.in_document
            )
            _check_version(document.root, reader, diagnostics)
            diagnostics += schema_errors(document.root, reader.dialect.value)
            if references.are_bounded():
                contract = _contract(reader, document.root, references, diagnostics)
    order = {name: number for number, name in enumerate(sources)}
    once = dict.fromkeys(diagnostics)
    kept = sorted(
        once, key=lambda item: (order.get(item.span.file, 0), item.span.line, item.span.column)
    )
    return ReadContract(contract, document, tuple(kept), sources)


def _contract(
    reader: DialectReader, root: Mapping, references: References, diagnostics: list[Diagnostic]
) -> Contract:
    """The contract in a document of a dialect, with what all dialects have in common."""
    reading = reader.reading(root, references, diagnostics.append)
    contract = reader.read(reading)
    schema = load_schema(reader.dialect.value)
    undefined = undefined_keys(root, schema, references, is_open=reader.is_open)
    accepted = read_acceptances(reading, [model.name for model in contract.models])
    incident = with_extension(reading, contract.incident)
    renames = tuple(read_renames(reading, contract.models))
    contract = replace(
        contract,
        notes=reading.notes(undefined),
        unknown_keys=undefined.unknown,
        acceptances=accepted,
        incident=incident,
        renames=renames,
    )
    diagnostics += _repeated_names(contract)
    return contract


def _reader(document: Document, diagnostics: list[Diagnostic]) -> DialectReader | None:
    root = document.root
    assert root is not None
    readers = recognised(root) if isinstance(root, Mapping) else ()
    if not isinstance(root, Mapping):
        found = mistake("not_a_mapping", root.span)
    elif is_data_product(root):
        found = mistake("product", root.span)
    elif (version := _older_version(root, readers)) is not None:
        node = root.get("apiVersion")
        span = node.span if node is not None else root.span
        found = mistake("older_odcs", span, version=version)
    elif len(readers) == 1:
        return readers[0]
    elif not readers and (standard := standard_of_products(root)) is not None:
        found = mistake("other_product", root.span, standard=standard)
    else:
        names = " and ".join(reader.dialect for reader in readers)
        signs = "; ".join(f"{name}: {reader_of(name).sign}" for name in Dialect)
        kind: MistakeName = "mixed_dialects" if readers else "unknown_dialect"
        found = mistake(kind, root.span, names=names, hint=signs)
    diagnostics.append(found)
    return None


def _older_version(root: Mapping, readers: tuple[DialectReader, ...]) -> str | None:
    """The version of a document of ODCS 2, unless it is a contract of another format."""
    is_other = any(reader.dialect is not Dialect.ODCS for reader in readers)
    has_version = re.search(r"\d", root.text("apiVersion") or "") is not None
    is_newer = bool(readers) and "schema" in root.entries and not has_version
    return None if is_other or is_newer else older_odcs_version(root)


def _repeated_names(contract: Contract) -> Iterator[Diagnostic]:
    """Repeated models and columns; `ID` and `id` are the same to Spark."""
    for kind, groups in (
        ("model", [contract.models]),
        ("field", [model.fields for model in contract.models]),
        ("field", [item.fields for model in contract.models for item in model.walk()]),
    ):
        for group in groups:
            first: dict[str, Model | Field] = {}
            for item in group:
                first_item = first.setdefault(item.name.lower(), item)
                if first_item is not item:
                    first_one = Related(first_item.span, "first here")
                    yield mistake("repeated_name", item.span, first_one, kind=kind, name=item.name)


def _has_variables(root: Mapping, reader: DialectReader) -> bool:
    """True if the standard of the document defines variables."""
    version = root.get(reader.version_key or "")
    written = version.text if isinstance(version, Scalar) else ""
    return reader.dialect is Dialect.ODCS and not written.removeprefix("v").startswith(_WITHOUT)


def _check_version(root: Mapping, reader: DialectReader, diagnostics: list[Diagnostic]) -> None:
    """Reports an unsupported version of the dialect; the document is read all the same."""
    if reader.version_key is None:
        return
    node = root.get(reader.version_key)
    written = node.text if isinstance(node, Scalar) else ""
    if written.removeprefix("v") not in (*reader.versions, ""):
        hint = did_you_mean(written, reader.versions)
        span = node.span if node else root.span
        parts = {"version": written, "dialect": reader.dialect}
        diagnostics.append(mistake("unknown_version", span, hint=hint, **parts))
