"""The messages for Spark Connect servers that die or cannot be trusted, without a server."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dqx_airflow.datasets.spark_address import connection_of
from dqx_airflow.engine.session.connection import require_tls
from dqx_airflow.engine.session.spark_versions import require_pair
from dqx_airflow.errors import SparkError
from tests.processes import free_port

pytestmark = pytest.mark.spark

DRAWN = """<_MultiThreadedRendezvous of RPC that terminated with:
\tstatus = StatusCode.{status}
\tdetails = "{details}"
\tdebug_error_string = "UNKNOWN:Error received from peer"
>"""
REFUSED = "[::1]:15002: Failed to connect to remote host: Connection refused"
FULL = "Stream removed (RST_STREAM (Received RST_STREAM with error code 2))"


@pytest.mark.parametrize(
    ("status", "details", "message"),
    [
        (
            "UNAVAILABLE",
            "failed to connect to all addresses; last error: UNKNOWN: ipv6:%5B::1%5D:15002: "
            "Failed to connect to remote host: Connection refused",
            REFUSED,
        ),
        ("UNKNOWN", FULL, FULL),
        ("UNAUTHENTICATED", "Invalid token", "Invalid token"),
    ],
    ids=["gone", "out of memory", "another token"],
)
def test_the_message_has_the_reason_and_not_the_name_of_a_class_of_grpc(
    status: str, details: str, message: str
) -> None:
    import grpc
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    from dqx_airflow.engine.session.spark_errors import spark_failures

    drawn = DRAWN.format(status=status, details=details)
    lost = SparkConnectGrpcException(drawn, grpc_status_code=grpc.StatusCode[status])
    with pytest.raises(SparkError) as raised, spark_failures():
        raise lost
    assert raised.value.problem == f"Spark was lost: {message}"
    assert raised.value.hint


def test_only_the_first_failing_call_waits() -> None:
    import grpc
    from pyspark.sql.connect.client.retries import Retrying

    from dqx_airflow.engine.session.connect_retries import LimitedRetries

    policy, waited = LimitedRetries(), list[float]()

    def call() -> None:
        for attempt in Retrying(policy, sleep=waited.append):
            with attempt, grpc.insecure_channel(f"127.0.0.1:{free_port()}") as channel:
                channel.unary_unary("/nobody")(b"")

    for _ in range(2):
        with pytest.raises(grpc.RpcError):
            call()
        assert 50 < sum(waited) < 70


def test_a_refused_token_is_reported_in_one_line() -> None:
    import grpc
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    from dqx_airflow.engine.session.connection import spark_errors_explained

    status = grpc.StatusCode.UNAUTHENTICATED
    drawn = DRAWN.format(status=status.name, details="Invalid token")
    connection = connection_of("sc://lake:15002/;token=hush")
    with pytest.raises(SparkError) as raised, spark_errors_explained(connection):
        raise SparkConnectGrpcException(drawn, grpc_status_code=status)
    assert raised.value.problem == "sc://lake:15002 refused the token"
    assert "password of the connection" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("server", "client", "is_refused"),
    [
        ("4.0.5", "4.2.0", False),
        ("4.2.0", "3.5.9", True),
        ("3.5.9-amzn-1", "3.5.2", False),
        ("99.0.0-SNAPSHOT", "4.2.0", False),
        ("3.5.8", "4.0.4", True),
        ("3.4.1", "3.5.9", True),
    ],
)
def test_a_server_that_does_not_understand_its_client_is_refused_before_the_scan(
    server: str, client: str, is_refused: bool
) -> None:
    if not is_refused:
        require_pair(server, client, "sc://lake")
        return
    with pytest.raises(SparkError, match=server) as raised:
        require_pair(server, client, "sc://lake")
    assert "pip install" in (raised.value.hint or "")


def test_missing_tls_and_an_untrusted_certificate_are_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", raising=False)
    require_tls(connection_of("sc://localhost:1/;token=hush"), 5)  # takes no TLS
    require_tls(connection_of("sc://127.0.0.1:1"), 5)  # neither
    with answering(None) as port, pytest.raises(SparkError, match="has no TLS") as raised:
        require_tls(connection_of(f"sc://127.0.0.1:{port}/;token=hush"), 5)
    assert f"sc://localhost:{port}" in (raised.value.hint or "")
    assert "hush" not in str(raised.value)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate)
    subprocess.run(["openssl", "req", "-x509", *names, *made], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with answering(context) as port:
        connection = connection_of(f"sc://localhost:{port}/;use_ssl=true;token=hush")
        with pytest.raises(SparkError, match="is not trusted: self-signed certificate"):
            require_tls(connection, 5)
        monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(certificate))
        require_tls(connection, 5)


@contextmanager
def answering(context: ssl.SSLContext | None) -> Iterator[int]:
    """The port of a server that greets in TLS, or else in plain text."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    try:
                        if context is None:
                            peer.recv(64)
                            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                        else:
                            context.wrap_socket(peer, server_side=True).close()
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
