"""`dql results`: lists, shows and exports stored results of gates, and maintains their store."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import astuple
from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dqx_airflow.cli import command, documented
from dqx_airflow.cli.days import DayOption, span
from dqx_airflow.cli.decisions import DryRunOption, YesOption, may_go_on
from dqx_airflow.cli.stores import ResultsRootOption, existing_results, results_of, storage_options
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_LISTED

if TYPE_CHECKING:
    from rich.text import Text

    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.results.report_rows import RunRow
    from dqx_airflow.results.upkeep import Upkeep
    from dqx_airflow.values import GateReport

_KEPT = timedelta(days=7)

app = documented.Commands(
    help="Inspect the results of gates and maintain their store.", no_args_is_help=True
)


@app.command("list")
def list_(
    *,
    results_root: ResultsRootOption = None,
    gate: str | None = None,
    on: DayOption = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED)] = 20,
    all_attempts: bool = False,
    format: command.TextFormatOption = "text",
) -> None:
    """List the runs of gates, newest first.

    :param gate: Only runs of this gate.
    :param on: Only runs for data of this date.
    :param limit: Maximum number of runs.
    :param all_attempts: Include attempts that a later one superseded.
    """
    from dqx_airflow.results.runs import list_runs

    results = results_of(results_root)
    runs = list_runs(results, gate=gate, dataset_date=on, limit=limit, all_attempts=all_attempts)
    text = command.json_if(format, runs)
    if runs or text:
        command.print_list(text, _HEAD, [*_rows(runs)], "")
    if not runs:
        raise RequestError(f"no matching runs under {results.root}")


@app.command("show")
def show(
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID")],
    results_root: ResultsRootOption = None,
    rows: bool = False,
    format: command.TextFormatOption = "text",
) -> None:
    """Show one run: every assertion, with the reason if it did not pass.

    :param run_id: The first characters of a run id, or `latest`.
    :param rows: Show all sampled failing rows instead of the first three.
    """
    results = results_of(results_root)
    report = find_run(results, run_id)
    if text := command.json_if(format, report):
        typer.echo(text)
    else:
        _print_report(report, results.root, all_rows=rows)


@app.command("export")
def export(
    run_id: Annotated[str, typer.Argument(metavar="RUN_ID")] = "latest",
    *,
    format: Annotated[Literal["oors"], command.FORMAT],
    results_root: ResultsRootOption = None,
    output: command.OutputOption = None,
    force: command.ForceOption = False,
    url: str | None = None,
) -> None:
    """Write one run as JSON in an open format.

    The format is OORS 0.8.1, which is a draft and may change.

    :param run_id: The first characters of a run id; default: the latest.
    :param format: The format.
    :param url: Post it there instead, with the token in DQX_RESULTS_TOKEN, if that is set.
    """
    from dqx_airflow.results.oors import oors_message
    from dqx_airflow.results.oors_receiver import send_message

    file = command.writable(output, force=force)
    message = oors_message(find_run(results_of(results_root), run_id))
    if url is None or output is not None:
        command.print_or_write(json.dumps(message, indent=2, ensure_ascii=False) + "\n", file)
    if url is not None:
        send_message(message, url, os.environ.get("DQX_RESULTS_TOKEN"))
        typer.echo(f"sent run {message['id']}")


@app.command("optimize")
def optimize(
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    results_root: ResultsRootOption = None,
    format: command.TextFormatOption = "text",
) -> None:
    """Merge the small files of the store.

    A store of an older version is partitioned by month. Gates may run at the same time. If it is
    interrupted, run it again. A rehearsal counts the files of each table.
    """
    from dqx_airflow.results import upkeep

    root = existing_results(results_root).root
    if may_go_on(f"merge the small files under {root}", dry_run=dry_run, yes=yes) or dry_run:
        _tend(root, partial(upkeep.optimize, dry_run=dry_run), format)


@app.command("prune")
def prune(
    *,
    older_than: Annotated[timedelta, typer.Option(parser=span, metavar="SPAN")],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    results_root: ResultsRootOption = None,
    format: command.TextFormatOption = "text",
) -> None:
    """Delete old runs, with their results, failing rows and states.

    `dql results vacuum` frees the space seven days later. Gates may run at the same time. A
    rehearsal counts the rows in each table.

    :param older_than: Delete runs older than this, such as 400d or 8w.
    """
    from dqx_airflow.results import upkeep

    root = existing_results(results_root).root
    oldest = date.today() - older_than
    effect = f"delete the runs under {root} that finished before {oldest}, with all their rows"
    if may_go_on(effect, dry_run=dry_run, yes=yes) or dry_run:
        _tend(root, partial(upkeep.prune, older_than=older_than, dry_run=dry_run), format)


@app.command("vacuum")
def vacuum(
    *,
    keep: Annotated[
        timedelta, typer.Option(parser=span, metavar="SPAN", show_default="7d")
    ] = _KEPT,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    results_root: ResultsRootOption = None,
    format: command.TextFormatOption = "text",
) -> None:
    """Delete the files that `optimize`, `prune` and the gates have replaced.

    Gates may run at the same time. A rehearsal counts the files of each table.

    :param keep: Keep files that were in use within this time.
    """
    from dqx_airflow.results import upkeep

    root = existing_results(results_root).root
    effect = f"delete the files under {root} that no version has used for {keep}"
    if may_go_on(effect, dry_run=dry_run, yes=yes) or dry_run:
        _tend(root, partial(upkeep.vacuum, keep=keep, dry_run=dry_run), format)


def _tend(
    root: str | None, work: Callable[..., tuple[Upkeep, ...]], format: command.TextOrJson
) -> None:
    """Processes the store, and prints the result for each of its tables."""
    done = work(results_of(root).root, storage_options=storage_options())
    rows = [(name, *(f"{number:,}" for number in numbers)) for name, *numbers in map(astuple, done)]
    head = ("table", "files before", "files after", "deleted rows", "deleted files")
    command.print_list(command.json_if(format, done), head, rows, "")


def find_run(results: StoredResults, run_id: str) -> GateReport:
    """The report of a run, by the first characters of its id, or of the `latest`.

    :raises RequestError: the run does not exist."""
    from dqx_airflow.results.runs import find_report, list_runs

    newest = list_runs(results, limit=1) if run_id == "latest" else ()
    report = find_report(results, newest[0].run_id if newest else run_id)
    if report is not None:
        return report
    raise RequestError(
        f"no run {run_id} under {results.root}", "`dql results list --all-attempts` shows the ids"
    )


def _print_report(report: GateReport, root: str, *, all_rows: bool) -> None:
    from rich.text import Text

    from dqx_airflow.cli import reports
    from dqx_airflow.diagnostics.templates import filled

    console = reports.console_for()
    reports.print_headline(report, console)
    shown = {"finished": _timestamp(report.finished_at), "printable": reports.printable}
    facts = filled(__package__, "report.txt", report=report, **shown)
    console.print(Text(facts), soft_wrap=True, end="")
    if report.verdicts:
        console.print()
        console.print(reports.verdicts_table(report.verdicts))
    reports.print_failures(report, console, all_rows=all_rows, root=root)


_HEAD = ("run", "outcome", "gate", "date", "attempt", "failed", "worst", "finished")


def _rows(runs: tuple[RunRow, ...]) -> Iterator[tuple[str | Text, ...]]:
    from dqx_airflow.cli.reports import coloured

    for run in runs:
        failed = f"{run.failed}/{run.assertions}"
        if run.errors:
            failed += f" +{run.errors} error" + "s" * (run.errors > 1)
        if run.partial is not None:
            failed += f", partial: {run.partial.selected} of {run.partial.assertions}"
        worst = f"{run.worst} ({run.worst_severity.value})" if run.worst_severity else ""
        key = run.run_key
        attempt = str(run.attempt.number)
        ended = _timestamp(run.finished_at)
        outcome = coloured(run.outcome)
        on = key.date.isoformat()
        yield run.run_id[:8], outcome, key.gate_instance, on, attempt, failed, worst, ended


def _timestamp(timestamp: datetime) -> str:
    return f"{timestamp:%Y-%m-%d %H:%M:%S}Z"
