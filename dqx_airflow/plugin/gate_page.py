"""The tab of a task: what became of its gate, assertion by assertion, and how it went before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from dqx_airflow.plugin.addresses import report_address
from dqx_airflow.plugin.airflow import TaskRun
from dqx_airflow.plugin.chart import Chart, Past, chart_of, past_of
from dqx_airflow.plugin.report_view import ReportView, view_of_report, view_of_summary
from dqx_airflow.plugin.source_view import SourceView, sources_of
from dqx_airflow.plugin.value_format import reading_of
from dqx_airflow.values import FailingRow, GateReport, SourceFile, Status, Verdict

SPARK_WIDTH, SPARK_HEIGHT = 168, 34
WIDE_WIDTH, WIDE_HEIGHT = 640, 132

_SHOWN_ROWS, _SHOWN_COLUMNS = 20, 12

AssertionKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """Failing rows as a table, as many as fit. A cell is None for NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    reasons: tuple[str, ...]
    more_rows: int
    more_columns: int


@dataclass(frozen=True, slots=True)
class AssertionView:
    """An assertion with its history. `blocks` says that its failure counts against the task,
    `lacks` that it could fail the gate and was not evaluated."""

    verdict: Verdict
    blocks: bool
    lacks: bool
    spark: Chart | None
    wide: Chart | None
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of the task that reported. `id` is Airflow's."""

    id: str
    number: int
    outcome: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class PastRun:
    """An earlier run of the gate, and the address of its report."""

    date: date
    outcome: str
    href: str


@dataclass(frozen=True, slots=True)
class GatePage:
    """The report of an attempt, as far as it is known, with what stands around it."""

    report: ReportView
    assertions: tuple[AssertionView, ...]
    sources: tuple[SourceView, ...]
    attempts: tuple[Attempt, ...]
    past: tuple[PastRun, ...]
    is_superseded: bool


def chosen_report(
    pushed: object, reports: Sequence[GateReport], attempt_id: str
) -> GateReport | None:
    """The stored report that is shown; None where it is that which the task left, or none.

    :param pushed: what the task left as its summary.
    :param reports: the reports of its attempts, the one started last first.
    :param attempt_id: the attempt that is asked for; the last one that reported where it is none.
    """
    asked = next((report for report in reports if report.attempt.id == attempt_id), None)
    if asked is not None:
        return asked
    summary = view_of_summary(pushed)
    if summary is None:
        return reports[0] if reports else None
    return next((one for one in reports if one.run_id == summary.run_id), None)


def gate_page(
    run: TaskRun,
    reports: Sequence[GateReport],
    chosen: GateReport | None,
    past: Sequence[GateReport] = (),
    sources: Sequence[SourceFile] = (),
) -> GatePage | None:
    """The page of a task instance; None where nothing is known of any report.

    :param reports: the reports of its attempts, the one started last first.
    :param chosen: the one of them that is shown, if it is one of them.
    :param past: earlier reports of the gate, newest first.
    :param sources: the texts that the gate went by, as far as they may be shown.
    """
    view = view_of_report(chosen) if chosen else view_of_summary(run.pushed)
    if view is None:
        return None
    history = _until(past, chosen) if chosen else ()
    return GatePage(
        report=view,
        assertions=_assertions(view, run, history),
        sources=sources_of(view.verdicts, view.fail_on, sources),
        attempts=tuple(
            Attempt(one.attempt.id, one.attempt.number, one.outcome.value, one is chosen)
            for one in reversed(reports)
        ),
        past=tuple(_past_run(run, one) for one in history),
        is_superseded=chosen is not None and chosen.attempt.id != run.attempt_id,
    )


def histories(
    reports: Iterable[GateReport], dag_id: str, task_id: str
) -> Mapping[AssertionKey, list[tuple[Past, Verdict]]]:
    """The verdicts of each assertion of a task, also as values of the past, in the order of the
    reports."""
    found: dict[AssertionKey, list[tuple[Past, Verdict]]] = {}
    for report in reports:
        href = report_address(dag_id, task_id, report.run_key, report.attempt.id)
        for verdict in report.verdicts:
            past = past_of(report.run_key.date, verdict, href)
            found.setdefault((verdict.check, verdict.name), []).append((past, verdict))
    return found


def sample_of(rows: Sequence[FailingRow]) -> Sample:
    """Failing rows as one table, as they are stored: what was masked is masked here."""
    cells = [_cells(failing.row) for failing in rows[:_SHOWN_ROWS]]
    names = tuple(dict.fromkeys(name for row in cells for name in row))
    columns = names[:_SHOWN_COLUMNS]
    return Sample(
        columns=columns,
        rows=tuple(tuple(row.get(column, "") for column in columns) for row in cells),
        reasons=tuple(failing.reason for failing in rows[:_SHOWN_ROWS]),
        more_rows=max(len(rows) - _SHOWN_ROWS, 0),
        more_columns=len(names) - len(columns),
    )


def _past_run(run: TaskRun, report: GateReport) -> PastRun:
    key = report.run_key
    href = report_address(run.dag_id, run.task_id, key, report.attempt.id)
    return PastRun(key.date, report.outcome.value, href)


def samples_of(rows: Sequence[FailingRow]) -> tuple[Sample, ...]:
    """Failing rows as a table for each dataset."""
    by_dataset: dict[str, list[FailingRow]] = {}
    for row in rows:
        by_dataset.setdefault(row.dataset, []).append(row)
    return tuple(map(sample_of, by_dataset.values()))


def _until(past: Sequence[GateReport], chosen: GateReport) -> tuple[GateReport, ...]:
    """The history of a report, oldest first, which ends with it, whatever superseded it."""
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
    verdict: Verdict, view: ReportView, earlier: Sequence[tuple[Past, Verdict]]
) -> AssertionView:
    past = [one for one, _ in earlier]
    read = reading_of(verdict)
    bad = verdict.status in (Status.FAILED, Status.ERROR)
    return AssertionView(
        verdict=verdict,
        blocks=bad and (view.fail_on is None or verdict.can_block(view.fail_on)),
        lacks=view.lacks(verdict),
        spark=chart_of(verdict.name, past, SPARK_WIDTH, SPARK_HEIGHT, read),
        wide=chart_of(verdict.name, past, WIDE_WIDTH, WIDE_HEIGHT, read),
        samples=samples_of(verdict.failing_rows),
    )


def _cells(row: str) -> dict[str, str | None]:
    """The cells of a row, numbers as they are written."""
    try:
        cells = json.loads(row, parse_int=str, parse_float=str)
    except ValueError:
        return {"row": row}
    if not isinstance(cells, dict):
        return {"row": row}
    return {name: _cell(value) for name, value in cells.items()}


def _cell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
