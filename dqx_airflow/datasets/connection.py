"""The connection to Spark, as an address: `local[*]`, `spark://`, `sc://` or `databricks://`.

And JVM options for a driver that runs for seconds: an archive of its classes, and fast defaults. A
JVM that finds its classes loaded and linked in an archive (class data sharing) starts in a fraction
of the time. An archive only fits the Java and the jars that it was made with; a JVM ignores it with
others.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from dqx_airflow.errors import RequestError

DRIVER_OPTIONS = "spark.driver.defaultJavaOptions"
"""The Spark setting for them, which leaves `spark.driver.extraJavaOptions` to users."""

SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable from which spark-submit takes options of its JVM. All others come after them."""

# A gate ends before profiling pays off. So the first compiler collects no profile, and the second
# one, which makes scans of many rows fast, compiles what has run ten times as often as usual. Nor
# does a concurrent collector pay off. A JVM that is not a server class machine uses the serial one,
# unless another is configured, with which `-XX:+UseSerialGC` would conflict; and both compilers, if
# requested. Class metadata has room for everything that Spark loads: by default, four full
# collections run before it has.
_SHORT_LIFE = " ".join(
    (
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:+NeverActAsServerClassMachine",
        "-XX:+TieredCompilation",
        *(f"-XX:-C1Profile{kind}" for kind in ("Branches", "Calls", "Checkcasts")),
        *(f"-XX:-C1Profile{kind}" for kind in ("InlinedCalls", "VirtualCalls")),
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
        "-XX:MetaspaceSize=256m",
    )
)
# By default a JVM reports every archive that it ignores on stdout.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def for_a_short_life(env: Mapping[str, str]) -> dict[str, str]:
    """The variables to add for `spark-submit` so that its JVM only does what pays off.

    No option here can conflict with another one, and options of users come later and win.
    """
    options = env.get(SUBMIT_OPTIONS, "")
    if _SHORT_LIFE in options:
        return {}
    return {SUBMIT_OPTIONS: f"{_SHORT_LIFE} {options}".rstrip()}


def with_archive(options: str, archive: str) -> str:
    """These options with an archive; a user's archive wins, since it comes later."""
    return f"-XX:SharedArchiveFile={shlex.quote(archive)} {_QUIET} {options}".rstrip()


def while_archiving(archive: str) -> str:
    """The options with which a JVM writes the archive when it ends."""
    return f"-XX:ArchiveClassesAtExit={shlex.quote(archive)}"


_FORMS = "local[*], spark://HOST:PORT, sc://HOST:PORT or databricks://HOST/CLUSTER"
_LOCAL = re.compile(r"local(\[(\*|[1-9]\d*)(,\s*\d+)?\])?")
_CLUSTER = re.compile(r"\d{4}-\d{6}-\w+")


class ConnectionKind(Enum):
    """The kinds of connection, by the scheme of their address."""

    LOCAL = "local"
    STANDALONE = "spark"
    CONNECT = "sc"
    DATABRICKS = "databricks"


_PORTS = {ConnectionKind.STANDALONE: 7077, ConnectionKind.CONNECT: 15002}


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to Spark. Its string form is safe for messages: it omits what an address may
    hide.

    `address` is for Spark; that of Spark Connect may contain a token. `servers` are the hosts and
    ports behind it, if known.
    """

    kind: ConnectionKind
    address: str = field(repr=False)
    servers: tuple[tuple[str, int], ...] = ()
    cluster: str | None = None

    def __str__(self) -> str:
        if self.kind is ConnectionKind.LOCAL:
            return self.address
        return f"{self.kind.value}://{','.join(f'{host}:{port}' for host, port in self.servers)}"


LOCAL = Connection(ConnectionKind.LOCAL, "local[*]")
"""Spark on all cores of this machine."""


def connection_of(address: str) -> Connection:
    """The connection of an address.

    `databricks://HOST/CLUSTER` names a cluster by its id, at the end of the path. Any other path,
    such as that of an SQL warehouse, which runs no Spark programs, means serverless compute.

    :raises RequestError: it is not a valid address. The message does not repeat it.
    """
    if address.startswith("local"):
        if _LOCAL.fullmatch(address):
            return Connection(ConnectionKind.LOCAL, "local[1]" if address == "local" else address)
        raise RequestError("invalid local connection", "write local[*], or local[4] for 4 cores")
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
        raise RequestError(
            f"the host of this {kind.value}:// connection cannot be read",
            f"write {kind.value}://HOST:PORT",
        )
    return host, port or _PORTS.get(kind, 443)
