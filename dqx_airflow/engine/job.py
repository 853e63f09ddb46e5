"""The gate job: a request in, a report in the results store out. Entered from `spark_jobs/`.

The exit code says whether there is a report, not what it says: some cluster managers run a job
that exits with anything but 0 a second time. The verdict is read from the results store.
"""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from pyspark.sql import SparkSession

from dqx_airflow.dataset_settings import check_places, check_promotion, check_quarantine
from dqx_airflow.diagnostics.text import draw
from dqx_airflow.diagnostics.verdicts import draw_report
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.imports import inlined
from dqx_airflow.engine.lineage_events import run_events
from dqx_airflow.engine.measure import measure, snapshots
from dqx_airflow.engine.outputs.promotion import promote
from dqx_airflow.engine.outputs.quarantine import quarantine_rows
from dqx_airflow.engine.outputs.samples import with_failing_rows
from dqx_airflow.engine.scan.frames import condition_of
from dqx_airflow.engine.scan.states.cache import StateCache
from dqx_airflow.engine.session.cancellation import JobEnding
from dqx_airflow.engine.session.spark_session import create_session, quiet_pyspark
from dqx_airflow.engine.table_contracts import published_contracts
from dqx_airflow.errors import DeadlineError, DqxError, SourceError
from dqx_airflow.plan.clauses import unenforced_verdicts, verdicts_on_tables, with_clauses
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.failing import faults_of
from dqx_airflow.plan.model import Plan
from dqx_airflow.plan.resolve import check_datasets, resolve
from dqx_airflow.plan.shadow import shadow_plan, shadow_report, with_requests_of
from dqx_airflow.request_arguments import EXIT_TIMED_OUT, from_arguments, storage_options_of
from dqx_airflow.results.sources import digests_of
from dqx_airflow.results.states import StateStore
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, GateRequest, Outcome

EXIT_REPORTED, EXIT_SOURCE, EXIT_INFRASTRUCTURE = 0, 2, 4

_log = logging.getLogger("dqx.gate")


def main(
    arguments: Sequence[str], open_session: Callable[[str], SparkSession] = create_session
) -> int:
    """Runs the gate that the arguments ask for, prints its verdicts last, returns the exit code."""
    ending = JobEnding()
    session = ending.opening(open_session)
    return run_job(arguments, lambda request: run_gate(request, session), ending)


def run_job(
    arguments: Sequence[str], run: Callable[[GateRequest], GateReport], ending: JobEnding
) -> int:
    """Like `main`, whatever session the gate runs in, and whoever ends it."""
    # Spark and its gateway talk a lot; ours, and events that go to the console, are worth a line.
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
    quiet_pyspark()
    for name in ("dqx", "dqx_airflow", "openlineage.client.transport.console"):
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        request = from_arguments(arguments)
        ending.end_after(request.timeout_s)
        report = run(request)
    except Exception as error:
        # Of a job that was ended, any error is the consequence, and the reason has been told.
        return _report_failure(error) if ending.code is None else ending.code
    print(draw_report(report, root=request.results_root), flush=True)
    return EXIT_REPORTED


def run_gate(request: GateRequest, session: Callable[[str], SparkSession]) -> GateReport:
    """Checks, scans, judges, and writes the report; lineage events frame it.

    :param session: gives the Spark session for an application name. Called when the suite and
        the results store are known to be sound.
    :raises SourceError: the suite has errors.
    :raises RequestError: the request contradicts itself.
    :raises StoreError: the results store, or a quarantine, cannot be written.
    :raises PromotionError: the gate passed, and a dataset cannot be promoted as it is now.
    :raises DeadlineError: it took longer than the request allows.
    """
    check_places(request)
    check_quarantine(request)
    check_promotion(request)
    store = ResultsStore(request.results_root, storage_options_of(os.environ))
    store.check_writable()
    plan = plan_gate(request)
    run_id, started = str(uuid.uuid4()), _now()
    with run_events(request, run_id, started, store) as end:
        spark = session(request.run_key.gate)
        states = StateStore(store.location)
        memory = None if request.recompute else StateCache(spark, states, run_id, started)
        report = _validate(request, plan, spark, run_id, started, memory)
        _require_time(request, started)
        store.write(report, request.sources)
        end(report)
    return report


