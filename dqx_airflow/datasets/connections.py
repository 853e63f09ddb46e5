"""Connections: to Spark, as an address (`local[*]`, `spark://`, `sc://` or `databricks://`), and
to databases that Spark reads over JDBC: their notation, and their meaning.

And JVM options for a driver that runs for seconds: an archive of its classes, and fast defaults. A
JVM that finds its classes loaded and linked in an archive (class data sharing) starts in a
fraction of the time. An archive only fits the Java and the jars that it was made with; a JVM
ignores it with others.

A dataset only names a connection by its id. The credentials are in an Airflow connection, or in an
environment variable with the same content. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib.resources import files
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.json_form import setting_text
from dqx_airflow.values.secret_forms import is_secret_setting

DRIVER_OPTIONS = "spark.driver.defaultJavaOptions"
"""The Spark setting for JVM options, which leaves `spark.driver.extraJavaOptions` to users."""

SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable from which spark-submit takes options of its JVM. All others come after them."""

_SHORT_LIFE = " ".join(
    line
    for line in files(__package__).joinpath("jvm_options.txt").read_text("utf-8").splitlines()
    if line.startswith("-")
)
# By default a JVM reports every archive that it ignores on stdout.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def for_a_short_life(env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables to add for `spark-submit` so that its JVM starts fast.

    No option here can conflict with another one, and options of users come later and win.
    """
    options = env.get(SUBMIT_OPTIONS, "")
    if _SHORT_LIFE in options:
        return {}
    return {SUBMIT_OPTIONS: f"{_SHORT_LIFE} {options}".rstrip()}


def with_archive(options: str, archive: str) -> str:
    """JVM options with an archive of classes; a user's archive wins, since it comes later."""
    return f"-XX:SharedArchiveFile={shlex.quote(archive)} {_QUIET} {options}".rstrip()


def while_archiving(archive: str) -> str:
    """The options with which a JVM writes the archive of its classes when it ends."""
    return f"-XX:ArchiveClassesAtExit={shlex.quote(archive)}"


_FORMS = "local[*], sail, spark://HOST:PORT, sc://HOST:PORT or databricks://HOST/CLUSTER"
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?")
_CLUSTER = re.compile(r"\d{4}-\d{6}-\w+")


class ConnectionKind(Enum):
    """The kinds of connection, by the scheme of their address."""

    LOCAL = "local"
    SAIL = "sail"
    STANDALONE = "spark"
    CONNECT = "sc"
    DATABRICKS = "databricks"


