"""The page of a contract: its versions over time, the gates that enforce it, broken clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from dqx_airflow.results.query import ContractRun
from dqx_airflow.ui import report_view
from dqx_airflow.ui.airflow import SessionDep, TaskRun, TasksDep, recent_runs
from dqx_airflow.ui.board_page import DEPTH, GateRow, counts_line, gate_rows
from dqx_airflow.ui.board_page import past_of_gates as _past_of
from dqx_airflow.ui.responses import (
    address,
    gate_address,
    html_page,
    notice,
    report_address,
    store_client,
)
from dqx_airflow.ui.store import Answer
from dqx_airflow.values import EnforcedContract, GateReport, Outcome, Status, Verdict

_SHOWN_VERSIONS = 30
_SHOWN_CLAUSES = 20
_BAD = (Status.FAILED, Status.ERROR)
router = APIRouter()


@dataclass(frozen=True, slots=True)
class GateVerdicts:
    """The report of a gate, and its address."""

    view: report_view.ReportView
    href: str


@dataclass(frozen=True, slots=True)
class VersionUse:
    """The runs that enforced a version. `first` and `last` are those with the oldest and newest
    data."""

    first: ContractRun
    last: ContractRun
    gates: tuple[str, ...]
    outcomes: Mapping[str, int]

    @property
    def contract(self) -> EnforcedContract:
        """The contract with its coverage, as it was last enforced."""
        return self.last.contract


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """The status of the assertions about a dataset: counts by status in the newest report."""

    name: str
    location: str
    counts: Mapping[Status, int]

    @property
    def state(self) -> str:
        """The worst status, as a word."""
        worst = (Status.FAILED, Status.ERROR, Status.SKIPPED, Status.PASSED)
        return next((status.value for status in worst if self.counts.get(status)), "")

    @property
    def label(self) -> str:
        """The number of failures."""
        return counts_line(self.counts)


@dataclass(frozen=True, slots=True)
class GateUse:
    """A gate that enforces the contract. `version` is the last version that it enforced, `pin` the
    version that it pinned then."""

    row: GateRow
    version: str | None
    datasets: tuple[DatasetUse, ...]
    pin: str | None = None


@dataclass(frozen=True, slots=True)
class BrokenClause:
    """A clause that was violated in some of the last `runs`. `newest` is the last such verdict,
    `href` the address of its report; `gates` are those that found it, each with the address of its
    last such report."""

    path: str
    failures: int
    runs: int
    last: date | None
    newest: Verdict
    href: str
    gates: tuple[tuple[str, str], ...]

    @property
    def line(self) -> str:
        """The clause in readable form: `orders.amount: minimum 0`."""
        return report_view.clause_line(self.newest)


@dataclass(frozen=True, slots=True)
class ContractPage:
    """The facts about a contract, versions newest first, gates worst first."""

    id: str
    versions: tuple[VersionUse, ...]
    more_versions: int
    gates: tuple[GateUse, ...]
    more_gates: int
    clauses: tuple[BrokenClause, ...]
    more_clauses: int
    runs: int

    @property
    def newest(self) -> EnforcedContract | None:
        return self.versions[0].contract if self.versions else None

    def run_at(self, run: ContractRun) -> str:
        """The address of the runs of a gate on data of a date; empty if no displayed gate has this
        name."""
        return self._runs(run.gate, since=run.date, until=run.date)

    def runs_of(self, version: VersionUse, outcome: str) -> str:
        """The address of the runs that enforced a version and had an outcome, if they belong to a
        single gate."""
        if len(version.gates) != 1:
            return ""
        dates = {"since": version.first.date, "until": version.last.date}
        return self._runs(version.gates[0], outcome=outcome, **dates)

    def _runs(self, gate: str, **query: object) -> str:
        rows = (use.row for use in self.gates)
        row = next((row for row in rows if row.gate == gate), None)
        return address("runs", dag_id=row.dag_id, task_id=row.task_id, **query) if row else ""


def runs_under(runs: Iterable[TaskRun], contract_id: str) -> list[TaskRun]:
    """The runs of the task instances that recently enforced the contract, in the same order."""
    viewed = [(run, report_view.view_of_summary(run.pushed)) for run in runs]
    under = {
        _task(run)
        for run, view in viewed
        if view and view.contract and view.contract.id == contract_id
    }
    return [run for run, _ in viewed if _task(run) in under]


def contract_page(
    contract_id: str,
    rows: Sequence[GateRow],
    past: Mapping[tuple[str, str], Sequence[GateReport]],
    runs: Sequence[ContractRun],
    more: int = 0,
) -> ContractPage:
    """The page of a contract.

    :param rows: the gates that enforce it.
    :param past: by DAG and task of a gate its reports, newest first. If the store has none, the
        summaries of the tasks are used.
    :param runs: the runs that enforced it, newest first.
    :param more: the number of other gates that enforce it.
    """
    reported = [_reported(row, past, contract_id) for row in rows]
    all_verdicts = [verdicts for of_row in reported for verdicts in of_row]
    views = [verdicts.view for verdicts in all_verdicts]
    versions = _versions(runs or _runs(views))
    clauses = _broken(all_verdicts)
    return ContractPage(
        id=contract_id,
        versions=versions[:_SHOWN_VERSIONS],
        more_versions=max(len(versions) - _SHOWN_VERSIONS, 0),
        gates=tuple(
            _gate(row, [verdicts.view for verdicts in of_row])
            for row, of_row in zip(rows, reported, strict=True)
        ),
        more_gates=more,
        clauses=clauses[:_SHOWN_CLAUSES],
        more_clauses=max(len(clauses) - _SHOWN_CLAUSES, 0),
        runs=len(all_verdicts),
    )


def _task(run: TaskRun) -> tuple[str, str, int]:
    return run.dag_id, run.task_id, run.map_index


def _reported(
    row: GateRow, past: Mapping[tuple[str, str], Sequence[GateReport]], contract_id: str
) -> list[GateVerdicts]:
    """The last reports of a gate about the contract, newest first."""
    stored = [
        GateVerdicts(
            report_view.view_of_report(report),
            report_address(row.dag_id, row.task_id, report.run_key, report.attempt.id),
        )
        for report in past.get((row.dag_id, row.task_id), ())
    ]
    in_airflow = [
        GateVerdicts(cell.report, gate_address(cell.run))
        for cell in reversed(row.cells)
        if cell.report
    ]
    return [
        verdicts
        for verdicts in stored or in_airflow
        if verdicts.view.contract and verdicts.view.contract.id == contract_id
    ]


def _runs(views: Iterable[report_view.ReportView]) -> list[ContractRun]:
    """The runs of the reports, newest first."""
    runs = [
        ContractRun(view.gate, view.date, view.outcome, view.contract)
        for view in views
        if view.date and view.contract
    ]
    return sorted(runs, key=lambda run: run.date, reverse=True)


def _versions(runs: Iterable[ContractRun]) -> tuple[VersionUse, ...]:
    by_version: dict[str | None, list[ContractRun]] = {}
    for run in runs:
        by_version.setdefault(run.contract.version, []).append(run)
    return tuple(
        VersionUse(
            first=own[-1],
            last=own[0],
            gates=tuple(sorted({run.gate for run in own})),
            outcomes=_by_outcome(own),
        )
        for own in by_version.values()
    )


def _by_outcome(runs: Iterable[ContractRun]) -> dict[str, int]:
    counted = Counter(run.outcome for run in runs)
    return {outcome.value: counted[outcome] for outcome in Outcome if counted[outcome]}


def _gate(row: GateRow, views: Sequence[report_view.ReportView]) -> GateUse:
    if not views:
        return GateUse(row, None, ())
    newest = views[0]
    datasets = []
    for snapshot in newest.datasets:
        about = (verdict.status for verdict in newest.verdicts if snapshot.name in verdict.datasets)
        location = report_view.location_in(newest.gate, snapshot)
        datasets.append(DatasetUse(snapshot.name, location, Counter(about)))
    contract = newest.contract
    return GateUse(
        row,
        contract.version if contract else None,
        tuple(datasets),
        contract.pin if contract else None,
    )


def _broken(reported: Sequence[GateVerdicts]) -> tuple[BrokenClause, ...]:
    """The clauses that were violated or could not be checked, most frequent first."""
    by_clause: dict[str, list[tuple[GateVerdicts, Verdict]]] = {}
    for verdicts in reported:
        paths = set()
        for verdict in verdicts.view.verdicts:
            if verdict.clause and verdict.status in _BAD and verdict.clause not in paths:
                paths.add(verdict.clause)
                by_clause.setdefault(verdict.clause, []).append((verdicts, verdict))
    clauses = []
    for path, broken in by_clause.items():
        newest, verdict = max(broken, key=lambda pair: pair[0].view.date or date.min)
        gates: dict[str, str] = {}
        for verdicts, _ in broken:
            gates.setdefault(verdicts.view.gate, verdicts.href)
        runs = sum(verdicts.view.gate in gates for verdicts in reported)
        named = tuple(sorted(gates.items()))
        clauses.append(
            BrokenClause(path, len(broken), runs, newest.view.date, verdict, newest.href, named)
        )
    clauses.sort(key=lambda clause: (-clause.failures, clause.newest.severity.value, clause.path))
    return tuple(clauses)


_MOST_GATES = 10


@router.get("/contract")
def contract(
    session: SessionDep, tasks: TasksDep, contract_id: Annotated[str, Query(alias="id")] = ""
) -> Response:
    """How the gates of those DAGs enforce a contract."""
    runs = recent_runs(session, tasks.tasks, DEPTH)
    session.close()
    rows = gate_rows(runs_under(runs, contract_id), tasks.dags)
    if not rows:
        return notice(
            HTTPStatus.NOT_FOUND,
            "No such contract",
            f"No gate that you may read has recently enforced contract {contract_id}.",
        )
    shown, more = list(rows[:_MOST_GATES]), max(len(rows) - _MOST_GATES, 0)
    past, problem = _past_of(shown, DEPTH)
    enforced: Answer[ContractRun] = Answer()
    newest = [reports[0].run_key for reports in past.values() if reports]
    if newest:
        gates, until = {key.gate for key in newest}, max(key.date for key in newest)
        client = store_client()
        enforced = client.ask(lambda store: store.contract_runs(gates, contract_id, until))
    return html_page(
        "contract.html",
        page=contract_page(contract_id, shown, past, enforced.found, more),
        problem=problem or enforced.problem,
    )
