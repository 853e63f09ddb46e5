"""The report of a gate as its task logs it: once, and short enough to be read on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dqx_airflow.diagnostics.renderers import printable
from dqx_airflow.diagnostics.verdicts import (
    account,
    draw_verdict,
    headline,
    on_call,
    results_command,
    scaled_text,
    shadow_account,
)
from dqx_airflow.values import GateReport, Outcome, Status, Verdict

MOST_LINES = 30
_LEAST_DRAWN = 12
_MOST_LISTED = 2
_MOST_NAMED = 4

Level: TypeAlias = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of a log; its text may have several lines."""

    level: Level
    text: str


def report_entries(report: GateReport, root: str, *, fails: bool) -> list[LogEntry]:
    """What the log of a task says about a report, in about `MOST_LINES` lines; the headline last.

    The worst assertions are drawn, others are named or counted.

    :param root: the results root, for the command that shows the rest.
    :param fails: the task fails because of what the report says.
    """
    lacking = report.not_evaluated
    level: Level = "error" if report.outcome is Outcome.BROKEN else "warning"
    lists = [
        _listed(level, "not evaluated", [(v, _graded(v)) for v in lacking]),
        _listed(
            "info",
            "skipped",
            [(v, v.name) for v in report.with_status(Status.SKIPPED) if v not in lacking],
        ),
        _listed(
            "info", "passed", [(v, v.name) for v in report.with_status(Status.PASSED) if v.note]
        ),
    ]
    before = [entry for entries in lists for entry in entries]
    after = [LogEntry("warning", line) for line in _cut(account(report))]
    after += [LogEntry("info", printable(line)) for line in _cut(shadow_account(report), "shadow")]
    if to_do := on_call(report):
        after.append(LogEntry("warning", to_do))
    after.append(LogEntry("info", f"all verdicts: {results_command(report, root)}"))
    last: Level = "info" if report.outcome is Outcome.PASSED else "warning"
    after.append(LogEntry("error" if fails else last, headline(report)))
    room = max(MOST_LINES - len(before) - len(after), _LEAST_DRAWN)
    return [*before, *_drawn(report, root, room, fails=fails), *after]


def _drawn(report: GateReport, root: str, room: int, *, fails: bool) -> list[LogEntry]:
    """The assertions that failed or were not evaluated: as many as there is room for, drawn."""
    verdicts = [*report.with_status(Status.ERROR), *report.with_status(Status.FAILED)]
    verdicts.sort(key=lambda verdict: not verdict.can_block(report.fail_on))
    entries: list[LogEntry] = []
    for index, verdict in enumerate(verdicts):
        drawing = draw_verdict(verdict, report, root=root)
        lines = drawing.count("\n") + 1
        remaining = len(verdicts) - index - 1
        if index and lines + min(remaining, _MOST_NAMED + 1) > room:
            return [*entries, *_named(report, verdicts[index:], fails=fails)]
        room -= lines
        entries.append(LogEntry(_level_of(verdict, report, fails=fails), drawing))
    return entries


def _named(report: GateReport, rest: Sequence[Verdict], *, fails: bool) -> list[LogEntry]:
    """A line for each of the next assertions, and a line with the number of the others."""
    entries = []
    for verdict in rest[:_MOST_NAMED]:
        name = f"{verdict.status.value}: {verdict.name} ({verdict.severity.value})"
        detail = f"is {scaled_text(verdict)}, expected {verdict.expected}"
        if verdict.status is not Status.FAILED:
            detail = verdict.reason or ""
        level = _level_of(verdict, report, fails=fails)
        entries.append(LogEntry(level, printable(f"{name}: {detail}")))
    if len(rest) > _MOST_NAMED:
        level = _level_of(rest[_MOST_NAMED], report, fails=fails)
        more = len(rest) - _MOST_NAMED
        entries.append(LogEntry(level, f"... and {more} more that did not pass"))
    return entries


def _level_of(verdict: Verdict, report: GateReport, *, fails: bool) -> Level:
    return "error" if fails and verdict.can_block(report.fail_on) else "warning"


def _graded(verdict: Verdict) -> str:
    return f"{verdict.name} ({verdict.severity.value})"


def _listed(level: Level, heading: str, verdicts: Sequence[tuple[Verdict, str]]) -> list[LogEntry]:
    lines = [
        f"{heading}: {name}: {verdict.note if heading == 'passed' else verdict.reason}"
        for verdict, name in verdicts
    ]
    return [LogEntry(level, printable(line)) for line in _cut(lines, heading)]


def _cut(lines: Sequence[str], heading: str = "") -> list[str]:
    if len(lines) <= _MOST_LISTED + 1:
        return [*lines]
    more = f"{f'{heading}: ' if heading else ''}... and {len(lines) - _MOST_LISTED} more"
    return [*lines[:_MOST_LISTED], more]
