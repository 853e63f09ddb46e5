"""Gates whose jobs run on services, which the tests play: see `spark_services.py`.

The jobs are stubs that write a canned report; in the lane slow they are real.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow import __version__
from dqx_airflow.results.runs import list_runs
from dqx_airflow.values.json_form import FILE_FLAG
from tests.operators.gate_stubs import (
    ENDLESS,
    SUITE,
    Gates,
    Log,
    Run,
    SparkSubmit,
    dag_file,
    event_of,
    killed,
    wait_for,
)
from tests.operators.spark_services import JOB, SERVICES, SparkService, serving
from tests.processes import output_of

pytestmark = pytest.mark.airflow


DAG_FILE = dag_file(
    """
    DqlGateOperator(
        task_id="gate",
        suite="orders.dql",
        datasets={"orders": "/lake/orders"},
        submit=SUBMIT,
        deferrable=DEFERRABLE,
        retries=1,
        retry_delay=timedelta(0),
    ) >> EmptyOperator(task_id="downstream")
""",
    before="from dqx_airflow.operators.submitters import *",
)
PROVIDERS = {
    "livy": "airflow.providers.apache.livy",
    "databricks": "airflow.providers.databricks",
    **dict.fromkeys(("emr_serverless", "glue", "emr"), "airflow.providers.amazon"),
    "spark_operator": "airflow.providers.cncf.kubernetes",
    **dict.fromkeys(("dataproc_batches", "dataproc_jobs"), "airflow.providers.google"),
}


SUCCEEDED = "(?i:success|succeeded|completed|done)"
FIRST, *OTHERS = SERVICES
of_real_jobs = pytest.mark.parametrize(
    "service",
    [FIRST, *(pytest.param(kind, marks=pytest.mark.nightly) for kind in OTHERS)],
    indirect=True,
)
"""Real Sparks and Airflows: in the lane slow with one service, in the nightly one with all."""


@pytest.fixture(params=[FIRST, *(pytest.param(kind, marks=pytest.mark.slow) for kind in OTHERS)])
def service(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkService]:
    pytest.importorskip(PROVIDERS[request.param])
    with serving(SERVICES[request.param](tmp_path)) as started:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", started.connection)
        yield started


@pytest.fixture(autouse=True)
def quick_polls(airflow_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from dqx_airflow.operators import trigger

    monkeypatch.setattr(trigger, "_FIRST_WAIT_S", 0.05)
    monkeypatch.setattr(trigger, "_LEAST_POLL_S", 0.2)


@pytest.fixture
def gate_there(gate: Gates, service: SparkService, spark_submit: SparkSubmit) -> Gates:
    """Gates whose jobs the service runs, with the stub of `spark-submit`."""
    there = {"status_poll_interval": 0, "submit": service.submitter()}
    return replace(gate, given={**gate.given, **there})


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[], list[Path]]:
    """The requests that lie beside the results."""
    return lambda: [*(tmp_path / "results" / "_dqx_requests").glob("*")]


# The way of a whole task


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("report", "states", "deferrable"),
    [
        ("blocked", ("failed", "upstream_failed", 1), False),
        ("passed", ("success", "success", 1), True),
        ("broken", ("failed", "upstream_failed", 1), True),
        ("passed", ("success", "success", 1), False),
        ("blocked", ("failed", "upstream_failed", 1), True),
        ("broken", ("failed", "upstream_failed", 1), False),
    ],
)
def test_a_gate_on_a_service_ends_as_any_other(
    run_file: Callable[..., Run],
    service: SparkService,
    spark_submit: SparkSubmit,
    stored: Callable[[], list[Path]],
    report: str,
    states: tuple[str, str, int],
    deferrable: bool,
) -> None:
    spark_submit.will(report)
    service.waits = 2
    text = DAG_FILE.replace("SUBMIT", repr(service.submitter()))
    run = run_file(text.replace("DEFERRABLE", str(deferrable)), {"orders.dql": SUITE})
    assert (run["gate"], run["downstream"], run.tries()) == states
    assert run.xcom("dqx_report")["outcome"] == report
    assert len(service.jobs) == 1
    assert stored() == []


def test_a_job_without_a_report_is_retried_as_another_job(
    run_file: Callable[..., Run], service: SparkService, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("exit=1", "passed")
    text = DAG_FILE.replace("SUBMIT", repr(service.submitter())).replace("DEFERRABLE", "False")
    run = run_file(text, {"orders.dql": SUITE})
    assert (run["gate"], run["downstream"], run.tries()) == ("success", "success", 2)
    first, second = (json.dumps(job.body) for job in service.jobs)
    assert first != second


@pytest.mark.more
def test_mapped_gates_share_a_submitter(
    run_file: Callable[..., Run], service: SparkService, spark_submit: SparkSubmit
) -> None:
    text = DAG_FILE.replace("SUBMIT", repr(service.submitter())).replace("DEFERRABLE", "True")
    text = text.replace("DqlGateOperator(\n", "DqlGateOperator.partial(\n")
    text = text.replace('        datasets={"orders": "/lake/orders"},\n', "")
    text = text.replace(
        ") >> Empty",
        """).expand(
        datasets=[{"orders": "/lake/passed"}, {"orders": "/lake/blocked"}]
    ) >> Empty""",
    )
    spark_submit.will("by_dataset")
    run = run_file(text, {"orders.dql": SUITE})
    assert (run["gate[0]"], run["gate[1]"], run["downstream"]) == (
        "success",
        "failed",
        "upstream_failed",
    )
    assert len(service.jobs) == 2


# What the service gets


@pytest.mark.more
def test_a_long_request_takes_little_room_in_the_arguments(
    gate_there: Gates, spark_submit: SparkSubmit
) -> None:
    rules = "\n".join(f"assert null_count(id_{number}) == {number}" for number in range(3000))
    suite = f'suite "Orders" {{ check "Many" on orders {{\n{rules}\n}} }}'
    assert gate_there.run(suite=suite, gate="Lake: orders & more") == "passed"
    (call,) = spark_submit.calls
    assert len(" ".join(call[call.index(JOB) :])) < 400
    assert spark_submit.conf["spark.openlineage.disabled"] == "true"


def test_settings_and_fields_of_the_submitter_are_rendered(
    gate_there: Gates, service: SparkService, spark_submit: SparkSubmit, log: Log
) -> None:
    submitter = replace(service.submitter(), **{_connection_of(service): "{{ 'serv' }}ice"})
    given = {"conf": {"spark.executor.memory": "4g"}, "jars": "a.jar", "ansi": False}
    assert gate_there.run(submit=submitter, **given) == "passed"
    assert spark_submit.conf["spark.executor.memory"] == "4g"
    assert spark_submit.conf["spark.sql.ansi.enabled"] == "false"
    assert "with submit, these have no effect: jars" in log.text


def _connection_of(service: SparkService) -> str:
    names = vars(service.submitter())
    return next(name for name in names if names[name] == "service")


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            {"existing_cluster_id": "c1"},
            {
                "existing_cluster_id": "c1",
                "python_wheel_task": {"package_name": "dqx_airflow", "entry_point": "gate_job"},
                "libraries": [{"pypi": {"package": f"dqx-airflow=={__version__}"}}],
            },
        ),
        (
            {"new_cluster": {"spark_conf": {"a": "1"}}, "libraries": [{"whl": "/Volumes/a.whl"}]},
            {
                "new_cluster": {"spark_conf": {"a": "1", "b": "2"}},
                "python_wheel_task": {"package_name": "dqx_airflow", "entry_point": "gate_job"},
                "libraries": [{"whl": "/Volumes/a.whl"}],
            },
        ),
        (
            {"environment_key": "dqx"},
            {
                "environment_key": "dqx",
                "python_wheel_task": {"package_name": "dqx_airflow", "entry_point": "gate_job"},
            },
        ),
        ({"spark_python_task": {"python_file": JOB}}, {"spark_python_task": {"python_file": JOB}}),
    ],
    ids=["wheel", "own wheel", "serverless", "file"],
)
def test_a_run_of_databricks_calls_the_wheel_or_a_file(
    spark_submit: SparkSubmit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    task: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    pytest.importorskip(PROVIDERS["databricks"])
    from dqx_airflow.operators.submitters import DatabricksRuns, Job

    spark_submit.will("exit=0")
    with serving(SERVICES["databricks"](tmp_path)) as started:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", started.connection)
        submitter = DatabricksRuns(task, "service", run={"tags": {"team": "lake"}})
        job = Job("dqx-gate-1", "f" * 64, [FILE_FLAG, "s3://lake"], {"a": "0", "b": "2"}, 3600)
        assert submitter.submit(job) == "1001"
        body = dict(started.jobs[0].body)
    (sent,) = body.pop("tasks")
    kind = next(key for key in sent if key.endswith("_task"))
    assert sent[kind].pop("parameters") == [FILE_FLAG, "s3://lake"]
    assert sent == {"task_key": "gate", **expected}
    assert body == {
        "run_name": "dqx-gate-1",
        "idempotency_token": "f" * 64,
        "timeout_seconds": 3600,
        "tags": {"team": "lake"},
    }


@pytest.mark.parametrize(
    ("kind", "given", "limit_s", "expected"),
    [
        ("dataproc_batches", {}, None, {"pysparkBatch": {}, "runtimeConfig": {}}),
        (
            "dataproc_batches",
            {
                "runtimeConfig": {"version": "2.3", "properties": {"b": "2"}},
                "environmentConfig": {"executionConfig": {"serviceAccount": "gates@lake"}},
            },
            3600,
            {
                "pysparkBatch": {},
                "runtimeConfig": {"version": "2.3"},
                "environmentConfig": {
                    "executionConfig": {"serviceAccount": "gates@lake", "ttl": "3600s"}
                },
            },
        ),
        (
            "dataproc_jobs",
            {"labels": {"team": "lake"}},
            3600,
            {
                "placement": {"clusterName": "c"},
                "labels": {"team": "lake"},
                "reference": {"projectId": "lake", "jobId": "dqx-gate-1"},
                "pysparkJob": {},
            },
        ),
    ],
    ids=["batch", "batch with settings and limit", "job"],
)
def test_dataproc_gets_what_was_given_and_the_job(
    spark_submit: SparkSubmit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    given: dict[str, Any],
    limit_s: int | None,
    expected: dict[str, Any],
) -> None:
    pytest.importorskip(PROVIDERS[kind])
    from dqx_airflow.operators.submitters import Job

    job = Job("dqx-gate-1", "f" * 64, [FILE_FLAG, "gs://lake"], {"a": "0", "b": "1"}, limit_s)
    with serving(SERVICES[kind](tmp_path)) as started:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", started.connection)
        submitter = started.submitter()
        of_job = {key: submitter.body[key] for key in submitter.body if key != "runtimeConfig"}
        submitter = replace(submitter, body={**of_job, **given}, project_id=None)
        assert submitter.submit(job) == "dqx-gate-1"
        sent = dict(started.jobs[0].body)
        submitter.cancel("dqx-gate-1")
    assert started.jobs[0].is_cancelled
    assert sent.pop("requestId") == "f" * 40
    sent.pop("batchId", None)
    body = sent.pop("job", sent)
    main = "pysparkJob" if kind == "dataproc_jobs" else "pysparkBatch"
    assert body[main].pop("args") == [FILE_FLAG, "gs://lake"]
    assert body[main].pop("mainPythonFileUri") == JOB
    properties = body[main if kind == "dataproc_jobs" else "runtimeConfig"].pop("properties")
    of_user = given.get("runtimeConfig", {}).get("properties", {})
    assert properties == {"a": "0", "b": "1", **of_user}
    assert body == expected


@pytest.mark.parametrize("kind", SERVICES)
def test_the_doctor_finds_the_program_in_the_fields_of_a_submitter(
    tmp_path: Path, kind: str
) -> None:
    from dqx_airflow.cli.doctor_checks.services import field_at, services

    submitter = SERVICES[kind](tmp_path).submitter()
    needs = services()[type(submitter).__name__]
    fields = asdict(submitter)
    assert field_at(fields, needs.program) == (None if kind == "glue" else JOB)
    runtimes = {"databricks": "16.4.x-scala2.12", "dataproc_batches": "2.3"}
    runtimes["spark_operator"] = "4.0.1"
    assert field_at(fields, needs.runtime) == runtimes.get(kind)


def test_a_request_that_was_changed_on_the_way_is_not_judged(
    gate_there: Gates,
    service: SparkService,
    spark_submit: SparkSubmit,
    stored: Callable[[], list[Path]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    run = service.run

    def run_another(*given: Any) -> int:
        (path,) = stored()
        path.write_text("another request")
        return run(*given)

    monkeypatch.setattr(service, "run", run_another)
    gate_there.fails("GateInfrastructureError", "no report")
    assert "was changed after it was submitted" in "\n".join(service.jobs[0].log)
    assert not (tmp_path / "results" / "runs").exists()


# Nothing but the report of this very attempt makes a gate green


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("exit=0", rf"ended as {SUCCEEDED}; its driver must reach the same"),
        ("other", rf"ended as {SUCCEEDED}"),
        ("exit=1", r"ended as (dead|FAILED|ERROR).*; see (http|the log of its driver)"),
    ],
)
def test_a_job_without_a_report_of_the_attempt_is_no_verdict(
    gate_there: Gates, spark_submit: SparkSubmit, job: str, message: str
) -> None:
    spark_submit.will(job)
    raised = gate_there.fails("GateInfrastructureError", message)
    assert not isinstance(raised, gate_there.operators.GateTimeoutError)
    assert "hush" not in str(raised)


def test_a_lost_job_is_no_verdict(
    gate_there: Gates, service: SparkService, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("sleep")
    made = gate_there(deferrable=True)
    trigger = _deferred(gate_there, made)
    service.forget()
    with pytest.raises(gate_there.operators.GateInfrastructureError, match="no longer knows the"):
        made.execute_complete(gate_there.context, event_of(trigger))


def test_a_job_is_submitted_once(
    gate_there: Gates, service: SparkService, spark_submit: SparkSubmit
) -> None:
    from dqx_airflow.operators.submitters import Job

    if not service.has_token:
        pytest.skip("the service has no token for a job: a second one finds no request")
    spark_submit.will("sleep")
    job = Job("dqx-orders-1", "f" * 64, [FILE_FLAG, "/nowhere"], {})
    handles = {service.submitter().submit(job) for _ in range(2)}
    assert len(handles) == len(service.jobs) == 1
    assert service.submitter().submit(replace(job, name="dqx-orders-2", token="e" * 64))
    assert len(service.jobs) == 2


def test_a_second_job_of_a_request_finds_none(
    gate_there: Gates, service: SparkService, tmp_path: Path
) -> None:
    assert gate_there.run() == "passed"
    (call,) = [job.process.args for job in service.jobs]
    number = service.run({}, JOB, list(call)[call.index(JOB) + 1 :])  # type: ignore
    assert service.jobs[number].process.wait() != 0
    assert "is gone: its gate has ended" in "".join(service.jobs[number].log)
    assert len(list_runs(str(tmp_path / "results"))) == 1


def test_a_service_that_took_a_job_without_saying_so_gives_no_verdict(
    gate_there: Gates,
    service: SparkService,
    spark_submit: SparkSubmit,
    stored: Callable[[], list[Path]],
) -> None:
    service.faults = [0]
    if service.kind not in ("livy", "glue", "emr", "spark_operator"):  # asked again, same token
        assert gate_there.run() == "passed"
        assert len(service.jobs) == 1
        return
    if service.kind in ("glue", "emr"):  # they ask again without a token: one of two jobs judges
        assert gate_there.run() == "passed"
        assert len(service.jobs) == 2
        wait_for(lambda: sorted(job.code != 0 for job in service.jobs) == [False, True])
        return
    gate_there.fails("GateInfrastructureError", "the job cannot be submitted")
    assert stored() == []


def test_a_service_with_too_many_requests_is_asked_again_or_the_try_fails(
    gate_there: Gates, service: SparkService, stored: Callable[[], list[Path]]
) -> None:
    service.faults = [429]
    if service.kind in ("livy", "spark_operator"):
        gate_there.fails("GateInfrastructureError", r"cannot be submitted.*429")
        assert service.jobs == []
    else:
        assert gate_there.run() == "passed"
        assert len(service.jobs) == 1
    assert stored() == []


def test_a_job_that_nobody_asks_about_ends_by_itself_and_its_try_finds_the_report(
    gate_there: Gates, service: SparkService
) -> None:
    gate_there.deferred(gate_there(deferrable=True))  # and then nobody waits
    assert service.jobs[0].process.wait() == 0
    assert gate_there.run() == "passed"
    assert len(service.jobs) == 1


def test_a_refused_job_leaves_no_request_behind(
    gate_there: Gates, service: SparkService, stored: Callable[[], list[Path]]
) -> None:
    service.faults = [403]
    gate_there.fails("GateInfrastructureError", r"cannot be submitted.*403")
    assert service.jobs == []
    assert stored() == []


# Waiting


def test_a_service_that_does_not_answer_is_asked_again(
    gate_there: Gates, service: SparkService
) -> None:
    made = gate_there(deferrable=True)
    trigger = _deferred(gate_there, made)
    service.faults = [_fault(service)] * 3
    assert made.execute_complete(gate_there.context, event_of(trigger)) == "passed"
    assert len(service.faults) < 3


def _fault(service: SparkService) -> int:
    """An answer that says nothing about a job, and that the hook does not wait for by itself."""
    return 500 if service.kind in ("livy", "spark_operator") else 403


def test_a_service_that_stops_answering_ends_the_wait(
    gate_there: Gates, service: SparkService, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("sleep")
    made = gate_there(deferrable=True)
    trigger = _deferred(gate_there, made)
    service.faults = [_fault(service)] * 30
    event = event_of(trigger)
    assert "cannot be tracked" in event["how"]
    with pytest.raises(gate_there.operators.GateInfrastructureError, match="cannot be tracked"):
        made.execute_complete(gate_there.context, event)


def _deferred(gate: Gates, made: Any) -> Any:
    """The trigger of a gate that is deferred, as the triggerer makes it."""
    trigger = gate.deferred(made).trigger
    path, arguments = trigger.serialize()
    assert path == "dqx_airflow.operators.trigger.GateTrigger"
    text = json.dumps(arguments)
    assert "hush" not in text
    assert len(text) < 3000
    return type(trigger)(**json.loads(text))


def _executed(gate: Gates, made: Any) -> Any:
    """The result of a gate, deferred or not."""
    if made.deferrable:
        return made.execute_complete(gate.context, event_of(_deferred(gate, made)))
    return made.execute(gate.context)


def test_a_deferred_gate_is_continued_with_the_event(
    gate_there: Gates, stored: Callable[[], list[Path]], service: SparkService
) -> None:
    made = gate_there(deferrable=True, suite=SUITE + "# noise\n" * 10_000)
    event = event_of(_deferred(gate_there, made))
    assert (event["logs"] or service.kind).startswith((service.address, "https://", "emr", "spark"))
    assert gate_there().execute_complete(gate_there.context, event) == "passed"
    assert stored() == []


# The end of a task is the end of its job


def test_a_killed_task_cancels_its_job(
    gate_there: Gates,
    service: SparkService,
    spark_submit: SparkSubmit,
    stored: Callable[[], list[Path]],
) -> None:
    spark_submit.will("sleep")
    error = killed(gate_there(), gate_there.context, lambda: bool(spark_submit.calls))
    assert isinstance(error, gate_there.operators.GateInfrastructureError)
    assert service.jobs[0].is_cancelled
    assert stored() == []


def test_a_killed_deferred_task_cancels_its_job(
    gate_there: Gates, service: SparkService, spark_submit: SparkSubmit
) -> None:
    import asyncio

    spark_submit.will("sleep")
    trigger = _deferred(gate_there, gate_there(deferrable=True))
    asyncio.run(trigger.on_kill())
    assert service.jobs[0].is_cancelled


@pytest.mark.few(1)
@pytest.mark.parametrize("deferrable", [False, True])
def test_a_task_that_takes_too_long_cancels_its_job(
    gate_there: Gates, service: SparkService, spark_submit: SparkSubmit, deferrable: bool
) -> None:
    spark_submit.will("sleep")
    made = gate_there(execution_timeout=timedelta(seconds=1.5), deferrable=deferrable)
    with pytest.raises(
        gate_there.operators.GateTimeoutError, match="longer than its execution_timeout"
    ):
        _executed(gate_there, made)
    assert service.jobs[0].is_cancelled


@pytest.mark.e2e
@of_real_jobs
def test_airflow_ends_a_waiting_task_at_its_timeout_and_with_it_the_job(
    run_file: Callable[..., Run], service: SparkService, spark_submit: SparkSubmit
) -> None:
    spark_submit.will("sleep")
    text = DAG_FILE.replace("SUBMIT", repr(service.submitter())).replace("DEFERRABLE", "False")
    text = text.replace("retries=1", "execution_timeout=timedelta(seconds=12)")
    run = run_file(text, {"orders.dql": SUITE})
    assert (run["gate"], run["downstream"]) == ("failed", "upstream_failed")
    assert [job.is_cancelled for job in service.jobs] == [True]


@pytest.mark.parametrize("kind", ["glue", "emr"])
def test_a_cancel_that_is_refused_in_an_answer_of_success_is_an_error(
    spark_submit: SparkSubmit,
    gate: Gates,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: Log,
    kind: str,
) -> None:
    pytest.importorskip(PROVIDERS[kind])
    spark_submit.will("sleep")
    with serving(SERVICES[kind](tmp_path)) as started:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", started.connection)
        started.refuses_to_cancel = True
        made = gate.rendered(submit=started.submitter(), deferrable=True)
        gate.deferred(made)
        made.on_kill()
        assert not started.jobs[0].is_cancelled
    assert "AWS refuses to end it" in "\n".join(log.at("error"))
    assert "AccessDenied" in log.text


def test_the_spark_settings_of_a_glue_job_stay_in_its_runs(
    spark_submit: SparkSubmit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(PROVIDERS["glue"])
    from dqx_airflow.operators.submitters import Job

    spark_submit.will("exit=0")
    with serving(SERVICES["glue"](tmp_path)) as started:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", started.connection)
        conf = {"spark.sql.ansi.enabled": "true"}
        started.submitter().submit(Job("dqx-1", "f" * 64, [FILE_FLAG, "s3://lake"], conf))
        # What the gate needs, what the job has, and what the submitter says: the last one counts.
        assert started.jobs[0].body["Arguments"]["--conf"].split(" --conf ") == [
            "spark.sql.ansi.enabled=true",
            "spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog",
            "spark.executor.cores=4",
            "spark.executor.cores=2",
        ]


def test_livy_finds_a_batch_on_any_page(
    spark_submit: SparkSubmit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.operators.submitters import Job

    spark_submit.will("exit=0")
    livy: Any = SERVICES["livy"](tmp_path)
    with serving(livy) as started:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", started.connection)
        livy.page = 2
        submitter = started.submitter()
        jobs = [Job(f"dqx-{n}", f"{n}" * 64, [FILE_FLAG, "/nowhere"], {}) for n in range(5)]
        handles = [submitter.submit(job) for job in jobs]
        assert [submitter.submit(job) for job in jobs] == handles


def test_dataproc_finds_a_batch_whose_request_it_has_forgotten(
    spark_submit: SparkSubmit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(PROVIDERS["dataproc_batches"])
    from dqx_airflow.operators.submitters import Job

    spark_submit.will("exit=0")
    with serving(SERVICES["dataproc_batches"](tmp_path)) as started:
        monkeypatch.setenv("AIRFLOW_CONN_SERVICE", started.connection)
        job = Job("dqx-gate-1", "f" * 64, [FILE_FLAG, "gs://lake"], {})
        assert started.submitter().submit(job) == "dqx-gate-1"
        started.jobs[0].body = {**started.jobs[0].body, "requestId": "another"}
        assert started.submitter().submit(job) == "dqx-gate-1"
        assert len(started.jobs) == 1


@pytest.mark.parametrize("name", ["a", "orders_silver.validate_contract_of_orders", "受注", "-_-"])
def test_the_name_of_a_job_leaves_room_for_what_the_spark_operator_appends(
    gate_there: Gates, service: SparkService, name: str
) -> None:
    if service.kind != "livy":
        pytest.skip("all services get the same name")
    assert gate_there.run(gate=name) == "passed"
    (given,) = [job.body["name"] for job in service.jobs]
    assert len(given) <= 35
    assert len(f"{given}-ui-svc") <= 63
    assert re.fullmatch(r"dqx-([a-z0-9]([a-z0-9-]*[a-z0-9])?-)?[0-9a-f]{12}", given)


def test_a_job_that_ended_itself_at_its_timeout_is_an_error_of_its_own(
    gate_there: Gates, spark_submit: SparkSubmit
) -> None:
    (spark_submit.home / "output").write_text("error: the gate took longer than 90 seconds\n")
    spark_submit.will("prints=output exit=124")
    gate_there.fails(
        "GateTimeoutError", "took longer than 90 seconds; increase", validation_timeout=90
    )


# Submitters of one's own


@dataclass(frozen=True)
class Refusing:
    """Looks like one."""

    queue: str = "gates"


@pytest.mark.parametrize(
    ("submit", "message"),
    [
        ("livy", "submit='livy': write a submitter, such as LivyBatches"),
        (Refusing(), r"submit=Refusing\(queue='gates'\): write a submitter"),
    ],
)
def test_what_is_no_submitter_is_a_mistake(gate: Gates, submit: Any, message: str) -> None:
    gate.fails("GateMisconfiguredError", message, submit=submit)


def test_a_submitter_must_be_made_again_by_the_triggerer(gate: Gates) -> None:
    from dqx_airflow.operators.submitters import LivyBatches, Submitter

    class Plain(Submitter):
        submit = state = cancel = lambda *_: None  # type: ignore[assignment]

    gate.fails("GateMisconfiguredError", "submit: Plain is not a dataclass", submit=Plain())
    gate.fails(
        "GateMisconfiguredError",
        r"auth=<object.* is not a JSON",
        submit=LivyBatches({}, auth=object()),
    )  # type: ignore[arg-type]


@pytest.mark.more
def test_a_dag_file_with_a_submitter_imports_no_provider_of_it() -> None:
    """Spark's own operator imports the client of Kubernetes, where its provider is installed."""
    code = f"""
import sys
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
before = set(sys.modules)
from dqx_airflow.operators import DqlGateOperator
from dqx_airflow.operators.submitters import *
DqlGateOperator(task_id="gate", suite={SUITE!r}, datasets={{"orders": "/lake"}},
    submit=LivyBatches({{"file": "gate_job.py"}}))
DatabricksRuns({{}})
print(*(sys.modules.keys() - before))
"""
    printed = output_of([sys.executable, "-c", code])
    loaded = printed.split()
    hooks = [f"{provider}.hooks" for provider in PROVIDERS.values()]
    assert not [name for name in loaded if name.startswith(("aiohttp", *hooks))]
    assert "pyarrow" not in loaded


