"""Connections to databases that Spark reads over JDBC.

A dataset only names a connection by its id. The credentials are in an Airflow connection, or in an
environment variable with the same content. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.json_form import setting_text
from dqx_airflow.values.secret_forms import is_secret_setting

VARIABLE = "DQX_CONN_"
"""The prefix of the environment variable of a connection, followed by its id in capitals."""

CONNECTION_FIELDS = ("conn_type", "host", "port", "schema", "login", "password", "extra")
"""The fields of an Airflow connection."""

_AIRFLOW_VARIABLE = "AIRFLOW_CONN_"
_FORM = "write postgres://USER:PASSWORD@HOST:PORT/DATABASE, or an Airflow connection as JSON"


@dataclass(frozen=True, slots=True)
class DatabaseKind:
    """A kind of database, from `databases.json`: `scheme` begins its JDBC URLs, `quotes` are
    the two characters around a name, and `taken` the settings of an Airflow connection that its
    driver also has.

    `properties` of a connection are defaults. Those of MySQL: rows are fetched in batches. Spark
    takes a DATETIME for a time in UTC, so the driver must use UTC, and so must the server for each
    TIMESTAMP.
    """

    kind: str
    scheme: str
    port: int
    driver: str
    package: str
    quotes: Sequence[str]
    default_schema: str | None
    properties: Mapping[str, str]
    taken: Sequence[str]

    def quoted(self, name: str) -> str:
        """A name of a table or a column as this database quotes it."""
        before, after = self.quotes
        return f"{before}{name.replace(after, after * 2)}{after}"


_KINDS = json.loads(files(__package__).joinpath("databases.json").read_text(encoding="utf-8"))
DATABASES: Mapping[str, DatabaseKind] = MappingProxyType(
    {
        name: kind
        for kind in (DatabaseKind(**row) for row in _KINDS)
        for name in (kind.kind, kind.scheme)
    }
)
"""The supported databases, by the types of Airflow connections and of servers in contracts."""

_OF_PYTHON = ("ssl", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key", "iam", "charset")
"""Settings of an Airflow connection for a Python client that no JDBC driver understands."""
_HOST = re.compile(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]")
_SEARCH_PATH = re.compile(r"-c\s*search_path\s*=\s*(\S+)")
"""The schemas in `options` of PostgreSQL, which are as on the command line of its server."""
_PART_OF_NAME = re.compile(r"`(?:[^`]|``)+`|[^.`]+")
_JDBC_URL = re.compile(
    r"jdbc:(?P<scheme>\w+)://(?P<host>[^/:;?,@]+)(?::(?P<port>\d+))?(?:/(?P<schema>[^?;]*))?"
    r"(?:[?;](?P<properties>.*))?"
)


@dataclass(frozen=True, slots=True)
class DatabaseConnection:
    """A connection to a database. Its string form is safe for messages: it contains no secrets."""

    conn_id: str
    database: DatabaseKind
    host: str
    port: int
    name: str
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return f"{self.database.kind}://{self.host}:{self.port}/{self.name}"

    @property
    def url(self) -> str:
        """The URL for JDBC, without any credentials."""
        address = f"jdbc:{self.database.scheme}://{self.host}:{self.port}"
        if self.database is DATABASES["mssql"]:
            return f"{address};databaseName={{{self.name}}}" if self.name else address
        return f"{address}/{quote(self.name, safe='')}"

    @property
    def _schema(self) -> str | None:
        """The schema in which PostgreSQL's driver looks first for a table without one."""
        properties = dict(self.properties)
        path = properties.get("currentSchema")
        if path is None:
            in_options = _SEARCH_PATH.search(properties.get("options", ""))
            path = in_options[1] if in_options else ""
        return path.split(",")[0].strip(" \"'") or None

    @property
    def turns_zero_dates(self) -> bool:
        """True if the driver of MySQL reads a date `0000-00-00` as another value."""
        return any(
            key.lower() == "zerodatetimebehavior" and value.upper() != "EXCEPTION"
            for key, value in self.properties
        )

    @property
    def text(self) -> str:
        """The connection with its credentials, as in its environment variable."""
        return json.dumps(
            {
                "conn_type": self.database.kind,
                "host": self.host,
                "port": self.port,
                "schema": self.name,
                "login": self.user,
                "password": self.password,
                "extra": {"jdbc": dict(self.properties)},
            }
        )

    def table_parts(self, table: str) -> tuple[str, ...]:
        """The parts of the name of a table.

        :raises RequestError: it is not a valid name.
        """
        parts = _PART_OF_NAME.findall(table)
        if ".".join(parts) != table or len(parts) > 3:
            message = f"'{table}' is not the name of a table"
            raise RequestError(message, "write schema.table, or `my.schema`.table")
        return tuple(
            part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts
        )

    def lineage_name(self, table: str) -> str:
        """The URI of a table in OpenLineage: `postgres://host:5432/db.schema.table`."""
        parts = self.table_parts(table)
        if len(parts) == 1 and self.database.default_schema is not None:
            parts = (self._schema or self.database.default_schema, *parts)
        wanted = 2 if self.database.default_schema is None else 3
        if len(parts) < wanted:
            parts = (self.name, *parts)
        return f"{self.database.kind}://{self.host}:{self.port}/{'.'.join(parts)}"


