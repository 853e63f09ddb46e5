"""The tab of a task: the result of its gate, assertion by assertion, and its history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from dqx_airflow.diagnostics.verdicts import is_age, shadow_changes
from dqx_airflow.plugin.addresses import report_address, report_name
from dqx_airflow.plugin.airflow import TaskRun
from dqx_airflow.plugin.chart import Chart, PastValue, chart_of, past_of
from dqx_airflow.plugin.failing_rows import Sample, failing_total, samples_of
from dqx_airflow.plugin.operands import operands_of
from dqx_airflow.plugin.report_view import ReportView, view_of_report, view_of_summary
from dqx_airflow.plugin.source_view import SourceView, sources_of
from dqx_airflow.plugin.value_format import reading_of
from dqx_airflow.values import GateReport, SourceFile, Status, Verdict, worst_outcome

SPARK_WIDTH, SPARK_HEIGHT = 168, 34
WIDE_WIDTH, WIDE_HEIGHT = 640, 132

AssertionKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class GateFilters:
    """The filters on assertions; empty strings mean all."""

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
    samples: tuple[Sample, ...]
    failing: str
    operands: tuple[tuple[str, str], ...]

    @property
    def state(self) -> str:
        """Its displayed status: a failure that does not block is a warning."""
        if self.verdict.status is Status.FAILED and not self.blocks:
            return "warned"
        return "not evaluated" if self.lacks else self.verdict.status.value


NO_FILTERS = GateFilters()


@dataclass(frozen=True, slots=True)
class GateAttempt:
    """An attempt of the task that reported. `id` is Airflow's."""

    id: str
    number: int
    outcome: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class ReportPart:
    """One of several reports of an attempt: of a date, and of a suite. `name` is that of the report
    in addresses."""

    name: str
    date: date
    suite: str
    outcome: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """An earlier run of the gate, and the address of its report."""

    date: date
    outcome: str
    href: str


@dataclass(frozen=True, slots=True)
class ShadowView:
    """The result of the shadow suite of a gate. `changes` are the verdicts that differ, as pairs of
    the gate's and the shadow's; None if the suite does not have the assertion."""

    name: str
    outcome: str
    problem: str | None
    changes: tuple[tuple[Verdict | None, Verdict | None], ...]


