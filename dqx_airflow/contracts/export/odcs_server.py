"""Servers of a contract as servers of ODCS."""

from __future__ import annotations

from typing import Any

from dqx_airflow.contracts.dialects.servers import sql_dialect_of_server
from dqx_airflow.contracts.export.exported import Loss
from dqx_airflow.contracts.model import Server
from dqx_airflow.contracts.schema import load_schema

_TYPES = {
    "pg": "postgres",
    "pgsql": "postgres",
    "mssql": "sqlserver",
    "tsql": "sqlserver",
    "mariadb": "mysql",
}
"""The types of ODCS for other names of a database."""
_ABOUT = ("description", "environment")
_OF_FILES = {"delimiter", "encoding", "endpointUrl"}
"""Keys that change how the files of a server are read."""


def server_of(server: Server, losses: list[Loss]) -> dict[str, Any]:
    """A server of its own type if all keys are known that the standard requires, else `custom`."""
    keys = {key: value for key, value in server.keys if value is not None}
    keys.pop("type", None)
    kind = _TYPES.get(server.type, server.type)
    place = _place(kind, _with_location(server, kind, keys))
    if place is None:
        place = {"type": "custom"} | _known(_CUSTOM, _with_location(server, "custom", keys))
        place["customProperties"] = [{"property": "serverType", "value": server.type}]
    for key in sorted(_OF_FILES & (keys.keys() - place.keys())):
        losses.append(Loss(f"servers.{server.name}.{key}", f"a server of type {kind} has no {key}"))
    about = {key: keys[key] for key in _ABOUT if key in keys}
    if server.environment is not None:
        about["environment"] = server.environment
    return {"server": server.name} | about | place


def sql_dialect_of(servers: list[dict[str, Any]]) -> str | None:
    """The dialect of SQL in a document with the servers: of the first one."""
    return sql_dialect_of_server(servers[0]["type"]) if servers else None


def _with_location(server: Server, kind: str, keys: dict[str, Any]) -> dict[str, Any]:
    """The keys of a server, with the location and the format that the model has for it."""
    found = {"format": server.format} | keys
    if server.location is None:
        return found
    parts = server.location.split(".")
    if kind == "databricks" and len(parts) == 3 and parts[2] == "{model}":
        return {"catalog": parts[0], "schema": parts[1]} | found
    key = "path" if kind == "local" else "location"
    return {key: server.location} | found


_CUSTOM = "CustomServer"


def _place(kind: str, keys: dict[str, Any]) -> dict[str, Any] | None:
    """The type of a server with its keys; None if the standard does not have the type, or requires
    a key that is missing."""
    name = _definition_of(kind)
    if name is None:
        return None
    known = _known(name, keys)
    required = _sources()[name].get("required", ())
    if not all(key in known for key in required):
        return None
    return {"type": kind} | known


def _known(name: str, keys: dict[str, Any]) -> dict[str, Any]:
    """The keys that the standard has for a server, with values of the type in the standard."""
    known: dict[str, Any] = {}
    for key, schema in _sources()[name]["properties"].items():
        value = keys.get(key)
        if value is None:
            continue
        if schema.get("type") == "integer":
            if not str(value).isdigit():
                continue
            known[key] = int(value)
        else:
            known[key] = str(value)
    return known


def _definition_of(kind: str) -> str | None:
    """The name of the definition of a type of servers in the schema of the standard."""
    for case in _definitions()["Server"]["allOf"]:
        if case["if"]["properties"]["type"]["const"] == kind:
            return str(case["then"]["$ref"]).rpartition("/")[2]
    return None


def _sources() -> dict[str, Any]:
    sources: dict[str, Any] = _definitions()["ServerSource"]
    return sources


def _definitions() -> dict[str, Any]:
    """The definitions of the oldest version that is written."""
    definitions: dict[str, Any] = load_schema("odcs")["$defs"]["older"]["$defs"]
    return definitions
