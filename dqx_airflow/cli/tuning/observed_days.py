"""The contents of the days of a table, observed with Arrow while its columns are read one by
one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.cli.contract.observation import ColumnTable, observed
from dqx_airflow.contracts.drafting import ObservedTable
from dqx_airflow.errors import DatasetError, RequestError
from dqx_airflow.tuning.suggested import Seen, SeenDays
from dqx_airflow.values import DatasetRef


def observer(ref: DatasetRef, place: str, days: int) -> Callable[[ColumnTable], Seen]:
    """Observes a table as the dataset of a suite: its last days, if it has a date column."""

    def look(table: ColumnTable) -> Seen:
        days_seen = _Days.of(table, ref, days) if ref.date_column else None
        observed_rows = days_seen.table(table) if days_seen else table
        observed_table = observed(observed_rows, ref.name, place, ref.format if ref.path else None)
        return Seen(
            ref.name,
            observed_table,
            days_seen.seen if days_seen else None,
            _newest(observed_rows, observed_table),
        )

    return look


@dataclass(slots=True)
class _Days:
    """The date of each row, and the observed dates. Rows without a date are left out."""

    column: str
    dates: Any
    wanted: Any
    rows: dict[date, int]
    nulls: dict[str, dict[date, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: ColumnTable, ref: DatasetRef, days: int) -> _Days:
        assert ref.date_column is not None
        column = next(
            (name for name in table.names if name.lower() == ref.date_column.lower()), None
        )
        if column is None:
            raise RequestError(
                f"{ref.name} has no column '{ref.date_column}'",
                f"its columns are {', '.join(table.names)}",
            )
        dates = _dates(table.column(column), ref)
        last = pc.max(dates).as_py()
        if last is None:
            raise DatasetError(f"no row of {ref.name} has a date in {column}")
        wanted = pc.fill_null(pc.greater(dates, last - timedelta(days=days)), False)
        wanted_dates = pc.filter(dates, wanted)
        return cls(column, wanted_dates, wanted, dict(sorted(_counted(wanted_dates).items())))

    @property
    def seen(self) -> SeenDays:
        return SeenDays(self.column, self.rows, self.nulls)

    def table(self, whole: ColumnTable) -> ColumnTable:
        """The rows of these dates. The positions of NULL are recorded while a column is read."""

        def column(name: str) -> Any:
            wanted_values = pc.filter(whole.column(name), self.wanted)
            if wanted_values.null_count:
                self.nulls[name] = _counted(pc.filter(self.dates, pc.is_null(wanted_values)))
            return wanted_values

        return replace(whole, rows=sum(self.rows.values()), column=column)


def _counted(dates: Any) -> dict[date, int]:
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(dates).to_pylist()}


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
                f"{ref.date_column} of {ref.name} contains strings that are not dates: {error}",
                "write them as 2024-03-01, or choose another date_column",
            ) from error
    raise DatasetError(
        f"{ref.date_column} of {ref.name} is of type {kind}",
        "suggestions need a column of dates, timestamps or ISO strings",
    )


def _newest(table: ColumnTable, observed_table: ObservedTable) -> datetime | None:
    """The newest timestamp of the clock column, in UTC; None if there is none."""
    if observed_table.clock is None or "timestamp" not in table.types[observed_table.clock]:
        return None
    newest = pc.max(table.column(observed_table.clock)).as_py()
    if isinstance(newest, str):
        newest = datetime.fromisoformat(newest.replace("Z", "+00:00"))
    if not isinstance(newest, datetime):
        return None
    return newest.replace(tzinfo=newest.tzinfo or timezone.utc).astimezone(timezone.utc)
