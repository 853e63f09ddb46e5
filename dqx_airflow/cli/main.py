"""The `dql` application: it only names the verbs, each is imported when it is called."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

import dqx_airflow

VERBS = {
    "check": "dqx_airflow.cli.check:check",
    "fmt": "dqx_airflow.cli.fmt:fmt",
    "run": "dqx_airflow.cli.run.command:run",
    "demo": "dqx_airflow.cli.demo.command:demo",
    "explain": "dqx_airflow.cli.explain:explain",
    "doctor": "dqx_airflow.cli.doctor:doctor",
    "lsp": "dqx_airflow.cli.lsp:lsp",
    "results": "dqx_airflow.cli.results:app",
}
"""Where each verb is: a function, or a `typer.Typer` that has verbs of its own."""


class _Verbs(UserDict[str, Any]):
    """The commands by name; one is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        module, attribute = self.data[name].split(":")
        verb = getattr(import_module(module), attribute)
        alone = typer.Typer()
        if isinstance(verb, typer.Typer):
            alone.add_typer(verb, name=name)
        else:
            alone.command(name)(verb)
        return get_group(alone).commands[name]


class _Dql(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Verbs(VERBS)


app = typer.Typer(
    name="dql",
    cls=_Dql,
    help="Data quality gates: check and run suites, look at results, run the demo.",
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
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    pass
