"""Airflow on this machine: an API server and a scheduler with the example DAG, whose runs are
triggered over the REST API and read from the database."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from dqx_airflow.cli.demo.home import DemoHome
from dqx_airflow.cli.demo.processes import (
    POLL_S,
    START_TIMEOUT_S,
    DemoError,
    free_port,
    require_running,
    start,
    stop,
)

DAG_ID = "flights_medallion"
TASKS = ("land_bronze", "bronze_gate", "build_silver", "silver_gate", "build_gold")

_RUN_TIMEOUT_S = 1800
_ANSWER_TIMEOUT_S = 60
_ALREADY_THERE = 409


def finish_migration(home: DemoHome, process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise DemoError("Airflow could not create its database", f"see {home.logs / 'migrate.log'}")


@dataclass(frozen=True, slots=True)
class RunningAirflow:
    """An Airflow with a running scheduler."""

    home: DemoHome
    address: str
    token: str
    processes: Sequence[subprocess.Popen[bytes]]

    def unpause(self) -> None:
        """Unpauses the example DAG, and no other example."""
        self._call(f"dags/{DAG_ID}", {"is_paused": False}, "PATCH")

    def trigger(self, on: date) -> str:
        """Starts the run of a date, or the same one again; returns its id, which is the date."""
        run_id = on.isoformat()
        body = {"dag_run_id": run_id, "logical_date": f"{run_id}T00:00:00Z"}
        try:
            self._call(f"dags/{DAG_ID}/dagRuns", body)
        except HTTPError as error:
            if error.code != _ALREADY_THERE:
                raise DemoError(f"Airflow did not accept the run {run_id}", str(error)) from None
            self._call(f"dags/{DAG_ID}/dagRuns/{run_id}/clear", {"dry_run": False})
        return run_id

    def follow(self, run_ids: Sequence[str]) -> Iterator[dict[str, dict[str, str]]]:
        """The states of the tasks of each run, by its id, repeatedly until all have ended.

        :raises DemoError: Airflow ended, or the runs do not end.
        """
        deadline = time.monotonic() + _RUN_TIMEOUT_S
        while True:
            # In this order: a run that has ended by now has all its states.
            ended = {run for run, state in self._runs() if state in ("success", "failed")}
            yield self._states(run_ids)
            if ended.issuperset(run_ids):
                return
            require_running(self.home, self.processes)
            if time.monotonic() > deadline:
                raise DemoError(
                    f"the runs did not finish in {_RUN_TIMEOUT_S} seconds", f"see {self.home.logs}"
                )
            time.sleep(POLL_S)

    def _runs(self) -> list[Any]:
        return _query(self.home, "SELECT run_id, state FROM dag_run WHERE dag_id = ?", (DAG_ID,))

    def _states(self, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
        rows = _query(
            self.home,
            "SELECT run_id, task_id, coalesce(state, '') FROM task_instance WHERE dag_id = ?",
            (DAG_ID,),
        )
        states = {(run_id, task): state for run_id, task, state in rows}
        return {run: {task: states.get((run, task), "") for task in TASKS} for run in run_ids}

    def _call(self, path: str, body: Mapping[str, Any], method: str = "POST") -> None:
        _answer(f"{self.address}/api/v2/{path}", method, body, self.token)


@contextmanager
def running_airflow(home: DemoHome) -> Iterator[RunningAirflow]:
    """An Airflow with the example DAG, which ends with the block.

    :raises DemoError: it did not start.
    """
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    only_here = {"AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{address}/execution/"}
    with ExitStack() as stack:
        processes = []
        for log, *command in (
            ("api_server", "api-server", "--port", str(port)),
            ("scheduler", "scheduler", "--skip-serve-logs"),
        ):
            process = start_airflow(home, log, *command, env=only_here)
            stack.callback(stop, [process])
            processes.append(process)
        read = start_airflow(home, "read_dags", "dags", "reserialize")
        stack.callback(stop, [read])
        if read.wait():
            raise DemoError("Airflow could not read the DAG", f"see {home.logs / 'read_dags.log'}")
        yield RunningAirflow(home, address, _token(home, address, processes), processes)


def _token(home: DemoHome, address: str, processes: Sequence[subprocess.Popen[bytes]]) -> str:
    """The API token, as soon as the API responds. No login is needed."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return str(_answer(f"{address}/auth/token")["access_token"])
        except (URLError, ConnectionError, TimeoutError):
            require_running(home, processes)
            if time.monotonic() > deadline:
                raise DemoError(
                    "Airflow's API server did not respond", f"see {home.logs / 'api_server.log'}"
                ) from None
            time.sleep(POLL_S)


def _answer(
    url: str, method: str = "GET", body: Mapping[str, Any] | None = None, token: str = ""
) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = Request(url, data, headers, method=method)  # noqa: S310 (our own address)
    with urlopen(request, timeout=_ANSWER_TIMEOUT_S) as answer:  # noqa: S310
        return json.load(answer)


def _query(home: DemoHome, question: str, values: tuple[object, ...] = ()) -> list[Any]:
    if not home.database.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as database:
            return database.execute(question, values).fetchall()
    except sqlite3.OperationalError:
        # Locked for a moment, or the tables are still being created.
        return []


def start_airflow(
    home: DemoHome, log: str, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts a command of Airflow.

    :param env: added to the environment of the demo.
    """
    return start(home, log, [sys.executable, "-m", "airflow", *arguments], env)
