"""Patterns of dates in strings and whole numbers, such as `yyyyMMdd`."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from functools import lru_cache

ISO = "yyyy-MM-dd"

_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#])")
_FORMS = {
    "yyyy": "{0.year:04}",
    "uuuu": "{0.year:04}",
    "y": "{0.year}",
    "u": "{0.year}",
    "yy": "{1:02}",
    "uu": "{1:02}",
    "MM": "{0.month:02}",
    "M": "{0.month}",
    "dd": "{0.day:02}",
    "d": "{0.day}",
}


class DatePatternError(ValueError):
    """The error of an invalid date pattern."""


# A date is compared with the bounds of each file.
@lru_cache(maxsize=4096)
def date_text(pattern: str, on: date) -> str:
    """The date in the format of a pattern, the same as from Spark's `date_format`.

    >>> date_text("dd.MM.yyyy", date(2024, 3, 2))
    '02.03.2024'

    :raises DatePatternError: the pattern does not identify a day, or has unsupported letters.
    """
    text = []
    position = 0
    units = set()
    while position < len(pattern):
        part = _PART.match(pattern, position)
        if part is None:
            raise DatePatternError(f"'{pattern[position:]}' is invalid")
        letter = part[2]
        if letter:
            form = _FORMS.get(part[0])
            if form is None:
                raise DatePatternError(f"'{part[0]}' is not supported in a date pattern")
            units.add("y" if letter == "u" else letter)
            text.append(form.format(on, on.year % 100))
        else:
            text.append(_literal(part))
        position = part.end()
    if units != {"y", "M", "d"}:
        raise DatePatternError("it must contain the year, the month and the day")
    return "".join(text)


def date_of_text(pattern: str, text: str) -> date | None:
    """The date whose text in the format of a pattern is exactly this one; None if there is none.

    >>> date_of_text("dd.MM.yyyy", "02.03.2024")
    datetime.date(2024, 3, 2)
    >>> date_of_text("dd.MM.yyyy", "2.3.2024")

    :raises DatePatternError: the pattern is one that `date_text` rejects.
    """
    numbers = _expression(pattern).fullmatch(text)
    if numbers is None:
        return None
    year, month, day = (int(numbers[unit]) for unit in ("y", "M", "d"))
    with suppress(ValueError):
        on = date(year if len(numbers["y"]) > 2 else 2000 + year, month, day)
        if date_text(pattern, on) == text:
            return on
    return None


@lru_cache
def _expression(pattern: str) -> re.Pattern[str]:
    """The texts in the format of a pattern, and some that are not, with groups `y`, `M` and `d`."""
    date_text(pattern, date.min)
    expression = ""
    for part in _PART.finditer(pattern):
        unit = (part[2] or "").replace("u", "y")
        digits = f"[0-9]{{{len(part[0])}}}" if len(part[0]) > 1 else "[0-9]{1,4}"
        if not unit:
            expression += re.escape(_literal(part))
        elif f"(?P<{unit}>" in expression:
            expression += digits
        else:
            expression += f"(?P<{unit}>{digits})"
    return re.compile(expression)


def _literal(part: re.Match[str]) -> str:
    """The characters that a part of a pattern without letters of its own stands for."""
    return part[3] or part[1].replace("''", "'") or "'"
