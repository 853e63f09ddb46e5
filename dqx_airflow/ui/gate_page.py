"""The tab of a task: the result of its gate, assertion by assertion, and its history; its failing
rows as a file; and the list of all runs of the gate.

The source texts of a gate have the lines of its assertions marked. If the results store has the
texts they are displayed completely, with long stretches without a failure folded. Otherwise only
the lines in the verdicts are known.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from http import HTTPStatus
from itertools import chain, groupby, pairwise
from typing import Annotated, Any, NamedTuple, TypeAlias

from fastapi import Depends, Response

from dqx_airflow.diagnostics.verdicts import is_age, shadow_changes
from dqx_airflow.results.alerts import labels_of
from dqx_airflow.results.decisions import waivers_of, why_not_acceptable
from dqx_airflow.results.incidents import Changes, is_good_before, what_changed
from dqx_airflow.results.past_days import Label
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.schema import RunRow
from dqx_airflow.ui import airflow, report_view, responses
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import Cell, GateRow, gate_rows
from dqx_airflow.ui.chart import Chart, PastValue, chart_of, past_of
from dqx_airflow.ui.responses import form_token
from dqx_airflow.ui.store import Answer, StoreClient
from dqx_airflow.values import GateReport, Outcome, SourceFile, Span, Status, Verdict, worst_outcome
from dqx_airflow.values.report import ShadowReport, Waiver
from dqx_airflow.values.request import day_in

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
    before = airflow.graph_of_dag(session, run.dag_id).before(run.task_id)
    stoppers = []
    for gate_run in airflow.ended_gates(session, run):
        if before and gate_run.task_id not in before:
            continue
        report = report_view.view_of_summary(gate_run.pushed)
        stops = report.outcome in _STOPS if report else gate_run.state == "failed"
        if stops and gate_run.state != "success":
            stoppers.append(Stopper(gate_run, report))
    return tuple(sorted(stoppers, key=lambda stopper: stopper.report is None))


SPARK_WIDTH, SPARK_HEIGHT = 168, 34
WIDE_WIDTH, WIDE_HEIGHT = 640, 132

AssertionKey: TypeAlias = tuple[str, str]


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


@dataclass(frozen=True, slots=True)
class AssertionView:
    """An assertion with its history. `blocks` is set if its failure counts against the task,
    `lacks` if it could fail the gate and was not evaluated. `failing` is the number of failing rows
    and of all rows, `operands` the values behind a compound value."""

    verdict: Verdict
    blocks: bool
    lacks: bool
    spark: Chart | None
    wide: Chart | None
    samples: tuple[report_view.Sample, ...]
    failing: str
    operands: tuple[tuple[str, str], ...]

    @property
    def state(self) -> str:
        """Its displayed status: a failure that does not block is a warning."""
        if self.verdict.status is Status.FAILED and not self.blocks:
            return "warned"
        return "not evaluated" if self.lacks else self.verdict.status.value


def chosen_report(
    pushed: object, reports: Sequence[GateReport], attempt_id: str
) -> GateReport | None:
    """The stored report to display: of several reports of an attempt the worst one. None if the
    store does not have it.

    :param pushed: the summary that the task pushed.
    :param reports: the reports of its attempts, the one started last first.
    :param attempt_id: an attempt, or one of its reports. If it is neither, the report of the
        summary is displayed, or without a summary that of the last attempt.
    """
    for report in reports:
        if responses.report_name(report.attempt.id, report.run_id) == attempt_id:
            return report
    of_attempt = [report for report in reports if report.attempt.id == attempt_id]
    if of_attempt:
        return _worst(of_attempt)
    summary = report_view.view_of_summary(pushed)
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


def histories(
    reports: Iterable[GateReport], dag_id: str, task_id: str
) -> Mapping[AssertionKey, list[tuple[PastValue, Verdict]]]:
    """The verdicts of each assertion of a task, also as values of the past, in the order of the
    reports."""
    by_assertion: dict[AssertionKey, list[tuple[PastValue, Verdict]]] = {}
    for report in reports:
        key, attempt = report.run_key, report.attempt.id
        href = responses.report_address(dag_id, task_id, key, attempt, report.run_id)
        for verdict in report.verdicts:
            past = past_of(report.run_key.date, verdict, href)
            by_assertion.setdefault((verdict.check, verdict.name), []).append((past, verdict))
    return by_assertion


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


def _changes(chosen: GateReport | None, history: Sequence[GateReport]) -> Changes:
    """The changes between the last good report in a history and a chosen bad one."""
    if chosen is None or chosen.outcome not in _STOPS:
        return {}
    good = (report for report in reversed(history) if is_good_before(report, chosen))
    return what_changed([chosen], next(good, None))


def _assertion(
    verdict: Verdict, view: report_view.ReportView, earlier: Sequence[tuple[PastValue, Verdict]]
) -> AssertionView:
    past = [value for value, _ in earlier]
    read = report_view.reading_of(verdict)
    is_old = is_age(verdict.expression)
    return AssertionView(
        verdict=verdict,
        blocks=report_view.is_bad(verdict)
        and (view.fail_on is None or verdict.can_block(view.fail_on)),
        lacks=view.lacks(verdict),
        spark=chart_of(verdict.name, past, SPARK_WIDTH, SPARK_HEIGHT, read, is_age=is_old),
        wide=chart_of(verdict.name, past, WIDE_WIDTH, WIDE_HEIGHT, read, is_age=is_old),
        samples=report_view.samples_of(verdict.failing_rows),
        failing=report_view.failing_total(verdict, view.datasets),
        operands=report_view.operands_of(verdict),
    )


RUNS_OF_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class RunFilters(responses.Filters):
    """The filters of the list of runs."""

    outcome: str = ""
    since: str = ""
    until: str = ""
    instance: str = ""
    part: str = ""

    def wanted(self, gates: Sequence[str]) -> RunsWanted:
        """The matching runs; invalid filters match all."""
        return RunsWanted(
            gates,
            next((outcome for outcome in Outcome if outcome.value == self.outcome), None),
            day_in(self.since),
            day_in(self.until),
            responses.whole_number(self.instance),
            {"partial": True, "whole": False}.get(self.part),
        )


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

    def runs(self, session: airflow.SessionDep) -> tuple[airflow.TaskRun, ...]:
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
    them by status; `is_superseded` is set if a later attempt has replaced the report."""

    run: airflow.TaskRun
    report: report_view.ReportView
    assertions: list[AssertionView]
    counts: Mapping[str, int]
    is_superseded: bool
    shadow: ShadowReport | None
    waivers: list[Waiver]
    labels: tuple[Label, ...]
    problem: str | None


