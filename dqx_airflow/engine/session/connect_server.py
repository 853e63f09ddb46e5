"""The TLS certificate of a Spark Connect server, checked before gates rely on it: gRPC would retry
for minutes and give no reason."""

from __future__ import annotations

import os
import socket
import ssl
from importlib import resources

from dqx_airflow.datasets.connections import Connection
from dqx_airflow.engine.session.spark_versions import channel_of
from dqx_airflow.errors import SparkError

_ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"


def require_tls(connection: Connection, timeout_s: float) -> None:
    """Checks the certificate of a server that requires TLS.

    :raises SparkError: it offers no TLS, or a certificate that gRPC does not trust.
    """
    channel = channel_of(connection.address)
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
