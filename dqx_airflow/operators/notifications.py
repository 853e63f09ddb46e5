"""The notification of a gate: a line, a few lines, an email, and the same as data; after every
task, or only when a slice begins to block, blocks for more, and recovers.

For the callbacks of tasks: `on_failure_callback`, `on_retry_callback`, `on_skipped_callback`,
`on_success_callback`, and `on_warning_callback` of a gate.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.diagnostics.verdicts import format_like_limit, found_text
from dqx_airflow.operators.links import GateReportLink
from dqx_airflow.operators.state_changes import change_since
from dqx_airflow.operators.summary import XCOM_KEY, cut
from dqx_airflow.values import NO_REPORT

Callback: TypeAlias = Callable[[Any], Any]

_MOST_VERDICTS = 5
_LONGEST_TEXT = 300
_LONGEST_NAME = 120
_LONGEST_VALUE = 80
_BAD = ("blocked", "broken")
_PROMOTIONS = {
    "not_promoted": "no rows promoted",
    "promoted_blocked": "promoted although blocked",
    "left_out": "left out",
}
# What chats read as a mention or a link: `<!channel>`, `<@U1>`, `<https://...|text>`.
_OPENS_TAG = re.compile(r"<(?=[!@#/\w])")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GateNotification:
    """The notification of a gate whose task has just ended.

    All fields are bounded in size and show the same data as the report, masked values as `***`.

    :param text: one line, for subjects.
    :param markdown: for chats; names and values are escaped.
    :param html: for emails; names and values are escaped.
    :param payload: the same as data that can be JSON: `run_id`, `gate`, `date`, `map_index`,
        `dag_run_id`, `dag_id`, `task_id`, `try_number`, `outcome` ("passed", "warned", "accepted",
        "blocked", "broken", or "no report"), `recovered`, `text`, `url` (of the tab, if `base_url`
        in section `[api]` is set), `incident_url` (of the incident, if the gate is blocked or
        broken, or has recovered), `error` (the exception, if there is no report),
        `question` (while the gate waits for a person: `since`, `until` and `default`, what happens
        then, and the `url` of the answer), `decision` (the answer after which a gate stays
        blocked), `same_cause` (the earlier gate of the DAG that had the same cause: its `gate`,
        its `incident`, and the time `at` which it was stopped), and `report` (the summary in XCom,
        None without a report).
    """

    text: str
    markdown: str
    html: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NotificationPayload:
    """A notification as data, whose JSON is `asdict`: the fields of `GateNotification.payload`."""

    run_id: str | None
    gate: str
    date: str | None
    map_index: int
    dag_run_id: str
    dag_id: str
    task_id: str
    try_number: int
    outcome: str
    recovered: bool
    text: str
    url: str | None
    incident_url: str | None
    error: str | None
    question: Mapping[str, Any] | None
    decision: str | None
    same_cause: Mapping[str, Any] | None
    report: Mapping[str, Any] | None


def gate_notification(
    context: Any, *, is_recovery: bool = False, on: str | None = ""
) -> GateNotification:
    """Returns the notification of the gate whose callback receives this context.

    :param is_recovery: the slice was blocked or broken before, or the gate had no report, and
        passes again: the notification says so first, and links to the incident that has ended.
    :param on: the date of the incident, by default the first bad one; None for a recovery from runs
        without a report, which form no incident.
    """
    ti = context["ti"]
    pushed = summary_of(ti)
    report = {} if pushed.get("outcome") == NO_REPORT else pushed
    error = " ".join(str(context.get("exception") or pushed.get("error") or "").split())
    gate = _text(pushed.get("gate")) or f"{ti.dag_id}.{ti.task_id}"
    outcome = _text(report.get("outcome")) or NO_REPORT
    about = f"data of {pushed['date']}" if pushed.get("date") else f"run {ti.run_id}"
    text = _subject(report, f"{gate}, {about}", error, is_recovery=is_recovery)
    url = _address_of_tab(ti)
    has_incident = outcome in _BAD or bool(on) or (is_recovery and on is not None)
    incident = _incident_url(ti, on or _first_bad_date(pushed)) if url and has_incident else ""
    faults, more = _faults(report)
    question = _question(ti, report)
    same = _same_cause(report)
    fields = {
        "outcome": f"recovered, {outcome}" if is_recovery else outcome,
        "gate": gate,
        "title": _title(report, error),
        "same": same,
        "faults": faults,
        "more": more,
        "decision": _text(report.get("decision")),
        "waits": _waits(question) if question else "",
        "answer": question.get("url") if question else None,
        "to_do": _to_do(report),
        "url": url,
        "incident": incident,
    }
    payload = NotificationPayload(
        run_id=pushed.get("run_id"),
        gate=gate,
        date=pushed.get("date"),
        map_index=ti.map_index,
        dag_run_id=ti.run_id,
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        try_number=ti.try_number,
        outcome=outcome,
        recovered=is_recovery,
        text=text,
        url=url or None,
        incident_url=incident or None,
        error=cut(error, _LONGEST_TEXT) if error and not report else None,
        question=question,
        decision=_text(report.get("decision")) or None,
        same_cause=report["same_cause"] if same else None,
        report=report or None,
    )
    markdown = filled(__package__, "notification.md", code=_code, plain=_plain, **fields).rstrip(
        "\n"
    )
    html = filled(__package__, "notification.html", **fields)
    return GateNotification(text, markdown, html, asdict(payload))


def _subject(report: Mapping[str, Any], gate: str, error: str, *, is_recovery: bool) -> str:
    """The notification in one line: the headline of the report, or why there is none.

    :param gate: the gate with its date, or with its run if that is unknown.
    """
    line = _text(report.get("headline")) or f"{NO_REPORT}: gate {gate}: {error or 'see its log'}"
    waits = _waits(report["question"]) if isinstance(report.get("question"), Mapping) else ""
    same = " ".join(_same_cause(report))
    said = [waits, _text(report.get("decision")), same, line]
    text = cut(printable(" ".join("; ".join(filter(None, said)).split())), _LONGEST_TEXT)
    return cut(f"recovered, {text}", _LONGEST_TEXT) if is_recovery else text


def _question(ti: Any, report: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The question about which the gate waits, with the address of its answer; None without one."""
    question = report.get("question")
    if not isinstance(question, Mapping):
        return None
    base = airflow_conf.get("api", "base_url", fallback=None) or ""
    parts = (quote(part, safe="") for part in (ti.dag_id, ti.run_id, ti.task_id))
    dag, run, task = parts
    instance = f"/mapped/{ti.map_index}" if ti.map_index is not None and ti.map_index >= 0 else ""
    path = f"/dags/{dag}/runs/{run}/tasks/{task}{instance}/required_actions"
    return {**question, "url": f"{base.rstrip('/')}{path}" if base else None}


