"""The three days of the demo, from the wheel alone; `test_storm_day.py` checks the storm in detail,
from the checkout.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.demo_runs import DAYS, ORDINARY, QUESTIONS, STORM, THANKSGIVING, Demo, run_demo
from tests.e2e.marquez import Marquez
from tests.openlineage_schemas import problems
from tests.processes import output_of

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def demo(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run_demo(tmp_path_factory.mktemp("demo"), program=programs / "dql")


@pytest.fixture(scope="module")
def submitted(programs: Path, jvm_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The ordinary day with a `spark-submit` for each job and gate."""
    home = tmp_path_factory.mktemp("submitted")
    options = ("--engine", "spark-submit", "--day", ORDINARY.isoformat())
    return run_demo(home, *options, program=programs / "dql", jvm_archive=jvm_archive)


@pytest.mark.parametrize(("on", "expected"), DAYS)
def test_every_task_of_the_three_days_ends_in_its_expected_state(
    demo: Demo, on: date, expected: dict[str, str]
) -> None:
    assert demo.states(on) == expected


def test_a_day_ends_with_spark_submit_as_on_the_server(demo: Demo, submitted: Demo) -> None:
    assert "with a Spark server" in " ".join(demo.output.split())
    assert "with a spark-submit for each job and gate" in " ".join(submitted.output.split())
    assert submitted.states(ORDINARY) == demo.states(ORDINARY)
    over_server, found = demo.results(ORDINARY), submitted.results(ORDINARY)
    assert found.keys() == over_server.keys()
    for name, row in found.items():
        assert row["status"] == over_server[name]["status"], name
        assert row["value"] == pytest.approx(over_server[name]["value"]), name
    for table in ("lake/silver/departures", "lake/gold/punctuality"):
        promoted = [row for row in demo.table(table).to_pylist() if row["flight_date"] == ORDINARY]
        assert sorted(map(str, submitted.table(table).to_pylist())) == sorted(map(str, promoted))


def test_an_airflow_that_is_started_later_needs_no_server(demo: Demo) -> None:
    """The server ends with the demo."""
    assert (demo.root / "logs" / "spark_server.log").exists()
    assert "export FLIGHTS_SPARK='local[2]'" in (demo.root / "environment.sh").read_text()


def test_nothing_is_built_below_a_blocked_gate(demo: Demo) -> None:
    for table in ("lake/silver/departures", "lake/gold/punctuality"):
        days = set(demo.table(table)["flight_date"].to_pylist())
        assert days == {ORDINARY, THANKSGIVING}


@pytest.mark.parametrize("on", [ORDINARY, STORM, THANKSGIVING])
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_results_hold_the_numbers_that_duckdb_finds(
    demo: Demo, flights: Any, name: str, on: date
) -> None:
    question = QUESTIONS[name]
    expected = flights.execute(question, {"on": on}).fetchone()[0]
    assert demo.results(on)[name]["value"] == pytest.approx(expected)


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


def test_bronze_silver_and_gold_are_one_graph_in_which_each_gate_is_one_job(demo: Demo) -> None:
    edges = set()
    for event in demo.events():
        job = event["job"]["name"].removeprefix("flights_medallion.")
        edges |= {(_table(found["name"]), job) for found in event["inputs"]}
        edges |= {(job, _table(found["name"])) for found in event["outputs"]}
    assert edges == {
        ("landing/flights", "land_bronze"),
        ("land_bronze", "bronze/flights"),
        *(
            (f"bronze/{name}", "bronze_gate.gate")
            for name in ("flights", "airports", "airlines", "planes")
        ),
        ("bronze/flights", "build_silver"),
        ("build_silver", "staging/departures"),
        ("staging/departures", "silver_gate.gate"),
        ("silver_gate.gate", "silver/departures"),
        ("silver/departures", "build_gold"),
        ("build_gold", "gold/punctuality"),
    }


def _table(name: str) -> str:
    return "/".join(name.split("/")[-2:])


