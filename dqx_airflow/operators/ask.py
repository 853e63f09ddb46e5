"""`on_violation="ask"`: a blocked gate waits for someone, and goes on with the answer.

From Airflow 3.3 on, the task waits as `awaiting_input`; before, as `deferred`, with a trigger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.diagnostics.verdicts import format_row
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.airflow_versions import (
    create_question,
    parked_until_answered,
    text_param,
)
from dqx_airflow.operators.exceptions import GateBlockedError, GateInfrastructureError
from dqx_airflow.operators.notifications import Callback, gate_notification, run_callbacks
from dqx_airflow.values import GateReport, Outcome
from dqx_airflow.values.blank import is_blank

if TYPE_CHECKING:
    from dqx_airflow.results.query import StoredResults

ACCEPT = "Accept this data"
KEEP = "Keep blocked"
OPTIONS = (ACCEPT, KEEP)
KEPT = "kept blocked"
"""The kind of the note with this answer, as in `results.incidents`."""
_REASON = "To accept this data, give a reason: without one, the gate asks again."
_MOST_ROWS = 5
_LONGEST_ROW = 200
_LONGEST_SUBJECT = 255


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of someone, or the default after the timeout."""

    accepts: bool
    author: str
    reason: str
    at: datetime

    def __str__(self) -> str:
        return f"by {self.author}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """The question of a gate: since when, until when (None without an end), and what happens then:
    `accepted` or `kept blocked`, None without an end."""

    since: datetime
    until: datetime | None
    default: str | None

    @property
    def summary(self) -> dict[str, str | None]:
        """The question in the XCom summary."""
        return {
            "since": self.since.isoformat(),
            "until": self.until.isoformat() if self.until else None,
            "default": self.default,
        }


def question_with(timeout: timedelta | None, default: str) -> AskedQuestion:
    """The question that is asked now."""
    now = datetime.now(timezone.utc)
    if timeout is None:
        return AskedQuestion(now, None, None)
    return AskedQuestion(now, now + timeout, "accepted" if default == "accept" else KEPT)


def write_question(
    results: StoredResults, reports: Sequence[GateReport], question: AskedQuestion
) -> None:
    """Stores that the gate waits, for the list of incidents.

    :raises StoreError: the store cannot be written.
    """
    from dqx_airflow.results.incidents import ASKED, IncidentNote, write_notes

    blocked = [report for report in reports if report.outcome is Outcome.BLOCKED]
    notes = [
        IncidentNote(
            report.run_key.gate,
            report.run_key.date,
            kind=ASKED,
            author=report.run_key.gate,
            text=question.default or "",
            map_index=report.run_key.map_index,
            slice=report.slice,
            run_id=report.run_id,
            at=question.since,
            until=question.until,
        )
        for report in blocked
    ]
    write_notes(results, notes)


def ask(
    reports: Sequence[GateReport],
    context: Any,
    *,
    timeout: timedelta | None,
    default: str,
    before: Callback | Sequence[Callback] = (),
) -> None:
    """Parks the task until someone answers; it goes on with `answered`. Returns if Airflow would
    not show this question: it keeps the question of the first try of a task.

    :param before: callbacks for the time between the question and the parking of the task.
    :raises TaskAwaitingInput: Airflow parks the task; before Airflow 3.3 it is deferred.
    :raises TaskDeferred: as above.
    """
    ti = context["ti"]
    notification = gate_notification(context)
    reason = text_param("Reason", "Why the data may go on; required to accept")
    params = {"reason": reason}
    defaults = [ACCEPT if default == "accept" else KEEP] if timeout else None
    rows = _failing_rows(reports)
    body = "\n\n".join(filter(None, [_REASON, notification.markdown, rows]))
    # Made before the question, so that whatever fails leaves no question behind.
    parked = parked_until_answered(
        ti.id,
        OPTIONS,
        params,
        defaults,
        timeout,
        method_name="answered",
        kwargs={"judged": [report.run_id for report in reports]},
    )
    subject = notification.text[:_LONGEST_SUBJECT]
    if create_question(ti.id, OPTIONS, subject, body, params, defaults) != body:
        return
    run_callbacks(before, context)
    raise parked


def _failing_rows(reports: Sequence[GateReport]) -> str:
    """A few failing rows of the blocking assertions, masked as in the report."""
    rows = [
        f"{verdict.name}: {format_row(row, _LONGEST_ROW)}"
        for report in reports
        for verdict in report.verdicts
        if verdict.can_block(report.fail_on)
        for row in verdict.failing_rows[:_MOST_ROWS]
    ]
    shown = [printable(row).replace("`", "'") for row in rows[: 4 * _MOST_ROWS]]
    return "\n".join(["```", *shown, "```"]) if shown else ""


def answer_of(event: Mapping[str, Any], timeout: timedelta | None) -> Answer:
    """The answer in the event with which Airflow resumes the task.

    :raises GateInfrastructureError: Airflow reports an error instead of an answer.
    """
    if "error" in event:
        raise GateInfrastructureError(f"no answer: {event['error']}")
    accepts = ACCEPT in (event.get("chosen_options") or ())
    at = event.get("responded_at") or datetime.now(timezone.utc)
    at = datetime.fromisoformat(at) if isinstance(at, str) else at
    user = event.get("responded_by_user")
    if not user:
        how = "the default of the gate" if accepts else ""
        return Answer(accepts, f"no one within {timeout}", how, at)
    reason = str((event.get("params_input") or {}).get("reason") or "").strip()
    reason = "" if is_blank(reason) else reason
    name = str(user.get("name") or user.get("id"))
    return Answer(accepts, name, reason, at)


def record(results: StoredResults, reports: Sequence[GateReport], answer: Answer) -> None:
    """Stores an answer: the acceptance of exactly what was judged, or that it stays blocked.

    :raises StoreError: the store cannot be written.
    :raises GateBlockedError: no one can accept the data.
    """
    from dqx_airflow.results.decisions import acceptance_of
    from dqx_airflow.results.incidents import IncidentNote, write_notes

    notes = []
    for report in (report for report in reports if report.outcome is Outcome.BLOCKED):
        if answer.accepts:
            try:
                notes.append(acceptance_of(report, answer.author, answer.reason))
            except RequestError as error:
                raise GateBlockedError(error.in_one_line) from None
            continue
        key = report.run_key
        note = IncidentNote(
            key.gate,
            key.date,
            kind=KEPT,
            author=answer.author,
            text=answer.reason,
            map_index=key.map_index,
            slice=report.slice,
        )
        notes.append(note)
    write_notes(results, notes)
