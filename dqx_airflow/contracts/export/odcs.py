"""A contract as a document of the Open Data Contract Standard: schema, quality, the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.export.exported import (
    Exported,
    Loss,
    unsupported_clauses,
    without_empty,
    yaml_text,
)
from dqx_airflow.contracts.export.odcs_schema import SchemaWriter
from dqx_airflow.contracts.model import Contract, Server, Treatment

_VERSION = "v3.1.0"
_VERSION_WITH_MAPS = "v3.2.0"
_STATUS = {"draft": "draft", "active": "active", "deprecated": "deprecated", "sunset": "retired"}
_FILES = ("local", "s3", "azure", "sftp")
_FIRST_VERSION = "1.0.0"
_NOTHING = ("", "false", "null", "~", "[]", "{}")
_DIALECT_VERSIONS = ("apiVersion", "dataContractSpecification")
_NO_PLACE = "a custom property: the standard has no place for it, and no other tool reads it"


def document(contract: Contract) -> Exported:
    """The contract as YAML."""
    losses: list[Loss] = []
    servers = [_server(server, losses) for server in contract.servers]
    kind = servers[0]["type"] if servers else None
    writers = [SchemaWriter(contract, model, server=kind) for model in contract.models]
    objects = [writer.object() for writer in writers]
    levels = [level for writer in writers for level in writer.service]
    if contract.version is None:
        reason = f"written as {_FIRST_VERSION}: the standard asks for one"
        losses.append(Loss("version", reason))
    plain = {
        "apiVersion": _VERSION_WITH_MAPS if _has_maps(contract) else _VERSION,
        "kind": "DataContract",
        "id": contract.id,
        "name": contract.name,
        "version": contract.version or _FIRST_VERSION,
        "status": _STATUS.get(contract.lifecycle.status or "", contract.lifecycle.written_status),
        "domain": contract.domain,
        "tags": list(contract.tags),
        "description": _description(contract),
        "team": _team(contract),
        "servers": servers,
        "schema": objects,
        "slaProperties": [*levels, *_dates(contract)],
        "customProperties": [*_custom(contract, losses)],
    }
    kept = {key: value for key, value in plain.items() if value not in (None, [], {})}
    losses += [loss for writer in writers for loss in writer.losses]
    losses += [*unsupported_clauses(contract), *_left_out(contract, kept)]
    return Exported(yaml_text(kept), tuple(losses))


def _description(contract: Contract) -> dict[str, str] | None:
    return {"purpose": contract.description.strip()} if contract.description else None


def _dates(contract: Contract) -> Iterator[dict[str, Any]]:
    """The dates of the lifecycle as service levels."""
    life = contract.lifecycle
    if life.effective_date is not None:
        yield {"property": "generalAvailability", "value": life.effective_date}
    if life.sunset_date is not None:
        yield {"property": "endOfLife", "value": life.sunset_date}


def _has_maps(contract: Contract) -> bool:
    return any(item.type == "map" for model in contract.models for item in model.walk())


def _team(contract: Contract) -> dict[str, Any] | None:
    members = [{"username": name} for name in contract.contacts]
    return without_empty({"name": contract.owner, "members": members}) or None


def _server(server: Server, losses: list[Loss]) -> dict[str, Any]:
    """A server of its own type if everything that the standard requires is known, else `custom`."""
    about = {"server": server.name, "environment": server.environment}
    place = _place(server)
    if place is None:
        reason = f"a custom server: not all is known that one of type {server.type} needs"
        losses.append(Loss(f"servers.{server.name}", reason))
        properties = [{"property": "serverType", "value": server.type}]
        place = {"type": "custom", "location": server.location, "format": server.format}
        place["customProperties"] = properties
    if server.options:
        losses.append(Loss(f"servers.{server.name}", "its options are left out"))
    return {key: value for key, value in (about | place).items() if value is not None}


def _place(server: Server) -> dict[str, Any] | None:
    if server.type in _FILES and server.location is not None:
        key = "path" if server.type == "local" else "location"
        if server.format is None and server.type in ("local", "azure"):
            return None
        return {"type": server.type, key: server.location, "format": server.format}
    parts = (server.location or "").split(".")
    if server.type == "databricks" and len(parts) == 3 and parts[2] == "{model}":
        return {"type": "databricks", "catalog": parts[0], "schema": parts[1]}
    return None


def _custom(contract: Contract, losses: list[Loss]) -> Iterator[dict[str, Any]]:
    """The custom properties of a contract: facts that the standard has no key for."""
    consumers = [
        {"team": consumer.team} | without_empty({"useCase": consumer.use_case, "pin": consumer.pin})
        for consumer in contract.consumers
    ]
    lifecycle = contract.lifecycle
    custom = {
        "consumers": consumers,
        "deprecationDate": lifecycle.deprecation_date,
        "successor": lifecycle.successor,
        "deprecationNoticeDays": lifecycle.notice_days,
        "breakingChangeNoticeDays": lifecycle.breaking_notice_days,
        "dualWriteDays": lifecycle.dual_write_days,
        "breakingChangeCadence": lifecycle.cadence,
    }
    for name, value in custom.items():
        if value:
            losses.append(Loss(name, _NO_PLACE))
            yield {"property": name, "value": value}


def _left_out(contract: Contract, written: Any) -> Iterator[Loss]:
    """Texts of the document that the export does not contain."""
    known = {demands.one_line(text) for text in _scalars(written)}
    for note in contract.notes:
        remark = demands.one_line(note.clause.text)
        is_exported = (
            remark in known or remark.lower() in _NOTHING or _is_in_other_form(note.clause.path)
        )
        if note.treatment is Treatment.DOCUMENTED and not is_exported:
            yield Loss(note.clause.path, "the export has no place for it")


def _is_in_other_form(path: str) -> bool:
    """True for the version of a dialect, for nullability, which is the default, and for marks of
    personal data, which become a classification or a tag."""
    return path.endswith((".nullable", ".pii")) or path in _DIALECT_VERSIONS


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner)
    else:
        yield str(value)
