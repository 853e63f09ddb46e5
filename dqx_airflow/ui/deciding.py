"""The short answers about open dates, and the ways out of them, as on the incident and the tab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

from dqx_airflow.results.decisions import why_not_acceptable
from dqx_airflow.results.incidents import (
    ACCEPTED,
    ACKNOWLEDGED,
    KEPT,
    Incident,
    IncidentNote,
    JudgedRows,
    groups_of,
)
from dqx_airflow.results.report_rows import RunRow
from dqx_airflow.ui import airflow, airflow_clearing, airflow_dags, airflow_users
from dqx_airflow.ui.clearing import tasks_of
from dqx_airflow.ui.report_view import view_of_report
from dqx_airflow.ui.store import StoreClient
from dqx_airflow.ui.verdict_text import counted_value, failing_total, limit_words, sentence_of
from dqx_airflow.values import EnforcedContract, GateReport, Status, Verdict
from dqx_airflow.values.report import Arrival


@dataclass(frozen=True, slots=True)
class Fault:
    """An assertion that did not pass in `run`, the last bad run of its suite for a slice. `failing`
    is the number of failing rows and of all rows."""

    run: RunRow
    verdict: Verdict
    blocks: bool
    failing: str


def faults_of(
    incidents: Sequence[Incident], reports: Mapping[str, GateReport]
) -> tuple[Fault, ...]:
    """The assertions that did not pass in the last bad reports of all slices: blocking ones first,
    then by severity, each with its dates, newest first."""
    runs = (run for incident in incidents for run in incident.last_of_each)
    found = [
        fault
        for run in runs
        if run.run_id in reports
        for fault in _faults(run, reports[run.run_id])
    ]
    found.sort(key=lambda fault: fault.run.run_key.date, reverse=True)
    return tuple(sorted(found, key=_rank))


def _rank(fault: Fault) -> tuple[object, ...]:
    verdict = fault.verdict
    return not fault.blocks, verdict.severity.value, verdict.check, verdict.name


def _faults(run: RunRow, report: GateReport) -> Iterator[Fault]:
    view = view_of_report(report)
    for verdict in view.verdicts:
        if view.is_wrong(verdict):
            blocks = view.fail_on is None or verdict.can_block(view.fail_on)
            yield Fault(run, verdict, blocks, failing_total(verdict, report.datasets))


def group_to_show(
    incidents: Sequence[Incident], on: date | None, first: str
) -> tuple[Incident, ...]:
    """The incident of a date, the newest open one first, with its open neighbours.

    :param first: the id of the incident, if there are several on the date; else empty.
    """
    at_date = [one for one in incidents if on in (None, one.date) and first in ("", one.id)]
    if not at_date:
        return ()
    at_date.sort(key=lambda one: not one.is_open)  # stable: the newest of the open ones first
    chosen = at_date[0]
    for group in groups_of(one for one in incidents if one.is_open):
        if chosen in group:
            return tuple(group)
    return (chosen,)


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The rows of open dates that are not in their targets. `rows` is None if no date was counted,
    `uncounted` the number of dates that were not."""

    rows: int | None
    uncounted: int
    targets: tuple[str, ...]

    @classmethod
    def of(cls, judged: Sequence[Sequence[JudgedRows]]) -> HeldBack:
        """The sum over dates.

        :param judged: the rows of each date; empty if they are unknown.
        """
        lacking = [[one for one in of_date if one.promoted is None] for of_date in judged]
        counts = [one.rows for of_date in lacking for one in of_date if one.rows is not None]
        uncounted = [
            of_date
            for of_date in judged
            if not of_date or any(one.rows is None and one.promoted is None for one in of_date)
        ]
        targets = (one.target for of_date in lacking for one in of_date if one.target)
        return cls(sum(counts) if counts else None, len(uncounted), tuple(dict.fromkeys(targets)))


