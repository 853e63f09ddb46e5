"""`dql contract export`: a contract in the formats of other tools."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dqx_airflow.contracts.model import Contract

EXIT_WRONG = 2


class To(str, Enum):
    """The formats. The Great Expectations suite before version 1 has a separate name."""

    GREAT_EXPECTATIONS = "great-expectations"
    GREAT_EXPECTATIONS_0 = "great-expectations-0"
    ODCS = "odcs"
    JSON_SCHEMA = "json-schema"
    SPARK = "spark"
    HTML = "html"


def export(
    file: Annotated[str, typer.Argument(help="A contract: a file, or REVISION:FILE in git.")],
    *,
    to: Annotated[To, typer.Option(help="The format.")],
    model: Annotated[
        str | None, typer.Option(help="The model, if the contract has several.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a file instead of printing.")
    ] = None,
) -> None:
    """Write a contract for another tool.

    Standard error lists, clause by clause, what the format cannot express: an export checks less
    than the contract. Exit code 2 if the contract has errors.
    """
    from dqx_airflow.cli.contract.versions import read_versions
    from dqx_airflow.cli.reports import printable
    from dqx_airflow.contracts.export import FORMATS

    (contract,) = read_versions([file])
    target = FORMATS[to.value]
    if model is not None or target.is_of_one_model:
        contract = _of_model(contract, file, model)
    exported = target.write(contract)
    if output is None:
        typer.echo(exported.text, nl=False)
    else:
        try:
            output.write_text(exported.text, encoding="utf-8", newline="\n")
        except OSError as error:
            typer.echo(f"error: cannot write {output}: {error.strerror}", err=True)
            raise typer.Exit(EXIT_WRONG) from None
    for loss in exported.losses:
        typer.echo(f"not exported: {printable(str(loss))}", err=True)


def _of_model(contract: Contract, file: str, name: str | None) -> Contract:
    """The contract with only one model; ends the command if the model is ambiguous."""
    from dqx_airflow.diagnostics.nearest import did_you_mean

    names = [item.name for item in contract.models]
    models = [item for item in contract.models if name in (None, item.name)]
    if len(models) == 1:
        return replace(contract, models=tuple(models))
    problem = f"{file} has no model '{name}'" if name else f"{file} has {len(names)} models"
    hint = f"\n  help: --model: {did_you_mean(name or '', names)}" if names else ""
    typer.echo(f"error: {problem}{hint}", err=True)
    raise typer.Exit(EXIT_WRONG)
