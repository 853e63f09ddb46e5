"""`dql contract codeowners` and `dql contract rfc`: requests for consumers' consent."""

from __future__ import annotations

from typing import Annotated

import typer


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
