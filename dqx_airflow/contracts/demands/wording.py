"""The parts of demands in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from dqx_airflow.diagnostics.listing import listed

Literal: TypeAlias = "str | int | float | bool | None"
"""A value in a contract."""

_MOST_VALUES = 12
_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def literal_text(value: object) -> str:
    """A value as contracts write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def columns_text(columns: Iterable[str]) -> str:
    """`(a, b)`."""
    return f"({', '.join(columns)})"


def values_text(values: tuple[Literal, ...]) -> str:
    """`A, B and 3 more`."""
    return listed(list(map(literal_text, values)), most=_MOST_VALUES)


def percent_text(share: float) -> str:
    """A share as `99.5%`."""
    return f"{round(share * 100, 6):g}%"


def number_text(value: float) -> str:
    """A number without `.0`."""
    return str(int(value)) if float(value).is_integer() else str(value)


def range_text(low: float | None, high: float | None) -> str:
    """`at least 5`, `at most 5`, `1 to 5`."""
    if low is None:
        return f"at most {number_text(high)}" if high is not None else "any"
    if high is None:
        return f"at least {number_text(low)}"
    return f"{number_text(low)} to {number_text(high)}"


def duration_text(seconds: float) -> str:
    """Seconds as `2 hours`, in the largest unit with an integer amount."""
    for unit, length in _UNITS:
        if seconds % length == 0 and seconds:
            count = int(seconds // length)
            return f"{count} {unit if count != 1 else unit[:-1]}"
    return f"{seconds:g} seconds"


def one_line(sql: str) -> str:
    """SQL without its line breaks."""
    return " ".join(sql.split())
