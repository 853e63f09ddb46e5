"""`dql contract init`: a contract drafted from the data of a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.arguments import ONE_DATASET_FORM, ConnectionOption, datasets_of
from dqx_airflow.datasets.settings import argument_name, format_of
from dqx_airflow.errors import RequestError
from dqx_airflow.values import DatasetRef

_NAME_OF_THREE_PARTS = re.compile(r"(?:[\w-]+|`[^`]+`)(?:\.(?:[\w-]+|`[^`]+`)){2,}")


def draft_contract(
    *,
    dataset: Annotated[str, typer.Option(metavar=ONE_DATASET_FORM)],
    format: Annotated[Literal["odcs", "fabric", "dcs"], command.FORMAT] = "odcs",
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

    :param dataset: A file, a folder of files, a Delta table, or a catalog table:
        catalog.schema.table or table:NAME; with a name for the model.
    :param format: The format of the contract.
    """
    from dqx_airflow.contracts.drafting import draft_text
    from dqx_airflow.contracts.model import Dialect

    file = command.writable(output, force=force)
    settings = command.settings_here()
    ref = settings.with_masks(_ref(dataset))
    if ref.table is not None:
        from dqx_airflow.cli.spark import observe_table, session_over

        reached = command.connection_in(settings, connection)
        with session_over(reached, settings.session, "dql contract init") as spark:
            observed = observe_table(spark, ref.table, ref.masked, ref.name)
    else:
        from dqx_airflow.tuning.table_profile import profile_of_path

        observed = profile_of_path(ref, settings.reader)
    command.print_or_write(draft_text(observed, Dialect(format)), file)
    if file is not None:
        data = dataset if ref.table is None else f"table:{ref.table}"
        typer.echo(f"drafted {file}: test it with `dql contract test {file} --dataset {data}`")


def _ref(dataset: str) -> DatasetRef:
    """The dataset of the call: a path, or a catalog table."""
    name = argument_name(dataset)
    location = dataset[len(name) + 1 :] if name else dataset
    is_table = _NAME_OF_THREE_PARTS.fullmatch(location) and format_of(location) is None
    if is_table and not Path(location).exists():
        return DatasetRef(name, table=location)
    (ref,) = datasets_of([dataset], ("format",))
    if ref.query is not None:
        raise RequestError(f"--dataset {dataset} is a query", "give a path or table:NAME")
    return ref
