"""The past values of the tunables of a suite, from its history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timezone
from typing import TypeAlias

from dqx_airflow.errors import RequestError
from dqx_airflow.tuning.history import History, TunableChange, timestamp_of

Cut: TypeAlias = datetime | int
"""A time, or the number of an entry: later changes are undone."""


def cut_of(text: str, history: History) -> Cut:
    """The meaning of `--to`: the end of a day in UTC, a time, or the entry with a number or an id.

    :raises RequestError: it is none of these.
    """
    entries, _ = history.read()
    bare = text.removeprefix("#")
    for number, entry in entries:
        if bare == str(number) or (entry.get("id") and entry["id"] == text):
            return number
    try:
        return datetime.combine(date.fromisoformat(text), time.max, timezone.utc)
    except ValueError:
        pass
    timestamp = timestamp_of(text)
    if timestamp is None:
        raise RequestError(
            f"--to {text}: neither a history entry nor a date",
            "write a date as 2024-12-15, a time as 2024-12-15T14:30:00Z, "
            "or the number of an entry that `dql history` shows",
        )
    return timestamp


def values_at(changes: Iterable[TunableChange], cut: Cut) -> dict[str, float]:
    """The values of all tunables that were ever changed, directly after an entry or at a time."""
    kept: dict[str, float] = {}
    undone: dict[str, float] = {}
    in_order = list(changes)
    if isinstance(cut, datetime):
        in_order.sort(key=lambda change: change.timestamp)
    for change in in_order:
        if _is_kept(change, cut):
            kept[change.param] = change.new_value
        else:
            undone.setdefault(change.param, change.old_value)
    return {**undone, **kept}


def _is_kept(change: TunableChange, cut: Cut) -> bool:
    if isinstance(cut, datetime):
        return change.timestamp <= cut
    return change.entry is not None and change.entry <= cut