@dataclass(frozen=True, slots=True)
class Downstream:
    """The tasks after a gate, as they follow each other, the assets that these update, each with
    the DAGs that are scheduled on it, and the next deadline of the run, if it has one."""

    tasks: tuple[str, ...]
    assets: Mapping[str, tuple[str, ...]]
    due: datetime | None = None

    @classmethod
    def of(cls, session: Any, dag_id: str, task_id: str, run_id: str) -> Downstream:
        """Queries Airflow for the tasks and the assets after a gate, in a run."""
        after = airflow_dags.graph_of_dag(session, dag_id).in_order_after(task_id)
        assets = airflow_dags.assets_of(session, dag_id, [task_id, *after])
        return cls(after, assets, airflow_dags.deadline_of(session, dag_id, run_id))

    @property
    def dags(self) -> tuple[str, ...]:
        """The DAGs that wait for the assets."""
        consumers = (dag_id for dags in self.assets.values() for dag_id in dags)
        return tuple(dict.fromkeys(consumers))


@dataclass(frozen=True, slots=True)
class InShort:
    """The answers for a person who has just been woken: since when, how bad, how many rows are held
    back, what brought them, who waits, and who owns the data.

    `since` is the first date of the data, `found` the time of the first verdict; `worst` the worst
    failure on the newest date, `failing` its rows, and `others` the number of other failures.
    `answer` is the answer to the question of the gate that left the newest date blocked.
    `arrival` is the commit or file that brought the rows of the newest date, of `dataset`.
    """

    since: date
    found: datetime | None
    worst: Verdict | None
    failing: str
    others: int
    held_back: HeldBack
    answer: str
    dataset: str
    arrival: Arrival | None
    downstream: Downstream
    owners: str
    contract: EnforcedContract | None

    @property
    def sentence(self) -> str:
        """The worst failure in the words of the data."""
        return sentence_of(self.worst) if self.worst else ""

    @property
    def how_bad(self) -> str:
        """The value of the worst failure; the reason if there is no value."""
        if self.worst is None:
            return ""
        if self.worst.scaled_value is None:
            return "no value"
        return counted_value(self.worst)

    @property
    def limit(self) -> str:
        """The limit of the worst failure."""
        return limit_words(self.worst) if self.worst else ""


def newest_arrival(report: GateReport | None) -> tuple[str, Arrival | None]:
    """The last commit or file that brought rows of the date of a report, with its dataset."""
    for dataset in report.datasets if report else ():
        brought = [one for one in dataset.arrivals if brings_rows(one)]
        if brought:
            return dataset.name, brought[0]
    return "", None


def brings_rows(arrival: Arrival) -> bool:
    """Whether a commit has added files of the date; a file always does."""
    return bool(arrival.files) or not arrival.name.isdecimal()


_KINDS = ("acknowledged", "clear", "accepted", "closed", "comment", "waive")


@dataclass(frozen=True, slots=True)
class WaysOut:
    """What a person can do about open dates, with the consequences in numbers.

    `incidents` are the dates, newest first; `clearing` what clearing the oldest does, the others
    alike, None if Airflow does not know its run; `questions` those about which the gate waits;
    `objections` the reasons why an action is impossible, by its kind; `acceptable` the dates that
    can be accepted. `note_ids` has an id of a note for each kind of form.
    """

    incidents: tuple[Incident, ...]
    clearing: airflow_clearing.Clearing | None
    questions: tuple[airflow.Question, ...]
    downstream: Downstream
    held_back: HeldBack
    failing: Sequence[tuple[Verdict, str]]
    judged_at: datetime
    objections: Mapping[str, str]
    acceptable: tuple[Incident, ...]
    waivable: Sequence[tuple[str, Verdict]]
    note_ids: Mapping[str, UUID]

    @property
    def taken(self) -> IncidentNote | None:
        """The acknowledgement of one of the dates."""
        notes = (one.acknowledgement for one in self.incidents)
        return next((note for note in notes if note is not None), None)

    @property
    def rows(self) -> str:
        """The rows that are held back, as on a button: `12,480 rows`; empty if not counted."""
        rows = self.held_back.rows
        if rows is None or self.held_back.uncounted:
            return ""
        return f"{rows:,} row{'' if rows == 1 else 's'}"


