"""The board: the gates of all DAGs that a user may read, their status and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from functools import cache, partial
from itertools import chain, islice, takewhile
from operator import is_
from typing import Annotated, Any, NamedTuple, TypeVar
from uuid import uuid4

from fastapi import Depends, Response
from fastapi.responses import JSONResponse

from dqx_airflow.results.alerts import unlabelled_counts
from dqx_airflow.results.incidents import CLOSED, WAITING, Incident, IncidentNote, judged_rows
from dqx_airflow.results.query import RunsWanted, StoredResults
from dqx_airflow.results.schema import as_utc
from dqx_airflow.ui import report_view
from dqx_airflow.ui.airflow import DEPTH, Question, TaskRun
from dqx_airflow.ui.airflow_dags import GateDag, TasksDep, deadlines_of, gate_tasks
from dqx_airflow.ui.airflow_users import Visitor, VisitorDep
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.deciding import HeldBack
from dqx_airflow.ui.json_members import NotInJson
from dqx_airflow.ui.open_slices import OpenSlice, SlicesOfGates, key_of_slice, slices_of
from dqx_airflow.ui.responses import Filters, Page, PageNumber, Paging, form_token, store_client
from dqx_airflow.ui.store import StoreClient
from dqx_airflow.ui.stored_summaries import reported_runs
from dqx_airflow.ui.summary_view import mapping_of, outcome_of_summary, view_of_summary
from dqx_airflow.ui.verdict_text import fault_of
from dqx_airflow.values import NO_REPORT, EnforcedContract, GateReport, Status, Verdict

RUNNING = "running"
NOT_RUN = "not run"

_LAST_RUNS = 3
_GRACE = timedelta(minutes=15)
STATES_WORST_FIRST = (
    *(WAITING, "broken", "blocked", NO_REPORT),
    *(CLOSED, "accepted", "warned", RUNNING, "passed", NOT_RUN),
)
"""A gate that waits comes first: it takes an answer in time."""

_BAD = (WAITING, "broken", "blocked", NO_REPORT)
_UNDECIDED = (RUNNING, NOT_RUN)
_RUNNING_STATES = ("running", "queued", "scheduled", "up_for_retry", "restarting", "deferred")
_ENDED_STATES = ("failed", "success")
T = TypeVar("T")
router = PageRouter()


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of a gate in one run of its DAG; for a mapped one, the worst of its instances.

    `run` and `report` belong to the worst instance, `of` are all instances.
    """

    state: str
    run: TaskRun
    report: NotInJson[report_view.ReportView | None]
    of: NotInJson[tuple[TaskRun, ...]]

    @property
    def question(self) -> Question | None:
        """The question about which the worst instance waits."""
        return self.run.question

    @property
    def instances(self) -> int:
        """The number of instances of the task in the run."""
        return len(self.of)

    @property
    def reports(self) -> tuple[report_view.ReportView, ...]:
        """The reports of all instances."""
        return tuple(filter(None, (view_of_summary(run.pushed) for run in self.of)))


@dataclass(frozen=True, slots=True)
class GateRow:
    """A gate on the board. `cells` are its last runs, oldest first. `left_out` is the number of
    newest runs of its DAG that ended without it; `is_due` is set if a scheduled run is missing.
    `closing` is the note of a person who closed the date of the last run, which is bad; the state
    is then `closed`."""

    gate: str
    dag_id: str
    task_id: str
    owner: str
    state: str
    streak: str
    latest: Cell
    cells: tuple[Cell, ...]
    datasets: tuple[report_view.LocatedDataset, ...]
    promotions: tuple[str, ...]
    contracts: tuple[EnforcedContract, ...]
    worst: Verdict | None
    dag: GateDag
    left_out: int
    is_due: bool
    closing: IncidentNote | None = None

    @property
    def is_late(self) -> bool:
        """True if a run is missing: none started at the scheduled time of the DAG, or the newest
        runs ended without the gate."""
        return self.is_due or self.left_out > 0

    @property
    def ran(self) -> datetime | None:
        """The time of the gate's last verdict, or of its end without one."""
        report = self.latest.report
        return (report.finished_at if report else None) or self.latest.run.ended

    @property
    def owners(self) -> list[str]:
        """The names of the DAG's owners."""
        return [name.strip() for name in self.owner.split(",") if name.strip()]

    @property
    def worst_line(self) -> str:
        """The worst assertion that did not pass, as in the headline."""
        return fault_of(self.worst) if self.worst else ""

    @property
    def counted(self) -> str:
        """The number of failures in the latest run, as in `2 of 6 failed, 1 in error`."""
        report = self.latest.report
        if report is None:
            return ""
        first = f"{report.not_evaluated} not evaluated, " if report.not_evaluated else ""
        return first + counts_line(report.counts)


