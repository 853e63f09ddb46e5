"""The options of `dql run` and `dql contract test`, listed once for both."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from dqx_airflow.cli.run.call import Options


def shared_options(
    *,
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
) -> Options:
    """The typed options; a command adds its paths and its own ones."""
    from dqx_airflow.cli.run.call import Options
    from dqx_airflow.selection import selection_of

    judged = {"fail_on": fail_on, "allow_empty": allow_empty, "require_history": require_history}
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
        run_options={name: value for name, value in judged.items() if value is not None},
        unsupported=unsupported,
        selection=selection_of(only, tag, exclude_tag, severity, dimension),
        output_file=output_file,
        watch=watch,
    )


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these options besides its own; it gets them as `shared`."""
    common, own = _signature(shared_options), _signature(command)
    parameters = [it for it in own.parameters.values() if it.name != "shared"]
    parameters += common.parameters.values()

    @wraps(command)
    def called(**given: Any) -> None:
        typed = {name: given.pop(name) for name in common.parameters}
        command(**given, shared=shared_options(**typed))

    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {it.name: it.annotation for it in parameters}
    return called


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, with its types as Typer needs them: `Options` is imported when a command
    runs."""
    names = {**function.__globals__, "Options": object}
    return inspect.signature(function, eval_str=True, globals=names)
