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


def of_suite(name: str, gate: str | None) -> list[str]:
    """The runs of a suite, in any gate or in one."""
    return [equals("suite", name), *([equals("gate", gate)] if gate is not None else [])]


def literal(value: str | date) -> str:
    """A string, whatever it contains, or a date."""
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'"
