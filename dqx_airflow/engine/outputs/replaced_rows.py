"""The rows that a promotion replaces in its target, as Spark SQL and by value, and their
replacement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.engine.outputs.promoted_slices import Bounds, Region, Slice
from dqx_airflow.engine.scan.frames import rows_of
from dqx_airflow.engine.sources.dataset import OpenDataset
from dqx_airflow.errors import DqxError
from dqx_airflow.metrics.sql import quote_literal, quote_name

_NO_VALUES = ("struct", "array", "map", "binary", "variant", "interval")
_WITH_STATISTICS = ("string", "tinyint", "smallint", "int", "bigint", "date")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_RECORDED: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("smallint", "int", "bigint"), re.compile(r"0|-?[1-9]\d{0,17}")),
    "string": re.compile(r".*", re.DOTALL),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "boolean": re.compile("true|false"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,15}\+00:00"),
}
"""How the records of a table have values of a type: in its canonical form."""
_IN_LOGS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "string": str,
    "date": date.fromisoformat,
    "boolean": "true".__eq__,
    "decimal": Decimal,
}
"""Values of types that a log can be searched for."""


@dataclass
class RefusedPromotionError(DqxError):
    """The target rejects the rows, and would reject them again."""


@dataclass(frozen=True)
class ReplacedRows:
    """The rows of a date, of a slice, of both, or all of a dataset and of its target."""

    spark: SparkSession
    dataset: OpenDataset
    slice: Slice

    @property
    def on(self) -> date | None:
        """The date that is replaced; None if the dataset has no dates."""
        return self.slice.on

    def frame(self) -> DataFrame:
        """The rows that go to the target.

        A row whose date cannot be read is validated with every date, and replaced with none: it
        stays behind, and the numbers of rows then differ.
        """
        frame = rows_of(self.dataset, self.on or date.min)
        return frame if self.of_date is None else frame.where(self.of_date)

    @property
    def of_date(self) -> str | None:
        """The rows of the date, as Spark SQL; None if the dataset has no dates."""
        if self.dataset.dates is None or self.on is None:
            return None
        return self.dataset.dates.filter({self.on})

    @property
    def of_slice(self) -> str | None:
        """The rows with the values of the slice, as Spark SQL; None if it has none."""
        parts = []
        for name, text in self.canonical.items():
            # The spaces at the end of char(n) may or may not be there.
            column = quote_name(name)
            column = f"rtrim({column})" if self.dataset.char_type(name) else column
            parts.append(f"{column} <=> CAST({quote_literal(text)} AS {self._kind(name)})")
        return " AND ".join(parts) or None

    @property
    def condition(self) -> str | None:
        """The rows replaced in the target, as Spark SQL; None if it is everything."""
        parts = [f"({part})" for part in (self.of_date, self.of_slice) if part is not None]
        return " AND ".join(parts) or None

    @property
    def values(self) -> dict[str, Any]:
        """The values of the slice, as the log of a target has them, as far as they can be
        compared with it."""
        kinds = {name: self._kind(name).partition("(")[0] for name in self.canonical}
        return {
            name: _IN_LOGS[kind](self.canonical[name])
            for name, kind in kinds.items()
            if kind in _IN_LOGS and not self.dataset.char_type(name)
        }

    @property
    def date_column(self) -> str:
        """The column with the date of a row."""
        assert self.dataset.dates is not None
        return self.dataset.dates.name

    @property
    def date_value(self) -> date | str | int:
        """The date as a value of that column."""
        assert self.dataset.dates is not None
        assert self.on is not None
        return self.dataset.dates.value(self.on)

    @cached_property
    def canonical(self) -> dict[str, str]:
        """The values of the slice, in the canonical form of their type, by column.

        :raises RefusedPromotionError: a column is missing, or one is not a value of its type.
        """
        found = {}
        for name, text in self.slice.values:
            if name not in self.dataset.struct.names:
                advice = did_you_mean(name, self.dataset.struct.names)
                raise RefusedPromotionError(
                    f"promote_slice has the column '{name}', which is not in the dataset",
                    advice or f"available: {', '.join(self.dataset.struct.names)}",
                )
            value = self.canonical_of(name, text)
            if value is None:
                raise RefusedPromotionError(
                    f"promote_slice: {text!r} is not a value of '{name}' ({self._kind(name)})"
                )
            found[name] = value
        return found

    @cached_property
    def region(self) -> Region:
        """The rows that are replaced, by value."""
        day = {} if self.of_date is None else {self.date_column: self.day}
        return Region.of({**day, **self.canonical})

    @cached_property
    def day(self) -> Bounds:
        """What the date covers in the date column: a value, or moments."""
        column = self.dataset.dates
        assert column is not None
        assert self.on is not None
        if not column.is_timestamp:
            return str(column.value(self.on))
        if column.type == "timestamp_ntz":
            return f"{self.on}T00:00:00", f"{self.on + timedelta(1)}T00:00:00"
        moments = (f"unix_micros({moment})" for moment in column.moments(self.on))
        (row,) = self.spark.sql(f"SELECT {', '.join(moments)}").collect()
        return _moment(row[0]) or "", _moment(row[1]) or ""

    def check_values(self) -> None:
        """Rejects a slice by a missing column or by a value of another type, and dates that a
        target would not have as the dataset has them."""
        dates = self.dataset.dates
        if self.of_date is not None and dates is not None and not dates.is_timestamp:
            name, text = self.date_column, str(self.date_value)
            char = self.dataset.char_type(name)
            if " collate " in self._kind(name) or char not in (None, f"char({len(text)})"):
                raise RefusedPromotionError(
                    f"its date column '{name}' is {char or self._kind(name)}, which compares "
                    f"{text!r} with other strings",
                    "read the dataset from a table whose date column is a date, or a plain string",
                )
        _ = self.canonical  # rejects what is not a value of its column

    def canonical_of(self, name: str, text: str, *, is_recorded: bool = False) -> str | None:
        """A string in the canonical form of the type of a column; None for what is not a value of
        it, or cannot be compared."""
        kind = self._kind(name) if name in self.dataset.struct.names else _NO_VALUES[0]
        if kind.startswith(_NO_VALUES) or " collate " in kind:
            return None
        if (char := self.dataset.char_type(name)) is not None:
            return text.rstrip(" ") if len(text.rstrip(" ")) <= int(char[5:-1]) else None
        if is_recorded and kind in _RECORDED and _RECORDED[kind].fullmatch(text):
            return text
        value = f"try_cast({quote_literal(text)} AS {kind})"
        if kind in ("float", "double"):
            value = f"{value} + CAST(0 AS {kind})"  # zero has no sign
        if kind == "timestamp":
            value = f"unix_micros({value})"
        found: str | None = self.spark.sql(f"SELECT CAST({value} AS string)").collect()[0][0]
        return _moment(int(found)) if found is not None and kind == "timestamp" else found

    def _kind(self, name: str) -> str:
        """The type of a column."""
        return str(self.dataset.struct[name].dataType.simpleString())

    def has_statistics(self, name: str) -> bool:
        """Whether the log keeps the extremes of a column."""
        return self._kind(name) in _WITH_STATISTICS


def _moment(micros: int) -> str | None:
    """A moment as an ISO string in UTC; None outside of the years of Python."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat()
    except OverflowError:
        return None
