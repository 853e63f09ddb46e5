"""The page of a contract: its versions over time, the gates that enforce it, broken clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import Annotated, NamedTuple

from fastapi import Query, Response

from dqx_airflow.results.query import ContractRun
from dqx_airflow.ui import report_view, responses
from dqx_airflow.ui.airflow import DEPTH, TaskRun, instance_of
from dqx_airflow.ui.airflow_dags import TasksDep
from dqx_airflow.ui.airflow_users import SessionDep
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import (
    GateRow,
    counts_line,
    gate_rows,
    past_of_gates,
    with_closed_dates,
)
from dqx_airflow.ui.open_slices import slices_of
from dqx_airflow.ui.stored_summaries import reported_runs
from dqx_airflow.ui.summary_view import view_of_summary
from dqx_airflow.values import EnforcedContract, GateReport, Outcome, Verdict

_SHOWN_VERSIONS = 30
_SHOWN_CLAUSES = 20
router = PageRouter()


@dataclass(frozen=True, slots=True)
class GateVerdicts:
    """The report of a gate, and its address."""

    view: report_view.ReportView
    href: str


class ContractVersion(NamedTuple):
    """A version, as it was last enforced. `outcomes` are the numbers of its runs, each with the
    address of these runs, `ends` its first and its last run with theirs; empty if they are of
    several gates."""

    contract: EnforcedContract
    gates: set[str]
    outcomes: list[tuple[str, int, str]]
    ends: list[tuple[ContractRun, str]]


class ContractDataset(NamedTuple):
    """A dataset of a gate: the worst status of the assertions about it, and their numbers."""

    name: str
    location: str
    state: str
    label: str


class ContractGate(NamedTuple):
    """A gate with the version that it enforced last, and the datasets that it read then."""

    row: GateRow
    contract: EnforcedContract | None
    datasets: list[ContractDataset]


class BrokenClause(NamedTuple):
    """A clause that was violated or could not be checked, in `failures` of `runs`. `last` is the
    newest such report, with the verdict `newest`; `gates` have the addresses of theirs."""

    path: str
    failures: int
    runs: int
    last: GateVerdicts
    newest: Verdict
    gates: list[tuple[str, str]]


class ContractPage(NamedTuple):
    """A contract in the last `runs` runs of its gates, as it was last enforced (`newest`)."""

    id: str
    newest: EnforcedContract | None
    versions: list[ContractVersion]
    more_versions: int
    gates: list[ContractGate]
    more_gates: int
    clauses: list[BrokenClause]
    more_clauses: int
    runs: int
    problem: str | None


def runs_under(runs: Iterable[TaskRun], contract_id: str) -> list[TaskRun]:
    """The runs of the task instances that recently enforced the contract, in the same order."""
    viewed = [(run, view_of_summary(run.pushed)) for run in runs]
    under = {
        instance_of(run)
        for run, view in viewed
        if view and view.contract and view.contract.id == contract_id
    }
    return [run for run, _ in viewed if instance_of(run) in under]


def _reported(
    row: GateRow, past: Mapping[tuple[str, str], Sequence[GateReport]], contract_id: str
) -> list[GateVerdicts]:
    """The last reports of a gate about the contract, newest first."""
    stored = [
        GateVerdicts(
            report_view.view_of_report(report),
            responses.report_address(row.dag_id, row.task_id, report.run_key, report.attempt.id),
        )
        for report in past.get((row.dag_id, row.task_id), ())
    ]
    in_airflow = [
        GateVerdicts(cell.report, responses.gate_address(cell.run))
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


def _versions(runs: Iterable[ContractRun], rows: Mapping[str, GateRow]) -> list[ContractVersion]:
    """The versions that runs enforced, newest first, each with the contract and its coverage as it
    was last enforced. A number of runs of one displayed gate leads to them.

    :param rows: the displayed gates by their names.
    """
    by_version: dict[str | None, list[ContractRun]] = {}
    for run in runs:
        by_version.setdefault(run.contract.version, []).append(run)
    versions = []
    for own in by_version.values():
        gates = {run.gate for run in own}
        counted = Counter(run.outcome for run in own)
        row = rows.get(own[0].gate) if len(gates) == 1 else None
        dates = {"from": own[-1].date, "to": own[0].date}
        versions.append(
            ContractVersion(
                contract=own[0].contract,
                gates=gates,
                outcomes=[
                    (outcome.value, counted[outcome], _runs_of(row, outcome=outcome.value, **dates))
                    for outcome in Outcome
                    if counted[outcome]
                ],
                ends=[
                    (run, _runs_of(rows.get(run.gate), **{"from": run.date, "to": run.date}))
                    for run in (own[-1], own[0])
                ],
            )
        )
    return versions


def _runs_of(row: GateRow | None, **query: object) -> str:
    """The address of some runs of a gate; empty without a gate."""
    return responses.address("runs", dag_id=row.dag_id, task_id=row.task_id, **query) if row else ""


def _gate(row: GateRow, views: Sequence[report_view.ReportView]) -> ContractGate:
    """A gate with the versions that it last enforced and pinned, and the status of the assertions
    about each dataset."""
    if not views:
        return ContractGate(row, None, [])
    newest = views[0]
    datasets = []
    for snapshot in newest.datasets:
        about = [verdict for verdict in newest.verdicts if snapshot.name in verdict.datasets]
        counts = Counter(verdict.status for verdict in about)
        states = (status.value for status in report_view.WORST_FIRST if counts[status])
        location = report_view.location_in(newest.gate, snapshot)
        state = next(states, "")
        label = counts_line(counts)
        datasets.append(ContractDataset(snapshot.name, location, state, label))
    return ContractGate(row, newest.contract, datasets)


def _broken(reported: Sequence[GateVerdicts]) -> list[BrokenClause]:
    """The clauses that were violated or could not be checked, most frequent first, each with the
    gates that found it and the addresses of their last such reports."""
    by_clause: dict[str, list[tuple[GateVerdicts, Verdict]]] = {}
    for verdicts in reported:
        bad = [verdict for verdict in verdicts.view.verdicts if report_view.is_bad(verdict)]
        first = {verdict.clause: verdict for verdict in reversed(bad) if verdict.clause}
        for clause, verdict in first.items():
            by_clause.setdefault(clause, []).append((verdicts, verdict))
    clauses = []
    for path, broken in by_clause.items():
        newest, verdict = max(broken, key=lambda pair: pair[0].view.date or date.min)
        gates = {verdicts.view.gate: verdicts.href for verdicts, _ in reversed(broken)}
        clauses.append(
            BrokenClause(
                path=path,
                failures=len(broken),
                runs=sum(verdicts.view.gate in gates for verdicts in reported),
                last=newest,
                newest=verdict,
                gates=sorted(gates.items()),
            )
        )
    clauses.sort(key=lambda clause: (-clause.failures, clause.newest.severity.value, clause.path))
    return clauses


_MOST_GATES = 10


@router.get("/contract")
def contract(
    session: SessionDep, tasks: TasksDep, contract_id: Annotated[str, Query(alias="id")] = ""
) -> responses.Page[ContractPage] | Response:
    """The enforcement of a contract by the gates that the user may read."""
    client = responses.store_client()
    recent = reported_runs(session, client, tasks.tasks)
    slices = slices_of(session, client, tasks, recent)
    session.close()
    runs = runs_under(recent, contract_id)
    own = slices.of_instances({instance_of(run) for run in runs})
    rows = with_closed_dates(gate_rows(runs, tasks.dags), own)
    if not rows:
        return responses.Notice(
            HTTPStatus.NOT_FOUND,
            "No such contract",
            f"No gate that you may read has recently enforced contract {contract_id}.",
        )
    shown = list(rows[:_MOST_GATES])
    past, problem = past_of_gates(shown, DEPTH)
    newest = [reports[0].run_key for reports in past.values() if reports]
    gates = {key.gate for key in newest}
    until = max((key.date for key in newest), default=date.max)
    enforced = client.ask(lambda store: store.contract_runs(gates, contract_id, until))
    reported = [_reported(row, past, contract_id) for row in shown]
    all_verdicts = [verdicts for of_row in reported for verdicts in of_row]
    by_name = {row.gate: row for row in reversed(shown)}
    of_reports = _runs(verdicts.view for verdicts in all_verdicts)
    versions = _versions(enforced.found or of_reports, by_name)
    clauses = _broken(all_verdicts)
    page = ContractPage(
        id=contract_id,
        newest=versions[0].contract if versions else None,
        versions=versions[:_SHOWN_VERSIONS],
        more_versions=max(len(versions) - _SHOWN_VERSIONS, 0),
        gates=[
            _gate(row, [verdicts.view for verdicts in of_row])
            for row, of_row in zip(shown, reported, strict=True)
        ],
        more_gates=len(rows) - len(shown),
        clauses=clauses[:_SHOWN_CLAUSES],
        more_clauses=max(len(clauses) - _SHOWN_CLAUSES, 0),
        runs=len(all_verdicts),
        problem=problem or enforced.problem,
    )
    return responses.Page("contract.html", page)
