"""The common part of the verbs about published contracts: options, look-ups and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from dqx_airflow.contracts.versioning.publication_policy import PublishedVersion
    from dqx_airflow.errors import DqxError
    from dqx_airflow.registry.versions import Registry

EXIT_REFUSED, EXIT_WRONG, EXIT_INFRASTRUCTURE = 1, 2, 4

PLACE_VARIABLE = "DQX_CONTRACT_REGISTRY"
PLACE_HELP = "A folder, or a Delta table: its path, a URL, or delta:PATH for a new one."

PlaceOption = Annotated[
    str, typer.Option("--registry", metavar="LOCATION", envvar=PLACE_VARIABLE, help=PLACE_HELP)
]
DayOption = Annotated[
    datetime | None,
    typer.Option("--on", formats=["%Y-%m-%d"], help="The current day; default: today."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of a contract.")]


def registry_at(place: str) -> Registry:
    """The registry at a location; ends the command if it is invalid."""
    from dqx_airflow.errors import RegistryError
    from dqx_airflow.registry.places import registry_at as found_at

    try:
        return found_at(place)
    except RegistryError as error:
        wrong(error.problem, error.hint)


def versions_of(registry: Registry, contract_id: str) -> tuple[PublishedVersion, ...]:
    """The versions of a contract; ends the command if there are none."""
    from dqx_airflow.diagnostics.nearest import did_you_mean
    from dqx_airflow.errors import DqxError

    try:
        versions = registry.versions(contract_id)
        known = () if versions else registry.ids()
    except DqxError as error:
        fail(error)
    if not versions:
        wrong(f"no published version of {contract_id}", did_you_mean(contract_id, known))
    return versions


def day_of(on: datetime | None) -> date:
    return (on or datetime.now(timezone.utc)).date()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.text import Text

    from dqx_airflow.cli.reports import console_for, printable, table_of

    table = table_of(*columns)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console_for().print(table)


def wrong(problem: str, hint: str | None = None) -> NoReturn:
    """Ends the command: the call is invalid."""
    typer.echo(f"error: {problem}" + (f"\n  help: {hint}" if hint else ""), err=True)
    raise typer.Exit(EXIT_WRONG)


def fail(error: DqxError) -> NoReturn:
    """Ends the command: a service cannot be reached."""
    from dqx_airflow.cli.reports import printable

    typer.echo(f"error: {printable(str(error), keep=chr(10))}", err=True)
    raise typer.Exit(EXIT_INFRASTRUCTURE) from error
