"""Where the job of a gate runs: the Spark connection and its arguments.

Airflow accepts any value there, and the task would fail when it submits its job.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from logging import Logger
from typing import Any
from urllib.parse import quote

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook
from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.operators.exceptions import GateInfrastructureError, GateMisconfigured
from dqx_airflow.operators.gate_arguments import as_written, is_open, one_of
from dqx_airflow.redact import HIDDEN


def local_driver_conf(
    conf: Mapping[str, str], env_vars: Mapping[str, Any] | None, log: Logger
) -> dict[str, str]:
    """`conf` with these settings; existing ones, or those of the environment, win."""
    return {**_python(conf, env_vars or {}), **conf, **_jvm(conf, log)}


def local_driver_env(env_vars: Mapping[str, Any] | None) -> dict[str, Any]:
    """`env_vars` with options for a JVM that lives for seconds."""
    from dqx_airflow.config.jvm_options import for_a_short_life

    given = env_vars or {}
    return {**given, **for_a_short_life({**os.environ, **given})}


def _python(conf: Mapping[str, str], env_vars: Mapping[str, Any]) -> dict[str, str]:
    """The Python of this worker, unless another one is set."""
    variables = {**os.environ, **env_vars}
    if variables.keys() & {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}:
        return {}
    if "spark.pyspark.python" in conf:
        return {}
    return {"spark.pyspark.driver.python": sys.executable}


def _jvm(conf: Mapping[str, str], log: Logger) -> dict[str, str]:
    """The class archive with which the JVM of a driver starts faster, if there is one."""
    from dqx_airflow.config.jvm_options import DRIVER_OPTIONS, with_archive

    archive = airflow_conf.get("dqx", "jvm_archive", fallback=None)
    if not archive:
        return {}
    if not os.path.isfile(archive):
        log.warning(
            "file %s not found, which jvm_archive in section [dqx] names: create it with "
            "`dql package --jvm-archive`; the gate runs without it",
            archive,
        )
        return {}
    return {DRIVER_OPTIONS: with_archive(conf.get(DRIVER_OPTIONS, ""), archive)}


_STRINGS = (
    *("conn_id", "files", "py_files", "archives", "jars", "packages", "exclude_packages"),
    *("repositories", "driver_class_path", "java_class", "driver_memory", "executor_memory"),
    *("keytab", "principal", "proxy_user", "name", "spark_binary", "properties_file"),
    "yarn_queue",
)
_COUNTS = ("num_executors", "executor_cores", "total_executor_cores")
_DEPLOY_MODES = ("client", "cluster")
_CALLBACKS = tuple(
    f"on_{state}_callback" for state in ("execute", "failure", "success", "retry", "skipped")
)
SPARK_ARGUMENTS = (*_STRINGS, *_COUNTS, "deploy_mode", "verbose", "env_vars", *_CALLBACKS)
_ATTRIBUTES = tuple((name, f"_{name}") for name in SPARK_ARGUMENTS)


def spark_values(gate: Any) -> list[Any]:
    """The values of `SPARK_ARGUMENTS` of a gate, in their order; the provider keeps some of them as
    private attributes."""
    own = gate.__dict__
    return [own.get(name, own.get(private)) for name, private in _ATTRIBUTES]


def spark_mistakes(gate: Any) -> Iterator[str]:
    """Mistakes in the arguments of a gate for the submission of its job, and in its callbacks."""
    given = {
        name: value
        for name, value in zip(SPARK_ARGUMENTS, spark_values(gate), strict=True)
        if value is not None and not is_open(value)
    }
    for name in _STRINGS:
        value = given.get(name, "")
        if isinstance(value, list | tuple | set):
            yield f"{name}={value!r}: write one string, {','.join(map(str, value))!r}"
        elif not isinstance(value, str | os.PathLike):
            yield f"{name}={value!r}: write a string"
    for name in _COUNTS:
        value = given.get(name, 1)
        if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
            yield f"{name}={value!r}: write a number, 1 or more"
    if "deploy_mode" in given:
        yield from one_of("deploy_mode", given["deploy_mode"], _DEPLOY_MODES)
    if not isinstance(given.get("verbose", False), bool):
        yield f"verbose={given['verbose']!r}: write True or False"
    yield from _conf_mistakes(gate.conf)
    yield from _variable_mistakes(given.get("env_vars"))
    for name in _CALLBACKS:
        yield from callback_mistakes(name, given.get(name))


def callback_mistakes(name: str, given: Any) -> Iterator[str]:
    """Mistakes in the callbacks of an argument, one or several."""
    callbacks = [*given] if isinstance(given, list | tuple | set | frozenset) else [given]
    if given is not None and not all(map(callable, callbacks)):
        shown = as_written(callbacks) if isinstance(given, list) else given
        yield f"{name}={shown!r}: write a function or a notifier, or a list of them"


def _conf_mistakes(conf: Any) -> Iterator[str]:
    if conf is None or is_open(conf):
        return
    if not isinstance(conf, Mapping):
        yield f"conf={conf!r}: write a mapping, such as {{'spark.executor.memory': '4g'}}"
        return
    for name, value in conf.items():
        if not isinstance(name, str):
            yield f"conf has the key {name!r}: write the name of a Spark setting"
        elif not isinstance(value, str | int | float | os.PathLike) and not is_open(value):
            yield f"conf has {value!r} for {name!r}: write a string or a number"


def _variable_mistakes(given: Any) -> Iterator[str]:
    if given is None:
        return
    if not isinstance(given, Mapping):
        yield f"env_vars={given!r}: write a mapping, such as {{'TZ': 'UTC'}}"
        return
    for name, value in given.items():
        is_value = isinstance(value, (str, os.PathLike)) or is_open(value)
        if not isinstance(name, str) or not is_value:
            meant = "" if value is None else f", {str(value)!r}"
            yield f"env_vars has {value!r} for {name!r}: write a string{meant}"


_GRACE_S = 20.0  # within ten seconds the job ends itself


class ConnectJob:
    """One run of the job. Its Spark is at `address`, which may contain the `secrets`.

    The address is sent through a pipe, which neither the list of processes nor the environment
    shows. The pipe is also a leash: it is closed when this process ends for any reason, and the job
    then cancels its queries on the server, and ends as well.
    """

    def __init__(
        self, address: str, settings: Mapping[str, Any], secrets: Sequence[str] = ()
    ) -> None:
        self._opening = {
            "address": address,
            "settings": {key: str(value) for key, value in settings.items()},
        }
        self._secrets = tuple(secrets)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_let_go = False

    def run(
        self, arguments: Sequence[str], env: Mapping[str, Any], tell: Callable[[str], None]
    ) -> int:
        """Waits for the job; returns its exit code.

        :param env: added to the environment of this process.
        :param tell: is called with each line of the output.
        """
        from dqx_airflow.resources import shipped

        script = str(shipped("spark_jobs/connect_job.py"))
        self._process = process = subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **{key: str(value) for key, value in env.items()}},
            bufsize=0,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        if self._is_let_go:  # while the process was being started
            self.end()
        try:
            with suppress(BrokenPipeError, ValueError):  # its output says why it does not listen
                process.stdin.write(f"{json.dumps(self._opening)}\n".encode())
            number = process.stdout.fileno()
            with open(number, encoding="utf-8", errors="replace", closefd=False) as output:
                for line in output:
                    tell(self._hidden(line.rstrip()))
            return process.wait()
        finally:
            self.end()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()

    def end(self) -> None:
        """Releases the job without waiting for its end: safe in a signal handler."""
        self._is_let_go = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _hidden(self, line: str) -> str:
        for secret in self._secrets:
            line = line.replace(secret, HIDDEN)
        return line


_SPARK_EXAMPLE = "--conn-type spark --conn-host 'local[*]'` (or the master of your cluster)"


def require_connection(
    conn_id: str, kind: str = "Spark connection", example: str = _SPARK_EXAMPLE
) -> Any:
    """The connection. (SparkSubmitHook silently replaces an unknown one by the master `yarn`.)

    :param kind: the kind of connection, as in messages.
    :param example: the options of a command that adds one, for messages.
    :raises GateMisconfigured: there is none, it cannot be read, or it is empty.
    :raises GateInfrastructureError: the source of connections does not respond; the task is
        retried.
    """
    try:
        return _filled(BaseHook.get_connection(conn_id), conn_id, kind)
    except PermissionError as refused:
        raise GateMisconfigured(f"the {kind} '{conn_id}' may not be used: {refused}") from None
    except AirflowNotFoundException:
        pass
    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    failed = _failed_lookup(conn_id)
    if failed == "EnvironmentVariablesBackend":
        raise GateMisconfigured(f"{variable} cannot be read: write a URI, or a JSON object")
    if failed is not None:
        raise GateInfrastructureError(
            f"the {kind} '{conn_id}' cannot be looked up: {failed} does not respond"
        )
    raise GateMisconfigured(
        f"the {kind} '{conn_id}' does not exist: create it with "
        f"`airflow connections add {conn_id} {example}, or set {variable}"
    )


def _filled(connection: Any, conn_id: str, kind: str) -> Any:
    """The connection, unless it is empty. (To Airflow, a URI `spark_connect://HOST` has no scheme:
    it silently reads neither type nor host.)"""
    if connection.conn_type or connection.host:
        return connection
    raise GateMisconfigured(
        f"the {kind} '{conn_id}' has no type and no host: in a URI, write the type with `-` "
        "instead of `_`, such as spark-connect://HOST:15002"
    )


def is_connect(connection: Any) -> bool:
    """True for a connection to a Spark Connect server."""
    host = str(connection.host or "")
    return connection.conn_type in ("spark_connect", "sc") or host.startswith("sc://")


def connect_address(connection: Any) -> tuple[str, tuple[str, ...]]:
    """The `sc://` address, and the secrets in it, from the fields that SparkConnectHook reads.

    (Not by the hook itself: for a token with a slash it builds an address that PySpark cannot
    parse.)

    :raises GateMisconfigured: the connection has none.
    """
    scheme, _, rest = str(connection.host or "").rpartition("://")
    host = rest.rstrip("/")
    if not host or "/" in host or scheme not in ("", "sc"):
        raise GateMisconfigured(
            f"the Spark connection '{connection.conn_id}' has no valid Spark Connect host: "
            "write sc://HOST, the token into the password, and use_ssl into the extra"
        )
    port = f":{connection.port}" if connection.port else ""
    options = {
        "user_id": connection.login,
        "token": connection.password,
        "use_ssl": connection.extra_dejson.get("use_ssl"),
    }
    parameters = [
        f";{key}={quote(str(value), safe='')}"
        for key, value in options.items()
        if value not in (None, "")
    ]
    token = connection.password or ""
    secrets = dict.fromkeys((quote(token, safe=""), token))
    return f"sc://{host}{port}/{''.join(parameters)}", tuple(filter(None, secrets))


def master_of(connection: Any) -> str:
    """The master, as SparkSubmitHook reads it."""
    host = connection.host or ""
    is_whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
    master = host if is_whole else f"{connection.conn_type}://{host}"
    return f"{master}:{connection.port}" if connection.port else master


def _failed_lookup(conn_id: str) -> str | None:
    """The source of connections that failed, None if none did. Airflow treats a failure like an
    unknown connection."""
    try:
        from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded
    except ImportError:  # no public interface: other versions may have it elsewhere
        return None
    for backend in ensure_secrets_backend_loaded():
        try:
            backend.get_connection(conn_id=conn_id)
        except Exception:
            return type(backend).__name__
    return "the API server of Airflow" if _api_server_failed(conn_id) else None


def _api_server_failed(conn_id: str) -> bool:
    try:
        from airflow.sdk.exceptions import ErrorType
        from airflow.sdk.execution_time.comms import ErrorResponse, GetConnection
        from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS
    except ImportError:  # likewise; outside of a task there is no one to ask
        return False
    try:
        answer = SUPERVISOR_COMMS.send(GetConnection(conn_id=conn_id))
    except Exception:
        return True
    return isinstance(answer, ErrorResponse) and answer.error != ErrorType.CONNECTION_NOT_FOUND
