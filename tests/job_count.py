"""The number of Spark jobs that a session has run."""

from __future__ import annotations

from typing import Any


def jobs_so_far(spark: Any) -> int:
    """The number of jobs that were ever started outside of a job group.

    Spark forgets old jobs, so their ids are looked at: they are given in order. 0 over Spark
    Connect, which does not count.
    """
    if "connect" in type(spark).__module__:
        return 0
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(None), default=-1) + 1
