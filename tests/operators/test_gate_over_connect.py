"""Gates over a real Spark Connect server, on real Delta tables, as tasks of a real Airflow.

The job of a gate finds what `pyspark-client` installs, no py4j, and no Java.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import dqx_airflow
from dqx_airflow.results.runs import list_runs
from tests.operators.gate_stubs import ENDLESS, SUITE, Gates, Log, Run, dag_file, killed, wait_for
from tests.processes import PROGRAMS, environment, free_port, running, succeeds, wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.e2e]


TOKEN = "hush/hush+=;"

DAG_FILE = dag_file("""
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        date="2024-05-17",
        conn_id="server",
        retries=1,
        retry_delay=timedelta(0),
        **GATE,
    ) >> EmptyOperator(task_id="downstream")
""")


@dataclass(frozen=True, slots=True)
class Server:
    """A Spark Connect server that wants a token, and the REST interface of its Spark."""

    port: int
    monitor: str

    def jobs(self, status: str) -> int:
        (application,) = self._ask("applications")
        return len(self._ask(f"applications/{application['id']}/jobs?status={status}"))

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.monitor}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)


@contextmanager
def serving(folder: Path, found: Server) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server by the unit file of the docs, with less memory and one core."""
    folder.mkdir(exist_ok=True)
    program, *arguments = unit_command()
    command = [str(PROGRAMS / Path(program).name), *arguments[:-1], "--master", "local[1]"]
    settings = {
        "spark.connect.grpc.binding.port": found.port,
        "spark.driver.memory": "1g",
        "spark.ui.port": found.monitor.rpartition(":")[2],
        "spark.sql.warehouse.dir": folder / "warehouse",
    }
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    answers = ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{found.port}"]
    log, env = folder / "log", environment(SPARK_CONNECT_AUTHENTICATE_TOKEN=TOKEN)
    with running([*command, arguments[-1]], env, log) as process:
        wait_until(lambda: succeeds(answers, env), log)
        yield process


def unit_command() -> list[str]:
    """The command of the systemd unit in the docs, without the size of its heap."""
    page = Path(dqx_airflow.__file__).parent / "docs" / "operating.md"
    (command,) = re.findall(r"^ExecStart=((?:.*\\\n)*.*)$", page.read_text(encoding="utf-8"), re.M)
    words = shlex.split(command.replace("\\\n", " "))
    at = words.index("--driver-memory")
    return words[:at] + words[at + 2 :]


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Server, subprocess.Popen[bytes]]]:
    """The server of all tests, and its process."""
    found = Server(free_port(), f"http://127.0.0.1:{free_port()}")
    with serving(tmp_path_factory.mktemp("server"), found) as process:
        yield found, process


@pytest.fixture
def server(service: tuple[Server, subprocess.Popen[bytes]]) -> Server:
    return service[0]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of `pyspark-client`, in the place of pyspark and py4j."""
    folder = tmp_path_factory.mktemp("client")
    for file in distribution("pyspark-client").files or ():
        if file.parts[0] == "pyspark":
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).symlink_to(Path(str(file.locate())))
    (folder / "py4j").mkdir()
    missing = "raise ModuleNotFoundError('there is no py4j', name='py4j')\n"
    (folder / "py4j" / "__init__.py").write_text(missing)
    return folder


@pytest.fixture
def connected(server: Server, client: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Sets the connection; returns the arguments of a gate that runs without a JVM."""
    # A channel to localhost may carry a token unencrypted.
    connection = {"conn_type": "spark_connect", "host": "localhost", "port": server.port}
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps({**connection, "password": TOKEN}))
    return {"env_vars": {"PYTHONPATH": str(client), "JAVA_HOME": "/nowhere", "PATH": "/nowhere"}}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    days = pa.array([date(2024, 5, 17)] * 3)
    for name, ids in {"sound": [1, 2, 3], "damaged": [1, 2, None]}.items():
        write_deltalake(str(tmp_path / "lake" / name), pa.table({"id": ids, "ds": days}))
    return tmp_path / "lake"


