"""`dql waive` and `dql waivers`: assertions that may fail until a date."""

from __future__ import annotations

import getpass
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command import TextFormatOption, TextOrJson
from dqx_airflow.cli.incidents import AuthorOption, RootOption, results_at
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dqx_airflow.values.decisions import Waiver

LimitOption = Annotated[
    str | None,
    typer.Option("--below", metavar="LIMIT", help="Only while the value is below it, such as 10%."),
]


def waive(
    gate: Annotated[str, typer.Argument(metavar="GATE", help="The name of the gate.")],
    assertion: Annotated[
        str,
        typer.Argument(
            metavar="ASSERTION",
            help="The name of the assertion, CHECK::NAME, or the path of a contract clause.",
        ),
    ],
    *,
    until: Annotated[
        datetime, typer.Option("--until", formats=["%Y-%m-%d"], help="The last day, in UTC.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why it may fail.")],
    owner: Annotated[str, typer.Option("--owner", help="Who takes care of the cause.")],
    below: LimitOption = None,
    above: Annotated[
        str | None,
        typer.Option("--above", metavar="LIMIT", help="Only while the value is above it."),
    ] = None,
    longest: Annotated[
        int, typer.Option("--longest", metavar="DAYS", min=1, help="The longest time in days.")
    ] = 30,
    author: AuthorOption = None,
    root: RootOption = None,
) -> None:
    """Let an assertion of a gate fail until a day, for a reason.

    Its failure is then a warning, counted as waived in every report. A waiver never applies to
    P0 and @required, and ends by itself.
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
    gate: Annotated[str | None, typer.Option("--gate", help="Only those of this gate.")] = None,
    ended: Annotated[bool, typer.Option("--all", help="Include those that have ended.")] = False,
    end: Annotated[
        str | None, typer.Option("--end", metavar="ID", help="End a waiver now.")
    ] = None,
    author: AuthorOption = None,
    output: TextFormatOption = TextOrJson.TEXT,
) -> None:
    """List the waivers, those that end first at the top; or end one early."""
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
