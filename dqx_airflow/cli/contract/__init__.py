"""`dql contract`: only names the verbs, each of which is imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from dqx_airflow.cli.command import TYPED_VARIABLES, group_of

VERBS = {
    "lint": "dqx_airflow.cli.contract.documents:lint",
    "to-suite": "dqx_airflow.cli.contract.documents:to_suite",
    "coverage": "dqx_airflow.cli.contract.documents:coverage",
    "test": "dqx_airflow.cli.contract.documents:against_data",
    "publish": "dqx_airflow.cli.contract.registry:publish_to_table",
    "impact": "dqx_airflow.cli.contract.diff:impact",
    "diff": "dqx_airflow.cli.contract.diff:diff",
    "registry": "dqx_airflow.cli.contract.registry:app",
    "consumers": "dqx_airflow.cli.contract.registry:consumers",
    "evolve": "dqx_airflow.cli.contract.documents:evolve",
    "export": "dqx_airflow.cli.contract.documents:export",
    "init": "dqx_airflow.cli.drafts:draft_contract",
    "codeowners": "dqx_airflow.cli.contract.registry:codeowners",
    "rfc": "dqx_airflow.cli.contract.registry:rfc",
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