@dataclass(frozen=True, slots=True)
class BoardFilters(Filters):
    """The filters of the board."""

    dag_id: str = ""
    dataset: str = ""
    contract: str = ""
    outcome: str = ""
    severity: str = ""
    owner: str = ""
    late: str = ""

    def wants(self, row: GateRow) -> bool:
        """Whether a gate matches."""
        of_row = {
            "dag_id": [row.dag_id],
            "dataset": [dataset.location for dataset in row.datasets],
            "contract": [contract.id for contract in row.contracts],
            "outcome": [row.state],
            "severity": [row.worst.severity.value] if row.worst else [],
            "owner": row.owners,
            "late": [self.late] if row.is_late else [],
        }
        return all(not value or value in of_row[name] for name, value in self.query.items())


def gate_rows(
    runs: Iterable[TaskRun], dags: Mapping[str, GateDag], now: datetime | None = None
) -> tuple[GateRow, ...]:
    """A row for each gate.

    :param runs: their instances in the last runs of their DAGs, newest run first.
    :param now: the time to compare schedules with; None to skip that.
    """
    by_task: dict[tuple[str, str], list[TaskRun]] = {}
    for run in runs:
        by_task.setdefault((run.dag_id, run.task_id), []).append(run)
    rows = [
        _row_of(tuple(own), dags.get(dag_id, GateDag()), now)
        for (dag_id, _), own in by_task.items()
    ]
    return _worst_first(rows)


def _worst_first(rows: Iterable[GateRow]) -> tuple[GateRow, ...]:
    return tuple(sorted(rows, key=lambda row: (_rank(row.state), row.dag_id, row.task_id)))


_MOST_KEPT = 2000
_kept_rows: dict[tuple[str, str], tuple[tuple[TaskRun, ...], GateDag, GateRow]] = {}
"""The last row of each gate, with the runs and the facts about its DAG that it was made of."""


def _row_of(runs: tuple[TaskRun, ...], dag: GateDag, now: datetime | None) -> GateRow:
    """The row of a gate: the last one, if none of its runs has changed since.

    :param runs: newest first.
    """
    place = runs[0].dag_id, runs[0].task_id
    known = _kept_rows.get(place)
    if known and known[1] == dag and len(known[0]) == len(runs) and all(map(is_, known[0], runs)):
        row = known[2]
    else:
        by_run: dict[str, list[TaskRun]] = {}
        for run in runs:
            by_run.setdefault(run.run_id, []).append(run)
        row = _row([_cell(instances) for instances in by_run.values()], dag)
        _kept_rows.pop(place, None)
        _kept_rows[place] = runs, dag, row
        for oldest in [*islice(_kept_rows, max(len(_kept_rows) - _MOST_KEPT, 0))]:
            _kept_rows.pop(oldest, None)
    is_due = bool(now and dag.due and dag.due + _GRACE < now)
    return replace(row, is_due=True) if is_due else row


def with_closed_dates(rows: Iterable[GateRow], slices: SlicesOfGates) -> tuple[GateRow, ...]:
    """The rows, worst first; those whose last run is bad and whose date a person has closed say so,
    unless other dates of the gate are open."""
    has_open = {(one.dag_id, one.task_id) for one in slices.open}
    return _worst_first(
        row if (row.dag_id, row.task_id) in has_open else _closed_row(row, slices.closed)
        for row in rows
    )


def _closed_row(row: GateRow, closed: Mapping[str, IncidentNote]) -> GateRow:
    if not closed or row.state not in ("blocked", "broken", NO_REPORT):
        return row
    bad = [run for run in row.latest.of if _state(run) in _BAD]
    notes = [closed[run.attempt_id] for run in bad if run.attempt_id in closed]
    if len(notes) < len(bad):
        return row
    return replace(row, state=CLOSED, closing=max(notes, key=lambda note: note.at))


def recent_attempts(rows: Iterable[GateRow]) -> dict[str, tuple[str, str]]:
    """The ids of the last attempts that reported, each with the DAG and the task.

    A task gives the name under which its gate reported, and could give any name. The store
    identifies it by the id of the attempt, which Airflow assigned.
    """
    return {
        cell.run.attempt_id: (row.dag_id, row.task_id)
        for row in rows
        for cell in [cell for cell in row.cells if cell.report][-_LAST_RUNS:]
    }


