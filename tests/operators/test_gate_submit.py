"""A gate from `spark-submit` to the results store, without Airflow's database."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dqx_airflow.datasets.jvm_options import for_a_short_life
from dqx_airflow.results.store import ResultsStore
from tests.operators.gate_stubs import FakeTask, Gates, Log, SparkSubmit, killed
from tests.operators.spark_submit_stub import canned_report

pytestmark = pytest.mark.airflow


def test_the_job_gets_the_request_unchanged(gate: Gates, spark_submit: SparkSubmit) -> None:
    made = gate(gate="door", conf={"spark.ui.enabled": "false"}, fail_on="P2")
    assert made.execute(gate.context) == "passed"
    (call,) = spark_submit.calls
    assert call[:2] == ["--master", "local[2]"]
    assert [word for word in call if word.endswith("spark_jobs/gate_job.py")], call
    assert call[call.index("--name") + 1] == "dqx-gate"
    assert spark_submit.conf["spark.ui.enabled"] == "false"
    assert spark_submit.requests == [made.build_request(gate.context)]


@pytest.mark.slow
def test_a_large_suite_gets_through(
    gate: Gates, spark_submit: SparkSubmit, dag_folder: Path
) -> None:
    suite = dag_folder / "orders.dql"
    noise = "".join(f"# {number * 7919 % 1000003:x}\n" for number in range(90_000))
    suite.write_text(noise + suite.read_text())
    assert gate.run() == "passed"
    (call,) = spark_submit.calls
    assert max(len(word) for word in call) < 131_072
    assert spark_submit.requests[0].suite.text == suite.read_text()


def test_a_custom_application_gets_the_request(gate: Gates, spark_submit: SparkSubmit) -> None:
    gate.run(application="/jobs/mine.py")
    call = spark_submit.calls[0]
    assert call[call.index("--request") - 1] == "/jobs/mine.py"


# The Python of the driver


PYTHON = "spark.pyspark.driver.python"


def test_in_client_mode_the_driver_runs_in_the_python_of_the_worker(
    gate: Gates, spark_submit: SparkSubmit
) -> None:
    gate.run()
    assert spark_submit.conf[PYTHON] == sys.executable


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "given",
    [
        {"deploy_mode": "cluster"},
        {"conn_id": "cluster"},
        {"conf": {"spark.submit.deployMode": "cluster"}},
        {"conf": {"spark.pyspark.python": "/opt/python"}},
        {"env_vars": {"PYSPARK_PYTHON": "/opt/python"}},
        {"env_vars": {"PYSPARK_DRIVER_PYTHON": "/opt/python"}},
    ],
    ids=str,
)
def test_elsewhere_the_driver_keeps_its_own_python(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    extra = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(extra))
    gate.run(**given)
    assert PYTHON not in spark_submit.conf


def test_a_python_given_in_conf_or_by_the_worker_is_kept(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.run(conf={PYTHON: "/opt/python"})
    assert spark_submit.conf[PYTHON] == "/opt/python"
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    gate.context["ti"].id = "attempt-2"
    gate.run()
    assert len(spark_submit.calls) == 2
    assert PYTHON not in spark_submit.conf


# The JVM of the driver


JVM = "spark.driver.defaultJavaOptions"


def test_in_client_mode_the_jvm_starts_from_the_configured_archive(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive = tmp_path / "gate.jsa"
    archive.touch()
    monkeypatch.setenv("AIRFLOW__DQX__JVM_ARCHIVE", str(archive))
    gate.run(conf={JVM: "-Xss4m"})
    options = spark_submit.conf[JVM].split()
    assert (options[0], options[-1]) == (f"-XX:SharedArchiveFile={archive}", "-Xss4m")
    gate.context["ti"].id = "attempt-2"
    gate.run(deploy_mode="cluster")
    assert len(spark_submit.calls) == 2
    assert JVM not in spark_submit.conf


@pytest.fixture
def cache(gate: Gates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the cache of classes, which is configured."""
    monkeypatch.setenv("AIRFLOW__DQX__JVM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_first_jvm_on_a_worker_writes_its_classes_and_the_next_one_starts_from_them(
    gate: Gates, spark_submit: SparkSubmit, cache: Path
) -> None:
    spark_submit.will("passed classes", "passed", "passed", "passed")
    gate.run(conf={JVM: "-Xss4m"})
    options = spark_submit.conf[JVM].split()
    assert (options[0].split("=")[0], options[-1]) == ("-XX:ArchiveClassesAtExit", "-Xss4m")
    (archive,) = cache.glob("*.jsa")
    gate.context["ti"].id = "attempt-2"
    gate.run(conf={JVM: "-Xss4m"})
    options = spark_submit.conf[JVM].split()
    assert (options[0], options[-1]) == (f"-XX:SharedArchiveFile={archive}", "-Xss4m")
    assert "-XX:+VerifySharedSpaces" in options
    gate.context["ti"].id = "attempt-3"
    gate.run(jars="other.jar")
    assert "ArchiveClassesAtExit" in spark_submit.conf[JVM], "other jars have other classes"
    gate.context["ti"].id = "attempt-4"
    gate.run(deploy_mode="cluster")
    assert JVM not in spark_submit.conf


