"""The page of an incident: the gate, its faults, the waiting tasks, and the notes of people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from dqx_airflow.plugin.airflow import TaskRun
from dqx_airflow.plugin.failing_rows import failing_total
from dqx_airflow.plugin.report_view import ReportView, view_of_report
from dqx_airflow.results.incident_notes import ACKNOWLEDGED, IncidentNote
from dqx_airflow.results.incidents import Incident
from dqx_airflow.results.run_lines import RunLine
from dqx_airflow.values import DatasetSnapshot, EnforcedContract, GateReport, Verdict


@dataclass(frozen=True, slots=True)
class Fault:
    """An assertion that did not pass in `run`, the last bad run of its suite. `since` is the first
    date of the incident from which on it never passed, `failing` the number of failing rows and of
    all rows."""

    run: RunLine
    verdict: Verdict
    blocks: bool
    since: date
    failing: str


@dataclass(frozen=True, slots=True)
class DatasetVersions:
    """A dataset as the first bad run of a suite read it, and the version that the last good run
    before it read; None if that is unknown."""

    bad: DatasetSnapshot
    good: int | None


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task downstream of the gate, with its state in the last run of the incident."""

    run: TaskRun
    state: str


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """An incident of a gate. `others` are the other ones, newest first, and `last` has the
    last bad report of each suite."""

    dag_id: str
    task_id: str
    map_index: int
    gate: str
    incident: Incident
    others: tuple[Incident, ...]
    last: tuple[ReportView, ...]
    faults: tuple[Fault, ...]
    versions: tuple[DatasetVersions, ...]
    waiting: tuple[WaitingTask, ...]
    assets: Mapping[str, tuple[str, ...]]
    owners: str
    notes: tuple[IncidentNote, ...]

    @property
    def contract(self) -> EnforcedContract | None:
        """The contract that the gate enforces."""
        return next((view.contract for view in self.last if view.contract), None)

    @property
    def acknowledged(self) -> IncidentNote | None:
        """The last acknowledgement."""
        return next((note for note in reversed(self.notes) if note.kind == ACKNOWLEDGED), None)


def faults_of(
    incident: Incident, reports_by_run: Mapping[str, GateReport], past: Sequence[GateReport]
) -> tuple[Fault, ...]:
    """What did not pass in the last bad report of each suite, what blocks first."""
    faults: list[Fault] = []
    for run in incident.last_of_each:
        if run.run_id in reports_by_run:
            of_gate = [report for report in past if report.run_key.gate == run.run_key.gate]
            faults += _faults_of_run(run, reports_by_run[run.run_id], of_gate)
    return tuple(sorted(faults, key=lambda fault: not fault.blocks))


def _faults_of_run(run: RunLine, newest: GateReport, past: Sequence[GateReport]) -> Iterator[Fault]:
    view = view_of_report(newest)
    earlier = [report for report in past if report.run_key.date <= run.run_key.date]
    newest_first = sorted(earlier, key=lambda report: report.run_key.date, reverse=True)
    for verdict in view.verdicts:
        if not view.is_wrong(verdict):
            continue
        since = newest.run_key.date
        for report in newest_first:
            same_assertion = [
                earlier_verdict
                for earlier_verdict in report.verdicts
                if (earlier_verdict.check, earlier_verdict.name) == (verdict.check, verdict.name)
            ]
            if not same_assertion or not view.is_wrong(same_assertion[0]):
                break
            since = min(since, report.run_key.date)
        blocks = view.fail_on is None or verdict.can_block(view.fail_on)
        yield Fault(run, verdict, blocks, since, failing_total(verdict, newest.datasets))


def versions_of(
    incident: Incident, reports_by_run: Mapping[str, GateReport]
) -> tuple[DatasetVersions, ...]:
    """The datasets of all suites, each as the suite that was bad first read it."""
    versions: dict[str, DatasetVersions] = {}
    for run in incident.first_of_each:
        before = incident.before.get(run.run_key.gate)
        report, sound = (
            reports_by_run.get(run.run_id),
            reports_by_run.get(before.run_id) if before else None,
        )
        good = {dataset.name: dataset.version for dataset in sound.datasets} if sound else {}
        for dataset in report.datasets if report else ():
            versions.setdefault(dataset.name, DatasetVersions(dataset, good.get(dataset.name)))
    return tuple(versions.values())
