"""`dql contract publish`: writes a contract into the table that it describes."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from dqx_airflow.engine.contract_properties import Published
    from dqx_airflow.values import ContractDescription


def publish(
    path: Annotated[Path, typer.Argument(metavar="CONTRACT", help="The contract.")],
    *,
    table: Annotated[
        str | None, typer.Option(help="The path of the Delta table to which the contract applies.")
    ] = None,
    sql: Annotated[
        str | None, typer.Option(help="Print Spark SQL statements for this catalog table instead.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model, if the contract has several.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
    ] = False,
) -> None:
    """Write id, version, owner and column descriptions into a Delta table.

    If OpenLineage is configured, an OpenLineage dataset event sends the same to catalogs. Values
    that the table already has are not written again. Exit code 2 if the contract has errors, 4 if
    the table cannot be written.
    """
    from dqx_airflow.cli.contract.versions import model_of, read_versions
    from dqx_airflow.contracts.export.spark import description_of

    if (table is None) == (sql is None):
        raise RequestError("give --table PATH, or --sql NAME")
    (contract,) = read_versions([str(path)])
    description = description_of(contract, model_of(contract, str(path), model))
    if sql is not None:
        from dqx_airflow.engine.contract_properties import statements

        typer.echo(";\n".join(statements(description, sql)) + ";")
        return
    assert table is not None
    from dqx_airflow.engine.contract_properties import publish as publish_in

    published = publish_in(description, table, is_dry=dry_run)
    _print_changes(published, description, is_dry=dry_run)
    if not dry_run:
        _emit(description, table)


def _print_changes(published: Published, contract: ContractDescription, *, is_dry: bool) -> None:
    would = "would set" if is_dry else "set"
    for key, value in published.properties.items():
        typer.echo(f"{would} {key} = {value}")
    if published.description is not None:
        typer.echo(f"{would} the description of the table")
    for column, comment in published.comments.items():
        typer.echo(f"{would} the comment of {column}: {comment}")
    for column in published.missing:
        typer.echo(f"warning: the table has no column {column}", err=True)
    title = f"{contract.id} {contract.version or ''}".rstrip()
    if not published.is_changed:
        typer.echo(f"the table is up to date: {title}")
    elif not is_dry:
        typer.echo(f"published {title} in version {published.version} of the table")


def _emit(contract: ContractDescription, table: str) -> None:
    from dqx_airflow.lineage.emitter import LineageEmitter
    from dqx_airflow.lineage.events import contract_event

    with LineageEmitter() as lineage:
        now = datetime.now(timezone.utc)
        location = str(Path(table).absolute()) if "://" not in table else table
        lineage.emit(contract_event(contract, location, now, lineage.namespace))
