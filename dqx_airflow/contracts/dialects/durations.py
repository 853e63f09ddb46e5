"""Durations in contracts: `24h`, `7 days` or `PT24H`, as seconds.

A month is 30.436875 days and a year is 365.2425 days, the means of the calendar: twelve months are
a year, and no limit depends on the current date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite

from dqx_airflow.contracts.document import Node, Scalar, show_path
from dqx_airflow.contracts.mistakes import mistake
from dqx_airflow.diagnostics.diagnostic import Diagnostic, nearest

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
WEEK_S = 7 * DAY_S
YEAR_S = 31_556_952
MONTH_S = YEAR_S // 12
QUARTER_S = YEAR_S // 4
UNITS_S: dict[str, float] = {
    **dict.fromkeys(("ms", "millis", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE_S),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR_S),
    **dict.fromkeys(("d", "day", "days"), DAY_S),
    **dict.fromkeys(("w", "week", "weeks"), WEEK_S),
    **dict.fromkeys(("mo", "month", "months"), MONTH_S),
    **dict.fromkeys(("quarter", "quarters"), QUARTER_S),
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), YEAR_S),
}
"""The units of durations, with their seconds."""
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
    """The seconds of a duration, simple or of ISO 8601; None if the text is not a duration.

    >>> seconds_of("7_years") == seconds_of("P7Y") == 7 * YEAR_S
    True
    """
    written = text.strip()
    total = 0.0
    position = 0
    if match := _ISO.fullmatch(written):
        parts = zip(match.groups(), _ISO_UNITS, strict=True)
        total = sum(_number(count) * unit for count, unit in parts if count)
        position = match.end()
    while position < len(written):
        part = _PART.match(written, position)
        # A month to some, a minute to others.
        if part is None or part[2] == "M" or part[2].lower() not in UNITS_S:
            return None
        total += _number(part[1]) * UNITS_S[part[2].lower()]
        position = part.end()
    return total if written and isfinite(total) else None


def duration_s(node: Node, report: Callable[[Diagnostic], None]) -> float | None:
    """The seconds of the duration at a node; an invalid duration is reported with a correction."""
    text = node.text if isinstance(node, Scalar) else ""
    seconds = seconds_of(text)
    if seconds is None:
        where = show_path(node.path)
        hint = _hint(text.strip())
        report(mistake("no_duration", node.span, where=where, written=text, hint=hint))
    return seconds


def _number(text: str) -> float:
    return float(text.replace(",", "."))


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
        near = nearest(match[2].lower(), UNITS_S)
        if near is not None and match[2].lower() not in UNITS_S:
            return f"did you mean '{match[1]} {near}'?"
    return _EXAMPLES
