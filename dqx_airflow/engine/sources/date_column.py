"""Selects the rows of a date by a column of dates, timestamps or strings.

A date filter compares the bare column with literals, so that Spark can use it to skip partitions,
files and row groups.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from pyspark.sql.types import StructType

from dqx_airflow.datasets.date_forms import dates_in_other_forms
from dqx_airflow.datasets.date_pattern import ISO, date_text
from dqx_airflow.errors import DatasetError
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import Family, family_of, find_column_paths
from dqx_airflow.values import DatasetRef

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_LONGEST_STATISTIC = 32
"""Statistics of longer strings may be truncated."""


@dataclass(frozen=True, slots=True)
class DateColumn:
    """A column with the date of a row.

    :param type: its Spark type.
    :param pattern: the pattern of a date in a string or an integer.
    :param zone: the time zone of the days of timestamps; None for the time zone of the session.
    """

    name: str
    type: str
    pattern: str = ISO
    zone: str | None = None

    @classmethod
    def of(cls, ref: DatasetRef, struct: StructType) -> DateColumn | None:
        """The date column of a dataset; None if it has no dates.

        :raises DatasetError: the column does not exist, or is not of the declared kind.
        """
        if ref.date_column is None:
            return None
        if ref.date_column not in struct.names:
            message = f"dataset '{ref.name}' has no date column '{ref.date_column}'"
            raise DatasetError(message, f"its columns are {', '.join(struct.names)}")
        types = {field.name: field.dataType.simpleString() for field in struct.fields}
        if len(list(find_column_paths(ref.date_column, types))) > 1:
            raise DatasetError(
                f"dataset '{ref.name}': its date column '{ref.date_column}' is both a column "
                "and a field of another column",
                "rename one of them",
            )
        column = cls(
            ref.date_column,
            struct[ref.date_column].dataType.simpleString(),
            ref.date_format or ISO,
            ref.time_zone,
        )
        about = f"the date column '{column.name}' of dataset '{ref.name}' is of type {column.type}"
        if column.is_number and ref.date_format is None:
            raise DatasetError(about, "give the dataset its date_format, such as yyyyMMdd")
        if not (column.is_time or column.is_number or family_of(column.type) is Family.TEXT):
            raise DatasetError(about, "choose a column of dates, timestamps or strings")
        if ref.time_zone is not None and column.type != "timestamp":
            raise DatasetError(about, "remove time_zone: it only applies to timestamp columns")
        if ref.date_format is not None and column.is_timestamp:
            raise DatasetError(about, "remove date_format: it only applies to string columns")
        return column

    @property
    def is_time(self) -> bool:
        return family_of(self.type) is Family.TIME

    @property
    def is_timestamp(self) -> bool:
        return self.is_time and self.type != "date"

    @property
    def is_number(self) -> bool:
        return self.type in _WHOLE_NUMBERS

    def value(self, on: date) -> date | str | int:
        """The value of the column in rows of a date, unless it holds timestamps."""
        if self.type == "date":
            return on
        text = date_text(self.pattern, on)
        return int(text) if self.is_number else text

    def filter(self, dates: Collection[date | None]) -> str:
        """Spark SQL that selects the rows of the dates."""
        name = quote_name(self.name)
        days = _sorted(dates)
        if not self.is_timestamp:
            return f"{name} IN ({', '.join(quote_literal(self.value(on)) for on in days)})"
        return " OR ".join(
            f"({name} >= {self._beginning(first)} AND {name} < {self._beginning(end)})"
            for first, end in _stretches(days)
        )

    def date_of_row(self, dates: Collection[date | None]) -> str:
        """Spark SQL for the date of a row that passed the filter for the dates."""
        name = quote_name(self.name)
        if self.type == "date":
            return name
        # Not to_date(column): it fails on a value that is not a date, and the time zone may differ.
        cases = " ".join(
            f"WHEN {name} {self._comparison(on)} THEN {quote_literal(on)}"
            for on in reversed(_sorted(dates))
        )
        return f"CASE {cases} END"

    def _comparison(self, on: date) -> str:
        """The SQL after a column that separates a date from earlier dates: `= ...` or `>= ...`."""
        if self.is_timestamp:
            return f">= {self._beginning(on)}"
        return f"= {quote_literal(self.value(on))}"

    def moments(self, on: date) -> tuple[str, str]:
        """The first instant of a day, and of the next day, as literals."""
        return self._beginning(on), self._beginning(on + timedelta(1))

    def _beginning(self, on: date) -> str:
        """The first instant of a day as a literal; Spark knows how long the day is in its zone."""
        zone = f" {self.zone}" if self.zone else ""
        kind = "TIMESTAMP_NTZ" if self.type == "timestamp_ntz" else "TIMESTAMP_LTZ"
        return kind + quote_literal(f"{on.isoformat()} 00:00:00{zone}")

    def may_lie(self, on: date, least: Any, most: Any) -> bool:
        """False if no value from `least` to `most`, the statistics of a file, is on the date.

        None is an unknown bound.
        """
        if least is None or most is None:
            return True
        if isinstance(least, datetime):
            # The day of a timestamp depends on the time zone, by at most one day.
            return (least.date() - on).days <= 1 and (on - most.date()).days <= 1
        wanted: Any = None if self.is_timestamp else self.value(on)
        if type(wanted) is not type(least):
            return True
        if isinstance(least, str) and max(len(least), len(most)) >= _LONGEST_STATISTIC:
            return True
        return bool(least <= wanted <= most)

    def is_misspelled(self, on: date, text: str) -> bool:
        """True if a string is a date in another form than the column has, as `2024-3-2` or
        `2024-03-02 00:00:00`: no date would have its rows."""
        return on in self.misspelled_dates(text)

    def misspelled_dates(self, text: str) -> Collection[date]:
        """The dates that a string may be, unless it is one in the form that the column has."""
        if self.is_time or self.is_number:
            return ()
        return dates_in_other_forms(text, self.pattern)

    def is_elsewhere(self, on: date, folder: str) -> bool:
        """True if the value in the name of a partition folder is certainly not the date."""
        if self.is_timestamp:
            return False
        wanted = self.value(on)
        if isinstance(wanted, date):
            try:
                return date.fromisoformat(folder) != wanted
            except ValueError:
                return False
        if isinstance(wanted, int):
            return folder.isdecimal() and int(folder) != wanted
        return folder != wanted and not self.is_misspelled(on, folder)


def _sorted(dates: Collection[date | None]) -> list[date]:
    return sorted(on for on in dates if on)


def _stretches(days: list[date]) -> list[tuple[date, date]]:
    """Consecutive days as ranges: the first day, and the day after the last."""
    ranges: list[tuple[date, date]] = []
    for on in days:
        after = on + timedelta(1)
        if ranges and ranges[-1][1] == on:
            ranges[-1] = (ranges[-1][0], after)
        else:
            ranges.append((on, after))
    return ranges


def require_one_spelling(
    ref: DatasetRef,
    column: DateColumn | None,
    dates: Collection[date | None],
    texts: Collection[object],
) -> None:
    """Rejects a partition that is a requested date in another form than the date column has.

    :param texts: the values of the partitions.
    :raises DatasetError: there is one.
    """
    if column is None:
        return
    misspelled = {
        on: text for text in texts if isinstance(text, str) for on in column.misspelled_dates(text)
    }
    for on in dates:
        if on is not None and on in misspelled:
            raise DatasetError(
                f"dataset '{ref.name}': the partition {column.name}={misspelled[on]} is {on} in "
                f"another form than {column.value(on)}: no date has its rows",
                f"rewrite it as {column.name}={column.value(on)}",
            )
