"""The options of `dql run` and `dql contract test`, those of the commands about past runs, and what
they stand for: a suite, a store, a period."""

from __future__ import annotations

import csv
import inspect
import io
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import Field
from datetime import date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from dqx_airflow.cli.command import (
    ROOT_VARIABLES,
    documented,
    signature_of,
    storage_options,
    with_parameters,
)
from dqx_airflow.datasets.dqx_toml import Output, Unsupported, find_settings, read_settings
from dqx_airflow.errors import DqxError, RequestError
from dqx_airflow.values import Severity
from dqx_airflow.values.request import SETTABLE_OPTIONS, days_before, selection_of

if TYPE_CHECKING:
    from dqx_airflow.cli.calls import Options
    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.results.past_days import PastDay
    from dqx_airflow.results.query import RunsWanted, StoredResults
    from dqx_airflow.tuning.suite_file import SuiteFile


def shared_options(
    *,
    connection: ConnectionOption = None,
    engine: Literal["sail"] | None = None,
    on: Annotated[str | None, typer.Option("--date")] = None,
    dataset: DatasetOption = None,
    config: ConfigOption = None,
    output: Output | None = None,
    output_file: OutputFileOption = None,
    results: str | None = None,
    recompute: bool = False,
    skip_date: list[str] | None = None,
    unsupported: Unsupported | None = None,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    tag: list[str] | None = None,
    exclude_tag: list[str] | None = None,
    severity: Severity | None = None,
    dimension: list[str] | None = None,
    watch: bool = False,
    **run_options: Any,
) -> Options:
    """The typed options; a command adds its paths and its own ones.

    :param run_options: those of `SETTABLE_OPTIONS`; None if one is not given.

    :param engine: sail: a Sail server in this process, without Java, instead of --connection.
    :param on: The date of the data: 2024-12-25, today or yesterday. FROM..TO runs all dates of a
        range in one scan.
    :param output: Output format: table, json, summary or junit.
    :param results: Write report and states into this results store, as a gate does.
    :param recompute: Ignore stored states and compute everything.
    :param skip_date: A date without data, for lagged metrics.
    :param unsupported: How to treat a clause that cannot be enforced: error (exit 3) or warn.
    :param only: Only assertions that match: a name, a check, CHECK::NAME, or the clause or rule id
        of a contract; * and ? are wildcards. Repeatable.
    :param tag: Only assertions with this tag. Repeatable: any of the tags is enough.
    :param exclude_tag: No assertions with this tag. Repeatable.
    :param severity: Only assertions of this severity or a worse one.
    :param dimension: Only assertions of this quality dimension, such as completeness. Repeatable.
    :param watch: Run again when a source file or dqx.toml changes.
    """
    from dqx_airflow.cli.calls import Options

    return Options(
        (),
        connection=engine or connection,
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
    own = signature_of(command)
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "shared"]
    *common, _ = signature_of(documented(shared_options)).parameters.values()
    common += map(_run_option, SETTABLE_OPTIONS.values())
    parameters += (parameter for parameter in common if parameter.name not in without)
    names = [parameter.name for parameter in common if parameter.name not in without]

    @wraps(command)
    def called(**given: Any) -> None:
        typed = {name: given.pop(name) for name in names}
        command(**given, shared=shared_options(**typed))

    return with_parameters(called, own.replace(parameters=parameters))


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


ConnectionOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--connection",
        envvar="DQX_CONNECTION",
        help="local[*], sail, spark://HOST:PORT, sc://HOST:PORT or databricks://HOST/CLUSTER.",
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


SuiteArgument: TypeAlias = Annotated[
    Path, typer.Argument(help="A suite file.", metavar="SUITE", show_default=False)
]
ResultsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--results",
        envvar=ROOT_VARIABLES,
        help="The root of the results store: a path or URI; default: as in dqx.toml.",
    ),
]
GateOption: TypeAlias = Annotated[
    str | None, typer.Option("--gate", help="The gate, if several run the suite.")
]
MapIndexOption: TypeAlias = Annotated[
    int | None, typer.Option("--map-index", min=0, help="Only this instance of a mapped gate.")
]
CheckOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--check", help="The check, if several have an assertion of this name."),
]
ReasonOption: TypeAlias = Annotated[str | None, typer.Option("--reason", help="Why.")]
SinceOption: TypeAlias = Annotated[
    datetime | None,
    typer.Option("--from", formats=["%Y-%m-%d"], help="The first day.", show_default=False),
]
UntilOption: TypeAlias = Annotated[
    datetime | None,
    typer.Option("--to", formats=["%Y-%m-%d"], help="The last day; default: today."),
]


def first_and_last(
    since: datetime | None, until: datetime | None, *, default: int
) -> tuple[date, date]:
    """The first and the last day of a range.

    :param default: its length in days if the first day is not given.
    :raises RequestError: it ends before it begins.
    """
    last = until.date() if until else date.today()
    first = since.date() if since else days_before(last, default - 1)
    if first > last:
        raise RequestError(f"--from {first} is after --to {last}", "swap the two dates")
    return first, last


def require_days(days: Sequence[PastDay], results: StoredResults, wanted: RunsWanted) -> None:
    """:raises RequestError: there are no days: a suite has no results in a period."""
    if days:
        return
    from dqx_airflow.results.past_days import newest_date

    newest = newest_date(results, wanted)
    raise RequestError(
        f"suite '{wanted.suite}' has no results from {wanted.since} to {wanted.until}",
        f"the newest are of {newest}: change --from or --to",
    )


def suite_file(path: Path) -> SuiteFile:
    from dqx_airflow.tuning.suite_file import SuiteFile

    return SuiteFile.at(path, os.environ)


def units_in(path: Path) -> dict[str, Unit]:
    """How a suite writes the values of its constants; empty if it cannot be read."""
    from dqx_airflow.tuning.tunables import units_of

    try:
        return units_of(suite_file(path).read().valid_suite)
    except DqxError:
        return {}


def suite_name(path: Path) -> str:
    """The name of the suite in a file, which identifies it in results. The rest of the suite is not
    checked.

    :raises SourceError: the file does not exist, or is no suite.
    """
    from dqx_airflow.dql.syntax.parser import parse
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source

    source = read_source(path.expanduser(), str(path))
    parsed = None if isinstance(source, Unreadable) else parse(source)
    if parsed is None or parsed.suite is None or parsed.diagnostics:
        return suite_file(path).read().valid_suite.name.value  # which says what is wrong
    return parsed.suite.name.value


def results_of(suite: Path, given: str | None) -> StoredResults:
    """The results below a root: as given, or else as in the nearest `dqx.toml`.

    :raises RequestError: it is not configured.
    """
    from dqx_airflow.results.query import StoredResults

    root = given or known_results_root(suite)
    if root:
        return StoredResults(root, storage_options())
    raise RequestError(
        "no results root given",
        "add --results PATH, set the variable DQX_RESULTS_ROOT, or write results under [defaults] "
        "in dqx.toml",
    )


def known_results_root(suite: Path) -> str | None:
    """The results root of the nearest `dqx.toml`; None if there is none."""
    settings_file = find_settings(suite.parent) or find_settings(Path())
    return read_settings(settings_file).results if settings_file else None


def csv_text(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table for spreadsheets."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
