"""The storm day of the demo as a user runs it: real flights, real Airflow, real spark-submit.

The three days together, which the second lane runs, are in `test_demo.py`.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.command_line import dql
from tests.e2e.demo_runs import BLOCKED, OURS, STORM, Demo, run_demo
from tests.processes import processes_with, wait_until

pytestmark = [pytest.mark.airflow, pytest.mark.nightly]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run_demo(tmp_path_factory.mktemp("storm"), "--day", STORM.isoformat())


def test_an_unknown_day_is_refused(tmp_path: Path) -> None:
    call = ["demo", "--home", str(tmp_path / "demo"), "--day", "2013-02-09"]
    refused = dql(*call)
    assert refused.returncode == 2
    assert "the demo has no day 2013-02-09" in refused.stderr
    assert not (tmp_path / "demo").exists()


def test_the_gate_blocks_everything_downstream(demo: Demo) -> None:
    assert demo.states(STORM) == BLOCKED
    assert {path.name for path in (demo.root / "lake").iterdir()} == {"bronze", "landing"}


def test_a_violation_is_not_retried_even_if_the_dag_has_retries(demo: Demo) -> None:
    assert demo.tasks(STORM)["bronze_gate"] == ("failed", 1)


def test_the_storm_is_blocked_by_cancelled_flights_and_the_fall_in_volume(demo: Demo) -> None:
    failed = {name for name, row in demo.results(STORM).items() if row["status"] == "failed"}
    assert failed == {
        "flights.completeness.cancelled",
        "flights.completeness.tail_number",
        "flights.volume.departed",
    }


def test_the_last_event_has_the_findings_and_the_version(demo: Demo) -> None:
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
    log = demo.task_log(STORM, "bronze_gate")
    verdict = (
        "blocked: gate flights_medallion.bronze_gate, dataset flights, date 2013-02-08: 3 of 17 "
        "assertions failed; worst: flights.completeness.cancelled (P0): "
        "null_count(dep_time) / num_rows() "
        "is 50.8%, expected < MAX_CANCELLED (10%)"
    )
    assert "GateBlockedError" in log
    assert verdict in log


def test_the_terminal_names_the_day(demo: Demo) -> None:
    assert "Running the DAG flights_medallion for one day" in demo.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("log", ["spark_server.log", "scheduler.log"])
def test_a_demo_that_is_ended_early_leaves_no_process(
    number: signal.Signals, log: str, tmp_path: Path
) -> None:
    """While the flights are written, and while Airflow starts."""
    variable = ("AIRFLOW_HOME", tmp_path / "airflow")
    words = [str(OURS), "demo", "--home", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as demo:
        wait_until((tmp_path / "logs" / log).exists, tmp_path / "logs" / "spark_server.log")
        assert processes_with(*variable)
        demo.send_signal(number)
        assert demo.wait(60) != 0
    assert processes_with(*variable) == []
