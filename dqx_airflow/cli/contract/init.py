"""`dql contract init`: a first contract, drafted from an existing table."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dqx_airflow.cli.run.options import ConnectionOption
from dqx_airflow.datasets.settings import format_of

if TYPE_CHECKING:
    from dqx_airflow.config.settings import Settings
    from dqx_airflow.contracts.drafting import ObservedTable

EXIT_WRONG, EXIT_INFRASTRUCTURE = 2, 4

_TABLE_MARK = "table:"
_NAME_OF_THREE_PARTS = re.compile(r"(?:[\w-]+|`[^`]+`)(?:\.(?:[\w-]+|`[^`]+`)){2,}")


class DataFormat(str, Enum):
    """The file format of the table."""

    DELTA = "delta"
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


class DraftDialect(str, Enum):
    """The dialects of drafts."""

    ODCS = "odcs"
    FABRIC = "fabric"
    DCS = "dcs"


def init(
    *,
    table: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="LOCATION",
            help="A file, a folder of files, a Delta table, or a catalog table: "
            "catalog.schema.table or table:NAME.",
        ),
    ],
    format: Annotated[
        DataFormat | None,
        typer.Option(help="The format of files, if their names do not show it."),
    ] = None,
    dialect: Annotated[
        DraftDialect, typer.Option(help="The dialect of the contract.")
    ] = DraftDialect.ODCS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the contract to a new file; default: print it."),
    ] = None,
    connection: ConnectionOption = None,
) -> None:
    """Draft a contract from the data of a table: types, keys, NULL, ranges, small value sets,
    patterns.

    All rows are read, and all of them satisfy the draft. It is marked as a draft, because the
    current data is not a promise. For columns that look like personal data, no value is written.
    Files are read without Spark, catalog tables over --connection. Exit code 2 if the file already
    exists or the command line is wrong, 4 if the table cannot be read.
    """
    from dqx_airflow.contracts.drafting import draft_text
    from dqx_airflow.contracts.model import Dialect
    from dqx_airflow.errors import DqxError

    if output is not None and output.exists():
        _wrong(f"{output} already exists: choose another file")
    name = _table_name(table)
    if name is not None and format is not None:
        _wrong("--format only applies to files")
    try:
        if name is not None:
            observed = _observed_in_catalog(name, connection)
        else:
            from dqx_airflow.cli.contract.observation import observe

            written = format.value if format is not None else None
            observed = observe(table, written, _settings().reader)
    except DqxError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(EXIT_INFRASTRUCTURE) from None
    text = draft_text(observed, Dialect(dialect.value))
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        _wrong(f"cannot write {output}: {error.strerror}")
    data = table if name is None else f"{_TABLE_MARK}{name}"
    typer.echo(f"drafted {output}: test it with `dql contract test {output} --data {data}`")


def _table_name(place: str) -> str | None:
    """The catalog table at a location; None for a path."""
    if place.startswith(_TABLE_MARK):
        return place.removeprefix(_TABLE_MARK) or None
    is_name = _NAME_OF_THREE_PARTS.fullmatch(place) and format_of(place) is None
    return place if is_name and not Path(place).exists() else None


def _observed_in_catalog(name: str, address: str | None) -> ObservedTable:
    """The table as Spark reads it, over the given connection, or that of the `dqx.toml`."""
    from dqx_airflow.cli.contract.catalog_table import observe_over
    from dqx_airflow.config.connection import connection_of
    from dqx_airflow.errors import RequestError

    settings = _settings()
    try:
        connection = connection_of(address) if address is not None else settings.connection
    except RequestError as error:
        _wrong(f"--connection: {error}")
    return observe_over(connection, settings.session, name)


def _settings() -> Settings:
    """The settings in the `dqx.toml` of this folder."""
    from dqx_airflow.config.settings import Settings
    from dqx_airflow.config.settings_file import find_settings, read_settings

    path = find_settings(Path())
    settings = read_settings(path) if path is not None else Settings()
    if settings.problems:
        first = settings.problems[0]
        _wrong(f"{path}:{first.span.line}: {first.message}")
    return settings


def _wrong(problem: str) -> NoReturn:
    typer.echo(f"error: {problem}", err=True)
    raise typer.Exit(EXIT_WRONG)
