"""The datasets of a contract: their locations on its servers, and their settings."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from dqx_airflow import values
from dqx_airflow.contracts import model as elements
from dqx_airflow.contracts.field_types import spark_schema
from dqx_airflow.contracts.formats_in_files import TEXT_FORMATS, reader_options
from dqx_airflow.datasets.databases import DATABASES
from dqx_airflow.datasets.locations import S3A_ENDPOINT, spark_location
from dqx_airflow.datasets.reader_options import beside
from dqx_airflow.datasets.settings import dataset_ref, format_of, settings_of
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import RequestError

_MERGED_FORMATS = ("parquet", "orc")
_WITH_TABLES = ("databricks", "fabric", "hive", "glue", "trino", "spark", "unity", "iceberg")
"""The types of servers whose data Spark reads by the name of a table."""
_WITH_FILES = ("local", "s3", "azure", "gcs", "adls", "hdfs", "sftp", "file")
"""The types of servers whose data Spark reads by the path of files."""
_INACCESSIBLE = (
    "kafka",
    "pubsub",
    "kinesis",
    "postgres",
    "mysql",
    "snowflake",
    "bigquery",
    "redshift",
    "oracle",
    "sqlserver",
    "api",
    "custom",
)
"""The types of servers whose data has neither the name of a table in Spark nor a path."""
_FOLDERS_BELOW = "/{,*/,*/*/,*/*/*/}"
"""The replacement of `/**/` in globs of Spark: the folder itself, and its subfolders, three levels
deep."""


def dataset_settings(
    contract: elements.Contract,
    given: Mapping[str, Any],
    server: str | None = None,
    of_formats: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The dataset settings of a contract, by the names in its suite.

    `given` settings win over the server; settings that only the contract contains (keys, the
    columns of text files) are added if they are not given. Columns that the contract masks stay
    masked.

    :param server: the name of the server; by default the server of a contract that has only one.
    :param of_formats: reader options by the format of files. For files at a given location they win
        over the options of the server.
    :raises RequestError: the contract has no such server, or the location of a model is unknown.
    """
    chosen = _server(contract, server)
    settings: dict[str, Any] = {}
    for model in contract.models:
        place = given.get(model.name)
        if isinstance(place, Mapping) and place.get("conn_id"):
            has_place = any(place.get(key) for key in ("path", "table", "query"))
            place = place if has_place else {**place, "table": _table_on(contract, model, chosen)}
        if place is None:
            place = _place_of(model, chosen) if chosen is not None else _table_of(contract, model)
        if place is not None:
            settings[model.name] = place
    # The first dataset of a gate is its subject: referenced models come after it.
    settings |= {name: place for name, place in given.items() if name not in settings}
    missing = [model.name for model in contract.models if model.name not in settings]
    if missing:
        message = f"the location of {', '.join(missing)} is unknown"
        raise RequestError(message, _location_hint(contract, chosen, missing[0]))
    return _completed(contract, settings, chosen, of_formats, given)


def completed_datasets(
    contract: elements.Contract, refs: Iterable[values.DatasetRef], server: str | None = None
) -> tuple[values.DatasetRef, ...]:
    """The datasets, each with the settings that the contract adds for reading it, as in a gate.

    :param server: the name of the server whose options apply to files of its format; by default the
        server of a contract that has only one.
    :raises RequestError: the contract has no such server.
    """
    given = {ref.name: ref for ref in refs}
    settings = _completed(contract, given, _server(contract, server))
    return tuple(dataset_ref(name, stated) for name, stated in settings.items())


def _completed(
    contract: elements.Contract,
    given: Mapping[str, Any],
    server: elements.Server | None,
    of_formats: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    elsewhere: Collection[str] = (),
) -> dict[str, Any]:
    """The settings of datasets, completed from the contract. Only this function decides how the
    data of a contract is read: for gates, commands and Python.

    :param elsewhere: the datasets that are not on the server.
    """
    settings = dict(given)
    for model in contract.models:
        stated = _as_settings(given.get(model.name))
        if stated is None:
            continue
        format_name = stated.get("format")
        known = known_of(model, file_format=format_name)
        settings[model.name] = known | stated
        if masked := (*known.get("masked", ()), *_columns(stated.get("masked", ()))):
            # A gate may mask more than its contract, never less.
            settings[model.name]["masked"] = list(dict.fromkeys(masked))
        defaults = _options_of(server, format_name)
        if model.name in elsewhere:
            defaults |= of_formats.get(format_name or "", {})
        defaults |= known.get("options", {})
        if defaults:
            settings[model.name]["options"] = beside(defaults, dict(stated.get("options", ())))
    return settings