# With a real Spark


@pytest.mark.spark
@pytest.mark.e2e
@of_real_jobs
@pytest.mark.parametrize(
    ("data", "deferrable", "error"),
    [
        ("sound", True, None),
        ("damaged", False, "GateBlockedError"),
        ("missing", False, "GateBrokenError"),
    ],
)
def test_a_service_runs_the_real_job(
    gate: Gates, service: SparkService, lake: Path, data: str, deferrable: bool, error: str | None
) -> None:
    dataset = {"path": str(lake / data), "format": "parquet"}
    made = gate(datasets={"orders": dataset}, submit=service.submitter(), deferrable=deferrable)
    if error is None:
        assert _executed(gate, made) == "passed"
    else:
        with pytest.raises(getattr(gate.operators, error)):
            _executed(gate, made)
    assert [job.code for job in service.jobs] == [0]


@pytest.mark.spark
@pytest.mark.e2e
@of_real_jobs
def test_a_killed_task_ends_the_real_job(gate: Gates, service: SparkService) -> None:
    made = gate(datasets={"orders": {"query": ENDLESS}}, submit=service.submitter())
    error = killed(made, gate.context, lambda: bool(service.jobs))
    assert isinstance(error, gate.operators.GateInfrastructureError)
    wait_for(lambda: service.jobs[0].is_cancelled)


@pytest.mark.spark
@pytest.mark.e2e
@of_real_jobs
def test_the_timeout_of_a_gate_ends_the_real_job(gate: Gates, service: SparkService) -> None:
    submit = service.submitter()
    gate.fails(
        "GateTimeoutError",
        "longer than 5 seconds",
        datasets={"orders": {"query": ENDLESS}},
        submit=submit,
        validation_timeout=5,
    )
