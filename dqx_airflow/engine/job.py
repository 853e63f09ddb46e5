"""The job of a gate: reads the request, judges, writes the report, sends the events.

The exit code says whether there is a report, not what is in it: some cluster managers rerun a job
that exits with a code other than 0. The verdict is read from the results store.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timezone
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from dqx_airflow import values
from dqx_airflow.datasets.settings import check_locations, check_promotion, check_quarantine
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.diagnostics.verdicts import draw_report
from dqx_airflow.dql.check import Checked
from dqx_airflow.dql.watches import Watched
from dqx_airflow.engine.contract_properties import published_contracts
from dqx_airflow.engine.measure import measure_together, snapshots, watched_columns
from dqx_airflow.engine.outputs.good_rows import GoodRows, JudgedSuite, good_rows
from dqx_airflow.engine.outputs.promotion import promote
from dqx_airflow.engine.outputs.quarantine import Judged, quarantine_rows
from dqx_airflow.engine.outputs.samples import with_failing_rows
from dqx_airflow.engine.proof.engine_key import KnownEngine, known_engine
from dqx_airflow.engine.scan.fingerprints import fingerprint_of
from dqx_airflow.engine.scan.frames import condition_of
from dqx_airflow.engine.scan.states import StateCache, StateStore
from dqx_airflow.engine.session.concurrency import do_meanwhile
from dqx_airflow.engine.session.job_ending import JobEnding, signs_of_life
from dqx_airflow.engine.session.sail import require_spark
from dqx_airflow.engine.session.spark_session import (
    create_session,
    engine_of,
    quiet_pyspark,
    without_log,
)
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import DeadlineError, DqxError, RequestError, SourceError, first_line
from dqx_airflow.lineage import is_configured
from dqx_airflow.lineage import spool as spools
from dqx_airflow.metrics.drift import DRIFT_SUMMARY
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.plan.clause_verdicts import verdicts_on_tables, with_clauses
from dqx_airflow.plan.evaluate import decide, evaluate
from dqx_airflow.plan.failing import FailingRows, faults_of
from dqx_airflow.plan.masks import without_values
from dqx_airflow.plan.model import Plan, PlannedAssertion, Scanned, joined
from dqx_airflow.plan.selection import (
    checked_suite,
    plan_of,
    selected_clauses,
    shadow_plan,
    shadow_report,
)
from dqx_airflow.plan.waivers import with_acceptance, with_waivers
from dqx_airflow.results.decisions import decisions_on
from dqx_airflow.results.past_days import read_labels
from dqx_airflow.results.proofs import read_proofs
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.receipts import ReceiptWriter, signing_key
from dqx_airflow.results.report_rows import digests_of
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.values import GateReport, GateRequest, Outcome, Verdict
from dqx_airflow.values.json_form import (
    EXIT_INFRASTRUCTURE,
    EXIT_REPORTED,
    EXIT_SOURCE,
    EXIT_TIMED_OUT,
    from_arguments,
    storage_options_of,
)
from dqx_airflow.values.redact import redact_urls
from dqx_airflow.values.report import Acceptance, Decisions
from dqx_airflow.values.request import require_whole_run

if TYPE_CHECKING:
    from dqx_airflow.lineage.emitter import LineageEmitter
    from dqx_airflow.results.stored_requests import TakenRequest


@contextmanager
def run_events(
    requests: Mapping[str, GateRequest], started: datetime, store: ResultsStore
) -> Iterator[Callable[[GateReport], None]]:
    """Sends one event when each run begins and one when it ends, whatever its end.

        with run_events({run_id: request}, started, store) as end:
            report = ...
            end(report)

    An exception raised in the block ends the runs that have not ended: they failed.

    :param requests: the request of each run id.
    """
    emitter = _emitter(_spool(store))
    if emitter is None:
        yield lambda _: None
        return
    from dqx_airflow.lineage.events import crash_event, start_event, terminal_event

    running = dict(requests)

    def end(report: GateReport) -> None:
        request = running.pop(report.run_id)
        is_sent = emitter.emit(terminal_event(request, report, emitter.namespace))
        if is_sent and not running:
            # The server responds: it also gets the events that earlier runs could not send, as time
            # allows.
            emitter.resend()

    with emitter:
        for run_id, request in requests.items():
            emitter.emit(start_event(request, run_id, started, emitter.namespace))
        try:
            yield end
        except BaseException as error:
            message, now = _quoted(error, requests.values()), datetime.now(timezone.utc)
            for run_id, request in running.items():
                emitter.emit(crash_event(request, run_id, now, message, emitter.namespace))
            raise


def _quoted(error: BaseException, requests: Iterable[GateRequest]) -> str:
    """The message of an error that ends a run; if columns are masked, without data that Spark
    quotes."""
    masked = [column for request in requests for ref in request.datasets for column in ref.masked]
    return without_values(f"{type(error).__name__}: {error}", masked)


def _emitter(spool: Path | None) -> LineageEmitter | None:
    # Also reports waiting events that cannot be sent any more.
    has_waiting = spool is not None and spools.has_some(spool)
    if not is_configured(os.environ) and not has_waiting:
        return None
    from dqx_airflow.lineage.emitter import LineageEmitter

    return LineageEmitter(spool)


def _spool(store: ResultsStore) -> Path | None:
    """The folder for unsent events: from the environment, or beside the results if they are files.

    None if there is no folder: complete events are then written to the log of the job.
    """
    if spool := os.environ.get(spools.VARIABLE):
        return Path(spool).expanduser()
    location = store.location
    return spools.beside(location.root) if location.is_local else None


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
        code = run_job(arguments, run, ending)
        note(code)
    return code


def run_job(
    arguments: Sequence[str],
    run: Callable[[GateRequest], tuple[GateReport, ...]],
    ending: JobEnding,
) -> int:
    """Runs the gate like `main`, with a given function for the gate and a given `JobEnding`."""
    # Spark and its gateway are verbose; our messages, and events for the console, are worth a line.
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stderr)
    quiet_pyspark()
    for name in ("dqx", "dqx_airflow", "openlineage.client.transport.console"):
        logging.getLogger(name).setLevel(logging.INFO)
    request = None
    try:
        request = from_arguments(arguments)
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
    requests: Sequence[GateRequest], session: Callable[[str], SparkSession]
) -> tuple[GateReport, ...]:
    """Checks, scans once, judges each request, and writes the reports, between lineage events.

    Either all reports are written at the end, or none. A dataset is promoted if no request for the
    date is blocked or broken; for `promote_blocked`, see `GateRequest`.

    :param requests: the requests of one gate, or of one call. They share the results store, and
        datasets with the same name.
    :param session: returns the Spark session for an application name. Called after the suites and
        the results store were checked.
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
    parts: Sequence[_JobPart] = [
        replace(part, decisions=decisions_on(results, part.request.run_key, part.request.slice))
        for part in _parts_of(requests)
    ]
    started = _now()
    with run_events({part.run_id: part.request for part in parts}, started, store) as end:
        spark = session(first.run_key.gate)
        do_meanwhile(lambda: values.to_json(first.attempt))  # its import takes a while
        parts = [_with_labels(part, results) for part in _watching(parts, requests, spark)]
        states = StateStore(store.location)
        cache = None if first.recompute else StateCache(spark, states, parts[0].run_id, started)
        known = known_engine(spark, read_proofs(results))
        if known.outlived is not None:
            _log.warning("%s", known.mark)
        for request in requests:
            if request.promote_to or request.quarantine:
                require_spark(spark, "it promotes nothing, and keeps no rows in a quarantine")
        reports = _validate(parts, spark, started, receipts, known, cache)
        _require_time(first, started)
        sources = [part.request.sources for part in parts]
        store.write_all(list(zip(reports, sources, strict=True)))
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
    parts = _parts_of(requests)
    spark = session(requests[0].run_key.gate)
    receipts = ReceiptWriter(StoredResults(requests[0].results_root), None)
    known = known_engine(spark)
    return _validate(_watching(parts, requests, spark), spark, _now(), receipts, known)


