"""`dql results`: what the gates found. Everything heavy is imported when a verb is called."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dqx_airflow.errors import DqxError
    from dqx_airflow.results.schema import RunRow
    from dqx_airflow.values import GateReport, Outcome, Status, Verdict

app = typer.Typer(help="Look at the results of gates.", no_args_is_help=True)

_WRONG_CALL, _INFRASTRUCTURE = 2, 4
_NARROWEST = 100
_UNBOUNDED = 100_000
_COLOURS = {
    "passed": "green",
    "warned": "yellow",
    "blocked": "red",
    "broken": "magenta",
    "failed": "red",
    "error": "magenta",
    "skipped": "yellow",
}


class OutputFormat(str, Enum):
    TEXT = "text"
    JSON = "json"


_Root = Annotated[
    str | None,
    typer.Option(
        "--root", envvar="DQX_RESULTS_ROOT", help="Where the results are: a path or a URI."
    ),
]
_Format = Annotated[OutputFormat, typer.Option("--format", help="For people or for machines.")]


@app.command("list")
def list_(
    *,
    root: _Root = None,
    gate: Annotated[
        str | None,
        typer.Option("--gate", help="Only runs of this gate."),
    ] = None,
    on: Annotated[
        datetime | None,
        typer.Option("--date", formats=["%Y-%m-%d"], help="Only runs about the data of this date."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many runs.")] = 20,
    all_attempts: Annotated[
        bool, typer.Option("--all-attempts", help="Also attempts that a later one supersedes.")
    ] = False,
    output: _Format = OutputFormat.TEXT,
) -> None:
    """List the runs of gates, the newest first."""
    from dqx_airflow.errors import DqxError

    root = _given(root)
    try:
        from dqx_airflow.results.reader import list_runs

        runs = list_runs(
            root,
            gate=gate,
            dataset_date=on.date() if on else None,
            limit=limit,
            all_attempts=all_attempts,
        )
    except DqxError as error:
        _fail(error)
    if output is OutputFormat.JSON:
        _print_json(runs)
    elif runs:
        _console().print(_runs_table(runs))
    if not runs:
        typer.echo(f"error: no run matches under {root}", err=True)
        raise typer.Exit(_WRONG_CALL)


@app.command("show")
def show(
    run_id: Annotated[
        str, typer.Argument(help="The first characters of a run id, or `latest`.", metavar="RUN_ID")
    ],
    root: _Root = None,
    output: _Format = OutputFormat.TEXT,
) -> None:
    """Show one run: every assertion, and why those that did not pass did not."""
    from dqx_airflow.errors import DqxError

    root = _given(root)
    try:
        report = _find(root, run_id)
    except DqxError as error:
        _fail(error)
    if report is None:
        typer.echo(
            f"error: no run {run_id} under {root}\n"
            "  help: `dql results list --all-attempts` shows the ids",
            err=True,
        )
        raise typer.Exit(_WRONG_CALL)
    if output is OutputFormat.JSON:
        _print_json(report)
    else:
        _print_report(report)


def _find(root: str, run_id: str) -> GateReport | None:
    from dqx_airflow.results.reader import find_report, list_runs

    if run_id != "latest":
        return find_report(root, run_id)
    newest = list_runs(root, limit=1)
    return find_report(root, newest[0].run_id) if newest else None


def _given(root: str | None) -> str:
    if root:
        return root
    typer.echo(
        "error: which results?\n  help: add --root PATH, or set the variable DQX_RESULTS_ROOT",
        err=True,
    )
    raise typer.Exit(_WRONG_CALL)


def _fail(error: DqxError) -> NoReturn:
    from dqx_airflow.errors import RequestError

    message = _printable(str(error), keep="\n")
    typer.echo(f"error: {message}", err=True)
    code = _WRONG_CALL if isinstance(error, RequestError) else _INFRASTRUCTURE
    raise typer.Exit(code) from error


def _print_json(value: object) -> None:
    from dqx_airflow.values import to_json

    typer.echo(to_json(value))


def _print_report(report: GateReport) -> None:
    from rich.text import Text

    from dqx_airflow.diagnostics.verdicts import draw_verdict, headline
    from dqx_airflow.values import Status

    console = _console()
    first = Text(_printable(headline(report)))
    first.stylize(f"bold {_COLOURS[report.outcome.value]}", 0, len(report.outcome.value))
    console.print(first, soft_wrap=True)
    console.print(Text(_facts(report)), soft_wrap=True)
    if report.verdicts:
        console.print()
        console.print(_verdicts_table(report.verdicts))
    colour = console.is_terminal and not console.no_color
    for verdict in report.with_status(Status.FAILED) + report.with_status(Status.ERROR):
        drawing = draw_verdict(_printable_verdict(verdict), report, colour=colour)
        typer.echo(f"\n{drawing}", color=colour)


def _facts(report: GateReport) -> str:
    lines = [
        ("run", report.run_id),
        ("attempt", f"{report.attempt.number}, scheduler run {report.run_key.scheduler_run}"),
        ("suite", report.suite),
        ("fail on", report.fail_on.value),
        ("finished", _moment(report.finished_at)),
    ]
    for dataset in report.datasets:
        version = "" if dataset.version is None else f", version {dataset.version}"
        rows = "" if dataset.rows is None else f", {dataset.rows} rows"
        lines.append(("dataset", f"{dataset.name}: {dataset.location}{version}{rows}"))
    return "\n".join(f"  {name:<9}{_printable(text)}" for name, text in lines)


def _runs_table(runs: tuple[RunRow, ...]) -> Table:
    from rich.text import Text

    table = _table("run", "outcome", "gate", "date", "attempt", "failed", "worst", "finished")
    for run in runs:
        failed = f"{run.failed}/{run.assertions}"
        if run.errors:
            failed += f" +{run.errors} error" + "s" * (run.errors > 1)
        worst = f"{run.worst} ({run.worst_severity.value})" if run.worst_severity else ""
        table.add_row(
            Text(_printable(run.run_id[:8])),
            _coloured(run.outcome),
            Text(_printable(run.run_key.gate)),
            Text(run.run_key.date.isoformat()),
            Text(str(run.attempt.number)),
            Text(failed),
            Text(_printable(worst)),
            Text(_moment(run.finished_at)),
        )
    return table


def _verdicts_table(verdicts: tuple[Verdict, ...]) -> Table:
    from rich.text import Text

    from dqx_airflow.diagnostics.verdicts import format_value
    from dqx_airflow.values import Status

    table = _table("status", "severity", "check", "assertion", "value", "expected")
    for verdict in verdicts:
        value = format_value(verdict.value)
        if verdict.multiplier != 1.0 and verdict.scaled_value is not None:
            value += f" (scaled {format_value(verdict.scaled_value)})"
        if verdict.status is Status.SKIPPED:
            # The others are drawn below; this is the only place that says why.
            value = f"skipped: {verdict.reason}" if verdict.reason else "skipped"
        table.add_row(
            _coloured(verdict.status),
            Text(verdict.severity.value),
            *(
                Text(_printable(text))
                for text in (verdict.check, verdict.name, value, verdict.expected)
            ),
        )
    return table


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        # Names may be long: they go on in the next line. What is short never does.
        wraps = column in {"gate", "worst", "check", "assertion", "value", "expected"}
        table.add_column(column, overflow="fold", no_wrap=not wraps)
    return table


def _console() -> Console:
    import sys

    from rich.console import Console

    # A pipe or a file has no width: lines are as long as they need to be.
    if not sys.stdout.isatty():
        return Console(width=_UNBOUNDED, highlight=False)
    console = Console(highlight=False)
    console.width = max(console.width, _NARROWEST)
    return console


def _coloured(status: Outcome | Status) -> Text:
    from rich.text import Text

    return Text(status.value, style=_COLOURS[status.value])


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"


def _printable(text: str, keep: str = "") -> str:
    """Control characters as escapes: a name in a table may not steer the reader's terminal."""
    return "".join(
        character if character.isprintable() or character in keep else ascii(character)[1:-1]
        for character in text
    )


def _printable_verdict(verdict: Verdict) -> Verdict:
    """The verdict with every text printable. The source line keeps its length for the carets."""
    from dataclasses import replace

    return replace(
        verdict,
        name=_printable(verdict.name),
        expected=_printable(verdict.expected),
        datasets=tuple(map(_printable, verdict.datasets)),
        value=_printable(verdict.value) if isinstance(verdict.value, str) else verdict.value,
        reason=_printable(verdict.reason) if verdict.reason else verdict.reason,
        profiles=tuple(map(_printable, verdict.profiles)),
    )
