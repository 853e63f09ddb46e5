"""The options shared by `dql run` and `dql contract test`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dqx_airflow.config.settings import Output, Unsupported
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
    typer.Option(
        "--date",
        help="The date of the data: 2024-12-25, today or yesterday. FROM..TO runs all dates "
        "of a range in one scan.",
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
OutputOption: TypeAlias = Annotated[
    Output | None,
    typer.Option("--output", help="Output format: table, json, summary or junit."),
]
OutputFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output-file", help="Write the output to this file instead of stdout."),
]
ResultsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--results", help="Write report and states into this results store, as a gate does."
    ),
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
RecomputeOption: TypeAlias = Annotated[
    bool, typer.Option("--recompute", help="Ignore stored states and compute everything.")
]
FailOnOption: TypeAlias = Annotated[
    Severity | None, typer.Option("--fail-on", help="The lowest severity that blocks.")
]
AllowEmptyOption: TypeAlias = Annotated[
    bool | None,
    typer.Option("--allow-empty/--no-allow-empty", help="Whether an empty dataset passes."),
]
RequireHistoryOption: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--require-history/--no-require-history",
        help="Whether missing data of other dates makes the run broken (exit 3).",
    ),
]
UnsupportedOption: TypeAlias = Annotated[
    Unsupported | None,
    typer.Option(
        "--unsupported",
        help="How to treat a clause that cannot be enforced: error (exit 3) or warn.",
    ),
]
SkipDateOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--skip-date", help="A date without data, for lagged metrics."),
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
    list[str] | None,
    typer.Option("--exclude-tag", help="No assertions with this tag. Repeatable."),
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
WatchOption: TypeAlias = Annotated[
    bool,
    typer.Option("--watch", help="Run again when a source file or dqx.toml changes."),
]
