"""The last days of a table, observed with Arrow for suggestions: rows, NULL values and numbers of
each day, by its date column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

import numpy
import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.datasets.date_pattern import ISO, date_of_text
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.tuning.column_tables import MOMENT, ColumnTable, moments_of, texts_of
from dqx_airflow.tuning.suggested import Seen, SeenDays
from dqx_airflow.tuning.table_profile import MOST_VALUES, newest_timestamp, profile_of_columns
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.typed_values import days_before

_MOST_SHORT_TEXTS = 1_500_000_000


@dataclass(frozen=True, slots=True)
class DayRows:
    """Rows of a table in the order of their days, so that the rows of a day are a slice.

    :param column: the name of its date column.
    :param rows: the number of rows of each day, in ascending order of the days.
    """

    table: ColumnTable
    column: str
    rows: Mapping[date, int]

    def before(self, day: date) -> DayRows:
        """The rows of the days before a day."""
        rows = {on: count for on, count in self.rows.items() if on < day}
        number = sum(rows.values())

        def column(name: str) -> Any:
            return self.table.column(name).slice(0, number)

        return replace(self, table=replace(self.table, rows=number, column=column), rows=rows)

    def by_day(self, values: Any) -> Iterator[tuple[date, Any]]:
        """Yields each day with its part of the values of a column."""
        start = 0
        for on, count in self.rows.items():
            yield on, values.slice(start, count)
            start += count


def day_rows(table: ColumnTable, ref: DatasetRef, days: int) -> DayRows:
    """The rows of the last days of a table that have a date.

    :raises RequestError: it has no such date column.
    :raises DatasetError: no row has a date.
    """
    date_column, all_dates = date_column_of(table, ref)
    last = pc.max(all_dates).as_py()
    if last is None:
        raise DatasetError(f"no row of {ref.name} has a date in {date_column}")
    first = days_before(last, days)
    rows = {day: count for day, count in counted(all_dates).items() if day and day > first}
    order = _order_of_days(all_dates, pa.scalar(first, pa.date32()))

    def column(name: str) -> Any:
        values = table.column(name)
        if isinstance(order, slice):
            return values.slice(order.start, order.stop - order.start)
        return _taken(values, order)

    of_days = replace(table, rows=sum(rows.values()), column=column)
    return DayRows(of_days, date_column, dict(sorted(rows.items())))


def _order_of_days(dates: Any, first: Any) -> Any:
    """The positions of the rows after a date, in the order of their dates: a slice if they are
    stored in that order."""
    if isinstance(dates, pa.ChunkedArray):
        dates = dates.combine_chunks()
    wanted = pc.indices_nonzero(pc.fill_null(pc.greater(dates, first), False))
    numbers = pc.cast(pc.take(dates, wanted), pa.int32()).to_numpy(zero_copy_only=False)
    if numpy.all(numbers[:-1] <= numbers[1:]):
        start, end = int(wanted[0].as_py()), int(wanted[-1].as_py()) + 1
        if end - start == len(wanted):
            return slice(start, end)
        return wanted
    return pc.take(wanted, pa.array(numpy.argsort(numbers, kind="stable")))


def _taken(values: Any, positions: Any) -> Any:
    """The values at some positions. More than 2 GB of strings have no common 32-bit offsets."""
    if pa.types.is_string(values.type) and values.nbytes > _MOST_SHORT_TEXTS:
        values = pc.cast(values, pa.large_string())
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return pc.take(values, positions)


def profile_of_last_days(table: ColumnTable, ref: DatasetRef, place: str, days: int) -> Seen:
    """The profile of a table as the dataset of a suite: of its last days, if it has a date column.

    :raises RequestError: the table lacks the date column.
    :raises DatasetError: no row has a date.
    """
    if ref.date_column:
        return profile_of_days(day_rows(table, ref, days), ref, place)
    return _profile(table, ref, place, None)


def profile_of_days(
    of_days: DayRows, ref: DatasetRef, place: str, known: SeenDays | None = None
) -> Seen:
    """The profile of rows with days, to which a column adds the figures of each day when it is
    read.

    :param known: the figures of these and of other days, which are not measured again.
    """
    seen = SeenDays(of_days.column, of_days.rows)
    if known is not None:
        seen = known.on_days(of_days.rows)
    table = of_days.table

    def column(name: str) -> Any:
        values = table.column(name)
        if values.null_count and name not in seen.nulls:
            nulls = ((on, part.null_count) for on, part in of_days.by_day(values))
            seen.nulls[name] = {on: count for on, count in nulls if count}
        family = family_of(table.types[name])
        if family is Family.NUMBER and len(values) and name not in seen.numbers:
            seen.numbers[name] = _numbers_of_days(of_days.by_day(values))
        elif family is Family.TEXT and name not in seen.texts:
            seen.texts[name] = _texts_of_days(of_days.by_day(values))
        return values

    return _profile(replace(table, column=column), ref, place, seen)


def _profile(table: ColumnTable, ref: DatasetRef, place: str, days: SeenDays | None) -> Seen:
    file_format = ref.format if ref.path else None
    profile = profile_of_columns(table, ref.name, place, file_format, ref.masked)
    return Seen(ref.name, profile, days, newest_timestamp(table, profile))


def _texts_of_days(by_day: Iterable[tuple[date, Any]]) -> dict[date, dict[str, int]] | None:
    """The rows with each string on each day; None if there are too many strings for a set."""
    found: set[str] = set()
    counts_of_days = {}
    for on, part in by_day:
        counts = pc.value_counts(texts_of(part).drop_null())
        if len(counts) > MOST_VALUES or len(found) > MOST_VALUES:
            return None
        counts_of_days[on] = {entry["values"]: entry["counts"] for entry in counts.to_pylist()}
        found |= counts_of_days[on].keys()
    return counts_of_days


def _numbers_of_days(by_day: Iterable[tuple[date, Any]]) -> dict[date, tuple[float, float, float]]:
    """The minimum, maximum and mean of numbers on each day that has some."""
    numbers = {}
    for on, part in by_day:
        floats = pc.cast(part, pa.float64(), safe=False)
        if floats.null_count < len(floats):
            ends = pc.min_max(floats)
            numbers[on] = ends["min"].as_py(), ends["max"].as_py(), pc.mean(floats).as_py()
    return numbers


def counted(dates: Any) -> dict[date, int]:
    """The number of rows of each date."""
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(dates).to_pylist()}


def date_column_of(table: ColumnTable, ref: DatasetRef) -> tuple[str, Any]:
    """The name of the date column, and the date of each row as a gate computes it.

    :raises RequestError: the table lacks it.
    :raises DatasetError: no value is a date.
    """
    assert ref.date_column is not None
    for name in table.names:
        if name.lower() == ref.date_column.lower():
            values = table.column(name)
            dates = _dates(values, table.types[name], ref)
            if len(dates) > dates.null_count or len(values) == values.null_count:
                return name, dates
            raise DatasetError(
                f"no string in {name} of {ref.name} is a date like {ref.date_format or ISO}",
                "give the date_format that they have, such as yyyyMMdd, or choose another "
                "date_column",
            )
    message = f"{ref.name} has no column '{ref.date_column}'"
    raise RequestError(message, f"its columns are {', '.join(table.names)}")


def _dates(column: Any, spark_type: str, ref: DatasetRef) -> Any:
    """The date of each value; NULL for a value that is none."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = pc.cast(column, kind)
    if pa.types.is_date(kind):
        return pc.cast(column, pa.date32())
    if family_of(spark_type) is Family.TIME and pa.types.is_string(kind):
        column, kind = moments_of(column), MOMENT
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            zone = ref.time_zone or "UTC"
            column = pc.local_timestamp(pc.cast(column, pa.timestamp("us", zone)))
        return pc.cast(pc.floor_temporal(column, unit="day"), pa.date32())
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or (pa.types.is_integer(kind) and ref.date_format):
        # To read a date takes much longer than to find the rows that have the same.
        texts = pc.dictionary_encode(column if is_text else texts_of(column))
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.combine_chunks()
        read = partial(date_of_text, ref.date_format or ISO)
        dates = [read(text) for text in texts.dictionary.to_pylist()]
        return pa.array(dates, pa.date32()).take(texts.indices)
    message = f"{ref.date_column} of {ref.name} is of type {kind}"
    raise DatasetError(
        message, "suggestions need a column of dates, timestamps or strings, or a date_format"
    )
