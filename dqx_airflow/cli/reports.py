"""Reports in a terminal, in a file and for CI systems: tables, failures, summaries, the calendar of
several dates, test cases, findings."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import IO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dqx_airflow.datasets.dqx_toml import RunFormat
from dqx_airflow.diagnostics import junit
from dqx_airflow.diagnostics import verdicts as words
from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.diagnostics.machine_formats import FOR_MACHINES
from dqx_airflow.values import GateReport, Outcome, Status, Verdict
from dqx_airflow.values.output_form import output_form

_NARROWEST = 100
_UNBOUNDED = 100_000
_WRAPPED = {"gate", "worst", "check", "assertion", "value", "expected", "place", "change", "why"}
"""Columns of names and sentences, which may wrap. Short columns never do."""
COLOURS = {
    "passed": "green",
    "warned": "yellow",
    "accepted": "yellow",
    "blocked": "red",
    "broken": "magenta",
    "failed": "red",
    "error": "magenta",
    "skipped": "yellow",
}


def console_for(file: IO[str] | None = None) -> Console:
    """The console of stdout, or of a file.

    A pipe or a file has no width: lines are as long as necessary.
    """
    if file is not None or not sys.stdout.isatty():
        return Console(file=file, width=_UNBOUNDED, highlight=False, emoji=False)
    console = Console(highlight=False, emoji=False)
    console.width = max(console.width, _NARROWEST)
    return console


def print_headline(report: GateReport, console: Console) -> None:
    line = Text(printable(words.headline(report)))
    line.stylize(f"bold {COLOURS[report.outcome.value]}", 0, len(report.outcome.value))
    console.print(line, soft_wrap=True)


def print_failures(
    report: GateReport, console: Console, *, all_rows: bool = False, root: str | None = None
) -> None:
    """Draws failures and unevaluated assertions, each after a blank line.

    :param root: the results root, for the commands that display the rest.
    """
    colour = console.color_system is not None and not console.no_color
    for verdict, others in words.by_cause(
        report.with_status(Status.FAILED) + report.with_status(Status.ERROR)
    ):
        drawing = words.draw_verdict(
            printable_verdict(verdict),
            report,
            colour=colour,
            all_rows=all_rows,
            root=root,
            others=[printable_verdict(other) for other in others],
        )
        typer.echo(f"\n{drawing}", file=console.file, color=colour)


def verdicts_table(verdicts: Iterable[Verdict]) -> Table:
    rows = []
    for verdict in verdicts:
        value = words.scaled_text(verdict)
        if verdict.note and verdict.status is Status.PASSED:
            value += f" ({verdict.note})"
        if verdict.status is Status.SKIPPED:
            # The others are drawn below; only this line gives the reason.
            status = "not evaluated" if verdict.is_not_evaluated else "skipped"
            value = f"{status}: {verdict.reason}" if verdict.reason else status
        cells = (verdict.severity.value, verdict.check, verdict.name, value, verdict.expected)
        rows.append((coloured(verdict.status), *cells))
    return table_of(("status", "severity", "check", "assertion", "value", "expected"), rows)


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table whose cells are printable."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column not in _WRAPPED)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return table


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Prints a table on stdout."""
    console_for().print(table_of(columns, rows))


def coloured(status: Outcome | Status) -> Text:
    return Text(status.value, style=COLOURS[status.value])


def printable(text: str, keep: str = "") -> str:
    """Control characters as escapes: a name in a table must not control the reader's terminal."""
    return "".join(
        character if character.isprintable() or character in keep else ascii(character)[1:-1]
        for character in text
    )


def markdown_cell(text: str) -> str:
    """A text that stays in its table cell, and is not read as markup."""
    escaped = "".join(f"\\{letter}" if letter in "|<>*_[]" else letter for letter in text)
    return " ".join(printable(escaped).split())


def printable_verdict(verdict: Verdict) -> Verdict:
    """The verdict with all texts printable. The source line keeps its length for the carets."""
    return replace(
        verdict,
        name=printable(verdict.name),
        expected=printable(verdict.expected),
        datasets=tuple(map(printable, verdict.datasets)),
        value=printable(verdict.value) if isinstance(verdict.value, str) else verdict.value,
        reason=printable(verdict.reason) if verdict.reason else verdict.reason,
        profiles=tuple(map(printable, verdict.profiles)),
    )


