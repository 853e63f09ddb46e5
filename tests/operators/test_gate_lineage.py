"""The events of a gate's task in Airflow's own OpenLineage provider.

The provider reads its settings when it is imported, so the DAG runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.openlineage_schemas import problems
from tests.operators.gate_stubs import SUITE, SparkSubmit
from tests.processes import ended

pytestmark = pytest.mark.airflow

DAG_FILE = """
from datetime import datetime

from airflow.sdk import DAG, Asset

from dqx_airflow.operators import ContractGateOperator, DqlGateOperator

with DAG("lake", start_date=datetime(2024, 1, 1), schedule=None):
    for name in ("warned", "blocked"):
        DqlGateOperator(
            task_id=name,
            suite="orders.dql",
            datasets={"orders": "/lake/" + name},
            promote_to="/published/" + name,
            outlets=[Asset("file:///published/" + name)],
            owner="team lake",
        )
    # A template, so that the DAG is sound: it fails when it runs.
    ContractGateOperator(
        task_id="contract",
        contract="{{ 'missing' }}.odcs.yaml",
        data="/landing/orders/{{ ds }}/*.csv",
    )
"""

RUN = """
import sys
from airflow.utils.db import initdb
initdb()
from pathlib import Path
from tests.operators.dag_files import read_dags
read_dags(Path(sys.argv[1]))["lake"].test()
"""

Event = dict[str, Any]


Events = dict[str, list[Event]]


@pytest.fixture
def events(tmp_path: Path, spark_submit: SparkSubmit) -> Callable[..., Events]:
    """Runs the DAG; the events of each job, in order."""

    def run(**settings: str) -> Events:
        spark_submit.will("by_dataset")
        return _events(tmp_path, settings)

    return run


def _events(tmp_path: Path, settings: dict[str, str]) -> Events:
    home = tmp_path / "airflow"
    dags = home / "dags"
    dags.mkdir(parents=True)
    (dags / "lake.py").write_text(DAG_FILE)
    (dags / "orders.dql").write_text(SUITE)
    events_file = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(events_file), "append": True}
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__OPENLINEAGE__DISABLED": "False",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        **settings,
    }
    script = tmp_path / "run.py"
    script.write_text(RUN)
    done = ended([sys.executable, str(script), str(dags / "lake.py")], env=environment, timeout=600)
    assert events_file.exists(), done.stdout + done.stderr
    found: dict[str, list[Event]] = {}
    for line in events_file.read_text().splitlines():
        event = json.loads(line)
        found.setdefault(event["job"]["name"], []).append(event)
    return found


def ours(event: Event) -> Event:
    """An event with what Airflow itself says of the run and the job left out."""
    run, job = event["run"], event["job"]
    kept = {name: run["facets"][name] for name in ("test", "parent") if name in run["facets"]}
    return {**event, "run": {**run, "facets": kept}, "job": {**job, "facets": {}}}


@pytest.mark.e2e
def test_the_task_emits_inputs_and_promoted_outputs(events: Callable[..., Events]) -> None:
    """Its job sends no events, since it finds no configuration."""
    events_by_job = events()
    start, complete = events_by_job["lake.warned"]
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    (named,) = start["inputs"]
    assert start["outputs"] == []
    assert (named["namespace"], named["name"]) == ("file", "/lake/warned")
    (orders,) = complete["inputs"]
    found = orders["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(test["name"], test["success"], test["severity"]) for test in found] == [
        ("orders.id", True, "error"),
        ("orders.note", False, "warn"),
    ]
    (published,) = complete["outputs"]
    assert published["name"] == "/published/warned"
    assert published["facets"]["version"]["datasetVersion"] == "17"
    assert published["outputFacets"]["outputStatistics"]["rowCount"] == 100
    assert [test["status"] for test in complete["run"]["facets"]["test"]["tests"]] == [
        "pass",
        "fail",
    ]

    start, fail = events_by_job["lake.blocked"]
    assert start["outputs"] == []
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    found = fail["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(test["name"], test["success"]) for test in found] == [
        ("orders.note", False),
        ("orders.id", False),
    ]
    assert fail["outputs"] == []
    # Nothing is emitted twice: the events of the job are those of another run, which the job sends.
    assert set(events_by_job) == {"lake", "lake.warned", "lake.blocked", "lake.contract"}
    tasks = [ours(event) for job in ("lake.warned", "lake.blocked") for event in events_by_job[job]]
    assert problems(tasks) == []

    # A contract names its data in another argument; without a report nothing more is known.
    assert {event["eventType"] for event in events_by_job["lake.contract"]} == {"START", "FAIL"}
    for event in events_by_job["lake.contract"]:
        assert [dataset["name"] for dataset in event["inputs"]] == ["/landing/orders"]


@pytest.mark.e2e
@pytest.mark.nightly
def test_the_task_leaves_the_datasets_to_a_job_that_sends_events(
    events: Callable[..., Events],
) -> None:
    events_by_job = events(OPENLINEAGE_URL="http://127.0.0.1:9")
    tasks = [event for job, found in events_by_job.items() if job != "lake" for event in found]
    assert {event["eventType"] for event in tasks} == {"START", "COMPLETE", "FAIL"}
    assert [event for event in tasks if event["inputs"] or event["outputs"]] == []


@pytest.mark.parametrize(
    ("env_vars", "conf", "is_driver_here", "expected"),
    [
        ({}, {}, True, False),
        ({"OPENLINEAGE_URL": "http://lineage"}, {}, True, True),
        ({"OPENLINEAGE_URL": "http://lineage"}, {}, False, True),
        ({"OPENLINEAGE_URL": "x", "OPENLINEAGE_DISABLED": "true"}, {}, False, False),
        ({}, {"spark.kubernetes.driverEnv.OPENLINEAGE_URL": "http://lineage"}, False, True),
        ({}, {"spark.yarn.appMasterEnv.OPENLINEAGE_URL": "http://lineage"}, False, True),
        (None, {"spark.executorEnv.OPENLINEAGE_URL": "http://lineage"}, False, False),
    ],
)
def test_a_job_sends_events_if_it_finds_a_configuration(
    env_vars: dict[str, str] | None,
    conf: dict[str, str],
    is_driver_here: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
    here: Path,
) -> None:
    from dqx_airflow.operators.spark_job import job_sends_events

    monkeypatch.setenv("HOME", str(here))
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    assert job_sends_events(env_vars, conf, is_driver_here=is_driver_here) is expected
