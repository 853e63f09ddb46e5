"""The `dql` application: its commands, each imported when it is called."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

import dqx_airflow
from dqx_airflow.cli.documented import HELP_OPTIONS, Command, Panels, group_of
from dqx_airflow.cli.exit_codes import CommandGroup
from dqx_airflow.engine.session.launch import collect_rarely, leave, open_closed_streams


def _init() -> Command:
    from dqx_airflow.cli.init import init

    return init


def _demo() -> Command:
    from dqx_airflow.cli.demo.demo import demo

    return demo


def _suggest() -> Command:
    from dqx_airflow.cli.suggest import suggest

    return suggest


def _import() -> Command:
    from dqx_airflow.cli.import_rules import import_rules

    return import_rules


def _doctor() -> Command:
    from dqx_airflow.cli.doctor import doctor

    return doctor


def _check() -> Command:
    from dqx_airflow.cli.suites import check

    return check


def _fmt() -> Command:
    from dqx_airflow.cli.suites import fmt

    return fmt


def _explain() -> Command:
    from dqx_airflow.cli.explain import explain

    return explain


def _diff() -> Command:
    from dqx_airflow.cli.diff import diff

    return diff


def _mutate() -> Command:
    from dqx_airflow.cli.mutation import mutate

    return mutate


def _run() -> Command:
    from dqx_airflow.cli.run import run

    return run


def _contract() -> Command:
    from dqx_airflow.cli.contract import app

    return app


def _incidents() -> Command:
    from dqx_airflow.cli.incidents import app

    return app


def _waivers() -> Command:
    from dqx_airflow.cli.waivers import app

    return app


def _quarantine() -> Command:
    from dqx_airflow.cli.quarantines import app

    return app


def _results() -> Command:
    from dqx_airflow.cli.results import app

    return app


def _shrink() -> Command:
    from dqx_airflow.cli.shrinking import shrink

    return shrink


def _tune() -> Command:
    from dqx_airflow.cli.tune import app

    return app


def _tables() -> Command:
    from dqx_airflow.cli.tables import app

    return app


def _lineage() -> Command:
    from dqx_airflow.cli.lineage import app

    return app


def _package() -> Command:
    from dqx_airflow.cli.package import package

    return package


def _lsp() -> Command:
    from dqx_airflow.cli.suites import lsp

    return lsp


def _mcp() -> Command:
    from dqx_airflow.cli.agents import mcp

    return mcp


PANELS: Panels = {
    "Start": {
        "init": _init,
        "demo": _demo,
        "suggest": _suggest,
        "import": _import,
        "doctor": _doctor,
    },
    "Write suites": {
        "check": _check,
        "fmt": _fmt,
        "explain": _explain,
        "diff": _diff,
        "mutate": _mutate,
    },
    "Run": {"run": _run},
    "Contracts": {"contract": _contract},
    "Night call": {
        "incidents": _incidents,
        "waivers": _waivers,
        "quarantine": _quarantine,
        "results": _results,
        "shrink": _shrink,
    },
    "Tune": {"tune": _tune},
    "Tables and tools": {
        "tables": _tables,
        "lineage": _lineage,
        "package": _package,
        "lsp": _lsp,
        "mcp": _mcp,
    },
}
"""The imports of the commands: the panels in the order of their use."""

STARTED_BY_PROGRAMS = frozenset({"lsp", "mcp"})
"""The commands that an editor or an agent starts."""

app = typer.Typer(
    name="dql",
    cls=group_of(PANELS, CommandGroup, hidden=STARTED_BY_PROGRAMS),
    help="Check, run and tune the gates that stop bad data between two tasks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": list(HELP_OPTIONS)},
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
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
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
