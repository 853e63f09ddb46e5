"""`dql contract`: its commands, each imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from dqx_airflow.cli.command import TYPED_VARIABLES, Command, group_of

COMMANDS = (
    "lint",
    "to-suite",
    "coverage",
    "test",
    "publish",
    "impact",
    "diff",
    "registry",
    "consumers",
    "evolve",
    "export",
    "init",
    "codeowners",
    "rfc",
)
"""The commands in the order of the help."""


def command_of(name: str) -> Command:
    """The function of a command, or the application with its subcommands."""
    match name:
        case "lint":
            from dqx_airflow.cli.contract.documents import lint

            return lint
        case "to-suite":
            from dqx_airflow.cli.contract.documents import to_suite

            return to_suite
        case "coverage":
            from dqx_airflow.cli.contract.documents import coverage

            return coverage
        case "test":
            from dqx_airflow.cli.contract.documents import against_data

            return against_data
        case "publish":
            from dqx_airflow.cli.contract.registry import publish_to_table

            return publish_to_table
        case "impact":
            from dqx_airflow.cli.contract.diff import impact

            return impact
        case "diff":
            from dqx_airflow.cli.contract.diff import diff

            return diff
        case "registry":
            from dqx_airflow.cli.contract.registry import app

            return app
        case "consumers":
            from dqx_airflow.cli.contract.registry import consumers

            return consumers
        case "evolve":
            from dqx_airflow.cli.contract.documents import evolve

            return evolve
        case "export":
            from dqx_airflow.cli.contract.documents import export

            return export
        case "init":
            from dqx_airflow.cli.drafts import draft_contract

            return draft_contract
        case "codeowners":
            from dqx_airflow.cli.contract.registry import codeowners

            return codeowners
        case "rfc":
            from dqx_airflow.cli.contract.registry import rfc

            return rfc
    raise KeyError(name)


app = typer.Typer(
    cls=group_of(COMMANDS, command_of),
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