def counts_line(counts: Mapping[Status, int]) -> str:
    """The number of failures: `2 of 6 failed, 1 in error`."""
    errors = counts.get(Status.ERROR, 0)
    line = f"{counts.get(Status.FAILED, 0)} of {sum(counts.values())} failed"
    return f"{line}, {errors} in error" if errors else line


def _row(cells: Sequence[Cell], dag: GateDag) -> GateRow:
    """:param cells: newest first."""
    # A run that has not reached the gate does not change its status.
    decided = _decided(cells)
    latest = decided[0] if decided else cells[0]
    report = latest.report
    reporting = next((cell for cell in cells if cell.report), None)
    last_report = reporting.report if reporting else None
    run = latest.run
    reports = reporting.reports if reporting else ()
    contracts = {
        (report.contract.id, report.contract.version): report.contract
        for report in reports
        if report.contract
    }
    return GateRow(
        gate=(last_report.gate if last_report else "") or _name_in(cells),
        dag_id=run.dag_id,
        task_id=run.task_id,
        owner=dag.owners,
        state=latest.state,
        streak=_streak(cells),
        latest=latest,
        cells=tuple(reversed(cells)),
        datasets=_each_once(map(report_view.datasets_in, reports)),
        promotions=_each_once(map(report_view.promotions_in, reports)),
        contracts=tuple(contracts.values()),
        worst=report.worst if report else None,
        dag=dag,
        left_out=_left_out(cells),
        is_due=False,
    )


def _name_in(cells: Sequence[Cell]) -> str:
    """The name of a gate without a report, as its last run without one stored it.

    :param cells: newest first.
    """
    for cell in cells:
        for run in cell.of:
            if name := mapping_of(run.pushed).get("gate"):
                return str(name)
    return f"{cells[0].run.dag_id}.{cells[0].run.task_id}"


