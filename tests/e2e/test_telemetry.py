"""The contract example as Airflow runs it: a good day is promoted, a bad one stays in staging."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.values.files import shipped
from tests.processes import ended
from tests.quick_jvm import QUICK_JVM

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

# A day that has come to its end everywhere: its events are fresh, and none is from tomorrow.
TODAY = datetime.now(timezone.utc).date().isoformat()
TASKS = ("land_telemetry", "ingest_gate", "boundary_gate", "build_floor")


@dataclass(frozen=True)
class Run:
    """One run of the example, in a home of its own."""

    home: Path
    output: str

    @property
    def states(self) -> dict[str, str]:
        query = "SELECT task_id, state FROM task_instance"
        with closing(sqlite3.connect(self.home / "airflow" / "airflow.db")) as database:
            return dict(database.execute(query).fetchall())

    def results(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table("results/results")
        return rows

    def table(self, name: str) -> Any:
        return DeltaTable(str(self.home / name)).to_pyarrow_table().to_pylist()


def run_example(home: Path, fault: str) -> Run:
    kept = ("HOME", "LANG", "JAVA_HOME", "TMPDIR")
    environment = {key: os.environ[key] for key in kept if key in os.environ} | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(shipped("dags_examples")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DQX__RESULTS_ROOT": str(home / "results"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "TELEMETRY_LAKE": str(home / "lake"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        SUBMIT_OPTIONS: QUICK_JVM,
        **java_environment(),
    }
    airflow = str(Path(sys.executable).parent / "airflow")
    subprocess.run(
        [airflow, "db", "migrate"], env=environment, capture_output=True, check=True, timeout=300
    )
    done = ended(
        [airflow, "dags", "test", "slot_telemetry", TODAY, "--conf", json.dumps({"fault": fault})],
        env=environment,
        timeout=900,
    )
    return Run(home, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_example(tmp_path_factory.mktemp("good"), "none")


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_example(tmp_path_factory.mktemp("bad"), "decimal_slip")


def test_a_good_day_goes_through_both_gates_into_silver(good: Run) -> None:
    assert good.states == dict.fromkeys(TASKS, "success"), good.output
    assert len(good.table("lake/silver/floor")) == 5
    assert len(good.table("lake/bronze/slot_telemetry")) == 7 * 20_000


def test_results_name_the_contract_and_its_clauses(good: Run) -> None:
    rows = [row for row in good.results() if row["name"] == "slot_telemetry.accuracy"]
    assert {row["gate"] for row in rows} == {
        "slot_telemetry.ingest_gate",
        "slot_telemetry.boundary_gate",
    }
    assert {(row["contract_id"], row["contract_version"], row["clause"]) for row in rows} == {
        ("bronze.slot_telemetry", "2.3.0", "contract.quality.accuracy[0].rule")
    }


@pytest.mark.nightly
def test_a_bad_day_is_blocked_and_not_promoted(bad: Run) -> None:
    assert bad.states == {
        "land_telemetry": "success",
        "ingest_gate": "failed",
        **dict.fromkeys(TASKS[2:], "upstream_failed"),
    }, bad.output
    assert len(bad.table("lake/bronze/slot_telemetry")) == 6 * 20_000  # the week before
    assert len(bad.table("lake/staging/slot_telemetry")) == 7 * 20_000


@pytest.mark.nightly
def test_the_log_shows_the_line_of_the_contract_that_was_broken(bad: Run) -> None:
    assert "- rule: amount_won <= amount_wagered * 100" in bad.output
    failed = {row["name"] for row in bad.results() if row["status"] == "failed"}
    assert failed == {"slot_telemetry.accuracy"}
