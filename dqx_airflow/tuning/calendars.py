"""Recurring days, as profiles write them: weekdays, month ends, nth weekdays, holidays."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from dqx_airflow.dql import nodes
from dqx_airflow.dql.dates import MONTHS, WEEKDAYS
from dqx_airflow.errors import RequestError

_MONTH_NAMES = tuple(MONTHS)
_LONGEST_END = 3


@dataclass(frozen=True, slots=True)
class Period:
    """A range of days in the syntax of a profile: `from` and `to`."""

    title: str
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class Calendar:
    """Recurring days. `text` names them in a sentence; `holds` decides which they are."""

    name: str
    text: str
    periods: tuple[Period, ...]
    holds: Callable[[date], bool]


def calendars(holidays: Mapping[date, str] | None = None) -> tuple[Calendar, ...]:
    """All recurring days among which false alarms are searched, simple ones first."""
    return (
        *_weekdays(),
        *_months_turns(),
        *_nth_weekdays(),
        *([_holidays(holidays)] if holidays else []),
    )


def is_weekly(profile: nodes.Profile) -> bool:
    """True for a profile that is active on days of the week, every week."""
    return all(
        isinstance(end, nodes.Call) and end.name.text == "weekday"
        for end in (profile.start, profile.end)
    )


def holidays_of(country: str, first: date, last: date) -> dict[date, str]:
    """The public holidays of a country, such as US or DE-BY, in the years of some days and in the
    following year, from the package `holidays`.

    :raises RequestError: the package is not installed, or does not know the country.
    """
    try:
        import holidays
    except ModuleNotFoundError as error:
        raise RequestError(
            "holidays need the package holidays", "pip install 'dqx-airflow[tuning]'"
        ) from error
    code, _, subdivision = country.partition("-")
    years = range(first.year, last.year + 2)
    try:
        by_date = holidays.country_holidays(
            code, subdiv=subdivision or None, years=years, observed=False
        )
    except (NotImplementedError, KeyError, ValueError) as error:
        raise RequestError(
            f"unknown country or region '{country}'", "write a code such as US, DE or DE-BY"
        ) from error
    return dict(sorted(by_date.items()))


def _weekdays() -> Iterator[Calendar]:
    for name, number in WEEKDAYS.items():
        title = name.capitalize()
        expression = f"weekday({name})"
        yield Calendar(
            f"{title}s",
            f"{title}s",
            (Period(f"{title}s", expression, expression),),
            lambda on, number=number: on.weekday() == number,  # type: ignore[misc]
        )
    weekend = Period("Weekends", "weekday(saturday)", "weekday(sunday)")
    yield Calendar("Weekends", "weekends", (weekend,), lambda on: on.weekday() >= 5)


def _months_turns() -> Iterator[Calendar]:
    for count in range(1, _LONGEST_END + 1):
        days = "day" if count == 1 else f"{count} days"
        start = "last_day_of_month()" + (f" - {count - 1}" if count > 1 else "")
        yield Calendar(
            "Month end",
            f"the last {days} of a month",
            (Period("Month end", start, "last_day_of_month()"),),
            lambda on, count=count: (on + timedelta(days=count)).month != on.month,  # type: ignore[misc]
        )
        end = f"last_day_of_month() + {count}"
        yield Calendar(
            "Month start",
            f"the first {days} of a month",
            (Period("Month start", "last_day_of_month() + 1", end),),
            lambda on, count=count: on.day <= count,  # type: ignore[misc]
        )


def _nth_weekdays() -> Iterator[Calendar]:
    words = {1: "first", 2: "second", 3: "third", 4: "fourth", -1: "last"}
    for n, word in words.items():
        for name, number in WEEKDAYS.items():
            title = f"{word.capitalize()} {name.capitalize()}"
            expression = f"nth_weekday({name}, {n})"
            yield Calendar(
                title,
                f"the {word} {name.capitalize()} of a month",
                (Period(title, expression, expression),),
                lambda on, n=n, number=number: on.weekday() == number and _nth(on) in _both(on, n),  # type: ignore[misc]
            )


def _nth(on: date) -> int:
    return (on.day - 1) // 7 + 1


def _both(on: date, n: int) -> tuple[int, ...]:
    """The number of a weekday in its month; for -1 that of the last one."""
    if n > 0:
        return (n,)
    return (_nth(on),) if on.day > calendar.monthrange(on.year, on.month)[1] - 7 else ()


def _holidays(holidays: Mapping[date, str]) -> Calendar:
    by_name: dict[str, list[date]] = {}
    for on, name in holidays.items():
        by_name.setdefault(name, []).append(on)
    periods = []
    for name, days in by_name.items():
        for expression in _expressions(days):
            periods.append(Period(name.replace('"', "'"), expression, expression))
    return Calendar("Holidays", "public holidays", tuple(periods), lambda on: on in holidays)


def _expressions(days: list[date]) -> list[str]:
    """The date expressions for a holiday: a rule if one holds in all years."""
    if len(days) > 1:
        if len({(on.month, on.day) for on in days}) == 1:
            return [f"{_MONTH_NAMES[days[0].month - 1]}({days[0].day})"]
        if len({(on.month, on.weekday()) for on in days}) == 1:
            month = _MONTH_NAMES[days[0].month - 1]
            weekday = tuple(WEEKDAYS)[days[0].weekday()]
            if len({_nth(on) for on in days}) == 1:
                return [f"nth_weekday({month}, {weekday}, {_nth(days[0])})"]
            if all(_both(on, -1) for on in days):
                return [f"nth_weekday({month}, {weekday}, -1)"]
    return [on.isoformat() for on in days]
