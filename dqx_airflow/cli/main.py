"""The `dql` application: its commands, each imported when it is called."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

import dqx_airflow
from dqx_airflow.cli.command import Command, CommandGroup, group_of
from dqx_airflow.engine.session.launch import collect_rarely, leave, open_closed_streams

COMMANDS = (
    "init",
    "check",
    "diff",
    "fmt",
    "run",
    "import",
    "demo",
    "contract",
    "package",
    "explain",
    "mutate",
    "shrink",
    "doctor",
    "lsp",
    "mcp",
    "results",
    "incidents",
    "accept",
    "waive",
    "waivers",
    "quarantine",
    "alerts",
    "label",
    "backtest",
    "suggest",
    "tune",
    "review",
    "promote",
    "shadow",
    "history",
    "rollback",
    "adopt",
    "verify",
    "lineage",
    "publish",
    "coverage",
)
"""The commands in the order of the help."""


def command_of(name: str) -> Command:  # noqa: PLR0915 - two statements for each command
    """The function of a command, or the application with its subcommands."""
    match name:
        case "init":
            from dqx_airflow.cli.drafts import init

            return init
        case "check":
            from dqx_airflow.cli.suites import check

            return check
        case "diff":
            from dqx_airflow.cli.diff import diff

            return diff
        case "fmt":
            from dqx_airflow.cli.suites import fmt

            return fmt
        case "run":
            from dqx_airflow.cli.run import run

            return run
        case "import":
            from dqx_airflow.cli.drafts import import_rules

            return import_rules
        case "demo":
            from dqx_airflow.cli.demo import demo

            return demo
        case "contract":
            from dqx_airflow.cli.contract import app

            return app
        case "package":
            from dqx_airflow.cli.package import package

            return package
        case "explain":
            from dqx_airflow.cli.explain import explain

            return explain
        case "mutate":
            from dqx_airflow.cli.mutation import mutate

            return mutate
        case "shrink":
            from dqx_airflow.cli.shrinking import shrink

            return shrink
        case "doctor":
            from dqx_airflow.cli.doctor import doctor

            return doctor
        case "lsp":
            from dqx_airflow.cli.suites import lsp

            return lsp
        case "mcp":
            from dqx_airflow.cli.agents import mcp

            return mcp
        case "results":
            from dqx_airflow.cli.stores import app

            return app
        case "incidents":
            from dqx_airflow.cli.incidents import incidents

            return incidents
        case "accept":
            from dqx_airflow.cli.incidents import accept

            return accept
        case "waive":
            from dqx_airflow.cli.incidents import waive

            return waive
        case "waivers":
            from dqx_airflow.cli.incidents import waivers

            return waivers
        case "quarantine":
            from dqx_airflow.cli.quarantines import app

            return app
        case "alerts":
            from dqx_airflow.cli.labels import alerts

            return alerts
        case "label":
            from dqx_airflow.cli.labels import label

            return label
        case "backtest":
            from dqx_airflow.cli.backtest import backtest

            return backtest
        case "suggest":
            from dqx_airflow.cli.drafts import suggest

            return suggest
        case "tune":
            from dqx_airflow.cli.proposals import tune

            return tune
        case "review":
            from dqx_airflow.cli.proposals import review

            return review
        case "promote":
            from dqx_airflow.cli.proposals import promote

            return promote
        case "shadow":
            from dqx_airflow.cli.backtest import shadow

            return shadow
        case "history":
            from dqx_airflow.cli.proposals import history

            return history
        case "rollback":
            from dqx_airflow.cli.proposals import rollback

            return rollback
        case "adopt":
            from dqx_airflow.cli.stores import adopt

            return adopt
        case "verify":
            from dqx_airflow.cli.stores import verify

            return verify
        case "lineage":
            from dqx_airflow.cli.stores import lineage_app

            return lineage_app
        case "publish":
            from dqx_airflow.cli.publishing import publish

            return publish
        case "coverage":
            from dqx_airflow.cli.coverage import coverage

            return coverage
    raise KeyError(name)


app = typer.Typer(
    name="dql",
    cls=group_of(COMMANDS, command_of, CommandGroup),
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