class NoReportPage(NamedTuple):
    """A task instance without a report, and the tasks that kept it from running."""

    run: airflow.TaskRun
    stoppers: tuple[Stopper, ...]
    problem: str | None


class MappedPage(NamedTuple):
    """The instances of a mapped task: `row` is about all of them, each of `instances` about one."""

    row: GateRow
    instances: list[tuple[airflow.TaskRun, GateRow]]
    problem: str | None


Tab: TypeAlias = responses.Page[GatePage | NoReportPage | MappedPage]


class RunsPage(NamedTuple):
    """A page of the runs of a gate. `counts` are the runs by outcome, `silent` the last runs
    without a report, and `left` those in Airflow if the results store knows none."""

    gate: str
    rows: tuple[RunRow, ...]
    paging: responses.Paging
    counts: dict[str, int]
    silent: list[airflow.TaskRun]
    left: tuple[Cell, ...]
    problem: str | None


@dataclass(frozen=True, slots=True)
class _Stored:
    """The stored context of a report: earlier reports, its sources, labels and waivers."""

    past: Answer[GateReport] = field(default_factory=Answer)
    sources: Answer[SourceFile] = field(default_factory=Answer)
    labels: Answer[Label] = field(default_factory=Answer)
    waivers: Answer[Waiver] = field(default_factory=Answer)

    @classmethod
    def of(cls, client: StoreClient, report: GateReport, *, reads_code: bool) -> _Stored:
        """Queries the store about a report; its sources only for users who may read the code."""
        key = report.run_key
        return cls(
            labels=client.ask(lambda store: labels_of(store, key)),
            waivers=client.ask(lambda store: waivers_of(store, [key.gate])),
            past=client.ask(
                lambda store: store.past_reports({key.gate}, key.date, map_index=key.map_index)
            ),
            sources=client.ask(lambda store: store.sources_of(report)) if reads_code else Answer(),
        )