def junit_of_reports(reports: Iterable[GateReport]) -> str:
    """The reports as one document, a test suite for each check.

    An assertion that lacks data of other dates is skipped, unless it breaks the run. A failure that
    does not block, below `fail_on`, is not a failed test case: a build ends like `dql run`. It is
    in the output of its test case.
    """
    reports = list(reports)
    is_range = len({report.run_key.date for report in reports}) > 1
    suites = []
    for report in reports:
        day = f" / {report.run_key.date.isoformat()}" if is_range else ""
        for check in dict.fromkeys(verdict.check for verdict in report.verdicts):
            own = (verdict for verdict in report.verdicts if verdict.check == check)
            cases = tuple(_case(verdict, report) for verdict in own)
            name = f"{report.suite} / {check}{day}"
            suites.append(junit.CaseSuite(name, cases, report.started_at, _facts(report)))
    spent = sum((report.finished_at - report.started_at for report in reports), timedelta())
    return junit.junit_xml("dql run", suites, seconds=spent.total_seconds())


def _facts(report: GateReport) -> dict[str, str]:
    facts = {"date": report.run_key.date.isoformat(), "run": report.run_id}
    if report.partial is not None:
        facts["selection"] = words.partial_text(report.partial)
    for dataset in report.datasets:
        version = "" if dataset.version is None else f", version {dataset.version}"
        facts[f"dataset {dataset.name}"] = f"{dataset.location}{version}"
    return facts


def _case(verdict: Verdict, report: GateReport) -> junit.Case:
    """The test case of an assertion."""
    passed = junit.Case(verdict.name, type=verdict.severity.value, span=verdict.span)
    if verdict.status is Status.PASSED:
        return passed
    reason = verdict.reason or ""
    if verdict.status is Status.SKIPPED:
        is_lacking = report.outcome is Outcome.BROKEN and verdict in report.not_evaluated
        reason = f"not evaluated: {reason}" if verdict.is_not_evaluated else reason
        return replace(passed, kind="error" if is_lacking else "skipped", message=reason)
    drawing = words.draw_verdict(verdict, report, all_rows=True)
    if not verdict.can_block(report.fail_on):
        return replace(passed, kind="system-out", text=drawing)
    found = words.finding(verdict)
    if verdict.status is Status.FAILED:
        return replace(passed, kind="failure", message=found, text=drawing)
    return replace(passed, kind="error", message=reason or found, text=drawing)


def in_folder(report: GateReport, folder: Path | None) -> GateReport:
    """A report whose positions are in files relative to the working directory.

    :param folder: the folder of the files of the report, if its positions are relative to it.
    """
    if folder is None:
        return report
    verdicts = tuple(
        verdict
        if verdict.span is None
        else replace(verdict, span=replace(verdict.span, file=str(folder / verdict.span.file)))
        for verdict in report.verdicts
    )
    return replace(report, verdicts=verdicts)


_OF_ALL_REPORTS = frozenset({RunFormat.JUNIT, RunFormat.GITHUB, RunFormat.SARIF})
"""The formats of CI systems, with positions in files."""


def _for_ci(reports: Iterable[GateReport], format: RunFormat) -> str:
    """All reports in a format of CI systems."""
    if format is RunFormat.JUNIT:
        return junit_of_reports(reports)
    found = [finding for report in reports for finding in words.findings_of(report)]
    text = FOR_MACHINES[format.value](found)
    return f"{text}\n" if text else ""


def write_reports(
    reports: Iterable[GateReport],
    format: RunFormat,
    file: IO[str] | None,
    root: str,
    *,
    dates: Sequence[date] = (),
    folders: Mapping[str, Path] = MappingProxyType({}),
    is_quiet: bool = False,
    is_verbose: bool = False,
) -> None:
    """Writes each report as soon as it is available, to stdout or into a file; for CI systems, all
    of them at the end.

    If it is stored, under the results root `root`, only a few failing rows are displayed. For
    several dates a calendar comes last, and those that passed have one line each.

    If it goes into a file, stderr gets the headlines.

    :param folders: the folders of contracts by gate, for positions in their files.
    :param is_quiet: write only the headlines as text.
    :param is_verbose: write all failing rows as text, and what passed on several dates.
    """
    console = console_for(file)
    if file is not None:
        reports = _with_headlines(reports)
    if format in _OF_ALL_REPORTS:
        placed = (in_folder(report, folders.get(report.run_key.gate)) for report in reports)
        typer.echo(_for_ci(placed, format), file=console.file, nl=False)
        return
    is_range = len(dates) > 1
    written_reports = []
    for report in reports:
        written_reports.append(report)
        match format:
            case RunFormat.JSON:
                line = json.dumps(output_form(report), ensure_ascii=False, allow_nan=False)
                typer.echo(line, file=console.file)
            case RunFormat.SUMMARY:
                _print_summary(report, console)
            case RunFormat.TEXT if is_quiet:
                print_headline(report, console)
            case RunFormat.TEXT if is_range and not is_verbose and report.outcome is Outcome.PASSED:
                print_headline(report, console)
            case RunFormat.TEXT:
                _print_table(report, console, root, all_rows=is_verbose or not root)
    if is_range and not is_quiet and format is not RunFormat.JSON and written_reports:
        print_calendar(written_reports, console)


