"""The `dql` application: only names the verbs, each of which is imported when it is called."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

import dqx_airflow
from dqx_airflow.cli.command import CommandGroup, group_of
from dqx_airflow.engine.session.launch import collect_rarely, leave, open_closed_streams

VERBS = {
    "init": "dqx_airflow.cli.drafts:init",
    "check": "dqx_airflow.cli.suites:check",
    "diff": "dqx_airflow.cli.diff:diff",
    "fmt": "dqx_airflow.cli.suites:fmt",
    "run": "dqx_airflow.cli.run:run",
    "import": "dqx_airflow.cli.drafts:import_rules",
    "demo": "dqx_airflow.cli.demo:demo",
    "contract": "dqx_airflow.cli.contract:app",
    "package": "dqx_airflow.cli.package:package",
    "explain": "dqx_airflow.cli.explain:explain",
    "mutate": "dqx_airflow.cli.mutation:mutate",
    "shrink": "dqx_airflow.cli.shrinking:shrink",
    "doctor": "dqx_airflow.cli.doctor:doctor",
    "lsp": "dqx_airflow.cli.suites:lsp",
    "mcp": "dqx_airflow.cli.agents:mcp",
    "results": "dqx_airflow.cli.stores:app",
    "incidents": "dqx_airflow.cli.incidents:incidents",
    "accept": "dqx_airflow.cli.incidents:accept",
    "waive": "dqx_airflow.cli.incidents:waive",
    "waivers": "dqx_airflow.cli.incidents:waivers",
    "quarantine": "dqx_airflow.cli.quarantines:app",
    "alerts": "dqx_airflow.cli.labels:alerts",
    "label": "dqx_airflow.cli.labels:label",
    "backtest": "dqx_airflow.cli.backtest:backtest",
    "suggest": "dqx_airflow.cli.drafts:suggest",
    "tune": "dqx_airflow.cli.proposals:tune",
    "review": "dqx_airflow.cli.proposals:review",
    "promote": "dqx_airflow.cli.proposals:promote",
    "shadow": "dqx_airflow.cli.backtest:shadow",
    "history": "dqx_airflow.cli.proposals:history",
    "rollback": "dqx_airflow.cli.proposals:rollback",
    "adopt": "dqx_airflow.cli.stores:adopt",
    "verify": "dqx_airflow.cli.stores:verify",
    "lineage": "dqx_airflow.cli.stores:lineage_app",
    "publish": "dqx_airflow.cli.publishing:publish",
    "coverage": "dqx_airflow.cli.coverage:coverage",
}
"""The location of each verb: a function, or a `typer.Typer` with verbs of its own."""

app = typer.Typer(
    name="dql",
    cls=group_of(VERBS, CommandGroup),
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
