"""The page of open slices: every date that is still blocked, waits for an answer, or whose run left
no report; and the forms that take and clear them, and that close those without a report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, partial
from http import HTTPStatus
from typing import NamedTuple
from uuid import UUID, uuid4, uuid5

from fastapi import Response

from dqx_airflow.results.incidents import (
    ACKNOWLEDGED,
    CLOSED,
    WAITING,
    IncidentNote,
    judged_rows,
    worst_verdicts,
    write_notes,
)
from dqx_airflow.results.missing_reports import MissingReport, missing_reports
from dqx_airflow.results.query import RunsWanted
from dqx_airflow.results.report_rows import gate_without_suite
from dqx_airflow.results.schema import as_utc
from dqx_airflow.ui import airflow, airflow_dags, airflow_users, responses
from dqx_airflow.ui.api import PageRouter
from dqx_airflow.ui.board_page import keep_counts
from dqx_airflow.ui.clearing import clear_tasks
from dqx_airflow.ui.deciding import HeldBack, decision_in_words
from dqx_airflow.ui.open_slices import OpenSlice, key_of_slice, slices_of, what_became_of
from dqx_airflow.ui.responses import Form, Page, Refused, form_token
from dqx_airflow.ui.store import StoreClient
from dqx_airflow.ui.summary_view import view_of_summary
from dqx_airflow.ui.verdict_text import sentence_of
from dqx_airflow.values import NO_REPORT
from dqx_airflow.values.typed_values import days_before

router = PageRouter()


_MOST_SLICES = 500


class SlicesPage(NamedTuple):
    """The oldest open slices, how many there are, in all and by state, and how many causes."""

    rows: list[OpenSlice]
    total: int
    counts: dict[str, int]
    more: int
    problem: str | None
    causes: int


@dataclass(frozen=True, slots=True)
class GateDates:
    """The open dates of a gate, and the owners of its DAG. `gate` is its name in the results,
    `promotes_to` the targets of its last report."""

    gate: str
    dag_id: str
    task_id: str
    owners: str
    slices: tuple[OpenSlice, ...]
    promotes_to: tuple[str, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that lack rows; of dates without a report, those of the last report."""
        return HeldBack.of([one.judged for one in self.slices]).targets or self.promotes_to


_DAYS_SHOWN = 21
_GATES_SHOWN = 30
_SIGNS = {WAITING: "◔", "blocked": "✕", "broken": "?", NO_REPORT: "·"}


@dataclass(frozen=True, slots=True)
class DaySign:
    """A date of a gate in the picture: its state as a sign and as a word, empty without a run; and
    the open slice if it is open."""

    sign: str
    state: str
    slice: OpenSlice | None = None


@dataclass(frozen=True, slots=True)
class DatesPicture:
    """The last dates of gates with open ones, as signs: `rows` are the gates, each with a sign for
    each of `days`, oldest first."""

    days: tuple[date, ...]
    rows: tuple[tuple[GateDates, tuple[DaySign, ...]], ...]


