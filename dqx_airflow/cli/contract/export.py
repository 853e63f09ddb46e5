"""`dql contract export`: a contract in the formats of other tools."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.output import print_or_write


class To(str, Enum):
    """The formats. The Great Expectations suite before version 1 has a separate name."""

    GREAT_EXPECTATIONS = "great-expectations"
    GREAT_EXPECTATIONS_0 = "great-expectations-0"
    ODCS = "odcs"
    JSON_SCHEMA = "json-schema"
    SPARK = "spark"
    HTML = "html"


def export(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A contract: a file, or REVISION:FILE in git.")
    ],
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
    from dqx_airflow.cli.contract.versions import model_of, read_versions
    from dqx_airflow.cli.reports import printable
    from dqx_airflow.contracts.export import FORMATS

    (contract,) = read_versions([file])
    target = FORMATS[to.value]
    if model is not None or target.is_of_one_model:
        contract = replace(contract, models=(model_of(contract, file, model),))
    exported = target.write(contract)
    print_or_write(exported.text, output)
    for loss in exported.losses:
        typer.echo(f"not exported: {printable(str(loss))}", err=True)
