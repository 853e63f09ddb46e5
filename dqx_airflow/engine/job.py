"""The job of a gate: reads the request, validates the data, writes the report, ends with a code.

The exit code depends on whether there is a report, not on its content: some cluster managers rerun
a job that exits with a code other than 0. The verdict is read from the results store.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from dqx_airflow import values
from dqx_airflow.datasets.write_locations import check_locations, check_promotion, check_quarantine
from dqx_airflow.diagnostics.verdicts import draw_report
from dqx_airflow.engine.batch_job import Deliver, run_batch
from dqx_airflow.engine.job_parts import (
    JobPart,
    parts_of,
    require_assertions,
    with_labels,
    with_watched_columns,
)
from dqx_airflow.engine.proof.engine_key import known_engine
from dqx_airflow.engine.run_events import message_of, run_events
from dqx_airflow.engine.scan.states import StateCache, StateStore
from dqx_airflow.engine.session.concurrency import do_meanwhile
from dqx_airflow.engine.session.job_ending import JobEnding, require_time, signs_of_life
from dqx_airflow.engine.session.spark_session import create_session, quiet_pyspark, without_log
from dqx_airflow.engine.validation import Run, validate
from dqx_airflow.errors import DeadlineError, DqxError, SourceError, first_line
from dqx_airflow.results.decisions import decisions_on
from dqx_airflow.results.proofs import read_proofs
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.receipts import ReceiptWriter, signing_key
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, GateRequest
from dqx_airflow.values.json_form import (
    EXIT_INFRASTRUCTURE,
    EXIT_REPORTED,
    EXIT_SOURCE,
    EXIT_TIMED_OUT,
    from_arguments,
    storage_options_of,
)
from dqx_airflow.values.redact import redact_urls
from dqx_airflow.values.request import require_whole_run

if TYPE_CHECKING:
    from dqx_airflow.results.stored_requests import TakenRequest


_LONGEST_REASON = 300
_log = logging.getLogger("dqx.gate")


def main(
    arguments: Sequence[str],
    open_session: Callable[[str], SparkSession] = create_session,
    taken: TakenRequest | None = None,
) -> int:
    """Runs the gate that the arguments describe, prints its verdicts, returns the exit code.

    :param taken: the stored request with these arguments.
    """
    ending = JobEnding()
    opening = ending.opening(open_session)

    def run(request: GateRequest) -> tuple[GateReport, ...]:
        return run_gates(request.parts, lambda name: without_log(opening(name), request.datasets))

    with signs_of_life(taken, ending) as note:
        code = run_job(arguments, run, ending, opening)
        note(code)
    return code


def run_job(
    arguments: Sequence[str],
    run: Callable[[GateRequest], tuple[GateReport, ...]],
    ending: JobEnding,
    open_session: Callable[[str], SparkSession],
) -> int:
    """Runs the gate like `main`, with a given function for the gate and a given `JobEnding`.

    :param open_session: returns the session that the gates of a batch share.
    """
    # Spark and its gateway are verbose; our messages, and events for the console, are worth a line.
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
    quiet_pyspark()
    for name in ("dqx", "dqx_airflow", "openlineage.client.transport.console"):
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        request = from_arguments(arguments)
    except DqxError as error:
        ending.finish()
        ending.reason = _reason(error, None)
        return _report_failure(error, None)
    if isinstance(request, GateRequest):
        return run_request(request, run, ending)
    return run_batch(request, open_session, ending, _judge_in_batch)


def _judge_in_batch(
    request: GateRequest,
    session: Callable[[str], SparkSession],
    ending: JobEnding,
    deliver: Deliver,
) -> int:
    return run_request(request, lambda one: run_gates(one.parts, session, deliver), ending)


def run_request(
    request: GateRequest, run: Callable[[GateRequest], tuple[GateReport, ...]], ending: JobEnding
) -> int:
    """Runs a gate until its deadline, prints its verdicts, and returns the exit code."""
    try:
        ending.end_after(request.timeout_s)
        reports = run(request)
    except Exception as error:
        # Any error of a job that was ended is a consequence, and the reason has been reported.
        if ending.code is not None:
            return ending.code
        ending.reason = _reason(error, request)
        return _report_failure(error, request)
    finally:
        ending.finish()
    for report in reports:
        print(draw_report(report, root=request.results_root), flush=True)
    return EXIT_REPORTED


def run_gates(
    requests: Sequence[GateRequest],
    session: Callable[[str], SparkSession],
    deliver: Deliver | None = None,
) -> tuple[GateReport, ...]:
    """Checks, scans once, judges each request, and writes the reports, between lineage events.

    Either all reports are written at the end, or none. A dataset is promoted if no request for the
    date is blocked or broken; for `promote_blocked`, see `GateRequest`.

    :param requests: the requests of one gate, or of one call. They share the results store, and
        datasets with the same name.
    :param session: returns the Spark session for an application name. Called after the suites and
        the results store were checked.
    :param deliver: writes the reports; by default into the results store.
    :raises SourceError: a suite has errors.
    :raises RequestError: a request contradicts itself, or selects something that does not exist, or
        the key of receipts cannot be used.
    :raises StoreError: the results store, or a quarantine, cannot be written.
    :raises PromotionError: the gate passed, and a dataset cannot be promoted as it is now.
    :raises DeadlineError: it took longer than the request allows.
    """
    dates = [request.run_key.date for request in requests]
    for request in requests:
        check_locations(request)
        check_quarantine(request)
        check_promotion(request, dates)
        require_whole_run(
            request.selection, request.promote_to, promote_partial=request.promote_partial
        )
    first = requests[0]
    store = ResultsStore(first.results_root, storage_options_of(os.environ))
    store.check_writable()
    results = StoredResults(first.results_root, storage_options_of(os.environ))
    receipts = ReceiptWriter(results, signing_key(os.environ))
    planned = parts_of(requests)
    require_assertions(planned)
    parts: Sequence[JobPart] = [
        replace(part, decisions=decisions_on(results, part.request.run_key, part.request.slice))
        for part in planned
    ]
    started = _now()
    with run_events({part.run_id: part.request for part in parts}, started, store) as end:
        spark = session(first.run_key.gate)
        do_meanwhile(lambda: values.to_json(first.attempt))  # its import takes a while
        parts = with_watched_columns(parts, requests, spark)
        parts = [with_labels(part, results) for part in parts]
        states = StateStore(store.location)
        cache = None if first.recompute else StateCache(spark, states, parts[0].run_id, started)
        known = known_engine(spark, read_proofs(results))
        if known.outlived is not None:
            _log.warning("%s", known.mark)
        reports = validate(parts, Run(spark, started, receipts, known, cache))
        require_time(first, started)
        sources = [part.request.sources for part in parts]
        write = deliver or store.write_all
        write(list(zip(reports, sources, strict=True)))
        for report in reports:
            end(report)
    return reports


def try_gates(
    requests: Sequence[GateRequest], session: Callable[[str], SparkSession]
) -> tuple[GateReport, ...]:
    """Checks, scans and judges like `run_gates`, but leaves no trace: no report, states or events.

    :param session: as for `run_gates`.
    :raises SourceError: a suite has errors.
    :raises RequestError: a request selects something that does not exist.
    """
    parts = parts_of(requests)
    spark = session(requests[0].run_key.gate)
    receipts = ReceiptWriter(StoredResults(requests[0].results_root), None)
    run = Run(spark, _now(), receipts, known_engine(spark))
    return validate(with_watched_columns(parts, requests, spark), run)


def _reason(error: Exception, request: GateRequest | None) -> str:
    """The reason for the missing report, in one line, for the gate operator that waits for this
    job."""
    if isinstance(error, DqxError):
        return redact_urls(first_line(error))[:_LONGEST_REASON]
    quoted = message_of(error, [request] if request is not None else [])
    return redact_urls(quoted.splitlines()[0])[:_LONGEST_REASON]


def _report_failure(error: Exception, request: GateRequest | None) -> int:
    """Reports why the job ended, and returns its exit code."""
    match error:
        case SourceError():
            print(redact_urls(str(error)), file=sys.stderr)
            return EXIT_SOURCE
        case DeadlineError():
            print(f"error: {error}", file=sys.stderr)
            return EXIT_TIMED_OUT
        case DqxError():
            print(f"error: {redact_urls(str(error))}", file=sys.stderr)
            return EXIT_INFRASTRUCTURE
    if request is not None and any(ref.masked for ref in request.datasets):
        print(f"error: {message_of(error, [request])}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    raise error


def _now() -> datetime:
    return datetime.now(timezone.utc)