def _targets_of(
    recent: Sequence[airflow.TaskRun], gates: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The targets in the last report of each gate, by DAG and task.

    :param recent: the last runs, newest first.
    """
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for run in recent:
        gate = run.dag_id, run.task_id
        if gate in found or gate not in gates:
            continue
        report = view_of_summary(run.pushed)
        if report is not None:
            found[gate] = tuple(one.location for one in report.promotions)
    return found


def _picture(client: StoreClient, gates: Sequence[GateDates]) -> DatesPicture:
    """The last dates of the first gates of the list, from the first one on of which any has a
    report."""
    shown = gates[:_GATES_SHOWN]
    dates = [one.date for gate in shown for one in gate.slices if one.date is not None]
    if not dates:
        return DatesPicture((), ())
    last = max(dates)
    days = tuple(days_before(last, back) for back in range(_DAYS_SHOWN - 1, -1, -1))
    names = {f"{gate.dag_id}.{gate.task_id}" for gate in shown}
    names |= {
        one.incident.last.run_key.gate for gate in shown for one in gate.slices if one.incident
    }
    wanted = RunsWanted(names, since=days[0], until=last)
    columns = ("gate", "suite", "job", "dataset_date", "outcome", "finished_at")
    runs = client.ask(lambda store: tuple(store.run_rows(wanted, columns))).found
    outcomes: dict[tuple[str, date], str] = {}
    for run in sorted(runs, key=lambda row: as_utc(row["finished_at"])):
        name = gate_without_suite(run["gate"], run["suite"], run.get("job"))
        outcomes[name, run["dataset_date"]] = run["outcome"]
    rows = tuple((gate, _signs(gate, days, outcomes)) for gate in shown)
    first = min(place for _, signs in rows for place, sign in enumerate(signs) if sign.state)
    return DatesPicture(days[first:], tuple((gate, signs[first:]) for gate, signs in rows))


def _signs(
    gate: GateDates, days: Sequence[date], outcomes: Mapping[tuple[str, date], str]
) -> tuple[DaySign, ...]:
    """The dates of a gate in a picture.

    :param outcomes: the last outcome by the name of the gate and the date.
    """
    open_on = {one.date: one for one in gate.slices}
    names = {f"{gate.dag_id}.{gate.task_id}"}
    names |= {one.gate for one in gate.slices if one.incident}
    signs = []
    for day in days:
        if day in open_on:
            one = open_on[day]
            signs.append(DaySign(_SIGNS[one.state], one.state, one))
            continue
        known = [outcomes[name, day] for name in names if (name, day) in outcomes]
        # A bad run that is not open was repaired by another one, accepted or closed.
        state = known[0] if known else ""
        is_good = state in ("passed", "warned", "accepted")
        signs.append(DaySign("✓" if is_good else "\N{EN DASH}" if state else "", state))
    return tuple(signs)


@router.get("/slices")
def slices(visitor: airflow_users.VisitorDep, tasks: airflow_dags.TasksDep) -> Page[SlicesPage]:
    """Every date that is not good in the gates that the user may read, oldest first."""
    client = responses.store_client()
    recent = airflow.recent_runs(visitor.session, tasks.tasks)
    known = slices_of(visitor.session, client, tasks, recent)
    found, problem = known.open, known.problem
    visitor.session.close()
    keep_counts(visitor, slices=len(found))
    shown = found[:_MOST_SLICES]
    incidents = [one.incident for one in shown if one.incident is not None]
    judged = client.ask(lambda store: tuple(judged_rows(store, incidents).items()))
    verdicts = client.ask(lambda store: tuple(worst_verdicts(store, incidents).items()))
    by_incident = dict(judged.found)
    sentences = {own: sentence_of(verdict) for own, verdict in verdicts.found}
    rows = [
        replace(
            one,
            judged=by_incident.get(one.incident.id, ()),
            sentence=sentences.get(one.incident.id, ""),
        )
        if one.incident
        else one
        for one in shown
    ]
    by_gate: dict[tuple[str, str], list[OpenSlice]] = {}
    for one in rows:
        by_gate.setdefault((one.dag_id, one.task_id), []).append(one)
    targets = _targets_of(recent, by_gate)
    gates = [
        GateDates(
            gate=own[-1].gate,
            dag_id=dag_id,
            task_id=task_id,
            owners=tasks.dags.get(dag_id, airflow_dags.GateDag()).owners,
            slices=tuple(own),
            promotes_to=targets.get((dag_id, task_id), ()),
        )
        for (dag_id, task_id), own in by_gate.items()
    ]
    clears = {dag_id for dag_id, _ in by_gate if visitor.may_clear(dag_id)}
    edits = {dag_id for dag_id, _ in by_gate if visitor.may_edit(dag_id)}
    if edits and client.read_only() is not None:
        edits = set()
    more = len(found) - len(shown)
    counts = {
        state: count
        for state in (WAITING, "broken", "blocked", NO_REPORT)
        if (count := sum(one.state == state for one in found))
    }
    return Page(
        "slices.html",
        SlicesPage(
            rows,
            len(found),
            counts,
            more,
            problem or judged.problem or verdicts.problem or known.left_out,
            known.causes,
        ),
        gates=gates,
        held_back=HeldBack.of([one.judged for one in rows]),
        picture=_picture(client, gates),
        clears=clears,
        edits=edits,
        new_id=uuid4,
        can_clear=sum(one.task is not None and one.dag_id in clears for one in rows),
        token=form_token(visitor.user),
        key_of=key_of_slice,
    )


_LONGEST_REASON = 2000
_CLEAR = "clear"


@router.post("/slices")
def change_slices(
    visitor: airflow_users.VisitorDep, tasks: airflow_dags.TasksDep, form: Form
) -> Response:
    """Takes open slices, or clears the checked ones, oldest data first; or closes a date without a
    report."""
    given = {**form, "kind": form.get("kind") or _CLEAR}
    kinds = {kind: kind for kind in (_CLEAR, ACKNOWLEDGED, CLOSED)}
    kind, reason = responses.chosen(given, kinds, "kind", _LONGEST_REASON)
    with responses.one_at_a_time():
        return _change_slices(visitor, tasks, form, kind, reason)


def _change_slices(
    visitor: airflow_users.Visitor,
    tasks: airflow_dags.GateTasks,
    form: Form,
    kind: str,
    reason: str,
) -> Response:
    client = responses.store_client()
    recent = airflow.recent_runs(visitor.session, tasks.tasks)
    known = slices_of(visitor.session, client, tasks, recent)
    keys = {*form.get(responses.PICKED, "").split()}
    if not keys:
        raise Refused(HTTPStatus.BAD_REQUEST, "No date is selected: check the dates to clear.")
    about = [one for one in known.open if key_of_slice(one) in keys]
    if known.problem is not None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, known.problem)
    if not about:
        ended = what_became_of(visitor.session, client, tasks, recent, keys)
        if ended:
            raise responses.no_longer_open(ended)
        raise Refused(HTTPStatus.NOT_FOUND, "No open date of a gate that you may read.")
    if kind != _CLEAR:
        _require_editor(visitor, about)
    if kind == ACKNOWLEDGED:
        return _take(visitor, client, about, form)
    if kind == CLOSED:
        return _close(visitor, client, about, reason, form)
    may_clear = cache(visitor.may_clear)
    allowed = [one for one in about if may_clear(one.dag_id)]
    if not allowed:
        raise Refused(HTTPStatus.FORBIDDEN, "You may not clear tasks of these DAGs.")
    refs = dict.fromkeys(one.task for one in allowed if one.task is not None)
    dates = [one.date for one in allowed]
    return clear_tasks(visitor, [*refs], dates, form, "slices", _page_before(form, allowed[0]))


def _require_editor(visitor: airflow_users.Visitor, about: Sequence[OpenSlice]) -> None:
    """:raises Refused: the user may not edit one of the DAGs."""
    missing = Refused(HTTPStatus.NOT_FOUND, "No open date of a gate that you may read.")
    forbidden = "You do not have permission to edit this DAG."
    responses.require_editor(visitor, {one.dag_id for one in about}, missing, forbidden)


def _take(
    visitor: airflow_users.Visitor,
    client: StoreClient,
    about: Sequence[OpenSlice],
    form: Mapping[str, str],
) -> Response:
    """Notes that the user takes care of the dates that no one has taken.

    :raises Refused: all their dates are unknown, or others have taken all of them.
    """
    known = [one for one in about if one.date is not None]
    if not known:
        raise Refused(HTTPStatus.BAD_REQUEST, DATE_UNKNOWN)
    back = _page_before(form, about[0])
    free = [one for one in known if one.acknowledgement is None]
    if not free and visitor.name in {
        one.acknowledgement.author for one in known if one.acknowledgement
    }:
        return responses.back_to(back)
    if not free:
        raise responses.no_longer_open(
            [
                f"{one.gate}, data of {one.date}: {decision_in_words(one.acknowledgement)}"
                for one in known
                if one.acknowledgement
            ]
        )
    own = responses.note_id(form.get("note", ""))
    notes = _notes(client, free, ACKNOWLEDGED, visitor.name, "", own)
    entries: list[tuple[airflow.TaskRef | str, dict[str, object]]] = [
        (one.task or one.dag_id, {"gate": one.gate, "date": one.date, "kind": ACKNOWLEDGED})
        for one in free
    ]
    write = partial(write_notes, notes=notes)
    return responses.recorded_changes(visitor, "dqx incident", entries, write, back)


def _close(
    visitor: airflow_users.Visitor,
    client: StoreClient,
    about: Sequence[OpenSlice],
    reason: str,
    form: Mapping[str, str],
) -> Response:
    """Ends a date without a report by the word of a person, as `dql incidents close` does.

    :raises Refused: it is not a date without a report, or its date is unknown; or the reason is
        empty.
    """
    one = about[0]
    if len(about) > 1 or one.state != NO_REPORT or one.task is None:
        only = "Only a date without a report is closed here: close the others on their incidents."
        raise Refused(HTTPStatus.BAD_REQUEST, only)
    if one.date is None:
        raise Refused(HTTPStatus.BAD_REQUEST, DATE_UNKNOWN)
    if not reason:
        raise Refused(HTTPStatus.BAD_REQUEST, "The reason is empty.")
    own = responses.note_id(form.get("note", ""))
    notes = _notes(client, [one], CLOSED, visitor.name, reason, own)
    facts = {"gate": one.gate, "date": one.date, "kind": CLOSED, "text": reason, "note": own}
    write = partial(write_notes, notes=notes)
    back = _page_before(form, one)
    return responses.recorded_change(visitor, "dqx incident", [one.task], facts, write, back)


DATE_UNKNOWN = "The date of its data is unknown: clear it, or trigger the DAG for the date."


def _notes(
    client: StoreClient, about: Sequence[OpenSlice], kind: str, author: str, text: str, own: UUID
) -> list[IncidentNote]:
    """The notes of a person on open slices of known dates.

    :param own: the id of the form.
    :raises Refused: the store does not respond.
    """
    silent = {one.gate for one in about if one.incident is None}
    answer = client.ask(lambda store: missing_reports(store, silent) if silent else ())
    if answer.problem is not None:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, answer.problem)
    notes = [note for one in about for note in _notes_on(one, answer.found, kind, author, text)]
    # The same ids for a form that is sent twice, and another one for each slice.
    return [
        replace(note, id=str(uuid5(own, repr((note.gate, note.date, note.map_index, note.slice)))))
        for note in notes
    ]


def _notes_on(
    one: OpenSlice, missing: Collection[MissingReport], kind: str, author: str, text: str
) -> list[IncidentNote]:
    """The notes on an open slice: of a date without a report, one for each slice of which the store
    knows that it has none, else one for the date."""
    assert one.date is not None
    if one.incident is not None:
        last = one.incident.last
        gate, slice = last.run_key.gate, last.slice
        return [IncidentNote(gate, one.date, kind, author, text, one.map_index, slice)]
    place = one.gate, one.date, one.map_index
    known = [
        unknown.note(kind, author, text)
        for unknown in missing
        if (unknown.gate, unknown.date, unknown.map_index) == place
    ]
    return known or [IncidentNote(one.gate, one.date, kind, author, text, one.map_index)]


def _page_before(form: Form, one: OpenSlice) -> str:
    """The page of the form: an address that we construct, whatever the form contains."""
    back = form.get("back")
    if back == "runs":
        return responses.runs_address(one.dag_id, one.task_id)
    if back == "tab" and one.task is not None:
        return responses.gate_address(one.task)
    return responses.address("board" if back == "board" else "slices")
