"""A gate that exceeds its timeout cancels its Spark jobs and writes no result."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dqx_airflow.engine.job import run_gates
from dqx_airflow.errors import DeadlineError
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.files import shipped
from dqx_airflow.values.json_form import EXIT_TIMED_OUT, to_arguments
from tests.engine.lake import ORDERS, delta, request
from tests.processes import PROGRAMS, environment

pytestmark = pytest.mark.spark

ENDLESS = "SELECT max(a.id * b.id % 7) AS id FROM range(9000000) a CROSS JOIN range(9000000) b"


def events(folder: Path) -> list[str]:
    lines = (folder / "lineage.jsonl").read_text().splitlines()
    return [json.loads(line)["eventType"] for line in lines]


def transport_to(folder: Path) -> str:
    place = str(folder / "lineage.jsonl")
    return json.dumps({"type": "file", "log_file_path": place, "append": True})


@pytest.mark.more
def test_a_driver_that_stood_still_comes_back_without_a_result(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", transport_to(tmp_path))
    target = tmp_path / "published"
    gate = request(
        tmp_path,
        "assert num_rows() > 0",
        [delta(tmp_path, "orders", ORDERS)],
        promote_to=(("orders", str(target)),),
        timeout_s=1.0,
    )

    def slow(_: str) -> Any:
        time.sleep(1.2)
        return spark

    with pytest.raises(DeadlineError, match="longer than 1 seconds"):
        run_gates([gate], slow)
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) is None
    assert not DeltaTable.is_deltatable(str(target))
    assert events(tmp_path) == ["START", "FAIL"]


@pytest.mark.e2e
@pytest.mark.nightly
def test_at_its_deadline_a_job_ends_with_its_spark(tmp_path: Path) -> None:
    gate = request(
        tmp_path, "assert maximum(id) > 0", [DatasetRef("orders", query=ENDLESS)], timeout_s=40.0
    )
    mark = str(tmp_path)
    done = subprocess.run(
        [
            str(PROGRAMS / "spark-submit"),
            *("--master", "local[1]", "--conf", "spark.log.level=ERROR"),
            str(shipped("spark_jobs/gate_job.py")),
            *to_arguments(gate),
        ],
        env=environment(DQX_TEST=mark, OPENLINEAGE__TRANSPORT=transport_to(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == EXIT_TIMED_OUT, done.stdout
    assert "error: the gate took longer than 40 seconds" in done.stdout
    assert "Traceback" not in done.stdout
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) is None
    assert events(tmp_path) == ["START", "FAIL"]
    assert not processes_of(mark)


def processes_of(mark: str) -> list[str]:
    """The processes that were started with a mark in their environment."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            environ = Path(f"/proc/{number}/environ").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if f"DQX_TEST={mark}".encode() in environ:
            found.append(number)
    return found
