"""`dql quarantine`: the bad rows that a gate has set aside, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.arguments import Options, with_shared_options
from dqx_airflow.cli.command import TextFormatOption
from dqx_airflow.cli.days import DayOption, span
from dqx_airflow.cli.decisions import (
    AuthorOption,
    DryRunOption,
    RequiredReasonOption,
    YesOption,
    author_of,
    may_go_on,
)
from dqx_airflow.cli.documented import Commands
from dqx_airflow.cli.exit_codes import EXIT_FAILED, EXIT_WRONG
from dqx_airflow.cli.stores import HOW_TO_GIVE, ResultsRootOption, existing_results, storage_options
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_LISTED

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from dqx_airflow.cli.calls import RunCall
    from dqx_airflow.results.quarantines import QuarantinedRows
    from dqx_airflow.results.query import StoredResults
    from dqx_airflow.values import RunKey

app = Commands(help="List, show, release and discard rows in quarantine.", no_args_is_help=True)

_Place = Annotated[str, typer.Argument(metavar="QUARANTINE")]


@app.command("list")
def list_(
    place: _Place,
    *,
    gate: str | None = None,
    on: DayOption = None,
    format: TextFormatOption = "text",
) -> None:
    """List the rows in a quarantine by gate, date and reason, oldest first.

    :param place: The path of the table.
    :param gate: Only rows of this gate, or of an instance of it: GATE[3].
    :param on: Only rows of this date.
    """
    _, found = _quarantined(place, gate, on)
    lines = [
        (group.gate, str(group.date), reason, str(count), str(group.rows))
        for group in found
        for reason, count in group.reasons.items()
    ]
    text = _json([group.facts for group in found]) if format == "json" else None
    head = ("gate", "date", "reason", "rows", "of all")
    command.print_list(text, head, lines, "no rows in quarantine")


@app.command("show")
def show(
    place: _Place,
    *,
    gate: str | None = None,
    on: DayOption = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED)] = 20,
    masked: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    format: TextFormatOption = "text",
) -> None:
    """Show rows in quarantine, with the values of masked columns as ***.

    :param place: The path of the table.
    :param gate: Only rows of this gate, or of an instance of it: GATE[3].
    :param on: Only rows of this date.
    :param limit: Maximum number of rows.
    :param masked: One more column to mask, repeatable.
    """
    from dqx_airflow.results.quarantines import masked_in, shown_rows

    table, found = _quarantined(place, gate, on)
    recorded = masked_in(table)
    if recorded is None and not masked:
        raise RequestError(
            f"which columns are masked is not recorded at {place}",
            "run its gate again, or name a column: --masked COLUMN",
        )
    rows = shown_rows(table, found, [*(recorded or ()), *(masked or ())], limit)
    names = [name for name in next(iter(rows), {}) if not name.startswith("dqx_")]
    lines = [
        [
            *(str(row.get(name)) for name in ("dqx_date", *names)),
            ", ".join(row["dqx_reasons"] or ()),
        ]
        for row in rows
    ]
    text = _json(rows) if format == "json" else None
    head = ("date", *names, "reasons")
    command.print_list(text, head, lines, "no rows in quarantine")


def release(
    place: _Place,
    suites: Annotated[list[Path], typer.Argument(metavar="SUITE...")],
    *,
    gate: str,
    target: Annotated[str, typer.Option("--into", metavar="TARGET")],
    reason: str,
    of: Annotated[str | None, typer.Option("--name", metavar="DATASET")] = None,
    promote_slice: Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE")] = None,
    author: AuthorOption = None,
    format: TextFormatOption = "text",
    shared: Options,
) -> None:
    """Promote the rows of a date that now satisfy all rules.

    They leave the quarantine. Rows may have been repaired in the quarantine, or the rules may have
    changed. They are checked together with the rows that the gate has promoted. Exit code 1: some
    rows stay in quarantine.

    :param place: The path of the quarantine.
    :param suites: All suites of the gate, or its contract.
    :param gate: The gate, or an instance of it: GATE[3].
    :param target: The path of the table to which the gate promotes.
    :param reason: Why they return.
    :param of: The dataset, if the gate has several.
    :param promote_slice: As for the gate, repeatable.
    """
    from dqx_airflow.cli.calls import read_call
    from dqx_airflow.cli.run import print_diagnostics
    from dqx_airflow.cli.spark import Spark
    from dqx_airflow.engine.job_parts import plan_gate
    from dqx_airflow.engine.outputs.good_rows import HeldRowsError, Release
    from dqx_airflow.engine.sources.listing import absolute
    from dqx_airflow.results.decisions import waivers_of
    from dqx_airflow.results.receipts import ReceiptWriter, signing_key

    call = read_call(replace(shared, paths=tuple(suites)), date.today())
    print_diagnostics(call)
    if call.has_errors:
        raise typer.Exit(EXIT_WRONG)
    first = call.requests[0]
    dataset = _released_dataset(call, of)
    results = existing_results(first.results_root)
    by = author_of(author)
    rows = 0
    pairs = tuple((text.partition("=")[0], text.partition("=")[2]) for text in promote_slice or ())
    of_day = first.run_key.date
    _, found = _quarantined(place, gate, of_day)
    receipts = ReceiptWriter(results, signing_key())
    settings = {**first.session_settings, **call.settings.session}
    with closing(Spark(call.settings.connection, settings)) as spark:
        for key in (key for group in found for key in group.keys):
            requests = [replace(one, run_key=key, promote_slice=pairs) for one in call.requests]
            wanted = Release(
                dataset,
                [(one, plan_gate(one)) for one in requests],
                absolute(place),
                target,
                key,
                waivers_of(results),
                {"dqx_released_by": by, "dqx_reason": reason},
                receipts,
            )
            try:
                done = spark.release(wanted)
            except HeldRowsError as error:
                typer.echo(f"error: {error}", err=True)
                raise typer.Exit(EXIT_FAILED) from error
            if done:
                rows += done
                text = f"{done} rows from {place} to {target}: {reason}"
                _note(results, "released", by, {key: text})
    left = sum(group.rows for group in _quarantined(place, gate, of_day)[1])
    if format == "json":
        typer.echo(_json({"gate": gate, "date": of_day, "released": rows, "left": left}))
    else:
        typer.echo(f"{rows} rows released to {target}, {left} left in quarantine")
    if left:
        raise typer.Exit(EXIT_FAILED)


def _released_dataset(call: RunCall, of: str | None) -> str:
    """:raises RequestError: there is no results root, or more than a date and a dataset."""
    first = call.requests[0]
    if not first.results_root:
        raise RequestError(
            "no results root given", f"{HOW_TO_GIVE}: the store keeps who releases rows, and why"
        )
    names = [ref.name for ref in first.datasets]
    if len(call.dates) > 1 or (of or names[0]) not in names or (of is None and len(names) > 1):
        raise RequestError(
            "release the rows of one date and one dataset", f"add --date DATE and --name {names[0]}"
        )
    return of or names[0]


_OF_A_SELECTION = ("only", "tag", "exclude_tag", "min_severity", "dimension")
_OF_RUNS = ("watch", "format", "output", "force", "recompute", "quiet", "verbose")
app.command("release")(with_shared_options(release, without=(*_OF_A_SELECTION, *_OF_RUNS)))


@app.command("discard")
def discard(
    place: _Place,
    *,
    reason: RequiredReasonOption,
    gate: str | None = None,
    on: DayOption = None,
    older_than: Annotated[timedelta | None, typer.Option(parser=span, metavar="SPAN")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    author: AuthorOption = None,
    results_root: ResultsRootOption = None,
    format: TextFormatOption = "text",
) -> None:
    """Delete rows from a quarantine for good.

    The results store keeps who did it, and why.

    :param place: The path of the table.
    :param gate: Only rows of this gate, or of an instance of it: GATE[3].
    :param on: Only rows of this date.
    :param older_than: Only rows of dates longer ago, such as 30d.
    """
    from deltalake.exceptions import DeltaError

    from dqx_airflow.results import quarantines

    if gate is None and on is None and older_than is None:
        raise RequestError(
            "which rows to discard is not said", "add --gate, --date or --older-than 30d"
        )
    results = existing_results(results_root)
    by = author_of(author)
    before = date.today() - older_than if older_than else None
    table, found = _quarantined(place, gate, on, before)
    rows = sum(group.rows for group in found)
    groups = ", ".join(f"{group.rows} of {group.gate} on {group.date}" for group in found)
    effect = f"delete {rows} rows from {place} for good: {groups or 'there are none'}"
    if (found or dry_run) and not may_go_on(effect, dry_run=dry_run, yes=yes):
        if format == "json":
            typer.echo(_json([group.facts for group in found]))
        return
    if found:
        try:
            quarantines.discard(table, found, by, reason)
        except DeltaError as error:
            raise RequestError(
                f"nothing was discarded at {place}: {error}", "try again: a gate runs"
            ) from error
    texts = {
        group.keys[0]: f"{group.rows} rows in quarantine at {place}: {reason}" for group in found
    }
    _note(results, "discarded", by, texts)
    if format == "json":
        typer.echo(_json([group.facts for group in found]))
    else:
        typer.echo(f"{rows} rows discarded from {place}")


def _quarantined(
    place: str, gate: str | None, on: date | None, before: date | None = None
) -> tuple[DeltaTable, list[QuarantinedRows]]:
    from dqx_airflow.results.quarantines import quarantine_at, quarantined

    table = quarantine_at(place, storage_options())
    found = quarantined(table, gate, on, before)
    is_known = gate is None or bool(found or quarantined(table, gate))
    others = () if is_known else [group.gate for group in quarantined(table)]
    if gate is not None and (hint := did_you_mean(gate, others)):
        typer.echo(f"no rows of gate '{gate}': {hint}", err=True)
    return table, found


def _note(results: StoredResults, kind: str, author: str, texts: Mapping[RunKey, str]) -> None:
    """Keeps what was done with the rows of runs, in one append."""
    from dqx_airflow.results.incidents import IncidentNote, write_notes

    if texts:
        notes = (
            IncidentNote(key.gate, key.date, kind, author, text, key.map_index)
            for key, text in texts.items()
        )
        write_notes(results, notes)


def _json(value: Any) -> str:
    # JSON has no NaN and no infinity: they are strings.
    finite = json.loads(json.dumps(value, default=str), parse_constant=str)
    return json.dumps(finite, ensure_ascii=False)
