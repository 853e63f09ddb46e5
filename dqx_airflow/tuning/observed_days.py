"""The last days of a table, observed with Arrow for suggestions: rows, NULL values and numbers of
each day, by its date column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.tuning.column_tables import ColumnTable, texts_of
from dqx_airflow.tuning.suggested import Seen, SeenDays
from dqx_airflow.tuning.table_profile import newest_timestamp, profile_of_columns
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.typed_values import days_before


def profile_of_last_days(table: ColumnTable, ref: DatasetRef, place: str, days: int) -> Seen:
    """The profile of a table as the dataset of a suite: of its last days, if it has a date column.

    :raises RequestError: the table lacks the date column.
    :raises DatasetError: no row has a date.
    """
    seen_days = None
    if ref.date_column:
        table, seen_days = _last_days(table, ref, days)
    file_format = ref.format if ref.path else None
    profile = profile_of_columns(table, ref.name, place, file_format, ref.masked)
    return Seen(ref.name, profile, seen_days, newest_timestamp(table, profile))


def _last_days(table: ColumnTable, ref: DatasetRef, days: int) -> tuple[ColumnTable, SeenDays]:
    """The rows of the last days of a table that have a date, and the figures of each day, which a
    column adds when it is read.

    :raises RequestError: it has no such date column.
    :raises DatasetError: no row has a date.
    """
    date_column, all_dates = date_column_of(table, ref)
    last = pc.max(all_dates).as_py()
    if last is None:
        raise DatasetError(f"no row of {ref.name} has a date in {date_column}")
    wanted = pc.fill_null(pc.greater(all_dates, days_before(last, days)), False)
    dates = pc.filter(all_dates, wanted)
    seen = SeenDays(date_column, dict(sorted(counted(dates).items())))

    def column(name: str) -> Any:
        values = pc.filter(table.column(name), wanted)
        if values.null_count:
            seen.nulls[name] = counted(pc.filter(dates, pc.is_null(values)))
        family = family_of(table.types[name])
        if family is Family.NUMBER and len(values):
            seen.numbers[name] = _numbers_of_days(dates, values)
        elif family is Family.TEXT:
            seen.rare[name] = _share_of_rare(dates, values, seen.rows)
        return values

    return replace(table, rows=sum(seen.rows.values()), column=column), seen


def _share_of_rare(dates: Any, values: Any, rows: Mapping[date, int]) -> Fraction:
    """The largest share of the rows of a day whose strings are on no other day."""
    table = pa.table({"on": dates, "it": texts_of(values)}).drop_null()
    of_values = table.group_by("it").aggregate([("on", "min"), ("on", "max"), ("on", "count")])
    rare = of_values.filter(pc.equal(of_values["on_min"], of_values["on_max"]))
    of_days = rare.group_by("on_min").aggregate([("on_count", "sum")]).to_pylist()
    shares = (Fraction(day["on_count_sum"], rows[day["on_min"]]) for day in of_days)
    return max(shares, default=Fraction(0))


def _numbers_of_days(dates: Any, values: Any) -> dict[date, tuple[float, float, float]]:
    """The minimum, maximum and mean of numbers on each day that has some."""
    table = pa.table({"on": dates, "it": pc.cast(values, pa.float64(), safe=False)}).drop_null()
    by_day = table.group_by("on").aggregate([("it", "min"), ("it", "max"), ("it", "mean")])
    return {row["on"]: (row["it_min"], row["it_max"], row["it_mean"]) for row in by_day.to_pylist()}


def counted(dates: Any) -> dict[date, int]:
    """The number of rows of each date."""
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(dates).to_pylist()}


def date_column_of(table: ColumnTable, ref: DatasetRef) -> tuple[str, Any]:
    """The name of the date column, and the date of each row.

    :raises RequestError: the table lacks it.
    """
    assert ref.date_column is not None
    for name in table.names:
        if name.lower() == ref.date_column.lower():
            return name, _dates(table.column(name), ref)
    message = f"{ref.name} has no column '{ref.date_column}'"
    raise RequestError(message, f"its columns are {', '.join(table.names)}")


def _dates(column: Any, ref: DatasetRef) -> Any:
    """The date of each value, as a gate computes it."""
    kind = column.type
    if pa.types.is_date(kind):
        return pc.cast(column, pa.date32())
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            zone = ref.time_zone or "UTC"
            column = pc.local_timestamp(pc.cast(column, pa.timestamp("us", zone)))
        return pc.cast(pc.floor_temporal(column, unit="day"), pa.date32())
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
    if pa.types.is_string(column.type) and ref.date_format is None:
        try:
            return pc.cast(pc.utf8_slice_codeunits(column, 0, 10), pa.date32())
        except pa.ArrowInvalid as error:
            raise DatasetError(
                f"{ref.date_column} of {ref.name} contains strings that are not dates",
                "write them as 2024-03-01, or choose another date_column",
            ) from error
    message = f"{ref.date_column} of {ref.name} is of type {kind}"
    raise DatasetError(message, "suggestions need a column of dates, timestamps or ISO strings")