@router.get("/gate", dependencies=[airflow.READS_DAG])
def gate(
    visitor: airflow.VisitorDep,
    instance: Annotated[RequestedInstance, Depends()],
    filters: Annotated[GateFilters, Depends()],
) -> Tab | Response:
    """The tab of a task instance."""
    session = visitor.session
    runs = instance.runs(session)
    if len(runs) > 1:
        session.close()
        return _mapped(runs)
    run = runs[0] if runs else instance.forgotten()
    pushed = report_view.view_of_summary(run.pushed)
    if runs and pushed is None and "Gate" not in (run.operator or ""):
        return responses.Page("not_a_gate.html", NoReportPage(run, (), None))
    stoppers = stopped_by(run, session) if run.state in STOPPED_STATES else ()
    edits = visitor.may_edit(instance.dag_id)
    client = responses.store_client()
    reports, chosen, problem = reported(
        session, client, run, instance.attempt, is_forgotten=not runs
    )
    stored = _Stored()
    if chosen is not None:
        stored = _Stored.of(client, chosen, reads_code=visitor.may_read_code(instance.dag_id))
    view = report_view.view_of_report(chosen) if chosen else pushed
    if view is None and not runs:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No such task instance",
            f"Task {instance.task_id} has no instance in run {instance.run_id} of DAG "
            f"{instance.dag_id}: it was removed, or has not been scheduled yet.",
        )
    if view is None:
        return responses.Page("no_report.html", NoReportPage(run, stoppers, problem))
    now, root = datetime.now(timezone.utc), client.root if view.is_whole else view.results_root
    history = _until(stored.past.found, chosen) if chosen else ()
    earlier = histories(history, run.dag_id, run.task_id)
    assertions = [
        _assertion(verdict, view, earlier.get((verdict.check, verdict.name), ()))
        for verdict in view.verdicts
    ]
    parts = _parts(reports, chosen)
    attempt = ""
    if chosen and instance.attempt:
        attempt = responses.report_name(chosen.attempt.id, chosen.run_id if parts else "")
    page = GatePage(
        run=run,
        report=view,
        assertions=[assertion for assertion in assertions if filters.wants(assertion)],
        counts=Counter(assertion.state for assertion in assertions),
        is_superseded=chosen is not None and chosen.attempt.id != run.attempt_id,
        shadow=chosen.shadow if chosen else None,
        waivers=[one for one in stored.waivers.found if one.is_active(now)],
        labels=stored.labels.found,
        problem=problem or stored.past.problem or stored.sources.problem,
    )
    is_last = edits and chosen is not None and not page.is_superseded
    clears = is_last and visitor.may_clear(instance.dag_id)
    return responses.Page(
        "gate.html",
        page,
        is_forgotten=not runs,
        filters=filters,
        sources=sources_of(assertions, stored.sources.found),
        chosen=chosen,
        attempts=_attempts(reports),
        history=history,
        changes=_changes(chosen, history),
        shadow_changes=[*shadow_changes(chosen)] if chosen and chosen.shadow else (),
        parts=parts,
        attempt=attempt,
        root=shlex.quote(root) if root else "",
        waivers={(one.check, one.name): one for one in page.waivers},
        labels={(label.check, label.name): label for label in stored.labels.found},
        edits=edits,
        read_only=client.read_only() if edits and chosen else None,
        token=form_token(visitor.user),
        acceptable=clears and chosen is not None and not why_not_acceptable(chosen),
        clears=clears and view.outcome in _STOPS,
    )


