"""`dql contract evolve`: the statements that migrate a Delta table to the next version."""

from __future__ import annotations

from typing import Annotated

import typer

EXIT_WRONG = 2


def evolve(
    old: Annotated[str, typer.Argument(help="The old version: a file, or REV:FILE.")],
    new: Annotated[str, typer.Argument(help="The new version.")],
    *,
    table: Annotated[str, typer.Option(help="The table in the catalog: `lakehouse.orders`.")],
    model: Annotated[
        str | None, typer.Option(help="The model, if the contract has several.")
    ] = None,
    versioned: Annotated[
        bool,
        typer.Option(
            "--versioned", help="Use one table per major version, with a view onto one of them."
        ),
    ] = False,
) -> None:
    """Print the Spark SQL statements that a change requires.

    Compatible changes are made at once. Breaking changes take three releases: the successor is
    added, it is filled while the old column is deprecated, and the major version drops the old
    column.
    """
    from dqx_airflow.cli.contract.versions import read_versions
    from dqx_airflow.contracts.diff import diff
    from dqx_airflow.contracts.evolve import evolution, versioned_evolution
    from dqx_airflow.diagnostics.nearest import did_you_mean

    before, after = read_versions((old, new))
    names = [item.name for item in after.models]
    wanted = [item for item in after.models if model in (None, item.name)]
    if len(wanted) != 1:
        problem = f"{new} has no model '{model}'" if model else f"{new} has {len(names)} models"
        typer.echo(
            f"error: {problem}\n  help: --model: {did_you_mean(model or '', names)}", err=True
        )
        raise typer.Exit(EXIT_WRONG)
    if not all(part.strip() for part in table.split(".")):
        typer.echo(f"error: '{table}' is not a table name\n  help: write schema.table", err=True)
        raise typer.Exit(EXIT_WRONG)
    changes = diff(before, after)
    plan = versioned_evolution if versioned else evolution
    typer.echo(plan(changes, wanted[0], table).as_sql(), nl=False)