@pytest.mark.parametrize(
    ("data", "states"),
    [("sound", ("success", "success", 1)), ("damaged", ("failed", "upstream_failed", 1))],
)
def test_a_gate_ends_as_with_spark_submit(
    run_file: Callable[..., Run],
    connected: dict[str, Any],
    lake: Path,
    tmp_path: Path,
    server: Server,
    log: Log,
    data: str,
    states: tuple[str, str, int],
) -> None:
    dataset = {"path": str(lake / data), "date_column": "ds", "keys": ["id"]}
    conf = {"spark.executor.memory": "hush", "spark.sql.shuffle.partitions": "3"}
    given = {"datasets": {"orders": dataset}, "conf": conf, **connected}
    run = run_file(DAG_FILE.replace("GATE", repr(given)), {"orders.dql": SUITE})
    assert (run["gate"], run["downstream"], run.tries()) == states, log.text
    report = run.xcom("dqx_report")
    assert report["versions"] == {"orders": 0}
    assert report["counts"]["failed"] == (data == "damaged")
    (row,) = list_runs(str(tmp_path / "results"))
    assert row.run_id == report["run_id"]
    assert "only the server can set spark.executor.memory" in log.text
    assert "hush" not in log.text


def test_a_refused_token_is_not_shown(
    gate: Gates,
    connected: dict[str, Any],
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    log: Log,
) -> None:
    connection = {"conn_type": "spark_connect", "host": "localhost", "port": server.port}
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps({**connection, "password": "whisper"}))
    gate.fails("GateInfrastructureError", "exit code 4", conn_id="server", **connected)
    assert f"error: sc://localhost:{server.port} refused the token" in log.text
    assert "whisper" not in log.text


@pytest.mark.nightly
def test_a_timeout_cancels_what_the_server_runs(
    gate: Gates, connected: dict[str, Any], server: Server, tmp_path: Path
) -> None:
    datasets = {"orders": {"query": ENDLESS}}
    cancelled = server.jobs("failed")
    gate.fails(
        "GateTimeoutError",
        "longer than 25 seconds",
        conn_id="server",
        datasets=datasets,
        validation_timeout=25,
        **connected,
    )
    wait_for(lambda: server.jobs("failed") > cancelled)
    wait_for(lambda: not server.jobs("running"))
    assert not list((tmp_path / "results").glob("runs/*.parquet"))


def test_a_kill_cancels_what_the_server_runs(
    gate: Gates, connected: dict[str, Any], server: Server
) -> None:
    made = gate(conn_id="server", datasets={"orders": {"query": ENDLESS}}, **connected)
    error = killed(made, gate.context, lambda: server.jobs("running") > 0)
    assert isinstance(error, gate.operators.GateInfrastructureError)
    wait_for(lambda: not server.jobs("running"))


@pytest.mark.nightly
def test_a_killed_server_is_no_pass_and_the_retry_uses_the_next_server(
    gate: Gates,
    connected: dict[str, Any],
    service: tuple[Server, subprocess.Popen[bytes]],
    tmp_path: Path,
    log: Log,
) -> None:
    """It kills the server of the tests above, so that it is the last one."""
    server, process = service
    ended: list[BaseException] = []

    def run_endless() -> None:
        try:
            gate.run(conn_id="server", datasets={"orders": {"query": ENDLESS}}, **connected)
        except Exception as error:
            ended.append(error)

    task = threading.Thread(target=run_endless, daemon=True)
    task.start()
    wait_for(lambda: server.jobs("running") > 0)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with serving(tmp_path / "server", server):
        task.join(120)
        (error,) = ended
        assert isinstance(error, gate.operators.GateInfrastructureError)
        assert "Spark was lost: the session is no longer on the server" in str(error)
        assert "RETRIES_EXCEEDED" not in log.text
        assert not list((tmp_path / "results").glob("runs/*.parquet"))
        fine = {"orders": {"query": "SELECT 1 AS id"}}
        gate.run(conn_id="server", datasets=fine, **connected)
    (run,) = list_runs(str(tmp_path / "results"))
    assert run.outcome == "passed"
