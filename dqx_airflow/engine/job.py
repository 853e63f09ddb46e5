"""The gate job: a request in, a report in the results store out. Entered from `spark_jobs/`.

The exit code says whether there is a report, not what it says: some cluster managers run a job
that exits with anything but 0 a second time. The verdict is read from the results store.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime, timezone
from pathlib import Path

from pyspark.sql import SparkSession

from dqx_airflow.arguments import from_arguments
from dqx_airflow.diagnostics.text import draw
from dqx_airflow.diagnostics.verdicts import draw_verdict, headline
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.imports import inlined
from dqx_airflow.engine.scan import Scanned, scan
from dqx_airflow.engine.session import create_session
from dqx_airflow.engine.sources import OpenDataset, open_dataset
from dqx_airflow.errors import DatasetError, DqxError, SourceError
from dqx_airflow.lineage.emitter import LineageEmitter
from dqx_airflow.lineage.events import crash_event, start_event, terminal_event
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.model import MetricRequest, Plan, row_count
from dqx_airflow.plan.resolve import check_datasets, resolve
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import (
    DatasetRef,
    DatasetSnapshot,
    GateReport,
    GateRequest,
    MetricResult,
    Status,
)

EXIT_REPORTED, EXIT_SOURCE, EXIT_INFRASTRUCTURE = 0, 2, 4

_log = logging.getLogger("dqx.gate")


def main(arguments: Sequence[str]) -> int:
    """Runs the gate that the arguments ask for, prints its verdicts last, returns the exit code."""
    # Spark and its gateway talk a lot; ours, and events that go to the console, are worth a line.
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
    for name in ("dqx", "dqx_airflow", "openlineage.client.transport.console"):
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        request = from_arguments(arguments)
        _end_after(request.timeout_s)
        report = run_gate(request, create_session)
    except SourceError as error:
        print(error, file=sys.stderr)
        return EXIT_SOURCE
    except DqxError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    print(describe(report), flush=True)
    return EXIT_REPORTED


def run_gate(request: GateRequest, session: Callable[[str], SparkSession]) -> GateReport:
    """Checks, scans, judges, and writes the report; lineage events frame it.

    :param session: gives the Spark session for an application name. Called when the suite and
        the results store are known to be sound.
    :raises SourceError: the suite has errors.
    :raises StoreError: the results store cannot be written.
    """
    store = ResultsStore(request.results_root)
    store.check_writable()
    plan = plan_gate(request)
    run_id, started = str(uuid.uuid4()), _now()
    with LineageEmitter(_spool(store)) as lineage:
        if lineage.emit(start_event(request, run_id, started, lineage.namespace)):
            # The server is there again: it also gets what earlier runs could not send.
            lineage.resend()
        try:
            report = _validate(request, plan, session(request.run_key.gate), run_id, started)
            store.write(report)
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
            lineage.emit(crash_event(request, run_id, _now(), message, lineage.namespace))
            raise
        lineage.emit(terminal_event(request, report, lineage.namespace))
    return report


def plan_gate(request: GateRequest) -> Plan:
    """The plan of a request.

    :raises SourceError: the suite has errors, alone or with these datasets.
    """
    checked = check_source(request.suite, inlined(request.imports), needs_suite=True)
    errors = checked.errors
    if checked.suite is not None and not errors:
        errors = check_datasets(checked.suite, request.datasets)
    if errors or checked.suite is None:
        raise SourceError(draw(errors, checked.sources), diagnostics=errors)
    return resolve(
        checked.suite,
        request.suite,
        request.datasets,
        request.run_key.date,
        allow_empty=request.allow_empty,
    )


def describe(report: GateReport) -> str:
    """The report as a person reads it: what failed in full, the headline last."""
    parts = [
        draw_verdict(verdict, report)
        for status in (Status.ERROR, Status.FAILED)
        for verdict in report.with_status(status)
    ]
    return "\n\n".join([*parts, headline(report)])


def _spool(store: ResultsStore) -> Path | None:
    """Where events wait that could not be sent: beside the results, where these are files.

    Elsewhere they go whole into the log of the job.
    """
    location = store.location
    return Path(location.root) / "lineage_spool" if location.is_local else None


def _validate(
    request: GateRequest, plan: Plan, spark: SparkSession, run_id: str, started: datetime
) -> GateReport:
    opened, unreadable = _open_all(spark, request.datasets, plan)
    found = Scanned()
    for ref in request.datasets:
        requests = [item for item in plan.requests if item.dataset == ref.name]
        if ref.name not in opened:
            found.failures.update(dict.fromkeys(requests, unreadable[ref.name]))
            continue
        lookups = [lookup for lookup in plan.lookups if lookup.dataset == ref.name]
        scanned = scan(spark, opened[ref.name], requests, lookups, opened)
        found.values.update(scanned.values)
        found.failures.update(scanned.failures)
    verdicts = evaluate(plan, found.values, found.failures, request.skip_dates)
    return GateReport(
        run_id=run_id,
        run_key=request.run_key,
        attempt=request.attempt,
        suite=plan.suite,
        fail_on=request.fail_on,
        outcome=decide(verdicts, request.fail_on),
        verdicts=verdicts,
        datasets=tuple(
            _snapshot(ref, opened.get(ref.name), plan, found) for ref in request.datasets
        ),
        started_at=started,
        finished_at=_now(),
    )


def _open_all(
    spark: SparkSession, refs: Sequence[DatasetRef], plan: Plan
) -> tuple[dict[str, OpenDataset], dict[str, str]]:
    """The datasets that could be opened, and why the others could not."""
    opened, unreadable = {}, {}
    for ref in refs:
        dates: set[date | None] = {
            request.date for request in plan.requests if request.dataset == ref.name
        }
        try:
            opened[ref.name] = open_dataset(spark, ref, dates)
        except DatasetError as error:
            _log.error("%s", error)
            unreadable[ref.name] = error.problem
    return opened, unreadable


def _snapshot(
    ref: DatasetRef, dataset: OpenDataset | None, plan: Plan, found: Scanned
) -> DatasetSnapshot:
    on = plan.date if ref.date_column else None
    if dataset is None:
        return DatasetSnapshot(ref.name, ref.location, ref.format)
    rows = found.values.get(row_count(ref.name, on))
    return DatasetSnapshot(
        name=ref.name,
        location=dataset.location,
        format="table" if ref.table else ref.format,
        version=dataset.version,
        rows=rows if isinstance(rows, int) else None,
        fields=dataset.fields,
        metrics=tuple(
            MetricResult(request.metric, _column_of(request), value)
            for request, value in found.values.items()
            if request.dataset == ref.name and request.date == on and _is_of_one_column(request)
        ),
    )


def _is_of_one_column(request: MetricRequest) -> bool:
    return not request.arguments or (
        len(request.arguments) == 1
        and isinstance(request.arguments[0], str)
        and request.metric not in ("violating_rows", "satisfying_share")
    )


def _column_of(request: MetricRequest) -> str | None:
    return str(request.arguments[0]) if request.arguments else None


def _end_after(timeout_s: float | None) -> None:
    """Ends this process at its deadline: a Python driver outlives a task that was timed out."""
    if timeout_s is None:
        return

    def end() -> None:
        print(
            f"error: the gate took longer than {timeout_s:g} seconds", file=sys.stderr, flush=True
        )
        os._exit(EXIT_INFRASTRUCTURE)

    timer = threading.Timer(timeout_s, end)
    timer.daemon = True
    timer.start()


def _now() -> datetime:
    return datetime.now(timezone.utc)
