"""The ends of periods that contracts give in days, which may be longer than the calendar."""

from __future__ import annotations

from datetime import date, timedelta


def end_of_period(begin: date, days: int) -> date:
    """The date `days` later; the first or last date there is, if the calendar ends before.

    >>> end_of_period(date(2026, 1, 1), 90).isoformat()
    '2026-04-01'
    """
    try:
        return begin + timedelta(days=days)
    except OverflowError:
        return date.max if days > 0 else date.min
