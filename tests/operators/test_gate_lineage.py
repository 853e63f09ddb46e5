"""What the events of a gate's task say, in Airflow's own OpenLineage provider.

The provider reads its settings when it is imported, so the DAG runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import openlineage_schemas
import pytest
from gate_stubs import SUITE, SparkSubmit

pytestmark = pytest.mark.airflow

DAG_FILE = """
from datetime import datetime

from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator

with DAG("lake", start_date=datetime(2024, 1, 1), schedule=None):
    for name in ("warned", "blocked"):
        DqlGateOperator(
            task_id=name,
            suite="orders.dql",
            datasets={"orders": "/lake/" + name},
            promote_to="/published/" + name,
        )
"""

RUN = """
import sys
from airflow.utils.db import initdb
initdb()
from pathlib import Path
from dag_files import read_dags
read_dags(Path(sys.argv[1]))["lake"].test()
"""

Event = dict[str, Any]


@pytest.fixture
def events(tmp_path: Path, spark_submit: SparkSubmit) -> dict[str, list[Event]]:
    """The events of each job, in order."""
    spark_submit.will("by_dataset")
    home = tmp_path / "airflow"
    dags = home / "dags"
    dags.mkdir(parents=True)
    (dags / "lake.py").write_text(DAG_FILE)
    (dags / "orders.dql").write_text(SUITE)
    told = tmp_path / "events.jsonl"
    transport = {"type": "file", "log_file_path": str(told), "append": True}
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "PYTHONPATH": str(Path(__file__).parent),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__OPENLINEAGE__DISABLED": "False",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
    }
    script = tmp_path / "run.py"
    script.write_text(RUN)
    done = subprocess.run(
        [sys.executable, str(script), str(dags / "lake.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert told.exists(), done.stdout + done.stderr
    found: dict[str, list[Event]] = {}
    for line in told.read_text().splitlines():
        event = json.loads(line)
        found.setdefault(event["job"]["name"], []).append(event)
    return found


def ours(event: Event) -> Event:
    """An event with what Airflow itself says of the run and the job left out."""
    run, job = event["run"], event["job"]
    kept = {name: run["facets"][name] for name in ("test", "parent") if name in run["facets"]}
    return {
        **event,
        "run": {**run, "facets": kept},
        "job": {**job, "facets": {}},
    }


@pytest.mark.e2e
def test_the_task_tells_what_was_checked_and_where_it_went(
    events: dict[str, list[Event]],
) -> None:
    start, complete = events["lake.warned"]
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    (told,) = start["inputs"]
    assert (told["namespace"], told["name"]) == ("file", "/lake/warned")
    (orders,) = complete["inputs"]
    found = orders["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(one["name"], one["success"], one["severity"]) for one in found] == [
        ("orders.id", True, "error"),
        ("orders.note", False, "warn"),
    ]
    (published,) = complete["outputs"]
    assert published["name"] == "/published/warned"
    assert published["facets"]["version"]["datasetVersion"] == "17"
    assert published["outputFacets"]["outputStatistics"]["rowCount"] == 100
    assert [one["status"] for one in complete["run"]["facets"]["test"]["tests"]] == ["pass", "fail"]

    start, fail = events["lake.blocked"]
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    found = fail["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert [(one["name"], one["success"]) for one in found] == [
        ("orders.note", False),
        ("orders.id", False),
    ]
    assert fail["outputs"] == []
    # Nothing is told twice: the events of the job are those of another run, which the job sends.
    assert set(events) == {"lake", "lake.warned", "lake.blocked"}
    tasks = [ours(event) for job in ("lake.warned", "lake.blocked") for event in events[job]]
    assert openlineage_schemas.problems(tasks) == []
