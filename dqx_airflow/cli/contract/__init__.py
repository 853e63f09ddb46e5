"""`dql contract`: only names the verbs, each of which is imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from dqx_airflow.cli.command_group import group_of
from dqx_airflow.cli.project import TYPED_VARIABLES

VERBS = {
    "lint": "dqx_airflow.cli.contract.lint:lint",
    "to-suite": "dqx_airflow.cli.contract.to_suite:to_suite",
    "coverage": "dqx_airflow.cli.contract.coverage:coverage",
    "test": "dqx_airflow.cli.contract.against_data:against_data",
    "publish": "dqx_airflow.cli.contract.publish:publish",
    "impact": "dqx_airflow.cli.contract.impact:impact",
    "diff": "dqx_airflow.cli.contract.diff:diff",
    "registry": "dqx_airflow.cli.contract.registry:app",
    "consumers": "dqx_airflow.cli.contract.consumers:consumers",
    "evolve": "dqx_airflow.cli.contract.to_suite:evolve",
    "export": "dqx_airflow.cli.contract.to_suite:export",
    "init": "dqx_airflow.cli.contract.init:init",
    "codeowners": "dqx_airflow.cli.contract.published:codeowners",
    "rfc": "dqx_airflow.cli.contract.published:rfc",
}
"""The location of each verb: a function, or a `typer.Typer` with verbs of its own."""

app = typer.Typer(
    cls=group_of(VERBS),
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
