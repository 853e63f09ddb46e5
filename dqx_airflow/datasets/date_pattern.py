"""Patterns of dates in strings and whole numbers, such as `yyyyMMdd`."""

from __future__ import annotations

import re
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
        quoted, letter, literal = part.groups()
        if letter:
            form = _FORMS.get(part[0])
            if form is None:
                raise DatePatternError(f"'{part[0]}' is not supported in a date pattern")
            units.add("y" if letter == "u" else letter)
            text.append(form.format(on, on.year % 100))
        else:
            text.append(literal or quoted.replace("''", "'") or "'")
        position = part.end()
    if units != {"y", "M", "d"}:
        raise DatePatternError("it must contain the year, the month and the day")
    return "".join(text)
