"""The country on whose public holidays alarms fall, so that no one has to name it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.usual_limits import holidays_of

COUNTRIES = (
    *("US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "AT", "CH", "PL", "CZ", "PT", "IE"),
    *("SE", "NO", "DK", "FI", "CA", "AU", "NZ", "JP", "IN", "BR", "MX", "ZA"),
)
"""The countries that are tried; others, and regions, are named with `--holidays`."""

_FEWEST_HOLIDAYS = 3
_LEAST_SHARE = 0.5
_TIMES_CHANCE = 3.0
"""Alarms follow a calendar if they fall on at least three of its holidays, on half of them, and
three times as often as on other days."""


@dataclass(frozen=True, slots=True)
class AlarmHolidays:
    """A country, and how many of the dates with alarms are public holidays there, on a weekday."""

    country: str
    on_holidays: int
    alarms: int

    def __str__(self) -> str:
        return (
            f"{self.on_holidays} of {self.alarms} days with alarms are holidays of {self.country}"
        )


def alarm_holidays(alarms: Collection[date], first: date, last: date) -> AlarmHolidays | None:
    """The country whose holidays between two dates explain the alarms best; None if none does, or
    if the calendars are not installed."""
    best: tuple[int, AlarmHolidays] | None = None
    dates = {*alarms}
    span = (last - first).days + 1
    for country in COUNTRIES:
        try:
            public = holidays_of(country, first, last)
        except RequestError:
            return None
        days = {on for on in public if first <= on <= last and on.weekday() < 5}
        hits = len(days & dates)
        if hits < max(_FEWEST_HOLIDAYS, _LEAST_SHARE * len(days)):
            continue
        if hits * span < _TIMES_CHANCE * len(days) * len(dates):
            continue
        score = 2 * hits - len(days)
        if best is None or score > best[0]:
            best = score, AlarmHolidays(country, hits, len(dates))
    return best[1] if best else None
