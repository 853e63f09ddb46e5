"""A job that judges many gates in one Spark: each has its own report, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dqx_airflow.engine.job import main, run_gates
from dqx_airflow.results.batch_reports import BatchReports, digest_of
from dqx_airflow.results.stored_requests import store_request
from dqx_airflow.results.tables import locate
from dqx_airflow.results.upkeep import vacuum
from dqx_airflow.values import (
    Attempt,
    BatchRequest,
    DatasetRef,
    GateReport,
    GateRequest,
    Outcome,
    RunKey,
)
from dqx_airflow.values.files import shipped
from dqx_airflow.values.json_form import EXIT_TIMED_OUT, FILE_FLAG, to_arguments
from tests.engine.lake import ORDERS, TODAY, delta, request
from tests.engine.test_deadline import ENDLESS
from tests.processes import PROGRAMS, environment

pytestmark = pytest.mark.spark


def gate_request(folder: Path, name: str, ref: DatasetRef, **changes: Any) -> GateRequest:
    """The request for a gate about `orders` that passes."""
    changes = {"rule": "assert null_count(id) == 0 severity P0", **changes}
    gate = request(folder, changes.pop("rule"), [ref], **changes)
    return replace(gate, run_key=RunKey(name, TODAY, "run"))


def batch_of(*requests: GateRequest, **changes: Any) -> BatchRequest:
    key = RunKey("lake.batch", TODAY, "run")
    return BatchRequest(key, requests[0].results_root, "batch", "run", requests, **changes)


def reports_in(batch: BatchRequest) -> BatchReports:
    return BatchReports(locate(batch.results_root), batch.batch, batch.run)


def taken(batch: BatchRequest, request: GateRequest, attempt: str = "a") -> GateReport | None:
    """The first report that an attempt of a gate takes, if there is one."""
    own = replace(request, attempt=Attempt(1, attempt))
    found = reports_in(batch).take(own).reports
    return None if found is None else found[0]


@pytest.fixture
def orders(tmp_path: Path) -> DatasetRef:
    return delta(tmp_path, "orders", ORDERS)


@pytest.mark.few(1)
@pytest.mark.parametrize("at_once", [1, 3])
def test_each_gate_has_the_report_of_a_job_of_its_own(
    spark: Any, tmp_path: Path, orders: DatasetRef, at_once: int
) -> None:
    target = str(tmp_path / "published")
    passing = gate_request(
        tmp_path, "lake.passing", orders, promote_to=(("orders", target),), timeout_s=300.0
    )
    blocked = gate_request(tmp_path, "lake.blocked", orders, rule='assert num_rows() > 9 name "a"')
    missing = replace(orders, path=str(tmp_path / "nowhere"))
    broken = gate_request(tmp_path, "lake.broken", missing)
    wrong = gate_request(tmp_path, "lake.wrong", orders, rule="assert no_metric(id) == 0")
    batch = batch_of(broken, passing, wrong, blocked, at_once=at_once)
    assert main(to_arguments(batch), lambda _: spark) == 0
    assert not (tmp_path / "results" / "runs").exists(), "the gates write them"
    found = {one.run_key.gate: taken(batch, one) for one in batch.requests}
    assert found.pop("lake.wrong") is None, "its own job says what is wrong with the suite"
    assert {gate: report and report.outcome for gate, report in found.items()} == {
        "lake.broken": Outcome.BROKEN,
        "lake.passing": Outcome.PASSED,
        "lake.blocked": Outcome.BLOCKED,
    }
    assert DeltaTable(target).to_pyarrow_table().num_rows == ORDERS.num_rows
    assert [tag for tag in spark.sparkContext.getJobTags() if tag.startswith("dqx")] == []
    for one in (blocked, broken):
        (alone,) = run_gates([one], lambda _: spark)
        in_batch = found[one.run_key.gate]
        assert in_batch is not None
        assert same(in_batch) == same(alone)


def same(report: GateReport) -> GateReport:
    """A report without the ids and the timestamps of its run."""
    no_time = datetime(2024, 1, 1, tzinfo=timezone.utc)
    return replace(
        report, run_id="", attempt=Attempt(0, ""), started_at=no_time, finished_at=no_time
    )


def test_a_gate_that_reaches_its_deadline_has_no_report_and_stops_no_other(
    spark: Any, tmp_path: Path, orders: DatasetRef, capsys: pytest.CaptureFixture[str]
) -> None:
    endless = gate_request(
        tmp_path,
        "lake.endless",
        DatasetRef("orders", query=ENDLESS),
        rule="assert maximum(id) > 0",
        timeout_s=3.0,
    )
    passing = gate_request(tmp_path, "lake.passing", orders, timeout_s=300.0)
    batch = batch_of(endless, passing)
    assert main(to_arguments(batch), lambda _: spark) == 0
    assert "error: the gate took longer than 3 seconds" in capsys.readouterr().err
    assert taken(batch, endless) is None
    report = taken(batch, passing)
    assert report is not None
    assert report.outcome is Outcome.PASSED
    assert spark.range(3).count() == 3


@pytest.mark.more
def test_the_end_of_a_batch_ends_its_gates_in_a_spark_that_goes_on(
    spark: Any, tmp_path: Path, orders: DatasetRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a gate has begun would otherwise go on after its own task has begun, and promote."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    endless = [
        gate_request(
            tmp_path,
            f"lake.endless{number}",
            DatasetRef("orders", query=ENDLESS),
            rule="assert maximum(id) > 0",
        )
        for number in range(2)
    ]
    never = gate_request(tmp_path, "lake.never", orders)
    batch = batch_of(*endless, never, at_once=2, timeout_s=5.0)
    assert main(to_arguments(batch), lambda _: spark) == EXIT_TIMED_OUT
    assert running_jobs(spark) == []
    assert ended == []
    assert reports_in(batch).open_requests(batch.requests) == [never]
    assert [taken(batch, one) for one in batch.requests] == [None] * 3
    assert spark.range(3).count() == 3


def running_jobs(spark: Any) -> list[int]:
    return [*spark.sparkContext.statusTracker().getActiveJobsIds()]


def test_a_report_is_taken_once_and_only_for_the_same_request(
    spark: Any, tmp_path: Path, orders: DatasetRef
) -> None:
    first = gate_request(tmp_path, "lake.first", orders)
    twin = replace(first, run_key=RunKey("lake.twin", TODAY, "run"))
    batch = batch_of(first, twin)
    assert main(to_arguments(batch), lambda _: spark) == 0
    others = [
        replace(first, run_key=RunKey("lake.first", TODAY, "another run")),
        replace(first, datasets=(replace(orders, version="0"),)),
        replace(first, datasets=(replace(orders, path=f"{orders.path}/"),)),
        replace(first, timeout_s=5.0),
        replace(first, suite=replace(first.suite, text=first.suite.text + "\n")),
        replace(first, allow_empty=True),
    ]
    assert [taken(batch, other, "other") for other in others] == [None] * len(others)
    report = taken(batch, first, "try 1")
    assert report is not None
    assert report.run_key == first.run_key
    assert report.attempt == Attempt(1, "try 1")
    assert taken(batch, first, "try 1") == report, "a restart of the same attempt"
    assert taken(batch, first, "try 2") is None
    assert taken(batch, twin, "try 1") is not None, "equal rules, and a report of its own"
    cleared = replace(batch, run="cleared once")
    assert taken(cleared, first, "try 1") is None


def test_the_next_job_judges_only_what_no_job_has_begun(
    spark: Any, tmp_path: Path, orders: DatasetRef
) -> None:
    """A request that an earlier job has begun and not ended may be what has ended that job."""
    done, lost, alone, new = (
        gate_request(tmp_path, f"lake.{name}", orders) for name in ("done", "lost", "alone", "new")
    )
    batch = batch_of(done, lost, alone, new)
    reports = reports_in(batch)
    assert main(to_arguments(replace(batch, requests=(done,))), lambda _: spark) == 0
    assert reports.begin(lost)
    assert taken(batch, alone) is None, "its gate judges for itself"
    assert reports.open_requests(batch.requests) == [alone, new]
    assert main(to_arguments(batch), lambda _: spark) == 0
    assert reports.judged(batch.requests) == [done, new]
    assert taken(batch, alone) is None


def test_a_gate_that_has_looked_takes_nothing_that_comes_later(
    spark: Any, tmp_path: Path, orders: DatasetRef
) -> None:
    gate = gate_request(tmp_path, "lake.gate", orders)
    batch = batch_of(gate)
    reports = reports_in(batch)
    assert reports.begin(gate)
    assert taken(batch, gate, "try 1") is None
    reports.leave(gate, run_gates([gate], lambda _: spark))
    assert taken(batch, gate, "try 2") is None


@pytest.mark.parametrize("jobs", [pytest.param(4), pytest.param(16, marks=pytest.mark.nightly)])
def test_of_jobs_that_begin_a_request_at_once_one_judges_it(
    tmp_path: Path, orders: DatasetRef, jobs: int
) -> None:
    gates = [gate_request(tmp_path, f"lake.gate{number}", orders) for number in range(20)]
    reports = reports_in(batch_of(*gates))
    at_once = threading.Barrier(jobs)

    def begin(gate: GateRequest) -> bool:
        at_once.wait()
        return reports.begin(gate)

    with ThreadPoolExecutor(jobs) as pool:
        for gate in gates:
            answers = [*pool.map(begin, [gate] * jobs)]
            assert sorted(answers) == [False] * (jobs - 1) + [True]
    assert reports.open_requests(gates) == []
    assert not reports.judged(gates)


@pytest.mark.more
def test_two_jobs_of_a_batch_at_once_check_each_gate_once(
    spark: Any, tmp_path: Path, orders: DatasetRef, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the worker of the first one was lost, and its job was not."""
    gates = [
        gate_request(
            tmp_path, f"lake.gate{number}", orders, promote_to=(("orders", str(tmp_path / target)),)
        )
        for number, target in enumerate(("first", "second", "third", "fourth"))
    ]
    batch = batch_of(*gates, at_once=2)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(main, to_arguments(batch), lambda _: spark) for _ in range(2)]
    assert [job.result() for job in jobs] == [0, 0]
    assert capsys.readouterr().err.count("left to its own task") == len(gates)
    for gate in gates:
        report = taken(batch, gate)
        assert report is not None
        assert report.run_key == gate.run_key
        ((_, target),) = gate.promote_to
        assert DeltaTable(target).to_pyarrow_table().num_rows == ORDERS.num_rows


