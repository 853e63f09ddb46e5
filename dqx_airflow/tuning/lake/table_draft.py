"""The draft of one table of a lake: the parts of its suite, its settings, what the report says.

Everything is plain data with a JSON form, so that a table that has not changed is not read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any

from dqx_airflow.contracts.drafting import ObservedColumn, ObservedTable
from dqx_airflow.contracts.model import column_path
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.dql.watches import is_named_like_a_row_key
from dqx_airflow.errors import DqxError
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.metrics.usual_limits import DEFAULT_DAYS, DayBefore, Kind, usual_limits
from dqx_airflow.tuning.column_tables import ColumnTable
from dqx_airflow.tuning.lake.found_tables import FoundTable
from dqx_airflow.tuning.lake.past_claims import PastClaim, past_claims
from dqx_airflow.tuning.lake.reading import ReadTable, read_table_files
from dqx_airflow.tuning.observed_days import (
    counted,
    date_column_of,
    day_rows,
    profile_of_days,
    profile_of_last_days,
)
from dqx_airflow.tuning.suggested import Seen, SeenDays, watched_parts
from dqx_airflow.values import DatasetRef

_FEWEST_DAYS = 3
_FEWEST_ROWS_A_DAY = 3
_LEAST_DENSITY = 0.1
"""With rows on fewer of the days, a column does not have the day on which rows came."""

_MOST_FAULTS = 0.01
"""More rows than this share are not a fault of a key, but no key."""

_SEPARATORS = {";": ";", "\t": "\\t", "|": "|"}
"""The usual separators of CSV but for the comma, and how TOML writes them."""

_LONGEST_PROBLEM = 160
_MOST_KEPT = 500_000_000
_MOST_NEW_NULLS = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class DraftedColumn:
    """A column of a drafted table: its type in Spark, and what may make it a key or a reference."""

    name: str
    type: str
    nulls: int = 0
    distinct: int | None = None


@dataclass(frozen=True, slots=True)
class TableDraft:
    """A table of a lake: its row in the report, and from what its suite and settings are written.

    :param rows: the rows from which the draft was made: of the last days, or all.
    :param days: the last days that have rows; None without a date column.
    :param all_days: all days that have rows.
    :param settings: the settings of the dataset but its location: format, date_column, keys ...
    :param parts: the parts of its suite, but for references to other tables.
    :param wrong: what is wrong in the data as it is now, in words.
    :param claims: its claims on past days that a draft of the earlier days had not seen.
    :param failing_days: on how many of these days a claim failed, and how many they are.
    :param seconds: the CPU time that the draft took.
    :param problem: why there is no draft; empty if there is one.
    """

    table: FoundTable
    rows: int = 0
    days: int | None = None
    all_days: int | None = None
    newest: date | None = None
    key: tuple[str, ...] = ()
    columns: tuple[DraftedColumn, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    claims: tuple[PastClaim, ...] = ()
    failing_days: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    problem: str = ""

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def date_column(self) -> str | None:
        column: str | None = self.settings.get("date_column")
        return column


def table_draft(
    table: FoundTable, days: int, now: datetime, read: ReadTable = read_table_files
) -> TableDraft:
    """The draft of a table from its last days; with a `problem` if it cannot be read.

    :param days: the number of days, up to the newest one; of a table without days all rows.
    """
    started = process_time()
    if table.problem:
        return TableDraft(table, problem=table.problem)

    def draft(columns: ColumnTable) -> TableDraft:
        return _drafted(table, columns, days, now)

    try:
        drafted = read(table, draft)
        return replace(drafted, seconds=process_time() - started)
    except DqxError as error:
        return TableDraft(table, problem=_shortened(error.problem))


def _shortened(problem: str) -> str:
    """A reason that fits a row of the report."""
    first = problem.splitlines()[0]
    return first if len(first) <= _LONGEST_PROBLEM else f"{first[:_LONGEST_PROBLEM]}..."


def _drafted(table: FoundTable, columns: ColumnTable, days: int, now: datetime) -> TableDraft:
    if problem := _problem_of(columns, table.format):
        return TableDraft(table, problem=problem)
    dated, all_days, undated = _day_column(columns, table)
    ref = replace(dated, masked=table.masked)
    claims: tuple[PastClaim, ...] = ()
    failing_days = 0, 0
    if ref.date_column is None:
        seen = profile_of_last_days(columns, ref, ref.location, days)
    else:
        of_days = day_rows(columns, ref, days)
        of_days = replace(of_days, table=_kept_in_memory(of_days.table))
        seen = profile_of_days(of_days, ref, ref.location)
        claims, failing_days = past_claims(of_days, ref, now, seen=seen.days)
    key = _meant_key(seen.table)
    seen = replace(seen, table=replace(seen.table, place=table.place, key=key))
    newest = max(seen.days.rows) if seen.days else seen.table.newest
    return TableDraft(
        table,
        rows=seen.table.rows,
        days=len(seen.days.rows) if seen.days else None,
        all_days=all_days,
        newest=newest,
        key=seen.table.key,
        columns=tuple(
            DraftedColumn(column.name, column.type, column.nulls, column.distinct)
            for column in seen.table.columns
        ),
        settings=_settings(seen, ref),
        parts=tuple(watched_parts(seen, now)) if seen.table.rows else (_awaited(table.name),),
        wrong=tuple(_wrong(seen, now.date(), undated)),
        notes=tuple(_notes(seen)),
        claims=claims,
        failing_days=failing_days,
    )


def _problem_of(columns: ColumnTable, file_format: str) -> str:
    """Why no suite can be written about the columns of a table; empty if one can."""
    if not columns.names:
        return "no columns"
    for number, name in enumerate(columns.names, 1):
        if not name:
            return f"column {number} has no name"
        if name.splitlines() != [name]:
            return f"the name of column {number} has a line break"
    by_folded: dict[str, str] = {}
    for name in columns.names:
        other = by_folded.setdefault(name.lower(), name)
        if other != name:
            return f"the columns {other} and {name} differ only in case: rename one"
    if file_format == "csv" and len(columns.names) == 1:
        for separator, shown in _SEPARATORS.items():
            if separator in columns.names[0]:
                return f'one column, with "{shown}": write sep = "{shown}" below [reader.csv]'
    return ""


def _awaited(name: str) -> str:
    """The check of a table without rows, of which nothing else is known."""
    claim = f"assert num_rows() > 0\n    name {show_text(f'{name}.rows')}"
    return f'check "Volume" on {show_name(name)} {{\n# no rows yet\n@experimental\n{claim}\n}}'


def _kept_in_memory(columns: ColumnTable) -> ColumnTable:
    """The table, whose columns are kept when they were read, up to a number of bytes: the past days
    are judged on the same rows."""
    kept: dict[str, Any] = {}
    free = _MOST_KEPT

    def column(name: str) -> Any:
        nonlocal free
        if name not in kept:
            values = columns.column(name)
            if values.nbytes > free:
                return values
            free -= values.nbytes
            kept[name] = values
        return kept[name]

    return replace(columns, column=column)


# Days --------------------------------------------------------------------------------------------

_DAY_NAMES = ("ds", "dt", "day", "date")
_COMPACT = "yyyyMMdd"


def _day_column(columns: ColumnTable, table: FoundTable) -> tuple[DatasetRef, int | None, int]:
    """The table with the column and the format of the day on which a row came, the number of these
    days, and of rows without one; without a date column if it has no such days."""
    for name, date_format in _possible_days(columns):
        ref = replace(table.ref, date_column=name, date_format=date_format)
        try:
            _, on = date_column_of(columns, ref)
        except DqxError:
            continue
        counts = counted(on)
        rows = {day: count for day, count in counts.items() if day is not None}
        if _are_days(rows):
            undated = sum(count for day, count in counts.items() if day is None)
            return ref, len(rows), undated
    return replace(table.ref, date_column=None), None, 0


def _possible_days(columns: ColumnTable) -> Iterator[tuple[str, str | None]]:
    """The columns that may have the days, the likely ones first, each with its date format."""
    times = [name for name in columns.names if family_of(columns.types[name]) is Family.TIME]
    named = [name for name in columns.names if name.lower() in _DAY_NAMES]
    yield from ((name, None) for name in named if name in times)
    for name in named:
        family = family_of(columns.types[name])
        if family is Family.TEXT:
            yield name, None
        if family in (Family.TEXT, Family.NUMBER):
            yield name, _COMPACT
    dates = [name for name in times if columns.types[name] == "date"]
    yield from ((name, None) for name in (*dates, *times) if name not in named)


def _are_days(rows: Mapping[date, int]) -> bool:
    """True if rows came on several days, and on many of the days between the first and last."""
    if len(rows) < _FEWEST_DAYS or median(rows.values()) < _FEWEST_ROWS_A_DAY:
        return False
    span = (max(rows) - min(rows)).days + 1
    return len(rows) / span >= _LEAST_DENSITY


# What is wrong -----------------------------------------------------------------------------------


def _wrong(seen: Seen, today: date, undated: int) -> Iterator[str]:
    """What is wrong in a table as it is now.

    :param undated: the number of rows without a date.
    """
    if seen.table.rows == 0:
        yield "no rows"
        return
    if undated and seen.days is not None:
        yield f"{undated} rows have no date in {seen.days.column}, so no gate sees them"
    for column in seen.table.columns:
        yield from _faults_of_key(column, seen.table)
    if seen.days is not None:
        yield from _faults_of_newest_day(seen.days, today)


def _meant_key(table: ObservedTable) -> tuple[str, ...]:
    """The key of a table, or the column that would be its key but for a few rows: a name, or a pair
    of columns, that happens to identify all rows is none then."""
    if len(table.key) == 1 and is_named_like_a_row_key(table.key[0]):
        return table.key
    almost = [column.name for column in table.columns if _missed_rows(column, table)]
    return (almost[0],) if almost else table.key


def _missed_rows(column: ObservedColumn, table: ObservedTable) -> int:
    """The rows that repeat or lack a value of a column which would be a key without them; none for
    other columns."""
    if column.distinct is None or not is_named_like_a_row_key(column.name):
        return 0
    others = table.rows - column.distinct
    return others if others <= _MOST_FAULTS * table.rows else 0


def _faults_of_key(column: ObservedColumn, table: ObservedTable) -> Iterator[str]:
    """What is wrong with a column that would be the key but for a few rows."""
    others = _missed_rows(column, table) if table.key == (column.name,) else 0
    if others and column.nulls:
        yield f"{column.name} is NULL in {column.nulls} of {table.rows} rows"
    if repeated := max(0, others - column.nulls):
        yield f"{column.name} is repeated in {repeated} of {table.rows} rows"


def _faults_of_newest_day(days: SeenDays, today: date) -> Iterator[str]:
    newest = max(days.rows)
    late = _lateness(days.rows, today)
    if late is not None:
        yield late
    # The day of today may still get rows.
    whole = [on for on in sorted(days.rows) if on < today] or [newest]
    if len(whole) < _FEWEST_DAYS:
        return
    last, before = whole[-1], whole[:-1]
    limits = usual_limits([_history(days.rows, last)], Kind.VOLUME)[0]
    rows = days.rows[last]
    if limits is not None and not limits.low <= rows <= limits.high:
        yield f"{rows} rows on {last}, usually {limits.low:.0f} to {limits.high:.0f}"
    for column, nulls in days.nulls.items():
        share = Fraction(nulls.get(last, 0), rows)
        most = max(Fraction(nulls.get(on, 0), days.rows[on]) for on in before)
        if share > 2 * most + _MOST_NEW_NULLS:
            usual = f"at most {float(most):.1%} before" if most else "never before"
            yield f"{column} is NULL in {float(share):.1%} of the rows of {last}, {usual}"


def _lateness(rows: Mapping[date, int], today: date) -> str | None:
    """How late the newest day is, if it is later than usual."""
    ordered = sorted(rows)
    gaps = [(later - earlier).days for earlier, later in pairwise(ordered)]
    age = (today - ordered[-1]).days
    usual = max(1, round(median(gaps))) if gaps else 1
    if age <= max(2 * usual + 1, max(gaps, default=1)):
        return None
    every = "every day" if usual == 1 else f"every {usual} days"
    return f"the newest day is {ordered[-1]}, {age} days ago; rows usually come {every}"


def _history(rows: Mapping[date, int], on: date) -> DayBefore:
    """The rows of the days before a day."""
    days = [on - timedelta(days=back) for back in range(DEFAULT_DAYS, 0, -1)]
    return DayBefore(on, [rows.get(day) for day in days])


# Settings and notes ------------------------------------------------------------------------------


def _settings(seen: Seen, ref: DatasetRef) -> dict[str, Any]:
    """The settings of the dataset but its location, as in `dqx.toml`."""
    table = seen.table
    settings: dict[str, Any] = {}
    if table.format is not None:
        settings["format"] = table.format
    if ref.date_column is not None:
        settings["date_column"] = ref.date_column
    if ref.date_format is not None:
        settings["date_format"] = ref.date_format
    if table.key:
        settings["keys"] = list(table.key)
    personal = [column.name for column in table.columns if column.is_personal]
    if personal:
        settings["masked"] = personal
    if table.format in ("csv", "json"):
        columns = (f"{column_path(column.name)} {column.type}" for column in table.columns)
        settings["schema"] = ", ".join(columns)
    for name, value in table.options.items():
        settings[f"options.{name}"] = value
    return settings


def _notes(seen: Seen) -> Iterator[str]:
    """What a reader of the draft should know about the table."""
    table = seen.table
    if not table.key and table.rows:
        yield "no column or pair of columns identifies a row"
    for column in table.columns:
        if table.rows and column.nulls == table.rows:
            yield f"{column.name} is always NULL"
        elif column.is_personal:
            yield f"{column.name} looks personal: it is masked, and its values are not in here"
