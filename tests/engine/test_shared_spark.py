"""A gate in a Spark that others use, as on a cluster whose tasks share one: it ends what it has
started, and nothing else."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dqx_airflow.engine.job import main
from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.session.spark_session import earlier_sparks
from dqx_airflow.results.runs import read_report
from dqx_airflow.values import DatasetRef, GateRequest
from dqx_airflow.values.json_form import EXIT_TIMED_OUT, to_arguments
from tests.engine.lake import ORDERS, delta, request

pytestmark = pytest.mark.spark

ENDLESS = "SELECT max(a.id * b.id % 7) AS id FROM range(9000000) a CROSS JOIN range(9000000) b"
SLOW = "SELECT java_method('java.lang.Thread', 'sleep', 500L) AS slept FROM range(0, 24, 1, 1)"
"""Takes 12 seconds of one core, and no processor time."""


@pytest.fixture
def of_others(spark: Any) -> Iterator[Future[Any]]:
    """A query of another user, in a session of its own, that runs."""
    asked = spark_versions.context_of(spark)
    with ThreadPoolExecutor(1) as thread:
        doing = thread.submit(lambda: spark.newSession().sql(SLOW).collect())
        end = time.monotonic() + 60
        while asked is not None and not asked.statusTracker().getActiveJobsIds():
            assert time.monotonic() < end
            time.sleep(0.05)
        yield doing


def endless(folder: Path, timeout_s: float) -> GateRequest:
    """A gate with two datasets, whose scans run side by side."""
    refs = [DatasetRef(name, query=ENDLESS) for name in ("orders", "items")]
    checks = [f'check "{ref.name}" on {ref.name} {{ assert maximum(id) > 0 }}' for ref in refs]
    return request(folder, f'suite "S" {{ {" ".join(checks)} }}', refs, timeout_s=timeout_s)


def active_jobs(spark: Any) -> list[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


@pytest.mark.more
def test_at_its_deadline_a_gate_cancels_its_jobs_and_no_others(
    spark: Any, tmp_path: Path, of_others: Future[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    before = active_jobs(spark)
    gate = endless(tmp_path, 4.0)
    assert main(to_arguments(gate), lambda _: spark) == EXIT_TIMED_OUT
    assert "error: the gate took longer than 4 seconds" in capsys.readouterr().err
    assert set(active_jobs(spark)) <= set(before), "also those of the threads side by side"
    assert len(of_others.result()) == 24
    assert spark.range(3).count() == 3
    assert read_report(gate.results_root, gate.run_key, gate.attempt.id) is None


@pytest.mark.slow
def test_a_signal_ends_the_jobs_of_a_gate_and_no_others(
    spark: Any, tmp_path: Path, of_others: Future[Any]
) -> None:
    before, handler = active_jobs(spark), signal.getsignal(signal.SIGTERM)
    gate = endless(tmp_path, 600.0)

    def terminate() -> None:
        while set(active_jobs(spark)) <= set(before):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=terminate, daemon=True).start()
    assert main(to_arguments(gate), lambda _: spark) == 143
    assert signal.getsignal(signal.SIGTERM) == handler
    assert set(active_jobs(spark)) <= set(before)
    assert len(of_others.result()) == 24


@pytest.mark.parametrize("rule", ["assert num_rows() > 0", "assert num_rows( > 0"])
def test_what_a_process_does_after_a_gate_is_not_watched(
    spark: Any, tmp_path: Path, rule: str
) -> None:
    """However the gate has ended: its deadline comes later, and ends nothing."""
    gate = request(tmp_path, rule, [delta(tmp_path, "orders", ORDERS)], timeout_s=30.0)
    known = set(threading.enumerate())
    assert main(to_arguments(gate), lambda _: spark) in (0, 2)
    timers = [one for one in set(threading.enumerate()) - known if isinstance(one, threading.Timer)]
    for timer in timers:
        timer.join(10)
    assert [timer for timer in timers if timer.is_alive()] == []
    assert [tag for tag in spark.sparkContext.getJobTags() if tag.startswith("dqx")] == []
    assert spark.range(3).count() == 3


def test_a_spark_that_was_there_before_is_not_a_gates_own(spark: Any) -> None:
    assert spark.sparkContext in earlier_sparks()


def test_a_command_in_a_process_with_a_spark_leaves_it_running(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dqx_airflow.cli.spark import Spark
    from dqx_airflow.datasets.spark_address import connection_of

    opened: list[Callable[..., Any]] = []
    monkeypatch.setattr(
        "dqx_airflow.cli.spark.open_session", lambda *_: opened.append(spark) or spark
    )
    running = Spark(connection_of("local"), {})
    gate = request(tmp_path, "assert num_rows() > 0", [delta(tmp_path, "orders", ORDERS)])
    assert running.run([gate])
    running.close()
    assert opened
    assert spark.range(3).count() == 3
    assert [tag for tag in spark.sparkContext.getJobTags() if tag.startswith("dqx")] == []
