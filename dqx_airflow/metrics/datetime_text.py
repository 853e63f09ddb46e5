"""Dates and timestamps in strings, parsed as Spark's casts do."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_DAY = r"(?P<year>\d{4})(-(?P<month>\d{1,2})(-(?P<day>\d{1,2})"
_DATE = re.compile(rf"{_DAY}([ T].*)?)?)?", re.ASCII | re.DOTALL)
_SECOND = r"(?P<second>\d{1,2})(\.(?P<part>\d*))?(?P<zone>[^\d.].*)?"
_CLOCK = rf"(?P<hour>\d{{1,2}})(:(?P<minute>\d{{1,2}})(:{_SECOND})?)?"
_MOMENT = re.compile(rf"{_DAY}([ T]{_CLOCK})?)?)?", re.ASCII)
_OFFSET = re.compile(r"(UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(:?(?P<minutes>\d{2}))?", re.A)
_LARGEST_OFFSET = timedelta(hours=18)
_BLANKS = "".join(map(chr, range(33)))


def is_day(text: str) -> bool:
    """True for a date in the form used in results: `2024-01-02`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def date_in(text: str) -> date | None:
    """The date at the beginning of a string, or None: `2024-1-2`, `2024-01-02T06:00`.

    Missing parts are 1: `2024` is the first of January.
    """
    match = _DATE.fullmatch(text.strip(_BLANKS))
    return _date(match) if match else None


def timestamp_in(text: str) -> datetime | None:
    """The timestamp in a string, in UTC and without a time zone, or None.

    Without a time zone in the string it is in UTC, and without a time it is midnight. A time zone
    can only follow seconds.
    """
    match = _MOMENT.fullmatch(text.strip(_BLANKS))
    day = _date(match) if match else None
    if match is None or day is None:
        return None
    try:
        zone = _zone((match["zone"] or "").strip())
        part = int((match["part"] or "")[:6].ljust(6, "0"))
        hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
        timestamp = datetime.combine(day, time(hour, minute, second, part, zone))
        return timestamp.astimezone(timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None


def has_nanoseconds(text: str) -> bool:
    """True if the timestamp in a string has more fractional digits than a Spark timestamp."""
    match = _MOMENT.fullmatch(text.strip(_BLANKS))
    return match is not None and bool((match["part"] or "")[6:].strip("0"))


def _date(match: re.Match[str]) -> date | None:
    try:
        return date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
    except ValueError:
        return None


def _zone(text: str) -> tzinfo:
    """The time zone at the end of a time.

    :raises ValueError: it is not valid.
    """
    if text in ("", "Z", "UTC", "GMT", "UT"):
        return timezone.utc
    offset = _OFFSET.fullmatch(text)
    if offset is None:
        return _region(text)
    size = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
    if size > _LARGEST_OFFSET:
        raise ValueError(f"unknown time zone: {text}")
    return timezone(-size if offset["sign"] == "-" else size)


def _region(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as error:
        raise ValueError(f"unknown time zone: {name}") from error