def _waits(question: Mapping[str, Any]) -> str:
    """The question in words: `waits for an answer until 2026-11-28 08:00 UTC, then accepted`."""
    until = question.get("until")
    if not until:
        return "waits for an answer"
    moment = datetime.fromisoformat(str(until)).astimezone(timezone.utc)
    then = _text(question.get("default"))
    return f"waits for an answer until {moment:%Y-%m-%d %H:%M} UTC, then {then}"


def _same_cause(report: Mapping[str, Any]) -> tuple[str, str, str] | tuple[()]:
    """The earlier gate with the same cause in words, its name between: `same cause as gate`,
    `lake.orders`, `(stopped at 2026-11-28 02:14 UTC)`; empty without one."""
    same = report.get("same_cause")
    if not isinstance(same, Mapping):
        return ()
    moment = datetime.fromisoformat(str(same.get("at"))).astimezone(timezone.utc)
    gate = cut(_text(same.get("gate")), _LONGEST_NAME)
    return "same cause as gate", gate, f"(stopped at {moment:%Y-%m-%d %H:%M} UTC)"


def _address_of_tab(ti: Any) -> str:
    """The address of the tab of a task; empty if the address of the server is unknown, since a path
    alone leads nowhere from a chat."""
    link = GateReportLink().get_link(None, ti_key=ti)
    return link if "://" in link else ""


