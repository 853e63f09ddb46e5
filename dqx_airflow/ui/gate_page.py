"""The tab of a task: the result of its gate, assertion by assertion, with its history; and its
failing rows as a file."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple, TypeAlias

from fastapi import Depends, Response

from dqx_airflow.diagnostics.verdicts import shadow_changes
from dqx_airflow.limits import LONGEST_WAIVER
from dqx_airflow.results.alerts import labels_of
from dqx_airflow.results.decisions import waivers_of
from dqx_airflow.results.incidents import (
    ACKNOWLEDGED,
    CLOSED,
    Incident,
    IncidentNote,
    judged_places,
    judged_rows,
    stored_incidents,
)
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.stored_labels import Label
from dqx_airflow.results.what_changed import Changes, is_good_before, what_changed
from dqx_airflow.ui import (
    airflow,
    airflow_clearing,
    airflow_dags,
    airflow_users,
    deciding,
    report_view,
    responses,
)
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.assertion_view import AssertionView, assertion_view, histories
from dqx_airflow.ui.board_page import GateRow, gate_rows, with_closed_dates
from dqx_airflow.ui.failing_rows import csv_of
from dqx_airflow.ui.open_slices import OpenSlice, key_of_slice, slices_of
from dqx_airflow.ui.questions import as_airflow_knows
from dqx_airflow.ui.responses import form_token
from dqx_airflow.ui.runs_without_report import runs_without_report
from dqx_airflow.ui.slices_page import DATE_UNKNOWN
from dqx_airflow.ui.source_view import changed_lines, sources_of
from dqx_airflow.ui.store import Answer, StoreClient
from dqx_airflow.ui.stored_summaries import last_judged, with_summaries
from dqx_airflow.ui.summary_view import view_of_summary
from dqx_airflow.values import (
    NO_REPORT,
    FailingRow,
    GateReport,
    Outcome,
    SourceFile,
    Status,
    Verdict,
    worst_outcome,
)
from dqx_airflow.values.report import ShadowReport, Waiver
from dqx_airflow.values.typed_values import days_before

STOPPED_STATES = ("upstream_failed", "skipped")
"""The states of a task that an upstream task prevented from running."""

_STOPS = (Outcome.BLOCKED, Outcome.BROKEN)


@dataclass(frozen=True, slots=True)
class Stopper:
    """A task upstream of another that it prevented from running; its report, if it is a gate with
    one."""

    run: airflow.TaskRun
    report: report_view.ReportView | None


def stopped_by(run: airflow.TaskRun, session: Any) -> tuple[Stopper, ...]:
    """The tasks that stopped a task, gates first; in the whole run if the graph of the DAG is
    unknown."""
    before = airflow_dags.graph_of_dag(session, run.dag_id).before(run.task_id)
    stoppers = []
    for gate_run in airflow.ended_gates(session, run):
        if before and gate_run.task_id not in before:
            continue
        report = view_of_summary(gate_run.pushed)
        stops = report.outcome in _STOPS if report else gate_run.state == "failed"
        if stops and gate_run.state != "success":
            stoppers.append(Stopper(gate_run, report))
    return tuple(sorted(stoppers, key=lambda stopper: stopper.report is None))


@dataclass(frozen=True, slots=True)
class GateFilters(responses.Filters):
    """The filters on assertions."""

    status: str = ""
    severity: str = ""
    column: str = ""

    def wants(self, assertion: AssertionView) -> bool:
        """Whether an assertion matches."""
        verdict = assertion.verdict
        return (
            self.status in ("", assertion.state)
            and self.severity in ("", verdict.severity.value)
            and self.column in ("", verdict.column)
        )


def chosen_report(
    pushed: object, reports: Sequence[GateReport], attempt_id: str
) -> GateReport | None:
    """The stored report to display: of several reports of an attempt the worst one. None if the
    store does not have it.

    :param pushed: the summary that the task pushed.
    :param reports: the reports of its attempts, the one started last first.
    :param attempt_id: an attempt, or one of its reports. If it is neither, the report of the
        summary is displayed, or without a summary the report of the last attempt.
    """
    for report in reports:
        if responses.report_name(report.attempt.id, report.run_id) == attempt_id:
            return report
    of_attempt = [report for report in reports if report.attempt.id == attempt_id]
    if of_attempt:
        return _worst(of_attempt)
    summary = view_of_summary(pushed)
    if summary is None:
        last = [report for report in reports if report.attempt.id == reports[0].attempt.id]
        return _worst(last) if last else None
    return next((report for report in reports if report.run_id == summary.run_id), None)


def _worst(reports: Sequence[GateReport]) -> GateReport:
    worst = worst_outcome(report.outcome for report in reports)
    return next(report for report in reports if report.outcome is worst)


def _attempts(reports: Sequence[GateReport]) -> list[tuple[GateReport, list[GateReport]]]:
    """The worst report and all reports of each attempt, oldest attempt first."""
    by_id: dict[str, list[GateReport]] = {}
    for report in reversed(reports):
        by_id.setdefault(report.attempt.id, []).append(report)
    return [(_worst(own), own) for own in by_id.values()]


def _parts(reports: Sequence[GateReport], chosen: GateReport | None) -> list[GateReport]:
    """The reports of the displayed attempt, by date and suite; empty if it has only one."""
    last_of_each = {
        (report.run_key.gate, report.run_key.date): report
        for report in reversed(reports)
        if chosen is not None and report.attempt.id == chosen.attempt.id
    }
    own = sorted(last_of_each.values(), key=lambda report: (report.run_key.date, report.suite))
    return own if len(own) > 1 else []


def _until(past: Sequence[GateReport], chosen: GateReport) -> tuple[GateReport, ...]:
    """The earlier reports of a gate, oldest first, and then the chosen one, even if a later attempt
    supersedes it."""
    key = chosen.run_key
    earlier = [
        report
        for report in past
        if report.run_key != key
        and (report.run_key.date, report.started_at) <= (key.date, chosen.started_at)
    ]
    return (*reversed(earlier), chosen)


def _last_good(chosen: GateReport | None, history: Sequence[GateReport]) -> GateReport | None:
    """The last good report in a history before a chosen bad one."""
    if chosen is None or chosen.outcome not in _STOPS:
        return None
    good = (report for report in reversed(history) if is_good_before(report, chosen))
    return next(good, None)


def _changes(chosen: GateReport | None, good: GateReport | None) -> Changes:
    """The changes between the last good report and a chosen bad one."""
    if chosen is None or chosen.outcome not in _STOPS:
        return {}
    return what_changed([chosen], good)


def _changed_lines(
    client: StoreClient, sources: Sequence[SourceFile], good: GateReport | None
) -> dict[str, tuple[range, ...]]:
    """The lines of the sources of a bad report that have changed since the last good one, by file.

    :param sources: those that the user may read.
    """
    if not sources or good is None:
        return {}
    before = {one.name: one for one in client.ask(lambda store: store.sources_of(good)).found}
    found = {
        one.name: changed_lines(one, before[one.name]) for one in sources if one.name in before
    }
    return {file: lines for file, lines in found.items() if lines}


router = PageRouter()

_MOST_SILENT = 20


@dataclass(frozen=True, slots=True)
class RequestedInstance:
    """The task instance and the attempt in an address. `map_index` is `{MAP_INDEX}`, as Airflow
    writes it, if the task is not mapped."""

    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    map_index: str = ""
    attempt: str = ""

    def runs(self, session: airflow_users.SessionDep) -> tuple[airflow.TaskRun, ...]:
        """The instances that Airflow knows: several without the map index of a mapped task."""
        index = responses.whole_number(self.map_index)
        return airflow.task_runs(session, self.dag_id, self.run_id, self.task_id, index)

    def forgotten(self) -> airflow.TaskRun:
        """The same instance for a task that Airflow no longer knows."""
        index = responses.whole_number(self.map_index)
        own = self.attempt.partition("/")[0]
        at = -1 if index is None else index
        return airflow.TaskRun(self.dag_id, self.run_id, self.task_id, at, None, None, own)


class GatePage(NamedTuple):
    """The report of a task instance. `assertions` are those that the filters want, `counts` all of
    them by status; `is_superseded` is set if a later attempt has replaced the report, and
    `clearing` is what clearing the task does, None if the gate is good. `mark`
    is set if a person marked the task by hand."""

    run: airflow.TaskRun
    report: report_view.ReportView
    assertions: list[AssertionView]
    counts: Mapping[str, int]
    is_superseded: bool
    shadow: ShadowReport | None
    waivers: list[Waiver]
    labels: tuple[Label, ...]
    clearing: airflow_clearing.Clearing | None
    mark: airflow_dags.Mark | None
    problem: str | None


class NoReportPage(NamedTuple):
    """A task instance without a report, and the tasks that kept it from running. `gate` is the name
    of its gate, `date` the date of its data, None if that is unknown, and `is_open` is set while no
    run has a report on that date, and no one has closed it; `closing` is the note of who has, and
    `acknowledgement` of who takes care of it."""

    run: airflow.TaskRun
    gate: str
    date: date | None
    is_open: bool
    closing: IncidentNote | None
    acknowledgement: IncidentNote | None
    stoppers: tuple[Stopper, ...]
    problem: str | None

    @classmethod
    def of_other_task(cls, run: airflow.TaskRun) -> NoReportPage:
        """The page of a task that is not a gate."""
        return cls(run, f"{run.dag_id}.{run.task_id}", None, False, None, None, (), None)


class MappedPage(NamedTuple):
    """The instances of a mapped task: `row` is about all of them, each of `instances` about one."""

    row: GateRow
    instances: list[tuple[airflow.TaskRun, GateRow]]
    problem: str | None


Tab: TypeAlias = responses.Page[GatePage | NoReportPage | MappedPage]


@dataclass(frozen=True, slots=True)
class _TaskReports:
    """The stored reports of the attempts of a task instance.

    `chosen` is the report to display, None if the store does not have it; `is_forgotten` is set if
    Airflow has deleted the instance, and `problem` says why the store did not respond.
    """

    run: airflow.TaskRun
    is_forgotten: bool
    reports: tuple[GateReport, ...]
    chosen: GateReport | None
    problem: str | None

    @property
    def view(self) -> report_view.ReportView | None:
        """The displayed report: complete, or the summary of the task."""
        if self.chosen is not None:
            return report_view.view_of_report(self.chosen)
        return view_of_summary(self.run.pushed)

    @property
    def is_superseded(self) -> bool:
        """True if a later attempt has replaced the displayed report."""
        return self.chosen is not None and self.chosen.attempt.id != self.run.attempt_id


@dataclass(frozen=True, slots=True)
class _Context:
    """The stored context of a report: earlier reports, its sources, labels and waivers."""

    past: Answer[GateReport] = field(default_factory=Answer)
    sources: Answer[SourceFile] = field(default_factory=Answer)
    labels: Answer[Label] = field(default_factory=Answer)
    waivers: Answer[Waiver] = field(default_factory=Answer)

    @classmethod
    def of(cls, client: StoreClient, report: GateReport, *, reads_code: bool) -> _Context:
        """Queries the store about a report; its sources only for users who may read the code."""
        key = report.run_key
        return cls(
            labels=client.ask(lambda store: labels_of(store, key, report.run_id)),
            waivers=client.ask(lambda store: waivers_of(store, [key.gate])),
            past=client.ask(
                lambda store: store.past_reports({key.gate}, key.date, map_index=key.map_index)
            ),
            sources=client.ask(lambda store: store.sources_of(report)) if reads_code else Answer(),
        )

    def history(self, chosen: GateReport | None) -> tuple[GateReport, ...]:
        """The earlier reports, oldest first, and then the chosen one."""
        return _until(self.past.found, chosen) if chosen is not None else ()


_DAYS_AROUND = 14
"""How many days around the data of a report its open neighbours are looked for."""


def _open_dates(
    session: Any,
    client: StoreClient,
    found: _TaskReports,
    clearing: airflow_clearing.Clearing | None,
) -> deciding.OpenDates | None:
    """The displayed date of a blocked or broken gate, with the open dates beside it; None if it is
    not open, or the store does not have it."""
    chosen = found.chosen
    if chosen is None or found.is_superseded or chosen.outcome not in _STOPS:
        return None
    key, run = chosen.run_key, found.run
    gates = {report.run_key.gate for report in found.reports}
    wanted = RunsWanted(
        gates,
        since=days_before(key.date, _DAYS_AROUND),
        until=days_before(key.date, -_DAYS_AROUND),
        map_index=key.map_index if key.map_index >= 0 else None,
    )
    stored = client.ask(lambda store: stored_incidents(store, wanted)).found
    questions = airflow.questions_of(session, {run.attempt_id})
    incidents: tuple[Incident, ...] = as_airflow_knows(stored, questions)
    own = [one for one in incidents if chosen.run_id in {bad.run_id for bad in one.last_of_each}]
    if not own or not own[0].is_open:
        return None
    around = deciding.group_to_show(incidents, own[0].date, own[0].id)
    question = questions.get(run.attempt_id)
    attempts = {bad.attempt.id for bad in own[0].last_of_each}
    reports = {
        report.run_id: report
        for report in client.ask(lambda store: store.reports_of(attempts)).found
    }
    judged = dict(client.ask(lambda store: tuple(judged_rows(store, own).items())).found)
    task = airflow.TaskRef(run.dag_id, run.run_id, run.task_id, run.map_index)
    return deciding.OpenDates(
        task,
        (own[0],),
        reports,
        deciding.faults_of(own, reports),
        judged,
        deciding.Downstream.of(session, run.dag_id, run.task_id, run.run_id),
        [clearing] if clearing else [],
        {own[0].id: question} if question else {},
        since=around[-1].date if around else None,
    )


@router.get("/gate", dependencies=[airflow_users.READS_DAG])
def gate(
    visitor: airflow_users.VisitorDep,
    instance: Annotated[RequestedInstance, Depends()],
    filters: Annotated[GateFilters, Depends()],
) -> Tab | Response:
    """The tab of a task instance."""
    session = visitor.session
    runs = instance.runs(session)
    if len(runs) > 1:
        return _mapped(session, runs)
    run = runs[0] if runs else instance.forgotten()
    if runs and _is_other_task(run):
        return responses.Page("not_a_gate.html", NoReportPage.of_other_task(run))
    stoppers = stopped_by(run, session) if run.state in STOPPED_STATES else ()
    client = responses.store_client()
    found = reported(session, client, run, instance.attempt, is_forgotten=not runs)
    view = found.view
    if view is not None:
        return _report_page(visitor, client, found, view, instance.attempt, filters)
    if not runs:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No such task instance",
            f"Task {instance.task_id} has no instance in run {instance.run_id} of DAG "
            f"{instance.dag_id}: it was removed, or has not been scheduled yet.",
        )
    return _no_report_page(visitor, client, run, stoppers, found.problem)


def _no_report_page(
    visitor: airflow_users.Visitor,
    client: StoreClient,
    run: airflow.TaskRun,
    stoppers: tuple[Stopper, ...],
    problem: str | None,
) -> Tab:
    """The page of a gate without a report, with the ways out of a date that is open for it."""
    session = visitor.session
    task = (run.dag_id, run.task_id)
    recent = airflow.recent_runs(session, [task])
    known = runs_without_report(client, [run], recent)
    slices = slices_of(session, client, airflow_dags.GateTasks(frozenset([task]), {}), recent)
    own = [
        one
        for one in slices.open
        if one.state == NO_REPORT
        and one.task is not None
        and (one.task.run_id, one.map_index) == (run.run_id, run.map_index)
    ]
    clearing = airflow_clearing.clearing_of(session, own[0].task) if own and own[0].task else None
    short = _short_without_report(session, run, recent, slices.open) if own else None
    session.close()
    edits = visitor.may_edit(run.dag_id)
    objections = deciding.objections(
        run.dag_id,
        [],
        edits=edits,
        clears=visitor.may_clear(run.dag_id),
        is_known=True,
        read_only=client.read_only() if edits and own else None,
        waivable=False,
    )
    if own and own[0].date is None:
        objections |= {kind: objections[kind] or DATE_UNKNOWN for kind in (ACKNOWLEDGED, CLOSED)}
    name = known[0].gate if known else f"{run.dag_id}.{run.task_id}"
    day = known[0].date if known else None
    return responses.Page(
        "no_report.html",
        NoReportPage(
            run=run,
            gate=name,
            date=day,
            is_open=bool(own),
            closing=slices.closed.get(run.attempt_id),
            acknowledgement=own[0].acknowledgement if own else None,
            stoppers=stoppers,
            problem=problem,
        ),
        key=key_of_slice(own[0]) if own else "",
        short=short,
        clearing=clearing,
        objections=objections,
        note_ids=deciding.note_ids(),
        token=form_token(visitor.user),
    )


def _short_without_report(
    session: Any,
    run: airflow.TaskRun,
    recent: Sequence[airflow.TaskRun],
    slices: Sequence[OpenSlice],
) -> deciding.InShort | None:
    """The answers about the open dates of a gate whose last run left no report; None if no date is
    known.

    :param recent: the last runs of the gate, of whose reports the target and the contract are.
    :param slices: the open dates of the gate.
    """
    dates = [one.date for one in slices if one.date is not None]
    if not dates:
        return None
    row = gate_rows(recent, {})[0]
    return deciding.InShort(
        since=min(dates),
        found=run.ended,
        worst=None,
        failing="",
        others=0,
        held_back=deciding.HeldBack(None, len(dates), row.promotions),
        answer="",
        dataset="",
        arrival=None,
        downstream=deciding.Downstream.of(session, run.dag_id, run.task_id, run.run_id),
        owners=airflow_dags.owners_of(session, run.dag_id),
        contract=row.contracts[0] if row.contracts else None,
    )


def _is_other_task(run: airflow.TaskRun) -> bool:
    """True for a task that is not a gate."""
    return view_of_summary(run.pushed) is None and "Gate" not in (run.operator or "")


def _report_page(
    visitor: airflow_users.Visitor,
    client: StoreClient,
    found: _TaskReports,
    view: report_view.ReportView,
    attempt: str,
    filters: GateFilters,
) -> Tab:
    """The page of a report.

    :param attempt: the attempt in the address; empty if it has none.
    """
    chosen = found.chosen
    context = _Context()
    if chosen is not None:
        reads_code = visitor.may_read_code(found.run.dag_id)
        context = _Context.of(client, chosen, reads_code=reads_code)
    history = context.history(chosen)
    good = _last_good(chosen, history)
    changed = _changed_lines(client, context.sources.found, good)
    assertions = _assertions(found.run, view, history)
    clearing = _clearing(visitor.session, found, view.outcome)
    mark = airflow_dags.mark_of(visitor.session, found.run)
    visitor.session.close()
    page = _gate_page(found, view, context, assertions, filters, clearing, mark)
    parts = _parts(found.reports, chosen)
    root = client.root if view.is_whole else view.results_root
    edits = visitor.may_edit(found.run.dag_id)
    dates = _open_dates(visitor.session, client, found, clearing)
    return responses.Page(
        "gate.html",
        page,
        is_forgotten=found.is_forgotten,
        filters=filters,
        sources=sources_of(assertions, context.sources.found, changed),
        chosen=chosen,
        attempts=_attempts(found.reports),
        history=history,
        let=_let_through(view),
        changes=_changes(chosen, good),
        changed_lines=changed,
        shadow_changes=shadow_changes(chosen) if chosen is not None else [],
        parts=parts,
        attempt=_attempt_in_links(chosen, parts) if attempt else "",
        root=shlex.quote(root) if root else "",
        waived={(waiver.check, waiver.name): waiver for waiver in page.waivers},
        labels={(label.check, label.name): label for label in page.labels},
        edits=edits,
        read_only=client.read_only() if edits and chosen is not None else None,
        token=form_token(visitor.user),
        **_deciding(visitor, client, dates, found, view),
    )


def _deciding(
    visitor: airflow_users.Visitor,
    client: StoreClient,
    dates: deciding.OpenDates | None,
    found: _TaskReports,
    view: report_view.ReportView,
) -> dict[str, Any]:
    """The values of the answers and of the ways out; None for a report that is not open."""
    if dates is None:
        return {"short": None, "ways": None}
    run, incident = found.run, dates.group[0]
    owners = airflow_dags.owners_of(visitor.session, run.dag_id)
    return {
        "short": deciding.in_short(dates, owners, view.contract),
        "ways": deciding.ways_out(visitor, client, dates),
        "fields": {
            "dag_id": run.dag_id,
            "task_id": run.task_id,
            "map_index": run.map_index if run.map_index >= 0 else "",
            "date": incident.date,
            "report": view.run_id,
        },
        "latest": datetime.now(timezone.utc).date() + LONGEST_WAIVER,
        "shown": " ".join(sorted(bad.run_id for bad in incident.last_of_each)),
    }


@dataclass(frozen=True, slots=True)
class LetThrough:
    """Failures that did not stop a gate: the worst one, the number of the others, and who has let
    them pass, and why."""

    verdict: Verdict
    others: int
    decisions: tuple[str, ...]


def _let_through(view: report_view.ReportView) -> LetThrough | None:
    """The failures of a gate that was accepted or warned; None if its headline says more: rows that
    were not promoted, or assertions that were not evaluated."""
    if view.outcome not in (Outcome.ACCEPTED, Outcome.WARNED) or view.partial is not None:
        return None
    failed = [one for one in view.verdicts if one.status is Status.FAILED]
    is_more = any(view.lacks(one) or one.status is Status.ERROR for one in view.verdicts)
    is_missing = any(one.version is None for one in view.promotions)
    if not failed or is_more or is_missing or view.not_evaluated or view.more_verdicts:
        return None
    decisions = [one.accepted_by or one.waived_by or "" for one in failed]
    in_words = [f"{words[:1].upper()}{words[1:]}" for words in dict.fromkeys(decisions) if words]
    return LetThrough(failed[0], len(failed) - 1, tuple(in_words))


def _assertions(
    run: airflow.TaskRun, view: report_view.ReportView, history: Sequence[GateReport]
) -> list[AssertionView]:
    earlier = histories(history, run.dag_id, run.task_id)
    return [
        assertion_view(verdict, view, earlier.get((verdict.check, verdict.name), ()))
        for verdict in view.verdicts
    ]


def _clearing(
    session: Any, found: _TaskReports, outcome: Outcome
) -> airflow_clearing.Clearing | None:
    """What clearing the task does; None if its newest report is good."""
    run = found.run
    if outcome not in _STOPS or found.is_superseded or found.is_forgotten:
        return None
    task = airflow.TaskRef(run.dag_id, run.run_id, run.task_id, run.map_index, run.label or None)
    clearing = airflow_clearing.clearing_of(session, task)
    session.close()
    return clearing


def _gate_page(
    found: _TaskReports,
    view: report_view.ReportView,
    context: _Context,
    assertions: Sequence[AssertionView],
    filters: GateFilters,
    clearing: airflow_clearing.Clearing | None,
    mark: airflow_dags.Mark | None,
) -> GatePage:
    now = datetime.now(timezone.utc)
    return GatePage(
        run=found.run,
        report=view,
        assertions=[assertion for assertion in assertions if filters.wants(assertion)],
        counts=Counter(assertion.state for assertion in assertions),
        is_superseded=found.is_superseded,
        shadow=found.chosen.shadow if found.chosen is not None else None,
        waivers=[waiver for waiver in context.waivers.found if waiver.is_active(now)],
        labels=context.labels.found,
        clearing=clearing,
        mark=mark,
        problem=found.problem or context.past.problem or context.sources.problem,
    )


def _attempt_in_links(chosen: GateReport | None, parts: Sequence[GateReport]) -> str:
    """The displayed attempt, for links that stay on it."""
    if chosen is None:
        return ""
    return responses.report_name(chosen.attempt.id, chosen.run_id if parts else "")


@router.get("/rows.csv", dependencies=[airflow_users.READS_DAG])
def failing_rows(
    session: airflow_users.SessionDep,
    instance: Annotated[RequestedInstance, Depends()],
    check: str = "",
    assertion: str = "",
) -> Response:
    """The stored failing rows of an assertion, all columns, as a file for spreadsheets."""
    runs = instance.runs(session)
    run = runs[0] if runs else instance.forgotten()
    client = responses.store_client()
    found = reported(session, client, run, instance.attempt, is_forgotten=not runs)
    rows: tuple[FailingRow, ...] = ()
    if found.chosen is not None and len(runs) < 2:
        rows = _failing_rows(found.chosen, check, assertion)
    if not rows:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No failing rows",
            found.problem or "The results store has no failing rows of this assertion.",
        )
    return Response(
        csv_of(rows),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="failing_rows.csv"'},
    )


def _failing_rows(report: GateReport, check: str, name: str) -> tuple[FailingRow, ...]:
    for verdict in report.verdicts:
        if (verdict.check, verdict.name) == (check, name):
            return verdict.failing_rows
    return ()


def reported(
    session: Any, client: StoreClient, run: airflow.TaskRun, attempt: str, *, is_forgotten: bool
) -> _TaskReports:
    """The reports of the attempts of a task instance. If Airflow has deleted the instance, only the
    reports of its attempt, if it belonged to the same gate. The session is closed before the query
    to the store.

    :param attempt: the attempt to display, as in an address.
    """
    attempts: frozenset[str] = frozenset()
    if not is_forgotten:
        attempts = airflow.attempts_of(session, run)
    elif _is_of_task(session, client, run):
        attempts = frozenset([run.attempt_id])
    session.close()
    answer = client.ask(lambda store: store.reports_of(attempts))
    reports = last_judged(answer.found)
    chosen = chosen_report(run.pushed, reports, attempt)
    return _TaskReports(run, is_forgotten, reports, chosen, answer.problem)


def _is_of_task(
    session: airflow_users.SessionDep, client: StoreClient, run: airflow.TaskRun
) -> bool:
    """True if an attempt that Airflow has deleted belonged to the gate of this task: attempts of
    the task that Airflow still has reported on that gate."""
    if not run.attempt_id:
        return False
    recent = airflow.recent_runs(session, [(run.dag_id, run.task_id)])
    attempts = {recent_run.attempt_id for recent_run in recent}
    own = client.ask(lambda store: store.gates_of({run.attempt_id})).found
    return bool(own) and set(own) <= set(client.ask(lambda store: store.gates_of(attempts)).found)


def _mapped(session: Any, found: tuple[airflow.TaskRun, ...]) -> Tab:
    """The instances of a mapped task to choose from."""
    client = responses.store_client()
    runs = with_summaries(client, found)
    is_gate = any(view_of_summary(run.pushed) for run in runs)
    if not is_gate and "Gate" not in (runs[0].operator or ""):
        return responses.Page("not_a_gate.html", NoReportPage.of_other_task(runs[0]))
    tasks = airflow_dags.GateTasks(frozenset([(runs[0].dag_id, runs[0].task_id)]), {})
    # The page is about one run: which other dates are open does not matter.
    closed = slices_of(session, client, tasks, runs).of_instances(())
    session.close()
    (row,) = with_closed_dates(gate_rows(runs, {}), closed)
    instances = [(run, with_closed_dates(gate_rows([run], {}), closed)[0]) for run in runs]
    instances.sort(key=lambda instance: instance[0].map_index)
    attempts = {run.attempt_id for run in runs}
    places = client.ask(lambda store: judged_places(store, attempts))
    return responses.Page(
        "mapped.html",
        MappedPage(row, instances, places.problem),
        most=airflow.MOST_INSTANCES,
        places=dict(places.found),
    )
