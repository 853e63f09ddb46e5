"""`dql contract`, whose verbs are those of `contract_verbs.txt`, imported when they are called."""

from __future__ import annotations

from typing import Annotated

import typer

from dqx_airflow.cli.command import TYPED_VARIABLES, group_of

app = typer.Typer(
    cls=group_of("contract_verbs.txt"),
    help="Data contracts: check them, compare their versions, publish them, enforce them.",
    no_args_is_help=True,
)


@app.callback()
def contract(
    variable: Annotated[
        list[str] | None,
        typer.Option(
            "--variable",
            help="A value of ${NAME} in contracts: NAME=VALUE, or NAME to read the environment.",
        ),
    ] = None,
) -> None:
    TYPED_VARIABLES.set(tuple(variable or ()))