@pytest.mark.nightly
@pytest.mark.skipif("DQX_TEST_MARQUEZ" not in os.environ, reason="DQX_TEST_MARQUEZ is not set")
def test_marquez_shows_one_graph_with_quality_and_owners(demo: Demo) -> None:
    marquez = Marquez(os.environ["DQX_TEST_MARQUEZ"].rstrip("/"))
    marquez.send(demo.events())
    lake, dag = f"{demo.root}/lake", "flights_medallion"
    bronze, gold = f"{lake}/bronze/flights", f"{lake}/gold/punctuality"

    # Where does gold come from, and what checks it on the way?
    edges = marquez.edges_around("file", bronze)
    assert edges >= {
        (f"{lake}/landing/flights", f"{dag}.land_bronze"),
        (f"{dag}.land_bronze", bronze),
        (bronze, f"{dag}.bronze_gate.gate"),
        (bronze, f"{dag}.build_silver"),
        (f"{dag}.build_silver", f"{lake}/staging/departures"),
        (f"{lake}/staging/departures", f"{dag}.silver_gate.gate"),
        (f"{dag}.silver_gate.gate", f"{lake}/silver/departures"),
        (f"{lake}/silver/departures", f"{dag}.silver_gate.gate"),
        (f"{lake}/silver/departures", f"{dag}.build_gold"),
        (f"{dag}.build_gold", gold),
    }
    # A gate is one job there, and the results store joins nothing.
    assert not {name for edge in edges for name in edge} & {
        f"{dag}.bronze_gate",
        f"{dag}.silver_gate",
    }
    assert not [name for edge in edges for name in edge if "/results" in name]

    # Is the table good, and which rule says so?
    found = marquez.dataset("file", bronze)["facets"]["dataQualityAssertions"]["assertions"]
    assert {"flights.completeness.cancelled", "flights.volume.scheduled"} <= {
        assertion["name"] for assertion in found
    }
    # What wrote it? The job that lands it, and no gate.
    writers = {
        version["createdByRun"]["id"]
        for version in marquez.versions("file", bronze)
        if version.get("createdByRun")
    }
    landed = {run["id"] for run in marquez.runs("demo", f"{dag}.land_bronze")}
    assert writers <= landed

    # Did the gate stop the storm, what does it enforce, and where is that written?
    gate = marquez.job("demo", f"{dag}.bronze_gate.gate")
    states = {run["state"] for run in marquez.runs("demo", f"{dag}.bronze_gate.gate")}
    assert states == {"COMPLETED", "FAILED"}
    assert gate["location"].endswith("dags_examples/suites/flights_bronze.dql")
    assert "enforces suites/flights_bronze.dql" in gate["description"]


def test_gold_is_never_shown_before_the_verdict_of_its_gate(demo: Demo) -> None:
    for day in (ORDINARY, THANKSGIVING):
        lines = demo.output.splitlines()
        verdict = lines.index(f"  {day.isoformat()} silver_gate: success")
        assert verdict < lines.index(f"  {day.isoformat()} build_gold: success")
        assert f"  {day.isoformat()} build_gold: running" not in lines[:verdict]


def test_run_ids_are_the_days(demo: Demo) -> None:
    days = [day.isoformat() for day in (ORDINARY, STORM, THANKSGIVING)]
    assert sorted(run["run_id"] for run in demo.runs()) == sorted(days)
    seconds = [run["seconds"] for run in demo.runs()]
    assert [taken for taken in seconds if not 0 < taken < 3600] == []


def test_the_events_are_valid_openlineage(demo: Demo) -> None:
    assert problems(demo.gate_events()) == []


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


def test_the_terminal_shows_the_failure_and_the_next_steps(demo: Demo) -> None:
    assert "error: assertion failed: flights.completeness.cancelled" in demo.output
    assert "suites/flights_bronze.dql:" in demo.output
    assert "(profile Thanksgiving)" in demo.output
    for place in ("dql results list", "events.jsonl", "airflow standalone"):
        assert place in demo.output


def test_the_results_can_be_read_from_the_command_line(demo: Demo) -> None:
    printed = output_of(
        [str(Path(sys.executable).parent / "dql"), "results", "list", "--format", "json"],
        env={**os.environ, "DQX_RESULTS_ROOT": str(demo.root / "results")},
    )
    assert len(json.loads(printed)) == 5
