"""The options of `dql run`, of `dql contract test` and of commands about past runs, and their
values: a suite, a store, a period."""

from __future__ import annotations

import csv
import inspect
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from dqx_airflow.cli.command import (
    FORMAT,
    ForceOption,
    OutputOption,
    QuietOption,
    VerboseOption,
    finite,
)
from dqx_airflow.cli.documented import parameters_of, with_parameters
from dqx_airflow.cli.stores import ResultsRootOption
from dqx_airflow.datasets.dqx_toml import RunFormat, Unsupported
from dqx_airflow.diagnostics.renderers import drawn_error
from dqx_airflow.errors import DqxError, RequestError
from dqx_airflow.limits import LARGEST_MAP_INDEX, MOST_CLOCK_SKEW_HOURS
from dqx_airflow.values import DatasetRef, Selection, Severity
from dqx_airflow.values.request import SETTABLE_OPTIONS, selection_of

if TYPE_CHECKING:
    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.results.past_days import PastDay
    from dqx_airflow.results.query import RunsWanted, StoredResults
    from dqx_airflow.tuning.suite_file import SuiteFile


ConnectionOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--connection",
        envvar="DQX_CONNECTION",
        help="local[*], sail, spark://HOST:PORT, sc://HOST:PORT or databricks://HOST/CLUSTER.",
    ),
]
DATASET_FORM = "[NAME=]LOCATION[?KEY=VALUE&...]"
"""How a dataset is written in the help."""
ONE_DATASET_FORM = "[NAME=]LOCATION[?format=FORMAT]"
DatasetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        metavar=DATASET_FORM,
        help="A dataset: a path or table:NAME, with format, date_column, filter, version, "
        "keys, masked, option.NAME. One dataset alone needs no NAME.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", help="The dqx.toml to use; default: the nearest one above the file."),
]


def datasets_of(texts: Sequence[str], taken: Sequence[str]) -> list[DatasetRef]:
    """The datasets of a command that reads them without a suite.

    The format of files is taken from their names or their log, if it is not given.

    :param taken: the settings that the command considers, besides the location.
    :raises RequestError: one has a mistake, or another setting.
    """
    from dqx_airflow.datasets.settings import datasets_of_arguments, settings_of
    from dqx_airflow.tuning.column_tables import format_of

    refs, problems = datasets_of_arguments(texts)
    if problems:
        raise drawn_error(problems, {"--dataset": "\n".join(texts)})
    for ref in refs.values():
        plain = settings_of(DatasetRef(ref.name))
        others = {key for key, value in settings_of(ref).items() if value != plain[key]}
        not_taken = sorted(others - {"path", "table", *taken})
        if not_taken:
            problem = f"{', '.join(not_taken)} cannot be considered"
            raise RequestError(
                f"--dataset {ref.name or ref.location}: {problem}",
                f"this command takes {', '.join(taken)}",
            )
    return [
        ref
        if ref.path is None or _GIVEN_FORMAT.search(text)
        else replace(ref, format=format_of(ref.path))
        for ref, text in zip(refs.values(), texts, strict=True)
    ]


