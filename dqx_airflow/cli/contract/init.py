"""`dql contract init`: a first contract, drafted from an existing table."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command_group import print_or_write, require_new
from dqx_airflow.cli.project import connection_in, settings_here
from dqx_airflow.cli.run.options import ConnectionOption
from dqx_airflow.datasets.settings import format_of
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from dqx_airflow.contracts.drafting import ObservedTable

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
        DataFormat | None, typer.Option(help="The format of files, if their names do not show it.")
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

    if output is not None:
        require_new(output)
    name = _table_name(table)
    if name is not None and format is not None:
        raise RequestError("--format only applies to files")
    if name is not None:
        observed = _observed_in_catalog(name, connection)
    else:
        from dqx_airflow.tuning.table_profile import observe

        observed = observe(table, format.value if format else None, settings_here().reader)
    print_or_write(draft_text(observed, Dialect(dialect.value)), output)
    if output is not None:
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

    settings = settings_here()
    return observe_over(connection_in(settings, address), settings.session, name)
