"""Concurrent work on one Spark session: threads, job descriptions and progress.

Before and after a job, the driver works on one core: it analyses, optimises and compiles plans and
lists files. Run beside another job, that work costs no extra time, and cores that one job leaves
idle run the tasks of the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from pyspark.sql import SparkSession

from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.session.spark_errors import Py4JError


def do_meanwhile(work: Callable[[], object]) -> None:
    """Runs an optional preparation on another thread."""

    def do() -> None:
        with suppress(Exception):  # the code that needs it raises the same error
            work()

    threading.Thread(target=do, name="dqx meanwhile", daemon=True).start()


T = TypeVar("T")
R = TypeVar("R")

_MOST = 4
"""The maximum number of concurrent actions. By default Spark gives its cores to the first one, and
what is left to the next."""
_DESCRIPTION = "spark.job.description"


def side_by_side(spark: SparkSession, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results of `work` for each item, in the order of the items.

    Raises the exception of the first item that failed, after all items have ended. An interrupt
    does not wait for the items: they end with Spark.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    # Thread-local properties, such as the scheduler pool, apply to these jobs as well. PySpark
    # copies them once for each function that inherits them; threads that shared one copy would
    # overwrite each other's.
    inherited = [spark_versions.inheriting(spark, work) for _ in items]
    threads = ThreadPoolExecutor(min(len(items), _MOST), "dqx side by side")
    try:
        doing = [threads.submit(does, item) for does, item in zip(inherited, items, strict=True)]
        wait(doing)
        return [done.result() for done in doing]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def jobs_called(spark: SparkSession, description: str) -> Iterator[None]:
    """Sets the description of the block's jobs in the Spark UI, if the session can: over Spark
    Connect they show the server's description."""
    context = spark_versions.context_of(spark)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)


Listener: TypeAlias = Callable[[int, int], None]
"""Called repeatedly with the number of completed tasks and the total, over all active stages."""

_INTERVAL_S = 0.2


@contextmanager
def tasks_reported(spark: SparkSession, listener: Listener) -> Iterator[None]:
    """Reports the progress of the Spark tasks inside the block to the listener."""
    context = spark_versions.context_of(spark)
    if context is None:  # a server reports the progress
        with _reported_by_server(spark, listener):
            yield
        return
    tracker = context.statusTracker()
    ended = threading.Event()
    thread = threading.Thread(target=_poll, args=(tracker, listener, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _reported_by_server(spark: SparkSession, listener: Listener) -> Iterator[None]:
    def handler(stages: Any, **_: Any) -> None:
        stages_left = list(stages or ())
        if stages_left:
            listener(
                sum(stage.num_completed_tasks for stage in stages_left),
                sum(stage.num_tasks for stage in stages_left),
            )

    with spark_versions.progress_handled(spark, handler):
        yield


def _poll(tracker: Any, listener: Listener, ended: threading.Event) -> None:
    while not ended.wait(_INTERVAL_S):
        try:
            active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except (Py4JError, OSError):  # Spark is gone: the waiting call raises that
            return
        stages = [stage for stage in active if stage is not None]
        if stages:
            done = sum(stage.numCompletedTasks for stage in stages)
            listener(done, sum(stage.numTasks for stage in stages))
