"""A contract of another dialect as a document of the Open Data Contract Standard: schema, quality,
the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dqx_airflow.contracts.dialects.odcs.odcs_servers import FILES, SPARK
from dqx_airflow.contracts.export.exported import (
    Exported,
    Loss,
    unsupported_clauses,
    without_empty,
    yaml_text,
)
from dqx_airflow.contracts.export.odcs_as_written import as_written
from dqx_airflow.contracts.export.odcs_schema import SchemaWriter
from dqx_airflow.contracts.export.odcs_server import server_of, sql_dialect_of
from dqx_airflow.contracts.model import Contract

_VERSION = "v3.1.0"
_NEWEST_VERSION = "v3.2.0"
_STATUS = {"draft": "draft", "active": "active", "deprecated": "deprecated", "sunset": "retired"}
_DEFAULT_STATUS = "active"
"""The status of a contract without one, which is in force; the standard requires a status."""
_FIRST_VERSION = "1.0.0"


def document(contract: Contract) -> Exported:
    """The contract as YAML. The losses are what the contract enforces and the export does not."""
    if contract.document is not None:
        return as_written(contract, contract.document)
    losses: list[Loss] = []
    servers = [server_of(server, losses) for server in contract.servers]
    dialect = sql_dialect_of(servers)
    is_spark = not servers or servers[0]["type"] in (*FILES, *SPARK)
    writers = [
        SchemaWriter(contract, model, sql_dialect=dialect, is_spark=is_spark)
        for model in contract.models
    ]
    objects = [writer.object() for writer in writers]
    needs_newest = any(writer.needs_newest for writer in writers)
    levels = [level for writer in writers for level in writer.service]
    plain = {
        "apiVersion": _NEWEST_VERSION if needs_newest else _VERSION,
        "kind": "DataContract",
        "id": contract.id,
        "name": contract.name,
        "version": contract.version or _FIRST_VERSION,
        "status": _status(contract),
        "domain": contract.domain,
        "tags": list(contract.tags),
        "description": _description(contract),
        "team": _team(contract),
        "servers": servers,
        "schema": objects,
        "slaProperties": [*levels, *_dates(contract)],
        "customProperties": [*_custom(contract)],
    }
    kept = {key: value for key, value in plain.items() if value not in (None, [], {})}
    losses += [loss for writer in writers for loss in writer.losses]
    losses += unsupported_clauses(contract)
    return Exported(yaml_text(kept), tuple(losses))


def _status(contract: Contract) -> str:
    lifecycle = contract.lifecycle
    return _STATUS.get(lifecycle.status or "", lifecycle.written_status or _DEFAULT_STATUS)


def _description(contract: Contract) -> dict[str, str] | None:
    return {"purpose": contract.description.strip()} if contract.description else None


def _dates(contract: Contract) -> Iterator[dict[str, Any]]:
    """The dates of the lifecycle as service levels."""
    life = contract.lifecycle
    if life.effective_date is not None:
        yield {"property": "generalAvailability", "value": life.effective_date}
    if life.sunset_date is not None:
        yield {"property": "endOfLife", "value": life.sunset_date}


def _team(contract: Contract) -> dict[str, Any] | None:
    members = [{"username": name} for name in contract.contacts]
    return without_empty({"name": contract.owner, "members": members}) or None


def _custom(contract: Contract) -> Iterator[dict[str, Any]]:
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
            yield {"property": name, "value": value}