def plan_gate(request: GateRequest) -> Plan:
    """The plan of a request.

    :raises SourceError: the suite has errors, by itself or with these datasets.
    :raises RequestError: it selects nothing, or something that does not exist.
    """
    return plan_of(request, _valid_suite(request))


def _valid_suite(request: GateRequest) -> Checked:
    """The checked suite of a request.

    :raises SourceError: the suite has errors.
    """
    checked = checked_suite(request)
    if checked.errors or checked.suite is None:
        raise drawn_error(checked.errors, checked.sources)
    return checked


def _read_by(plan: Plan, request: GateRequest) -> GateRequest:
    """The request with only the datasets that its plan reads: a selection may exclude some."""
    if request.selection is None:
        return request
    return replace(
        request,
        datasets=tuple(ref for ref in request.datasets if ref.name in plan.reads),
        quarantine=tuple(pair for pair in request.quarantine if pair[0] in plan.reads),
        contract=request.contract and selected_clauses(request.contract, request.selection),
    )


_NO_DECISIONS = Decisions()
_NO_COLUMNS: Mapping[str, Iterable[Watched]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _JobPart:
    """One of the requests that are judged together. `shadow` is the result of `shadow_plan`."""

    request: GateRequest
    plan: Plan
    shadow: tuple[Plan | None, str | None]
    run_id: str
    decisions: Decisions = _NO_DECISIONS

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of the request, and the shadow plan if there is one. One scan serves both."""
        shadow = self.shadow[0]
        return (self.plan,) if shadow is None else (self.plan, shadow)

    def decide(self, verdicts: Sequence[Verdict]) -> Outcome:
        requires = self.request.require_history or self.plan.require_history
        outcome = decide(verdicts, self.request.fail_on, require_history=requires)
        if outcome is not Outcome.WARNED:
            return outcome
        is_accepted = any(verdict.accepted_by is not None for verdict in verdicts)
        return Outcome.ACCEPTED if is_accepted else outcome

    def with_decisions(
        self, verdicts: Sequence[Verdict], opened: Mapping[str, OpenDataset], started: datetime
    ) -> tuple[tuple[Verdict, ...], Acceptance | None]:
        """The verdicts with the waivers and the acceptance that apply to them."""
        if self.decisions == _NO_DECISIONS:
            return tuple(verdicts), None
        return with_acceptance(
            with_waivers(verdicts, self.decisions.waivers, started),
            self.decisions,
            self.request.fail_on,
            lambda: self.fingerprints(opened, started),
            accept_required=self.request.accept_required,
        )

    def fingerprints(
        self, opened: Mapping[str, OpenDataset], started: datetime
    ) -> dict[str, str | None]:
        """Fingerprints of the judged rows by dataset; None if unknown."""
        on = self.plan.date
        return {
            ref.name: fingerprint_of(opened[ref.name], on, started) if ref.name in opened else None
            for ref in self.request.datasets
        }


def _with_labels(part: _JobPart, results: StoredResults) -> _JobPart:
    """The part with the labels of the days from which usual limits are computed."""
    (shadow, problem), plan, key = part.shadow, part.plan, part.request.run_key
    assertions = [one for known_plan in part.plans for one in known_plan.assertions]
    days = [
        request.date
        for one in assertions
        for request in (*one.history, *one.requests)
        if request.date
        and request.date != plan.date
        and (request in one.history or request.metric in DRIFT_SUMMARY.values())
    ]
    if not days:
        return part
    datasets = {(one.check, one.name): one.datasets for one in assertions}
    labels: dict[str, dict[date, bool]] = {}
    for label in read_labels(results, gates=[key.gate], since=min(days), until=max(days)):
        for dataset in datasets.get((label.check, label.name), ()):
            if label.map_index == key.map_index:
                known = labels.setdefault(dataset, {})
                known[label.date] = label.ground_truth or known.get(label.date, False)
    shadow = None if shadow is None else replace(shadow, labels=labels)
    return replace(part, plan=replace(plan, labels=labels), shadow=(shadow, problem))


def _parts_of(
    requests: Sequence[GateRequest], columns: Mapping[str, Iterable[Watched]] = _NO_COLUMNS
) -> tuple[_JobPart, ...]:
    """Plans each request, and returns one part for each.

    :param columns: as for `plan_of`.
    :raises SourceError: a suite has errors.
    :raises RequestError: a request selects something that does not exist, or two requests have
        different datasets with the same name.
    """
    suites: dict[tuple[Any, ...], Checked] = {}
    parts = []
    for request in requests:
        # A suite is read once for all dates.
        key = request.suite, request.imports
        if key not in suites:
            suites[key] = _valid_suite(request)
        plan, shadow = plan_of(request, suites[key], columns), shadow_plan(request, columns)
        parts.append(_JobPart(_read_by(plan, request), plan, shadow, str(uuid.uuid4())))
    _require_same_datasets(parts)
    return tuple(parts)


def _watching(
    parts: Sequence[_JobPart], requests: Sequence[GateRequest], spark: SparkSession
) -> tuple[_JobPart, ...]:
    """Replans the parts with assertions about the columns of watched datasets, which are known only
    with a session."""
    watched = {name for part in parts for plan in part.plans for name in plan.watched}
    if not watched:
        return tuple(parts)
    refs = (ref for part in parts for ref in part.request.datasets if ref.name in watched)
    columns = watched_columns(spark, refs)
    return tuple(
        replace(part, request=known.request, plan=known.plan, shadow=known.shadow)
        for part, known in zip(parts, _parts_of(requests, columns), strict=True)
    )


def _require_same_datasets(parts: Sequence[_JobPart]) -> None:
    """Rejects two datasets with one name: only one of them would be read.

    :raises RequestError: there are such datasets.
    """
    by_name: dict[str, values.DatasetRef] = {}
    for ref in (ref for part in parts for ref in part.request.datasets):
        first = by_name.setdefault(ref.name, ref)
        if first != ref:
            settings, other_settings = (_shown(item, first, ref) for item in (first, ref))
            differences = f"one with {settings}, one with {other_settings}"
            message = f"two datasets are named '{ref.name}': {differences}"
            raise RequestError(message, "give them different names, or run the gates separately")


def _shown(ref: values.DatasetRef, *refs: values.DatasetRef) -> str:
    """The settings of `ref` that differ between the two `refs`."""
    settings, other_settings = map(asdict, refs)
    keys = [
        key
        for key in settings
        if key not in ("name", "options") and settings[key] != other_settings[key]
    ]
    return ", ".join(f"{key} {getattr(ref, key)!r}" for key in keys) or "other options"


def _validate(
    parts: Sequence[_JobPart],
    spark: SparkSession,
    started: datetime,
    receipts: ReceiptWriter,
    known: KnownEngine,
    cache: StateCache | None = None,
) -> tuple[GateReport, ...]:
    refs = {ref.name: ref for part in parts for ref in part.request.datasets}
    plans = [joined(part.plans) for part in parts]
    engine = engine_of(spark)  # asked now: the verdicts survive the loss of the session
    engine["engine_proof"] = known.mark
    opened, measured = measure_together(spark, tuple(refs.values()), plans, cache, known)
    judged = [
        _judge(part, opened, scanned, started)
        for part, scanned in zip(parts, measured, strict=True)
    ]
    has_quarantine = any(part.request.quarantine for part in parts)
    quarantined = quarantine_rows(spark, opened, judged) if has_quarantine else {}
    reports = tuple(
        _report(part, spark, engine, opened, scanned, of_part, quarantined, started)
        for part, scanned, of_part in zip(parts, measured, judged, strict=True)
    )
    if not any(part.request.promote_to for part in parts):
        return reports
    suites = [
        JudgedSuite(
            part.plan, of_part, scanned.of(part.plan.requests), part.decisions.waivers, report
        )
        for part, of_part, scanned, report in zip(parts, judged, measured, reports, strict=True)
    ]
    return _promoted(parts, suites, spark, opened, receipts)


def _with_notes(
    opened: Mapping[str, OpenDataset], assertion: PlannedAssertion, verdict: Verdict
) -> Verdict:
    """The verdict with notes about the columns in the assertion, taken from the datasets."""
    about_columns = any(r.definition.scan is Scan.SCHEMA for r in assertion.requests)
    notes = [
        note
        for name in assertion.datasets
        if name in opened
        for column, note in opened[name].notes.items()
        if (
            re.search(rf"\b{re.escape(column)}\b", assertion.expression)
            if column
            else about_columns
        )
    ]
    return replace(verdict, note="; ".join(filter(None, (verdict.note, *notes))) or None)


def _judge(
    part: _JobPart, opened: Mapping[str, OpenDataset], scanned: Scanned, started: datetime
) -> Judged:
    """Judges a part: its verdicts, and the failing rows for each."""
    request, plan = part.request, part.plan
    scanned = scanned.of(plan.requests)
    verdicts = evaluate(
        plan, scanned, request.skip_dates, now=started, sample_rows=request.sample_rows
    )
    if any(dataset.notes for dataset in opened.values()):
        verdicts = tuple(map(partial(_with_notes, opened), plan.assertions, verdicts))
    verdicts, _ = part.with_decisions(verdicts, opened, started)
    faults: tuple[tuple[FailingRows, ...], ...] = ((),) * len(verdicts)
    if any(verdict.status is values.Status.FAILED for verdict in verdicts):
        names = [ref.name for ref in request.datasets if ref.name in opened]
        schemas, skipped = {name: opened[name].schema for name in names}, request.skip_dates
        faults = faults_of(plan, verdicts, scanned, schemas, skip_dates=skipped, now=started)
    # A suite of which nothing is selected has no part at all.
    may_lack_suites = request.selection is not None and request.job_key != request.run_key
    is_partial = plan.partial is not None or may_lack_suites
    return Judged(request, part.run_id, verdicts, faults, is_partial)


def _report(
    part: _JobPart,
    spark: SparkSession,
    engine: Mapping[str, Any],
    all_opened: Mapping[str, OpenDataset],
    all_scanned: Scanned,
    judged_part: Judged,
    quarantined: Mapping[tuple[date, str], int],
    started: datetime,
) -> GateReport:
    """Builds the report of a part, before anything is promoted."""
    request, plan = part.request, part.plan
    names = {ref.name for ref in request.datasets}
    opened = {name: dataset for name, dataset in all_opened.items() if name in names}
    scanned = all_scanned.of(plan.requests)
    verdicts, faults = judged_part.verdicts, judged_part.faults
    if any(faults):
        verdicts = with_failing_rows(spark, opened, plan, verdicts, faults, request.sample_rows)
    if request.contract is not None:
        verdicts = with_clauses(verdicts, request.contract)
        verdicts += verdicts_on_tables(request.contract, published_contracts(spark, opened))
    verdicts, accepted = part.with_decisions(verdicts, opened, started)
    outcome = part.decide(verdicts)
    fingerprints = part.fingerprints(opened, started) if outcome is Outcome.BLOCKED else {}
    conditions = {name: condition_of(spark, dataset, plan.date) for name, dataset in opened.items()}
    targets, quarantines = dict(request.promote_to), dict(request.quarantine)
    judged = tuple(
        replace(
            snapshot,
            quarantined=quarantined.get((plan.date, snapshot.name))
            if snapshot.name in quarantines
            else None,
            condition=conditions.get(snapshot.name),
            promote_to=targets.get(snapshot.name),
            quarantine=quarantines.get(snapshot.name),
            fingerprint=fingerprints.get(snapshot.name),
            arrivals=opened[snapshot.name].arrivals(plan.date)
            if outcome in (Outcome.BLOCKED, Outcome.BROKEN) and snapshot.name in opened
            else (),
        )
        for snapshot in snapshots(request.datasets, opened, plan, scanned)
    )
    return GateReport(
        run_id=part.run_id,
        run_key=request.run_key,
        attempt=request.attempt,
        suite=plan.suite,
        fail_on=request.fail_on,
        outcome=outcome,
        verdicts=verdicts,
        datasets=judged,
        started_at=started,
        finished_at=_now(),
        contract=request.contract and request.contract.in_report,
        sources=digests_of(request.sources),
        shadow=shadow_report(request, part.shadow, all_scanned, started),
        partial=plan.partial,
        slice=request.slice,
        accepted=accepted,
        answered=request.answered,
        accept_required=request.accept_required,
        **engine,
    )


def _promoted(
    parts: Sequence[_JobPart],
    suites: Sequence[JudgedSuite],
    spark: SparkSession,
    opened: Mapping[str, OpenDataset],
    receipts: ReceiptWriter,
) -> tuple[GateReport, ...]:
    """Promotes the rows of each date for which all suites passed, or may be promoted although
    blocked, and returns the reports with the results."""
    by_date: dict[date, list[int]] = {}
    for number, suite in enumerate(suites):
        by_date.setdefault(suite.report.run_key.date, []).append(number)
    results = [suite.report for suite in suites]
    for numbers in by_date.values():
        first, outcomes = numbers[0], [results[number].outcome for number in numbers]
        part, good = parts[first], GoodRows()
        if part.request.promote_valid and Outcome.BLOCKED in outcomes:
            good = good_rows(spark, opened, [suites[number] for number in numbers])
            for number, report in zip(numbers, good.reports, strict=True):
                outcome = parts[number].decide(report.verdicts)
                results[number] = replace(report, outcome=outcome)
        if not all(_may_promote(parts[number], results[number]) for number in numbers):
            continue
        is_blocked = any(results[number].outcome is Outcome.BLOCKED for number in numbers)
        _require_time(part.request, results[first].started_at)
        accepted = next((results[n].accepted for n in numbers if results[n].accepted), None)
        judged = [(parts[n].request, results[n].verdicts) for n in numbers]
        promoted, refused = promote(
            spark,
            {**opened, **good.datasets},
            part.request,
            results[first],
            is_blocked,
            accepted,
            good.left_out,
            replace(receipts, judged=judged),
        )
        if refused and good.left_out:
            for number in numbers:
                results[number] = suites[number].report
        verdicts = results[first].verdicts + refused
        results[first] = replace(results[first], verdicts=verdicts, outcome=part.decide(verdicts))
        for number in numbers:
            datasets = tuple(
                replace(snapshot, promotion=promoted.get(snapshot.name))
                for snapshot in results[number].datasets
            )
            results[number] = replace(results[number], datasets=datasets, finished_at=_now())
    return tuple(results)


def _may_promote(part: _JobPart, report: GateReport) -> bool:
    """True if the gate is neither blocked nor broken; or if it is blocked, the request has
    `promote_blocked`, and no P0, protected or implicit assertion blocks it."""
    if report.outcome is not Outcome.BLOCKED:
        return report.outcome is not Outcome.BROKEN
    kept = {
        (assertion.check, assertion.name)
        for assertion in part.plan.assertions
        if assertion.is_protected or assertion.is_implicit
    }
    return part.request.promote_blocked and not any(
        verdict.severity is values.Severity.P0 or (verdict.check, verdict.name) in kept
        for verdict in report.with_status(values.Status.FAILED)
        if verdict.can_block(report.fail_on)
    )


def _require_time(request: GateRequest, started: datetime) -> None:
    """Rejects the result of a driver that was suspended for too long.

    :raises DeadlineError: the gate took longer than its timeout.
    """
    if request.timeout_s is not None and (_now() - started).total_seconds() > request.timeout_s:
        raise DeadlineError(f"the gate took longer than {request.timeout_s:g} seconds")


def _reason(error: Exception, request: GateRequest | None) -> str:
    """The reason for the missing report, in one line, for the gate operator that waits for this
    job."""
    if isinstance(error, DqxError):
        return redact_urls(first_line(error))[:_LONGEST_REASON]
    quoted = _quoted(error, [request] if request is not None else [])
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
        print(f"error: {_quoted(error, [request])}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    raise error


def _now() -> datetime:
    return datetime.now(timezone.utc)
