"""An assertion of a gate as displayed, with its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dqx_airflow.diagnostics.verdicts import is_age
from dqx_airflow.ui import report_view, responses
from dqx_airflow.ui.chart import Chart, PastValue, chart_of, past_of
from dqx_airflow.ui.failing_rows import Sample, samples_of
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.ui.verdict_text import failing_total, operands_of, reading_of
from dqx_airflow.values import GateReport, Status, Verdict

SPARK_WIDTH = 168
SPARK_HEIGHT = 34
WIDE_WIDTH = 640
WIDE_HEIGHT = 132

AssertionKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class AssertionView:
    """An assertion with its history. `blocks` is set if its failure counts against the task,
    `lacks` if it could fail the gate and was not evaluated. `failing` is the number of failing rows
    and of all rows, `operands` the values behind a compound value."""

    verdict: Verdict
    blocks: bool
    lacks: bool
    spark: NotInJson[Chart | None]
    wide: NotInJson[Chart | None]
    samples: tuple[Sample, ...]
    failing: str
    operands: tuple[tuple[str, str], ...]

    @property
    def state(self) -> str:
        """Its displayed status: a failure that does not block is a warning, unless someone has
        accepted or waived it."""
        if self.verdict.status is Status.FAILED and self.verdict.accepted_by:
            return "accepted"
        if self.verdict.status is Status.FAILED and self.verdict.waived_by:
            return "waived"
        if self.verdict.status is Status.FAILED and not self.blocks:
            return "warned"
        return "not evaluated" if self.lacks else self.verdict.status.value


def assertion_view(
    verdict: Verdict, view: report_view.ReportView, earlier: Sequence[tuple[PastValue, Verdict]]
) -> AssertionView:
    """An assertion of a report with its earlier values, oldest first."""
    past = [value for value, _ in earlier]
    read = reading_of(verdict)
    is_old = is_age(verdict.expression)
    return AssertionView(
        verdict=verdict,
        blocks=report_view.is_bad(verdict)
        and (view.fail_on is None or verdict.can_block(view.fail_on)),
        lacks=view.lacks(verdict),
        spark=chart_of(verdict.name, past, SPARK_WIDTH, SPARK_HEIGHT, read, is_age=is_old),
        wide=chart_of(verdict.name, past, WIDE_WIDTH, WIDE_HEIGHT, read, is_age=is_old),
        samples=samples_of(verdict.failing_rows),
        failing=failing_total(verdict, view.datasets),
        operands=operands_of(verdict),
    )


def histories(
    reports: Iterable[GateReport], dag_id: str, task_id: str
) -> Mapping[AssertionKey, list[tuple[PastValue, Verdict]]]:
    """The verdicts of each assertion of a task, also as values of the past, in the order of the
    reports."""
    by_assertion: dict[AssertionKey, list[tuple[PastValue, Verdict]]] = {}
    for report in reports:
        key = report.run_key
        attempt = report.attempt.id
        href = responses.report_address(dag_id, task_id, key, attempt, report.run_id)
        for verdict in report.verdicts:
            past = past_of(report.run_key.date, verdict, href)
            by_assertion.setdefault((verdict.check, verdict.name), []).append((past, verdict))
    return by_assertion
