"""Gates over Spark Connect, as far as no server is needed: the process that a worker starts."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import grpc
import pytest

from dqx_airflow.values.json_form import to_arguments
from tests.operators.gate_stubs import Gates, Log, SparkSubmit, killed, wait_for
from tests.processes import free_port

pytestmark = pytest.mark.airflow


TOKEN = "hush/hush=+"


def connect_to(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    connection = {"conn_type": "spark_connect", **fields}
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps(connection))


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that takes every connection, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def processes_of(mark: Path) -> list[Path]:
    """The jobs that were started with a mark in their environment, by their folders in /proc."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            environment = (process / "environ").read_bytes()
        except (NotADirectoryError, FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if f"DQX_TEST={mark}".encode() in environment:
            found.append(process)
    return found


# The address


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"host": "lake"}, "sc://lake/"),
        ({"host": "lake", "port": 15002}, "sc://lake:15002/"),
        ({"conn_type": "spark", "host": "sc://lake:15002"}, "sc://lake:15002/"),
        ({"conn_type": "sc", "host": "lake", "port": 15002}, "sc://lake:15002/"),
        ({"conn_type": "spark", "host": "sail"}, "sail"),
        ({"host": "sail"}, "sc://sail/"),  # a server of that name
        ({"host": "sc://lake/", "login": "me", "extra": {"use_ssl": True}}, None),
        ({"host": "lake", "password": TOKEN}, "sc://lake/;token=hush%2Fhush%3D%2B"),
        (
            {"host": "lake", "extra": {"x-databricks-cluster-id": "0123", "x-api-key": TOKEN}},
            "sc://lake/;x-databricks-cluster-id=0123;x-api-key=hush%2Fhush%3D%2B",
        ),
    ],
    ids=str,
)
def test_the_fields_of_a_connection_make_an_address(
    operators: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    address: str | None,
) -> None:
    from dqx_airflow.operators.spark_connection import (
        connect_address,
        is_connect,
        require_connection,
    )

    connect_to(monkeypatch, **fields)
    connection = require_connection("server")
    assert is_connect(connection)
    expected = address or "sc://lake/;user_id=me;use_ssl=True"
    found, secrets = connect_address(connection)
    assert found == expected
    assert {unquote(secret) for secret in secrets} == ({TOKEN} if TOKEN in str(fields) else set())


@pytest.mark.parametrize("host", [None, "sc://", "lake/path", "http://lake", "lake/;token=hush"])
def test_an_invalid_host_is_refused(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch, host: str | None
) -> None:
    connect_to(monkeypatch, host=host)
    raised = gate.fails("GateMisconfiguredError", "write sc://HOST", conn_id="server")
    assert "hush" not in str(raised)


def test_a_uri_with_an_underscore_in_its_scheme_gets_the_right_spelling(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators.spark_connection import connect_address, require_connection

    monkeypatch.setenv("AIRFLOW_CONN_SERVER", "spark_connect://:hush@lake:15002")
    raised = gate.fails("GateMisconfiguredError", "spark-connect://HOST", conn_id="server")
    assert "hush" not in str(raised)
    assert spark_submit.calls == []
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", "spark-connect://lake:15002")
    assert connect_address(require_connection("server"))[0] == "sc://lake:15002/"


# The process


@pytest.mark.more
def test_an_unreachable_server_is_retried_without_showing_secrets(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    port = free_port()
    connect_to(monkeypatch, host="127.0.0.1", port=port, password=TOKEN)
    raised = gate.fails(
        "GateInfrastructureError",
        r"exit code 4",
        conn_id="server",
        jars="a.jar",
        driver_memory="4g",
    )
    assert f"sc://127.0.0.1:{port} does not respond" in log.text
    assert "ignored: jars, driver_memory" in log.text
    assert "hush" not in log.text + str(raised)
    assert spark_submit.calls == []


class Recorder(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Notes the headers of each call to a server that lets nobody in."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []

    def service(self, handler_call_details: Any) -> Any:
        self.headers.append(dict(handler_call_details.invocation_metadata))
        return grpc.unary_unary_rpc_method_handler(self._refuse)

    def _refuse(self, _: bytes, context: Any) -> None:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid token")


def test_headers_of_the_connection_reach_the_server(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    recorder = Recorder()
    server = grpc.server(ThreadPoolExecutor(2), handlers=[recorder])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    headers = {"x-databricks-cluster-id": "0123-456789-abc", "x-api-key": TOKEN}
    connect_to(monkeypatch, host="127.0.0.1", port=port, extra=headers)
    gate.fails("GateInfrastructureError", conn_id="server")
    server.stop(None)
    assert recorder.headers
    for sent in recorder.headers:
        assert sent.items() >= headers.items()
    assert f"sc://127.0.0.1:{port} refused the token" in log.text
    assert "hush" not in log.text


@pytest.fixture
def arguments(gate: Gates) -> list[str]:
    """The arguments of a job that will wait for its server."""
    return to_arguments(gate.request())


@pytest.mark.slow
def test_the_token_is_neither_in_the_arguments_nor_in_the_environment(
    silent_server: int, arguments: list[str], tmp_path: Path
) -> None:
    from dqx_airflow.operators.connect_process import ConnectJob

    job = ConnectJob(f"sc://127.0.0.1:{silent_server}/;token={TOKEN}", {"spark.key": "hush"})
    env = {"DQX_TEST": tmp_path}
    thread = threading.Thread(target=job.run, args=(arguments, env, lambda line: None))
    thread.start()
    wait_for(lambda: bool(processes_of(tmp_path)))
    (process,) = processes_of(tmp_path)
    visible = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert b"connect_job.py" in visible
    assert b"hush" not in visible
    job.end()
    thread.join(30)
    assert processes_of(tmp_path) == []


@pytest.mark.slow
def test_a_kill_of_the_task_ends_the_job(
    gate: Gates, monkeypatch: pytest.MonkeyPatch, silent_server: int, tmp_path: Path, log: Log
) -> None:
    connect_to(monkeypatch, host="127.0.0.1", port=silent_server)
    made = gate(conn_id="server", env_vars={"DQX_TEST": tmp_path})
    error = killed(made, gate.context, lambda: bool(processes_of(tmp_path)))
    assert isinstance(error, gate.operators.GateInfrastructureError)
    assert "the task of this gate has ended" in log.text
    assert processes_of(tmp_path) == []


WORKER = """
import sys
from dqx_airflow.operators.connect_process import ConnectJob

address, folder, *arguments = sys.argv[1:]
ConnectJob(address, {}).run(arguments, {"DQX_TEST": folder}, print)
"""


@pytest.mark.nightly
def test_the_job_ends_with_a_killed_worker(
    silent_server: int, arguments: list[str], tmp_path: Path
) -> None:
    given = [f"sc://127.0.0.1:{silent_server}", str(tmp_path), *arguments]
    with subprocess.Popen([sys.executable, "-c", WORKER, *given]) as worker:
        wait_for(lambda: bool(processes_of(tmp_path)))
        worker.kill()
    wait_for(lambda: not processes_of(tmp_path))


@pytest.mark.nightly
def test_a_job_ends_at_its_deadline_though_its_server_hangs(
    gate: Gates, monkeypatch: pytest.MonkeyPatch, silent_server: int, tmp_path: Path
) -> None:
    connect_to(monkeypatch, host="127.0.0.1", port=silent_server)
    gate.fails(
        "GateTimeoutError",
        r"longer than 1 seconds; increase the",
        conn_id="server",
        env_vars={"DQX_TEST": tmp_path},
        validation_timeout=1,
    )
    assert processes_of(tmp_path) == []
