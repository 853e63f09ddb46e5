"""The common part of the tuning commands: the suite and the results."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dqx_airflow.cli.project import ROOT_VARIABLES, storage_options
from dqx_airflow.errors import DqxError, RequestError

if TYPE_CHECKING:
    from dqx_airflow.dql.nodes import Unit
    from dqx_airflow.results.past import PastDay
    from dqx_airflow.results.query import RunsWanted, StoredResults
    from dqx_airflow.tuning.suite_file import SuiteFile

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
    first = since.date() if since else last - timedelta(days=default - 1)
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
    from dqx_airflow.datasets.dqx_toml import find_settings, read_settings

    settings_file = find_settings(suite.parent) or find_settings(Path())
    return read_settings(settings_file).results if settings_file else None


def csv_text(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table for spreadsheets."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
