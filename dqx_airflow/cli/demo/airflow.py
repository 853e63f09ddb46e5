"""Runs the example DAG with Airflow's own command and reads the states of its tasks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

from dqx_airflow.cli.demo.home import DemoHome
from dqx_airflow.errors import DqxError

DAG_ID = "flights_medallion"
TASKS = ("land_bronze", "bronze_gate", "build_silver", "silver_gate", "build_gold")

_POLL_S = 0.3


class DemoError(DqxError):
    """A step of the demo did not do what it should."""


def start_migration(home: DemoHome) -> subprocess.Popen[bytes]:
    """Starts making Airflow's metadata database (SQLite)."""
    return _start(home, "migrate", "db", "migrate")


def finish_migration(home: DemoHome, process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise DemoError("Airflow could not create its database", f"see {home.logs / 'migrate.log'}")


def run_dag(
    home: DemoHome, on: date, report: Callable[[Mapping[str, str]], None]
) -> dict[str, str]:
    """Runs the DAG for a date; returns the final state of each task.

    :param report: called with the states as they change.
    """
    earlier = _last_run(home)
    process = _start(home, on.isoformat(), "dags", "test", DAG_ID, on.isoformat())
    try:
        while process.poll() is None:
            report(_states(home, earlier))
            time.sleep(_POLL_S)
    finally:
        if process.poll() is None:
            process.terminate()
    found = _states(home, earlier)
    if set(found) != set(TASKS) or any(state in ("", "running") for state in found.values()):
        raise DemoError(
            f"the run of {on.isoformat()} did not finish",
            f"see {home.logs / (on.isoformat() + '.log')}",
        )
    return found


def _last_run(home: DemoHome) -> int:
    """The number of the newest DAG run in Airflow's database, 0 where there is none."""
    return max((number for (number,) in _query(home, "SELECT id FROM dag_run")), default=0)


def _states(home: DemoHome, earlier: int) -> dict[str, str]:
    """The state of each task of the run that came after run number `earlier`."""
    return dict(
        _query(
            home,
            "SELECT task_id, coalesce(task_instance.state, '') FROM task_instance "
            "JOIN dag_run USING (dag_id, run_id) WHERE dag_id = ? AND dag_run.id > ?",
            (DAG_ID, earlier),
        )
    )


def _query(home: DemoHome, question: str, values: tuple[object, ...] = ()) -> list[Any]:
    if not home.database.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as database:
            return database.execute(question, values).fetchall()
    except sqlite3.OperationalError:
        # Locked for a moment, or the tables are still being made.
        return []


def _start(home: DemoHome, log: str, *arguments: str) -> subprocess.Popen[bytes]:
    target: Path = home.logs / f"{log}.log"
    with target.open("wb") as file:
        return subprocess.Popen(  # noqa: S603 (our own command, no shell)
            [sys.executable, "-m", "airflow", *arguments],
            env=home.environment(),
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
