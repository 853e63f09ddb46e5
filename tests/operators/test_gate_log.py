"""The log of a gate's task: short, with the report once, and with the reason if there is none."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.results.store import ResultsStore
from tests.operators.gate_stubs import FakeTask, Gates, Log, SparkSubmit
from tests.operators.spark_submit_stub import canned_report

pytestmark = pytest.mark.airflow


CHATTER = "26/11/23 07:00:00 INFO SparkContext: Running Spark version 4.2.0\n"
FAILURE = """\
26/11/23 07:00:01 WARN Utils: java.net.ConnectException: refused
error: cannot write the results store s3://lake/dqx: access denied
  help: give the worker and the driver the same credentials
26/11/23 07:00:02 INFO ShutdownHookManager: Shutdown hook called
"""
CAUSES = {
    "of the job": (
        FAILURE,
        "cannot write the results store s3://lake/dqx: access denied; give the",
    ),
    "of a suite": ("error[E001]: unknown metric 'avg'\n --> a.dql:1:1\n", "unknown metric 'avg'"),
    "of Java": (
        'Exception in thread "main" org.apache.spark.SparkException: Job aborted\n'
        "\tat org.apache.spark.Main.run(Main.scala:1)\n"
        "Caused by: java.io.IOException: No space left on device\n",
        "java.io.IOException: No space left on device",
    ),
    "of Python": (
        'Traceback (most recent call last):\n  File "x.py", line 1\nMemoryError: 9 GB\n',
        "MemoryError: 9 GB",
    ),
    "of spark-submit": (
        "Error: Failed to load class x.\n26/11/23 07:00:02 INFO ShutdownHookManager: done\n",
        "Failed to load class x.",
    ),
}


@pytest.mark.parametrize("kind", CAUSES)
def test_without_a_report_the_last_error_of_the_job_is_shown_everywhere(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask, log: Log, kind: str
) -> None:
    printed, cause = CAUSES[kind]
    (spark_submit.home / "output").write_text(50 * CHATTER + printed)
    spark_submit.will("prints=output exit=4")
    raised = gate.fails("GateInfrastructureError")
    assert f"the Spark job failed (exit code 4): {cause}" in str(raised)
    pushed = task.pushed["dqx_report"]
    assert (pushed["outcome"], pushed["gate"]) == ("no report", "lake.gate")
    assert (pushed["date"], pushed["error_type"]) == ("2024-05-17", "GateInfrastructureError")
    assert cause in pushed["error"]
    assert cause in pushed["headline"]
    file = spark_log_of(log)
    assert file.read_text() == 50 * CHATTER + printed
    assert str(file) in str(raised)
    assert log.text.count("Running Spark version") < 10
    assert log.text.count("\n") + printed_lines(raised) < 40


def printed_lines(error: Exception) -> int:
    """The lines that Airflow prints of an error below the log, with one frame of the gate."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.name for frame in frames if "dqx_airflow" in frame.filename]
    assert own == ["_run_without_frames"]
    return "".join(traceback.format_exception(error)).count("\n")


def spark_log_of(log: Log) -> Path:
    (log_line,) = (line for line in log.at("info") if line.startswith("the log of Spark is in"))
    return Path(log_line.rpartition(" in ")[2])


def test_the_summary_of_a_misconfigured_gate_has_its_error(gate: Gates, task: FakeTask) -> None:
    gate.fails("GateMisconfiguredError", conn_id="nowhere")
    pushed = task.pushed["dqx_report"]
    assert (pushed["outcome"], pushed["error_type"]) == ("no report", "GateMisconfiguredError")
    assert "the Spark connection 'nowhere' does not exist" in pushed["error"]


