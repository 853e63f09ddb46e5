"""A value of a masked column is on no page of the UI, in no notification, in no XCom and in no
asset event, for every kind of rule: the run of `engine/test_hidden_values.py`, from Airflow."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dqx_airflow.values import Attempt, GateRequest, RunKey, SourceFile
from tests.masked_cells import TODAY, leaks, masked_datasets, rules, suite_of
from tests.ui.ui_scene import Get, Scene

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


@pytest.mark.nightly
def test_no_masked_value_is_seen_in_airflow(
    spark: Any, get: Get, scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.engine.job import run_gates
    from dqx_airflow.engine.session.spark_session import without_log
    from dqx_airflow.operators.gate_assets import asset_extra
    from dqx_airflow.operators.notifications import gate_notification
    from dqx_airflow.operators.outcome import end_task
    from dqx_airflow.operators.summary import summary

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
    datasets = masked_datasets(tmp_path)
    gate = GateRequest(
        RunKey("lake.gate", TODAY, f"scheduled__{TODAY}"),
        Attempt(1, "attempt"),
        SourceFile("suite.dql", suite_of((*rules(),))),
        datasets,
        str(tmp_path / "of the job"),
    )
    try:
        report = run_gates([gate], lambda _: without_log(spark, datasets))[0]
    finally:
        spark.sparkContext.setLogLevel("ERROR")
    report = scene.ran(report, sources=gate.sources)
    pushed = summary(report)
    seen = {"XCom": json.dumps(pushed), "the asset event": json.dumps(asset_extra(report))}
    with pytest.raises(Exception) as ended:  # noqa: PT011, which of them is not the question
        end_task(report, "fail")
    seen["the exception"] = str(ended.value)

    class Ended:
        dag_id, task_id, run_id = "lake", "gate", gate.run_key.scheduler_run
        map_index, try_number = -1, 1

        def xcom_pull(self, **_: object) -> object:
            return pushed

    notification = gate_notification({"ti": Ended(), "exception": ended.value})
    seen["the notification"] = json.dumps(asdict(notification))
    run = f"dag_id=lake&task_id=gate&run_id={gate.run_key.scheduler_run}"
    files = [
        f"rows.csv?{run}&check={quote(verdict.check)}&assertion={quote(verdict.name)}"
        for verdict in report.verdicts
        if verdict.failing_rows
    ]
    places = [f"dataset?location={quote(ref.path or '')}" for ref in datasets]
    of_gate = [f"{page}?{run}" for page in ("gate", "incident", "runs")]
    as_json = [f"api/v1/{page}" for page in ("board", "datasets", "slices", *of_gate)]
    for page in ("board", "datasets", "alerts", "review", *places, *of_gate, *as_json, *files):
        answer = get(page)
        assert answer.status_code == 200, page
        seen[page] = answer.text
    assert "***" in seen[of_gate[0]]
    assert len(files) > 2
    assert [file for file in files if "***" in seen[file]], files
    assert leaks(seen) == []