@router.get("/rows.csv", dependencies=[airflow.READS_DAG])
def failing_rows(
    session: airflow.SessionDep,
    instance: Annotated[RequestedInstance, Depends()],
    check: str = "",
    name: str = "",
) -> Response:
    """The stored failing rows of an assertion, all columns, as a file for spreadsheets."""
    runs = instance.runs(session)
    run = runs[0] if runs else instance.forgotten()
    client = responses.store_client()
    _, chosen, problem = reported(session, client, run, instance.attempt, is_forgotten=not runs)
    verdicts = chosen.verdicts if chosen and len(runs) < 2 else ()
    own = (verdict for verdict in verdicts if (verdict.check, verdict.name) == (check, name))
    rows = next((verdict.failing_rows for verdict in own), ())
    if not rows:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No failing rows",
            problem or "The results store has no failing rows of this assertion.",
        )
    return Response(
        report_view.csv_of(rows),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="failing_rows.csv"'},
    )


@router.get("/runs", dependencies=[airflow.READS_DAG])
def runs_of_gate(
    session: airflow.SessionDep,
    filters: Annotated[RunFilters, Depends()],
    page: responses.PageNumber,
    dag_id: str = "",
    task_id: str = "",
) -> responses.Page[RunsPage] | Response:
    """All runs of a gate."""
    recent = airflow.recent_runs(session, [(dag_id, task_id)])
    if not any(run.is_gate for run in recent):
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No such gate",
            f"Task {task_id} of DAG {dag_id} has not reported as a gate.",
        )
    (row,) = gate_rows(recent, {})
    ended = airflow.ended_runs(session, dag_id, task_id)
    silent = [run for run in ended if report_view.view_of_summary(run.pushed) is None]
    session.close()
    client = responses.store_client()
    gates = client.ask(lambda store: store.gates_of({run.attempt_id for run in recent}))
    wanted = filters.wanted(gates.found)
    counted = client.ask(lambda store: store.count_runs(wanted))
    counts = dict(counted.found)
    total = sum(counts.values()) if wanted.outcome is None else counts.get(wanted.outcome, 0)
    paging = responses.Paging.of(page, total, RUNS_OF_A_PAGE)
    lines = client.ask(lambda store: store.runs(wanted, RUNS_OF_A_PAGE, paging.skipped))
    at = partial(responses.address, "runs", dag_id=dag_id, task_id=task_id)
    return responses.Page(
        "runs.html",
        RunsPage(
            gate=row.gate,
            rows=lines.found,
            paging=paging,
            counts={outcome.value: counts.get(outcome.value, 0) for outcome in Outcome},
            silent=silent[:_MOST_SILENT],
            left=() if gates.found else row.cells,
            problem=gates.problem or counted.problem or lines.problem,
        ),
        dag_id=dag_id,
        task_id=task_id,
        at=lambda **changes: at(**{**filters.query, **changes}),
        filters=filters,
        is_mapped=any(run.map_index >= 0 for run in recent),
    )


def reported(
    session: Any, client: StoreClient, run: airflow.TaskRun, attempt: str, *, is_forgotten: bool
) -> tuple[tuple[GateReport, ...], GateReport | None, str | None]:
    """The reports of the attempts of a task instance, the report to display, and the problem if
    there are none. If Airflow has deleted the instance, only the reports of its attempt, if it
    belonged to the same gate. The session is closed before the query to the store."""
    if not is_forgotten:
        attempts = airflow.attempts_of(session, run)
    elif _is_of_task(session, client, run):
        attempts = frozenset([run.attempt_id])
    else:
        attempts = frozenset()
    session.close()
    answer = client.ask(lambda store: store.reports_of(attempts))
    # After an answer, an attempt has judged again.
    last: dict[object, str] = {}
    for one in answer.found:
        key = one.attempt.id, one.run_key
        last[key] = max(last.get(key, ""), one.answered or "")
    found = tuple(
        one for one in answer.found if (one.answered or "") == last[one.attempt.id, one.run_key]
    )
    return found, chosen_report(run.pushed, found, attempt), answer.problem


