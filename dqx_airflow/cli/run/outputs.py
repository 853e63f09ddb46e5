"""The output of a run: in the chosen format, for readers or for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import IO

import typer
from rich.console import Console

from dqx_airflow.cli.reports import (
    coloured,
    console_for,
    print_failures,
    print_headline,
    printable,
    verdicts_table,
)
from dqx_airflow.cli.run.calendar import print_calendar
from dqx_airflow.config.settings import Output
from dqx_airflow.diagnostics.verdicts import (
    account,
    not_evaluated,
    on_call,
    partial_text,
    shadow_account,
)
from dqx_airflow.values import GateReport, Outcome, Status, to_json


def write_reports(
    reports: Iterable[GateReport],
    output: Output,
    file: IO[str] | None,
    root: str,
    *,
    dates: Sequence[date] = (),
) -> None:
    """Writes each report as soon as it is available, to stdout or into a file.

    If it is stored, under the results root `root`, only a few failing rows are displayed. For
    several dates a calendar comes last, and those that passed have one line each.

    If it goes into a file, stderr gets the headlines.
    """
    console = console_for(file)
    if file is not None:
        reports = _with_headlines(reports)
    if output is Output.JUNIT:
        from dqx_airflow.cli.run.junit import junit_xml

        typer.echo(junit_xml(reports), file=console.file, nl=False)
        return
    is_range, written_reports = len(dates) > 1, []
    for report in reports:
        written_reports.append(report)
        match output:
            case Output.JSON:
                typer.echo(to_json(report), file=console.file)
            case Output.SUMMARY:
                _print_summary(report, console)
            case Output.TABLE if is_range and report.outcome is Outcome.PASSED:
                print_headline(report, console)
            case Output.TABLE:
                _print_table(report, console, root)
    if is_range and output is not Output.JSON and written_reports:
        print_calendar(written_reports, console)


def _with_headlines(reports: Iterable[GateReport]) -> Iterable[GateReport]:
    console = Console(stderr=True, highlight=False)
    for report in reports:
        print_headline(report, console)
        yield report


def _print_table(report: GateReport, console: Console, root: str) -> None:
    """The headline is last, where it stays visible."""
    console.print(verdicts_table(report.verdicts))
    print_failures(report, console, all_rows=not root, root=root)
    console.print()
    for line in filter(None, [*account(report), *shadow_account(report), on_call(report)]):
        console.print(printable(line), soft_wrap=True, markup=False)
    print_headline(report, console)


def _print_summary(report: GateReport, console: Console) -> None:
    counts = ", ".join(f"{report.count(status)} {_NOUNS[status]}" for status in Status)
    if first := not_evaluated(report):
        counts = f"{first}; {counts}"
    if report.partial is not None:
        counts = f"{partial_text(report.partial)}; {counts}"
    suite = f"{printable(report.suite)}, {report.run_key.date.isoformat()}: {counts}"
    console.print(coloured(report.outcome), suite, soft_wrap=True, markup=False)
    for line in shadow_account(report)[:1]:
        console.print(printable(line), soft_wrap=True, markup=False)


_NOUNS = {
    Status.PASSED: "passed",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.ERROR: "could not be evaluated",
}
