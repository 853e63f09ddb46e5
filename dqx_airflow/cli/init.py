"""`dql init`: a first gate, with its DAG, its suite and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.arguments import ONE_DATASET_FORM, ConnectionOption, datasets_of
from dqx_airflow.cli.lineage.coverage import EventsOption
from dqx_airflow.datasets.dqx_toml import literal
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_CALLS_PER_MONTH, MOST_DAYS
from dqx_airflow.values import DatasetRef

if TYPE_CHECKING:
    from dqx_airflow.contracts.drafting import ObservedTable

_SAMPLE = "orders"
_SAMPLE_DAYS = 3
_SAMPLE_ROWS = 20


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")] = Path(),
    *,
    dataset: Annotated[list[str] | None, typer.Option(metavar=ONE_DATASET_FORM)] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="PATTERN")] = None,
    exclude: Annotated[list[str] | None, typer.Option(metavar="PATTERN")] = None,
    events: EventsOption = None,
    connection: ConnectionOption = None,
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS)] = 30,
    calls_per_month: Annotated[
        float | None, typer.Option(min=0, max=MOST_CALLS_PER_MONTH, callback=command.finite)
    ] = None,
    diff: bool = False,
    format: Annotated[Literal["text", "json", "html"], command.FORMAT] = "text",
) -> None:
    """Write a first gate, or a gate for each table of a lake.

    Without --dataset it also writes an example table of orders, with rows of the last three days.
    No file is overwritten. Exit code 2 if one exists, 4 if the table cannot be read.

    If --dataset is a folder of tables, or there are several, each table gets a suite: keys,
    required columns, sets of values, formats, references to other tables, and a watch for the rest.
    One DAG makes a gate of each. Nothing blocks until you decide so. A table that cannot be read is
    a row of the report. A later call adds new tables, and changes no file that you may have changed
    but for the end of dqx.toml.

    :param folder: The folder for the files, created if needed.
    :param dataset: The table to check: a file, a folder of files, or a Delta table, with a name for
        the suite. Default: a small example table of orders, which is created. For many tables: a
        folder of tables, table:CATALOG.SCHEMA.* of Spark's catalogs, iceberg:CATALOG.NAMESPACE.* of
        PyIceberg's, or @FILE with one of these in each line. Repeatable.
    :param only: Only tables whose path below the folder, or whose name, matches; * and ? are
        wildcards. Repeatable, or several separated by commas.
    :param exclude: No tables whose path or name matches. Repeatable, or several separated by
        commas.
    :param events: OpenLineage events of any producer, in files or folders or of a Marquez: the
        report begins with the tables that most jobs read. Without --dataset, their tables are
        drafted. Repeatable.
    :param days: The number of days to look at, up to the newest one, if there are many tables.
    :param calls_per_month: Also write blocking.sh, which lets those assertions block that would
        together call at most this often, as evaluated on past days. Run it yourself.
    :param diff: Print what would be written and write nothing; exit 1 if a file would change.
    :param format: Output format: text, json or html, a page of its own.
    """
    from dqx_airflow.cli.lake.sources import is_of_many

    locations = dataset or []
    if is_of_many(locations) or (events and not locations):
        from dqx_airflow.cli.lake.init_lake import LakeOptions, init_lake

        options = LakeOptions(
            locations=locations,
            only=only or (),
            exclude=exclude or (),
            events=events or (),
            connection=connection,
            days=days,
            calls_per_month=calls_per_month,
            is_dry=diff,
            format=format,
        )
        init_lake(folder, options)
        return
    of_many = {
        "--only": only,
        "--exclude": exclude,
        "--events": events,
        "--calls-per-month": calls_per_month is not None,
        "--diff": diff,
        f"--format {format}": format != "text",
    }
    _require_none_given(locations, of_many)
    _write_first_gate(folder, locations)


def _write_first_gate(folder: Path, locations: Sequence[str]) -> None:
    """Writes a suite, a DAG and the settings for one table, and says what to do next.

    :param locations: the dataset of the call; none for the example table, which is written too.
    :raises RequestError: a file exists, or cannot be written.
    """
    from dqx_airflow.contracts.drafting import draft_suite
    from dqx_airflow.tuning.table_profile import profile_of_path

    today = datetime.now(timezone.utc).date()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot create {folder}: {error.strerror}") from error
    wrote = []
    if locations:
        ref, path = _ref_and_path(locations)
    else:
        ref, path = _example(folder, today)
        wrote.append(path)
    observed = profile_of_path(ref)
    suite, dag, settings = _names(observed.name)
    _require_none(folder, [suite, dag, settings])
    command.write_text(folder / suite, draft_suite(observed))
    command.write_text(folder / dag, _dag(observed, path, today))
    has_java = _has_java()
    command.write_text(folder / settings, _toml(observed, path, has_java=has_java))
    wrote += [suite, dag, settings]
    next_steps = filled(
        __package__,
        "init_next.txt",
        wrote=wrote,
        folder=folder.resolve(),
        suite=suite,
        name=observed.name,
        has_java=has_java,
        has_sail=find_spec("pysail") is not None,
        day=observed.newest or today,
    )
    typer.echo(next_steps, nl=False)


def _example(folder: Path, today: date) -> tuple[DatasetRef, str]:
    """Writes the example table, and returns it with its path in the settings.

    :raises RequestError: one of the files of the gate exists.
    """
    sample = folder / f"{_SAMPLE}.csv"
    _require_none(folder, [sample.name, *_names(_SAMPLE)])
    command.write_text(sample, _sample(today))
    return DatasetRef(_SAMPLE, path=str(sample), format="csv"), sample.name


def _ref_and_path(locations: Sequence[str]) -> tuple[DatasetRef, str]:
    """The dataset of the call, and its path in the settings.

    :raises RequestError: it is not a path.
    """
    (ref,) = datasets_of(locations, ("format",))
    if ref.path is None:
        raise RequestError(f"--dataset {locations[0]} is not a path", "give a file or a folder")
    return ref, _absolute(ref.path)


def _has_java() -> bool:
    """True if there is a Java that can run Spark. Without one, the settings choose Sail."""
    from dqx_airflow.engine.session.java import search_java

    return search_java().found is not None


def _require_none_given(locations: Sequence[str], of_many: Mapping[str, object]) -> None:
    """:raises RequestError: an option is given that is for many tables."""
    for option, is_given in of_many.items():
        if is_given:
            where = "there is no --dataset"
            if locations:
                where = f"{locations[0]} is not a folder of tables"
            raise RequestError(f"{option}: {where}", "give a folder of tables with --dataset")


def _names(name: str) -> tuple[str, str, str]:
    return f"{name}.dql", f"{name}_gate.py", "dqx.toml"


def _require_none(folder: Path, names: list[str]) -> None:
    for name in names:
        if (folder / name).exists():
            raise RequestError(f"{folder / name} already exists", "choose another folder")


def _absolute(location: str) -> str:
    """The location with an absolute path, since a worker has another working directory."""
    return location if "://" in location else str(Path(location).expanduser().resolve())


def _sample(today: date) -> str:
    lines = ["order_id,customer,amount,ordered_on"]
    for day in range(_SAMPLE_DAYS):
        on = today - timedelta(days=_SAMPLE_DAYS - 1 - day)
        for number in range(day * _SAMPLE_ROWS + 1, (day + 1) * _SAMPLE_ROWS + 1):
            lines.append(f"{number},C{number * 37 % 100:03},{number * 7 % 90 + 10}.50,{on}")
    return "\n".join(lines) + "\n"


def _dag(table: ObservedTable, path: str, today: date) -> str:
    return filled(
        __package__,
        "draft_gate.txt",
        name=table.name,
        start=today - timedelta(days=_SAMPLE_DAYS - 1),
        is_beside=not path.startswith("/") and "://" not in path,
        path=path,
        settings=_settings(table),
        options=table.options,
        literal=literal,
    )


def _settings(table: ObservedTable) -> list[tuple[str, object]]:
    """The settings of a gate about the table, except for its location."""
    from dqx_airflow.contracts.model import column_path

    settings: list[tuple[str, object]] = [("format", table.format)]
    if table.clock is not None:
        settings.append(("date_column", table.clock))
    if table.key:
        settings.append(("keys", list(table.key)))
    if table.format in ("csv", "json"):
        columns = ", ".join(f"{column_path(column.name)} {column.type}" for column in table.columns)
        settings.append(("schema", columns))
    return settings


def _toml(table: ObservedTable, path: str, *, has_java: bool) -> str:
    return filled(
        __package__,
        "draft_toml.txt",
        name=table.name,
        path=path,
        settings=_settings(table),
        options=table.options,
        has_java=has_java,
        literal=literal,
    )
