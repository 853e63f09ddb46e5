"""`dql accept`: a person accepts the data of a blocked gate, once."""

from __future__ import annotations

import getpass
from datetime import datetime
from typing import Annotated

import typer

from dqx_airflow.cli.command import RootOption
from dqx_airflow.cli.incidents import results_at
from dqx_airflow.errors import RequestError


def accept(
    gate: Annotated[str, typer.Argument(metavar="GATE")],
    on: Annotated[datetime, typer.Argument(metavar="DATE", formats=["%Y-%m-%d"])],
    *,
    reason: Annotated[str, typer.Option()],
    incident: Annotated[str | None, typer.Option(metavar="ID")] = None,
    author: str | None = None,
    root: RootOption = None,
) -> None:
    """Accept the data of a date that a gate has blocked, exactly as it was judged.

    Run the gate again (clear its task): it promotes these rows and updates the assets. If the data
    has changed since, the answer is void. P0 and @required need accept_required=True on the gate.

    :param gate: The name of the gate.
    :param on: The date of the data.
    :param reason: Why the data may go on.
    :param incident: Of several slices of the date, this one.
    :param author: Who decides; default: the current user.
    """
    from dqx_airflow.results.decisions import acceptances
    from dqx_airflow.results.incidents import stored_incidents, write_notes
    from dqx_airflow.results.query import RunsWanted

    results, day = results_at(root), on.date()
    found = stored_incidents(results, RunsWanted(since=day, until=day))
    names = {
        one.id: {run.run_key.gate for run in one.runs} | {one.last.run_key.gate.partition("/")[0]}
        for one in found
    }
    about = [
        one
        for one in found
        if one.is_open and gate in names[one.id] and one.id.startswith(incident or "")
    ]
    if len(about) != 1:
        listed = ", ".join(
            f"{one.id[:8]} {one.last.run_key.gate_instance} {one.rows}".strip() for one in about
        )
        raise RequestError(
            f"gate '{gate}' has {len(about) or 'no'} open slices on {day}"
            + (f": {listed}" if about else ""),
            "add --incident ID" if about else "`dql incidents` lists what is open",
        )
    write_notes(results, acceptances(results, about[0], author or getpass.getuser(), reason))
    typer.echo(
        f"accepted: gate {about[0].last.run_key.gate_instance}, data of {day}\n"
        "Clear the task of the gate, or run it again: it promotes exactly these rows."
    )
