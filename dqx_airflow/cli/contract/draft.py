"""`dql contract init`: a contract drafted from the data of a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.arguments import ConnectionOption, FileFormat
from dqx_airflow.datasets.settings import format_of
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef

_TABLE_MARK = "table:"

_NAME_OF_THREE_PARTS = re.compile(r"(?:[\w-]+|`[^`]+`)(?:\.(?:[\w-]+|`[^`]+`)){2,}")


def draft_contract(
    *,
    table: Annotated[str, typer.Option("--data", metavar="LOCATION")],
    format: Annotated[FileFormat | None, typer.Option("--data-format")] = None,
    dialect: Literal["odcs", "fabric", "dcs"] = "odcs",
    output: command.OutputOption = None,
    force: command.ForceOption = False,
    connection: ConnectionOption = None,
) -> None:
    """Draft a contract from the data of a table.

    Drafts types, keys, NULL, ranges, small sets of values and patterns.

    All rows are read, and all of them satisfy the draft. It is marked as a draft, because the
    current data is not a promise. For columns that dqx.toml masks, or that look like personal
    data, no value is written. Files are read without Spark, catalog tables over --connection. Exit
    code 2 if the file already exists or the command line is wrong, 4 if the table cannot be read.

    :param table: A file, a folder of files, a Delta table, or a catalog table: catalog.schema.table
        or table:NAME.
    :param format: The format of files, if their names do not show it.
    :param dialect: The dialect of the contract.
    """
    from dqx_airflow.contracts.drafting import draft_text
    from dqx_airflow.contracts.model import Dialect

    file = command.writable(output, force=force)
    name = _table_name(table)
    settings = command.settings_here()
    if name is not None and format is not None:
        raise RequestError("--data-format only applies to files")
    ref = DatasetRef("", table=name) if name is not None else DatasetRef("", path=table)
    masked = settings.with_masks(ref).masked
    if name is not None:
        from dqx_airflow.cli.spark import observe_table, session_over

        reached = command.connection_in(settings, connection)
        with session_over(reached, settings.session, "dql contract init") as spark:
            observed = observe_table(spark, name, masked)
    else:
        from dqx_airflow.tuning.table_profile import profile_of_path

        observed = profile_of_path(table, format, settings.reader, masked)
    command.print_or_write(draft_text(observed, Dialect(dialect)), file)
    if file is not None:
        data = table if name is None else f"{_TABLE_MARK}{name}"
        typer.echo(f"drafted {file}: test it with `dql contract test {file} --data {data}`")


def _table_name(place: str) -> str | None:
    """The catalog table at a location; None for a path."""
    if place.startswith(_TABLE_MARK):
        return place.removeprefix(_TABLE_MARK) or None
    is_name = _NAME_OF_THREE_PARTS.fullmatch(place) and format_of(place) is None
    return place if is_name and not Path(place).exists() else None
