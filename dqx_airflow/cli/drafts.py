"""First drafts: `dql init` (a gate with its DAG and settings), `dql import` (from rules of other
tools), `dql suggest` (a suite from data), `dql contract init` (a contract from data)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from dqx_airflow.cli import command
from dqx_airflow.cli.arguments import ConnectionOption
from dqx_airflow.cli.json_objects import imported_rule_object
from dqx_airflow.datasets.reader_options import with_default_options
from dqx_airflow.datasets.settings import datasets_of_arguments, format_of, settings_of
from dqx_airflow.diagnostics.renderers import json_text
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.errors import NoCounterpartError, RequestError
from dqx_airflow.limits import MOST_DAYS
from dqx_airflow.values import DatasetRef

if TYPE_CHECKING:
    from dqx_airflow.contracts.drafting import ObservedTable
    from dqx_airflow.importing.foreign_rule import ForeignRule
    from dqx_airflow.tuning.suggested import Seen


_SAMPLE = "orders"
_SAMPLE_DAYS = 3
_SAMPLE_ROWS = 20


FileFormat: TypeAlias = Literal["delta", "parquet", "csv", "json"]


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")] = Path(),
    *,
    table: Annotated[str | None, typer.Option("--from", metavar="LOCATION")] = None,
    format: FileFormat | None = None,
) -> None:
    """Write a first gate: a DAG, a suite drafted from a table, and dqx.toml.

    Without --from it also writes an example table of orders, with rows of the last three days. No
    file is overwritten. Exit code 2 if one exists, 4 if the table cannot be read.

    :param folder: The folder for the files, created if needed.
    :param table: The table to check: a file, a folder of files, or a Delta table. Default: a small
        example table of orders, which is created.
    :param format: The format of files, if their names do not show it.
    """
    from dqx_airflow.contracts.drafting import draft_suite
    from dqx_airflow.tuning.table_profile import observe

    today = datetime.now(timezone.utc).date()
    name = _SAMPLE
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot create {folder}: {error.strerror}") from error
    if table is None:
        sample = folder / f"{_SAMPLE}.csv"
        _require_none(folder, [sample.name, *_names(_SAMPLE)])
        command.write_text(sample, _sample(today))
    location = str(folder / f"{_SAMPLE}.csv") if table is None else table
    observed = observe(location, format)
    name = observed.name
    suite, dag, settings = _names(name)
    _require_none(folder, [suite, dag, settings])
    path = f"{_SAMPLE}.csv" if table is None else _absolute(location)
    command.write_text(folder / suite, draft_suite(observed))
    command.write_text(folder / dag, _dag(observed, path, today))
    command.write_text(folder / settings, _toml(observed, path))
    wrote = [*([f"{_SAMPLE}.csv"] if table is None else []), suite, dag, settings]
    fields = {"wrote": wrote, "folder": folder.resolve(), "suite": suite, "name": name}
    day = observed.newest or today
    typer.echo(filled(__package__, "init_next.txt", **fields, day=day), nl=False)


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
        json=json.dumps,
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


def _toml(table: ObservedTable, path: str) -> str:
    # Strings, and lists of them, are written alike in JSON and in TOML.
    own = {"name": table.name, "path": path, "settings": _settings(table)}
    return filled(__package__, "draft_toml.txt", **own, json=json.dumps)


FailOnUntranslated: TypeAlias = Literal["not-translated", "different", "never"]


def import_rules(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    *,
    tool: Annotated[str | None, typer.Option("--from", metavar="TOOL")] = None,
    dataset: str | None = None,
    sql_dialect: str | None = None,
    name: str | None = None,
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    fail_on: FailOnUntranslated = "not-translated",
    format: command.TableOrJson = "table",
) -> None:
    """Translate rule files of other tools to a DQL suite, and report on every rule.

    Each rule is translated, translated with a difference that the suite states in a comment, or
    not translated, with the reason. The exit code is 1 if a rule is not translated, 2 if a file
    cannot be read.

    :param files: Rule files, of one tool or several.
    :param tool: great-expectations, soda, dbt, databricks-dqx, dqdl, deequ, pandera or airflow;
        default: recognised by the content.
    :param dataset: The dataset of all rules; default: the dataset named in the file.
    :param sql_dialect: The database of the SQL of Great Expectations, Soda, dbt and Airflow, or
        spark; default: SQL is translated if it means the same in all databases.
    :param name: The name of the suite; default: that of the first file.
    :param output: Write the suite to a file; default: print it.
    :param fail_on: Exit with 1 if a rule is not translated; with different, also if one is
        translated with a difference; with never, do not.
    :param format: Format of the report on standard error: table or json.
    """
    from dqx_airflow.contracts.dialects.servers import SQL_DIALECTS
    from dqx_airflow.importing.tools import TOOLS, ImportOutcome, outcome_counts, suite_of

    if tool is not None and tool not in TOOLS:
        message = f"unknown tool '{tool}'; available: {', '.join(TOOLS)}"
        raise typer.BadParameter(message, param_hint="--from")
    if sql_dialect and sql_dialect.strip().lower() not in SQL_DIALECTS:
        message = f"unknown SQL dialect '{sql_dialect}'; available: {', '.join(SQL_DIALECTS)}"
        raise typer.BadParameter(message, param_hint="--sql-dialect")
    rules: list[ForeignRule] = []
    origins: list[str] = []
    for path, tool_name, of_file in _read_files(files, tool, dataset, sql_dialect):
        rules += of_file
        origins.append(f"{path.name} ({TOOLS[tool_name].title})")
    suite = suite_of(name or files[0].stem, f"Imported from {', '.join(origins)}", rules)
    command.print_or_write(suite.text, output)
    if format == "json":
        objects = [imported_rule_object(rule) for rule in suite.rules]
        typer.echo(json_text(objects), err=True)
    else:
        counts = [*outcome_counts(suite.rules)]
        text = filled(__package__, "imported.txt", rules=suite.rules, counts=counts)
        typer.echo(text, err=True, nl=False)
    failing = {
        "never": (),
        "not-translated": (ImportOutcome.NOT_TRANSLATED,),
        "different": (ImportOutcome.NOT_TRANSLATED, ImportOutcome.DIFFERENT),
    }[fail_on]
    if any(imported.outcome in failing for imported in suite.rules):
        raise typer.Exit(command.EXIT_FAILED)


def _read_files(
    files: Sequence[Path], tool: str | None, dataset: str | None, sql_dialect: str | None
) -> Iterator[tuple[Path, str, Sequence[ForeignRule]]]:
    """Each file with the name of its tool, and its rules. Files that cannot be read end the
    command, after all of them are reported."""
    from dqx_airflow.dql.syntax.source_file import Unreadable, read_source
    from dqx_airflow.importing.tools import read_rules

    wrong = False
    for path in files:
        source = read_source(path, str(path))
        try:
            if isinstance(source, Unreadable):
                raise NoCounterpartError(source.reason)
            yield (path, *read_rules(source, tool=tool, dataset=dataset, sql_dialect=sql_dialect))
        except NoCounterpartError as error:
            typer.echo(f"error: {path}: {error}", err=True)
            wrong = True
    if wrong:
        raise typer.Exit(command.EXIT_WRONG)


_TAKEN = (
    "name",
    "path",
    "table",
    "format",
    "date_column",
    "date_format",
    "time_zone",
    "options",
    "masked",
)


def suggest(
    *,
    dataset: Annotated[list[str], typer.Option(metavar="NAME=LOCATION[?KEY=VALUE&...]")],
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS)] = 30,
    name: str | None = None,
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    connection: ConnectionOption = None,
) -> None:
    """Draft a suite from the data: keys, NULL shares, ranges, sets, formats, volume, freshness.

    Reads all rows of the last days by date_column, or all rows without a date column, one column
    at a time. The data passes its own draft. Each assertion is @experimental and shows its
    evidence; limits are tunable. Values of columns that are masked, in dqx.toml too, or look
    personal are omitted. Files are read without Spark, catalog tables over --connection. Exit code
    2 if the command line is wrong or the file exists, 4 if a dataset cannot be read.

    :param dataset: A dataset: a path or table:NAME, with format, date_column, time_zone.
    :param days: The number of days to look at, up to the newest one.
    :param name: The name of the suite; default: that of the dataset.
    :param output: Write the suite to a new file; default: print it.
    """
    from dqx_airflow.tuning.suggested import suggested_suite

    if output is not None:
        command.require_new(output)
    seen = [_seen(ref, days, connection) for ref in _refs(dataset)]
    text = suggested_suite(name or seen[0].name, seen, datetime.now(timezone.utc))
    command.print_or_write(text, output)
    if output is not None:
        arguments = " ".join(f"--dataset '{argument}'" for argument in dataset)
        typer.echo(f"drafted {output}: test it with `dql run {output} {arguments}{_on(seen)}`")


def _refs(texts: list[str]) -> list[DatasetRef]:
    refs, problems = datasets_of_arguments(texts)
    if problems:
        raise RequestError(
            f"--dataset: {problems[0].message}", problems[0].help or "write NAME=LOCATION"
        )
    for ref in refs.values():
        plain = settings_of(DatasetRef(ref.name))
        not_taken = [
            key
            for key, value in settings_of(ref).items()
            if key not in _TAKEN and value != plain[key]
        ]
        if not_taken:
            raise RequestError(
                f"--dataset {ref.name}: {', '.join(not_taken)} cannot be considered",
                f"suggestions take {', '.join(_TAKEN[3:])}",
            )
    return list(refs.values())


def _seen(ref: DatasetRef, days: int, address: str | None) -> Seen:
    from dqx_airflow.tuning.table_profile import observer, read_files

    settings = command.settings_here()
    ref = settings.with_masks(ref)
    if ref.path is not None:
        options = with_default_options(ref, settings.reader).options
        return read_files(ref.path, ref.format, observer(ref, ref.path, days), options)
    from dqx_airflow.cli.spark import columns_of, session_over

    if ref.conn_id is not None:
        raise RequestError(
            f"--dataset {ref.name} is a database table, for which no suite can be suggested",
            "give a path, or a table of the catalog with the same rows",
        )
    if ref.table is None:
        raise RequestError(f"--dataset {ref.name} is a query", "give a path or table:NAME")
    if ref.options:
        raise RequestError(f"--dataset {ref.name}: options of a table cannot be considered")
    reached = command.connection_in(settings, address)
    with session_over(reached, settings.session, "dql suggest") as spark:
        return observer(ref, ref.table, days)(columns_of(spark, ref.table))


def _on(seen: list[Seen]) -> str:
    """The newest day that all datasets have, for the command line."""
    ends = [
        max(dataset.days.rows) for dataset in seen if dataset.days is not None and dataset.days.rows
    ]
    return f" --date {min(ends)}" if ends else ""


_TABLE_MARK = "table:"
_NAME_OF_THREE_PARTS = re.compile(r"(?:[\w-]+|`[^`]+`)(?:\.(?:[\w-]+|`[^`]+`)){2,}")


def draft_contract(
    *,
    table: Annotated[str, typer.Option("--from", metavar="LOCATION")],
    format: FileFormat | None = None,
    dialect: Literal["odcs", "fabric", "dcs"] = "odcs",
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    connection: ConnectionOption = None,
) -> None:
    """Draft a contract from the data of a table: types, keys, NULL, ranges, small value sets,
    patterns.

    All rows are read, and all of them satisfy the draft. It is marked as a draft, because the
    current data is not a promise. For columns that dqx.toml masks, or that look like personal
    data, no value is written. Files are read without Spark, catalog tables over --connection. Exit
    code 2 if the file already exists or the command line is wrong, 4 if the table cannot be read.

    :param table: A file, a folder of files, a Delta table, or a catalog table: catalog.schema.table
        or table:NAME.
    :param format: The format of files, if their names do not show it.
    :param dialect: The dialect of the contract.
    :param output: Write the contract to a new file; default: print it.
    """
    from dqx_airflow.contracts.drafting import draft_text
    from dqx_airflow.contracts.model import Dialect

    if output is not None:
        command.require_new(output)
    name, settings = _table_name(table), command.settings_here()
    if name is not None and format is not None:
        raise RequestError("--format only applies to files")
    ref = DatasetRef("", table=name) if name is not None else DatasetRef("", path=table)
    masked = settings.with_masks(ref).masked
    if name is not None:
        from dqx_airflow.cli.spark import observe_table, session_over

        reached = command.connection_in(settings, connection)
        with session_over(reached, settings.session, "dql contract init") as spark:
            observed = observe_table(spark, name, masked)
    else:
        from dqx_airflow.tuning.table_profile import observe

        observed = observe(table, format, settings.reader, masked)
    command.print_or_write(draft_text(observed, Dialect(dialect)), output)
    if output is not None:
        data = table if name is None else f"{_TABLE_MARK}{name}"
        typer.echo(f"drafted {output}: test it with `dql contract test {output} --data {data}`")


def _table_name(place: str) -> str | None:
    """The catalog table at a location; None for a path."""
    if place.startswith(_TABLE_MARK):
        return place.removeprefix(_TABLE_MARK) or None
    is_name = _NAME_OF_THREE_PARTS.fullmatch(place) and format_of(place) is None
    return place if is_name and not Path(place).exists() else None
