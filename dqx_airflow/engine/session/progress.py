"""What Spark tells of the tasks that it runs, while it runs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from dqx_airflow.engine.session.py4j_errors import Py4JError

Listener: TypeAlias = Callable[[int, int], None]
"""Called now and then with the tasks that are done, and with all, of the stages that run."""

_INTERVAL_S = 0.2


@contextmanager
def tasks_told(spark: SparkSession, listener: Listener) -> Iterator[None]:
    """Tells the listener of the tasks that Spark runs inside of the block."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except AttributeError:  # Spark Connect has no such handle, but a server that tells
        with _told_by_server(spark, listener):
            yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_poll, args=(tracker, listener, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _told_by_server(spark: SparkSession, listener: Listener) -> Iterator[None]:
    def handler(stages: Any, **_: Any) -> None:
        stages_left = list(stages or ())
        if stages_left:
            listener(
                sum(stage.num_completed_tasks for stage in stages_left),
                sum(stage.num_tasks for stage in stages_left),
            )

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


def _poll(tracker: Any, listener: Listener, ended: threading.Event) -> None:
    while not ended.wait(_INTERVAL_S):
        try:
            active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except (Py4JError, OSError):  # Spark is gone: whoever waits for it will hear of it
            return
        stages = [stage for stage in active if stage is not None]
        if stages:
            done = sum(stage.numCompletedTasks for stage in stages)
            listener(done, sum(stage.numTasks for stage in stages))
