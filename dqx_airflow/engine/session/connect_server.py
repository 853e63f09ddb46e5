"""Requirements on a Spark Connect server before gates rely on it: a trusted TLS certificate and a
recent version.

Violations are reported at once. gRPC would retry for minutes and give no reason.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from importlib import resources
from typing import Any

import pyspark

from dqx_airflow.datasets.connections import Connection
from dqx_airflow.errors import SparkError

_ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"


def require_tls(connection: Connection, timeout_s: float) -> None:
    """Checks the certificate of a server that requires TLS.

    :raises SparkError: it offers no TLS, or a certificate that gRPC does not trust.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel: Any = DefaultChannelBuilder(connection.address)
    if not channel.secure or (channel.host == "localhost" and not channel.use_ssl):
        return
    ((host, port),) = connection.servers
    try:
        context = ssl.create_default_context(cafile=_trusted())
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection((host, port), timeout=timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return
    except ssl.SSLCertVerificationError as error:
        raise SparkError(
            f"{connection}: its certificate is not trusted: {error.verify_message}",
            f"set {_ROOTS} to the file with the certificate of its authority",
        ) from error
    except (ssl.SSLError, ConnectionError, TimeoutError) as error:
        raise SparkError(
            f"{connection} has no TLS, and without TLS a token goes to localhost only",
            f"write sc://localhost:{port} on the same machine, or put a proxy with TLS before it",
        ) from error


def _trusted() -> str:
    """The file of certificate authorities that gRPC trusts."""
    if given := os.environ.get(_ROOTS):
        return given
    return str(resources.files("grpc") / "_cython" / "_credentials" / "roots.pem")


def require_version(session: Any, connection: Connection) -> None:
    """Compares the versions of the server and the client.

    A server accepts clients of older versions. Requests of a newer client may be unknown to it:
    they fail in the middle of a scan, or are ignored.

    :raises SparkError: the client is newer.
    """
    server, client = session.version, pyspark.__version__
    if _release(server) < _release(client):
        raise SparkError(
            f"{connection} runs Spark {server}, and pyspark here is {client}: a client must not be "
            "newer than its server",
            f"upgrade the server to {client}, or install pyspark-client=={server} here",
        )


def _release(version: str) -> tuple[int, ...]:
    """Major and minor number."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
