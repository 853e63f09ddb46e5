"""Runs several Spark actions at once, each from a thread of its own.

Before and after a job, the driver works on one core: it analyses, optimises and compiles plans and
lists files. Run beside another job, that work costs no extra time, and cores that one job leaves
idle run the tasks of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

_MOST = 4
"""The maximum number of concurrent actions. By default Spark gives its cores to the first one, and
what is left to the next."""
_DESCRIPTION = "spark.job.description"


def side_by_side(spark: SparkSession, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results of `work` for each item, in the order of the items.

    Raises the exception of the first item that failed, after all have ended. An interrupt waits for
    none of them: they end with Spark.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    # Thread-local properties, such as the scheduler pool, apply to these jobs as well. PySpark
    # copies them once for each function that inherits them; threads that shared one copy would
    # overwrite each other's.
    inheriting = [inheritable_thread_target(spark)(work) for _ in items]
    threads = ThreadPoolExecutor(min(len(items), _MOST), "dqx side by side")
    try:
        doing = [threads.submit(does, item) for does, item in zip(inheriting, items, strict=True)]
        wait(doing)
        return [done.result() for done in doing]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def jobs_called(spark: SparkSession, description: str) -> Iterator[None]:
    """Sets the description of the block's jobs in the Spark UI, if the session can: over Spark
    Connect they show the server's description."""
    try:
        context = spark.sparkContext
    except AttributeError:
        yield
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)
