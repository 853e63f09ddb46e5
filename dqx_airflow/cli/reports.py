"""Reports in a terminal and in a file: the table of the assertions, and the failures."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import IO, TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dqx_airflow.diagnostics.verdicts import draw_verdict, headline, scaled_text
from dqx_airflow.values import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dqx_airflow.values import GateReport, Outcome, Verdict

_NARROWEST = 100
_UNBOUNDED = 100_000
_WRAPPED = {"gate", "worst", "check", "assertion", "value", "expected", "place", "change", "why"}
"""Columns of names and sentences, which may wrap. Short columns never do."""
COLOURS = {
    "passed": "green",
    "warned": "yellow",
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
    line = Text(printable(headline(report)))
    line.stylize(f"bold {COLOURS[report.outcome.value]}", 0, len(report.outcome.value))
    console.print(line, soft_wrap=True)


def print_failures(
    report: GateReport, console: Console, *, all_rows: bool = False, root: str | None = None
) -> None:
    """Draws failures and unevaluated assertions, each after a blank line.

    :param root: the results root, for the commands that display the rest.
    """
    colour = console.is_terminal and not console.no_color
    for verdict in report.with_status(Status.FAILED) + report.with_status(Status.ERROR):
        shown = printable_verdict(verdict)
        drawing = draw_verdict(shown, report, colour=colour, all_rows=all_rows, root=root)
        typer.echo(f"\n{drawing}", file=console.file, color=colour)


def verdicts_table(verdicts: Iterable[Verdict]) -> Table:
    table = table_of("status", "severity", "check", "assertion", "value", "expected")
    for verdict in verdicts:
        value = scaled_text(verdict)
        if verdict.note and verdict.status is Status.PASSED:
            value += f" ({verdict.note})"
        if verdict.status is Status.SKIPPED:
            # The others are drawn below; only this line gives the reason.
            status = "not evaluated" if verdict.is_not_evaluated else "skipped"
            value = f"{status}: {verdict.reason}" if verdict.reason else status
        table.add_row(
            coloured(verdict.status),
            Text(verdict.severity.value),
            *(
                Text(printable(text))
                for text in (verdict.check, verdict.name, value, verdict.expected)
            ),
        )
    return table


def table_of(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column not in _WRAPPED)
    return table


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table on stdout."""
    table = table_of(*columns)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console_for().print(table)


def coloured(status: Outcome | Status) -> Text:
    return Text(status.value, style=COLOURS[status.value])


def printable(text: str, keep: str = "") -> str:
    """Control characters as escapes: a name in a table must not control the reader's terminal."""
    return "".join(
        character if character.isprintable() or character in keep else ascii(character)[1:-1]
        for character in text
    )


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