def _each_once(groups: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


def _decided(cells: Sequence[Cell]) -> list[Cell]:
    """The runs that determine the status of the gate, newest first. A partial run that passed does
    not supersede an earlier run, unless both have the same selection."""
    come = [cell for cell in cells if cell.state not in _UNDECIDED]
    return [cell for index, cell in enumerate(come) if not _leaves_open(cell, come[index + 1 :])]


def _leaves_open(cell: Cell, earlier: Sequence[Cell]) -> bool:
    """True for a good partial run after a bad one that it has not resolved."""
    own = cell.report.partial if cell.report else None
    if own is None or cell.state in _BAD:
        return False
    for other in earlier:
        partial = other.report.partial if other.report else None
        is_same = partial is not None and partial.selection == own.selection
        if other.state in _BAD and not is_same:
            return True
        if other.state not in _BAD and partial is None:
            return False
    return False


def _left_out(cells: Sequence[Cell]) -> int:
    """The number of newest runs that ended without reaching the gate."""
    of_ended = (cell for cell in cells if cell.state != RUNNING)
    left_out = takewhile(lambda cell: cell.state == NOT_RUN, of_ended)
    return sum(cell.run.run_state in _ENDED_STATES for cell in left_out)


def _cell(instances: Sequence[TaskRun]) -> Cell:
    states = [_state(instance) for instance in instances]
    worst = min(states, key=_rank)
    run = instances[states.index(worst)]
    return Cell(worst, run, view_of_summary(run.pushed), tuple(instances))


def _state(run: TaskRun) -> str:
    if run.question is not None:
        return WAITING
    outcome = outcome_of_summary(run.pushed)
    if outcome is not None:
        return outcome.value
    if run.state in _RUNNING_STATES:
        return RUNNING
    return NO_REPORT if run.state in _ENDED_STATES else NOT_RUN


def _rank(state: str) -> int:
    return STATES_WORST_FIRST.index(state)


def _streak(cells: Sequence[Cell]) -> str:
    """The duration of the status: `failing for 3 runs`. What passed with a warning, or because
    someone accepted it, is only not blocked."""
    decided = [cell.state for cell in _decided(cells)]
    if not decided:
        return ""
    is_bad = decided[0] in _BAD
    length = next(
        (index for index, state in enumerate(decided) if (state in _BAD) != is_bad), len(decided)
    )
    status = "failing" if is_bad else "passing" if decided[0] == "passed" else "not blocked"
    if length == 1 and len(decided) > 1:
        return f"{status} since this run"
    more = "+" if length == len(decided) and len(cells) >= DEPTH else ""
    return f"{status} for {length}{more} run{'' if length == 1 else 's'}"


def _choices(values: Iterable[str]) -> list[str]:
    return sorted(set(values) - {""})


def counts_of_rows(client: StoreClient, rows: list[GateRow]) -> Mapping[tuple[str, str], int]:
    """The number of recent alerts without a label for each gate, by DAG and task."""
    if client.root is None:
        return {}
    tasks = recent_attempts(rows)
    wanted = RunsWanted(attempt_ids=tasks)
    columns = ("attempt_id", "gate")
    runs = client.ask(lambda store: tuple(store.run_rows(wanted, columns)))
    gates = {(tasks[run["attempt_id"]], run["gate"]) for run in runs.found}
    counts = client.ask(lambda store: unlabelled_counts(store, {gate for _, gate in gates}))
    by_gate = dict(counts.found)
    by_task = Counter[tuple[str, str]]()
    for task, gate in gates:
        by_task[task] += by_gate.get(gate, 0)
    return by_task


_MOST_PAST = 180
_MOST_PAST_OF_GATE = 60


def past_of_gates(
    rows: list[GateRow], most: int = _MOST_PAST_OF_GATE
) -> tuple[dict[tuple[str, str], list[GateReport]], str | None]:
    """The reports of gates by DAG and task, newest first; and the problem if there are none."""
    tasks = recent_attempts(rows)
    client = store_client()
    recent = client.ask(lambda store: store.reports_of(tasks))
    if not recent.found:
        return {}, recent.problem
    gates: dict[tuple[str, str], set[str]] = {}
    for report in recent.found:
        gates.setdefault(tasks[report.attempt.id], set()).add(report.run_key.gate)
    until = max(report.run_key.date for report in recent.found)
    most = max(1, min(_MOST_PAST // len(set().union(*gates.values())), most))
    instances = {(row.dag_id, row.task_id): _map_index(row) for row in rows}
    past: dict[tuple[str, str], list[GateReport]] = {}
    problem = None
    for index in {instances[task] for task in gates}:
        of_index = {task: own for task, own in gates.items() if instances[task] == index}
        names = set().union(*of_index.values())
        past_of = partial(StoredResults.past_reports, gates=names, until=until, most=most)
        answer = client.ask(partial(past_of, map_index=index))
        problem = problem or answer.problem
        for task, own in of_index.items():
            past[task] = [report for report in answer.found if report.run_key.gate in own]
    return past, problem


def _map_index(row: GateRow) -> int:
    """The map index in a row about one instance of a mapped gate; -1 in a row about all of them."""
    instances = {cell.run.map_index if cell.instances == 1 else -1 for cell in row.cells}
    return instances.pop() if len(instances) == 1 else -1


_NEED_PEOPLE = (WAITING, "blocked", "broken", NO_REPORT)
"""The states about which a person has to do something, what is decided first before the others."""

_DECIDED = (CLOSED, "accepted", "warned")
_FOLDED_FROM = 20


@dataclass(frozen=True, slots=True)
class GateGroup:
    """Gates that are shown together: those that need a person, those about which someone has
    decided or that warned, and the others. `is_folded` is set if they are many and fine; all of
    them have run `since` then, None if that is unknown."""

    title: str
    about: str
    rows: tuple[GateRow, ...]
    is_folded: bool = False
    since: datetime | None = None


def groups_of_rows(rows: Sequence[GateRow]) -> tuple[GateGroup, ...]:
    """The groups of gates, without empty ones."""
    urgent = tuple(row for row in rows if _urgency(row) == 0)
    decided = tuple(row for row in rows if _urgency(row) == 1)
    fine = tuple(row for row in rows if _urgency(row) == 2)
    groups = (
        GateGroup("Need you", "the most urgent first", urgent),
        GateGroup("Decided or warned", "nothing to do", decided),
        GateGroup("Passed", "", fine, is_folded=len(fine) > _FOLDED_FROM, since=_freshness(fine)),
    )
    return tuple(group for group in groups if group.rows)


def _urgency(row: GateRow) -> int:
    """0 for a gate that needs a person, 1 for one about which one has decided or that warned."""
    if row.state in _NEED_PEOPLE or row.is_late:
        return 0
    return 1 if row.state in _DECIDED else 2


def _place(row: GateRow, deadlines: Mapping[str, datetime]) -> tuple[object, ...]:
    """The place of a gate on the board: of those that need a person, the ones with a deadline come
    first, the next one on top; the others by their states."""
    known = _NEED_PEOPLE.index(row.state) if row.state in _NEED_PEOPLE else len(_NEED_PEOPLE)
    until = _until(row, deadlines)
    return _urgency(row), until is None, until or _NEVER, known


_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def _until(row: GateRow, deadlines: Mapping[str, datetime]) -> datetime | None:
    """The time by which a gate needs a person: the end of the time for an answer, or the deadline
    of its run, whichever is first."""
    question = row.latest.question
    ends = [question.until if question else None, deadlines.get(_key_of(row))]
    known = [as_utc(end) for end in ends if end is not None]
    return min(known, default=None)


def _key_of(row: GateRow) -> str:
    """The DAG and the task of a gate: `lake.gate`."""
    return f"{row.dag_id}.{row.task_id}"


def _deadlines_of(session: Any, rows: Iterable[GateRow]) -> dict[str, datetime]:
    """The next deadlines of the last runs of gates that need a person, by DAG and task."""
    runs = {
        _key_of(row): (row.dag_id, row.latest.run.run_id)
        for row in rows
        if row.state in _NEED_PEOPLE
    }
    known = deadlines_of(session, {*runs.values()})
    return {key: known[run] for key, run in runs.items() if run in known}


def _freshness(rows: Sequence[GateRow]) -> datetime | None:
    """When the gate ran that has not run for the longest time; None if that is unknown."""
    ran = [row.ran for row in rows]
    known = [at for at in ran if at is not None]
    return min(known, default=None) if len(known) == len(ran) else None


@dataclass(frozen=True, slots=True)
class OpenOfGate:
    """The open dates of a gate, oldest first, and the rows that its target lacks."""

    slices: tuple[OpenSlice, ...]
    held_back: HeldBack

    @property
    def since(self) -> date | None:
        """The first date; None if no date is known."""
        return min((one.date for one in self.slices if one.date is not None), default=None)

    @property
    def count(self) -> int:
        """The number of open dates."""
        return len(self.slices)

    @property
    def incident(self) -> Incident | None:
        """The incident of the newest date that was judged; None without one."""
        judged = [one.incident for one in self.slices if one.incident is not None]
        return judged[-1] if judged else None

    @property
    def same_cause_as(self) -> str:
        """The earlier gate with the same cause as the newest date."""
        return self.slices[-1].same_cause_as

    @property
    def taken(self) -> tuple[IncidentNote, ...]:
        """A note of each person who has taken some of the dates, on the newest of theirs."""
        notes: dict[str, IncidentNote] = {}
        for one in reversed(self.slices):
            if one.acknowledgement is not None:
                notes.setdefault(one.acknowledgement.author, one.acknowledgement)
        return tuple(notes.values())

    @property
    def free(self) -> tuple[OpenSlice, ...]:
        """The dates that no one has taken."""
        return tuple(one for one in self.slices if one.acknowledgement is None)

    @property
    def keys_to_take(self) -> tuple[str, ...]:
        """The keys of the dates that someone can take, the oldest ones if they are many."""
        known = (one for one in self.free if one.date is not None)
        return tuple(key_of_slice(one) for one in islice(known, _MOST_TAKEN))


_MOST_TAKEN = 500


def open_by_gate(
    client: StoreClient, slices: Iterable[OpenSlice]
) -> dict[tuple[str, str], OpenOfGate]:
    """The open dates of gates, by DAG and task.

    :param slices: oldest data first.
    """
    by_gate: dict[tuple[str, str], list[OpenSlice]] = {}
    for one in slices:
        by_gate.setdefault((one.dag_id, one.task_id), []).append(one)
    incidents = [one.incident for own in by_gate.values() for one in own if one.incident]
    judged = dict(client.ask(lambda store: tuple(judged_rows(store, incidents).items())).found)
    found = {}
    for gate, own in by_gate.items():
        of_gate = [judged.get(one.incident.id, ()) for one in own if one.incident is not None]
        found[gate] = OpenOfGate(tuple(own), HeldBack.of(of_gate))
    return found


class BoardPage(NamedTuple):
    """A page of the board. `counts` are the gates by status, `late` those with a missing run.
    `open_slices` are the dates that are not good, and `deadlines` the next deadlines of the last
    runs of gates that need a person, both by DAG and task as in `lake.gate`. `causes` is the number
    of causes of the open dates. `problem` is set if the results store does not respond: open dates
    may then be missing, and closed ones look blocked."""

    rows: tuple[GateRow, ...]
    paging: Paging
    counts: dict[str, int]
    late: int
    open_slices: Mapping[str, int]
    deadlines: Mapping[str, datetime]
    causes: int
    problem: str | None


@router.get("/board")
def board(
    visitor: VisitorDep,
    tasks: TasksDep,
    filters: Annotated[BoardFilters, Depends()],
    page: PageNumber,
) -> Page[BoardPage]:
    """The gates of all DAGs that the user may read, those first that need a person."""
    now = datetime.now(timezone.utc)
    session = visitor.session
    client = store_client()
    recent = reported_runs(session, client, tasks.tasks)
    slices = slices_of(session, client, tasks, recent)
    rows = with_closed_dates(gate_rows(recent, tasks.dags, now), slices)
    open_ = slices.open
    deadlines = _deadlines_of(session, rows)
    session.close()
    wanted = [row for row in rows if filters.wants(row)]
    matching = sorted(wanted, key=lambda row: _place(row, deadlines))
    paging = Paging.of(page, len(matching))
    shown = paging.shown(matching)
    states = Counter(row.state for row in rows)
    may_edit = cache(visitor.may_edit)
    note_ids = {
        (row.dag_id, row.task_id): uuid4()
        for row in shown
        if _urgency(row) == 0 and may_edit(row.dag_id)
    }
    if note_ids and client.read_only() is not None:
        note_ids = {}
    counts = {state: states[state] for state in STATES_WORST_FIRST if states[state]}
    choices = {
        "dag_id": _choices(row.dag_id for row in rows),
        "dataset": _choices(dataset.location for row in rows for dataset in row.datasets),
        "contract": _choices(contract.id for row in rows for contract in row.contracts),
        "outcome": [*counts],
        "severity": _choices(row.worst.severity.value for row in rows if row.worst),
        "owner": _choices(name for row in rows for name in row.owners),
    }
    open_slices = Counter(f"{one.dag_id}.{one.task_id}" for one in open_)
    late = sum(row.is_late for row in rows)
    needing = sum(_urgency(row) == 0 for row in rows)
    keep_counts(visitor, board=needing, slices=len(open_))
    problem = slices.problem if client.root is not None else None
    return Page(
        "board.html",
        BoardPage(shown, paging, counts, late, open_slices, deadlines, slices.causes, problem),
        choices=choices,
        filters=filters,
        alerts=counts_of_rows(client, list(shown)),
        needing=needing,
        next_deadline=min(map(as_utc, deadlines.values()), default=None),
        groups=groups_of_rows(shown),
        opened=open_by_gate(client, open_),
        note_ids=note_ids,
        token=form_token(visitor.user),
    )


_COUNTED_FOR = timedelta(seconds=30)
_counted: dict[str, tuple[datetime, dict[str, int]]] = {}
"""The last counts of each user, with their times."""


def keep_counts(visitor: Visitor, **found: int) -> None:
    """Replaces numbers in the bar by those of a page, so that both are the same."""
    user = str(visitor.user.get_id())
    if user in _counted:
        at, known = _counted[user]
        _counted[user] = at, {**known, **found}


@router.get("/counts")
def counts(visitor: VisitorDep) -> Response:
    """The numbers in the bar of all pages, by the address of the page that they lead to: gates that
    need a person, open dates, and alerts without a label. They are at most half a minute old."""
    now = datetime.now(timezone.utc)
    user = str(visitor.user.get_id())
    at, found = _counted.get(user, (now - 2 * _COUNTED_FOR, {}))
    if now - at > _COUNTED_FOR:
        found = _counts_of(visitor, now)
        _counted[user] = now, found
    return JSONResponse(found)


def _counts_of(visitor: Visitor, now: datetime) -> dict[str, int]:
    client = store_client()
    tasks = gate_tasks(visitor)
    recent = reported_runs(visitor.session, client, tasks.tasks)
    slices = slices_of(visitor.session, client, tasks, recent)
    rows = with_closed_dates(gate_rows(recent, tasks.dags, now), slices)
    visitor.session.close()
    return {
        "board": sum(_urgency(row) == 0 for row in rows),
        "slices": len(slices.open),
        "alerts": sum(counts_of_rows(client, list(rows)).values()),
    }