@dataclass(frozen=True, slots=True)
class GatePage:
    """The report of an attempt, with its sources, other attempts, and the history of the gate."""

    report: ReportView
    assertions: tuple[AssertionView, ...]
    filters: GateFilters
    sources: tuple[SourceView, ...]
    attempts: tuple[GateAttempt, ...]
    past: tuple[EarlierRun, ...]
    is_superseded: bool
    shadow: ShadowView | None = None
    parts: tuple[ReportPart, ...] = ()

    @property
    def wanted(self) -> tuple[AssertionView, ...]:
        """The assertions that match the filters."""
        return tuple(assertion for assertion in self.assertions if self.filters.wants(assertion))

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of assertions of each displayed status, ignoring the filters."""
        return Counter(assertion.state for assertion in self.assertions)

    @property
    def choices(self) -> Mapping[str, tuple[str, ...]]:
        """What the filters can ask for."""
        verdicts = [assertion.verdict for assertion in self.assertions]
        return {
            "status": tuple(sorted(self.counts)),
            "severity": tuple(sorted({verdict.severity.value for verdict in verdicts})),
            "column": tuple(sorted({verdict.column for verdict in verdicts if verdict.column})),
        }


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
        if report_name(report.attempt.id, report.run_id) == attempt_id:
            return report
    of_attempt = [report for report in reports if report.attempt.id == attempt_id]
    if of_attempt:
        return _worst(of_attempt)
    summary = view_of_summary(pushed)
    if summary is None:
        last = reports[0].attempt.id if reports else ""
        return (
            _worst([report for report in reports if report.attempt.id == last]) if reports else None
        )
    return next((report for report in reports if report.run_id == summary.run_id), None)


def _worst(reports: Sequence[GateReport]) -> GateReport:
    worst = worst_outcome(report.outcome for report in reports)
    return next(report for report in reports if report.outcome is worst)


def _attempts(reports: Sequence[GateReport], chosen: GateReport | None) -> Iterator[GateAttempt]:
    """The attempts, oldest first, each with the worst of its outcomes."""
    by_id: dict[str, list[GateReport]] = {}
    for report in reversed(reports):
        by_id.setdefault(report.attempt.id, []).append(report)
    for attempt_id, own in by_id.items():
        outcome = worst_outcome(report.outcome for report in own)
        yield GateAttempt(attempt_id, own[0].attempt.number, outcome.value, chosen in own)


def _parts(reports: Sequence[GateReport], chosen: GateReport | None) -> tuple[ReportPart, ...]:
    """The reports of the displayed attempt, by date and suite; empty if it has only one."""
    attempt = chosen.attempt.id if chosen else None
    keys: dict[tuple[str, date], GateReport] = {}
    for report in reports:
        if report.attempt.id == attempt:
            keys.setdefault((report.run_key.gate, report.run_key.date), report)
    if len(keys) < 2:
        return ()
    own = sorted(keys.values(), key=lambda report: (report.run_key.date, report.suite))
    return tuple(
        ReportPart(
            report_name(report.attempt.id, report.run_id),
            report.run_key.date,
            report.suite,
            report.outcome.value,
            report is chosen,
        )
        for report in own
    )


def gate_page(
    run: TaskRun,
    reports: Sequence[GateReport],
    chosen: GateReport | None,
    past: Sequence[GateReport] = (),
    sources: Sequence[SourceFile] = (),
    filters: GateFilters = NO_FILTERS,
) -> GatePage | None:
    """The page of a task instance; None if it has neither a report nor a summary.

    :param reports: the reports of its attempts, the one started last first.
    :param chosen: the report to display; None for the summary of the task.
    :param past: earlier reports of the gate, newest first.
    :param sources: the source files of the gate that the user may read.
    :param filters: the filters on assertions.
    """
    view = view_of_report(chosen) if chosen else view_of_summary(run.pushed)
    if view is None:
        return None
    history = _until(past, chosen) if chosen else ()
    return GatePage(
        report=view,
        assertions=_assertions(view, run, history),
        filters=filters,
        sources=sources_of(view.verdicts, view.fail_on, sources),
        attempts=tuple(_attempts(reports, chosen)),
        past=tuple(_past_run(run, report) for report in history),
        is_superseded=chosen is not None and chosen.attempt.id != run.attempt_id,
        shadow=_shadow_view(chosen) if chosen else None,
        parts=_parts(reports, chosen),
    )


def histories(
    reports: Iterable[GateReport], dag_id: str, task_id: str
) -> Mapping[AssertionKey, list[tuple[PastValue, Verdict]]]:
    """The verdicts of each assertion of a task, also as values of the past, in the order of the
    reports."""
    by_assertion: dict[AssertionKey, list[tuple[PastValue, Verdict]]] = {}
    for report in reports:
        key, attempt = report.run_key, report.attempt.id
        href = report_address(dag_id, task_id, key, attempt, report.run_id)
        for verdict in report.verdicts:
            past = past_of(report.run_key.date, verdict, href)
            by_assertion.setdefault((verdict.check, verdict.name), []).append((past, verdict))
    return by_assertion


def _past_run(run: TaskRun, report: GateReport) -> EarlierRun:
    key = report.run_key
    href = report_address(run.dag_id, run.task_id, key, report.attempt.id, report.run_id)
    return EarlierRun(key.date, report.outcome.value, href)


def _shadow_view(report: GateReport) -> ShadowView | None:
    shadow = report.shadow
    if shadow is None:
        return None
    outcome = shadow.outcome.value if shadow.outcome else ""
    return ShadowView(shadow.name, outcome, shadow.problem, tuple(shadow_changes(report)))


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


def _assertions(
    view: ReportView, run: TaskRun, history: Sequence[GateReport]
) -> tuple[AssertionView, ...]:
    earlier = histories(history, run.dag_id, run.task_id)
    return tuple(
        _assertion(verdict, view, earlier.get((verdict.check, verdict.name), ()))
        for verdict in view.verdicts
    )


def _assertion(
    verdict: Verdict, view: ReportView, earlier: Sequence[tuple[PastValue, Verdict]]
) -> AssertionView:
    past = [value for value, _ in earlier]
    read = reading_of(verdict)
    is_old = is_age(verdict.expression)
    bad = verdict.status in (Status.FAILED, Status.ERROR)
    return AssertionView(
        verdict=verdict,
        blocks=bad and (view.fail_on is None or verdict.can_block(view.fail_on)),
        lacks=view.lacks(verdict),
        spark=chart_of(verdict.name, past, SPARK_WIDTH, SPARK_HEIGHT, read, is_age=is_old),
        wide=chart_of(verdict.name, past, WIDE_WIDTH, WIDE_HEIGHT, read, is_age=is_old),
        samples=samples_of(verdict.failing_rows),
        failing=failing_total(verdict, view.datasets),
        operands=operands_of(verdict),
    )
