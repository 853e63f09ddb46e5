"""`dql lineage`: its commands, each imported when it is called."""

from __future__ import annotations

import typer

from dqx_airflow.cli.documented import Command, Panels, group_of


def _flush() -> Command:
    from dqx_airflow.cli.lineage.flush import flush

    return flush


def _coverage() -> Command:
    from dqx_airflow.cli.lineage.coverage import coverage

    return coverage


PANELS: Panels = {"Commands": {"coverage": _coverage, "flush": _flush}}

app = typer.Typer(
    cls=group_of(PANELS),
    help="Find tables that no gate checks, and send lineage events again.",
    no_args_is_help=True,
)


@app.callback()
def lineage() -> None:
    pass