def test_masked_values_are_not_in_the_files_of_a_batch(spark: Any, tmp_path: Path) -> None:
    people = pa.table({"id": [1, 2], "email": ["ann@secret.example", "bob@secret.example"]})
    ref = replace(delta(tmp_path, "orders", people), masked=("email",), keys=("id",))
    gate = gate_request(tmp_path, "lake.people", ref, rule="assert each row: length(email) < 3")
    batch = batch_of(gate)
    assert main(to_arguments(batch), lambda _: spark) == 0
    folder = tmp_path / "results" / "_dqx_batches"
    left = "\n".join(file.read_text() for file in folder.rglob("*") if file.is_file())
    assert "failing_rows" in left
    assert "secret.example" not in left
    assert taken(batch, gate) is not None


def test_old_runs_of_a_batch_are_deleted(tmp_path: Path, orders: DatasetRef) -> None:
    gate = gate_request(tmp_path, "lake.gate", orders)
    batch = batch_of(gate)
    old, new, own = (
        BatchReports(locate(batch.results_root), "batch", run) for run in ("old", "new", "own")
    )
    (tmp_path / "results").mkdir()
    for one in (old, new, own):
        assert one.begin(gate)
    for name in ("old", "own"):
        begun_log = f"batch/{name}/{digest_of(gate)}.begun/_delta_log"
        (file,) = (tmp_path / "results" / "_dqx_batches" / begun_log).iterdir()
        os.utime(file, (0, 0))
    own.forget_old()
    left = sorted(path.name for path in (tmp_path / "results" / "_dqx_batches" / "batch").iterdir())
    assert left == ["new", "own"]


