"""Delivery days by the calendar: monthly, or by a cron expression."""

from __future__ import annotations

import math
from calendar import monthrange
from datetime import date, datetime, time, timedelta

from dqx_airflow.contracts.demands import Arrives

_DAY_S = 86_400
_MONTH_S = 31_556_952 // 12
"""A twelfth of a year of 365.2425 days: the length of a month in durations."""


def days_due(demand: Arrives, on: date | None) -> int:
    """The number of days from the last delivery day up to a date, inclusive: one of them must have
    rows.

    Without a schedule, data is due at any time within the interval: a month ends with the same day
    of the next one, or with its last day.

    :param on: the date of the data. Without it, the longest interval counts.
    """
    if on is not None and demand.schedule is not None:
        return (on - _last_run(demand.schedule, on)).days + 1
    months, rest = divmod(demand.interval_s, _MONTH_S)
    if on is not None and rest == 0:
        return (on - _months_before(on, int(months))).days
    return max(1, math.ceil(demand.interval_s / _DAY_S))


def _last_run(cron: str, on: date) -> date:
    """The last day up to a date on which a cron expression runs."""
    from croniter import croniter

    midnight = datetime.combine(on + timedelta(days=1), time.min)
    last: datetime = croniter(cron, midnight, ret_type=datetime).get_prev()
    return last.date()


def _months_before(on: date, months: int) -> date:
    years, month = divmod(on.year * 12 + on.month - 1 - months, 12)
    years = max(years, date.min.year)
    return date(years, month + 1, min(on.day, monthrange(years, month + 1)[1]))
