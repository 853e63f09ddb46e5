"""The rows of a dataset on a day and on the days before it, as a gate reads them, without Spark."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.contracts.drafting import ObservedTable
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.plan.in_memory.table import Table, value_of
from dqx_airflow.tuning import column_tables, observed_days, table_profile
from dqx_airflow.values import DatasetRef

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DayRows:
    """The rows of a dataset on a date, and on the days before it, by date. Without a date column
    all rows belong to every date, by None.

    Days without rows are among them. `rows` is the number of rows of the date, more than were read
    if these are a sample. `seen` is the profile of what was read.
    """

    ref: DatasetRef
    tables: Mapping[date | None, Table]
    rows: int
    seen: ObservedTable

    def is_sample(self, on: date) -> bool:
        """Whether only some rows of the date are here."""
        return len(self.on(on).rows) < self.rows

    def judged(self, on: date) -> str:
        """How many rows of the date are here, and of how many they are a sample."""
        return f"{len(self.on(on).rows):,} of {self.rows:,} rows"

    def on(self, *days: date) -> Table:
        """The rows of some days; all of a dataset without dates."""
        wanted = dict.fromkeys(days) if self.ref.date_column else (None,)
        rows = tuple(row for day in wanted if day in self.tables for row in self.tables[day].rows)
        return replace(next(iter(self.tables.values())), rows=rows)


def read_days(ref: DatasetRef, on: date, *, days: int, most: int, seed: int = 0) -> DayRows:
    """The rows of a dataset as a gate reads them, without Spark.

    :param days: how many days before the date are wanted; those beyond `most` rows in all are not
        read.
    :param most: the number of rows above which the rows of the date are sampled.
    :raises RequestError: only Spark can read them.
    :raises DatasetError: they cannot be read.
    """
    reasons = {
        "it has a filter": ref.filter,
        "it has a declared schema": ref.schema,
        "it is not a path": ref.path is None,
        f"its format is {ref.format}": ref.path and ref.format not in column_tables.FORMATS,
    }
    why = [reason for reason, is_so in reasons.items() if is_so]
    if ref.path is None or why:
        raise RequestError(
            f"dataset '{ref.name}' can only be read with Spark: {', and '.join(why)}",
            f"add --dataset '{ref.name}=PATH?date_column=COLUMN', its rows as Parquet or Delta, "
            "or let `dql mutate` read it with Spark by --connection 'local[*]'",
        )

    read = partial(days_of, ref=ref, on=on, days=days, most=most, seed=seed)
    version = ref.version if ref.version is not None else ref.timestamp
    return column_tables.read_files(ref.path, ref.format, read, ref.options, version)


def days_of(
    table: column_tables.ColumnTable, ref: DatasetRef, on: date, *, days: int, most: int, seed: int
) -> DayRows:
    """The rows of a dataset as for `read_days`, from its columns."""
    places: dict[date | None, Any] = {None: pa.array(range(table.rows), pa.int64())}
    column = None
    if ref.date_column:
        column, dates = observed_days.date_column_of(table, ref)
        counts = observed_days.counted(dates)
        wanted = [on]
        while len(wanted) <= days and sum(counts.get(day, 0) for day in wanted) <= most:
            wanted.append(on - timedelta(days=len(wanted)))
        places = {day: pc.indices_nonzero(pc.equal(dates, day)) for day in wanted}
        if len(places) > 1 and sum(map(len, places.values())) > most:
            places.popitem()
    newest = next(iter(places))
    rows = len(places[newest])
    if rows > most:
        chosen = random.Random(seed).sample(range(rows), most)  # noqa: S311
        places[newest] = places[newest].take(pa.array(sorted(chosen)))
    chosen_rows = pa.concat_arrays([*places.values()])
    columns = {name: table.column(name).take(chosen_rows) for name in table.names}
    part = replace(table, rows=len(chosen_rows), column=columns.__getitem__)
    values = {name: _values_of(column, table.types[name]) for name, column in columns.items()}
    whole = Table.of_columns(values, table.types)
    unread, tables = iter(whole.rows), {}
    for day, found in places.items():
        tables[day] = replace(whole, rows=tuple(next(unread) for _ in found))
    seen = table_profile.profile_of_columns(part, ref.name, ref.location)
    return DayRows(replace(ref, date_column=column), tables, rows, seen)


def _values_of(column: Any, spark_type: str) -> list[Any]:
    """The values of a column in Python; strings that stand for another type are converted."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("us", column.type.tz), safe=False)
    is_read = pa.types.is_string(column.type) and family_of(spark_type) is not Family.TEXT
    values = column.to_pylist()
    return [value_of(it, spark_type) if is_read and it is not None else it for it in values]
