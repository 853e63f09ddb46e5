"""A draft as a document of a dialect, with open decisions in comments at its top."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dqx_airflow.contracts.column_paths import plain_name
from dqx_airflow.contracts.demands import Bound, Complete, OneOf, Pattern, Required, Unique
from dqx_airflow.contracts.drafting.draft import draft
from dqx_airflow.contracts.drafting.observed import ObservedTable
from dqx_airflow.contracts.enforcement.dataset_locations import spark_type
from dqx_airflow.contracts.export import odcs
from dqx_airflow.contracts.export.yaml_text import filled, yaml_text
from dqx_airflow.contracts.model import Contract, Dialect, Field, Model, Server
from dqx_airflow.metrics.types import parts_of

_DCS_VERSION = "1.2.1"
_DCS_TYPES = {"tinyint": "int", "smallint": "int", "binary": "bytes"}


def draft_text(table: ObservedTable, dialect: Dialect) -> str:
    """The document. Observations that may become promises are in its comments."""
    contract = draft(table, dialect)
    comments = "".join(f"# {line}".rstrip() + "\n" for line in _comments(table))
    return comments + _WRITERS[dialect](contract)


def _comments(table: ObservedTable) -> Iterator[str]:
    rows = f"{table.rows} rows" if table.rows != 1 else "1 row"
    yield f"A draft from {table.place} ({table.format or 'a table'}, {rows})."
    yield "It shows the current data, not a promise: decide on every line, and describe what each"
    yield "column means, who owns the table, and how fresh it is."
    if table.clock is not None:
        yield f"Freshness: {table.clock} may show when a row was created."
    if not table.key and table.rows:
        yield "Key: no column or pair of columns identifies a row."
    for column in table.columns:
        if column.is_personal:
            name = column.name
            yield f"Personal: {name} looks like data about people, so its values are omitted."
        elif table.rows and column.nulls == table.rows:
            yield f"Empty: {column.name} is always NULL."


# Fabric ------------------------------------------------------------------------------------------


def _fabric(contract: Contract) -> str:
    (model,) = contract.models
    (server,) = contract.servers
    completeness = [
        {"column": item.name, "min_pct": round(demand.share * 100)}
        for item in model.fields
        for rule in item.rules
        if isinstance(demand := rule.demand, Complete)
    ]
    keys = [{"keys": names} for names in _keys(model)]
    quality = {"completeness": completeness, "uniqueness": keys}
    plain = {
        "id": contract.id,
        "version": contract.version,
        "status": "draft",
        "schema": {"columns": [_column(item) for item in model.fields]},
        "quality": filled(quality),
        "format": filled({"storage": server.format, "table_name": _table_name(model, server)}),
        "lifecycle": {"status": "draft"},
    }
    return yaml_text({"contract": filled(plain)})


def _table_name(model: Model, server: Server) -> str | None:
    """The table of a catalog; None for files."""
    if server.location is None or model.location is None:
        return None
    return server.location.replace("{model}", model.location)


def _keys(model: Model) -> list[list[str]]:
    return [
        list(map(plain_name, rule.demand.columns))
        for rule in model.rules
        if isinstance(rule.demand, Unique)
    ]


def _column(item: Field) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": item.name,
        "type": spark_type(item),
        "nullable": item.is_nullable,
    }
    if item.classification is not None:
        plain["pii_classification"] = item.classification
    names = {"pattern": "regex", "enum": "enum", "minimum": "min", "maximum": "max"}
    return plain | _demanded(item, names)


def _demanded(item: Field, names: dict[str, str]) -> dict[str, Any]:
    """The demands on values by their keys in a dialect."""
    plain: dict[str, Any] = {}
    for rule in item.rules:
        match rule.demand:
            case Bound(value=value) | Pattern(expression=value):
                plain[names[rule.name]] = value
            case OneOf(values=values):
                plain[names[rule.name]] = list(values)
    return plain


# The Data Contract Specification -----------------------------------------------------------------


def _dcs(contract: Contract) -> str:
    (model,) = contract.models
    (server,) = contract.servers
    keys = _keys(model)
    plain = {
        "dataContractSpecification": _DCS_VERSION,
        "id": contract.id,
        "info": {"title": contract.name, "version": contract.version, "status": "draft"},
        "servers": {server.name: _dcs_server(server)},
        "models": {
            model.name: filled(
                {
                    "type": "table",
                    "primaryKey": keys[0] if keys and len(keys[0]) > 1 else None,
                    "fields": {item.name: _dcs_field(item, keys) for item in model.fields},
                }
            )
        },
    }
    return yaml_text(plain)


def _dcs_server(server: Server) -> dict[str, Any]:
    if server.format is not None:
        return {"type": server.type, "path": server.location, "format": server.format}
    catalog, *schema, _ = (server.location or "").split(".")
    return {"type": server.type, "catalog": catalog, "schema": ".".join(schema)}


def _dcs_field(item: Field, keys: list[list[str]]) -> dict[str, Any]:
    plain = _dcs_type(item)
    if any(isinstance(rule.demand, Required) for rule in item.rules):
        plain["required"] = True
    if [item.name] in keys:
        plain["primaryKey"] = True
    if item.is_sensitive:
        plain |= {"pii": True, "classification": item.classification}
    names = ("pattern", "enum", "minimum", "maximum")
    plain |= _demanded(item, {name: name for name in names})
    for rule in item.rules:
        if isinstance(rule.demand, Complete):
            most = 100 - round(rule.demand.share * 100)
            metric = {"type": "library", "metric": "nullValues", "unit": "percent"}
            plain["quality"] = [metric | {"mustBeLessThanOrEqualTo": most}]
    return plain


def _dcs_type(item: Field) -> dict[str, Any]:
    kind = item.type or "string"
    plain: dict[str, Any] = {"type": _DCS_TYPES.get(kind, kind)}
    if kind.startswith("decimal"):
        precision, scale = parts_of(kind)
        return {"type": "decimal", "precision": int(precision), "scale": int(scale)}
    if item.fields:
        plain["fields"] = {inner.name: _dcs_type(inner) for inner in item.fields}
    for name, part in (("items", item.items), ("keys", item.keys), ("values", item.values)):
        if part is not None:
            plain[name] = _dcs_type(part)
    return plain


_WRITERS: dict[Dialect, Callable[[Contract], str]] = {
    Dialect.ODCS: lambda contract: odcs.document(contract).text,
    Dialect.FABRIC: _fabric,
    Dialect.DCS: _dcs,
}

DIALECTS = tuple(_WRITERS)
