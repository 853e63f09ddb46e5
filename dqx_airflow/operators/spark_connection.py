"""The Spark connection of a gate, and where its driver will run."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from dqx_airflow.operators.airflow_versions import api_server_failed, secrets_backends
from dqx_airflow.operators.exceptions import GateInfrastructureError, GateMisconfiguredError

_SPARK_EXAMPLE = "--conn-type spark --conn-host 'local[*]'` (or the master of your cluster)"


def require_connection(
    conn_id: str, kind: str = "Spark connection", example: str = _SPARK_EXAMPLE
) -> Any:
    """The connection. (SparkSubmitHook silently replaces an unknown one by the master `yarn`.)

    :param kind: the kind of connection, as in messages.
    :param example: the options of a command that adds one, for messages.
    :raises GateMisconfiguredError: there is none, it cannot be read, or it is empty.
    :raises GateInfrastructureError: the source of connections does not respond; the task is
        retried.
    """
    try:
        return _filled(BaseHook.get_connection(conn_id), conn_id, kind)
    except PermissionError as refused:
        raise GateMisconfiguredError(f"the {kind} '{conn_id}' may not be used: {refused}") from None
    except AirflowNotFoundException:
        pass
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    failed = _failed_lookup(conn_id)
    if failed == "EnvironmentVariablesBackend":
        raise GateMisconfiguredError(f"{variable} cannot be read: write a URI, or a JSON object")
    if failed is not None:
        raise GateInfrastructureError(
            f"the {kind} '{conn_id}' cannot be looked up: {failed} does not respond"
        )
    raise GateMisconfiguredError(
        f"the {kind} '{conn_id}' does not exist: create it with "
        f"`airflow connections add {conn_id} {example}, or set {variable}"
    )


def _filled(connection: Any, conn_id: str, kind: str) -> Any:
    """The connection, unless it is empty. (To Airflow, a URI `spark_connect://HOST` has no scheme:
    it silently reads neither type nor host.)"""
    if connection.conn_type or connection.host:
        return connection
    raise GateMisconfiguredError(
        f"the {kind} '{conn_id}' has no type and no host: in a URI, write the type with `-` "
        "instead of `_`, such as spark-connect://HOST:15002"
    )


def is_sail(connection: Any) -> bool:
    """True for a connection of the type Spark with the host `sail`: a Sail server in the process of
    the gate. (A Spark Connect server may have that name.)"""
    from dqx_airflow.datasets.spark_address import SAIL

    is_of_spark = connection.conn_type == "spark" and not connection.port
    return bool(is_of_spark and connection.host == SAIL.address)


def is_connect(connection: Any) -> bool:
    """True for a connection over Spark Connect: to a server, or to Sail in the gate's process."""
    host = str(connection.host or "")
    is_of_connect = connection.conn_type in ("spark_connect", "sc") or host.startswith("sc://")
    return is_of_connect or is_sail(connection)


def connect_address(connection: Any) -> tuple[str, tuple[str, ...]]:
    """The address, and the secrets in it: `sail`, or `sc://HOST` from the fields that
    SparkConnectHook reads.

    (Not by the hook itself: for a token with a slash it builds an address that PySpark cannot
    parse, and it leaves out headers, such as the one that names a cluster of Databricks.)

    :raises GateMisconfiguredError: the connection has none.
    """
    from dqx_airflow.datasets.spark_address import SAIL
    from dqx_airflow.values.secret_forms import is_secret_setting

    if is_sail(connection):
        return SAIL.address, ()
    scheme, _, rest = str(connection.host or "").rpartition("://")
    host = rest.rstrip("/")
    if not host or "/" in host or scheme not in ("", "sc"):
        raise GateMisconfiguredError(
            f"the Spark connection '{connection.conn_id}' has no valid Spark Connect host: "
            "write sc://HOST, the token as its password, and use_ssl and headers such as "
            "x-databricks-cluster-id in its extra"
        )
    extra = connection.extra_dejson
    headers = {key: extra[key] for key in extra if key.startswith("x-")}
    port = f":{connection.port}" if connection.port else ""
    options = {
        "user_id": connection.login,
        "token": connection.password,
        "use_ssl": extra.get("use_ssl"),
        **headers,
    }
    parameters = [
        f";{key}={quote(str(value), safe='')}"
        for key, value in options.items()
        if value not in (None, "")
    ]
    hidden = [str(headers[key]) for key in headers if is_secret_setting(key)]
    texts = filter(None, [connection.password, *hidden])
    secrets = dict.fromkeys(form for text in texts for form in (quote(text, safe=""), text))
    return f"sc://{host}{port}/{''.join(parameters)}", tuple(secrets)


def master_of(connection: Any) -> str:
    """The master, as SparkSubmitHook reads it."""
    host = connection.host or ""
    is_whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
    master = host if is_whole else f"{connection.conn_type}://{host}"
    return f"{master}:{connection.port}" if connection.port else master


def _failed_lookup(conn_id: str) -> str | None:
    """The source of connections that failed, None if none did. Airflow treats a failure like an
    unknown connection."""
    for backend in secrets_backends():
        try:
            backend.get_connection(conn_id=conn_id)
        except Exception:
            return type(backend).__name__
    return "the API server of Airflow" if api_server_failed(conn_id) else None
