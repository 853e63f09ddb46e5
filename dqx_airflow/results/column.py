"""A column of a table of the results store: its name, type, meaning, and source, and the field that
it fills when it is read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from arro3.core import DataType, Field

from dqx_airflow.values import FailingRow, GateReport, MetricValue, Verdict
from dqx_airflow.values.exact import exact_text, is_decimal, nearest_float, parse_exact

Row: TypeAlias = Mapping[str, Any]

TEXT = DataType.string()

TEXTS = DataType.list(Field("item", TEXT))

WHOLE = DataType.int64()

NUMBER = DataType.float64()

TRUTH = DataType.bool()

DATE = DataType.date32()

TIME = DataType.timestamp("us", tz="UTC")


class Source(NamedTuple):
    """The source of a row: a report, one of its verdicts, one of the failing rows of that; for a
    verdict of its shadow, the name of the shadow."""

    report: GateReport
    position: int = 0
    verdict: Verdict | None = None
    number: int = 0
    failing: FailingRow | None = None
    shadow: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `get` returns its value for a row of a report; None if something else writes it.

    `fills` is the field of `Verdict` that it fills when it is read, `read` returns the value of
    that field for a row: the value of the column itself if it is None.
    """

    name: str
    type: DataType
    meaning: str
    get: Callable[[Source], Any] | None = None
    fills: str | None = None
    read: Callable[[Row], Any] | None = None

    def field_value(self, row: Row) -> Any:
        """The value of the field that the column fills."""
        return row.get(self.name) if self.read is None else self.read(row)


def written(columns: tuple[Column, ...], source: Source) -> dict[str, Any]:
    """A row as it is written."""
    return {column.name: column.get(source) for column in columns if column.get is not None}


def at_path(path: str) -> Callable[[Source], Any]:
    """The value at a path of attributes, `verdict.span.line`; None if one of them is None."""
    names = path.split(".")

    def get(source: Source) -> Any:
        value: Any = source
        for name in names:
            if value is None:
                return None
            value = getattr(value, name)
        return value

    return get


def field_column(
    name: str,
    type: DataType,
    meaning: str,
    make: Callable[[Any], Any] | None = None,
    *,
    otherwise: Any = None,
) -> Column:
    """A column for the field of `Verdict` with the same name.

    :param make: converts the column's value to the field's.
    :param otherwise: the field's value if the column is NULL or missing.
    """

    def read(row: Row) -> Any:
        value = row.get(name)
        return otherwise if value is None else make(value) if make else value

    def get(source: Source) -> Any:
        value = getattr(source.verdict, name)
        return value.value if isinstance(value, Enum) else value

    return Column(name, type, meaning, get, name, read)


def as_utc(at: datetime) -> datetime:
    """The time with `timezone.utc` itself; one without a time zone is in UTC."""
    if at.tzinfo is None:
        return at.replace(tzinfo=timezone.utc)
    return at.astimezone(timezone.utc)


_INTEGER, _DECIMAL, _FRACTION = "integer", "decimal", "fraction"

_FLOAT, _STRING = "number", "text"

_KINDS = "`integer`, `decimal`, `fraction` (such as `1/3`), `number` (a float) or `text`"


def _split(value: MetricValue) -> tuple[float | None, str | None, str | None]:
    """A value as a double, as text, and its kind."""
    if value is None:
        return None, None, None
    if isinstance(value, str):
        return None, value, _STRING
    if isinstance(value, float):
        return value, repr(value), _FLOAT
    near = nearest_float(value)
    number = near if math.isfinite(near) else None
    if isinstance(value, Fraction):
        return number, exact_text(value), _DECIMAL if is_decimal(value) else _FRACTION
    return number, str(int(value)), _INTEGER


def value_from_row(row: Row, name: str) -> MetricValue:
    """The original value, from its columns of text and kind."""
    text, kind = row.get(f"{name}_text"), row.get(f"{name}_kind")
    if text is None or kind is None:
        return None
    if kind in (_INTEGER, _DECIMAL, _FRACTION):
        return parse_exact(text)
    return float(text) if kind == _FLOAT else str(text)


def value_columns(name: str, meaning: str) -> tuple[Column, ...]:
    """A value takes three columns: a double for charts, the exact value as text, and its kind.

    A double alone would lose the difference between 1 and 1.0, integers above 2**53, and dates.
    """

    def part(number: int) -> Callable[[Source], Any]:
        return lambda source: _split(getattr(source.verdict, name))[number]

    return (
        Column(name, NUMBER, meaning, part(0), name, lambda row: value_from_row(row, name)),
        Column(f"{name}_text", TEXT, f"`{name}`: exactly, as a string", part(1)),
        Column(f"{name}_kind", TEXT, f"`{name}`: {_KINDS}", part(2)),
    )
