"""`dql contract`: its commands, each imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from dqx_airflow.cli.command import TYPED_VARIABLES
from dqx_airflow.cli.documented import Command, group_of


def _lint() -> Command:
    from dqx_airflow.cli.contract.lint import lint

    return lint


def _to_suite() -> Command:
    from dqx_airflow.cli.contract.documents import to_suite

    return to_suite


def _coverage() -> Command:
    from dqx_airflow.cli.contract.coverage import coverage

    return coverage


def _test() -> Command:
    from dqx_airflow.cli.contract.documents import against_data

    return against_data


def _publish() -> Command:
    from dqx_airflow.cli.contract.publish import publish_to_table

    return publish_to_table


def _impact() -> Command:
    from dqx_airflow.cli.contract.impact import impact

    return impact


def _diff() -> Command:
    from dqx_airflow.cli.contract.diff import diff

    return diff


def _registry() -> Command:
    from dqx_airflow.cli.contract.registry import app

    return app


def _consumers() -> Command:
    from dqx_airflow.cli.contract.registry import consumers

    return consumers


def _evolve() -> Command:
    from dqx_airflow.cli.contract.documents import evolve

    return evolve


def _export() -> Command:
    from dqx_airflow.cli.contract.documents import export

    return export


def _init() -> Command:
    from dqx_airflow.cli.contract.draft import draft_contract

    return draft_contract


def _codeowners() -> Command:
    from dqx_airflow.cli.contract.registry import codeowners

    return codeowners


def _rfc() -> Command:
    from dqx_airflow.cli.contract.registry import rfc

    return rfc


COMMANDS: Mapping[str, Callable[[], Command]] = {
    "lint": _lint,
    "to-suite": _to_suite,
    "coverage": _coverage,
    "test": _test,
    "publish": _publish,
    "impact": _impact,
    "diff": _diff,
    "registry": _registry,
    "consumers": _consumers,
    "evolve": _evolve,
    "export": _export,
    "init": _init,
    "codeowners": _codeowners,
    "rfc": _rfc,
}
"""The imports of the commands, in the order of the help."""

app = typer.Typer(
    cls=group_of(COMMANDS),
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
