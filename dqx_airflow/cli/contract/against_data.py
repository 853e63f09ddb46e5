"""`dql contract test`: tests contracts against their data, like `dql run`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.run.options import with_shared_options

if TYPE_CHECKING:
    from dqx_airflow.cli.run.call import Options


@with_shared_options
def against_data(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Contracts.")],
    *,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="LOCATION[?KEY=VALUE&...]",
            help="The data of a contract with one model: a path or table:NAME, as in --dataset.",
        ),
    ] = None,
    server: Annotated[
        str | None, typer.Option(help="The server of the contract to read the data from.")
    ] = None,
    expect_version: Annotated[
        str | None, typer.Option(help="The expected version: 2, 2.3 or 2.3.0.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Only this model of the contract.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on columns that are not in the contract.")
    ] = False,
    shared: Options,
) -> None:
    """Test contracts against data, with one Spark session.

    Data that neither --data nor --dataset gives is looked up in the servers of the contract. Exit
    code 0 passed or warned, 1 blocked, 2 an error in a contract or on the command line, 3 broken, 4
    Spark or the results store failed; the worst one of several contracts.
    """
    from dqx_airflow.cli.run.command import run_call

    options = replace(
        shared,
        paths=tuple(paths),
        data=data,
        server=server,
        expect_version=expect_version,
        models=tuple(model or ()),
        is_strict=strict,
    )
    raise typer.Exit(run_call(options))
