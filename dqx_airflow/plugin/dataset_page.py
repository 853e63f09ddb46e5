"""The page of a dataset: what all gates found in it, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from dqx_airflow.plugin.addresses import report_address
from dqx_airflow.plugin.board_page import GateRow
from dqx_airflow.plugin.chart import Chart, Past, chart_of
from dqx_airflow.plugin.gate_page import WIDE_HEIGHT, WIDE_WIDTH, histories
from dqx_airflow.plugin.report_view import PromotionView, promotion_of
from dqx_airflow.plugin.value_format import Reading, reading_of
from dqx_airflow.values import DatasetSnapshot, GateReport, Status, Verdict

_SHOWN_ASSERTIONS = 100
_SHOWN_PAST = 30


@dataclass(frozen=True, slots=True)
class AssertionHistory:
    """An assertion about the dataset. `past` is oldest first, `newest` its last verdict, and `read`
    says how its values read."""

    newest: Verdict
    past: tuple[Past, ...]
    chart: Chart | None
    read: Reading

    @property
    def last_values(self) -> tuple[Past, ...]:
        """The last values, newest first."""
        return tuple(reversed(self.past))[:_SHOWN_PAST]

    @property
    def failures(self) -> int:
        return sum(past.status is Status.FAILED for past in self.past)


@dataclass(frozen=True, slots=True)
class Day:
    """What a gate read of the dataset on a date, whether that was promoted, and the address of the
    report."""

    date: date
    outcome: str
    snapshot: DatasetSnapshot
    promotion: PromotionView | None
    href: str

    @property
    def promoted(self) -> str:
        """The promotion as a sign of the chart says it."""
        done = self.promotion
        return "" if done is None or done.version is None else f"promoted, version {done.version}"


@dataclass(frozen=True, slots=True)
class GateHistory:
    """What one gate found in the dataset. `snapshot` is what it read last, `days` are newest
    first."""

    row: GateRow
    snapshot: DatasetSnapshot | None
    rows: Chart | None
    days: tuple[Day, ...]
    assertions: tuple[AssertionHistory, ...]
    more: int

    @property
    def is_promoting(self) -> bool:
        return any(day.promotion for day in self.days)


@dataclass(frozen=True, slots=True)
class DatasetPage:
    """The gates that the dataset goes through, worst first."""

    name: str
    gates: tuple[GateHistory, ...]
    more: int


def dataset_page(
    name: str,
    rows: Sequence[GateRow],
    past: Mapping[tuple[str, str], Sequence[GateReport]],
    more: int = 0,
) -> DatasetPage:
    """The page of a dataset.

    :param rows: the gates that have it.
    :param past: by DAG and task of a gate its reports, newest first.
    :param more: how many gates have it beyond these.
    """
    gates = (_gate(name, row, past.get((row.dag_id, row.task_id), ())) for row in rows)
    return DatasetPage(name, tuple(gates), more)


def _gate(name: str, row: GateRow, reports: Sequence[GateReport]) -> GateHistory:
    oldest_first = tuple(reversed(reports))
    days = [
        Day(
            report.run_key.date,
            report.outcome.value,
            snapshot,
            promotion_of(snapshot),
            report_address(row.dag_id, row.task_id, report.run_key, report.attempt.id),
        )
        for report in oldest_first
        for snapshot in report.datasets
        if snapshot.name == name
    ]
    newest = {(one.check, one.name) for one in reports[0].verdicts} if reports else set()
    counts = [
        Past(
            one.date.isoformat(),
            one.snapshot.rows,
            (),
            Status.PASSED,
            event=one.promoted,
            on=one.date,
            href=one.href,
        )
        for one in days
    ]
    assertions = [
        _assertion(found)
        for key, found in histories(oldest_first, row.dag_id, row.task_id).items()
        if key in newest and name in found[-1][1].datasets
    ]
    assertions.sort(key=lambda one: (-one.failures, one.newest.severity.value))
    return GateHistory(
        row=row,
        snapshot=days[-1].snapshot if days else None,
        rows=chart_of("rows", counts, WIDE_WIDTH, WIDE_HEIGHT),
        days=tuple(reversed(days))[:_SHOWN_PAST],
        assertions=tuple(assertions[:_SHOWN_ASSERTIONS]),
        more=max(len(assertions) - _SHOWN_ASSERTIONS, 0),
    )


def _assertion(found: Sequence[tuple[Past, Verdict]]) -> AssertionHistory:
    past = tuple(one for one, _ in found)
    newest = found[-1][1]
    read = reading_of(newest)
    chart = chart_of(newest.name, past, WIDE_WIDTH, WIDE_HEIGHT, read)
    return AssertionHistory(newest, past, chart, read)
