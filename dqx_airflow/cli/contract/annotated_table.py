"""`dql contract annotate-table`: writes a contract into the properties of a Delta table."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.contract.versions import model_of, read_versions
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.values import ContractDescription

if TYPE_CHECKING:
    from dqx_airflow.engine.contract_properties import Published


def annotate_table(
    path: Annotated[Path, typer.Argument(metavar="CONTRACT")],
    *,
    table: str | None = None,
    sql: str | None = None,
    model: str | None = None,
    dry_run: bool = False,
) -> None:
    """Write id, version, owner and column descriptions into a Delta table.

    If OpenLineage is configured, an OpenLineage dataset event sends the same to catalogs. Values
    that the table already has are not written again. Exit code 2 if the contract has errors, 4 if
    the table cannot be written.

    :param path: The contract.
    :param table: The path of the Delta table to which the contract applies.
    :param sql: Print Spark SQL statements for this catalog table instead.
    :param model: The model, if the contract has several.
    :param dry_run: Show what would be written, and write nothing.
    """
    from dqx_airflow.contracts.export.schemas import description_of

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
    title = f"{contract.id} {contract.version or ''}".rstrip()
    text = filled(__package__, "annotated.txt", published=published, title=title, is_dry=is_dry)
    typer.echo(text, nl=False)
    for column in published.missing:
        typer.echo(f"warning: the table has no column {column}", err=True)


def _emit(contract: ContractDescription, table: str) -> None:
    from dqx_airflow.lineage.emitter import LineageEmitter
    from dqx_airflow.lineage.events import contract_event

    with LineageEmitter() as lineage:
        now = datetime.now(timezone.utc)
        location = str(Path(table).absolute()) if "://" not in table else table
        lineage.emit(contract_event(contract, location, now, lineage.namespace))
