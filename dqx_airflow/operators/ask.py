"""`on_violation="ask"`: a blocked gate waits for a person, and goes on with the answer.

From Airflow 3.3 on the task waits as `awaiting_input`: it holds no worker slot and no trigger.
Airflow 3.1 and 3.2 keep a trigger in the triggerer, which asks the database every five seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.diagnostics.verdicts import format_row
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.exceptions import GateBlockedError, GateInfrastructureError
from dqx_airflow.operators.notices import Callback, gate_notice, run_callbacks
from dqx_airflow.values import GateReport, Outcome

if TYPE_CHECKING:
    from dqx_airflow.results.query import StoredResults

ACCEPT = "Accept this data"
KEEP = "Keep blocked"
_REASON = "To accept this data, give a reason: without one, the gate asks again."
_MOST_ROWS = 5
_LONGEST_ROW = 200
_LONGEST_SUBJECT = 255


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a person, or the default after the timeout."""

    accepts: bool
    author: str
    reason: str
    at: datetime

    def __str__(self) -> str:
        return f"by {self.author}{f': {self.reason}' if self.reason else ''}"


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

    :param before: callbacks for the time before the task is parked.
    :raises TaskAwaitingInput: Airflow parks the task; before Airflow 3.3 it is deferred.
    :raises TaskDeferred: as above.
    """
    from airflow.sdk.definitions.param import Param, ParamsDict
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import CreateHITLDetailPayload

    ti = context["ti"]
    notice = gate_notice(context)
    reason = Param(
        "", type="string", title="Reason", description="Why the data may go on; required to accept"
    )
    params = {"reason": ParamsDict({"reason": reason}).get_param("reason").serialize()}
    defaults = [ACCEPT if default == "accept" else KEEP] if timeout else None
    rows = _failing_rows(reports)
    body = "\n\n".join(filter(None, [_REASON, notice.markdown, rows]))
    question = CreateHITLDetailPayload(
        ti_id=ti.id,
        options=[ACCEPT, KEEP],
        subject=notice.text[:_LONGEST_SUBJECT],
        body=body,
        defaults=defaults,
        multiple=False,
        params=params,
        assigned_users=[],
    )
    shown = task_runner.SUPERVISOR_COMMS.send(msg=question)
    if getattr(shown, "body", body) != body:
        return
    run_callbacks(before, context)
    kwargs = {"judged": [report.run_id for report in reports]}
    try:
        from airflow.sdk.exceptions import TaskAwaitingInput
    except ImportError:  # Airflow 3.1 and 3.2
        from airflow.providers.standard.triggers.hitl import HITLTrigger
        from airflow.sdk.exceptions import TaskDeferred

        trigger = HITLTrigger(
            ti_id=ti.id,
            options=[ACCEPT, KEEP],
            params=params,
            defaults=defaults,
            timeout_datetime=datetime.now(timezone.utc) + timeout if timeout else None,
        )
        raise TaskDeferred(trigger=trigger, method_name="answered", kwargs=kwargs) from None
    raise TaskAwaitingInput(method_name="answered", kwargs=kwargs, timeout=timeout)


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
    name = str(user.get("name") or user.get("id"))
    return Answer(accepts, name, reason, at)


def record(results: StoredResults, reports: Sequence[GateReport], answer: Answer) -> None:
    """Stores an answer: the acceptance of exactly what was judged, or that it stays blocked.

    :raises StoreError: the store cannot be written.
    :raises GateBlockedError: no one can accept the data.
    """
    from dqx_airflow.results.decisions import acceptance_of
    from dqx_airflow.results.incidents import COMMENT, IncidentNote, write_notes

    notes = []
    for report in (report for report in reports if report.outcome is Outcome.BLOCKED):
        if answer.accepts:
            try:
                notes.append(acceptance_of(report, answer.author, answer.reason))
            except RequestError as error:
                raise GateBlockedError(error.in_one_line) from None
            continue
        key = report.run_key
        text = f"kept blocked{f': {answer.reason}' if answer.reason else ''}"
        note = IncidentNote(
            key.gate, key.date, COMMENT, answer.author, text, key.map_index, report.slice
        )
        notes.append(note)
    write_notes(results, notes)
