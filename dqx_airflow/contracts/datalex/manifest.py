"""A DataLex manifest: validated first, then searched for its contracts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dqx_airflow.contracts.source.schema_errors import load_schema, schema_errors
from dqx_airflow.contracts.source.yaml_document import (
    Mapping,
    Node,
    Path,
    Scalar,
    Sequence,
    find,
    read_document,
)
from dqx_airflow.diagnostics.diagnostic import Diagnostic, errors_of
from dqx_airflow.values import SourceFile, Span

_BOUND_TO_TABLES = ("dbt_model", "dbt_source", "view", "table")


@dataclass(frozen=True, slots=True)
class ContractPort:
    """An input or output of a contract."""

    name: str
    type: str
    constraints: tuple[str, ...]
    path: Path
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ManifestContract:
    """A contract of a manifest; several versions of it have the same id."""

    id: str
    version: int
    inputs: tuple[ContractPort, ...]
    outputs: tuple[ContractPort, ...]
    owner: str | None
    path: Path
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a manifest. It is valid if `errors` is empty.

    `tables` are the declared columns of entities, by the table that they are bound to.
    """

    source: SourceFile
    promises: tuple[ManifestContract, ...]
    dialect: str | None
    datalex_version: tuple[int, ...]
    tables: dict[str, tuple[str, ...]]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return errors_of(self.diagnostics)

    @property
    def needs_pins(self) -> bool:
        """True from DataLex 2.0 on, where contracts are versioned."""
        return self.datalex_version >= (2,)

    def versions_of(self, contract_id: str) -> tuple[ManifestContract, ...]:
        """The contracts with exactly this id, newest version first."""
        promises = [promise for promise in self.promises if promise.id == contract_id]
        return tuple(sorted(promises, key=lambda promise: -promise.version))


_OLDEST, _FIRST_UNREAD = (1, 8), (3,)
"""The versions of DataLex whose manifests are supported, the second one exclusive."""


def read_manifest(source: SourceFile) -> Manifest:
    """The manifest in a text, JSON or YAML; or the YAML of a DataLex model.

    Versions in the latter are unconfirmed: the manifest is the output of the DataLex compiler.
    """
    document = read_document(source)
    diagnostics = [_as_datalex(diagnostic) for diagnostic in document.diagnostics]
    root = document.root
    if not isinstance(root, Mapping):
        if not diagnostics:
            start = Span(source.name, 1, 1, 1, 2)
            diagnostics.append(Diagnostic("not a DataLex manifest", start, "E501"))
        return Manifest(source, (), None, (), {}, tuple(diagnostics))
    if isinstance(root.get("model"), Mapping) and "manifestSpecVersion" not in root.entries:
        return _from_yaml(source, root, diagnostics)
    errors = schema_errors(root, load_schema("datalex"))
    diagnostics += [_as_datalex(error) for error in errors]
    promises: list[ManifestContract] = []
    tables: dict[str, tuple[str, ...]] = {}
    for domain in _mappings(root.get("domains")):
        for entity in _mappings(domain.get("entities")):
            promises += _promises(entity)
            tables |= _table_of(entity)
    diagnostics += _repeated(promises)
    project = root.get("project")
    dialect = _text(project.get("dialect")) if isinstance(project, Mapping) else None
    version = _version(_text(root.get("datalexVersion")))
    diagnostics += doubts_about(root)
    return Manifest(source, tuple(promises), dialect, version, tables, tuple(diagnostics))


def doubts_about(root: Mapping) -> Iterator[Diagnostic]:
    """Warnings about a valid manifest: an unsupported version, and ids that name another domain,
    entity or contract than the enclosing one."""
    yield from _unsupported_version(root)
    for domain in _mappings(root.get("domains")):
        for entity in _mappings(domain.get("entities")):
            for contract in _mappings(entity.get("contracts")):
                names = [_text(part.get("name")) for part in (domain, entity, contract)]
                contract_id = _text(contract.get("id"))
                expected = ".".join(name or "" for name in names)
                if contract_id is not None and all(names) and contract_id != expected:
                    message = f"the id {contract_id} stands where {expected} belongs"
                    help_line = f"write {expected}, or move the contract to another entity"
                    place = contract.span_of("id")
                    yield Diagnostic(message, place, "E501", help=help_line, is_mild=True)