def _with_headlines(reports: Iterable[GateReport]) -> Iterable[GateReport]:
    console = Console(stderr=True, highlight=False)
    for report in reports:
        print_headline(report, console)
        yield report


def _print_table(report: GateReport, console: Console, root: str, *, all_rows: bool) -> None:
    """Prints a report as a table, with the headline last, where it stays visible."""
    is_one_error = report.count(Status.ERROR) == len(report.verdicts)
    if not is_one_error or len(words.by_cause(report.verdicts)) > 1:
        console.print(verdicts_table(report.verdicts))
    print_failures(report, console, all_rows=all_rows, root=root)
    console.print()
    for line in filter(
        None, [*words.account(report), *words.shadow_account(report), words.on_call(report)]
    ):
        console.print(printable(line), soft_wrap=True, markup=False)
    print_headline(report, console)


def _print_summary(report: GateReport, console: Console) -> None:
    counts = ", ".join(f"{report.count(status)} {_NOUNS[status]}" for status in Status)
    if first := words.not_evaluated(report):
        counts = f"{first}; {counts}"
    if report.partial is not None:
        counts = f"{words.partial_text(report.partial)}; {counts}"
    suite = f"{printable(report.suite)}, {report.run_key.date.isoformat()}: {counts}"
    console.print(coloured(report.outcome), suite, soft_wrap=True, markup=False)
    for line in words.shadow_account(report)[:1]:
        console.print(printable(line), soft_wrap=True, markup=False)


_NOUNS = {
    Status.PASSED: "passed",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.ERROR: "could not be evaluated",
}


_MARKS = {
    Outcome.PASSED: ".",
    Outcome.WARNED: "w",
    Outcome.ACCEPTED: "a",
    Outcome.BLOCKED: "B",
    Outcome.BROKEN: "X",
}
_MOST_NAMED = 5


def print_calendar(reports: Sequence[GateReport], console: Console) -> None:
    """Prints the outcome of each date of each suite, and the number of dates with each outcome."""
    by_gate: dict[str, dict[date, Outcome]] = {}
    for report in reports:
        outcomes = by_gate.setdefault(report.run_key.gate, {})
        outcomes[report.run_key.date] = report.outcome
    for gate, outcomes in by_gate.items():
        console.print()
        for line in calendar_lines(printable(gate), outcomes):
            console.print(line, soft_wrap=True)


def calendar_lines(title: str, outcomes: dict[date, Outcome]) -> list[Text]:
    """The lines of a calendar: its header, the months, and the legend with the counts."""
    days = "".join(f"{day:>3}" for day in range(1, 32))
    width = max(len(title), len("2026-01"))
    lines = [Text(f"{title:<{width}}{days}", style="bold")]
    by_day = {(on.year, on.month, on.day): outcome for on, outcome in outcomes.items()}
    months = dict.fromkeys((on.year, on.month) for on in sorted(outcomes))
    for year, month in months:
        line = Text(f"{f'{year}-{month:02}':<{width}}")
        for day in range(1, 32):
            outcome = by_day.get((year, month, day))
            mark = "   " if outcome is None else f"  {_MARKS[outcome]}"
            line.append(mark, style=COLOURS[outcome.value] if outcome else "")
        line.rstrip()
        lines.append(line)
    counts = Counter(outcomes.values())
    counted = [
        f"{_MARKS[outcome]} {counts[outcome]} {outcome.value}"
        for outcome in Outcome
        if counts[outcome]
    ]
    lines.append(Text(f"{len(outcomes)} dates: {', '.join(counted)}"))
    for bad_outcome in (Outcome.BLOCKED, Outcome.BROKEN):
        dates = [
            on.isoformat() for on, outcome in sorted(outcomes.items()) if outcome is bad_outcome
        ]
        if dates:
            line = Text(f"{bad_outcome.value}: {listed(dates, most=_MOST_NAMED)}")
            line.stylize(COLOURS[bad_outcome.value], 0, len(bad_outcome.value))
            lines.append(line)
    return lines
