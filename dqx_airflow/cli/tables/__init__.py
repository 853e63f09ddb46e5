"""`dql tables`: its commands, each imported when it is called."""

from __future__ import annotations

import typer

from dqx_airflow.cli.documented import Command, Panels, group_of


def _verify() -> Command:
    from dqx_airflow.cli.tables.promoted_tables import verify

    return verify


def _adopt() -> Command:
    from dqx_airflow.cli.tables.promoted_tables import adopt

    return adopt


def _publish() -> Command:
    from dqx_airflow.cli.tables.publishing import publish

    return publish


PANELS: Panels = {"Commands": {"verify": _verify, "adopt": _adopt, "publish": _publish}}

app = typer.Typer(
    cls=group_of(PANELS),
    help="Verify, take over and publish the tables that gates write.",
    no_args_is_help=True,
)


@app.callback()
def tables() -> None:
    pass
