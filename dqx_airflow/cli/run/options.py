"""The options of `dql run` and `dql contract test`, and those that other commands have, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dqx_airflow.datasets.dqx_toml import Output, Unsupported
from dqx_airflow.values import Severity
from dqx_airflow.values.request import SETTABLE_OPTIONS

if TYPE_CHECKING:
    from dqx_airflow.cli.run.call import Options


def shared_options(
    *,
    connection: ConnectionOption = None,
    on: Annotated[
        str | None,
        typer.Option(
            "--date",
            help="The date of the data: 2024-12-25, today or yesterday. FROM..TO runs all dates "
            "of a range in one scan.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    config: ConfigOption = None,
    output: Annotated[
        Output | None,
        typer.Option("--output", help="Output format: table, json, summary or junit."),
    ] = None,
    output_file: OutputFileOption = None,
    results: Annotated[
        str | None,
        typer.Option(
            "--results", help="Write report and states into this results store, as a gate does."
        ),
    ] = None,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Ignore stored states and compute everything.")
    ] = False,
    skip_date: Annotated[
        list[str] | None,
        typer.Option("--skip-date", help="A date without data, for lagged metrics."),
    ] = None,
    unsupported: Annotated[
        Unsupported | None,
        typer.Option(
            "--unsupported",
            help="How to treat a clause that cannot be enforced: error (exit 3) or warn.",
        ),
    ] = None,
    only: OnlyOption = None,
    tag: TagOption = None,
    exclude_tag: ExcludeTagOption = None,
    severity: SeverityOption = None,
    dimension: DimensionOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Run again when a source file or dqx.toml changes.")
    ] = False,
    **run_options: Any,
) -> Options:
    """The typed options; a command adds its paths and its own ones.

    :param run_options: those of `SETTABLE_OPTIONS`; None if one is not given.
    """
    from dqx_airflow.cli.run.call import Options
    from dqx_airflow.values.selection import selection_of

    return Options(
        (),
        connection=connection,
        date=on,
        skip_dates=tuple(skip_date or ()),
        datasets=tuple(dataset or ()),
        config=config,
        output=output,
        results=results,
        recompute=recompute,
        run_options={name: value for name, value in run_options.items() if value is not None},
        unsupported=unsupported,
        selection=selection_of(only, tag, exclude_tag, severity, dimension),
        output_file=output_file,
        watch=watch,
    )


def with_shared_options(
    command: Callable[..., None], without: Collection[str] = ()
) -> Callable[..., None]:
    """The command with these options besides its own, but for some; it gets them as `shared`."""
    own = _signature(command)
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "shared"]
    *common, _ = _signature(shared_options).parameters.values()
    common += map(_run_option, SETTABLE_OPTIONS.values())
    parameters += (parameter for parameter in common if parameter.name not in without)
    names = [parameter.name for parameter in common if parameter.name not in without]

    @wraps(command)
    def called(**given: Any) -> None:
        typed = {name: given.pop(name) for name in names}
        command(**given, shared=shared_options(**typed))

    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _run_option(option: Field[Any]) -> inspect.Parameter:
    """The parameter of a command for an option of runs."""
    kind, flag = type(option.default), option.name.replace("_", "-")
    typed = typer.Option(
        f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}",
        min=0 if kind is float else None,
        help=option.metadata["help"],
    )
    annotation = Annotated[kind | None, typed]  # type: ignore[valid-type]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, keyword, default=None, annotation=annotation)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, with its types as Typer needs them: `Options` is imported when a command
    runs."""
    names = {**function.__globals__, "Options": object}
    return inspect.signature(function, eval_str=True, globals=names)


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
