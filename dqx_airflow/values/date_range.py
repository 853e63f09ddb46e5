"""Ranges of dates: `2026-01-01..2026-03-31`, inclusive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from dqx_airflow.errors import RequestError

SEPARATOR = ".."
MOST_DATES = 1_000
"""The maximum number of dates in one run."""

_HINT = "write FROM..TO with both dates, such as 2026-01-01..2026-03-31"


def is_range(text: str) -> bool:
    """True for a string that is meant as a range, valid or not."""
    return SEPARATOR in text


def dates_of_range(text: str, read: Callable[[str], date | None]) -> tuple[date, ...]:
    """Every date of a range, in order.

    :param read: returns the date of a bound; None if it is invalid.
    :raises RequestError: it is not a range, ends before it begins, or is too long.
    """
    ends = text.split(SEPARATOR)
    if len(ends) != 2:
        raise RequestError(f"invalid range of dates {text!r}", _HINT)
    for end, name in zip(ends, ("first", "last"), strict=True):
        if not end.strip():
            raise RequestError(f"the range {text!r} has no {name} date", _HINT)
    first, last = (read(end.strip()) for end in ends)
    if first is None or last is None:
        wrong = ends[0] if first is None else ends[1]
        raise RequestError(f"invalid date {wrong.strip()!r} in the range {text!r}", _HINT)
    if last < first:
        raise RequestError(
            f"the range {text!r} ends before it begins",
            f"write the earlier date first: {last.isoformat()}{SEPARATOR}{first.isoformat()}",
        )
    count = (last - first).days + 1
    if count > MOST_DATES:
        raise RequestError(
            f"the range {text!r} has {count:,} dates, at most {MOST_DATES:,} are possible",
            "split it into shorter ranges",
        )
    return tuple(first + timedelta(days=number) for number in range(count))
