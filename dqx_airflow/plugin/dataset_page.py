"""The page of a dataset, identified by its location: the findings of all gates there, and their
times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from dqx_airflow.diagnostics.verdicts import is_age
from dqx_airflow.plugin.addresses import report_address
from dqx_airflow.plugin.board_page import GateRow, counts_line
from dqx_airflow.plugin.chart import Chart, PastValue, chart_of
from dqx_airflow.plugin.dataset_index import DatasetRow
from dqx_airflow.plugin.dataset_locations import is_at
from dqx_airflow.plugin.gate_page import WIDE_HEIGHT, WIDE_WIDTH, histories
from dqx_airflow.plugin.paging import Paging
from dqx_airflow.plugin.report_view import PromotionView, promotion_of
from dqx_airflow.plugin.value_format import Reading, reading_of
from dqx_airflow.values import DatasetSnapshot, EnforcedContract, GateReport, Status, Verdict

_GATES_OF_A_PAGE = 10
_SHOWN_ASSERTIONS = 100
_SHOWN_PAST = 30


@dataclass(frozen=True, slots=True)
class AssertionHistory:
    """An assertion about the dataset. `past` is oldest first, `newest` its last verdict, and `read`
    the format of its values."""

    newest: Verdict
    past: tuple[PastValue, ...]
    chart: Chart | None
    read: Reading

    @property
    def last_values(self) -> tuple[PastValue, ...]:
        """The last values, newest first."""
        return tuple(reversed(self.past))[:_SHOWN_PAST]

    @property
    def failures(self) -> int:
        return sum(past.status is Status.FAILED for past in self.past)


@dataclass(frozen=True, slots=True)
class DatasetDay:
    """The snapshot of the dataset that a gate read on a date, whether it was promoted, and the
    address of the report."""

    date: date
    outcome: str
    snapshot: DatasetSnapshot
    promotion: PromotionView | None
    href: str

    @property
    def promoted(self) -> str:
        """The promotion in the mark of the chart."""
        done = self.promotion
        return "" if done is None or done.version is None else f"promoted, version {done.version}"


@dataclass(frozen=True, slots=True)
class GateHistory:
    """The findings of one gate in the dataset. `names` are its names there, `snapshot` is what it
    last read, `days` are newest first, `counts` those of its last verdicts by status."""

    row: GateRow
    names: tuple[str, ...]
    snapshot: DatasetSnapshot | None
    rows: Chart | None
    days: tuple[DatasetDay, ...]
    assertions: tuple[AssertionHistory, ...]
    more: int
    counts: Mapping[Status, int]

    @property
    def is_promoting(self) -> bool:
        return any(day.promotion for day in self.days)

    @property
    def counted(self) -> str:
        """The number of its assertions about the dataset that failed in the last run."""
        return counts_line(self.counts) if self.counts else ""


@dataclass(frozen=True, slots=True)
class DatasetPage:
    """A location, and the gates that read it, worst first: page `page` of `pages` of them in full.

    `names` are its names in gates, `promoted_by` are the gates that promote rows into it.
    """

    location: str
    names: tuple[str, ...]
    rows: tuple[GateRow, ...]
    promoted_by: tuple[GateRow, ...]
    gates: tuple[GateHistory, ...]
    page: int
    pages: int

    @property
    def label(self) -> str:
        """Its name in gates, or its location."""
        return ", ".join(self.names) or self.location

    @property
    def contracts(self) -> tuple[EnforcedContract, ...]:
        """The contracts that gates enforce on it, each with its versions."""
        contracts = {
            (contract.id, contract.version): contract
            for row in self.rows
            for contract in row.contracts
        }
        return tuple(contracts.values())


def dataset_page(
    dataset: DatasetRow,
    past: Mapping[tuple[str, str], Sequence[GateReport]],
    paging: Paging,
) -> DatasetPage:
    """The page of a dataset.

    :param past: by DAG and task of a gate its reports, newest first, for those displayed in full.
    """
    shown = paging.shown(dataset.gates)
    gates = (_gate(dataset.location, row, past.get((row.dag_id, row.task_id), ())) for row in shown)
    return DatasetPage(
        dataset.location,
        dataset.names,
        dataset.gates,
        dataset.promoted_by,
        tuple(gates),
        paging.number,
        paging.pages,
    )


def paging_of(dataset: DatasetRow, page: int) -> Paging:
    """The nearest page of the gates of a dataset."""
    return Paging.of(page, len(dataset.gates), _GATES_OF_A_PAGE)


def _gate(location: str, row: GateRow, reports: Sequence[GateReport]) -> GateHistory:
    oldest_first = [report for report in reversed(reports) if _names(location, report)]
    days = [
        DatasetDay(
            report.run_key.date,
            report.outcome.value,
            snapshot,
            promotion_of(snapshot),
            report_address(row.dag_id, row.task_id, report.run_key, report.attempt.id),
        )
        for report in oldest_first
        for snapshot in report.datasets
        if is_at(location, report.run_key.gate, snapshot)
    ]
    last = oldest_first[-1] if oldest_first else None
    names = _names(location, last) if last else ()
    newest = (
        [verdict for verdict in last.verdicts if {*names} & {*verdict.datasets}] if last else []
    )
    keys = {(verdict.check, verdict.name) for verdict in newest}
    counts = [
        PastValue(
            day.date.isoformat(),
            day.snapshot.rows,
            (),
            Status.PASSED,
            event=day.promoted,
            on=day.date,
            href=day.href,
        )
        for day in days
    ]
    assertions = [
        _assertion(history)
        for key, history in histories(oldest_first, row.dag_id, row.task_id).items()
        if key in keys
    ]
    assertions.sort(key=lambda assertion: (-assertion.failures, assertion.newest.severity.value))
    return GateHistory(
        row=row,
        names=names,
        snapshot=days[-1].snapshot if days else None,
        rows=chart_of("rows", counts, WIDE_WIDTH, WIDE_HEIGHT),
        days=tuple(reversed(days))[:_SHOWN_PAST],
        assertions=tuple(assertions[:_SHOWN_ASSERTIONS]),
        more=max(len(assertions) - _SHOWN_ASSERTIONS, 0),
        counts=Counter(verdict.status for verdict in newest),
    )


def _names(location: str, report: GateReport) -> tuple[str, ...]:
    """The names of the dataset at a location in a report; empty if it is about other locations."""
    gate = report.run_key.gate
    return tuple(snapshot.name for snapshot in report.datasets if is_at(location, gate, snapshot))


def _assertion(history: Sequence[tuple[PastValue, Verdict]]) -> AssertionHistory:
    past = tuple(value for value, _ in history)
    newest = history[-1][1]
    read = reading_of(newest)
    is_old = is_age(newest.expression)
    chart = chart_of(newest.name, past, WIDE_WIDTH, WIDE_HEIGHT, read, is_age=is_old)
    return AssertionHistory(newest, past, chart, read)
