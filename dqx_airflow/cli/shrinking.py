"""`dql shrink`, from an incident to a test: the fewest rows that still fail an assertion, with
fakes for the values of masked columns.

Rows are left out by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002): half of them, then quarters, and so on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import compress, count
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, Any, TypeAlias

import typer

from dqx_airflow.api.database import MemoryDatabase
from dqx_airflow.api.run import RunSettings, plan_of, run
from dqx_airflow.cli import arguments
from dqx_airflow.cli.command import ForceOption, OutputOption, print_or_write, template, writable
from dqx_airflow.cli.mutation import MOST_ROWS, as_read, request_of
from dqx_airflow.cli.reports import printable
from dqx_airflow.cli.results import find_run
from dqx_airflow.cli.stores import ResultsRootOption, results_of
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.diagnostics.verdicts import finding
from dqx_airflow.dql.check import Checked
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.selection import checked_suite
from dqx_airflow.tuning.mutation import read_days
from dqx_airflow.values import DatasetRef, Selection, Status, Verdict

_MOST_WRITTEN = 500
"""The most rows of a test that someone reads."""
_MOST_JUDGED = 3_000_000
"""The rows judged in all tries, after which the rows that are left count as the fewest."""
_IMPORTS = {
    r"datetime\.": "import datetime",
    r"Decimal\(": "from decimal import Decimal",
    r"\binf\b": "from math import inf",
    r"\bnan\b": "from math import nan",
}
"""The imports that the values of a test may require, by a pattern of their source."""
_DIGITS = "1234567890"
"""The digits of fakes, with 0 last, so that numbers do not begin with 0."""

Tables: TypeAlias = Mapping[str, Table]
"""The rows of a day, by dataset."""


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
    of a Delta table that it read. They are judged in memory, without Spark, and columns that the
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
    alone = Selection((f"{failed.check}::{failed.name}",))
    shrinker = _Shrinker(checked_suite(request), on, dates, failed, alone)
    read = {ref.name: _rows_of(ref, on) for ref in refs}
    tables = shrinker.fewest(read, {ref.name: ref.masked for ref in refs})
    about = printable(f"{failed.name} of run {report.run_id} on {on}: {finding(failed)}.")
    written = "\n".join(f"        {name!r}: {_python(tables[name])}," for name in tables)
    imports = [line for word, line in _IMPORTS.items() if re.search(word, written)]
    text = template("shrunk_test.txt").format(
        imports="\n".join([*imports, "", ""]) if imports else "",
        test=slug(f"{failed.name} {on}"),
        about=about.replace("\\", "/").replace('"', "'"),
        suite=Path(os.path.relpath(path, file_of_test.parent if file_of_test else ".")).as_posix(),
        on=on,
        dates=dates,
        tables=written,
        key=(failed.check, failed.name),
    )
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
        raise RequestError(f"{problem}: from 1 to {MOST_ROWS:,} are judged in memory", hint)
    return rows.on(on)


def _python(table: Table) -> str:
    """The call that makes a table, with a row on each line."""
    types = {column.name: column.type for column in table.fields}
    rows = "".join(f"            {row!r},\n" for row in table.rows)
    return f"Table.typed({types!r}, [\n{rows}        ])"


@dataclass(slots=True)
class _Shrinker:
    """Leaves out rows and columns as long as an assertion still fails as in a run.

    :param checked: the suite.
    :param on: the date of the data.
    :param dates: the date columns, by dataset.
    :param failed: its verdict in the run.
    :param alone: selects it.
    """

    checked: Checked
    on: date
    dates: Mapping[str, str]
    failed: Verdict
    alone: Selection
    _is_above: bool | None = None
    _judged: int = 0

    def fewest(self, tables: Tables, masked: Mapping[str, tuple[str, ...]]) -> Tables:
        """The fewest rows and columns that still fail, with other values in masked columns. A
        dataset keeps one row at least.

        :raises RequestError: the assertion cannot be judged in memory, it does not fail there, too
            many rows are needed, or masked values cannot be replaced.
        """
        settings = RunSettings(selection=self.alone)
        plan = plan_of(self.checked, self._database(tables), self.on, settings)
        if any(one.date not in (None, self.on) for one in plan.requests):
            raise self._error(f"compares {self.on} with other days")
        result = self._result(tables)
        later = datetime.now(timezone.utc) + timedelta(days=365)
        if result.status is not Status.FAILED:
            reason = result.reason or "the rule has changed, or these are other rows"
            raise self._error(f"does not fail in memory: {reason}")
        if self._result(tables, later).value != result.value:
            raise self._error("depends on the time at which it is judged")
        self._is_above = _is_above(result)
        # A row that is not at fault may fail without its reference, which is therefore whole; what
        # another dataset needs may then be less.
        for name in 2 * sorted(tables, key=lambda one: one not in self.failed.datasets):
            tables = self._with_fewest_rows(tables, name)
        most = max(len(table.rows) for table in tables.values())
        if most > _MOST_WRITTEN:
            raise self._error(f"needs {most:,} rows to fail, more than {_MOST_WRITTEN} in a test")
        for name in tables:
            for column in tables[name].fields:
                fewer = {**tables, name: _without(tables[name], column.name)}
                if column.name != self.dates.get(name) and self._fails(fewer):
                    tables = fewer
        tables = _with_fakes(tables, masked)
        if not self._fails(tables):
            raise self._error("depends on masked values: it does not fail with others")
        return tables

    def _fails(self, tables: Tables) -> bool:
        """Whether the assertion fails, with a value on the same side of its limit."""
        self._judged += sum(len(table.rows) for table in tables.values())
        result = self._result(tables)
        return result.status is Status.FAILED and _is_above(result) == self._is_above

    def _error(self, problem: str) -> RequestError:
        hint = "choose another failure with --assertion, or write the test by hand"
        return RequestError(f"'{self.failed.name}' {problem}", hint)

    def _database(self, tables: Tables) -> MemoryDatabase:
        return MemoryDatabase(tables, date_columns=self.dates)

    def _result(self, tables: Tables, now: datetime | None = None) -> Verdict:
        database = self._database(tables)
        own = (self.failed.check, self.failed.name)
        settings = RunSettings(now=now, selection=self.alone)
        results = run(self.checked, database, self.on, settings)
        return next(one for one in results if (one.check, one.name) == own)

    def _with_fewest_rows(self, tables: Tables, name: str) -> Tables:
        size = len(tables[name].rows) // 2
        while size:
            at = 0
            while at < len(rows := tables[name].rows) and self._judged < _MOST_JUDGED:
                rest = rows[:at] + rows[at + size :]
                fewer = {**tables, name: replace(tables[name], rows=rest)}
                if rest and self._fails(fewer):
                    tables = fewer
                else:
                    at += size
            size //= 2
        return tables


def _is_above(verdict: Verdict) -> bool | None:
    """True if the value is above the limit; None if the two are not compared."""
    value = verdict.scaled_value
    limit = verdict.threshold
    return None if value is None or limit is None else bool(value > limit)  # type: ignore[operator]


def _without(table: Table, column: str) -> Table:
    kept = [one.name != column for one in table.fields]
    rows = (tuple(compress(row, kept)) for row in table.rows)
    return Table(tuple(compress(table.fields, kept)), tuple(rows))


def _with_fakes(tables: Tables, masked: Mapping[str, tuple[str, ...]]) -> Tables:
    """The tables with other values in masked columns, equal ones for equal ones. NULL and blanks
    stay."""
    taken = {str(value) for table in tables.values() for row in table.rows for value in row}
    fakes: dict[str, Any] = {}

    def shown(value: Any, is_hidden: bool) -> Any:
        if not is_hidden or value is None or not str(value).strip():
            return value
        if repr(value) not in fakes:
            others = (_fake(value, number) for number in count())
            fakes[repr(value)] = next(one for one in others if str(one) not in taken)
            taken.add(str(fakes[repr(value)]))
        return fakes[repr(value)]

    shown_tables = {}
    for name, table in tables.items():
        hidden = [is_masked(column.name, masked[name]) for column in table.fields]
        rows = tuple(tuple(map(shown, row, hidden)) for row in table.rows)
        shown_tables[name] = replace(table, rows=rows)
    return shown_tables


def _fake(value: Any, number: int) -> Any:
    """The fake with a number for a value, of its type, length and shape: letters for letters,
    digits for digits.

    :raises RequestError: there are no more, or the type has none.
    """
    is_text = isinstance(value, str)
    text = ""
    for character in reversed(str(value)):
        is_letter = is_text and character.isalpha()
        letters = _DIGITS if character.isdecimal() else ascii_lowercase if is_letter else character
        number, place = divmod(number, len(letters))
        text = (letters[place].upper() if character.isupper() else letters[place]) + text
    if number or isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise RequestError(
            "a masked column that it needs has values that cannot be replaced",
            "choose another failure with --assertion",
        )
    return type(value)(text)