def _is_of_task(session: airflow.SessionDep, client: StoreClient, run: airflow.TaskRun) -> bool:
    """True if an attempt that Airflow has deleted belonged to the gate of this task: attempts of
    the task that Airflow still has reported on that gate."""
    if not run.attempt_id:
        return False
    recent = airflow.recent_runs(session, [(run.dag_id, run.task_id)])
    attempts = {recent_run.attempt_id for recent_run in recent}
    own = client.ask(lambda store: store.gates_of({run.attempt_id})).found
    return bool(own) and set(own) <= set(client.ask(lambda store: store.gates_of(attempts)).found)


def _mapped(runs: tuple[airflow.TaskRun, ...]) -> Tab:
    """The instances of a mapped task to choose from."""
    (row,) = gate_rows(runs, {})
    instances = [(run, gate_rows([run], {})[0]) for run in runs]
    is_gate = any(gate_row.latest.report for _, gate_row in instances)
    if not is_gate and "Gate" not in (runs[0].operator or ""):
        return responses.Page("not_a_gate.html", NoReportPage(runs[0], (), None))
    instances.sort(key=lambda instance: instance[0].map_index)
    attempts = {run.attempt_id for run in runs}
    places = responses.store_client().ask(lambda store: store.places_of(attempts))
    return responses.Page(
        "mapped.html",
        MappedPage(row, instances, places.problem),
        most=airflow.MOST_INSTANCES,
        places=dict(places.found),
    )


_AROUND = 3
_SHORT_FILE, _SHORT_STRETCH = 60, 6
_MOST_LINES = 2000
_LONGEST_LINE = 1000


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line, split at the highlighted span. `state` is that of its worst assertion, "warned" if
    its failure is one, empty if the line has no assertion. `notes` describe the failures that begin
    here."""

    number: int
    before: str
    span: str = ""
    after: str = ""
    state: str = ""
    notes: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        return self.state in ("failed", "error", "warned")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive lines, and `left_out` unknown ones after them."""

    lines: tuple[SourceLine, ...]
    is_folded: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class SourceView:
    """A file. One without failures is displayed on request."""

    file: str
    stretches: tuple[Stretch, ...]
    is_folded: bool
    lines: int


_Marks: TypeAlias = Sequence[tuple[Span, AssertionView]]
"""The assertions of a file with their positions, the worst first."""


def sources_of(
    assertions: Iterable[AssertionView], sources: Sequence[SourceFile]
) -> tuple[SourceView, ...]:
    """The files of a gate, those with failures first.

    :param assertions: the worst first.
    :param sources: the files as far as they are stored.
    """
    marks: dict[str, list[tuple[Span, AssertionView]]] = {}
    for assertion in assertions:
        if span := assertion.verdict.span:
            marks.setdefault(span.file, []).append((span, assertion))

    def rank(file: str) -> int:
        own = marks.get(file, ())
        is_bad = any(report_view.is_bad(assertion.verdict) for _, assertion in own)
        return 0 if is_bad else 1 if own else 2

    views = []
    room = _MOST_LINES
    for text in sorted(sources, key=lambda text: rank(text.name)):
        view = _whole(text, marks.get(text.name, ()), room)
        room -= sum(len(stretch.lines) for stretch in view.stretches)
        views.append(view)
    stored = {text.name for text in sources}
    for file in sorted(marks.keys() - stored):
        if excerpt := _excerpt(file, marks[file]):
            views.append(excerpt)
    return tuple(sorted(views, key=lambda view: rank(view.file)))


