"""The options that `dql run` and `dql contract test` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dqx_airflow.config.settings import Output
from dqx_airflow.values import Severity

ConnectionOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--connection",
        envvar="DQX_CONNECTION",
        help="local[*], spark://HOST:PORT, sc://HOST:PORT or databricks://HOST/CLUSTER.",
    ),
]
DateOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--date", help="The date of the data: 2024-12-25, today or yesterday."),
]
DatasetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar="NAME=PLACE[?KEY=VALUE&...]",
        help="A dataset: a path, or table:NAME, with format, date_column, filter, version, "
        "keys, masked, option.NAME.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="A dqx.toml; default: the nearest to the file.")
]
OutputOption: TypeAlias = Annotated[
    Output | None,
    typer.Option("--output", help="For people, for scripts, counts only, for CI."),
]
OutputFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output-file", help="Write the output there instead of to stdout."),
]
ResultsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--results", help="Write report and states into this results store, as a gate does."
    ),
]
RecomputeOption: TypeAlias = Annotated[
    bool, typer.Option("--recompute", help="Compute all, whatever states are stored.")
]
FailOnOption: TypeAlias = Annotated[
    Severity | None, typer.Option("--fail-on", help="The mildest severity that blocks.")
]
AllowEmptyOption: TypeAlias = Annotated[
    bool | None,
    typer.Option("--allow-empty/--no-allow-empty", help="Whether a dataset may have no rows."),
]
RequireHistoryOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--require-history/--no-require-history",
        help="Whether an assertion that lacks data of other dates breaks the run (exit 3).",
    ),
]
SkipDateOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--skip-date", help="A date without data, for lagged metrics."),
]
WatchOption: TypeAlias = Annotated[
    bool,
    typer.Option("--watch", help="Run again when a file that was read, or dqx.toml, changes."),
]
