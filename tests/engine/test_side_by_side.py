"""Concurrent Spark jobs of a gate: independent, and distinguishable in Spark's UI."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.engine.scan.aggregates import aggregate
from dqx_airflow.engine.session.concurrency import jobs_called, side_by_side
from dqx_airflow.engine.session.spark_errors import Py4JJavaError
from dqx_airflow.plan import passes
from dqx_airflow.values import Status
from tests.engine.lake import COUNTRIES, ORDERS, Run, delta, request
from tests.job_count import jobs_so_far

pytestmark = pytest.mark.spark

TIMEOUT_S = 60


@pytest.fixture
def group(spark: Any) -> Iterator[str]:
    """The group that the jobs of this thread belong to."""
    spark.sparkContext.setJobGroup("asked here", "asked here")
    yield "asked here"
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    spark.sparkContext.setLocalProperty("spark.job.description", None)


def described(spark: Any) -> dict[int, str]:
    """What Spark's pages say of the jobs that they still know, by their ids; "" if nothing."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    descriptions = {}
    for job in (jobs.apply(number) for number in range(jobs.size())):
        text = job.description()
        descriptions[job.jobId()] = text.get() if text.isDefined() else ""
    return descriptions


def described_since(spark: Any, seen: dict[int, str]) -> list[str]:
    """The descriptions of the jobs with a higher id, in order: Spark forgets the oldest ones."""
    last = max(seen, default=-1)
    return [text for number, text in sorted(described(spark).items()) if number > last]


def test_all_run_at_once_and_answer_in_their_order(spark: Any, group: str) -> None:
    met = threading.Barrier(3)

    def work(number: int) -> int:
        met.wait(TIMEOUT_S)
        return int(spark.range(number).count())

    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(group))
    assert side_by_side(spark, work, [3, 1, 2]) == [3, 1, 2]
    assert len(tracker.getJobIdsForGroup(group)) - before == 3


def test_an_error_is_raised_after_all_have_ended(spark: Any) -> None:
    ended = []

    def work(number: int) -> None:
        if number != 2:
            raise ValueError(f"number {number}")
        spark.range(number).count()
        ended.append(number)

    with pytest.raises(ValueError, match="number 1"):
        side_by_side(spark, work, [2, 1, 3])
    assert ended == [2]


def test_a_cancelled_job_is_not_repeated(spark: Any) -> None:
    tracker = spark.sparkContext.statusTracker()

    def cancel() -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not tracker.getActiveJobsIds() and time.monotonic() < deadline:
            time.sleep(0.05)
        spark.sparkContext.cancelAllJobs()

    while tracker.getActiveJobsIds():  # of tests before this one
        time.sleep(0.05)
    threading.Thread(target=cancel).start()
    before = jobs_so_far(spark)
    with pytest.raises(Py4JJavaError, match="cancelled"):
        aggregate(spark.range(10**15), ["max(id)", "min(id)", "sum(id % 7)"], {None})
    assert jobs_so_far(spark) - before == 1


def test_an_interrupt_does_not_wait_for_the_jobs(spark: Any) -> None:
    begun, released = threading.Barrier(3), threading.Event()
    ended = []

    def work(number: int) -> None:
        begun.wait(TIMEOUT_S)
        released.wait(TIMEOUT_S)
        ended.append(number)

    def interrupt() -> None:
        begun.wait(TIMEOUT_S)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        side_by_side(spark, work, [1, 2])
    assert ended == []
    released.set()


def test_one_job_needs_no_thread(spark: Any) -> None:
    assert side_by_side(spark, lambda _: threading.current_thread(), [1]) == [
        threading.current_thread()
    ]
    assert side_by_side(spark, lambda _: threading.current_thread(), []) == []


@pytest.mark.slow
def test_a_description_holds_inside_of_its_block(spark: Any, group: str) -> None:
    seen = described(spark)
    with jobs_called(spark, "orders: keys"):
        side_by_side(spark, lambda rows: spark.range(rows).count(), [1, 2])
    spark.range(1).count()
    assert described_since(spark, seen) == ["orders: keys", "orders: keys", group]


@pytest.mark.more
def test_the_jobs_of_a_gate_have_descriptions(
    spark: Any, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "MOST_ROWS_FUSED", 0)
    monkeypatch.setattr(passes, "MOST_BYTES_FUSED", 0)
    transport = {"type": "file", "log_file_path": str(tmp_path / "lineage.jsonl"), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    orders = replace(
        delta(tmp_path, "orders", ORDERS, partition_by=["ds"]), date_column="ds", keys=("id",)
    )
    countries = delta(tmp_path, "countries", COUNTRIES)
    suite = """
    suite "S" {
        check "orders" on orders {
            assert average(price) > 0 name "mean"
            assert unique(id, ds) name "key"
            assert unique_count(id) == 3 name "ids"
            assert query("SELECT count(*) FROM orders") == 4 name "rows"
        }
        check "countries" on countries {
            assert unique_count(code) == 2 name "countries"
        }
    }
    """
    seen = described(spark)
    report = run(request(tmp_path, suite, [orders, countries]))
    values = {item.name: (item.status, item.value) for item in report.verdicts}
    assert values["ids"] == (Status.PASSED, 3)
    assert values["rows"] == (Status.PASSED, 4)
    assert values["key"][0] is Status.FAILED
    assert sorted(described_since(spark, seen)) == [
        "countries: distinct values",
        "orders: 2 aggregates",  # an average is a sum and a count
        "orders: distinct values",
        "orders: failing rows",
        "orders: keys",  # by their hashes, and the exact count
        "orders: keys",
        "query: SELECT count(*) FROM orders",
    ]
