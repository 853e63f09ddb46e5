"""`dql suggest`: a suite drafted from data."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli import arguments, command
from dqx_airflow.cli.arguments import ConnectionOption
from dqx_airflow.datasets.reader_options import with_default_options
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_DAYS
from dqx_airflow.values import DatasetRef

if TYPE_CHECKING:
    from dqx_airflow.tuning.suggested import Seen

_TAKEN = ("format", "date_column", "date_format", "time_zone", "options", "masked")


def suggest(
    *,
    dataset: Annotated[list[str], typer.Option(metavar=arguments.DATASET_FORM)],
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS)] = 30,
    name: str | None = None,
    output: command.OutputOption = None,
    force: command.ForceOption = False,
    connection: ConnectionOption = None,
) -> None:
    """Draft a suite from the data, with the evidence of each assertion.

    Drafts keys, shares of NULL, ranges, sets, formats, volume and freshness. Reads all rows of the
    last days by date_column, or all rows without a date column, one column at a time. The data
    passes its own draft. Each assertion is @experimental and shows its evidence; limits are
    tunable. Values of columns that are masked, in dqx.toml too, or look personal are omitted. Files
    are read without Spark, catalog tables over --connection. Exit code 2 if the command line is
    wrong or the file exists, 4 if a dataset cannot be read.

    :param dataset: A dataset: a path or table:NAME, with format, date_column, time_zone. Without a
        NAME, it has the name of its file or table.
    :param days: The number of days to look at, up to the newest one.
    :param name: The name of the suite; default: the name of the dataset.
    """
    from dqx_airflow.tuning.suggested import suggested_suite

    file = command.writable(output, force=force)
    seen = [_seen(ref, days, connection) for ref in _refs(dataset)]
    text = suggested_suite(name or seen[0].name, seen, datetime.now(timezone.utc))
    command.print_or_write(text, file)
    if file is not None:
        datasets = " ".join(f"--dataset '{argument}'" for argument in dataset)
        typer.echo(f"drafted {file}: test it with `dql run {file} {datasets}{_on(seen)}`")


def _refs(texts: list[str]) -> list[DatasetRef]:
    from dqx_airflow.tuning.table_profile import name_of

    refs = arguments.datasets_of(texts, _TAKEN)
    return [replace(ref, name=name_of(ref)) for ref in refs]


def _seen(ref: DatasetRef, days: int, address: str | None) -> Seen:
    """The profile of a dataset on its last days, from which a suite is drafted."""
    from dqx_airflow.tuning.column_tables import ColumnTable, read_files
    from dqx_airflow.tuning.observed_days import profile_of_last_days

    settings = command.settings_here()
    ref = settings.with_masks(ref)
    path = ref.path
    if path is not None:

        def profile(table: ColumnTable) -> Seen:
            return profile_of_last_days(table, ref, path, days)

        options = with_default_options(ref, settings.reader).options
        return read_files(path, ref.format, profile, options)
    from dqx_airflow.cli.spark import columns_of, session_over

    if ref.conn_id is not None:
        raise RequestError(
            f"--dataset {ref.name} is a database table, for which no suite can be suggested",
            "give a path, or a table of the catalog with the same rows",
        )
    if ref.table is None:
        raise RequestError(f"--dataset {ref.name} is a query", "give a path or table:NAME")
    if ref.options:
        raise RequestError(f"--dataset {ref.name}: options of a table cannot be considered")
    reached = command.connection_in(settings, address)
    with session_over(reached, settings.session, "dql suggest") as spark:
        return profile_of_last_days(columns_of(spark, ref.table), ref, ref.table, days)


def _on(seen: list[Seen]) -> str:
    """The newest day that all datasets have, for the command line."""
    ends = [
        max(dataset.days.rows) for dataset in seen if dataset.days is not None and dataset.days.rows
    ]
    return f" --date {min(ends)}" if ends else ""