def test_vacuum_deletes_the_old_files_of_all_batches(
    spark: Any, tmp_path: Path, orders: DatasetRef
) -> None:
    """No batch does, if its DAG is gone or it may not delete; they may contain failing rows."""
    gate = gate_request(tmp_path, "lake.gate", orders)
    run_gates([gate], lambda _: spark)
    root = gate.results_root
    folder = tmp_path / "results" / "_dqx_batches"
    for batch in ("gone", "other"):
        for run in ("old", "new"):
            reports = BatchReports(locate(root), batch, run)
            assert reports.begin(gate)
            reports.leave(gate, ())
    reports.take(gate)
    for file in folder.glob("*/old/**/*"):
        os.utime(file, (0, 0))
    assert vacuum(root, dry_run=True)[-1].deleted_files == 4
    assert len([*folder.glob("*/*/*.report")]) == 4
    assert vacuum(root)[-1].deleted_files == 4
    left = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*"))
    assert left == ["gone/new", "other/new"]
    assert vacuum(root)[-1].table != "_dqx_batches"


def started(folder: Path, batch: BatchRequest) -> subprocess.Popen[bytes]:
    """The job of a batch, as a process group of its own."""
    return subprocess.Popen(
        [
            str(PROGRAMS / "spark-submit"),
            *("--master", "local[1]", "--conf", "spark.log.level=ERROR"),
            str(shipped("spark_jobs/gate_job.py")),
            *(FILE_FLAG, store_request(locate(batch.results_root), batch)),
        ],
        env=environment(DQX_TEST=str(folder)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_until_begun(job: subprocess.Popen[bytes], batch: BatchRequest, gate: GateRequest) -> None:
    end = time.monotonic() + 300
    while gate in reports_in(batch).open_requests(batch.requests):
        assert time.monotonic() < end
        assert job.poll() is None
        time.sleep(0.2)


@pytest.mark.e2e
@pytest.mark.nightly
def test_a_gate_that_ends_after_its_deadline_leaves_no_report(
    tmp_path: Path, orders: DatasetRef
) -> None:
    """Its driver stood still meanwhile, as on a suspended machine, and no timer went off."""
    query = "SELECT max(a.id * b.id % 7) AS id FROM range(30000) a CROSS JOIN range(30000) b"
    late = gate_request(
        tmp_path,
        "lake.late",
        DatasetRef("orders", query=query),
        rule="assert maximum(id) > 0",
        timeout_s=10.0,
    )
    last = gate_request(tmp_path, "lake.last", orders, timeout_s=300.0)
    batch = batch_of(late, last)
    job = started(tmp_path, batch)
    try:
        wait_until_begun(job, batch, late)
        os.killpg(job.pid, signal.SIGSTOP)
        time.sleep(12)
        os.killpg(job.pid, signal.SIGCONT)
        assert job.wait(300) == 0
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    assert taken(batch, late) is None
    report = taken(batch, last)
    assert report is not None
    assert report.outcome is Outcome.PASSED


@pytest.mark.e2e
@pytest.mark.slow
def test_a_killed_job_leaves_the_reports_that_were_done(tmp_path: Path, orders: DatasetRef) -> None:
    first = gate_request(tmp_path, "lake.first", orders)
    endless = gate_request(
        tmp_path, "lake.endless", DatasetRef("orders", query=ENDLESS), rule="assert maximum(id) > 0"
    )
    last = gate_request(tmp_path, "lake.last", orders)
    batch = batch_of(first, endless, last)
    reports = reports_in(batch)
    job = started(tmp_path, batch)
    try:
        wait_until_begun(job, batch, endless)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert reports.judged(batch.requests) == [first]
    assert reports.open_requests(batch.requests) == [last]
    report = taken(batch, first)
    assert report is not None
    assert report.outcome is Outcome.PASSED
    assert taken(batch, endless) is None
    assert taken(batch, last) is None
    assert not (tmp_path / "results" / "runs").exists()
