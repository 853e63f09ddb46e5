"""The location of the data of a contract: from its servers and fields to dataset settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from dqx_airflow.contracts.field_types import spark_schema
from dqx_airflow.contracts.model import Contract, Field, Model, Server, plain_name
from dqx_airflow.datasets.connections import DATABASES
from dqx_airflow.datasets.settings import S3A_ENDPOINT, format_of, settings_of, spark_location
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.values import FORMATS, DatasetRef

_TEXT_FORMATS = ("csv", "json")
_MERGED_FORMATS = ("parquet", "orc")
_CATALOGS = ("databricks", "fabric", "hive", "glue", "trino", "spark", "unity", "iceberg")
_ELSEWHERE = (
    *("kafka", "pubsub", "kinesis", "postgres", "mysql", "snowflake", "bigquery", "redshift"),
    *("oracle", "sqlserver", "api", "custom"),
)
"""Servers that Spark does not read by only a path or the name of a table."""
_FOLDERS_BELOW = "/{,*/,*/*/,*/*/*/}"
"""The meaning of `/**/` in globs of Spark: the folder itself, and those in it, three levels
deep."""
_FILES = ("local", "s3", "azure", "gcs", "adls", "hdfs", "sftp", "file")


def dataset_settings(
    contract: Contract, given: Mapping[str, Any], server: str | None = None
) -> dict[str, Any]:
    """The dataset settings of a contract, by the names in its suite.

    `given` settings win over the server; what only the contract knows (keys, the columns of text
    files) is added if it is not given. Columns that it masks stay masked.

    :raises RequestError: the contract has no such server, or the location of a model is unknown.
    """
    chosen = _server(contract, server) if server is not None else _only_server(contract)
    settings: dict[str, Any] = {}
    for model in contract.models:
        place = given.get(model.name)
        if isinstance(place, Mapping) and place.get("conn_id") and not _has_place(place):
            place = {**place, "table": _table_on(contract, model, chosen)}
        if place is None:
            place = _place_of(model, chosen) if chosen is not None else _table_of(contract, model)
        if place is not None:
            settings[model.name] = place
    # The first dataset of a gate is its subject: referenced models come after it.
    settings |= {name: place for name, place in given.items() if name not in settings}
    missing = [model.name for model in contract.models if model.name not in settings]
    if missing:
        raise RequestError(
            f"the location of {', '.join(missing)} is unknown",
            _where_to_say_it(contract, chosen, missing[0]),
        )
    for model in contract.models:
        stated = _as_settings(settings[model.name])
        if stated is not None:
            known = known_of(model, file_format=stated.get("format"))
            settings[model.name] = known | stated
            if masked := (*known.get("masked", ()), *_columns(stated.get("masked", ()))):
                # A gate may mask more than its contract, never less.
                settings[model.name]["masked"] = list(dict.fromkeys(masked))
            if "options" in known:
                options = dict(known["options"]) | dict(stated.get("options", ()))
                settings[model.name]["options"] = options
    return settings


def known_of(model: Model, *, file_format: str | None) -> dict[str, Any]:
    """How to read the dataset of a contract: keys, masked columns, the columns of its files."""
    known: dict[str, Any] = {}
    if model.key:
        known["keys"] = list(map(plain_name, model.key))
    if masked := [item.name for item in model.fields if _holds_sensitive(item)]:
        known["masked"] = masked
    if file_format in _TEXT_FORMATS and model.fields:
        known["schema"] = spark_schema(model)
    if file_format in _MERGED_FORMATS:
        # Otherwise Spark takes the columns of one file for those of all.
        known["options"] = {"mergeSchema": "true"}
    return known


def _as_settings(given: Any) -> dict[str, Any] | None:
    """A dataset as a mapping of settings; None for one that the checks of datasets reject."""
    if isinstance(given, DatasetRef):
        given = settings_of(given)
    elif isinstance(given, str | os.PathLike):
        text = os.fspath(given)
        given = {"path" if "/" in text or isinstance(given, os.PathLike) else "table": text}
    if not isinstance(given, Mapping):
        return None
    settings = {key: value for key, value in given.items() if value not in (None, "", ())}
    if (
        "path" in settings
        and "format" not in settings
        and (format_name := format_of(str(settings["path"])))
    ):
        settings["format"] = format_name
    return settings


def _columns(given: Any) -> list[str]:
    """The columns of a setting: a list, or a comma-separated string."""
    if isinstance(given, str):
        return [column for part in given.split(",") if (column := part.strip())]
    return list(given)


def _holds_sensitive(item: Field) -> bool:
    return any(inner.is_sensitive for inner in item.walk())


def _server(contract: Contract, name: str) -> Server:
    for server in contract.servers:
        if server.name == name:
            return server
    names = [server.name for server in contract.servers]
    hint = did_you_mean(name, names) or "the contract has no server: give the datasets"
    raise RequestError(f"the contract {contract.id} has no server '{name}'", hint)


def _only_server(contract: Contract) -> Server | None:
    return contract.servers[0] if len(contract.servers) == 1 else None


def _place_of(model: Model, server: Server) -> dict[str, Any] | None:
    """The dataset settings of a model on a server; None if Spark cannot access it."""
    location = server.location or model.location
    if location is None or server.type in _ELSEWHERE:
        return None
    location = location.replace("{model}", model.location or model.name)
    if server.type in _CATALOGS and "/" not in location:
        return {"table": location}
    if server.type in _FILES or "/" in location:
        format_name = server.format or format_of(location)
        options = dict(server.options)
        path = spark_location(
            location.replace("/**/", _FOLDERS_BELOW), has_endpoint=S3A_ENDPOINT in options
        )
        place: dict[str, Any] = {"path": path}
        if format_name in FORMATS:
            place["format"] = format_name
        if options:
            place["options"] = options
        return place
    return {"table": location} if server.type == "table" else None


def _has_place(settings: Mapping[str, Any]) -> bool:
    return any(settings.get(key) for key in ("path", "table", "query"))


def _table_on(contract: Contract, model: Model, server: Server | None) -> str:
    """The table of a model in a database, as its server names it.

    :raises RequestError: no server does.
    """
    if server is None or server.type not in DATABASES:
        raise RequestError(
            f"the dataset {model.name} has a conn_id but no table, "
            f"and the contract {contract.id} has no database for it",
            "add table=SCHEMA.TABLE, or choose the server",
        )
    name = model.location or model.name
    location = (server.location or "{model}").replace("{model}", name)
    # The name of a database is part of the connection.
    return ".".join(location.split(".")[-2:]) if DATABASES[server.type].default_schema else name


def _table_of(contract: Contract, model: Model) -> dict[str, Any] | None:
    """The table that a model names with its schema, if the contract has no servers."""
    named = model.location or ""
    is_table = "." in named and "/" not in named and not contract.servers
    return {"table": named} if is_table else None


def _where_to_say_it(contract: Contract, server: Server | None, name: str) -> str:
    if server is not None and server.type in DATABASES:
        return (
            f"Spark reads the server '{server.name}' of type {server.type} over JDBC: set conn_id "
            f"of the dataset {name} to the id of a connection with its credentials"
        )
    if server is not None:
        return (
            f"Spark does not read the server '{server.name}' of type {server.type}: "
            f"give the dataset {name}"
        )
    if contract.servers:
        names = ", ".join(candidate.name for candidate in contract.servers)
        return f"choose one of the servers {names}, or give the dataset {name}"
    return f"the contract has no server: give the dataset {name}"