def try_gate(request: GateRequest, session: Callable[[str], SparkSession]) -> GateReport:
    """Checks, scans and judges like `run_gate`, and leaves no trace: no report, states or events.

    :param session: as for `run_gate`.
    :raises SourceError: the suite has errors.
    """
    plan = plan_gate(request)
    run_id, started = str(uuid.uuid4()), _now()
    return _validate(request, plan, session(request.run_key.gate), run_id, started)


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


def _validate(
    request: GateRequest,
    plan: Plan,
    spark: SparkSession,
    run_id: str,
    started: datetime,
    memory: StateCache | None = None,
) -> GateReport:
    beside = shadow_plan(request)
    asked = with_requests_of(plan, beside[0])
    opened, all_found = measure(spark, request.datasets, asked, memory)
    found = all_found.without({*asked.requests} - {*plan.requests})
    verdicts = evaluate(
        plan, found, request.skip_dates, now=started, sample_rows=request.sample_rows
    )
    schemas = {name: dataset.schema for name, dataset in opened.items()}
    faults = faults_of(plan, verdicts, found, schemas, skip_dates=request.skip_dates, now=started)
    quarantined = quarantine_rows(spark, opened, request, verdicts, faults, run_id)
    verdicts = with_failing_rows(spark, opened, plan, verdicts, faults, request.sample_rows)
    verdicts = with_clauses(verdicts, request.contract) + unenforced_verdicts(request.contract)
    if request.contract is not None:
        verdicts += verdicts_on_tables(request.contract, published_contracts(spark, opened))
    conditions = {name: condition_of(spark, dataset, plan.date) for name, dataset in opened.items()}
    targets, quarantines = dict(request.promote_to), dict(request.quarantine)
    told = tuple(
        replace(
            item,
            quarantined=quarantined.get(item.name),
            condition=conditions.get(item.name),
            promote_to=targets.get(item.name),
            quarantine=quarantines.get(item.name),
        )
        for item in snapshots(request.datasets, opened, plan, found)
    )
    requires = request.require_history or plan.require_history
    outcome = decide(verdicts, request.fail_on, require_history=requires)
    if outcome in (Outcome.PASSED, Outcome.WARNED):
        _require_time(request, started)
        promoted, refused = promote(spark, opened, request, told, run_id, started)
        verdicts += refused
        outcome = decide(verdicts, request.fail_on, require_history=requires)
        told = tuple(replace(item, promotion=promoted.get(item.name)) for item in told)
    return GateReport(
        run_id=run_id,
        run_key=request.run_key,
        attempt=request.attempt,
        suite=plan.suite,
        fail_on=request.fail_on,
        outcome=outcome,
        verdicts=verdicts,
        datasets=told,
        started_at=started,
        finished_at=_now(),
        contract=request.contract and request.contract.in_report,
        sources=digests_of(request.sources),
        shadow=shadow_report(request, beside, all_found, request.skip_dates, started),
    )


def _require_time(request: GateRequest, started: datetime) -> None:
    """A driver that stood still for a while does not come back with a result.

    :raises DeadlineError: the gate took longer than it may.
    """
    if request.timeout_s is not None and (_now() - started).total_seconds() > request.timeout_s:
        raise DeadlineError(f"the gate took longer than {request.timeout_s:g} seconds")


def _report_failure(error: Exception) -> int:
    """Tells what ended the job; the exit code for it."""
    match error:
        case SourceError():
            print(error, file=sys.stderr)
            return EXIT_SOURCE
        case DeadlineError():
            print(f"error: {error}", file=sys.stderr)
            return EXIT_TIMED_OUT
        case DqxError():
            print(f"error: {error}", file=sys.stderr)
            return EXIT_INFRASTRUCTURE
    raise error


def _now() -> datetime:
    return datetime.now(timezone.utc)
