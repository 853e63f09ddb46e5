"""`dql waivers`: lists the assertions that may fail until a day, adds some and ends them early."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command import TextFormatOption, json_if, print_list
from dqx_airflow.cli.days import day_in_utc, span
from dqx_airflow.cli.decisions import AuthorOption, DryRunOption, YesOption, author_of, may_go_on
from dqx_airflow.cli.documented import Commands
from dqx_airflow.cli.stores import ResultsRootOption, existing_results
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from dqx_airflow.values.report import Waiver

_LONGEST = timedelta(days=30)

app = Commands(default="list", help="List, add and end waivers: assertions that may fail.")


@app.command("list")
def list_(
    *,
    results_root: ResultsRootOption = None,
    gate: str | None = None,
    ended: Annotated[bool, typer.Option("--all")] = False,
    format: TextFormatOption = "text",
) -> None:
    """List the waivers, those that end first at the top.

    :param gate: Only waivers of this gate.
    :param ended: Include those that have ended.
    """
    from dqx_airflow.results.decisions import gates_called, waivers_of

    results = existing_results(results_root)
    now = datetime.now(timezone.utc)
    found = waivers_of(results, None if gate is None else gates_called(results, gate))
    shown = sorted((one for one in found if ended or one.is_active(now)), key=lambda o: o.until)
    head = ("id", "gate", "assertion", "until", "limit", "owner", "reason", "state")
    rows = [_row(one, now) for one in shown]
    print_list(json_if(format, [*shown]), head, rows, "no waiver")


def _row(one: Waiver, now: datetime) -> tuple[str, ...]:
    ended = f"ended by {one.ended_by}" if one.ended_by else "ended"
    state = "active" if one.is_active(now) else ended
    limit = re.sub(r"^[^,]*(, )?", "", one.terms)
    until = one.until.isoformat()
    return one.id[:8], one.gate, one.name, until, limit, one.owner, one.reason, state


@app.command("add")
def add(
    gate: Annotated[str, typer.Argument(metavar="GATE")],
    assertion: Annotated[str, typer.Argument(metavar="ASSERTION")],
    *,
    until: Annotated[date, typer.Option(parser=day_in_utc, metavar="DATE")],
    reason: Annotated[str, typer.Option()],
    owner: Annotated[str, typer.Option()],
    below: Annotated[str | None, typer.Option(metavar="LIMIT")] = None,
    above: Annotated[str | None, typer.Option(metavar="LIMIT")] = None,
    longest: Annotated[
        timedelta, typer.Option(parser=span, metavar="SPAN", show_default="30d")
    ] = _LONGEST,
    author: AuthorOption = None,
    results_root: ResultsRootOption = None,
) -> None:
    """Let an assertion of a gate fail until a day, for a reason.

    Its failure is then a warning, counted as waived in every report. A waiver never applies to
    P0 and @required, and ends by itself.

    :param gate: The name of the gate.
    :param assertion: The name of the assertion, CHECK::NAME, or the path of a contract clause.
    :param until: The last day, in UTC.
    :param reason: Why it may fail.
    :param owner: Who takes care of the cause.
    :param below: Only while the value is below it, such as 10%.
    :param above: Only while the value is above it.
    :param longest: The longest time.
    """
    from dqx_airflow.results.decisions import new_waiver, write_waivers

    results = existing_results(results_root)
    waiver = new_waiver(
        results,
        gate,
        assertion,
        until=until,
        reason=reason,
        owner=owner,
        author=author_of(author),
        below=below,
        above=above,
        longest=longest,
    )
    write_waivers(results, [waiver])
    typer.echo(f"{waiver.name} of {waiver.gate}: {waiver}")


@app.command("end")
def end(
    waiver: Annotated[str, typer.Argument(metavar="ID")],
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    author: AuthorOption = None,
    results_root: ResultsRootOption = None,
) -> None:
    """End a waiver now, before its last day.

    :param waiver: The first characters of its id, as `dql waivers` has it.
    """
    from dqx_airflow.results.decisions import waivers_of, write_waivers

    results = existing_results(results_root)
    now = datetime.now(timezone.utc)
    active = [one for one in waivers_of(results, None) if one.is_active(now)]
    own = [one for one in active if waiver and one.id.startswith(waiver)]
    if len(own) != 1:
        many = "several active waivers have" if own else "no active waiver has"
        raise RequestError(f"{many} an id that starts with '{waiver}'", "`dql waivers` lists them")
    effect = f"end the waiver {own[0].id[:8]} of {own[0].name} of {own[0].gate}: {own[0]}"
    if not may_go_on(effect, dry_run=dry_run, yes=yes):
        return
    write_waivers(results, [replace(own[0], ended_by=author_of(author), at=now)])
    typer.echo(f"ended: {own[0].name} of {own[0].gate}")
