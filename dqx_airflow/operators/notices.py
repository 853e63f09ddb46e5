"""The notice of a gate: a line, a few lines, an email, and the same as data.

For the callbacks of tasks: `on_failure_callback`, `on_retry_callback`, `on_skipped_callback`,
`on_success_callback`, and `on_warning` of a gate.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias
from urllib.parse import urlencode

from airflow.providers.common.compat.sdk import conf as airflow_conf

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.diagnostics.verdicts import format_like_limit
from dqx_airflow.operators.links import GateReportLink
from dqx_airflow.operators.outcome import NO_REPORT, XCOM_KEY

Callback: TypeAlias = Callable[[Any], Any]

_MOST_VERDICTS = 5
_LONGEST_TEXT, _LONGEST_NAME, _LONGEST_VALUE = 300, 120, 80
_PROMOTIONS = {
    "not_promoted": "no rows promoted",
    "promoted_blocked": "promoted all the same",
    "left_out": "left out",
}
# What chats read as a mention or a link: `<!channel>`, `<@U1>`, `<https://...|text>`.
_OPENS_TAG = re.compile(r"<(?=[!@#/\w])")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GateNotice:
    """The notice of a gate whose task has just ended.

    All fields are bounded in size and show the same data as the report, masked values as `***`.

    :param text: one line, for subjects.
    :param markdown: for chats; names and values are escaped.
    :param html: for emails; names and values are escaped.
    :param payload: the same as data that can be JSON: `outcome` ("passed", "warned", "accepted",
        "blocked", "broken", or "no report"), `recovered`, `gate`, `date`, `dag_id`, `task_id`,
        `dag_run_id`, `map_index`, `try_number`, `text`, `url` (of the tab, if `base_url` in section
        `[api]` is set), `incident_url` (of the incident, if the gate is blocked or broken, or has
        recovered), `error` (the exception, if there is no report), and `report` (the summary in
        XCom, None without a report).
    """

    text: str
    markdown: str
    html: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Fault:
    """An assertion that failed, or was not evaluated."""

    severity: str
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class _Message:
    """What a notice says, in any markup. `title` is the part after the outcome and the gate."""

    outcome: str
    gate: str
    title: str
    faults: Sequence[_Fault]
    more: int
    to_do: Sequence[tuple[str, str]]
    url: str
    incident: str

    def markdown(self) -> str:
        lines = [f"Gate {_code(self.gate)} {self.outcome}: {_plain(self.title)}"]
        lines += [
            f"- {fault.severity} {_code(fault.name)} {_code(fault.detail)}" for fault in self.faults
        ]
        lines += [f"- and {self.more} more"] if self.more else []
        lines += [f"{_plain(name)}: {_code(text)}" for name, text in self.to_do]
        lines += [self.url] if self.url else []
        lines += [f"Incident: {self.incident}"] if self.incident else []
        return "\n".join(lines)

    def html(self) -> str:
        items = [
            f"<li>{escape(fault.severity)} <b>{escape(fault.name)}</b> {escape(fault.detail)}</li>"
            for fault in self.faults
        ]
        items += [f"<li>and {self.more} more</li>"] if self.more else []
        listed = f"<ul>{''.join(items)}</ul>" if items else ""
        listed += "".join(f"<p>{escape(name)}: {escape(text)}</p>" for name, text in self.to_do)
        link = f'<p><a href="{escape(self.url)}">Report</a></p>' if self.url else ""
        link += f'<p><a href="{escape(self.incident)}">Incident</a></p>' if self.incident else ""
        title = escape(self.title)
        return f"<p>Gate <b>{escape(self.gate)}</b> {self.outcome}: {title}</p>{listed}{link}"


def gate_notice(context: Any, *, is_recovery: bool = False, on: str | None = "") -> GateNotice:
    """The notice of the gate whose callback receives this context.

    :param is_recovery: the slice was blocked or broken before, or the gate had no report, and
        passes again: the notice says so first, and links to the incident that has ended.
    :param on: the date of the incident, by default the first bad one; None for a recovery from runs
        without a report, which form no incident.
    """
    ti = context["ti"]
    report = pushed = summary_of(ti)
    if pushed.get("outcome") == NO_REPORT:
        report = {}
    error = " ".join(str(context.get("exception") or pushed.get("error") or "").split())
    gate = _text(pushed.get("gate")) or f"{ti.dag_id}.{ti.task_id}"
    outcome = _text(report.get("outcome")) or NO_REPORT
    text = _text(report.get("headline")) or f"{NO_REPORT}: gate {gate}: {error or 'see its log'}"
    text = _cut(printable(" ".join(text.split())), _LONGEST_TEXT)
    link = GateReportLink().get_link(None, ti_key=ti)
    url = link if "://" in link else ""  # a path alone leads nowhere from a chat
    is_bad = outcome in ("blocked", "broken")
    has_incident = is_bad or (is_recovery and on is not None)
    incident = _incident_url(ti, on or _first_bad_date(pushed)) if url and has_incident else ""
    if is_recovery:
        text = _cut(f"recovered, {text}", _LONGEST_TEXT)
    state = f"recovered, {outcome}" if is_recovery else outcome
    title = _title(report, error)
    message = _Message(state, gate, title, *_faults(report), _to_do(report), url, incident)
    payload = {
        "outcome": outcome,
        "recovered": is_recovery,
        "gate": gate,
        "date": pushed.get("date"),
        "dag_id": ti.dag_id,
        "task_id": ti.task_id,
        "dag_run_id": ti.run_id,
        "map_index": ti.map_index,
        "try_number": ti.try_number,
        "text": text,
        "url": url or None,
        "incident_url": incident or None,
        "error": _cut(error, _LONGEST_TEXT) if error and not report else None,
        "report": report or None,
    }
    return GateNotice(text, message.markdown(), message.html(), payload)


def notify_with(make: Callable[[GateNotice], Any]) -> Callback:
    """A callback that sends a notice with the notifier that `make` returns for it.

        on_failure_callback=notify_with(
            lambda notice: SlackNotifier(text=notice.markdown, channel="data-quality")
        )

    :param make: returns an Airflow notifier, or anything that can be called with the context. The
        notifier gets its strings as they are: they are never rendered as templates.
    """

    def notify(context: Any) -> None:
        make(gate_notice(context)).notify(context)

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
        query["instance"] = str(ti.map_index)
    if on:
        query["on"] = on
    return f"{base.rstrip('/')}/dqx/incident?{urlencode(query)}"


def summary_of(ti: Any) -> Mapping[str, Any]:
    """The summary in XCom, empty if there is none."""
    try:
        pushed = ti.xcom_pull(task_ids=ti.task_id, key=XCOM_KEY, map_indexes=ti.map_index)
    except Exception:  # a notice without details is better than none
        log.exception("the summary of the gate cannot be read")
        return {}
    return pushed if isinstance(pushed, Mapping) else {}


def _title(report: Mapping[str, Any], error: str) -> str:
    """The part after the outcome and the gate."""
    if not report:
        return _cut(error, _LONGEST_TEXT) or "see its log"
    counts = report.get("counts") or {}
    title = f"{counts.get('failed', 0)} of {sum(counts.values())} assertions failed"
    if lacking := report.get("not_evaluated"):
        title = f"{lacking} not evaluated, {title}"
    if errors := counts.get("error"):
        title += f", {errors} could not be evaluated"
    if waived := report.get("waived"):
        title += f", {waived} waived"
    if accepted := report.get("accepted"):
        title += f"; {_text(accepted)}"
    for name, words in _PROMOTIONS.items():
        if datasets := report.get(name):
            title += f"; {words}: {listed([*map(_text, datasets)], most=_MOST_VERDICTS)}"
    return f"data of {report.get('date')}: {title}"


def _faults(report: Mapping[str, Any]) -> tuple[list[_Fault], int]:
    """The worst assertions that did not pass, and the number of the others."""
    verdicts = report.get("verdicts") or []
    faults = [
        _Fault(_text(verdict.get("severity")), _text(verdict.get("name")), _verdict_line(verdict))
        for verdict in verdicts[:_MOST_VERDICTS]
    ]
    return faults, len(verdicts) - len(faults) + int(report.get("more_verdicts") or 0)


def _verdict_line(verdict: Mapping[str, Any]) -> str:
    if verdict.get("status") == "error":
        return _cut(_text(verdict.get("reason")) or "could not be evaluated", _LONGEST_NAME)
    if verdict.get("status") == "skipped":
        return _cut(f"not evaluated: {_text(verdict.get('reason'))}", _LONGEST_NAME)
    expression, expected = _text(verdict.get("expression")), _text(verdict.get("expected"))
    value = _cut(format_like_limit(verdict.get("value"), expression, expected), _LONGEST_VALUE)
    if verdict.get("multiplier", 1) != 1:
        own = format_like_limit(verdict.get("raw_value"), expression, expected)
        raw = _cut(own, _LONGEST_VALUE)
        value += f" ({raw} x {verdict['multiplier']:g})"
    waived = verdict.get("waived_by")
    until = f", {_cut(_text(waived), _LONGEST_NAME)}" if waived else ""
    return f"is {value}, expected {_cut(expected, _LONGEST_NAME)}{until}"


def _to_do(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Whom to contact and what to do, according to the contract; empty if the gate passed."""
    contract = report.get("contract") or {}
    responsible = contract.get("responsible") if isinstance(contract, Mapping) else None
    if report.get("outcome") == "passed" or not isinstance(responsible, Mapping):
        return []
    return [(_text(name), _cut(_text(text), _LONGEST_TEXT)) for name, text in responsible.items()]


def _code(text: str) -> str:
    """A name or a value: in a span of code nothing is a mention, a link or emphasis."""
    return f"`{_plain(_cut(text, 2 * _LONGEST_NAME)) or ' '}`"


def _plain(text: str) -> str:
    return _OPENS_TAG.sub("< ", printable(" ".join(text.split())).replace("`", "'"))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
