"""What `dql init` writes runs unchanged in Airflow, on a real Spark."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.command_line import dql
from tests.operators.dag_files import read_dags

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.usefixtures("airflow_database"),
]


def test_a_first_gate_passes_and_blocks_a_bad_row(
    airflow_settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    folder = Path(airflow_settings["AIRFLOW__CORE__DAGS_FOLDER"], "first")
    done = dql("init", folder)
    assert done.returncode == 0, done.output
    dag = read_dags(folder / "orders_gate.py")["orders_gate"]
    now = datetime.now(timezone.utc)
    today = datetime(now.year, now.month, now.day, tzinfo=timezone.utc)
    assert str(dag.test(logical_date=today).state) == "success"
    with (folder / "orders.csv").open("a") as table:
        table.write(f"61,,10.00,{today:%Y-%m-%d}\n")
    ended = dag.test(logical_date=today)
    states = {ti.task_id: str(ti.state) for ti in ended.get_task_instances()}
    assert states == {"gate": "failed", "publish": "upstream_failed"}


@pytest.mark.nightly
def test_a_gate_on_the_worker_starts_from_the_classes_of_the_first(
    airflow_settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    cache, log = tmp_path / "cache", tmp_path / "classes.log"
    monkeypatch.setenv("AIRFLOW__DQX__JVM_CACHE", str(cache))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", f"-Xlog:class+load:file={log}")
    folder = Path(airflow_settings["AIRFLOW__CORE__DAGS_FOLDER"], "cached")
    assert dql("init", folder).returncode == 0
    dag = read_dags(folder / "orders_gate.py")["orders_gate"]
    now = datetime.now(timezone.utc)
    today = datetime(now.year, now.month, now.day, tzinfo=timezone.utc)
    shared = []
    for days in (0, 1):
        assert str(dag.test(logical_date=today - timedelta(days=days)).state) == "success"
        shared.append(log.read_text(errors="replace").count("shared objects file (top)"))
        (archive,) = cache.glob("*.jsa")
    assert shared[0] == 0
    assert shared[1] > 5000, archive
