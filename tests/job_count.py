"""The number of Spark jobs that a session has run."""

from __future__ import annotations

from typing import Any


def jobs_so_far(spark: Any) -> int:
    """The number of jobs that were ever started outside of a job group.

    Spark forgets old jobs, so their ids are looked at: they are given in order. The JVM finds the
    last one, since each of a thousand ids would be a call to it. 0 over Spark Connect, which does
    not count.
    """
    if "connect" in type(spark).__module__:
        return 0
    context = spark.sparkContext
    ids = context._jsc.statusTracker().getJobIdsForGroup(None)
    return context._jvm.java.util.Arrays.stream(ids).max().orElse(-1) + 1
