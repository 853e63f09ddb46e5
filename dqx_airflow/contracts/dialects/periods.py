"""Durations and frequencies, as contracts write them.

A month is 30.436875 days and a year is 365.2425 days, the means of the calendar: twelve months are
a year, and no limit depends on the current date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from math import isfinite

from dqx_airflow.contracts.document import Node, Scalar, show_path
from dqx_airflow.diagnostics.diagnostic import Diagnostic, nearest

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
YEAR_S = 31_556_952
MONTH_S = YEAR_S // 12

_UNITS: dict[str, float] = {
    **dict.fromkeys(("ms", "millis", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE_S),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR_S),
    **dict.fromkeys(("d", "day", "days"), DAY_S),
    **dict.fromkeys(("w", "week", "weeks"), WEEK_S),
    **dict.fromkeys(("mo", "month", "months"), MONTH_S),
    **dict.fromkeys(("quarter", "quarters"), 3 * MONTH_S),
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), YEAR_S),
}
_NUMBER = r"(\d+(?:[.,]\d+)?)"
_PART = re.compile(rf"\s*{_NUMBER}[\s_]*([A-Za-z]+)[\s_]*")
_ISO = re.compile(
    rf"P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?(?<![PT])",
    re.IGNORECASE,
)
_ISO_UNITS = (YEAR_S, MONTH_S, WEEK_S, DAY_S, HOUR_S, MINUTE_S, 1)
_EXAMPLES = "write it as 24h, '7 days' or PT24H"


def seconds_of(text: str) -> float | None:
    """The seconds of a duration, simple or of ISO 8601; None if the text is not one.

    >>> seconds_of("7_years") == seconds_of("P7Y") == 7 * YEAR_S
    True
    """
    written = text.strip()
    if match := _ISO.fullmatch(written):
        parts = zip(match.groups(), _ISO_UNITS, strict=True)
        return _finite(sum(_number(count) * unit for count, unit in parts if count))
    total, position = 0.0, 0
    while position < len(written):
        part = _PART.match(written, position)
        # A month to some, a minute to others.
        if part is None or part[2] == "M" or part[2].lower() not in _UNITS:
            return None
        total += _number(part[1]) * _UNITS[part[2].lower()]
        position = part.end()
    return _finite(total) if written else None


def duration_s(node: Node, report: Callable[[Diagnostic], None]) -> float | None:
    """The seconds of the duration at a node; an invalid one is reported, with what to type."""
    text = node.text if isinstance(node, Scalar) else ""
    seconds = seconds_of(text)
    if seconds is None:
        message = f"{show_path(node.path)}: '{text}' is not a duration"
        report(Diagnostic(message, node.span, "E410", help=_hint(text.strip())))
    return seconds


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _finite(seconds: float) -> float | None:
    return seconds if isfinite(seconds) else None


def _hint(text: str) -> str:
    if re.fullmatch(_NUMBER, text):
        return (
            f"{text} has no unit: write {text}h or PT{text}H for hours, "
            f"{text}d or P{text}D for days"
        )
    if match := re.fullmatch(rf"{_NUMBER}\s*M", text):
        return f"write '{match[1]} months' or '{match[1]} minutes'"
    if text[:1].upper() == "P":
        return "ISO 8601 writes P1Y2M3DT4H5M6S, with a T before hours, minutes and seconds"
    if match := re.fullmatch(rf"{_NUMBER}[\s_]*([A-Za-z]+)", text):
        near = nearest(match[2].lower(), _UNITS)
        if near is not None and match[2].lower() not in _UNITS:
            return f"did you mean '{match[1]} {near}'?"
    return _EXAMPLES


_WORDS: dict[str, float] = {
    "hourly": HOUR_S,
    "daily": DAY_S,
    "weekly": WEEK_S,
    "monthly": MONTH_S,
    "quarterly": 3 * MONTH_S,
    "yearly": YEAR_S,
    "annually": YEAR_S,
}
_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Five years from a Sunday on contain every effect of the calendar on a cron expression.
_FIRST_DAY, _DAYS = date(2023, 1, 1), 5 * 366
_SAMPLED_RUNS = 60


CADENCES = {"week": 7, "month": 1, "quarter": 3, "half": 6, "semi": 6, "year": 12, "annual": 12}
"""Prefixes of the cadences of breaking changes, with the months of each; for a week, its days."""


def interval_s(text: str) -> float | None:
    """The seconds of `daily`, `15 minutes`, `every 2 hours` or `PT1H`; None for anything else."""
    word = text.strip().lower()
    return _WORDS.get(word) or seconds_of(re.sub(r"^every\s+(?=\d)", "", word)) or None


def cron_interval_s(text: str) -> float | None:
    """The longest time between two runs of a cron expression; None if it is invalid.

    >>> cron_interval_s("0 6 * * 1-5") == 3 * DAY_S  # from Friday to Monday
    True
    """
    fields = schedule_of(text).split()
    if len(fields) != 5:
        return _interval_of_other(text)
    minutes, hours = _values(fields[0], 0, 59), _values(fields[1], 0, 23)
    days, months = _values(fields[2], 1, 31), _values(fields[3], 1, 12, _MONTHS)
    weekdays = _values(fields[4], 0, 7, _WEEKDAYS)
    if not (minutes and hours and days and months and weekdays):
        return _interval_of_other(text)
    from_sunday = {weekday % 7 for weekday in weekdays}
    times = sorted(hour * HOUR_S + minute * MINUTE_S for hour in hours for minute in minutes)
    any_day, any_weekday = fields[2][0] in "*?", fields[4][0] in "*?"

    def runs_on(day: date) -> bool:
        on_day, on_weekday = day.day in days, day.isoweekday() % 7 in from_sunday
        # As in cron: if both are restricted, one of them is enough.
        is_day = on_day and on_weekday if any_day or any_weekday else on_day or on_weekday
        return day.month in months and is_day

    run_days = [n for n in range(_DAYS) if runs_on(_FIRST_DAY + timedelta(days=n))]
    if len(run_days) < 2:
        return None
    within = [later - earlier for earlier, later in pairwise(times)]
    gap = max(later - earlier for earlier, later in pairwise(run_days))
    return max([*within, gap * DAY_S + times[0] - times[-1]])


def schedule_of(text: str) -> str:
    """A cron expression without shorthands: `0 0 1 * *` for `@monthly`."""
    return _SHORTHANDS.get(text.strip().lower(), text.strip())


def _interval_of_other(text: str) -> float | None:
    """The longest time between two of the next runs of an expression that only croniter parses:
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