_GIVEN_FORMAT = re.compile(r"[?&]format=")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOptions:
    """The options of `dql run` and `dql contract test` that are not in `RunOptions`, as they are
    typed; None if one is not given.

    :param engine: sail: a Sail server in this process, without Java, instead of --connection.
    :param date: The date of the data: 2024-12-25, today, yesterday or -3d. FROM..TO runs all dates
        of a range in one scan.
    :param format: Output format: text, json (one report a line), summary, junit, github or sarif.
    :param results_root: Write report and states into the results store at this root, as a gate
        does; default: results_root in dqx.toml, then Airflow's setting.
    :param recompute: Ignore stored states and compute everything.
    :param skip_date: A date without data, for lagged metrics.
    :param unsupported: How to treat a clause that cannot be enforced: error (exit 3) or warn.
    :param only: Only assertions that match: a name, a check, CHECK::NAME, or the clause or rule id
        of a contract; * and ? are wildcards. Repeatable.
    :param tag: Only assertions with this tag. Repeatable: any of the tags is enough.
    :param exclude_tag: No assertions with this tag. Repeatable.
    :param min_severity: Only assertions of this severity or a worse one.
    :param dimension: Only assertions of this quality dimension, such as completeness. Repeatable.
    :param watch: Run again when a source file or dqx.toml changes.
    :param quiet: Print only the outcome of each suite and date.
    :param verbose: Print all stored failing rows, and the assertions of the dates that passed.
    """

    connection: ConnectionOption = None
    engine: Literal["sail"] | None = None
    date: str | None = None
    datasets: DatasetOption = None
    config: ConfigOption = None
    format: Annotated[RunFormat | None, FORMAT] = None
    output: OutputOption = None
    force: ForceOption = False
    results_root: ResultsRootOption = None
    recompute: bool = False
    skip_date: list[str] | None = None
    unsupported: Unsupported | None = None
    only: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    tag: list[str] | None = None
    exclude_tag: list[str] | None = None
    min_severity: Severity | None = None
    dimension: list[str] | None = None
    watch: bool = False
    quiet: QuietOption = False
    verbose: VerboseOption = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(SharedOptions):
    """The typed options of a call. `run_options` are the ones in `RunOptions`, by name. `server` to
    `is_strict` are for contracts only, `shadow` for a single suite."""

    paths: tuple[Path, ...] = field(kw_only=False)
    run_options: Mapping[str, Any] = field(default_factory=dict)
    server: str | None = None
    expect_version: str | None = None
    models: tuple[str, ...] = ()
    is_strict: bool = False
    shadow: Path | None = None

    @property
    def is_given(self) -> bool:
        """True if there is more than a path."""
        return replace(self, paths=()) != Options(())

    @property
    def selection(self) -> Selection | None:
        """:raises RequestError: it is invalid."""
        words = self.only, self.tag, self.exclude_tag
        return selection_of(*words, self.min_severity, self.dimension)


def with_shared_options(
    command: Callable[..., None], without: Collection[str] = ()
) -> Callable[..., None]:
    """The command with these options besides its own, but for some; it gets them as `shared`."""
    own = inspect.signature(command, eval_str=True)
    parameters = [parameter for parameter in own.parameters.values() if parameter.name != "shared"]
    common = {each.name: each for each in (*parameters_of(SharedOptions), *_run_options())}
    for name in without:
        del common[name]

    @wraps(command)
    def called(**given: Any) -> None:
        typed = {name: given.pop(name) for name in common}
        runs = {name: typed.pop(name) for name in SETTABLE_OPTIONS if name in typed}
        runs = {name: value for name, value in runs.items() if value is not None}
        command(**given, shared=Options((), run_options=runs, **typed))

    return with_parameters(called, own.replace(parameters=[*parameters, *common.values()]))


def _run_options() -> Iterator[inspect.Parameter]:
    """The parameters of a command for the options of runs."""
    for option in SETTABLE_OPTIONS.values():
        kind = type(option.default)
        flag = option.name.replace("_", "-")
        typed = typer.Option(
            f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}",
            min=0 if kind is float else None,
            max=MOST_CLOCK_SKEW_HOURS if kind is float else None,
            callback=finite if kind is float else None,
            help=option.metadata["help"],
        )
        annotation = Annotated[kind | None, typed]  # type: ignore[valid-type]
        keyword = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(option.name, keyword, default=None, annotation=annotation)


SuiteArgument: TypeAlias = Annotated[
    Path, typer.Argument(help="A suite file.", metavar="SUITE", show_default=False)
]
GateOption: TypeAlias = Annotated[
    str | None, typer.Option("--gate", help="The gate, if several run the suite.")
]
MapIndexOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--map-index", min=0, max=LARGEST_MAP_INDEX, help="Only this instance of a mapped gate."
    ),
]
CheckOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--in-check", help="The check, if several have an assertion of this name."),
]


def require_days(days: Sequence[PastDay], results: StoredResults, wanted: RunsWanted) -> None:
    """:raises RequestError: there are no days: a suite has no results in a period."""
    if days:
        return
    from dqx_airflow.results.past_runs import newest_date

    newest = newest_date(results, wanted)
    raise RequestError(
        f"suite '{wanted.suite}' has no results from {wanted.since} to {wanted.until}",
        f"the newest are of {newest}: change --from, --to or --days",
    )


def suite_file(path: Path) -> SuiteFile:
    from dqx_airflow.tuning.suite_file import SuiteFile

    return SuiteFile.at(path, os.environ)


def units_in(path: Path) -> dict[str, Unit]:
    """The units in which a suite writes its constants, by name; empty if it cannot be read."""
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
        return suite_file(path).read().valid_suite.name.value  # its error describes the mistake
    return parsed.suite.name.value


def csv_text(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table for spreadsheets."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