def test_a_submission_that_fails_leaves_no_classes(
    gate: Gates, spark_submit: SparkSubmit, cache: Path
) -> None:
    spark_submit.will("classes exit=1")
    gate.fails("GateInfrastructureError", "no report")
    assert "ArchiveClassesAtExit" in spark_submit.conf[JVM]
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_used_is_said_and_the_gate_runs(
    gate: Gates,
    spark_submit: SparkSubmit,
    monkeypatch: pytest.MonkeyPatch,
    log: Log,
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    for number, folder in enumerate(("relative/cache", str(tmp_path / "file"))):
        monkeypatch.setenv("AIRFLOW__DQX__JVM_CACHE", folder)
        gate.context["ti"].id = f"attempt-{number}"
        gate.run()
        assert JVM not in spark_submit.conf
        assert folder in log.at("warning")[-1]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("master", "env_vars_given", "expected"),
    [
        ("local[*]", {}, "ours"),
        ("spark://there:7077", {"SPARK_SUBMIT_OPTS": "-Xss4m"}, "ours -Xss4m"),
        ("yarn", {}, "ours"),
        ("yarn cluster", {}, None),
    ],
)
def test_a_local_driver_gets_jvm_options_for_a_short_life(
    gate: Gates,
    spark_submit: SparkSubmit,
    monkeypatch: pytest.MonkeyPatch,
    master: str,
    env_vars_given: dict[str, str],
    expected: str | None,
) -> None:
    host, _, mode = master.partition(" ")
    monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps({"conn_type": "spark", "host": host}))
    monkeypatch.delenv("SPARK_SUBMIT_OPTS", raising=False)
    for number in range(2):
        gate.context["ti"].id = f"attempt-{number}"
        gate.run(conn_id="there", deploy_mode=mode or None, env_vars={**env_vars_given})
    ours = for_a_short_life({})["SPARK_SUBMIT_OPTS"]
    seen = spark_submit.env.get("SPARK_SUBMIT_OPTS")
    assert seen == (expected and expected.replace("ours", ours))


def test_without_the_kubernetes_client_a_gate_names_the_extra(
    gate: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("kubernetes"):
        pytest.skip("the client is installed")
    connection = {"conn_type": "spark", "host": "k8s://https://there"}
    monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps(connection))
    message = r"'there' leads to Kubernetes.* pip install 'dqx-airflow\[kubernetes\]'"
    gate.fails("GateMisconfiguredError", message, conn_id="there", deploy_mode="cluster")


def test_a_gate_without_its_archive_runs_with_a_warning(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    monkeypatch.setenv("AIRFLOW__DQX__JVM_ARCHIVE", "/there/is/none.jsa")
    gate.run()
    assert JVM not in spark_submit.conf
    assert "/there/is/none.jsa" in "\n".join(log.at("warning"))


# The results store


def break_with_a_file(root: Path) -> None:
    root.write_text("")


def break_the_log(root: Path) -> None:
    log = root / "runs" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("{broken")


@pytest.mark.parametrize("damage", [break_with_a_file, break_the_log])
def test_an_unreadable_store_is_found_before_anything_is_submitted(
    gate: Gates, spark_submit: SparkSubmit, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(tmp_path / "results")
    gate.fails("GateInfrastructureError", r"no report: .*results")
    assert spark_submit.calls == []


def test_a_store_that_breaks_while_the_job_runs_is_no_report(
    gate: Gates, spark_submit: SparkSubmit, tmp_path: Path
) -> None:
    spark_submit.will("passed break-results")
    gate.fails("GateInfrastructureError", "no report")


def test_a_complete_report_of_this_attempt_is_not_made_again(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask
) -> None:
    request = gate.request()
    ResultsStore(request.results_root).write(canned_report(request, "blocked"))
    gate.fails("GateBlockedError")
    assert spark_submit.calls == []
    assert task.pushed["dqx_report"]["outcome"] == "blocked"


def test_a_report_of_another_attempt_is_ignored(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask
) -> None:
    request = gate.request()
    ResultsStore(request.results_root).write(canned_report(request, "passed"))
    task.id, task.try_number = "attempt-2", 2
    spark_submit.will("other")
    gate.fails("GateInfrastructureError")
    assert len(spark_submit.calls) == 1
    assert task.pushed["dqx_report"]["outcome"] == "no report"


# How spark-submit ends


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("exit=0", r"the Spark job succeeded \(exit code 0\); its driver must reach the same"),
        ("exit=1", r"the Spark job failed \(exit code 1\); see .*attempt=1\.log"),
        ("killed", r"the Spark job was killed by signal 9; see .*attempt=1\.log"),
        ("other exit=0", r"job succeeded"),
    ],
)
def test_without_a_report_the_message_has_the_end_of_the_job(
    gate: Gates, spark_submit: SparkSubmit, tmp_path: Path, plan: str, message: str
) -> None:
    spark_submit.will(plan)
    raised = gate.fails("GateInfrastructureError", message)
    error = str(raised)
    assert error.startswith(f"no report in {tmp_path / 'results'}: gate lake.gate, date 2024-05-17")
    assert "--request" not in error
    assert "\n" not in error


