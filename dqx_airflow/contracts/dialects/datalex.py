"""The dialect of DataLex: a manifest, whose contracts promise columns of queries and tables.

A contract is a model of the columns that its query returns: a gate enforces it on that query. An
entity that is bound to a table is a model of that table. Whether a query returns the promised
columns is checked without data, from the manifest alone: see `contracts.datalex_binding`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from dqx_airflow.contracts.demands import Bound, Demand, OfType, Presence, Refers, Required, Unique
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader
from dqx_airflow.contracts.dialects.rule_names import (
    RuleOfModel,
    slug,
    unique_name,
    with_rules,
    with_unique_names,
)
from dqx_airflow.contracts.document import NOTHING, Mapping, Node, Scalar
from dqx_airflow.contracts.field_types import spark_type_of, types_named
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.contracts.mistyped_types import meant_type, with_hint
from dqx_airflow.contracts.model import Contract, Dialect, Field, Model, Rule, column_path
from dqx_airflow.contracts.schema import schema_errors
from dqx_airflow.contracts.yaml_reader import read_document
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean, errors_of
from dqx_airflow.values import SourceFile, Span

_REFERRING = ("reference", "subtype", "supertype")
_BOUND_TO_TABLES = ("dbt_model", "dbt_source", "view", "table")


@dataclass(frozen=True, slots=True)
class ContractPort:
    """An input or output of a contract."""

    name: str
    type: str
    constraints: tuple[str, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class ManifestContract:
    """A contract of a manifest; several versions of it have the same id."""

    id: str
    version: int
    inputs: tuple[ContractPort, ...]
    outputs: tuple[ContractPort, ...]
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


_OLDEST = (1, 8)
_FIRST_UNREAD = (3,)
"""The first version of DataLex whose manifests are supported, and the first that is not."""


def read_manifest(source: SourceFile) -> Manifest:
    """Reads a manifest in JSON or YAML, or a DataLex model in YAML.

    Versions in a model are unconfirmed: the manifest is the output of the DataLex compiler.
    """
    document = read_document(source)
    diagnostics = [_as_datalex(diagnostic) for diagnostic in document.diagnostics]
    root = document.root
    if not isinstance(root, Mapping):
        if not diagnostics:
            start = Span(source.name, 1, 1, 1, 2)
            diagnostics.append(mistake("no_manifest", start))
        return Manifest(source, (), None, (), {}, tuple(diagnostics))
    if isinstance(root.get("model"), Mapping) and "manifestSpecVersion" not in root.entries:
        diagnostics.append(mistake("source_of_manifest", root.span))
        promises = tuple(_promises(_below(root, "entities", "contracts")))
        diagnostics += _repeated(promises)
        return Manifest(source, promises, None, (), {}, tuple(diagnostics))
    diagnostics += map(_as_datalex, schema_errors(root, "datalex"))
    promises = tuple(_promises(_below(root, "domains", "entities", "contracts")))
    diagnostics += _repeated(promises)
    project = root.get("project")
    dialect = project.text("dialect") if isinstance(project, Mapping) else None
    version = _version(root.text("datalexVersion"))
    diagnostics += doubts_about(root)
    tables = dict(_tables(_below(root, "domains", "entities")))
    return Manifest(source, promises, dialect, version, tables, tuple(diagnostics))


def doubts_about(root: Mapping) -> Iterator[Diagnostic]:
    """Warnings about a valid manifest: an unsupported version, and ids that contain another domain,
    entity or contract than the enclosing one."""
    version = _version(root.text("datalexVersion"))
    if version and not _OLDEST <= version < _FIRST_UNREAD:
        shown = ".".join(map(str, version))
        place = root.get("datalexVersion") or root
        yield replace(mistake("unread_manifest", place.span, version=shown), is_mild=True)
    for way in _below(root, "domains", "entities", "contracts"):
        names = [part.text("name") for part in way]
        contract = way[-1]
        contract_id = contract.text("id")
        expected = ".".join(name or "" for name in names)
        if contract_id is not None and all(names) and contract_id != expected:
            parts = {"id": contract_id, "expected": expected}
            found = mistake("misplaced_id", contract.span_of("id"), **parts)
            yield replace(found, is_mild=True)


_Way: TypeAlias = tuple[Mapping, ...]
"""A mapping, preceded by the mappings that enclose it, outermost first."""


def _below(owner: Mapping, key: str, *further: str) -> Iterator[_Way]:
    """The mappings in the list at a key; with further keys, the mappings in the lists at these keys
    inside them."""
    for item in owner.items(key):
        if isinstance(item, Mapping):
            yield from ((item, *way) for way in _below(item, *further)) if further else ((item,),)


def _promises(ways: Iterable[_Way]) -> Iterator[ManifestContract]:
    for *_, node in ways:
        contract_id = node.text("id")
        number = node.literal("version")
        if contract_id is None or not isinstance(number, int) or isinstance(number, bool):
            continue
        signature = node.get("signature")
        sides = signature if isinstance(signature, Mapping) else NOTHING
        yield ManifestContract(
            contract_id,
            number,
            tuple(_parameters(sides, "inputs")),
            tuple(_parameters(sides, "outputs")),
            node.span_of("id"),
        )


def _parameters(sides: Mapping, key: str) -> Iterator[ContractPort]:
    for (item,) in _below(sides, key):
        name = item.text("name")
        if name is not None:
            listed = item.scalars("constraints")
            constraints = tuple(each.text for each in listed if each.value is not None)
            written = item.text("type") or ""
            yield ContractPort(name, written, constraints, item.span_of("name"))


def _tables(ways: Iterable[_Way]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for _, entity in ways:
        binding = entity.get("binding")
        if isinstance(binding, Mapping) and _is_bound(binding):
            table = binding.text("ref")
            items = _below(entity, "fields")
            fields = tuple(name for (item,) in items if (name := item.text("name")))
            if table and fields:
                yield table.lower(), fields


def _is_bound(binding: Mapping) -> bool:
    """True for a binding to a table, also if only its `ref` is there: a misspelled or missing
    `kind` must not drop the checks of the fields."""
    kind = binding.text("kind")
    return kind in _BOUND_TO_TABLES or (kind is None and binding.text("ref") is not None)


def _repeated(promises: Iterable[ManifestContract]) -> Iterator[Diagnostic]:
    seen = {}
    for promise in promises:
        key = (promise.id, promise.version)
        if key in seen:
            id_, version = key
            yield mistake("repeated_version", promise.span, id=id_, version=version)
        seen[key] = promise


def _version(text: str | None) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text or ""))


def _as_datalex(item: Diagnostic) -> Diagnostic:
    """The error of a document as an error of the manifest."""
    return Diagnostic(item.message, item.span, "E501", related=item.related, help=item.help)


_SENSITIVE = re.compile(r"(?i)\b(pii|phi|pci|sensitive|restricted|confidential|secret)\b")
_NO_PROMISE = "describes the project: no data can violate it"
_OF_CONCEPTS = "the key of a concept: each of its tables has a key of its own"
_UNBOUND = "belongs to a concept that is not bound to a table"
_EXTERNAL = "belongs to an entity that is bound to no table, but to something external"


_BOUNDS = {"positive": (">", 0), "negative": ("<", 0), "non_negative": (">=", 0)}
_REQUIRED = ("not_null", "required", "non_null")


def _demand(constraint: str, column: str) -> Demand | None:
    """The demand of a constraint; None for an unknown constraint."""
    name = slug(constraint)
    if name in _BOUNDS:
        return Bound(*_BOUNDS[name])
    if name in _REQUIRED:
        return Required()
    return Unique((column,)) if name == "unique" else None


def _read(reading: ClauseReader) -> Contract:
    for doubt in doubts_about(reading.root):
        reading.report(doubt)
    project = reading.mapping(reading.root, "project")
    reading.documented(reading.root.get("conformance"), _OF_CONCEPTS)
    for key in reading.root.entries:
        if key not in ("domains", "relationships", "conformance"):
            reading.documented(reading.root.get(key), _NO_PROMISE)
    models: list[Model] = []
    tables: dict[tuple[str, str], str] = {}
    taken = set[str]()
    for domain in reading.mappings(reading.root, "domains"):
        for key in domain.entries:
            if key != "entities":
                reading.documented(domain.get(key), _NO_PROMISE)
        for entity in reading.mappings(domain, "entities"):
            of_entity = [
                replace(model, name=unique_name(model.name, taken))
                for model in _models(reading, entity)
            ]
            if _is_bound(reading.mapping(entity, "binding")):
                tables[domain.text("name") or "", entity.text("name") or ""] = of_entity[0].name
            models += of_entity
    placed = [
        rule
        for relationship in reading.mappings(reading.root, "relationships")
        for rule in _related(reading, relationship, _Tables(tables, models))
    ]
    owners = project.texts("owners")
    return Contract(
        dialect=Dialect.DATALEX,
        dialect_version=reading.root.text("manifestSpecVersion"),
        id=project.text("name") or "",
        version=None,
        span=reading.root.span_of("project"),
        name=project.text("name"),
        description=project.text("description"),
        owner=owners[0] if owners else None,
        contacts=owners[1:],
        models=tuple(
            with_rules(model, [(path, rule) for name, path, rule in placed if name == model.name])
            for model in models
        ),
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """The models of the entities that are bound to a table, by domain and entity."""

    names: dict[tuple[str, str], str]
    models: Sequence[Model]

    def name_of(self, end: Mapping) -> str | None:
        """The model of one end of a relationship; None if no table is bound, or several are."""
        domain = end.text("domain")
        found = [
            name
            for (of_domain, entity), name in self.names.items()
            if entity == end.text("entity") and domain in (None, of_domain)
        ]
        return found[0] if len(found) == 1 else None

    def has_column(self, end: Mapping) -> bool:
        name = self.name_of(end)
        return self._field(name, column_path(end.text("column") or "")) is not None

    def _field(self, name: str | None, path: str) -> Field | None:
        return next((model.field_at(path) for model in self.models if model.name == name), None)

    def unique(self, reading: ClauseReader, name: str, path: str, *nodes: Node | None) -> Rule:
        """The rule that a column is unique, named like the one that it has."""
        demand = Unique((path,))
        item = self._field(name, path)
        rules = item.rules if item is not None else ()
        named = next((rule.name for rule in rules if rule.demand == demand), "unique")
        return reading.rule(named, demand, *nodes)


def _related(
    reading: ClauseReader, relationship: Mapping, tables: _Tables
) -> Iterator[RuleOfModel]:
    """The rules of a relationship between columns of two tables: each value on the side with many
    rows is found on the side with one, where it is unique."""
    many, one = _sides(reading, relationship)
    reading.remarks(relationship, "DataLex: relationship")
    for end in (many, one):
        reading.documented_keys(end, "domain", "role")
    referring, path = tables.name_of(many), column_path(many.text("column") or "")
    referred, other = tables.name_of(one), column_path(one.text("column") or "")
    reason = _no_rule(relationship, (many, one), tables)
    if reason is not None or referring is None or referred is None:
        reading.documented(relationship, reason or "")
        return
    cardinality = relationship.text("cardinality")
    places = [end.get(key) for end in (many, one) for key in ("entity", "column")]
    stated = [relationship.get("type"), relationship.get("cardinality")]
    with reading.of_model(referring):
        refers = Refers((path,), referred, (other,))
        yield referring, path, reading.rule("references", refers, *places, *stated)
        if relationship.truth("optional") is False:
            required = reading.rule("required", Required(), relationship.get("optional"))
            yield referring, path, required
        if cardinality == "one_to_one":
            yield referring, path, tables.unique(reading, referring, path, *stated)
    if cardinality is not None:
        with reading.of_model(referred):
            yield referred, other, tables.unique(reading, referred, other, *stated)


def _sides(reading: ClauseReader, relationship: Mapping) -> tuple[Mapping, Mapping]:
    """The end with many rows, which refer to the other one, and the end with one."""
    start, end = (reading.mapping(relationship, side) for side in ("from", "to"))
    cardinality = relationship.text("cardinality")
    is_above = relationship.text("type") == "supertype" and cardinality != "many_to_one"
    return (end, start) if is_above or cardinality == "one_to_many" else (start, end)


def _no_rule(relationship: Mapping, sides: tuple[Mapping, Mapping], tables: _Tables) -> str | None:
    """The reason why no data can violate a relationship; None if some can."""
    cardinality = relationship.text("cardinality")
    is_without = cardinality is None and relationship.text("type") not in _REFERRING
    if cardinality == "many_to_many" or is_without:
        return "requires nothing: no side has one row for each row of the other"
    if None in (side.text("column") for side in sides):
        return "requires nothing: it does not name two columns"
    if None in map(tables.name_of, sides):
        return "relates an entity that is not bound to a table of this manifest"
    is_of_concepts = relationship.text("layer") in ("conceptual", "logical")
    if is_of_concepts and not all(map(tables.has_column, sides)):
        return "relates properties of concepts, without columns of these names in their tables"
    return None


def _models(reading: ClauseReader, entity: Mapping) -> Iterator[Model]:
    binding = reading.mapping(entity, "binding")
    reading.remarks(entity, "DataLex: entity")
    if _is_bound(binding):
        with reading.of_model(entity.text("name") or ""):
            written = tuple(reading.mappings(entity, "fields"))
            key = tuple(item for item in written if item.truth("primary_key") is True)
            is_of_several = len(key) > 1
            fields = tuple(_field(reading, item, is_part=is_of_several) for item in written)
            rules = (_key(reading, key),) if is_of_several else ()
        yield Model(
            name=entity.text("name") or "",
            span=entity.span_of("name"),
            fields=fields,
            rules=rules,
            description=entity.text("description"),
            location=binding.text("ref"),
            tags=reading.texts(entity, "tags"),
        )
    else:
        is_external = binding.text("kind") == "external"
        reading.documented(entity.get("fields"), _EXTERNAL if is_external else _UNBOUND)
    for contract in reading.mappings(entity, "contracts"):
        with reading.of_model(_name_of(contract)):
            model = _promise(reading, contract)
        yield model


def _name_of(contract: Mapping) -> str:
    version = contract.text("version")
    name = contract.text("name") or ""
    return name if version in (None, "1") else f"{name}_v{version}"


def _promise(reading: ClauseReader, contract: Mapping) -> Model:
    reading.remarks(contract, "DataLex: contract")
    signature = reading.mapping(contract, "signature")
    reading.documented_keys(signature, "inputs", reason="an input of the query")
    outputs = tuple(_output(reading, item) for item in reading.mappings(signature, "outputs"))
    return Model(
        name=_name_of(contract),
        span=contract.span_of("id"),
        fields=outputs,
        description=contract.text("description"),
        title=contract.text("id"),
        version=contract.text("version"),
        tags=reading.texts(contract, "tags"),
    )


def _output(reading: ClauseReader, node: Mapping) -> Field:
    path = column_path(node.text("name") or "")
    rules = [*_base_rules(reading, node)]
    for item in node.items("constraints"):
        text = item.text if isinstance(item, Scalar) else ""
        demand = _demand(text, path)
        if demand is None:
            reason = f"the constraint '{text}' is none that is known"
            hint = did_you_mean(slug(text), (*_BOUNDS, *_REQUIRED, "unique"))
            reading.unsupported(item, reason, "E422", hint)
        else:
            rules.append(reading.rule(slug(text), demand, item))
    return _as_field(reading, node, rules)


def _key(reading: ClauseReader, parts: Iterable[Mapping]) -> Rule:
    """The rule for a primary key of several fields, which are unique together."""
    marked = [*parts]
    paths = tuple(column_path(part.text("name") or "") for part in marked)
    nodes = (part.get("primary_key") for part in marked)
    return reading.rule("primary_key", Unique(paths), *nodes)


def _field(reading: ClauseReader, node: Mapping, *, is_part: bool) -> Field:
    """:param is_part: the primary key of the entity has several fields."""
    path = column_path(node.text("name") or "")
    rules = [*_base_rules(reading, node)]
    reading.remarks(node, "DataLex: field")
    is_key = node.truth("primary_key") is True
    marks: tuple[tuple[str, str, Demand, bool], ...] = (
        ("nullable", "required", Required(), node.truth("nullable") is False),
        ("primary_key", "primary_key", Unique((path,)), is_key and not is_part),
        ("unique", "unique", Unique((path,)), node.truth("unique") is True),
    )
    for key, name, demand, is_asked in marks:
        if is_asked:
            rules.append(reading.rule(name, demand, node.get(key)))
    if is_key and node.truth("nullable") is not False:
        rules.append(reading.rule("required", Required(), node.get("primary_key")))
    return _as_field(reading, node, rules, is_key=is_key)


def _base_rules(reading: ClauseReader, node: Mapping) -> Iterator[Rule]:
    reading.documented_keys(node, "description")
    yield reading.rule("exists", Presence(), node.get("name"))
    written = node.text("type")
    if written is None:
        return
    if _type_of(written) is None:
        reason = with_hint(f"'{written}' is not a known type", meant_type(written, _is_type))
        reading.unsupported(node.get("type"), reason)
        return
    yield reading.rule("type", OfType(), node.get("type"))


def _as_field(
    reading: ClauseReader, node: Mapping, rules: Iterable[Rule], *, is_key: bool = False
) -> Field:
    name = node.text("name") or ""
    written = node.text("type")
    classification = node.text("classification")
    tags = reading.texts(node, "tags")
    return Field(
        name=name,
        path=column_path(name),
        type=_type_of(written) if written is not None else None,
        span=node.span_of("name"),
        written_type=written,
        rules=with_unique_names(rules),
        semantic=node.text("description"),
        is_key=is_key,
        is_sensitive=any(map(_SENSITIVE.search, (classification or "", *tags))),
        classification=classification,
        tags=tags,
    )


def _type_of(written: str) -> str | None:
    return types_named("DataLex").get(written.strip().lower()) or spark_type_of(written)


def _is_type(written: str) -> bool:
    return _type_of(written) is not None


READER = DialectReader(
    Dialect.DATALEX,
    _read,
    sign="`manifestSpecVersion` and `domains` at the top",
    not_expressible=frozenset({"version", "keys", "quality"}),
    versions_models=True,
    change_kinds=((("signature", "inputs"), "input_changed", ()),),
)
