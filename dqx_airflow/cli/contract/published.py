"""Published versions of a contract, and the consent that a version needs."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.errors import RegistryError, RequestError

if TYPE_CHECKING:
    from dqx_airflow.contracts.publishing import PublishedVersion
    from dqx_airflow.contracts.registry import Registry


def codeowners(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Contracts, with paths relative to the repository."),
    ],
    *,
    org: Annotated[
        str | None, typer.Option(help="The organisation of the teams: @ORG/team.")
    ] = None,
) -> None:
    """Print the CODEOWNERS lines that request a review by the owner and every consumer of each
    contract.
    """
    from dqx_airflow.cli.contract.versions import read_versions
    from dqx_airflow.contracts.publishing import codeowners_line

    for path, contract in zip(files, read_versions(files), strict=True):
        typer.echo(codeowners_line(path, contract, org))


def rfc(file: Annotated[str, typer.Argument(metavar="FILE", help="A contract.")]) -> None:
    """Print the draft of an RFC about a contract, for its consumers to comment on."""
    from dqx_airflow.cli.contract.versions import read_versions
    from dqx_airflow.contracts.publishing import rfc_draft

    (contract,) = read_versions((file,))
    typer.echo(rfc_draft(contract), nl=False)


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
    """The registry at a location.

    :raises RequestError: the location is invalid.
    """
    from dqx_airflow.contracts.registry import registry_at as found_at

    try:
        return found_at(place)
    except RegistryError as error:
        raise RequestError(error.problem, error.hint) from error


def versions_of(registry: Registry, contract_id: str) -> tuple[PublishedVersion, ...]:
    """The versions of a contract.

    :raises RequestError: there are none.
    """
    from dqx_airflow.diagnostics.diagnostic import did_you_mean

    versions = registry.versions(contract_id)
    if not versions:
        hint = did_you_mean(contract_id, registry.ids())
        raise RequestError(f"no published version of {contract_id}", hint or "")
    return versions


def day_of(on: datetime | None) -> date:
    return (on or datetime.now(timezone.utc)).date()
