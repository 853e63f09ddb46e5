"""Progress of the tasks that Spark runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from dqx_airflow.engine.session.py4j_errors import Py4JError

Listener: TypeAlias = Callable[[int, int], None]
"""Called repeatedly with the number of completed tasks and the total, over all active stages."""

_INTERVAL_S = 0.2


@contextmanager
def tasks_reported(spark: SparkSession, listener: Listener) -> Iterator[None]:
    """Reports the progress of the Spark tasks inside the block to the listener."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except AttributeError:  # Spark Connect has no such handle, but a server that reports progress
        with _reported_by_server(spark, listener):
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
def _reported_by_server(spark: SparkSession, listener: Listener) -> Iterator[None]:
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
        except (Py4JError, OSError):  # Spark is gone: the waiting call raises that
            return
        stages = [stage for stage in active if stage is not None]
        if stages:
            done = sum(stage.numCompletedTasks for stage in stages)
            listener(done, sum(stage.numTasks for stage in stages))
