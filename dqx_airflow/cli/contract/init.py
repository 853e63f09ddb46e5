"""`dql contract init`: a first contract, drafted from a table that is there."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

EXIT_WRONG, EXIT_INFRASTRUCTURE = 2, 4


class TableFormat(str, Enum):
    """How the table is written."""

    DELTA = "delta"
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


class DraftDialect(str, Enum):
    """The dialects in which drafts are written."""

    ODCS = "odcs"
    FABRIC = "fabric"
    DCS = "dcs"


def init(
    *,
    table: Annotated[
        str, typer.Option("--from", metavar="PATH", help="A file, a folder of files, or a table.")
    ],
    format: Annotated[
        TableFormat | None, typer.Option(help="How it is written, where its name does not tell.")
    ] = None,
    dialect: Annotated[
        DraftDialect, typer.Option(help="The dialect of the contract.")
    ] = DraftDialect.ODCS,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a new file, print by default.")
    ] = None,
) -> None:
    """Draft a contract from what a table holds: types, keys, NULL, ranges, few values, patterns.

    All rows are read, and all of them keep the draft. It is marked as a draft: what was there is
    not what is promised. Of columns that look like data about people, no value is written. Exit
    code 2 where the file is there already, 4 where the table cannot be read.
    """
    from dqx_airflow.cli.contract.observation import observe
    from dqx_airflow.contracts.drafting import draft_text
    from dqx_airflow.contracts.model import Dialect
    from dqx_airflow.errors import DatasetError

    if output is not None and output.exists():
        typer.echo(f"error: {output} is there already: name another file", err=True)
        raise typer.Exit(EXIT_WRONG)
    try:
        observed = observe(table, format.value if format is not None else None)
    except DatasetError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_INFRASTRUCTURE) from None
    text = draft_text(observed, Dialect(dialect.value))
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        typer.echo(f"error: cannot write {output}: {error.strerror}", err=True)
        raise typer.Exit(EXIT_WRONG) from None
    typer.echo(f"drafted {output}: test it by `dql contract test {output} --data {table}`")
