"""Days and times in a suite that do not exist, such as 2024-02-30, and what to write instead.

A word with the form of a day is one wherever it stands, so the parser judges it. A string is judged
where it is compared with a date or a timestamp: elsewhere it may be any text.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.dql import nodes
from dqx_airflow.dql.dates import MONTHS
from dqx_airflow.metrics.spark_values import is_day, moment_in_metric, timestamp_in
from dqx_airflow.values import Span

_DAY = re.compile(r"([0-9]+)-([0-9]+)-([0-9]+)")
_LIKE_A_MOMENT = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9].*)?", re.ASCII)
_YEAR_DIGITS = 4
_MONTH_DIGITS = 2
_MOST_DIGITS = 20
"""The maximum number of digits to parse, more than any year, month or day has."""
_MONTHS = [name.capitalize() for name in MONTHS]
_EXAMPLE = 'write dates as 2024-03-31, timestamps as "2024-03-31T20:00:00Z"'


def nearest_day(text: str) -> date:
    """The date of a literal; if it does not exist, the one that is most likely meant."""
    year, month, day = _numbers(text)
    year = min(max(year, MINYEAR), MAXYEAR)
    month = min(max(month, 1), 12)
    return date(year, month, min(max(day, 1), calendar.monthrange(year, month)[1]))


def check_day(text: str, span: Span) -> Diagnostic | None:
    """The mistake in a literal with the form of a date; None if the day exists."""
    mistake = _mistake_in_day(text)
    if mistake is None:
        return None
    help_line = mistake.help
    if not _is_month_of_a_year(text):
        spaced = " - ".join(text.split("-"))
        help_line += f"; for a difference of numbers, write spaces: {spaced}"
    return Diagnostic(mistake.message, span, code="E301", help=help_line)


def check_beside_moments(
    operands: tuple[nodes.Expression, ...], constants: nodes.Constants
) -> Iterator[Diagnostic]:
    """The strings among operands of one comparison of a row that are not a date or timestamp, if
    another operand is one whatever the types of the columns are."""
    if not any(_is_moment(operand, constants) for operand in operands):
        return
    for operand in operands:
        text = _text(operand, constants)
        if text is not None and timestamp_in(text) is None:
            yield _no_moment(text, operand.span)


def check_bounds(
    bounds: tuple[nodes.Expression, ...], constants: nodes.Constants
) -> Iterator[Diagnostic]:
    """The strings among the bounds of a metric that have the form of a date or timestamp and are
    none: they have no order beside the dates of a column. Beside a date, any other string, too."""
    is_beside_date = any(_is_moment(bound, constants) for bound in bounds)
    for bound in bounds:
        text = _text(bound, constants)
        if text is None or moment_in_metric(text) is not None:
            continue
        if is_beside_date or _LIKE_A_MOMENT.fullmatch(text):
            yield _no_moment(text, bound.span)


def is_no_moment(text: str) -> bool:
    """True for a text with the form of a date or timestamp that Spark cannot read as one."""
    return _LIKE_A_MOMENT.fullmatch(text) is not None and timestamp_in(text) is None


def _numbers(text: str) -> tuple[int, int, int]:
    match = _DAY.match(text)
    assert match is not None
    year, month, day = (int(digits[:_MOST_DIGITS]) for digits in match.groups())
    return year, month, day


def _is_month_of_a_year(text: str) -> bool:
    """True for a text that cannot be a subtraction: it begins with a year and a month, each with
    all its digits."""
    year, month, _ = text.split("-")
    return len(year) == _YEAR_DIGITS and len(month) == _MONTH_DIGITS and 1 <= int(month) <= 12


@dataclass(frozen=True, slots=True)
class _DayMistake:
    """The mistake in a text with the form of a date. `does_exist`: the day exists, but has another
    number of digits."""

    message: str
    help: str
    does_exist: bool = False


def _mistake_in_day(text: str) -> _DayMistake | None:
    """The mistake in a text with the form of a date; None if it is a date."""
    if is_day(text):
        return None
    year, month, day = _numbers(text)
    message = f"the day {text} does not exist"
    if not MINYEAR <= year <= MAXYEAR:
        return _DayMistake(message, "years are 0001 to 9999")
    if not 1 <= month <= 12:
        return _DayMistake(message, "write the year, the month from 01 to 12, the day")
    last = calendar.monthrange(year, month)[1]
    if not 1 <= day <= last:
        return _DayMistake(message, f"{_MONTHS[month - 1]} {year} has the days 01 to {last}")
    is_year_whole = len(text.split("-", maxsplit=1)[0]) == _YEAR_DIGITS
    written = date(year, month, day).isoformat() if is_year_whole else "the year in four digits"
    return _DayMistake(f"{text} is not a date", f"write {written}", does_exist=True)


def _no_moment(text: str, span: Span) -> Diagnostic:
    """The mistake in a string that is not a date or timestamp."""
    message = f'"{text}" is not a date or timestamp'
    beginning = _DAY.match(text)
    if beginning is None:
        return Diagnostic(message, span, code="E301", help=_EXAMPLE)
    day = beginning[0]
    mistake = _mistake_in_day(day)
    if mistake is not None and not mistake.does_exist:
        return Diagnostic(mistake.message, span, code="E301", help=mistake.help)
    help_line = _EXAMPLE
    if day != text and _LIKE_A_MOMENT.fullmatch(text):
        help_line = (
            "write two digits each: hours from 00 to 23, minutes and seconds from 00 to 59; "
            "then a time zone may follow, such as Z or +01:00, up to +18:00"
        )
    elif mistake is not None:
        help_line = f'write "{nearest_day(day)}"'
    return Diagnostic(message, span, code="E301", help=help_line)


def _text(node: nodes.Expression, constants: nodes.Constants) -> str | None:
    """The string of a literal, or of a constant."""
    match node:
        case nodes.Text(value=text):
            return text
        case nodes.Name(text=name) if name in constants:
            return _text(constants[name].value, {})
        case _:
            return None


def _is_moment(node: nodes.Expression, constants: nodes.Constants) -> bool:
    """True for a date or a timestamp, whatever the types of the columns are."""
    match node:
        case nodes.Day():
            return True
        case nodes.Name(text=name) if name in constants:
            return _is_moment(constants[name].value, {})
        case nodes.Arithmetic(op="+" | "-", left=left, right=right):
            return _is_moment(left, constants) != _is_moment(right, constants)
        case nodes.Call(name=nodes.Name(text="date")):
            return True
        case nodes.Call(name=nodes.Name(text="coalesce"), arguments=arguments):
            return any(_is_moment(argument, constants) for argument in arguments)
        case _:
            return False