def _options_of(server: elements.Server | None, format_name: str | None) -> dict[str, str]:
    """The options for reading the text files of a server, which also apply to files at another
    location. Options with a dot belong to the location, and are left out."""
    if server is None or format_name not in TEXT_FORMATS or format_name != server.file_format:
        return {}
    return {name: text for name, text in server.options if "." not in name}


def known_of(model: elements.Model, *, file_format: str | None) -> dict[str, Any]:
    """The dataset settings that a model determines: keys, masked columns, and for files of some
    formats their schema or reader options."""
    known: dict[str, Any] = {}
    # A dataset takes columns as keys, not fields of a struct.
    if model.key and all(len(elements.parts_of(path)) == 1 for path in model.key):
        known["keys"] = list(map(elements.plain_name, model.key))
    if masked := [
        item.name for item in model.fields if any(inner.is_sensitive for inner in item.walk())
    ]:
        known["masked"] = masked
    if file_format in TEXT_FORMATS and model.fields:
        known["schema"] = spark_schema(model)
        if options := reader_options(model):
            known["options"] = options
    if file_format in _MERGED_FORMATS:
        # Otherwise Spark takes the columns of one file for the columns of all files.
        known["options"] = {"mergeSchema": "true"}
    return known


def _as_settings(given: Any) -> dict[str, Any] | None:
    """A dataset as a mapping of settings; None for a value of another type, which the checks of
    datasets reject."""
    if isinstance(given, values.DatasetRef):
        given = settings_of(given)
    elif isinstance(given, str | os.PathLike):
        text = os.fspath(given)
        given = {"path" if "/" in text or isinstance(given, os.PathLike) else "table": text}
    if not isinstance(given, Mapping):
        return None
    settings = {key: value for key, value in given.items() if value not in (None, "", ())}
    if format_name := format_of(str(settings.get("path", ""))):
        settings.setdefault("format", format_name)
    return settings


def _columns(given: Any) -> list[str]:
    """The columns of a setting: a list, or a comma-separated string."""
    if isinstance(given, str):
        return [column for part in given.split(",") if (column := part.strip())]
    return list(given)


def _server(contract: elements.Contract, name: str | None) -> elements.Server | None:
    """The server with a name; without a name, the server of a contract that has only one.

    :raises RequestError: the contract has no server with the name, or several.
    """
    if name is None:
        return contract.servers[0] if len(contract.servers) == 1 else None
    named = [server for server in contract.servers if server.name == name]
    if not named:
        hint = did_you_mean(name, [server.name for server in contract.servers])
        hint = hint or "the contract has no server: give the datasets"
        raise RequestError(f"the contract {contract.id} has no server '{name}'", hint)
    if len(named) > 1:
        raise RequestError(
            f"the contract {contract.id} has {len(named)} servers with the name '{name}'",
            "give each of them a name of its own",
        )
    return named[0]


def _place_of(model: elements.Model, server: elements.Server) -> dict[str, Any] | None:
    """The dataset settings of a model on a server; None if Spark cannot access it."""
    location = server.location or model.location
    if location is None or server.type in _INACCESSIBLE:
        return None
    location = location.replace("{model}", model.location or model.name)
    if server.type in _WITH_TABLES and "/" not in location:
        return {"table": location}
    if server.type in _WITH_FILES or "/" in location:
        options = dict(server.options)
        files = location.replace("/**/", _FOLDERS_BELOW)
        path = spark_location(files, has_endpoint=S3A_ENDPOINT in options)
        settings: dict[str, Any] = {"path": path}
        format_name = server.format or format_of(location)
        if format_name in values.FORMATS:
            settings["format"] = format_name
        if options:
            settings["options"] = options
        return settings
    return {"table": location} if server.type == "table" else None


def _table_on(
    contract: elements.Contract, model: elements.Model, server: elements.Server | None
) -> str:
    """The name of the table of a model in a database, with the qualifiers of its server.

    :raises RequestError: no server determines it.
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


def _table_of(contract: elements.Contract, model: elements.Model) -> dict[str, Any] | None:
    """The dataset settings of a model with a schema in its table name, if the contract has no
    servers."""
    named = model.location or ""
    is_table = "." in named and "/" not in named and not contract.servers
    return {"table": named} if is_table else None


def _location_hint(contract: elements.Contract, server: elements.Server | None, name: str) -> str:
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