def test_a_job_that_ended_at_its_deadline_is_an_error_of_its_own(
    gate: Gates, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("exit=124")
    gate.fails("GateTimeoutError", "took longer than 90 seconds; increase", validation_timeout=90)


def test_a_missing_spark_submit_is_named(
    gate: Gates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    message = "program 'spark-submit' not found on the PATH of this worker; install pyspark"
    gate.fails("GateInfrastructureError", message)


def test_an_error_of_the_hook_before_submission_is_reported(
    gate: Gates, spark_submit: SparkSubmit
) -> None:
    gate.fails(
        "GateInfrastructureError",
        "env_vars is not supported in",
        deploy_mode="cluster",
        env_vars={"TOKEN": "x"},
    )
    assert spark_submit.calls == []


def test_a_job_that_fails_after_its_report_is_judged_by_the_report(
    gate: Gates, spark_submit: SparkSubmit, log: Log
) -> None:
    spark_submit.will("passed exit=1")
    assert gate.run() == "passed"
    (warning,) = log.at("warning")
    assert warning == ("the Spark job failed (exit code 1); looking for the report of the gate")


def test_output_other_than_utf8_is_logged(gate: Gates, spark_submit: SparkSubmit, log: Log) -> None:
    spark_submit.will("binary passed")
    assert gate.run(verbose=True) == "passed"
    assert "caf\ufffd \ufffd" in log.text


def test_the_second_execution_of_an_operator_sends_its_own_request(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask
) -> None:
    spark_submit.will("exit=1", "passed")
    made = gate()
    with pytest.raises(gate.operators.GateInfrastructureError):
        made.execute(gate.context)
    task.id, task.try_number = "attempt-2", 2
    assert made.execute(gate.context) == "passed"
    assert [request.attempt.id for request in spark_submit.requests] == ["attempt-1", "attempt-2"]


def test_a_try_that_is_tested_once_more_judges_the_data_again(
    gate: Gates, spark_submit: SparkSubmit, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark_submit.will("passed", "blocked")
    assert gate.run() == "passed"
    assert gate.run() == "passed"
    assert len(spark_submit.requests) == 1  # the task was restarted within its try
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")  # by `airflow tasks test`
    gate.fails("GateBlockedError")
    first, tested = spark_submit.requests
    assert first.attempt.number == tested.attempt.number
    assert first.attempt.id == "attempt-1" != tested.attempt.id


# What is reported


def test_the_verdict_is_the_last_line_of_the_log(
    gate: Gates, spark_submit: SparkSubmit, log: Log
) -> None:
    spark_submit.will("blocked")
    raised = gate.fails("GateBlockedError")
    last = log.entries[-1]
    assert last["log_level"] == "error"
    assert last["event"] == str(raised)
    assert str(raised) == (
        "blocked: gate lake.gate, dataset orders, date 2024-05-17: 2 of 2 assertions failed; "
        "worst: orders.id (P0): null_count(id) is 12, expected == 0"
    )
    # Milder failures would not have blocked it.
    assert ["orders.note" in line for line in log.at("warning")] == [True]


def test_the_reason_of_a_broken_gate_is_in_its_error_and_its_log(
    gate: Gates, spark_submit: SparkSubmit, log: Log
) -> None:
    spark_submit.will("broken")
    gate.fails("GateBrokenError", "there is no column 'id'")
    drawn, last = log.at("error")
    assert "could not be evaluated: orders.id" in drawn
    assert last.startswith("broken: gate lake.gate")


def test_the_summary_is_bounded_for_any_report(
    gate: Gates, spark_submit: SparkSubmit, task: FakeTask
) -> None:
    request = gate.request(gate="g" * 2000)
    ResultsStore(request.results_root).write(canned_report(request, "long"))
    raised = gate.fails("GateBlockedError", gate="g" * 2000)
    assert spark_submit.calls == []
    pushed = task.pushed["dqx_report"]
    assert len(json.dumps(pushed)) < 40_000
    assert len(pushed["verdicts"]) == 20
    assert pushed["more_verdicts"] == 280
    assert pushed["counts"]["failed"] == 300
    assert len(str(raised)) <= 1000


def test_exception_types_decide_what_is_retried(operators: ModuleType) -> None:
    from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

    final = (
        operators.GateBlockedError,
        operators.GateBrokenError,
        operators.GateMisconfiguredError,
    )
    assert {kind for kind in final if not issubclass(kind, AirflowFailException)} == set()
    assert issubclass(operators.GateInfrastructureError, AirflowException)
    assert not issubclass(operators.GateInfrastructureError, AirflowFailException)


def test_a_kill_reaches_spark_submit(gate: Gates, spark_submit: SparkSubmit) -> None:
    spark_submit.will("sleep")
    made = gate()
    error = killed(
        made,
        gate.context,
        lambda: bool(spark_submit.calls) and getattr(made._hook, "_submit_sp", None) is not None,
    )
    process: subprocess.Popen[str] = made._hook._submit_sp
    assert process.returncode == -9
    assert "killed by signal 9" in str(error)
