"""The report of a gate in the log of its task: the worst assertions in full, others by a line each
or by their number, and the headline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dqx_airflow.diagnostics import verdicts
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.renderers import printable
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
    """The log entries of a task about its report, about `MOST_LINES` lines; the headline is last.

    The worst assertions are shown in full, others by a line each or by their number.

    :param root: the results root, for the command that shows the rest.
    :param fails: the task fails because of the outcome of the report.
    """
    lacking = report.not_evaluated
    level: Level = "error" if report.outcome is Outcome.BROKEN else "warning"
    lists = [
        _listed(level, "not evaluated", [(v, f"{v.name} ({v.severity.value})") for v in lacking]),
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
    after = [LogEntry("warning", line) for line in _first_lines(verdicts.account(report))]
    after += [
        LogEntry("info", printable(line))
        for line in _first_lines(verdicts.shadow_account(report), "shadow")
    ]
    if to_do := verdicts.on_call(report):
        after.append(LogEntry("warning", to_do))
    after.append(LogEntry("info", f"all verdicts: {verdicts.results_command(report, root)}"))
    last: Level = "info" if report.outcome is Outcome.PASSED else "warning"
    after.append(LogEntry("error" if fails else last, verdicts.headline(report)))
    room = max(MOST_LINES - len(before) - len(after), _LEAST_DRAWN)
    return [*before, *_drawn(report, root, room, fails=fails), *after]


def _drawn(report: GateReport, root: str, room: int, *, fails: bool) -> list[LogEntry]:
    """Entries in full for the assertions that failed or were not evaluated, within `room` lines."""
    failing = [*report.with_status(Status.ERROR), *report.with_status(Status.FAILED)]
    failing.sort(key=lambda verdict: not verdict.can_block(report.fail_on))
    entries: list[LogEntry] = []
    causes = verdicts.by_cause(failing)
    for index, (verdict, others) in enumerate(causes):
        drawing = verdicts.draw_verdict(verdict, report, root=root, others=others)
        lines = drawing.count("\n") + 1
        remaining = len(causes) - index - 1
        if index and lines + min(remaining, _MOST_NAMED + 1) > room:
            rest = [one for first, others in causes[index:] for one in (first, *others)]
            return [*entries, *_named_lines(report, rest, fails=fails)]
        room -= lines
        entries.append(LogEntry(_level_of(verdict, report, fails=fails), drawing))
    return entries


def _named_lines(report: GateReport, rest: Sequence[Verdict], *, fails: bool) -> list[LogEntry]:
    """A line for each of the next assertions, and a line with the number of the others."""
    entries = []
    for verdict in rest[:_MOST_NAMED]:
        name = f"{verdict.status.value}: {verdict.name} ({verdict.severity.value})"
        detail = verdicts.finding(verdict)
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


def _listed(level: Level, heading: str, graded: Sequence[tuple[Verdict, str]]) -> list[LogEntry]:
    lines = [
        f"{heading}: {name}: {verdict.note if heading == 'passed' else verdict.reason}"
        for verdict, name in graded
    ]
    return [LogEntry(level, printable(line)) for line in _first_lines(lines, heading)]


def _first_lines(lines: Sequence[str], heading: str = "") -> list[str]:
    if len(lines) <= _MOST_LISTED + 1:
        return [*lines]
    more = f"{f'{heading}: ' if heading else ''}... and {len(lines) - _MOST_LISTED} more"
    return [*lines[:_MOST_LISTED], more]


def part_lines(reports: Sequence[GateReport]) -> list[str]:
    """A log line about the reports with each outcome, the worst last; none for one report."""
    lines = []
    for outcome in Outcome:
        own = [report for report in reports if report.outcome is outcome]
        if own and len(reports) > 1:
            named = [f"{report.run_key.date.isoformat()} {report.suite}" for report in own]
            lines.append(f"{outcome.value}: {len(own)} of {len(reports)}: {listed(named, most=5)}")
    return lines
