"""`dql shrink`, from an incident to a test: a file for pytest with the fewest rows on which an
assertion still fails as in the incident, with fakes for the values of masked columns."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from dqx_airflow.cli import arguments
from dqx_airflow.cli.command import ForceOption, OutputOption, print_or_write, writable
from dqx_airflow.cli.fewest_rows import Shrinker, Tables, counted_rows
from dqx_airflow.cli.mutation import MOST_ROWS, as_read, request_of
from dqx_airflow.cli.reports import printable
from dqx_airflow.cli.results import find_run
from dqx_airflow.cli.stores import ResultsRootOption, results_of
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.diagnostics.templates import filled
from dqx_airflow.diagnostics.verdicts import finding
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.selection import checked_suite
from dqx_airflow.tuning.day_rows import read_days
from dqx_airflow.values import DatasetRef, Status, Verdict

_IMPORTS = {
    r"datetime\.": "import datetime",
    r"Decimal\(": "from decimal import Decimal",
    r"\binf\b": "from math import inf",
    r"\bnan\b": "from math import nan",
}
"""The imports that the values of a test may require, by a pattern of their source."""
_WIDTH = 88
"""The width of a line up to which Black and Ruff leave a row on one line."""


def shrink(
    run_id: Annotated[str, typer.Argument(metavar="RUN")],
    *,
    assertion: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    results_root: ResultsRootOption = None,
    suite: Path | None = None,
    dataset: arguments.DatasetOption = None,
    config: arguments.ConfigOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Write a test for pytest with the fewest rows that still fail.

    The rows still fail an assertion of a run. They are the rows of its date, in the version
    of a Delta table that it read. They are evaluated in memory, without Spark, and columns that the
    assertion does not need are left out. Values of masked columns are replaced by others of the
    same length, equal ones by equal ones.

    :param run_id: The first characters of a run id, or `latest`.
    :param assertion: The assertion; default: the worst one that failed.
    :param suite: The file of the suite; default: where it was read.
    """
    file_of_test = writable(output, force=force)
    report = find_run(results_of(results_root, config=config), run_id)
    found = [one for one in report.with_status(Status.FAILED) if one.check != IMPLICIT_CHECK]
    failed = next((one for one in found if assertion in (None, one.name)), None)
    if failed is None or report.contract is not None:
        names = ", ".join(one.name for one in found) or "none"
        problem = f"run {report.run_id} has no failed assertion {assertion or ''}".rstrip()
        raise RequestError(f"{problem} of a suite", f"those that failed: {names}")
    file = report.sources[0].file if report.sources else failed.span and failed.span.file
    path = suite or Path(file or "?")
    on = report.run_key.date
    request = request_of(arguments.Options((path,), date=f"{on}", datasets=dataset, config=config))
    refs = as_read(request.datasets, report)
    dates = {ref.name: ref.date_column for ref in refs if ref.date_column}
    masked = {ref.name: ref.masked for ref in refs}
    shrinker = Shrinker(checked_suite(request), on, dates, failed, masked)
    tables = shrinker.fewest({ref.name: _rows_of(ref, on) for ref in refs})
    place = Path(os.path.relpath(path, file_of_test.parent if file_of_test else ".")).as_posix()
    text = _written(shrinker, tables, place, f"{failed.name} of run {report.run_id} on {on}")
    if file_of_test is not None:
        file_of_test.parent.mkdir(parents=True, exist_ok=True)
    print_or_write(text, file_of_test)


def _rows_of(ref: DatasetRef, on: date) -> Table:
    """:raises RequestError: they cannot be read, or there are none, or too many."""
    hint = f"add --dataset '{ref.name}=PATH?date_column=COLUMN' with a copy of them"
    try:
        rows = read_days(ref, on, days=0, most=MOST_ROWS)
    except DatasetError as error:
        version = "" if ref.version is None else f" in version {ref.version}"
        problem = f"the rows of '{ref.name}' cannot be read{version}: {error.problem}"
        raise RequestError(problem, hint) from error
    if not 0 < rows.rows <= MOST_ROWS:
        problem = f"dataset '{ref.name}' has {rows.rows:,} rows on {on}"
        raise RequestError(f"{problem}: from 1 to {MOST_ROWS:,} are evaluated in memory", hint)
    return rows.on(on)


def _written(shrinker: Shrinker, tables: Tables, suite: str, title: str) -> str:
    """The file of the test, as Black and Ruff format it.

    :param suite: the path of the suite, from the file of the test.
    :param title: the assertion, its run and its date.
    """
    failed, on = shrinker.failed, shrinker.on
    about = f"{title}: {finding(failed)}."
    if shrinker.has_copies:
        about += " Some rows are copies instead of others: all of them would be too many."
    shown = "".join(_table_of(name, table, failed) for name, table in tables.items())
    body = filled(
        __package__,
        "shrunk_test.txt",
        test=slug(f"{failed.name} {on}"),
        about=printable(about).replace("\\", "/").replace('"', "'"),
        suite=_python(suite),
        on=_python(on),
        dates=_python(dict(shrinker.dates)),
        tables=shown,
        key=f"{_python(failed.check)}, {_python(failed.name)}",
    )
    values = f"{shown}{_python(on)}"
    imports = [line for word, line in _IMPORTS.items() if re.search(word, values)]
    return "\n".join([*imports, "", body])


def _table_of(name: str, table: Table, failed: Verdict) -> str:
    """The lines of a table in a mapping of tables."""
    types = {column.name: column.type for column in table.fields}
    lines = [f"{_python(name)}: Table.typed("]
    lines += _on_one_line(_python(types), [f"{_python(it)}: {_python(types[it])}" for it in types])
    if name in failed.datasets or len(table.rows) > 1 or types:
        rows = [_row(row, copies) for row, copies in counted_rows(table.rows)]
        lines += ["    [", *(f"        {line}" for row in rows for line in row), "    ],"]
    else:
        lines += ["    [()],  # a row that the assertion does not read"]
    return "".join(f"        {line}\n" for line in (*lines, "),"))


def _row(row: tuple[Any, ...], copies: int) -> list[str]:
    """The lines of a row in a list."""
    text = _python(row)
    if copies > 1:
        return [f"*[{text}] * {copies},"]
    if len(text) + 17 <= _WIDTH:
        return [f"{text},"]
    return ["(", *(f"    {_python(value)}," for value in row), "),"]


def _on_one_line(text: str, items: Sequence[str]) -> list[str]:
    """The lines of a mapping in a call: one if it fits, else one for each item."""
    if len(text) + 13 <= _WIDTH:
        return [f"    {text},"]
    return ["    {", *(f"        {item}," for item in items), "    },"]


def _python(value: Any) -> str:
    """The source of a value, with strings in double quotes."""
    match value:
        case str():
            text = repr(value)
            is_plain = text.startswith("'") and '"' not in text
            return '"' + text[1:-1].replace("\\'", "'") + '"' if is_plain else text
        case tuple():
            items = ", ".join(map(_python, value))
            return f"({items},)" if len(value) == 1 else f"({items})"
        case list():
            return f"[{', '.join(map(_python, value))}]"
        case dict():
            items = ", ".join(f"{_python(key)}: {_python(it)}" for key, it in value.items())
            return f"{{{items}}}"
        case Decimal():
            return f'Decimal("{value}")'
        case _:
            return repr(value)
