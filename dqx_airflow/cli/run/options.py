"""The options of `dql run` that other commands have, too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dqx_airflow.values import Severity

ConnectionOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--connection",
        envvar="DQX_CONNECTION",
        help="local[*], spark://HOST:PORT, sc://HOST:PORT or databricks://HOST/CLUSTER.",
    ),
]
DatasetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar="NAME=LOCATION[?KEY=VALUE&...]",
        help="A dataset: a path or table:NAME, with format, date_column, filter, version, "
        "keys, masked, option.NAME.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", help="The dqx.toml to use; default: the nearest one above the file."),
]
OutputFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output-file", help="Write the output to this file instead of stdout."),
]
ShadowOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--shadow",
        metavar="SUITE",
        help="A second suite to compare with, judged in the same scan. It never changes the "
        "outcome.",
    ),
]
OnlyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="Only assertions that match: a name, a check, CHECK::NAME, or the clause or rule "
        "id of a contract; * and ? are wildcards. Repeatable.",
    ),
]
TagOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tag", help="Only assertions with this tag. Repeatable: any of the tags is enough."
    ),
]
ExcludeTagOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--exclude-tag", help="No assertions with this tag. Repeatable.")
]
SeverityOption: TypeAlias = Annotated[
    Severity | None,
    typer.Option("--severity", help="Only assertions of this severity or a worse one."),
]
DimensionOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dimension",
        help="Only assertions of this quality dimension, such as completeness. Repeatable.",
    ),
]
