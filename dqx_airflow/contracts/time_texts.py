"""Times that contracts and data write as strings: the formats of Spark, and what a bound means.

A time without a zone is in UTC, and a time of day is one of 1970-01-01, on both sides of a
comparison: so no result depends on the zone of the session, or on the day of the run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property

from dqx_airflow.metrics.sql import quote_literal

_TOKEN = re.compile(
    r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|.", re.S
)
_READABLE = frozenset("GyMLdDahKkHmsSVzOXxZ")
"""The letters that Spark can parse."""
_ZONES = frozenset("VzOXxZ")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ISO_TIME = (
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(:(?P<second>[0-9]{2})(\.(?P<part>[0-9]{1,9}))?)?"
)
_ISO_DAY = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_ISO_ZONE = r"\s*(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?"
_TIME = re.compile(_ISO_TIME)
_MOMENT = re.compile(rf"{_ISO_DAY}([T ]({_ISO_TIME}|(?P<hour_alone>[0-9]{{2}})){_ISO_ZONE})?")
_ZONED = "(Z|[+-][0-9]{2}:?[0-9]{2})$"
_WITHOUT_SECONDS = "^(.{16})(Z|[+-].*)?$"


@dataclass(frozen=True)
class TimeFormat:
    """A format of times in strings, as Spark writes it: `dd.MM.yyyy HH:mm`.

    An unquoted `T`, which is not a letter of Spark, stands for itself.
    """

    pattern: str

    @cached_property
    def spark_pattern(self) -> str:
        return "".join("'T'" if token[0] == "T" else token[0] for token in self._tokens)

    @cached_property
    def letters(self) -> frozenset[str]:
        """The letters of its parts."""
        return frozenset(token["letter"] for token in self._tokens if token["letter"]) - {"T"}

    @cached_property
    def problem(self) -> str | None:
        """The reason why Spark cannot read it, or reads something else; None if there is none."""
        letters = set(self.letters)
        if not letters:
            return f"the format '{self.pattern}' has no letter of a date or a time"
        if unknown := sorted(letters - _READABLE):
            return (
                f"Spark cannot read the format '{self.pattern}', as it has no letter "
                f"{unknown[0]}: write dates like yyyy-MM-dd, times like HH:mm:ss"
            )
        confused = self._confused(letters)
        return f"the format '{self.pattern}' {confused}" if confused is not None else None

    def _confused(self, letters: set[str]) -> str | None:
        """The mistake of a format that Spark reads, but not as it was meant."""
        return (
            self._confused_month(letters)
            or _confused_day(letters)
            or _confused_hour(letters)
            or _confused_second(letters)
        )

    def _confused_month(self, letters: set[str]) -> str | None:
        """The mistake of a format with minutes for months, or months for minutes."""
        has_month = not letters.isdisjoint("ML")
        has_hour = not letters.isdisjoint("HhkK")
        if "m" in letters and not has_hour:
            return "has minutes (m) without hours: write MM for the month, HH:mm for a time"
        months = [token for token in self._tokens if token["letter"] == "M"]
        has_two_months = len(months) > 1 and "[" not in self.pattern
        is_clock = letters.isdisjoint("ydD")
        if has_hour and (has_two_months or (has_month and is_clock)):
            return "has a month (M) in its time: write mm for the minutes"
        return None

    @property
    def has_zone(self) -> bool:
        return any(token["letter"] in _ZONES for token in self._tokens if token["letter"])

    @property
    def _tokens(self) -> list[re.Match[str]]:
        return list(_TOKEN.finditer(self.pattern))

    def value_sql(self, text: str) -> str:
        """The moment in a string, given as SQL; NULL for other strings."""
        if self.has_zone:
            return f"try_to_timestamp({text}, {quote_literal(self.spark_pattern)})"
        pattern = quote_literal(f"{self.spark_pattern}XXX")
        return f"try_to_timestamp(concat({text}, 'Z'), {pattern})"

    def read(self, text: str) -> datetime | None:
        """The moment in a string, in UTC; None for other strings, and for formats with names of
        zones, eras or days of the year, which only Spark reads."""
        expression = ""
        names = set[str]()
        for token in self._tokens:
            if token["letters"] is None or token["letter"] == "T":
                expression += _literal(token)
                continue
            part = _part(token["letter"], len(token["letters"]))
            if part is None or part[0] in names:
                return None
            names.add(part[0])
            expression += f"(?P<{part[0]}>{part[1]})"
        match = re.fullmatch(expression, text, re.IGNORECASE)
        return None if match is None else _moment_of(match.groupdict())


def _confused_day(letters: set[str]) -> str | None:
    """The mistake of a format with a day of the year, or without a month."""
    has_month = not letters.isdisjoint("ML")
    if "D" in letters and has_month:
        return "has the day of the year (D) next to a month: write dd for the day of the month"
    if {"y", "d"} <= letters and not has_month and "D" not in letters:
        return "has a year and a day without a month: write MM for the month"
    return None


def _confused_hour(letters: set[str]) -> str | None:
    """The mistake of a format whose hours need AM or PM, or have it in vain."""
    has_half_day = not letters.isdisjoint("hK")
    if has_half_day and "a" not in letters:
        return "has hours up to 12 without AM or PM (a): write HH for hours up to 23"
    if "a" in letters and not has_half_day:
        return "has AM or PM (a) next to hours of a whole day: write hh for hours up to 12"
    return None


def _confused_second(letters: set[str]) -> str | None:
    """The mistake of a format that lacks a part between two others of a time."""
    if "S" in letters and "s" not in letters:
        return "has a fraction (S) without seconds: write ss for the seconds"
    if "s" in letters and "m" not in letters:
        return "has seconds (s) without minutes: write HH:mm:ss for a time"
    return None


def _literal(token: re.Match[str]) -> str:
    if token["quoted"] is not None:
        return re.escape(token["quoted"].replace("''", "'") or "'")
    if token[0] == "[":
        return "(?:"
    return ")?" if token[0] == "]" else re.escape(token[0])


def _part(letter: str, count: int) -> tuple[str, str] | None:
    """The name and the expression of a part of a format; None for one that only Spark reads."""
    digits = "[0-9]{1,2}" if count == 1 else "[0-9]{2}"
    match letter, count:
        case "y", 2:
            return "short_year", "[0-9]{2}"
        case "y", 1 | 4:
            return "year", "[0-9]{4}"
        case "M" | "L", 1 | 2:
            return "month", digits
        case "M" | "L", 3:
            return "month_name", "|".join(_MONTHS)
        case "d", 1 | 2:
            return "day", digits
        case "H", 1 | 2:
            return "hour", digits
        case "h", 1 | 2:
            return "half_hour", digits
        case "a", 1:
            return "half", "AM|PM"
        case "m", 1 | 2:
            return "minute", digits
        case "s", 1 | 2:
            return "second", digits
        case "S", _ if count <= 9:
            return "part", f"[0-9]{{{count}}}"
        case "X" | "x" | "Z", _:
            return "zone", "Z|[+-][0-9]{2}(?::?[0-9]{2})?"
    return None


def _moment_of(parts: dict[str, str | None]) -> datetime | None:
    """The moment with these parts, in UTC; None for one that does not exist."""

    def number(name: str, default: int) -> int:
        text = parts.get(name)
        return default if text is None else int(text)

    year = number("year", 1970)
    if parts.get("short_year") is not None:
        year = 2000 + number("short_year", 0)
    month = number("month", 1)
    if (named := parts.get("month_name")) is not None:
        month = _MONTHS.index(named.lower()) + 1
    hour = number("hour", number("hour_alone", 0))
    if parts.get("half_hour") is not None:
        half = number("half_hour", 0)
        if not 1 <= half <= 12:
            return None
        hour = half % 12 + 12 * ((parts.get("half") or "AM").upper() == "PM")
    part = int((parts.get("part") or "")[:6].ljust(6, "0"))
    clock = hour, number("minute", 0), number("second", 0), part
    try:
        moment = datetime(year, month, number("day", 1), *clock)
        return moment - _offset(parts.get("zone"))
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone.upper() == "Z":
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -offset if zone[0] == "-" else offset


def iso_moment(text: str) -> datetime | None:
    """The moment of an ISO date or timestamp, in UTC; None for other strings."""
    match = _MOMENT.fullmatch(text)
    return None if match is None else _moment_of(match.groupdict())


def iso_time(text: str) -> datetime | None:
    """A time of day in ISO form, as one of 1970-01-01; None for other strings."""
    match = _TIME.fullmatch(text)
    return None if match is None else _moment_of(match.groupdict())


def iso_value_sql(text: str, *, is_time: bool) -> str:
    """The moment in a string in ISO form, given as SQL; NULL for other strings.

    Spark requires seconds before a zone.
    """
    dated = f"concat('1970-01-01T', {text})" if is_time else text
    full = f"regexp_replace({dated}, {quote_literal(_WITHOUT_SECONDS)}, '$1:00$2')"
    zoned = (
        f"CASE WHEN {full} RLIKE {quote_literal(_ZONED)} THEN {full} ELSE concat({full}, 'Z') END"
    )
    return f"try_cast({zoned} AS TIMESTAMP)"


class BoundError(Exception):
    """A bound that is not a time, or one of two; `help` says what to write."""

    def __init__(self, reason: str, help: str) -> None:
        super().__init__(reason)
        self.help = help


def bound_moment(text: str, pattern: str | None, *, is_time: bool) -> datetime:
    """The moment that a bound means, in UTC: read in the format of its field, or as ISO.

    :raises BoundError: it is neither, or both with different meanings, or its format is a mistake.
    """
    written = text.strip()
    kind = "time" if is_time else "date"
    as_iso = iso_time(written) if is_time else iso_moment(written)
    by_format = TimeFormat(pattern).read(written) if pattern is not None else None
    if as_iso is not None and by_format is not None and as_iso != by_format:
        first = shown(by_format, is_time=is_time)
        second = shown(as_iso, is_time=is_time)
        reason = (
            f"the bound {written} is {first} by the format '{pattern}', and {second} in ISO form"
        )
        raise BoundError(reason, f"write {first} or {second}")
    if pattern is not None and as_iso is None:
        problem = TimeFormat(pattern).problem
        if problem is not None:
            reason, _, wanted = problem.partition(": ")
            raise BoundError(reason, wanted or "write dates like yyyy-MM-dd, times like HH:mm:ss")
    found = by_format if by_format is not None else as_iso
    if found is not None:
        return found
    example = "18:00:00" if is_time else "2024-01-31 or 2024-01-31T06:00:00"
    formatted = f", and not of the format '{pattern}'" if pattern is not None else ""
    raise BoundError(f"the bound {written} is not a {kind}{formatted}", f"write it as {example}")


def shown(moment: datetime, *, is_time: bool) -> str:
    """A moment in ISO form, with a time."""
    return moment.time().isoformat() if is_time else moment.isoformat()


def literal_sql(moment: datetime) -> str:
    """A moment in UTC as a literal of SQL."""
    return f"TIMESTAMP '{moment.replace(tzinfo=timezone.utc).isoformat(sep=' ')}'"
