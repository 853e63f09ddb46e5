"""The `dql` application: it only names the verbs."""

from __future__ import annotations

from typing import Annotated

import typer

import dqx_airflow
from dqx_airflow.cli import check, doctor, explain, results
from dqx_airflow.cli.demo import command as demo

app = typer.Typer(
    name="dql",
    help="Data quality gates: check suites, look at results, run the demo.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("check")(check.check)
app.command("demo")(demo.demo)
app.command("explain")(explain.explain)
app.command("doctor")(doctor.doctor)
app.add_typer(results.app, name="results")


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
