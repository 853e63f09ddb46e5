"""The `dql` application: its commands, each imported when it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, NoReturn

import typer

import dqx_airflow
from dqx_airflow.cli.documented import Command, group_of
from dqx_airflow.cli.exit_codes import CommandGroup
from dqx_airflow.engine.session.launch import collect_rarely, leave, open_closed_streams


def _init() -> Command:
    from dqx_airflow.cli.init import init

    return init


def _check() -> Command:
    from dqx_airflow.cli.suites import check

    return check


def _diff() -> Command:
    from dqx_airflow.cli.diff import diff

    return diff


def _fmt() -> Command:
    from dqx_airflow.cli.suites import fmt

    return fmt


def _run() -> Command:
    from dqx_airflow.cli.run import run

    return run


def _import() -> Command:
    from dqx_airflow.cli.import_rules import import_rules

    return import_rules


def _demo() -> Command:
    from dqx_airflow.cli.demo import demo

    return demo


def _contract() -> Command:
    from dqx_airflow.cli.contract import app

    return app


def _package() -> Command:
    from dqx_airflow.cli.package import package

    return package


def _explain() -> Command:
    from dqx_airflow.cli.explain import explain

    return explain


def _mutate() -> Command:
    from dqx_airflow.cli.mutation import mutate

    return mutate


def _shrink() -> Command:
    from dqx_airflow.cli.shrinking import shrink

    return shrink


def _doctor() -> Command:
    from dqx_airflow.cli.doctor import doctor

    return doctor


def _lsp() -> Command:
    from dqx_airflow.cli.suites import lsp

    return lsp


def _mcp() -> Command:
    from dqx_airflow.cli.agents import mcp

    return mcp


def _results() -> Command:
    from dqx_airflow.cli.results import app

    return app


def _incidents() -> Command:
    from dqx_airflow.cli.incidents import incidents

    return incidents


def _accept() -> Command:
    from dqx_airflow.cli.incidents import accept

    return accept


def _waive() -> Command:
    from dqx_airflow.cli.incidents import waive

    return waive


def _waivers() -> Command:
    from dqx_airflow.cli.incidents import waivers

    return waivers


def _quarantine() -> Command:
    from dqx_airflow.cli.quarantines import app

    return app


def _alerts() -> Command:
    from dqx_airflow.cli.labels import alerts

    return alerts


def _label() -> Command:
    from dqx_airflow.cli.labels import label

    return label


def _backtest() -> Command:
    from dqx_airflow.cli.backtest import backtest

    return backtest


def _suggest() -> Command:
    from dqx_airflow.cli.suggest import suggest

    return suggest


def _tune() -> Command:
    from dqx_airflow.cli.tune import tune

    return tune


def _review() -> Command:
    from dqx_airflow.cli.review import review

    return review


def _promote() -> Command:
    from dqx_airflow.cli.shadow import promote

    return promote


def _shadow() -> Command:
    from dqx_airflow.cli.shadow import shadow

    return shadow


def _history() -> Command:
    from dqx_airflow.cli.history import history

    return history


def _rollback() -> Command:
    from dqx_airflow.cli.rollback import rollback

    return rollback


def _adopt() -> Command:
    from dqx_airflow.cli.promoted_tables import adopt

    return adopt


def _verify() -> Command:
    from dqx_airflow.cli.promoted_tables import verify

    return verify


def _lineage() -> Command:
    from dqx_airflow.cli.lineage import lineage_app

    return lineage_app


def _publish() -> Command:
    from dqx_airflow.cli.publishing import publish

    return publish


def _coverage() -> Command:
    from dqx_airflow.cli.coverage import coverage

    return coverage


COMMANDS: Mapping[str, Callable[[], Command]] = {
    "init": _init,
    "check": _check,
    "diff": _diff,
    "fmt": _fmt,
    "run": _run,
    "import": _import,
    "demo": _demo,
    "contract": _contract,
    "package": _package,
    "explain": _explain,
    "mutate": _mutate,
    "shrink": _shrink,
    "doctor": _doctor,
    "lsp": _lsp,
    "mcp": _mcp,
    "results": _results,
    "incidents": _incidents,
    "accept": _accept,
    "waive": _waive,
    "waivers": _waivers,
    "quarantine": _quarantine,
    "alerts": _alerts,
    "label": _label,
    "backtest": _backtest,
    "suggest": _suggest,
    "tune": _tune,
    "review": _review,
    "promote": _promote,
    "shadow": _shadow,
    "history": _history,
    "rollback": _rollback,
    "adopt": _adopt,
    "verify": _verify,
    "lineage": _lineage,
    "publish": _publish,
    "coverage": _coverage,
}
"""The imports of the commands, in the order of the help."""

app = typer.Typer(
    name="dql",
    cls=group_of(COMMANDS, CommandGroup),
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