def _whole(source: SourceFile, marks: _Marks, most: int) -> SourceView:
    texts = source.text.split("\n")
    if texts[-1] == "":
        texts.pop()
    marked = _marked(dict(enumerate(texts, 1)), marks)
    lines = [
        marked.get(number) or SourceLine(number, _cut(text)) for number, text in enumerate(texts, 1)
    ]
    is_bad = any(line.is_bad for line in lines)
    stretches = tuple(_stretches(lines, is_bad=is_bad))
    return SourceView(source.name, _within(stretches, most), not is_bad, len(lines))


def _stretches(lines: Sequence[SourceLine], *, is_bad: bool) -> Iterator[Stretch]:
    """The lines in stretches, folded if they are far from all failures."""
    if not is_bad or len(lines) <= _SHORT_FILE:
        yield Stretch(tuple(lines))
        return
    near = {
        number
        for line in lines
        if line.is_bad
        for number in range(line.number - _AROUND, line.number + _AROUND + 1)
    }

    def is_folded(group: Sequence[SourceLine]) -> bool:
        return group[0].number not in near and len(group) >= _SHORT_STRETCH

    groups = [[*group] for _, group in groupby(lines, lambda line: line.number in near)]
    for folds, adjacent in groupby(groups, is_folded):
        yield Stretch(tuple(chain.from_iterable(adjacent)), folds)


def _within(stretches: Sequence[Stretch], most: int) -> tuple[Stretch, ...]:
    """The stretches with as many lines as fit, the folded ones last."""
    fitting: dict[int, Stretch] = {}
    for index, stretch in sorted(enumerate(stretches), key=lambda item: item[1].is_folded):
        lines = stretch.lines[: max(most, 0)]
        most -= len(lines)
        fitting[index] = replace(stretch, lines=lines, left_out=len(stretch.lines) - len(lines))
    return tuple(fitting[index] for index in range(len(stretches)))


def _excerpt(file: str, marks: _Marks) -> SourceView | None:
    """The lines in the verdicts; None if there are none."""
    known = [(span.line, assertion.verdict.source_line) for span, assertion in marks]
    texts = {number: text for number, text in known if text is not None}
    if not texts:
        return None
    marked = [line for _, line in sorted(_marked(texts, marks).items())]
    indent = min(len(line.before) - len(line.before.lstrip()) for line in marked)
    lines = [replace(line, before=line.before[indent:]) for line in marked]
    consecutive = groupby(enumerate(lines), lambda pair: pair[1].number - pair[0])
    groups = [tuple(line for _, line in group) for _, group in consecutive]
    gaps = [after[0].number - before[-1].number - 1 for before, after in pairwise(groups)]
    pairs = zip(groups, [*gaps, 0], strict=True)
    stretches = tuple(Stretch(group, left_out=gap) for group, gap in pairs)
    return SourceView(file, stretches, is_folded=False, lines=len(lines))


def _marked(texts: Mapping[int, str], marks: _Marks) -> dict[int, SourceLine]:
    """The lines with assertions, by number; the worst assertion of each counts."""
    lines: dict[int, SourceLine] = {}
    notes: dict[int, list[str]] = {}
    for span, assertion in marks:
        verdict, is_bad = assertion.verdict, report_view.is_bad(assertion.verdict)
        state = assertion.state if is_bad else verdict.status.value
        for number in range(span.line, min(span.end_line, span.line + _SHORT_FILE) + 1):
            if number in texts and number not in lines:
                lines[number] = _line(number, texts[number], span, state)
        if is_bad and span.line in texts:
            notes.setdefault(span.line, []).append(report_view.fault_of(verdict))
    return lines | {
        number: replace(lines[number], notes=tuple(own)) for number, own in notes.items()
    }


def _line(number: int, text: str, span: Span, state: str) -> SourceLine:
    text = _cut(text)
    indent = len(text) - len(text.lstrip())
    start = max(span.column - 1, 0) if number == span.line else indent
    end = max(span.end_column - 1, start) if number == span.end_line else len(text)
    return SourceLine(number, text[:start], text[start:end], text[end:], state)


def _cut(text: str) -> str:
    text = text.rstrip("\r")
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"
