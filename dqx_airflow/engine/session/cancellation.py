"""Ends a job early: at its deadline, or when no one waits for its report any more."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from pyspark.sql import SparkSession

from dqx_airflow.errors import SparkError
from dqx_airflow.request_arguments import EXIT_TIMED_OUT

_GRACE_S = 10.0


class JobEnding:
    """Ends a job from another thread: stops its Spark, and the process if that hangs.

    `code` is the exit code of a job that was ended, or None while it runs.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self._spark: SparkSession | None = None

    def opening(self, open_session: Callable[[str], SparkSession]) -> Callable[[str], SparkSession]:
        """`open_session`, wrapped so that its session is stopped when the job is ended."""

        def session(name: str) -> SparkSession:
            self._spark = spark = open_session(name)
            if self.code is not None:
                raise SparkError("the job was ended while Spark was starting")
            return spark

        return session

    def end_after(self, timeout_s: float | None) -> None:
        """Ends the job at its deadline, because a Python driver outlives a task that timed out."""
        if timeout_s is None:
            return
        reason = f"the gate took longer than {timeout_s:g} seconds"
        timer = threading.Timer(timeout_s, self.end, [EXIT_TIMED_OUT, reason])
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        """Releases Spark: a server would keep the session for an hour."""
        if self._spark is not None:
            self._spark.stop()

    def end(self, code: int, reason: str) -> None:
        """Cancels the job's work in Spark, so that it fails, then exits if the job still hangs.

        Only the first reason counts.
        """
        if self.code is not None:
            return
        self.code = code
        last = threading.Timer(_GRACE_S, os._exit, [code])
        last.daemon = True
        last.start()
        with suppress(OSError):  # the reader of stdout may be gone
            print(f"error: {reason}", file=sys.stderr, flush=True)
        if self._spark is not None:
            for stop in (self._spark.interruptAll, self._spark.stop):
                with suppress(Exception):  # Spark itself may be the problem
                    stop()
