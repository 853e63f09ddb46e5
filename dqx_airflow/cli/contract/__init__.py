"""`dql contract`: its commands, each imported when it is called."""

from __future__ import annotations

from typing import Annotated

import typer

from dqx_airflow.cli.command import TYPED_VARIABLES
from dqx_airflow.cli.documented import Command, Panels, group_of


def _lint() -> Command:
    from dqx_airflow.cli.contract.lint import lint

    return lint


def _clauses() -> Command:
    from dqx_airflow.cli.contract.clauses import clauses

    return clauses


def _test() -> Command:
    from dqx_airflow.cli.contract.documents import against_data

    return against_data


def _diff() -> Command:
    from dqx_airflow.cli.contract.diff import diff

    return diff


def _impact() -> Command:
    from dqx_airflow.cli.contract.impact import impact

    return impact


def _init() -> Command:
    from dqx_airflow.cli.contract.draft import draft_contract

    return draft_contract


def _to_suite() -> Command:
    from dqx_airflow.cli.contract.documents import to_suite

    return to_suite


def _export() -> Command:
    from dqx_airflow.cli.contract.documents import export

    return export


def _evolve() -> Command:
    from dqx_airflow.cli.contract.documents import evolve

    return evolve


def _annotate_table() -> Command:
    from dqx_airflow.cli.contract.annotated_table import annotate_table

    return annotate_table


def _registry() -> Command:
    from dqx_airflow.cli.contract.registry import app

    return app


def _codeowners() -> Command:
    from dqx_airflow.cli.contract.registry import codeowners

    return codeowners


def _rfc() -> Command:
    from dqx_airflow.cli.contract.registry import rfc

    return rfc


PANELS: Panels = {
    "Write": {"init": _init, "lint": _lint, "clauses": _clauses},
    "Enforce": {"test": _test, "to-suite": _to_suite},
    "Change": {"diff": _diff, "impact": _impact, "evolve": _evolve},
    "Publish": {
        "registry": _registry,
        "annotate-table": _annotate_table,
        "export": _export,
        "codeowners": _codeowners,
        "rfc": _rfc,
    },
}
"""The imports of the commands, in the order of their use."""

app = typer.Typer(
    cls=group_of(PANELS),
    help="Draft, check, enforce, compare and publish data contracts.",
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
