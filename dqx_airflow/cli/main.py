"""The `dql` application, whose verbs are those of `verbs.txt`, imported when they are called."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

import dqx_airflow
from dqx_airflow.cli.command import CommandGroup, group_of
from dqx_airflow.engine.session.launch import collect_rarely, leave, open_closed_streams

app = typer.Typer(
    name="dql",
    cls=group_of("verbs.txt", CommandGroup),
    help="Data quality gates: check and run suites, inspect results, run the demo.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dql {dqx_airflow.__version__}")
        raise typer.Exit


@app.callback()
def dql(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """The program `dql`."""
    open_closed_streams()
    collect_rarely()
    try:
        app()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        leave(ended.code)
    leave(0)
