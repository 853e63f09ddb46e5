"""The dates that a string may be, in whatever form it is written: with a time, compact, by names of
months, by weeks, as seconds since 1970 ..."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from functools import lru_cache
from itertools import pairwise

from dqx_airflow.datasets.date_pattern import date_text

_TOKEN = re.compile(r"\d+|[^\W\d_]+")
_ISO_WEEK = re.compile(r"(?<!\d)(\d{4})-?w(\d\d)-?([1-7])(?!\d)")
_MONTHS = (
    "january januar janvier enero gennaio janeiro januari",
    "february februar fevrier febrero febbraio fevereiro februari",
    "march marz marzo mars marco maart",
    "april avril abril aprile",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august aout agosto augustus",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember decembre diciembre dicembre dezembro",
)
_SHORTEST_NAME = 3
"""Letters of the shortest name of a month, as in `mar`."""
_FIRST_DAY = date(1970, 1, 1)
_FIRST_DAY_OF_SHEETS = date(1899, 12, 30)
_UNITS_BY_DIGITS = {9: 1, 10: 1, 13: 10**3, 16: 10**6, 19: 10**9}
"""How many units a second has in a number since 1970, by the digits that it has in our time."""
_MOST_OFFSETS = (timedelta(hours=-12), timedelta(hours=14))


@lru_cache(maxsize=2**16)
def dates_in_other_forms(text: str, pattern: str) -> frozenset[date]:
    """The dates that a string may be, if it is not one that is written by the pattern."""
    own_order = "".join(dict.fromkeys(re.findall("[yMd]", pattern.replace("u", "y"))))
    found = _dates_in(text, own_order)
    readings = found.union(_by_cuts(text, own_order))
    if any(date_text(pattern, on) == text for on in readings):
        return frozenset()
    return found


def _by_cuts(text: str, own_order: str) -> Iterator[date]:
    """The days of digits without separators, however many each number has: `322024`."""
    if not text.isdecimal() or len(text) > 8:
        return
    for second in range(1, len(text)):
        for third in range(second + 1, len(text)):
            parts = (text[:second], text[second:third], text[third:])
            yield from _in_orders(parts, (own_order,))


def _dates_in(text: str, own_order: str) -> frozenset[date]:
    """The dates that a string may be, by the first way of reading it that finds one."""
    plain = _plain(text)
    numbers = list(_numbers(plain))
    for found in (
        _by_week(plain),
        _by_year(numbers, own_order),
        _by_day_of_year(numbers),
        _compact(numbers, own_order),
        _by_short_year(numbers, own_order),
    ):
        dates = frozenset(found)
        if dates:
            return dates
    return frozenset()


def _plain(text: str) -> str:
    """The string in lower case, without accents and invisible characters, with common digits."""
    characters = unicodedata.normalize("NFKD", text)
    return "".join(
        character for character in characters if unicodedata.category(character) not in ("Cf", "Mn")
    ).lower()


def _numbers(plain: str) -> Iterator[str]:
    """The numbers of a string, a month for its name; other words are left out."""
    for token in _TOKEN.findall(plain):
        if token.isdecimal():
            yield token
            continue
        for month, names in enumerate(_MONTHS, start=1):
            if len(token) >= _SHORTEST_NAME and f" {token}" in f" {names}":
                yield f"{month:02}"


def _by_week(plain: str) -> Iterator[date]:
    """The day in a week of ISO 8601: `2024-W09-6`."""
    for year, week, day in _ISO_WEEK.findall(plain):
        with suppress(ValueError):
            yield date.fromisocalendar(int(year), int(week), int(day))


def _by_year(numbers: list[str], own_order: str) -> frozenset[date]:
    """The days of the first three numbers that are a year of four digits, a month and a day."""
    for parts in zip(numbers, numbers[1:], numbers[2:], strict=False):
        orders: tuple[str, ...] = ()
        if _is_year(parts[0]):
            orders = ("yMd", own_order)
        elif _is_year(parts[2]):
            orders = ("dMy", "Mdy")
        elif _is_year(parts[1]):
            orders = (own_order,)
        found = _in_orders(parts, orders)
        if not found and _is_year(parts[0]):
            found = _in_orders(parts, ("ydM",))
        if found:
            return found
    return frozenset()


def _is_year(number: str) -> bool:
    return len(number) >= 4 and len(number.lstrip("0")) <= 4


def _by_day_of_year(numbers: list[str]) -> Iterator[date]:
    """The day by its number in the year: `2024-062`."""
    for year, day in pairwise(numbers):
        if len(year) == 4 and len(day) == 3:
            yield from _day_of_year(int(year), int(day))


def _day_of_year(year: int, day: int) -> Iterator[date]:
    with suppress(ValueError, OverflowError):
        on = date(year, 1, 1) + timedelta(day - 1)
        if on.year == year:
            yield on


def _compact(numbers: list[str], own_order: str) -> frozenset[date]:
    """The days of digits without separators, of dates before those of shorter numbers."""
    found = [day for number in numbers for day in _of_long_number(number, own_order)]
    if not found:
        found = [day for number in numbers for day in _of_short_number(number)]
    return frozenset(found)


def _of_long_number(number: str, own_order: str) -> Iterator[date]:
    """The days of `20240302`, also with a time, and of a moment as a number since 1970."""
    if len(number) < 8:
        return
    for order in ("yMd", "dMy", "Mdy", own_order):
        yield from _in_orders(_cut(number, order, 4), (order,))
    units = _UNITS_BY_DIGITS.get(len(number))
    if units is not None:
        moment = datetime.fromtimestamp(int(number) // units, timezone.utc)
        yield moment.date()
        if moment.time() != time.min:  # the day depends on the time zone
            yield from ((moment + offset).date() for offset in _MOST_OFFSETS)


def _of_short_number(number: str) -> Iterator[date]:
    """The days of `2024062`, `2024302`, `240302`, `202432`, `24062`, and of a number of days."""
    if len(number) == 7:
        yield from _day_of_year(int(number[:4]), int(number[4:]))
        yield from _in_orders((number[:4], number[4:5], number[5:]), ("yMd",))
        yield from _in_orders((number[:4], number[4:6], number[6:]), ("yMd",))
    if len(number) == 6:
        for order in ("yMd", "dMy", "Mdy"):
            yield from _in_orders(_cut(number, order, 2), (order,))
        yield from _in_orders((number[:4], number[4], number[5]), ("yMd",))
    if len(number) == 5:
        yield from _day_of_year(2000 + int(number[:2]), int(number[2:]))
        yield _FIRST_DAY + timedelta(int(number))
        yield _FIRST_DAY_OF_SHEETS + timedelta(int(number))


def _cut(number: str, order: str, year_digits: int) -> tuple[str, ...]:
    """The digits of the year, the month and the day, in their order."""
    parts = []
    for unit in order:
        digits = year_digits if unit == "y" else 2
        parts.append(number[:digits])
        number = number[digits:]
    return tuple(parts)


def _by_short_year(numbers: list[str], own_order: str) -> frozenset[date]:
    """The days of the first three numbers, if the year may have two digits: `24-03-02`."""
    return _in_orders(tuple(numbers[:3]), ("yMd", "dMy", "Mdy", own_order))


def _in_orders(parts: tuple[str, ...], orders: tuple[str, ...]) -> frozenset[date]:
    """The days that three numbers are in one of the orders of year, month and day."""
    found = set[date]()
    if len(parts) != 3:
        return frozenset()
    for order in orders:
        digits = dict(zip(order, parts, strict=True))
        for year in _years(digits["y"]):
            with suppress(ValueError, OverflowError):
                found.add(date(year, int(digits["M"]), int(digits["d"])))
    return frozenset(found)


def _years(digits: str) -> tuple[int, ...]:
    """The years that a number may be: one of two digits is in this century, or in the last."""
    if len(digits) <= 2:
        return 2000 + int(digits), 1900 + int(digits)
    return (int(digits),)
