"""`dql contract evolve`: the statements that migrate a Delta table to the next version."""

from __future__ import annotations

from typing import Annotated

import typer

from dqx_airflow.errors import RequestError


def evolve(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help="The old version: a file, or REV:FILE.")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new version.")],
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
    from dqx_airflow.cli.contract.versions import model_of, read_versions
    from dqx_airflow.contracts.diff import diff
    from dqx_airflow.contracts.evolve import evolution, versioned_evolution

    before, after = read_versions((old, new))
    chosen = model_of(after, new, model)
    if not all(part.strip() for part in table.split(".")):
        raise RequestError(f"'{table}' is not a table name", "write schema.table")
    plan = versioned_evolution if versioned else evolution
    typer.echo(plan(diff(before, after), chosen, table).as_sql(), nl=False)
