"""`dql contract test`: contracts against their data, the way of `dql run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dqx_airflow.cli.run.options import (
    AllowEmptyOption,
    ConfigOption,
    ConnectionOption,
    DatasetOption,
    DateOption,
    DimensionOption,
    ExcludeTagOption,
    FailOnOption,
    OnlyOption,
    OutputFileOption,
    OutputOption,
    RecomputeOption,
    RequireHistoryOption,
    ResultsOption,
    SeverityOption,
    SkipDateOption,
    TagOption,
    UnsupportedOption,
    WatchOption,
)


def against_data(
    paths: Annotated[list[Path], typer.Argument(help="Contracts.")],
    *,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE[?KEY=VALUE&...]",
            help="The data of a contract with one model: a path or table:NAME, as in --dataset.",
        ),
    ] = None,
    server: Annotated[
        str | None, typer.Option(help="The server of the contract whose data is read.")
    ] = None,
    expect_version: Annotated[
        str | None, typer.Option(help="The expected version: 2, 2.3 or 2.3.0.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Only this model of the contract.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail on columns that are not in the contract.")
    ] = False,
    connection: ConnectionOption = None,
    on: DateOption = None,
    dataset: DatasetOption = None,
    config: ConfigOption = None,
    output: OutputOption = None,
    output_file: OutputFileOption = None,
    results: ResultsOption = None,
    recompute: RecomputeOption = False,
    fail_on: FailOnOption = None,
    allow_empty: AllowEmptyOption = None,
    require_history: RequireHistoryOption = None,
    skip_date: SkipDateOption = None,
    unsupported: UnsupportedOption = None,
    only: OnlyOption = None,
    tag: TagOption = None,
    exclude_tag: ExcludeTagOption = None,
    severity: SeverityOption = None,
    dimension: DimensionOption = None,
    watch: WatchOption = False,
) -> None:
    """Test contracts against data, with one Spark session.

    Data that neither --data nor --dataset gives is looked up in the servers of the contract. Exit
    code 0 passed or warned, 1 blocked, 2 an error in a contract or on the command line, 3 broken, 4
    Spark or the results store failed; the worst one of several contracts.
    """
    from dqx_airflow.cli.run.command import run_call
    from dqx_airflow.cli.run.request_builder import Options
    from dqx_airflow.selection import selection_of

    options = Options(
        tuple(paths),
        connection,
        on,
        tuple(skip_date or ()),
        tuple(dataset or ()),
        config,
        output,
        results,
        recompute,
        fail_on,
        allow_empty,
        require_history,
        data,
        server,
        expect_version,
        tuple(model or ()),
        strict,
        unsupported,
        selection=selection_of(only, tag, exclude_tag, severity, dimension),
    )
    raise typer.Exit(run_call(options, output_file, watch=watch))