def note_ids() -> dict[str, UUID]:
    """An id for the note of each form of a page: one that is sent twice is stored once."""
    page = uuid4()
    return {kind: uuid5(page, kind) for kind in _KINDS}


def objections(
    dag_id: str,
    reports: Sequence[GateReport],
    *,
    edits: bool,
    clears: bool,
    is_known: bool,
    read_only: str | None,
    waivable: bool,
) -> dict[str, str]:
    """The reasons why a person cannot take an action now, by its kind; empty for a possible one.

    :param reports: the last bad reports of the dates.
    :param is_known: whether Airflow still has the task instances.
    :param waivable: whether an assertion that failed can be waived.
    """
    no_edit = "" if edits else f"You may not edit DAG {dag_id}."
    no_clear = no_edit or ("" if clears else f"You may not clear tasks of DAG {dag_id}.")
    gone = "" if is_known else "Airflow no longer knows these runs: trigger the DAG for the dates."
    unstored = read_only or ""
    refused = [why_not_acceptable(report) for report in reports]
    no_data = "The results store no longer has the report."
    cannot_accept = refused[0] if refused and all(refused) else ("" if refused else no_data)
    reasons = {
        "acknowledged": no_edit or unstored,
        "clear": no_clear or gone,
        "accepted": no_clear or unstored or gone or cannot_accept,
        "waive": no_edit or unstored or ("" if waivable else _NOTHING_TO_WAIVE),
        "closed": no_edit or unstored,
        "comment": no_edit or unstored,
    }
    return {kind: f"{reason[:1].upper()}{reason[1:]}" for kind, reason in reasons.items()}