def _unsupported_version(root: Mapping) -> Iterator[Diagnostic]:
    version = _version(_text(root.get("datalexVersion")))
    if version and not _OLDEST <= version < _FIRST_UNREAD:
        shown = ".".join(map(str, version))
        message = f"DataLex {shown} is not supported: manifests of 1.8 to 2.x are read"
        place = root.get("datalexVersion") or root
        help_line = "compile the project with another version of DataLex"
        yield Diagnostic(message, place.span, "E501", help=help_line, is_mild=True)


def _from_yaml(source: SourceFile, root: Mapping, diagnostics: list[Diagnostic]) -> Manifest:
    message = "this is DataLex source YAML, not a compiled manifest"
    help_line = "compile it and pass the manifest, since only the compiler validates the source"
    diagnostics.append(Diagnostic(message, root.span, "W042", help=help_line))
    promises: list[ManifestContract] = []
    for entity in _mappings(root.get("entities")):
        promises += _promises(entity)
    diagnostics += _repeated(promises)
    return Manifest(source, tuple(promises), None, (), {}, tuple(diagnostics))


def _promises(entity: Mapping) -> Iterator[ManifestContract]:
    for node in _mappings(entity.get("contracts")):
        contract_id, version = _text(node.get("id")), find(node, ("version",))
        number = version.value if isinstance(version, Scalar) else None
        if contract_id is None or not isinstance(number, int) or isinstance(number, bool):
            continue
        signature = node.get("signature")
        sides = signature if isinstance(signature, Mapping) else Mapping({}, node.path, node.span)
        yield ManifestContract(
            contract_id,
            number,
            tuple(_parameters(sides.get("inputs"))),
            tuple(_parameters(sides.get("outputs"))),
            _text(node.get("owner")),
            node.path,
            node.span_of("id"),
        )


def _parameters(node: Node | None) -> Iterator[ContractPort]:
    for item in _mappings(node):
        name = _text(item.get("name"))
        if name is not None:
            listed = item.get("constraints")
            texts = listed.items if isinstance(listed, Sequence) else ()
            constraints = tuple(
                text for constraint in texts if (text := _text(constraint)) is not None
            )
            written = _text(item.get("type")) or ""
            yield ContractPort(name, written, constraints, item.path, item.span_of("name"))


def _table_of(entity: Mapping) -> dict[str, tuple[str, ...]]:
    binding = entity.get("binding")
    if not isinstance(binding, Mapping) or _text(binding.get("kind")) not in _BOUND_TO_TABLES:
        return {}
    table = _text(binding.get("ref"))
    fields = tuple(
        name for item in _mappings(entity.get("fields")) if (name := _text(item.get("name")))
    )
    return {table.lower(): fields} if table and fields else {}


def _repeated(promises: list[ManifestContract]) -> Iterator[Diagnostic]:
    seen = {}
    for promise in promises:
        key = (promise.id, promise.version)
        if key in seen:
            message = f"{promise.id} has version {promise.version} twice"
            yield Diagnostic(message, promise.span, "E501", help="keep one of them")
        seen[key] = promise


def _mappings(node: Node | None) -> Iterator[Mapping]:
    for item in node.items if isinstance(node, Sequence) else ():
        if isinstance(item, Mapping):
            yield item


def _text(node: Node | None) -> str | None:
    return node.text if isinstance(node, Scalar) and node.value is not None else None


def _version(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text or ""))


def _as_datalex(item: Diagnostic) -> Diagnostic:
    """Errors of the document become errors of the manifest."""
    return Diagnostic(item.message, item.span, "E501", related=item.related, help=item.help)