def test_the_notification_of_a_gate_without_a_report_has_its_error(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask
) -> None:
    (spark_submit.home / "output").write_text(FAILURE)
    spark_submit.will("prints=output exit=4")
    raised = gate.fails("GateInfrastructureError")
    task.xcom_pull = lambda **given: task.pushed[given["key"]]  # type: ignore[attr-defined]
    # A callback for a success has no exception.
    for exception in (raised, None):
        notification = gate.operators.gate_notification({**gate.context, "exception": exception})
        assert "access denied" in notification.text + notification.markdown
        assert notification.payload["outcome"] == "no report"
        assert notification.payload["report"] is None
        assert notification.payload["date"] == "2024-05-17"
        assert "access denied" in notification.payload["error"]


def test_the_request_is_not_printed(gate: Gates, log: Log, spark_submit: Any) -> None:
    assert gate.run() == "passed"
    assert "--request ..." in log.text
    assert spark_submit.requests
    assert spark_submit.calls[0][-1][:40] not in log.text


def test_notes_of_the_job_are_in_the_log(gate: Gates, log: Log, spark_submit: SparkSubmit) -> None:
    note = "dqx.gate: 5 rows of orders in quarantine at /bad/orders"
    (spark_submit.home / "output").write_text(CHATTER + f"{note}\n" + 50 * "warning: again\n")
    spark_submit.will("prints=output passed")
    assert gate.run() == "passed"
    assert note in log.at("info")
    assert log.text.count("warning: again") == 5


def test_verbose_shows_all_output_of_spark(
    gate: Gates, log: Log, spark_submit: SparkSubmit
) -> None:
    (spark_submit.home / "output").write_text(50 * CHATTER)
    spark_submit.will("prints=output passed")
    assert gate.run(verbose=True) == "passed"
    assert log.text.count("Running Spark version") == 50
    assert "the log of Spark is in" not in log.text


def test_a_gate_runs_where_no_file_can_be_written(
    gate: Gates, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("AIRFLOW__DQX__SPARK_LOG_FOLDER", str(tmp_path / "taken"))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Exception, match="not found on the PATH"):
        gate.run()
    assert "the log of Spark cannot be kept in a file" in log.at("warning")[0]


def test_every_try_and_map_index_has_a_file(
    gate: Gates, task: FakeTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DQX__SPARK_LOG_FOLDER", str(tmp_path / "spark"))
    from dqx_airflow.operators.spark_log import spark_log_path

    task.map_index, task.run_id, task.try_number = 3, "manual__2026-11-23T07:00:00+00:00", 2
    expected = "dag_id=lake/run_id=manual__2026-11-23T07:00:00+00:00/task_id=gate/map_index=3"
    assert spark_log_path(task) == tmp_path / "spark" / expected / "attempt=2.log"


def test_a_long_report_is_cut_in_the_log(gate: Gates, log: Log) -> None:
    request = gate.request()
    ResultsStore(request.results_root).write(canned_report(request, "long"))
    assert log.text.count("\n") + printed_lines(gate.fails("GateBlockedError")) < 40
    assert "more that did not pass" in log.text
    assert f"--results-root {request.results_root}" in log.text


@pytest.mark.spark
@pytest.mark.slow
def test_the_log_of_a_real_gate_fits_a_screen(
    gate: Gates, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    data = tmp_path / "orders.parquet"
    pq.write_table(pa.table({"id": [1, None, 3], "amount": [1.0, -2.0, -3.0]}), data)
    suite = """suite "Orders" {
    check "Rules" on orders {
        assert null_count(id) == 0 name "orders.id" severity P0
        assert each row: amount > 0 name "orders.amount" severity P1
        assert num_rows() > 10 name "orders.rows" severity P2
    }
}
"""
    raised = gate.fails("GateBlockedError", suite=suite, datasets={"orders": str(data)})
    text = log.text
    assert text.count("\n") + printed_lines(raised) <= 40, text
    assert text.count("assertion failed: orders.id") == 1
    assert text.count("orders.rows") == 1
    assert "assert null_count(id) == 0 name" in text
    assert "\n  |                ^^^^^^^^^^^^^^" in text
    printed = spark_log_of(log).read_text()
    assert "assertion failed: orders.id" in printed
    assert "SparkContext" not in text
