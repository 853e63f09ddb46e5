"""The job of a batch: judges the requests of many gates in one Spark, each by itself.

Each request has its own deadline, states, samples, promotion, lineage events and report, as in a
job of its own. Whatever one of them raises is the end of that request only, unless Spark was lost.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from pyspark.sql import SparkSession

from dqx_airflow.engine.session.job_ending import JobEnding
from dqx_airflow.engine.session.spark_session import without_log
from dqx_airflow.errors import StoreError
from dqx_airflow.results.batch_reports import BatchReports
from dqx_airflow.results.tables import locate
from dqx_airflow.values import BatchRequest, GateReport, GateRequest, SourceFile
from dqx_airflow.values.json_form import EXIT_INFRASTRUCTURE, EXIT_REPORTED, storage_options_of

Deliver: TypeAlias = "Callable[[Sequence[tuple[GateReport, Iterable[SourceFile]]]], None]"
"""Writes reports, each with the sources whose digests it contains."""
Judge: TypeAlias = "Callable[[GateRequest, Callable[[str], SparkSession], JobEnding, Deliver], int]"
"""Judges a request in a session, until the given ending, and returns its exit code."""

_GRACE_S = 30.0
"""The seconds after its deadline in which a gate should end; then the next one begins."""


def run_batch(
    batch: BatchRequest,
    open_session: Callable[[str], SparkSession],
    ending: JobEnding,
    judge: Judge,
) -> int:
    """Judges the requests, leaves a report for each, and returns the exit code of the job.

    The code is 0 if each request was judged as far as it could be, with a report or without.
    """
    ending.end_after(batch.timeout_s)
    try:
        location = locate(batch.results_root, storage_options_of(os.environ))
        spark = open_session(batch.run_key.gate)
        datasets = [ref for request in batch.requests for ref in request.datasets]
        reports = BatchReports(location, batch.batch, batch.run)
        work = _Batch(batch, reports, without_log(spark, datasets), judge)
        work.judge_all(ending)
        ending.close()
    except Exception as error:
        if ending.code is not None:
            return ending.code
        ending.reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        print(f"error: {ending.reason}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    finally:
        ending.finish()
    if ending.code is not None:
        return ending.code
    if work.loss:
        ending.reason = work.loss
        print(f"error: {work.loss}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    return EXIT_REPORTED


class _Batch:
    """The judging of the requests of a batch, which ends early if Spark is lost."""

    def __init__(
        self, batch: BatchRequest, reports: BatchReports, spark: SparkSession, judge: Judge
    ) -> None:
        self.loss = ""
        self._judge_request = judge
        self._batch = batch
        self._reports = reports
        self._spark = spark
        self._waiting = iter(batch.requests)
        self._next = threading.Lock()

    def judge_all(self, ending: JobEnding) -> None:
        """Judges the requests, as many at once as the batch says, until the job is ended."""
        lanes = [
            threading.Thread(target=self._judge_in_turn, args=(ending,), daemon=True)
            for _ in range(min(self._batch.at_once, len(self._batch.requests)))
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()

    def _judge_in_turn(self, ending: JobEnding) -> None:
        for request in self._requests(ending):
            # A thread for each: one that does not end at its deadline holds up no other gate.
            judging = threading.Thread(target=self._judge, args=(request, ending), daemon=True)
            judging.start()
            limit_s = request.timeout_s
            judging.join(None if limit_s is None else limit_s + _GRACE_S)

    def _requests(self, ending: JobEnding) -> Iterator[GateRequest]:
        """The requests that this lane judges: whatever no lane has begun."""
        while ending.code is None and not self.loss:
            with self._next:
                request = next(self._waiting, None)
            if request is None:
                return
            yield request

    def _judge(self, request: GateRequest, of_batch: JobEnding) -> None:
        key = request.run_key
        try:
            if not self._reports.begin(request):
                print(f"{key.gate}: left to its own task", file=sys.stderr, flush=True)
                return
        except StoreError as error:
            print(f"error: {key.gate}: {error}", file=sys.stderr, flush=True)
            return
        code = EXIT_INFRASTRUCTURE
        try:
            ending = of_batch.of_one_gate()
            session = ending.opening(lambda _: self._spark)
            code = self._judge_request(request, session, ending, partial(self._leave, request))
        except Exception as error:
            print(
                f"error: {key.gate}: {type(error).__name__}: {error}", file=sys.stderr, flush=True
            )
        if code != EXIT_REPORTED:
            print(f"{key.gate}: no report, exit code {code}", file=sys.stderr, flush=True)
            if not _is_alive(self._spark):
                self.loss = f"Spark was lost while it checked {key.gate}"

    def _leave(
        self, request: GateRequest, reports: Sequence[tuple[GateReport, Iterable[SourceFile]]]
    ) -> None:
        self._reports.leave(request, [report for report, _ in reports])


def _is_alive(spark: SparkSession) -> bool:
    """True if Spark still answers."""
    try:
        return bool(spark.range(1).count() == 1)
    except Exception:  # of Spark, of its gateway, of the network
        return False
