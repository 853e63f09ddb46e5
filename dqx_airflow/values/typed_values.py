"""Days, shares and severities as users type them: in commands, in `dqx.toml`, in operators, in
Python and in CSV files, each has one reader.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from fractions import Fraction

from dqx_airflow.errors import RequestError
from dqx_airflow.values.contracts import Severity

_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DAYS_AGO = re.compile(r"-(\d{1,5})d", re.ASCII)

DAY_FORMS = "2024-12-25, today, yesterday or -3d"
"""How a day is written, for messages."""


def day_in(text: str) -> date | None:
    """The date of `2024-12-25`; None for any other text, on every Python."""
    if _ISO_DAY.fullmatch(text) is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def typed_day(text: str, today: date) -> date | None:
    """The date of `2024-12-25`, `today`, `yesterday` or `-3d` (three days ago); None if it is
    invalid."""
    if text in ("today", "yesterday"):
        return today - timedelta(days=text == "yesterday")
    if ago := _DAYS_AGO.fullmatch(text):
        return days_before(today, int(ago[1]))
    return day_in(text)


def days_before(day: date, count: int) -> date:
    """The date `count` days earlier, or the first or last possible date if there is none.

    >>> days_before(date(2024, 3, 1), 1), days_before(date(2024, 3, 1), 10**30)
    (datetime.date(2024, 2, 29), datetime.date(1, 1, 1))
    """
    return date.fromordinal(max(1, min(day.toordinal() - count, date.max.toordinal())))


_PERCENTAGE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,15})?)%")
_SHARE = re.compile(r"0|0?\.[0-9]{1,17}|[1-9](?:\.[0-9]{1,17})?e-[0-9]{1,2}")


def share_of(given: object) -> Fraction | None:
    """A share between 0 and 1, given as a percentage such as `"1%"` or as the number `0.01`; None
    for what is neither, such as 1, which may be a number of rows."""
    text = "" if isinstance(given, bool) else str(given).replace(" ", "")
    if found := _PERCENTAGE.fullmatch(text):
        share = Fraction(found[1]) / 100
        return share if share <= 1 else None
    return Fraction(text) if _SHARE.fullmatch(text) else None


def severity_of(name: str, given: Severity | str) -> Severity:
    """The severity in a value.

    :param name: the argument that has the value, for the message.
    :raises RequestError: it is none.
    """
    try:
        return Severity(given)
    except ValueError:
        words = [severity.value for severity in Severity]
        listed = f"{', '.join(words[:-1])} or {words[-1]}"
        raise RequestError(f"{name}={given!r}: write {listed}") from None
