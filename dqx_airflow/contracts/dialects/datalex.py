"""The dialect of DataLex: a manifest, whose contracts promise columns of queries and tables.

A contract is a model of the columns that its query returns: a gate enforces it on that query. An
entity that is bound to a table is a model of that table. Whether a query names its columns is
checked without data, see `contracts.datalex`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dqx_airflow.contracts.column_paths import column_path
from dqx_airflow.contracts.datalex.manifest import doubts_about
from dqx_airflow.contracts.demands import Bound, Demand, OfType, Presence, Required, Unique
from dqx_airflow.contracts.dialects import DialectReader
from dqx_airflow.contracts.dialects.clause_reader import ClauseReader, spark_type_of
from dqx_airflow.contracts.dialects.extensions import slug, unique_name, with_unique_names
from dqx_airflow.contracts.model import Contract, Dialect, Field, Model, Rule
from dqx_airflow.contracts.source.yaml_document import Mapping
from dqx_airflow.diagnostics.diagnostic import did_you_mean

_TYPES = {
    **dict.fromkeys(("integer", "int"), "whole_number"),
    **dict.fromkeys(("number", "decimal", "numeric", "float", "double", "money"), "number"),
    **dict.fromkeys(("string", "text", "varchar", "char", "uuid", "email", "enum"), "text"),
    **dict.fromkeys(("json", "any", "variant"), "any"),
    "datetime": "timestamp",
}
_BOUND = ("dbt_model", "dbt_source", "view", "table")
_SENSITIVE = re.compile(r"(?i)\b(pii|phi|pci|sensitive|restricted|confidential|secret)\b")
_NO_PROMISE = "describes the project: no data can violate it"


_BOUNDS = {"positive": (">", 0), "negative": ("<", 0), "non_negative": (">=", 0)}
_REQUIRED = ("not_null", "required", "non_null")


def _demand(constraint: str, column: str) -> Demand | None:
    """The demand of a constraint; None for an unknown one."""
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
    for key in reading.root.entries:
        if key != "domains":
            reading.documented(reading.root.get(key), _NO_PROMISE)
    domains = list(reading.mappings(reading.root, "domains"))
    models: list[Model] = []
    for domain in domains:
        for key in domain.entries:
            if key != "entities":
                reading.documented(domain.get(key), _NO_PROMISE)
        for entity in reading.mappings(domain, "entities"):
            models += _models(reading, entity)
    owners = reading.texts(project, "owners")
    return Contract(
        Dialect.DATALEX,
        dialect_version=reading.text(reading.root, "manifestSpecVersion"),
        id=reading.text(project, "name") or "",
        version=None,
        span=reading.root.span_of("project"),
        name=reading.text(project, "name"),
        description=reading.text(project, "description"),
        owner=owners[0] if owners else None,
        contacts=owners[1:],
        models=tuple(_with_unique_names(models)),
    )


def _with_unique_names(models: Iterable[Model]) -> Iterator[Model]:
    """The models, with a number after repeated names."""
    taken: set[str] = set()
    for model in models:
        yield replace(model, name=unique_name(model.name, taken))


def _models(reading: ClauseReader, entity: Mapping) -> Iterator[Model]:
    binding = reading.mapping(entity, "binding")
    is_bound = reading.text(binding, "kind") in _BOUND
    reading.documented_keys(entity, "name", "description", "tags", "binding")
    if is_bound:
        name = reading.text(entity, "name") or ""
        with reading.of_model(name):
            fields = tuple(_field(reading, item) for item in reading.mappings(entity, "fields"))
        yield Model(
            name,
            entity.span_of("name"),
            fields,
            description=reading.text(entity, "description"),
            location=reading.text(binding, "ref"),
            tags=reading.texts(entity, "tags"),
        )
    else:
        reading.documented(
            entity.get("fields"), "belongs to a concept that is not bound to a table"
        )
    for contract in reading.mappings(entity, "contracts"):
        with reading.of_model(_name_of(reading, contract)):
            model = _promise(reading, contract)
        yield model


def _name_of(reading: ClauseReader, contract: Mapping) -> str:
    version, name = reading.text(contract, "version"), reading.text(contract, "name") or ""
    return name if version in (None, "1") else f"{name}_v{version}"


def _promise(reading: ClauseReader, contract: Mapping) -> Model:
    reading.documented_keys(contract, "id", "name", "description", "version", "owner", "tags")
    signature = reading.mapping(contract, "signature")
    reading.documented_keys(signature, "inputs", reason="an input of the query")
    outputs = tuple(_output(reading, item) for item in reading.mappings(signature, "outputs"))
    return Model(
        _name_of(reading, contract),
        contract.span_of("id"),
        outputs,
        title=reading.text(contract, "id"),
        version=reading.text(contract, "version"),
        description=reading.text(contract, "description"),
        tags=reading.texts(contract, "tags"),
    )


def _output(reading: ClauseReader, node: Mapping) -> Field:
    path = column_path(reading.text(node, "name") or "")
    rules = [*_base_rules(reading, node)]
    for item in reading.items(node, "constraints"):
        text = getattr(item, "text", "")
        demand = _demand(text, path)
        if demand is None:
            reason = f"the constraint '{text}' is none that is known"
            hint = did_you_mean(slug(text), (*_BOUNDS, *_REQUIRED, "unique"))
            reading.unsupported(item, reason, "E422", hint)
        else:
            rules.append(reading.rule(slug(text), demand, item))
    return _as_field(reading, node, path, rules)


def _field(reading: ClauseReader, node: Mapping) -> Field:
    path = column_path(reading.text(node, "name") or "")
    rules = [*_base_rules(reading, node)]
    is_key = reading.truth(node, "primary_key") is True
    marks: tuple[tuple[str, str, Demand, bool], ...] = (
        ("nullable", "required", Required(), reading.truth(node, "nullable") is False),
        ("primary_key", "primary_key", Unique((path,)), is_key),
        ("unique", "unique", Unique((path,)), reading.truth(node, "unique") is True),
    )
    for key, name, demand, is_asked in marks:
        if is_asked:
            rules.append(reading.rule(name, demand, node.get(key)))
        else:
            reading.documented_keys(node, key, reason="requires nothing")
    if is_key and reading.truth(node, "nullable") is not False:
        rules.append(reading.rule("required", Required(), node.get("primary_key")))
    reading.documented_keys(node, "tags", "classification")
    return _as_field(reading, node, path, rules, is_key=is_key)


def _base_rules(reading: ClauseReader, node: Mapping) -> Iterator[Rule]:
    reading.documented_keys(node, "description")
    yield reading.rule("exists", Presence(), node.get("name"))
    written = reading.text(node, "type")
    if written is None:
        return
    if _type_of(written) is None:
        reading.unsupported(node.get("type"), f"'{written}' is not a known type")
        return
    yield reading.rule("type", OfType(), node.get("type"))


def _as_field(
    reading: ClauseReader, node: Mapping, path: str, rules: Iterable[Rule], *, is_key: bool = False
) -> Field:
    written = reading.text(node, "type")
    classification = reading.text(node, "classification")
    tags = reading.texts(node, "tags")
    return Field(
        reading.text(node, "name") or "",
        path,
        _type_of(written) if written is not None else None,
        node.span_of("name"),
        written,
        with_unique_names(rules),
        semantic=reading.text(node, "description"),
        is_key=is_key,
        is_sensitive=any(_SENSITIVE.search(text) for text in (classification or "", *tags)),
        classification=classification,
        tags=tags,
    )


def _type_of(written: str) -> str | None:
    return _TYPES.get(written.strip().lower()) or spark_type_of(written)


READER = DialectReader(
    Dialect.DATALEX,
    _read,
    sign="`manifestSpecVersion` and `domains` at the top",
    cannot_say=frozenset({"version", "keys", "quality"}),
    versions_models=True,
    change_kinds=((("signature", "inputs"), "input_changed"),),
)