_NOTHING_TO_WAIVE = "No failed assertion can be waived: P0, @required and errors are never waived."


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of an incident: how, by whom, why, and where its rows are now."""

    incident: Incident
    judged: tuple[JudgedRows, ...]

    @property
    def decision(self) -> IncidentNote | None:
        """The note of the person who accepted or closed it."""
        kind = self.incident.status
        notes = [note for note in self.incident.notes if note.kind == kind]
        return notes[-1] if notes else None

    @property
    def promoted(self) -> tuple[JudgedRows, ...]:
        """The rows that are in their targets."""
        return tuple(one for one in self.judged if one.promoted is not None)

    @property
    def given_up(self) -> HeldBack:
        """The rows that stay out of their targets."""
        return HeldBack.of([self.judged])


def decision_in_words(note: IncidentNote) -> str:
    """A decision with its author, time and reason: `closed by op at 2024-03-20 12:00 UTC: the shop
    was shut`."""
    verb = {ACKNOWLEDGED: "taken"}.get(note.kind, note.kind)
    reason = f": {note.text}" if note.text else ""
    return f"{verb} by {note.author} at {note.at:%Y-%m-%d %H:%M} UTC{reason}"


def answer_to(incident: Incident, report: GateReport | None) -> str:
    """The answer to the question of a gate whose data is blocked all the same, in the words of its
    notice: `kept blocked by op: not now`. Empty without an answer about the last run.

    :param report: the last bad report.
    """
    answers = [note for note in incident.notes if note.kind in (ACCEPTED, KEPT)]
    if not answers:
        return ""
    last = answers[-1]
    by = f"by {last.author}{f': {last.text}' if last.text else ''}"
    if last.kind == KEPT:
        return f"{KEPT} {by}" if last.at >= incident.last.finished_at else ""
    is_void = report is not None and report.answered is not None
    return f"the answer {by} no longer applies, since data or rules have changed" if is_void else ""


def end_of(incident: Incident) -> str:
    """How an incident ended, and by whom."""
    decision = Ended(incident, ()).decision
    if decision is not None:
        return decision_in_words(decision)
    at = incident.ended_at
    return f"{incident.status}{f' at {at:%Y-%m-%d %H:%M} UTC' if at else ''}"


@dataclass(frozen=True, slots=True)
class OpenDates:
    """Incidents of a gate, newest date first, with what the pages show of them: the last bad
    reports by their run ids, the failures, the rows and where they are by the id of the incident,
    what is downstream, what clearing each date does, oldest first, and the questions about which
    the gate waits, by the id of the incident. `since` is the first open date beside them; by
    default their own."""

    task: airflow.TaskRef
    group: tuple[Incident, ...]
    reports: Mapping[str, GateReport]
    faults: Sequence[Fault]
    judged: Mapping[str, tuple[JudgedRows, ...]]
    downstream: Downstream
    clearings: Sequence[airflow_clearing.Clearing]
    questions: Mapping[str, airflow.Question]
    since: date | None = None

    @property
    def held_back(self) -> HeldBack:
        """The rows that are not in their targets."""
        return HeldBack.of([self.judged.get(one.id, ()) for one in self.group])

    @property
    def last_reports(self) -> list[GateReport]:
        """The last bad reports of all dates and suites, as far as the store has them."""
        runs = (run for one in self.group for run in one.last_of_each)
        return [self.reports[run.run_id] for run in runs if run.run_id in self.reports]

    def is_acceptable(self, incident: Incident) -> bool:
        """Whether a person can accept the data of all suites of an incident."""
        judged = [self.reports.get(run.run_id) for run in incident.last_of_each]
        return all(report and not why_not_acceptable(report) for report in judged)


def in_short(dates: OpenDates, owners: str, contract: EnforcedContract | None) -> InShort:
    """The six answers about open dates."""
    newest, oldest = dates.group[0], dates.group[-1]
    of_newest = [fault for fault in dates.faults if fault.run.run_key.date == newest.date]
    worst = of_newest[0] if of_newest else None
    dataset, arrival = newest_arrival(dates.reports.get(newest.last.run_id))
    return InShort(
        since=dates.since or oldest.date,
        found=min(one.detected_at for one in dates.group),
        worst=worst.verdict if worst else None,
        failing=worst.failing if worst else "",
        others=max(len(of_newest) - 1, 0),
        held_back=dates.held_back,
        answer=answer_to(newest, dates.reports.get(newest.last.run_id)),
        dataset=dataset,
        arrival=arrival,
        downstream=dates.downstream,
        owners=owners,
        contract=contract,
    )


def ways_out(visitor: airflow_users.Visitor, client: StoreClient, dates: OpenDates) -> WaysOut:
    """What a user can do about open dates."""
    dag_id = dates.task.dag_id
    edits = visitor.may_edit(dag_id)
    waivable = [(key[0], fault.verdict) for key, fault in waivable_faults(dates.faults).items()]
    return WaysOut(
        incidents=dates.group,
        clearing=dates.clearings[0] if dates.clearings else None,
        questions=tuple(dates.questions.values()),
        downstream=dates.downstream,
        held_back=dates.held_back,
        failing=[(fault.verdict, fault.failing) for fault in dates.faults if fault.blocks],
        judged_at=max(one.last.finished_at for one in dates.group),
        objections=objections(
            dag_id,
            dates.last_reports,
            edits=edits,
            clears=visitor.may_clear(dag_id),
            is_known=bool(tasks_of(visitor.session, dates.group)),
            read_only=client.read_only() if edits else None,
            waivable=bool(waivable),
        ),
        acceptable=tuple(one for one in dates.group if dates.is_acceptable(one)),
        waivable=waivable,
        note_ids=note_ids(),
    )


def waivable_faults(faults: Iterable[Fault]) -> dict[tuple[str, str, str], Fault]:
    """The faults that a person may waive, by gate, check and assertion."""
    return {
        (fault.run.run_key.gate, fault.verdict.check, fault.verdict.name): fault
        for fault in faults
        if fault.verdict.status is Status.FAILED and not fault.verdict.is_protected
    }