def notify_with(make: Callable[[GateNotification], Any]) -> Callback:
    """Returns a callback that sends a notification with the notifier that `make` returns for it.

        on_failure_callback=notify_with(
            lambda notification: SlackNotifier(text=notification.markdown, channel="data-quality")
        )

    :param make: returns an Airflow notifier, or anything that can be called with the context. The
        notifier gets its strings as they are: they are never rendered as templates.
    """

    def notify(context: Any) -> None:
        make(gate_notification(context)).notify(context)

    return notify


def notify_on_change(make: Callable[[GateNotification], Any]) -> Callback:
    """Returns a callback that sends a notification only when the state of the gate changes.

    The state is that of a slice: a date of the data, for the same map index and `promote_slice`. A
    change is that the slice is blocked or broken and was not before, that another assertion blocks
    or breaks it as well, or that it passes again: a pass on a different date is not a recovery. Use
    it for failures and successes:

        def email(notification: GateNotification) -> SmtpNotifier:
            subject, html = notification.text, notification.html
            return SmtpNotifier(to="me@example.com", subject=subject, html_content=html)

        notify = notify_on_change(email)
        gate = DqlGateOperator(..., on_failure_callback=notify, on_success_callback=notify)

    The state before is that of the last attempt in the results store; with several dates or
    suites, each one has its own. A partial run that passes does not count as a recovery. If there
    is no report, or the store cannot be read, the notification is sent. A pass after
    a task that failed without a report is a recovery: after the task was cleared, or after an
    earlier run of the DAG (since Airflow 3.2).

    :param make: returns the notifier for a notification, as for `notify_with`.
    """

    def notify(context: Any) -> None:
        report = summary_of(context["ti"])
        change = change_since(context, report)
        if change is not None:
            notification = gate_notification(context, is_recovery=change.is_recovery, on=change.on)
            make(notification).notify(context)

    return notify


def run_callbacks(given: Callback | Sequence[Callback] | None, context: Any) -> None:
    """Calls the callbacks, one after the other.

    As with Airflow's callbacks, an exception in one of them is logged and does not affect the task.
    """
    callbacks = [given] if callable(given) else given or ()
    for callback in callbacks:
        try:
            callback(context)
        except Exception:
            log.exception("the callback %r failed", callback)


def _first_bad_date(report: Mapping[str, Any]) -> str:
    """A date of the incident, by which its page is found when there are newer ones."""
    parts = report.get("parts") or [report]
    return _text(parts[0].get("date"))


def _incident_url(ti: Any, on: str) -> str:
    """The page of the incident of a gate, below the address of the server.

    :param on: the date of its data; the newest incident if it is empty.
    """
    base = airflow_conf.get("api", "base_url", fallback=None) or ""
    query = {"dag_id": ti.dag_id, "task_id": ti.task_id}
    if ti.map_index is not None and ti.map_index >= 0:
        query["map_index"] = str(ti.map_index)
    if on:
        query["date"] = on
    return f"{base.rstrip('/')}/dqx/incident?{urlencode(query)}"


def summary_of(ti: Any) -> Mapping[str, Any]:
    """The summary in XCom, empty if there is none."""
    try:
        pushed = ti.xcom_pull(task_ids=ti.task_id, key=XCOM_KEY, map_indexes=ti.map_index)
    except Exception:  # a notification without details is better than none
        log.exception("the summary of the gate cannot be read")
        return {}
    return pushed if isinstance(pushed, Mapping) else {}


