"""Conditions on the rows of a results store, in SQL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date


def equals(column: str, value: str | date) -> str:
    """The column has this value."""
    return f'"{column}" = {literal(value)}'


def is_in(column: str, values: Iterable[str]) -> str:
    """The column has one of these values."""
    return f'"{column}" IN ({", ".join(sorted(set(map(literal, values))))})'


def of_dates(since: date | None, until: date | None) -> list[str]:
    """The data is of these days, the first and the last included; None is no limit."""
    return [
        *([f'"dataset_date" >= {literal(since)}'] if since else []),
        *([f'"dataset_date" <= {literal(until)}'] if until else []),
    ]


def of_instance(map_index: int) -> str:
    """The runs of an instance of a mapped gate."""
    ending = f"[{map_index}]"
    return f'right("scheduler_run", {len(ending)}) = {literal(ending)}'


def of_suite(name: str, gate: str | None, map_index: int | None = None) -> list[str]:
    """The runs of a suite, in any gate or in one, or in an instance of it."""
    return [
        equals("suite", name),
        *([equals("gate", gate)] if gate is not None else []),
        *([of_instance(map_index)] if map_index is not None else []),
    ]


def literal(value: str | date) -> str:
    """A string, whatever it contains, or a date."""
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'"
