"""Airflow's services as processes on this machine, and their API."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.operators.gate_stubs import SparkSubmit
from tests.processes import environment, free_port, output_of, running, wait_until

_ENDED = ("success", "failed")
_ASKED_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class TaskState:
    """A task instance as the API tells of it."""

    state: str | None
    tries: int
    pid: int | None


class Airflow:
    """The running services, and what is asked of them. `home` is AIRFLOW_HOME, and `user` who asks;
    without one, everybody is an admin."""

    def __init__(
        self, home: Path, env: Mapping[str, str], services: ExitStack, user: str | None = None
    ) -> None:
        self.home = home
        self.user = user
        self._env = env
        self._services = services
        self._scheduler = self._start("scheduler")
        self._start("dag-processor")
        self._start("api-server")

    def _start(self, service: str) -> subprocess.Popen[bytes]:
        log = self.home / f"{service}.log"
        return self._services.enter_context(running(["airflow", service], self._env, log))

    def start_triggerer(self) -> None:
        self._start("triggerer")

    def kill_scheduler(self) -> None:
        """Kills the scheduler, not the tasks that it started, and starts another one."""
        self._scheduler.kill()
        self._scheduler.wait()
        self._scheduler = self._start("scheduler")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._env['AIRFLOW__API__PORT']}"

    @property
    def token(self) -> str:
        """The token of the user, whose password is the name."""
        if self.user is None:
            token = self._answer("GET", "/auth/token")["access_token"]
        else:
            known = {"username": self.user, "password": self.user}
            token = self._answer("POST", "/auth/token", known)["access_token"]
        return str(token)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return self._answer(method, f"/api/v2/{path}", body, self.token)

    def is_healthy(self) -> bool:
        try:
            health = self.ask("GET", "monitor/health")
        except OSError:
            return False
        parts = (health[name]["status"] for name in ("metadatabase", "scheduler", "dag_processor"))
        return set(parts) == {"healthy"}

    def run(self, dag_id: str, **conf: str) -> str:
        """Starts a run; returns its id."""
        made = self.ask("POST", f"dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})
        run_id: str = made["dag_run_id"]
        return run_id

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", f"dags/{dag_id}/dagRuns")["dag_runs"]
        return found

    def tasks(self, dag_id: str, run_id: str, task_id: str) -> list[TaskState]:
        """The instances of a task, in the order of their map indices."""
        found = self.ask("GET", f"dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return [
            TaskState(instance["state"], instance["try_number"], instance["pid"])
            for instance in sorted(found, key=lambda instance: instance["map_index"])
            if instance["task_id"] == task_id
        ]

    def wait_until(self, is_so: Callable[[], bool], seconds: float = 600) -> None:
        wait_until(is_so, self.home / "scheduler.log", seconds)

    def wait_for_end(self, dag_id: str, run_id: str) -> str:
        """Waits until the run has come to its end; returns its state."""

        def state() -> str:
            found: str = self.ask("GET", f"dags/{dag_id}/dagRuns/{run_id}")["state"]
            return found

        self.wait_until(lambda: state() in _ENDED)
        return state()

    def clear(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Clears a task with all that stands after it."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [task_id],
            "include_downstream": True,
            "only_failed": False,
        }
        self.ask("POST", f"dags/{dag_id}/clearTaskInstances", body)

    def mark(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        self.ask("PATCH", path, {"new_state": state})

    def _answer(self, method: str, path: str, body: object = None, token: str = "") -> Any:
        """The answer of the API. A request that ended with a locked SQLite is sent again: the
        services of Airflow are several writers, and SQLite takes one at a time."""
        request = urllib.request.Request(
            f"{self.address}{path}",
            method=method,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            data=None if body is None else json.dumps(body).encode(),
        )
        asked = 1
        while True:
            try:
                with urllib.request.urlopen(request, timeout=90) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                is_refused = error.code == 500 and b"Database error" in error.read()
                if not is_refused or asked == _ASKED_AT_MOST:
                    raise
                asked += 1


@dataclass(frozen=True)
class DagOfTest:
    """The DAG of a test, with a Spark and a results store of its own."""

    airflow: Airflow
    dag_id: str

    @property
    def home(self) -> Path:
        return self.airflow.home / self.dag_id

    @property
    def spark(self) -> SparkSubmit:
        return SparkSubmit(self.home / "spark")


@contextmanager
def airflow_services(
    home: Path,
    settings: Mapping[str, str],
    *,
    user: str | None = None,
    before: Sequence[Sequence[str]] = (),
) -> Iterator[Airflow]:
    """The services on SQLite, with the DAGs of `home/dags`, all of them parsed.

    :param user: who asks.
    :param before: commands of `airflow` before the DAGs are parsed.
    """
    port = str(free_port())
    env = environment(
        AIRFLOW_HOME=str(home),
        AIRFLOW__API__HOST="127.0.0.1",
        AIRFLOW__API__PORT=port,
        AIRFLOW__API__WORKERS="1",
        AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION="False",
        AIRFLOW__CORE__DAGS_FOLDER=str(home / "dags"),
        AIRFLOW__CORE__EXECUTION_API_SERVER_URL=f"http://127.0.0.1:{port}/execution/",
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__PARALLELISM="4",
        AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=str(user is None),
        # SQLite takes one writer at a time, and the services are many.
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{home}/airflow.db?timeout=60",
        AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT=str(free_port()),
        AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT=str(free_port()),
        AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL="1",
        **settings,
    )
    for command in (["db", "migrate"], *before, ["dags", "reserialize"]):
        output_of(["airflow", *command], env=env)
    with ExitStack() as services:
        airflow = Airflow(home, env, services, user)
        airflow.wait_until(airflow.is_healthy)
        yield airflow