def database_connection(conn_id: str, airflow_fields: Mapping[str, Any]) -> DatabaseConnection:
    """The connection with the `CONNECTION_FIELDS` of an Airflow connection.

    Driver settings are in `extra`, below `jdbc`.

    :raises RequestError: it is not a connection to a supported database. The message holds no
        secret.
    """
    about = f"the connection '{conn_id}'"
    extra = _extra(about, airflow_fields.get("extra"))
    driver_settings = _driver_settings(about, extra)
    address = _address(about, airflow_fields)
    database = _database_kind(about, address.kind)
    _require_host(about, address.host)
    properties = {**address.properties, **driver_settings}
    if not properties:
        _require_known_settings(about, extra, database)
    taken = {key: setting_text(extra[key]) for key in database.taken if extra.get(key)}
    return DatabaseConnection(
        conn_id=conn_id,
        database=database,
        host=address.host,
        port=_port(about, address.port, database),
        name=_database_name(about, address.name),
        user=airflow_fields.get("login") or None,
        password=airflow_fields.get("password") or None,
        properties=tuple({**database.properties, **taken, **properties}.items()),
    )


@dataclass(frozen=True, slots=True)
class _Address:
    """The address in the fields of a connection, before it is checked.

    :param properties: settings of the driver in a JDBC URL.
    """

    kind: str
    host: str
    port: Any
    name: str
    properties: Mapping[str, str] = field(default_factory=dict)


def _address(about: str, airflow_fields: Mapping[str, Any]) -> _Address:
    """The address of a database, which the fields hold in parts or as a JDBC URL in `host`."""
    kind = str(airflow_fields.get("conn_type") or "")
    host = str(airflow_fields.get("host") or "")
    if kind == "jdbc":
        return _address_in_url(about, host)
    name = str(airflow_fields.get("schema") or "")
    return _Address(kind, host, airflow_fields.get("port"), name)


def _address_in_url(about: str, url: str) -> _Address:
    match = _JDBC_URL.fullmatch(url)
    if match is None:
        raise RequestError(
            f"{about} has no JDBC URL as its host",
            "write jdbc:postgresql://HOST:PORT/DATABASE, credentials into login and password",
        )
    properties = dict(parse_qsl((match["properties"] or "").replace(";", "&")))
    secrets = [key for key in properties if is_secret_setting(key) or key.lower() == "user"]
    if secrets:
        message = f"{about} has {secrets[0]} in its JDBC URL"
        raise RequestError(message, "write credentials into its login and password")
    name = properties.pop("databaseName", None) or match["schema"] or ""
    return _Address(match["scheme"], match["host"], match["port"], name, properties)


def _driver_settings(about: str, extra: Mapping[str, Any]) -> dict[str, str]:
    settings = extra.get("jdbc") or {}
    if not isinstance(settings, Mapping):
        message = f"{about} has an entry jdbc in its extra that is not a JSON object"
        raise RequestError(message, 'write {"jdbc": {"sslMode": "VERIFY_IDENTITY"}}')
    return {str(key): setting_text(value) for key, value in settings.items()}


def _database_kind(about: str, kind: str) -> DatabaseKind:
    database = DATABASES.get(kind)
    if database is None:
        kinds = sorted({database.kind for database in DATABASES.values()})
        message = f"{about} is of type {kind or 'none'}: no database of this type can be read"
        raise RequestError(message, f"use one of type {', '.join(kinds)}")
    return database


