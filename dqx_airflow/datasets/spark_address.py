"""The address of a Spark: `local[*]`, `sail`, `spark://`, `sc://` or `databricks://`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from dqx_airflow.errors import RequestError

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
    if scheme not in {kind.value for kind in ConnectionKind} or not rest:
        raise RequestError("invalid connection", f"write {_FORMS}")
    kind = ConnectionKind(scheme)
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
