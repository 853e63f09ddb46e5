"""The dates of gates that are not good, as Airflow and the results store know them: blocked,
broken, waiting for an answer, or without a report; and what has become of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

from dqx_airflow.results.incidents import (
    CLOSED,
    Incident,
    IncidentNote,
    JudgedRows,
    stored_incidents,
)
from dqx_airflow.results.missing_reports import DateEnd, PastOfDates, past_of_dates
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.schema import as_utc
from dqx_airflow.results.shared_causes import first_incidents, gate_of
from dqx_airflow.ui import airflow, airflow_dags, responses
from dqx_airflow.ui.deciding import HeldBack, decision_in_words, end_of
from dqx_airflow.ui.questions import as_airflow_knows
from dqx_airflow.ui.runs_without_report import RunWithoutReport, runs_without_report
from dqx_airflow.ui.store import StoreClient
from dqx_airflow.values import NO_REPORT


@dataclass(frozen=True, slots=True)
class OpenSlice:
    """A date of data that is not good, with its task if Airflow still knows it.

    `gate` is the name of the gate in the results, without a suite. `state` is `waiting`, `blocked`,
    `broken`, or `no report`. A slice without a report has no incident; its `date` is the date of
    its run, None if that is unknown. `since` is the time of the first verdict, or of the end of the
    task without one, and `error` why there is no report. `same_cause_as` is the earlier gate of the
    DAG whose open slice has the same cause, or empty; `sentence` is the worst failure in the words
    of the data, empty if the store does not have it. `acknowledgement` is the note of the
    person who takes care of it.
    """

    gate: str
    state: str
    date: date | None
    dag_id: str
    task_id: str
    map_index: int
    task: airflow.TaskRef | None
    since: datetime | None
    incident: Incident | None = None
    question: airflow.Question | None = None
    judged: tuple[JudgedRows, ...] = ()
    error: str = ""
    same_cause_as: str = ""
    sentence: str = ""
    acknowledgement: IncidentNote | None = None

    @property
    def held_back(self) -> HeldBack:
        """The rows that are not in their targets."""
        return HeldBack.of([self.judged])


@dataclass(frozen=True, slots=True)
class SlicesOfGates:
    """The open slices of gates, oldest data first; `closed` are the notes with which people closed
    dates, by the attempt of the task whose data they are about; `problem` is set if the store does
    not respond, and `left_out` says which dates may be missing."""

    open: tuple[OpenSlice, ...]
    closed: Mapping[str, IncidentNote] = field(default_factory=dict)
    problem: str | None = None
    left_out: str | None = None

    @property
    def causes(self) -> int:
        """The number of causes of the open slices."""
        return sum(not one.same_cause_as for one in self.open)

    def of_instances(self, instances: Collection[tuple[str, str, int]]) -> SlicesOfGates:
        """These slices without the open ones of other instances.

        :param instances: the DAG, the task and the map index of each.
        """
        own = (one for one in self.open if (one.dag_id, one.task_id, one.map_index) in instances)
        return replace(self, open=tuple(own))


def slices_of(
    session: Any,
    client: StoreClient,
    tasks: airflow_dags.GateTasks,
    recent: Sequence[airflow.TaskRun] = (),
) -> SlicesOfGates:
    """The slices of the gates that a user may read.

    :param recent: the last runs of the gates, if they are known: what their dates are.
    """
    answer = client.ask(lambda store: stored_incidents(store, RunsWanted()))
    is_open = [one for one in reversed(answer.found) if one.is_open]
    found = _with_causes(client, _judged_slices(session, tasks, is_open))
    known = {(one.dag_id, one.task_id, one.date, one.map_index) for one in found}
    failed = airflow.failed_runs(session, tasks.tasks)  # newest first
    missing, closed, problem = _without_report(client, failed, recent)
    missing = [
        one for one in missing if (one.dag_id, one.task_id, one.date, one.map_index) not in known
    ]
    for one in answer.found:
        if one.closing is not None and one.status == CLOSED:
            closed |= {run.attempt.id: one.closing for run in one.last_of_each}
    left_out = _LEFT_OUT if len(failed) >= airflow.MOST_FAILED else None
    slices = tuple(sorted([*found, *missing], key=_by_date))
    return SlicesOfGates(slices, closed, answer.problem or problem, left_out)


_LEFT_OUT = (
    f"Old dates without a report may be missing: of the tasks that failed in Airflow, the newest "
    f"{airflow.MOST_FAILED:,} are searched for them. `dql incidents` lists those that the results "
    "store knows."
)


def _with_causes(client: StoreClient, slices: Sequence[OpenSlice]) -> list[OpenSlice]:
    """Slices with the earlier gates that had the same cause."""
    dag_of = {one.incident.id: one.dag_id for one in slices if one.incident is not None}
    incidents = [one.incident for one in slices if one.incident is not None]
    answer = client.ask(
        lambda store: tuple(first_incidents(store, incidents, lambda one: dag_of[one.id]).items())
    )
    first = {own: gate_of(earlier) for own, earlier in answer.found}
    return [
        replace(one, same_cause_as=first[one.incident.id])
        if one.incident is not None and one.incident.id in first
        else one
        for one in slices
    ]


def _by_date(one: OpenSlice) -> tuple[object, ...]:
    return one.date or date.max, one.dag_id, one.task_id, one.map_index


def _judged_slices(
    session: Any, tasks: airflow_dags.GateTasks, incidents: Sequence[Incident]
) -> list[OpenSlice]:
    """The slices of incidents of gates that the user may read."""
    attempts = {one.last.attempt.id for one in incidents}
    known = airflow.tasks_of(session, attempts)
    questions = airflow.questions_of(session, attempts)
    readable = {f"{dag_id}.{task_id}": (dag_id, task_id) for dag_id, task_id in tasks.tasks}
    found = []
    for one in as_airflow_knows(incidents, questions):
        attempt = one.last.attempt.id
        ref = known.get(attempt)
        gate = gate_of(one)
        place = (ref.dag_id, ref.task_id) if ref else readable.get(gate)
        if place not in tasks.tasks:
            continue
        dag_id, task_id = place
        found.append(
            OpenSlice(
                gate=gate,
                state=one.status,
                date=one.date,
                dag_id=dag_id,
                task_id=task_id,
                map_index=one.map_index,
                task=ref,
                since=one.detected_at,
                incident=one,
                question=questions.get(attempt),
                acknowledgement=one.acknowledgement,
            )
        )
    return found


def _without_report(
    client: StoreClient, failed: Sequence[airflow.TaskRun], recent: Sequence[airflow.TaskRun]
) -> tuple[list[OpenSlice], dict[str, IncidentNote], str | None]:
    """The open dates whose newest run failed without a report; the notes with which people closed
    others, by the attempt of the task; and the problem if the store does not respond.

    :param failed: the runs that failed, newest first.
    """
    newest: dict[tuple[object, ...], RunWithoutReport] = {}
    for one in runs_without_report(client, failed, recent):
        run = one.run
        place = run.dag_id, run.task_id, run.map_index, one.date or run.run_id
        newest.setdefault(place, one)
    past, problem = _past_of(client, [*newest.values()])
    open_ = []
    closed = {}
    for one in newest.values():
        ends = past.ends_of(one.date, one.run.map_index)
        settled = [end for end in ends if _settles(end, one)]
        if not settled:
            taken = past.acknowledgement(one.gate, one.date, one.run.map_index)
            open_.append(replace(_slice_without_report(one), acknowledgement=taken))
        closings = [end.closing for end in settled if end.closing is not None]
        if closings and len(closings) == len(settled):
            closed[one.run.attempt_id] = closings[0]
    return open_, closed, problem


def _past_of(
    client: StoreClient, missing: Sequence[RunWithoutReport]
) -> tuple[PastOfDates, str | None]:
    """The past of the dates of runs without a report, and the problem if the store does not
    respond."""
    dates = [one.date for one in missing if one.date is not None]
    if not dates:
        return PastOfDates(), None
    answer = client.ask(lambda store: (past_of_dates(store, min(dates), max(dates)),))
    return (answer.found[0] if answer.found else PastOfDates()), answer.problem


def _slice_without_report(one: RunWithoutReport) -> OpenSlice:
    run = one.run
    return OpenSlice(
        gate=one.gate,
        state=NO_REPORT,
        date=one.date,
        dag_id=run.dag_id,
        task_id=run.task_id,
        map_index=run.map_index,
        task=_task_of(run),
        since=run.ended,
        error=one.error,
    )


def _settles(end: DateEnd, missing: RunWithoutReport) -> bool:
    """Whether a later run judged the date of a run without a report, such as a run that was
    triggered by hand, or someone closed it.

    :param end: of the same date and map index.
    """
    since = missing.run.ended
    is_later = since is None or end.at > as_utc(since)
    return is_later and not end.is_partial and end.is_of_gate(missing.gate)


def key_of_slice(one: OpenSlice) -> str:
    """The key of a slice in the form of the list."""
    own = one.incident.id if one.incident else one.task
    return responses.key_of_row(one.dag_id, one.task_id, own)


def _task_of(run: airflow.TaskRun) -> airflow.TaskRef:
    return airflow.TaskRef(run.dag_id, run.run_id, run.task_id, run.map_index, run.label or None)


def what_became_of(
    session: Any,
    client: StoreClient,
    tasks: airflow_dags.GateTasks,
    recent: Sequence[airflow.TaskRun],
    keys: Collection[str],
) -> tuple[str, ...]:
    """How the slices with these keys ended, each in a sentence: what a form says that was sent
    after someone else's. Empty for keys of no gate that the user may read."""
    answer = client.ask(lambda store: stored_incidents(store, RunsWanted()))
    sentences = [
        f"{one.gate}, data of {one.date}: {end_of(one.incident)}"
        for one in _judged_slices(session, tasks, answer.found)
        if one.incident is not None and not one.incident.is_open and key_of_slice(one) in keys
    ]
    failed = airflow.failed_runs(session, tasks.tasks)
    runs = {run.attempt_id: run for run in (*failed, *recent)}
    for run in runs.values():
        if responses.key_of_row(run.dag_id, run.task_id, _task_of(run)) in keys:
            sentences.append(_end_without_report(client, run, recent))
    return tuple(sentences)


def _end_without_report(
    client: StoreClient, run: airflow.TaskRun, recent: Sequence[airflow.TaskRun]
) -> str:
    """What has become of a date whose run had left no report."""
    state = run.state or "waiting to run"
    found = runs_without_report(client, [run], recent)
    if not found or run.state != "failed":
        return f"{run.dag_id}.{run.task_id}, run {run.run_id}: its task is {state}"
    (one,) = found
    about = f"{one.gate}, data of {one.date}"
    past, _ = _past_of(client, found)
    ends = past.ends_of(one.date, run.map_index)
    for end in ends:
        if end.closing is not None and _settles(end, one):
            return f"{about}: {decision_in_words(end.closing)}"
    for end in ends:
        if _settles(end, one):
            return f"{about}: a run checked it at {end.at:%Y-%m-%d %H:%M} UTC"
    return f"{about}: its task is {state}"
