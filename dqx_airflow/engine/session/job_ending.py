"""Ends a job at its deadline, with its gate or by a signal, together with its work in Spark.

A job ends what it started, and nothing else. A Spark that this process has started is stopped. An
earlier Spark, as on a Databricks cluster whose tasks share one, keeps running: only the jobs with
the tag of this gate are cancelled.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from dqx_airflow.engine.session import spark_versions
from dqx_airflow.engine.session.spark_session import earlier_sparks
from dqx_airflow.errors import DeadlineError, SparkError, StoreError
from dqx_airflow.results.stored_requests import SIGN_EVERY_S, TakenRequest
from dqx_airflow.values import GateRequest
from dqx_airflow.values.json_form import EXIT_INFRASTRUCTURE, EXIT_TIMED_OUT

_GRACE_S = 10.0
_AGAIN_S = 0.2
_EXIT_CRASHED = 1
_EXIT_TERMINATED = 128 + signal.SIGTERM


class SparkWork:
    """The work of a gate in a Spark session, from this thread and threads that inherit from it.

    `is_own` is true for a Spark that was started for this gate.

    :param earlier: the Sparks that the process used before the job, from `earlier_sparks`.
    """

    def __init__(self, spark: SparkSession, earlier: Sequence[Any]) -> None:
        used = spark_versions.context_of(spark) or spark
        self.is_own = not any(used is one for one in earlier)
        self._spark = spark
        self._tag = f"dqx-{uuid.uuid4().hex}"
        if not self.is_own:
            spark_versions.tag_jobs(spark, self._tag)

    def cancel(self) -> None:
        """Cancels the running jobs; in a Spark that others use, only the jobs with the tag."""
        if self.is_own:
            spark_versions.interrupt(self._spark)
        else:
            spark_versions.interrupt_tag(self._spark, self._tag)

    def close(self) -> None:
        """Stops an own Spark. In another Spark, cancels the remaining jobs with the tag, and
        removes the tag from jobs that this thread starts later."""
        if self.is_own:
            self._spark.stop()
            return
        with suppress(Exception):  # Spark itself may be the problem
            self.cancel()
            spark_versions.untag_jobs(self._spark, self._tag)


def require_time(request: GateRequest, started: datetime) -> None:
    """Rejects the result of a driver that was suspended for too long.

    :raises DeadlineError: the gate took longer than its timeout.
    """
    if request.timeout_s is None:
        return
    if (datetime.now(timezone.utc) - started).total_seconds() > request.timeout_s:
        raise DeadlineError(f"the gate took longer than {request.timeout_s:g} seconds")


class JobEnding:
    """Ends a job from another thread: cancels its work in Spark, and the process if that hangs.

    `code` is the exit code of a job that was ended, or None while it runs; `reason` is the reason
    why it has no report.

    :param is_one_of_many: for one gate of a batch, see `of_one_gate`.
    """

    def __init__(self, *, is_one_of_many: bool = False) -> None:
        self.code: int | None = None
        self.reason = ""
        self._is_one_of_many = is_one_of_many
        self._of_gates: list[JobEnding] = []
        self._earlier = earlier_sparks()
        self._work: SparkWork | None = None
        self._timers: list[threading.Timer] = []
        self._is_over = threading.Event()
        self._earlier_handler: Any = None

    def of_one_gate(self) -> JobEnding:
        """The ending of one gate of a batch, which ends with the job. Neither the Spark nor the
        process ends with the gate."""
        one = JobEnding(is_one_of_many=True)
        self._of_gates.append(one)
        # The job may have ended on another thread, without this gate.
        if self.code is not None:
            one.end(self.code, self.reason)
        return one

    def opening(self, open_session: Callable[[str], SparkSession]) -> Callable[[str], SparkSession]:
        """`open_session`, wrapped so that the work of its session ends with the job."""

        def session(name: str) -> SparkSession:
            spark = open_session(name)
            if self._is_one_of_many:
                self._earlier = [spark_versions.context_of(spark) or spark]
            self._work = work = SparkWork(spark, self._earlier)
            if self.code is not None:
                raise SparkError("the job was ended while Spark was starting")
            if not work.is_own:
                self._end_at_signal()
            return spark

        return session

    def end_after(self, timeout_s: float | None) -> None:
        """Ends the job at its deadline, because a Python driver outlives a task that timed out."""
        if timeout_s is None:
            return
        reason = f"the gate took longer than {timeout_s:g} seconds"
        self._start_timer(timeout_s, self.end, EXIT_TIMED_OUT, reason)

    def close(self) -> None:
        """Closes the work in Spark: a server would keep the session for an hour."""
        if self._work is not None:
            self._work.close()

    def end(self, code: int, reason: str) -> None:
        """Cancels the job's work in Spark, so that it fails, then exits if the job still hangs.

        Only the first reason counts.
        """
        if self.code is not None or self._is_over.is_set():
            return
        self.reason = reason
        self.code = code
        if not self._is_one_of_many:
            self._start_timer(_GRACE_S, os._exit, code)
        with suppress(OSError):  # the reader of stdout may be gone
            print(f"error: {reason}", file=sys.stderr, flush=True)
        # Not on this thread: a signal may have interrupted a call to Spark on it.
        threading.Thread(target=self._cancel, daemon=True).start()
        for one in [*self._of_gates]:
            one.end(code, reason)

    def finish(self) -> None:
        """Stops watching a job that has ended: later work of the process is not the work of the
        job. With its own Spark, a process that was about to exit still exits."""
        self._is_over.set()
        is_own = self._work is None or self._work.is_own
        if self.code is None or not is_own:
            for timer in self._timers:
                timer.cancel()
        if self._earlier_handler is not None:
            signal.signal(signal.SIGTERM, self._earlier_handler)
            self._earlier_handler = None
        if self._work is not None and not self._work.is_own:
            self._work.close()

    def _start_timer(self, after_s: float, call: Callable[..., object], *given: object) -> None:
        timer = threading.Timer(after_s, call, given)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def _end_at_signal(self) -> None:
        """Installs a handler: a signal ends the job's work in a Spark that continues without this
        process."""
        if threading.current_thread() is not threading.main_thread():
            return

        def terminate(*_: object) -> None:
            self.end(_EXIT_TERMINATED, "the job was terminated")

        self._earlier_handler = signal.signal(signal.SIGTERM, terminate) or signal.SIG_DFL

    def _cancel(self) -> None:
        work = self._work
        if work is None:
            return
        if work.is_own:
            for stop in (work.cancel, work.close):
                with suppress(Exception):  # Spark itself may be the problem
                    stop()
            return
        # The Spark goes on, and with it the job, until one of its actions was cancelled.
        while not self._is_over.wait(_AGAIN_S):
            with suppress(Exception):
                work.cancel()


@contextmanager
def signs_of_life(
    taken: TakenRequest | None, ending: JobEnding
) -> Iterator[Callable[[int], object]]:
    """Writes signs of life for the gate of a stored request while the block runs, and ends the job
    if the gate has ended.

    The block calls the given function with the exit code of the job.
    """
    codes: list[int] = []
    if taken is None:
        yield codes.append
        return
    is_over = threading.Event()

    def live() -> None:
        while not is_over.wait(SIGN_EVERY_S):
            with suppress(StoreError):  # it may answer again
                if taken.is_dropped():
                    ending.end(EXIT_INFRASTRUCTURE, "the gate of this job has ended")
                    return
                taken.sign()

    living = threading.Thread(target=live, name="dqx signs of life", daemon=True)
    living.start()
    try:
        yield codes.append
    finally:
        is_over.set()
        living.join(_GRACE_S)
        code = codes[-1] if codes else _EXIT_CRASHED
        taken.end(code, ending.reason)