def _title(report: Mapping[str, Any], error: str) -> str:
    """The title of the notification without the outcome and the gate."""
    if not report:
        return cut(error, _LONGEST_TEXT) or "see its log"
    counts = report.get("counts") or {}
    failed = counts.get("failed", 0)
    title = f"{failed} of {sum(counts.values())} assertions failed"
    causes = report.get("causes") or failed
    if causes < failed:
        title += " (1 cause)" if causes == 1 else f" ({causes} causes)"
    if lacking := report.get("not_evaluated"):
        title = f"{lacking} not evaluated, {title}"
    if errors := counts.get("errors"):
        title += f", {errors} could not be evaluated"
    if waived := report.get("waived"):
        title += f", {waived} waived"
    if accepted := report.get("accepted"):
        title += f"; {_text(accepted)}"
    for name, words in _PROMOTIONS.items():
        if datasets := report.get(name):
            title += f"; {words}: {listed([*map(_text, datasets)], most=_MOST_VERDICTS)}"
    return f"data of {report.get('date')}: {title}"


def _faults(report: Mapping[str, Any]) -> tuple[list[tuple[str, str, str, str]], int]:
    """The worst assertions that did not pass, one for each cause, as severity, name, finding and
    the names of the others of its cause; and the number of further ones."""
    by_cause: dict[object, list[Mapping[str, Any]]] = {}
    verdicts = report.get("verdicts") or []
    for position, verdict in enumerate(verdicts):
        by_cause.setdefault(verdict.get("cause") or f"verdict {position}", []).append(verdict)
    faults = []
    known = 0
    for first, *others in [*by_cause.values()][:_MOST_VERDICTS]:
        names = [cut(_text(other.get("assertion")), _LONGEST_NAME) for other in others]
        also = listed(names, most=_MOST_VERDICTS) if names else ""
        finding = _verdict_line(first)
        faults.append((_text(first.get("severity")), _text(first.get("assertion")), finding, also))
        known += 1 + len(others)
    return faults, len(verdicts) - known + int(report.get("more_verdicts") or 0)


def _verdict_line(verdict: Mapping[str, Any]) -> str:
    if verdict.get("status") == "error":
        return cut(_text(verdict.get("reason")) or "could not be evaluated", _LONGEST_NAME)
    if verdict.get("status") == "skipped":
        return cut(f"not evaluated: {_text(verdict.get('reason'))}", _LONGEST_NAME)
    expression, expected = _text(verdict.get("expression")), _text(verdict.get("expected"))
    value = cut(
        format_like_limit(verdict.get("scaled_value"), expression, expected), _LONGEST_VALUE
    )
    if verdict.get("multiplier", 1) != 1:
        own = format_like_limit(verdict.get("value"), expression, expected)
        raw = cut(own, _LONGEST_VALUE)
        value += f" ({raw} x {verdict['multiplier']:g})"
    waived = verdict.get("waived_by")
    until = f", {cut(_text(waived), _LONGEST_NAME)}" if waived else ""
    group = cut(_text(verdict.get("worst_group")), _LONGEST_VALUE)
    return found_text(expression, cut(expected, _LONGEST_NAME), value, group) + until


def _to_do(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Whom to contact and what to do, according to the contract; empty if the gate passed."""
    contract = report.get("contract") or {}
    responsible = contract.get("responsible") if isinstance(contract, Mapping) else None
    if report.get("outcome") == "passed" or not isinstance(responsible, Mapping):
        return []
    return [(_text(name), cut(_text(text), _LONGEST_TEXT)) for name, text in responsible.items()]


def _code(text: str) -> str:
    """A name or a value as a Markdown code span, without mentions, links or emphasis."""
    return f"`{_plain(cut(text, 2 * _LONGEST_NAME)) or ' '}`"


def _plain(text: str) -> str:
    return _OPENS_TAG.sub("< ", printable(" ".join(text.split())).replace("`", "'"))


def _text(value: object) -> str:
    return "" if value is None else str(value)