_PORTS = {ConnectionKind.STANDALONE: 7077, ConnectionKind.CONNECT: 15002}


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to Spark. Its string form is safe for messages: it omits what an address may
    hide.

    `address` is for Spark; an address of Spark Connect may contain a token. `servers` are the hosts
    and ports behind it, if known.
    """

    kind: ConnectionKind
    address: str = field(repr=False)
    servers: tuple[tuple[str, int], ...] = ()
    cluster: str | None = None

    def __str__(self) -> str:
        if self.kind in (ConnectionKind.LOCAL, ConnectionKind.SAIL):
            return self.address
        return f"{self.kind.value}://{','.join(f'{host}:{port}' for host, port in self.servers)}"


LOCAL = Connection(ConnectionKind.LOCAL, "local[*]")
"""Spark on all cores of this machine."""

SAIL = Connection(ConnectionKind.SAIL, "sail")
"""A Sail server in this process."""


def connection_of(address: str) -> Connection:
    """The connection of an address.

    `databricks://HOST/CLUSTER` names a cluster by its id, at the end of the path. Any other path,
    such as the path of an SQL warehouse, which runs no Spark programs, means serverless compute.

    :raises RequestError: it is not a valid address. The message does not repeat it.
    """
    if address.startswith("local"):
        if _LOCAL.fullmatch(address):
            return Connection(ConnectionKind.LOCAL, "local[1]" if address == "local" else address)
        raise RequestError("invalid local connection", "write local[*], or local[4] for 4 cores")
    if address == SAIL.address:
        return SAIL
    scheme, _, rest = address.partition("://")
    kind = next((kind for kind in ConnectionKind if kind.value == scheme), None)
    if kind is None or not rest:
        raise RequestError("invalid connection", f"write {_FORMS}")
    hosts, _, path = rest.partition("/")
    several = hosts.split(",") if kind is ConnectionKind.STANDALONE else [hosts]
    servers = tuple(_server(kind, host) for host in several)
    if kind is ConnectionKind.DATABRICKS:
        last = path.rstrip("/").rpartition("/")[2]
        return Connection(kind, address, servers, last if _CLUSTER.fullmatch(last) else None)
    return Connection(kind, address, servers)


def _server(kind: ConnectionKind, text: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text.partition(';')[0]}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.username is not None:
        message = f"the host of this {kind.value}:// connection cannot be read"
        raise RequestError(message, f"write {kind.value}://HOST:PORT")
    return host, port or _PORTS.get(kind, 443)


VARIABLE = "DQX_CONN_"
"""The prefix of the environment variable of a connection, followed by its id in capitals."""

FIELDS = ("conn_type", "host", "port", "schema", "login", "password", "extra")
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
            parts = (self.database.default_schema, *parts)
        wanted = 2 if self.database.default_schema is None else 3
        if len(parts) < wanted:
            parts = (self.name, *parts)
        return f"{self.database.kind}://{self.host}:{self.port}/{'.'.join(parts)}"


def database_connection(conn_id: str, airflow_fields: Mapping[str, Any]) -> DatabaseConnection:
    """The connection with the `FIELDS` of an Airflow connection.

    Driver settings are in `extra`, below `jdbc`.

    :raises RequestError: it is not a connection to a supported database. The message holds no
        secret.
    """
    kind, host = str(airflow_fields.get("conn_type") or ""), str(airflow_fields.get("host") or "")
    about, extra = f"the connection '{conn_id}'", _extra(conn_id, airflow_fields.get("extra"))
    fields = dict(airflow_fields)
    driver_settings = extra.get("jdbc") or {}
    if not isinstance(driver_settings, Mapping):
        message = f"{about} has an entry jdbc in its extra that is not a JSON object"
        raise RequestError(message, 'write {"jdbc": {"sslMode": "VERIFY_IDENTITY"}}')
    properties = {str(key): setting_text(value) for key, value in driver_settings.items()}
    if kind == "jdbc":
        match = _JDBC_URL.fullmatch(host)
        if match is None:
            raise RequestError(
                f"{about} has no JDBC URL as its host",
                "write jdbc:postgresql://HOST:PORT/DATABASE, credentials into login and password",
            )
        kind, host = match["scheme"], match["host"]
        given = dict(parse_qsl((match["properties"] or "").replace(";", "&")))
        secrets = [key for key in given if is_secret_setting(key) or key.lower() == "user"]
        if secrets:
            message = f"{about} has {secrets[0]} in its JDBC URL"
            raise RequestError(message, "write credentials into its login and password")
        fields["port"] = match["port"]
        fields["schema"] = given.pop("databaseName", None) or match["schema"]
        properties = {**given, **properties}
    database = DATABASES.get(kind)
    if database is None:
        kinds = sorted({database.kind for database in DATABASES.values()})
        message = f"{about} is of type {kind or 'none'}: no database of this type can be read"
        raise RequestError(message, f"use one of type {', '.join(kinds)}")
    if not host or not re.fullmatch(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]", host):
        raise RequestError(f"{about} has no valid host", _FORM)
    unread = [key for key in _OF_PYTHON if extra.get(key) and key not in database.taken]
    if unread and not properties:
        raise RequestError(
            f"{about} has {unread[0]} in its extra, which the JDBC driver does not know",
            'write the setting of the driver as well: {"jdbc": {"sslMode": "VERIFY_IDENTITY"}}',
        )
    taken = {key: setting_text(extra[key]) for key in database.taken if extra.get(key)}
    properties = {**database.properties, **taken, **properties}
    try:
        port = int(fields.get("port") or database.port)
    except (TypeError, ValueError):
        raise RequestError(f"{about} has no valid port", _FORM) from None
    name = str(fields.get("schema") or "")
    if re.search(r"[;{}?&]", name):
        raise RequestError(f"{about} has no valid database as its schema", _FORM)
    return DatabaseConnection(
        conn_id,
        database,
        host,
        port,
        name,
        airflow_fields.get("login") or None,
        airflow_fields.get("password") or None,
        tuple(properties.items()),
    )


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


def _extra(conn_id: str, given: Any) -> Mapping[str, Any]:
    if isinstance(given, str) and given.strip():
        try:
            given = json.loads(given)
        except ValueError:
            message = f"the connection '{conn_id}' has an extra that is not JSON"
            raise RequestError(message, "write a JSON object") from None
    return given if isinstance(given, Mapping) else {}
