"""Lets Spark do several things at once, each asked of it from a thread of its own.

Before a job can start, and after it ended, Spark works on one processor: it analyses, optimises and
compiles, and lists files. Beside another job that costs no time of its own, and the cores that one
job leaves idle run the tasks of the next.
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
"""So many at once. By default Spark gives its cores to the first of them, and to the next what that
leaves."""
_DESCRIPTION = "spark.job.description"


def side_by_side(spark: SparkSession, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What the work makes of each item, in their order.

    Raises what it raised of the first item that failed, when all have ended. Who is interrupted
    waits for none of them: they end with Spark.
    """
    if len(items) < 2:
        return [work(item) for item in items]
    # What is set for the jobs of this thread, such as their pool of the scheduler, holds for these.
    # PySpark copies it once for each that inherits: of one for all, each would change the others.
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
    """Describes the jobs of the block on the pages of Spark, if the session can: with Spark Connect
    they show what the server says of them."""
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
