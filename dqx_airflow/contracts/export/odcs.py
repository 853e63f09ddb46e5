"""A document of the Open Data Contract Standard 3.1, which is read back as the same contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dqx_airflow.contracts.export.exported import Exported, Loss, unsupported_clauses
from dqx_airflow.contracts.export.odcs_schema import SchemaWriter
from dqx_airflow.contracts.export.yaml_text import yaml_text
from dqx_airflow.contracts.model import Contract, Model, Server, Treatment

_VERSION, _WITH_MAPS = "v3.1.0", "v3.2.0"
_STATUS = {
    "draft": "draft",
    "active": "active",
    "deprecated": "deprecated",
    "sunset": "retired",
}
_FILES = ("local", "s3", "azure", "sftp")
_FIRST_VERSION = "1.0.0"
_NOTHING = ("", "false", "null", "~", "[]", "{}")
_DIALECT_VERSIONS = ("apiVersion", "dataContractSpecification")
_NO_PLACE = "a custom property: the standard has no place for it, and no other tool reads it"


def document(contract: Contract) -> Exported:
    """The contract as YAML."""
    losses: list[Loss] = []
    servers = [_server(server, losses) for server in contract.servers]
    writer = SchemaWriter(contract, servers[0]["type"] if servers else None)
    objects = [writer.object(model) for model in contract.models]
    dates = [
        {"property": name, "value": value}
        for name, value in (
            ("generalAvailability", contract.lifecycle.effective_date),
            ("endOfLife", contract.lifecycle.sunset_date),
        )
        if value is not None
    ]
    if contract.version is None:
        losses.append(Loss("version", f"written as {_FIRST_VERSION}: the standard asks for one"))
    plain = {
        "apiVersion": _WITH_MAPS if _has_maps(contract.models) else _VERSION,
        "kind": "DataContract",
        "id": contract.id,
        "name": contract.name,
        "version": contract.version or _FIRST_VERSION,
        "status": _STATUS.get(contract.lifecycle.status or "", contract.lifecycle.written_status),
        "domain": contract.domain,
        "tags": list(contract.tags),
        "description": {"purpose": contract.description.strip()} if contract.description else None,
        "team": _team(contract),
        "servers": servers,
        "schema": objects,
        "slaProperties": [*writer.service, *dates],
        "customProperties": [*_custom(contract, losses)],
    }
    kept = {key: value for key, value in plain.items() if value not in (None, [], {})}
    losses += [*writer.losses, *unsupported_clauses(contract), *_left_out(contract, kept)]
    return Exported(yaml_text(kept), tuple(losses))


def _team(contract: Contract) -> dict[str, Any] | None:
    members = [{"username": name} for name in contract.contacts]
    team = {"name": contract.owner, "members": members}
    return {key: value for key, value in team.items() if value} or None


def _has_maps(models: tuple[Model, ...]) -> bool:
    return any(item.type == "map" for model in models for item in model.walk())


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
    """What the standard has no place for."""
    life = contract.lifecycle
    consumers = [
        {"team": consumer.team}
        | ({"useCase": consumer.use_case} if consumer.use_case else {})
        | ({"pin": consumer.pin} if consumer.pin else {})
        for consumer in contract.consumers
    ]
    for name, value in (
        ("consumers", consumers),
        ("deprecationDate", life.deprecation_date),
        ("successor", life.successor),
        ("deprecationNoticeDays", life.notice_days),
        ("breakingChangeNoticeDays", life.breaking_notice_days),
        ("dualWriteDays", life.dual_write_days),
        ("breakingChangeCadence", life.cadence),
    ):
        if value:
            losses.append(Loss(name, _NO_PLACE))
            yield {"property": name, "value": value}


def _left_out(contract: Contract, written: Any) -> Iterator[Loss]:
    """Texts of the document that the export does not contain."""
    known = {" ".join(text.split()) for text in _scalars(written)}
    for note in contract.notes:
        remark = " ".join(note.clause.text.split())
        is_exported = (
            remark in known or remark.lower() in _NOTHING or _is_said_otherwise(note.clause.path)
        )
        if note.treatment is Treatment.DOCUMENTED and not is_exported:
            yield Loss(note.clause.path, "the export has no place for it")


def _is_said_otherwise(path: str) -> bool:
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