def _require_host(about: str, host: str) -> None:
    if not _HOST.fullmatch(host):
        raise RequestError(f"{about} has no valid host", _FORM)


def _require_known_settings(about: str, extra: Mapping[str, Any], database: DatabaseKind) -> None:
    """Rejects settings for a client in Python, if the connection has none for the JDBC driver."""
    unread = [key for key in _OF_PYTHON if extra.get(key) and key not in database.taken]
    if unread:
        raise RequestError(
            f"{about} has {unread[0]} in its extra, which the JDBC driver does not know",
            'write the setting of the driver as well: {"jdbc": {"sslMode": "VERIFY_IDENTITY"}}',
        )


def _port(about: str, given: Any, database: DatabaseKind) -> int:
    try:
        return int(given or database.port)
    except (TypeError, ValueError):
        raise RequestError(f"{about} has no valid port", _FORM) from None


def _database_name(about: str, given: str) -> str:
    if re.search(r"[;{}?&]", given):
        raise RequestError(f"{about} has no valid database as its schema", _FORM)
    return given


def connection_in(environment: Mapping[str, str], conn_id: str) -> DatabaseConnection:
    """The connection in an environment variable, as a URI or as JSON: `DQX_CONN_SHOP` for the id
    `shop`, or Airflow's own variable, `AIRFLOW_CONN_SHOP`.

    :raises RequestError: there is none, or it cannot be read. The message holds no secret.
    """
    names = [f"{start}{conn_id.upper()}" for start in (VARIABLE, _AIRFLOW_VARIABLE)]
    for name in names:
        if text := environment.get(name, "").strip():
            return database_connection(conn_id, _fields(name, text))
    raise RequestError(
        f"there is no connection '{conn_id}': neither {' nor '.join(names)} is set",
        f"set {names[0]}=postgres://USER:PASSWORD@HOST:PORT/DATABASE in the environment of the "
        "driver of Spark",
    )


def in_environment(connections: Mapping[str, DatabaseConnection]) -> AbstractContextManager[None]:
    """Passes the connections, by their ids, to the processes that are started within the block.

    They are passed only in the environment: arguments and `conf` are visible to others.
    """
    return variables_set(
        {f"{VARIABLE}{conn_id.upper()}": one.text for conn_id, one in connections.items()}
    )


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables in the environment of this process and its children within the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, text in before.items():
            os.environ.pop(name, None)
            if text is not None:
                os.environ[name] = text


def with_lineage_names(
    refs: Iterable[DatasetRef], connections: Mapping[str, DatabaseConnection]
) -> tuple[DatasetRef, ...]:
    """The datasets, with the lineage names of database tables set.

    :raises RequestError: a table has no valid name.
    """
    return tuple(
        replace(ref, lineage_name=connections[ref.conn_id].lineage_name(ref.table or ""))
        if ref.conn_id is not None and ref.conn_id in connections and ref.lineage_name is None
        else ref
        for ref in refs
    )


def _fields(variable: str, text: str) -> Mapping[str, Any]:
    """The fields of a connection from its string form.

    :raises RequestError: it is neither a URI nor JSON.
    """
    try:
        if text.startswith("{"):
            fields = json.loads(text)
            return fields if isinstance(fields, dict) else {}
        parts = urlsplit(text)
        # A host may be a whole URL, quoted.
        host = unquote(parts.netloc.rpartition("@")[2])
        plain = re.fullmatch(r"(.*?)(?::(\d+))?", host) if "://" not in host else None
        settings = dict(parse_qsl(parts.query))
        extra = json.loads(settings["__extra__"]) if "__extra__" in settings else settings
        return {
            "conn_type": parts.scheme.replace("-", "_"),
            "host": plain[1] if plain else host,
            "port": plain[2] if plain else None,
            "schema": unquote(parts.path.removeprefix("/")),
            "login": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "extra": extra,
        }
    except ValueError:
        message = f"the environment variable {variable} cannot be read"
        raise RequestError(message, f"{_FORM}; quote : / @ as %3A") from None


def _extra(about: str, given: Any) -> Mapping[str, Any]:
    """The `extra` of an Airflow connection, which may be a JSON text."""
    if isinstance(given, str) and given.strip():
        try:
            given = json.loads(given)
        except ValueError:
            message = f"{about} has an extra that is not JSON"
            raise RequestError(message, "write a JSON object") from None
    return given if isinstance(given, Mapping) else {}
