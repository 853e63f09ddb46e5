"""`dql init`: a first gate in a folder: a DAG, its suite, and the settings of the command line."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dqx_airflow.cli.command_group import write_text
from dqx_airflow.errors import RequestError

if TYPE_CHECKING:
    from dqx_airflow.contracts.drafting import ObservedTable

_SAMPLE = "orders"
_SAMPLE_DAYS = 3
_SAMPLE_ROWS = 20


class FileFormat(str, Enum):
    """The file format of the table."""

    DELTA = "delta"
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder for the files, created if needed.")
    ] = Path(),
    *,
    table: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="LOCATION",
            help="The table to check: a file, a folder of files, or a Delta table. "
            "Default: a small example table of orders, which is created.",
        ),
    ] = None,
    format: Annotated[
        FileFormat | None, typer.Option(help="The format of files, if their names do not show it.")
    ] = None,
) -> None:
    """Write a first gate: a DAG, a suite drafted from a table, and dqx.toml.

    Without --from it also writes an example table of orders, with rows of the last three days. No
    file is overwritten. Exit code 2 if one exists, 4 if the table cannot be read.
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
        write_text(sample, _sample(today))
    location = str(folder / f"{_SAMPLE}.csv") if table is None else table
    observed = observe(location, format.value if format is not None else None)
    name = observed.name
    suite, dag, settings = _names(name)
    _require_none(folder, [suite, dag, settings])
    path = f"{_SAMPLE}.csv" if table is None else _absolute(location)
    write_text(folder / suite, draft_suite(observed))
    write_text(folder / dag, _dag(observed, path, today))
    write_text(folder / settings, _toml(observed, path))
    wrote = [*([f"{_SAMPLE}.csv"] if table is None else []), suite, dag, settings]
    typer.echo(f"wrote {', '.join(wrote)} in {folder.resolve()}")
    typer.echo("next, in that folder:")
    for line in (
        f"dql run {suite} --date {today}   # runs the suite without Airflow",
        "dql doctor   # shows what is missing for Airflow",
        f'AIRFLOW__CORE__DAGS_FOLDER="$PWD" airflow dags test {name}_gate {today}',
    ):
        typer.echo(f"  {line}")


def _names(name: str) -> tuple[str, str, str]:
    return f"{name}.dql", f"{name}_gate.py", "dqx.toml"


def _require_none(folder: Path, names: list[str]) -> None:
    for name in names:
        if (folder / name).exists():
            raise RequestError(f"{folder / name} already exists", "choose another folder")


def _absolute(location: str) -> str:
    """A worker has another working directory."""
    return location if "://" in location else str(Path(location).expanduser().resolve())


def _sample(today: date) -> str:
    lines = ["order_id,customer,amount,ordered_on"]
    for day in range(_SAMPLE_DAYS):
        on = today - timedelta(days=_SAMPLE_DAYS - 1 - day)
        for number in range(day * _SAMPLE_ROWS + 1, (day + 1) * _SAMPLE_ROWS + 1):
            lines.append(f"{number},C{number * 37 % 100:03},{number * 7 % 90 + 10}.50,{on}")
    return "\n".join(lines) + "\n"


def _dag(table: ObservedTable, path: str, today: date) -> str:
    name = table.name
    is_beside = not path.startswith("/") and "://" not in path
    start = today - timedelta(days=_SAMPLE_DAYS - 1)
    settings = [
        f'"path": str(HERE / "{path}")' if is_beside else f'"path": {json.dumps(path)}',
        *(f'"{key}": {json.dumps(value)}' for key, value in _settings(table)),
    ]
    lines = "\n".join(f"                {setting}," for setting in settings)
    imports = "from pathlib import Path\n" if is_beside else ""
    folder_constant = "HERE = Path(__file__).parent\n\n" if is_beside else ""
    return f'''"""A gate for {name}, drafted by `dql init`."""

from datetime import datetime
{imports}
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from dqx_airflow.operators import DqlGateOperator

{folder_constant}with DAG(
    "{name}_gate",
    start_date=datetime({start.year}, {start.month}, {start.day}),
    schedule="@daily",
    catchup=False,
):
    # Checks the rows of the logical date. To check the previous day, add
    # date="{{{{ macros.ds_add(ds, -1) }}}}".
    gate = DqlGateOperator(
        task_id="gate",
        suite="{name}.dql",
        datasets={{
            "{name}": {{
{lines}
            }}
        }},
    )
    publish = EmptyOperator(task_id="publish")
    gate >> publish
'''


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
    lines = [
        "# Settings of `dql run`. Gates in Airflow are configured in the DAG.",
        "[defaults]",
        'results = "dqx_results"',
        "",
        f"[datasets.{table.name}]",
    ]
    # Strings, and lists of them, are written alike in JSON and in TOML.
    pairs = [("path", path), *_settings(table)]
    lines += [f"{key} = {json.dumps(value)}" for key, value in pairs]
    return "\n".join(lines) + "\n"
