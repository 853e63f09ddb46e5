"""Frequencies in contracts, such as `daily` or a cron expression, as their longest interval."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from dqx_airflow.contracts.dialects.durations import (
    DAY_S,
    HOUR_S,
    MINUTE_S,
    UNITS_S,
    YEAR_S,
    seconds_of,
)

_WORDS: dict[str, float] = {
    **{f"{unit}ly": UNITS_S[unit] for unit in ("hour", "week", "month", "quarter", "year")},
    **{"daily": DAY_S, "annually": YEAR_S},
}
"""The words for intervals, with their seconds."""
_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""The cron expressions of shorthands."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Five years from a Sunday on contain every effect of the calendar on a cron expression.
_FIRST_DAY = date(2023, 1, 1)
_DAYS = 5 * 366
_SAMPLED_RUNS = 60


@dataclass(frozen=True, slots=True)
class Frequency:
    """The frequency of deliveries: the maximum seconds between two of them, and the cron expression
    that schedules them, if any."""

    interval_s: float
    schedule: str | None = None


def frequency_of(text: str) -> Frequency | None:
    """The frequency of an interval, or of a cron expression; None for anything else."""
    seconds = interval_s(text)
    if seconds is not None:
        return Frequency(seconds)
    of_cron = cron_interval_s(text)
    return Frequency(of_cron, schedule_of(text)) if of_cron is not None else None


def interval_s(text: str) -> float | None:
    """The seconds of `daily`, `15 minutes`, `every 2 hours`, `every day` or `PT1H`; None for
    anything else."""
    words = " ".join(text.lower().split())
    if words in _WORDS:
        return _WORDS[words]
    counted = words.removeprefix("every ")
    if counted != words and counted in UNITS_S:
        return UNITS_S[counted]
    return seconds_of(counted) or None


def cron_interval_s(text: str) -> float | None:
    """The longest time between two runs of a cron expression; None if it is invalid.

    >>> cron_interval_s("0 6 * * 1-5") == 3 * DAY_S  # from Friday to Monday
    True
    """
    cron = _Cron.parsed(schedule_of(text))
    if cron is None:
        return _interval_of_other(text)
    run_days = [n for n in range(_DAYS) if cron.runs_on(_FIRST_DAY + timedelta(days=n))]
    if len(run_days) < 2:
        return None
    times = cron.times
    longest_gap = max(later - earlier for earlier, later in pairwise(run_days))
    between_days = longest_gap * DAY_S + times[0] - times[-1]
    within_a_day = [later - earlier for earlier, later in pairwise(times)]
    return max([*within_a_day, between_days])


@dataclass(frozen=True, slots=True)
class _Cron:
    """The values of the fields of a cron expression; weekdays are counted from Sunday.

    `needs_both`: a day must be one of the days and one of the weekdays. As in cron, one of the two
    is enough if both are restricted.
    """

    minutes: set[int]
    hours: set[int]
    days: set[int]
    months: set[int]
    weekdays: set[int]
    needs_both: bool

    @classmethod
    def parsed(cls, text: str) -> _Cron | None:
        """The expression in a text; None if it is invalid."""
        fields = text.split()
        if len(fields) != 5:
            return None
        minutes = _values(fields[0], 0, 59)
        hours = _values(fields[1], 0, 23)
        days = _values(fields[2], 1, 31)
        months = _values(fields[3], 1, 12, _MONTHS)
        weekdays = _values(fields[4], 0, 7, _WEEKDAYS)
        if not (minutes and hours and days and months and weekdays):
            return None
        from_sunday = {weekday % 7 for weekday in weekdays}
        is_any = fields[2][0] in "*?" or fields[4][0] in "*?"
        return cls(minutes, hours, days, months, from_sunday, is_any)

    @property
    def times(self) -> list[int]:
        """The seconds of a day at which it runs, in order."""
        return sorted(
            hour * HOUR_S + minute * MINUTE_S for hour in self.hours for minute in self.minutes
        )

    def runs_on(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        is_day = day.day in self.days
        is_weekday = day.isoweekday() % 7 in self.weekdays
        return (is_day and is_weekday) if self.needs_both else (is_day or is_weekday)


def schedule_of(text: str) -> str:
    """A cron expression without shorthands: `0 0 1 * *` for `@monthly`."""
    return _SHORTHANDS.get(text.strip().lower(), text.strip())


def _interval_of_other(text: str) -> float | None:
    """The longest time between two of the next runs of a cron expression that only croniter parses:
    with `L`, `#` or `W`. None if it is invalid."""
    if re.search(r"[lw#]", text.lower()) is None:
        return None
    from croniter import CroniterBadDateError, CroniterError, croniter

    try:
        runs = croniter(schedule_of(text), datetime.combine(_FIRST_DAY, time.min))
        times: list[datetime] = [runs.get_next(datetime) for _ in range(_SAMPLED_RUNS)]
    except (CroniterError, CroniterBadDateError, ValueError, TypeError):
        return None
    return max((later - earlier).total_seconds() for earlier, later in pairwise(times))


def _values(field: str, least: int, most: int, names: tuple[str, ...] = ()) -> set[int] | None:
    """The values of a field of a cron expression; None if it is invalid."""
    values: set[int] = set()
    for part in field.lower().split(","):
        bounds, _, step = part.partition("/")
        low, _, high = bounds.partition("-")
        if bounds in ("*", "?"):
            first, last = least, most
        else:
            first = _value(low, names)
            last = _value(high, names) if high else (most if step else first)
        if not least <= first <= last <= most or not (step or "1").isdigit() or step == "0":
            return None
        values.update(range(first, last + 1, int(step or 1)))
    return values


def _value(text: str, names: tuple[str, ...]) -> int:
    """A number or a name as a number; -1 for anything else."""
    if text in names:
        return names.index(text) + (1 if names is _MONTHS else 0)
    return int(text) if text.isdigit() and len(text) <= 2 else -1
