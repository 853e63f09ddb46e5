"""`dql waive` and `dql waivers`: assertions that may fail until a date."""

from __future__ import annotations

import getpass
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command import RootOption, TextFormatOption, TextOrJson
from dqx_airflow.cli.incidents import results_at
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dqx_airflow.values.decisions import Waiver


def waive(
    gate: Annotated[str, typer.Argument(metavar="GATE")],
    assertion: Annotated[str, typer.Argument(metavar="ASSERTION")],
    *,
    until: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"])],
    reason: Annotated[str, typer.Option()],
    owner: Annotated[str, typer.Option()],
    below: Annotated[str | None, typer.Option(metavar="LIMIT")] = None,
    above: Annotated[str | None, typer.Option(metavar="LIMIT")] = None,
    longest: Annotated[int, typer.Option(metavar="DAYS", min=1)] = 30,
    author: str | None = None,
    root: RootOption = None,
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
    :param longest: The longest time in days.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.decisions import new_waiver, write_waivers

    results = results_at(root)
    waiver = new_waiver(
        results,
        gate,
        assertion,
        until=until.date(),
        reason=reason,
        owner=owner,
        author=author or getpass.getuser(),
        below=below,
        above=above,
        longest=timedelta(days=longest),
    )
    write_waivers(results, [waiver])
    typer.echo(f"{waiver.name} of {waiver.gate}: {waiver}")


def waivers(
    *,
    root: RootOption = None,
    gate: str | None = None,
    ended: Annotated[bool, typer.Option("--all")] = False,
    end: Annotated[str | None, typer.Option(metavar="ID")] = None,
    author: str | None = None,
    output: TextFormatOption = TextOrJson.TEXT,
) -> None:
    """List the waivers, those that end first at the top; or end one early.

    :param gate: Only those of this gate.
    :param ended: Include those that have ended.
    :param end: End a waiver now.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.decisions import waivers_of, write_waivers

    results = results_at(root)
    now = datetime.now(timezone.utc)
    found = waivers_of(results, None if gate is None else [gate])
    if end is not None:
        own = [one for one in found if end and one.id.startswith(end) and one.is_active(now)]
        if len(own) != 1:
            many = "several active waivers have" if own else "no active waiver has"
            raise RequestError(f"{many} an id that starts with '{end}'", "`dql waivers` lists them")
        write_waivers(results, [replace(own[0], ended_by=author or getpass.getuser(), at=now)])
        typer.echo(f"ended: {own[0].name} of {own[0].gate}")
        return
    shown = sorted((one for one in found if ended or one.is_active(now)), key=lambda o: o.until)
    if output is TextOrJson.JSON:
        from dqx_airflow.values import to_json

        typer.echo(to_json([*shown]))
    elif shown:
        _print(shown, now)
    else:
        typer.echo("no waiver")


def _print(shown: Sequence[Waiver], now: datetime) -> None:
    from dqx_airflow.cli.reports import print_table

    print_table(
        ("id", "gate", "assertion", "until", "limit", "owner", "reason", "state"),
        [
            (
                one.id[:8],
                one.gate,
                one.name,
                one.until.isoformat(),
                re.sub(r"^[^,]*(, )?", "", one.terms),
                one.owner,
                one.reason,
                "active"
                if one.is_active(now)
                else f"ended{f' by {one.ended_by}' if one.ended_by else ''}",
            )
            for one in shown
        ],
    )
