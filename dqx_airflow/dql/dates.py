"""Date expressions of profiles, and the dates that they denote around a given date."""

from __future__ import annotations

import calendar
import math
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache

from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean
from dqx_airflow.dql import nodes

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"

MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES.split(), start=1)}
WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAY_NAMES.split())}

FURTHEST_OFFSET = 366
"""The maximum number of days added to or subtracted from a date."""

_FUNCTIONS = (*MONTHS, "weekday", "nth_weekday", "last_day_of_month")


@lru_cache(maxsize=8192)  # a tuner plans a suite thousands of times for the same days
def is_active(start: nodes.Expression, end: nodes.Expression, on: date) -> bool:
    """True if `on` is between the two dates, inclusive.

    The expressions are evaluated in every month from the year before `on` to the year after, so
    that a period across the end of a month or year is found from both sides.
    """
    if _is_weekly(start) and _is_weekly(end):
        return any(first <= on <= last for first, last in _weeks(start, end, on))
    return any(first <= on <= last for first, last in _periods(start, end, on.year))


def is_backwards(start: nodes.Expression, end: nodes.Expression) -> bool:
    """True if the end always comes before the start, such as december(25) to december(20)."""
    if _is_weekly(start) or _is_weekly(end):
        # A day of a week has no other dates to begin or end with; one before it is a week later.
        return _is_weekly(start) != _is_weekly(end)
    fixed = _fixed_year(start) or _fixed_year(end) or 2024
    # Eight years contain a leap year, and every weekday on which a month may begin.
    periods = [p for year in range(fixed, fixed + 8) for p in _periods(start, end, year)]
    return bool(periods) and all(last < first for first, last in periods)


def _weeks(start: nodes.Expression, end: nodes.Expression, on: date) -> Iterator[tuple[date, date]]:
    """The periods of the weeks around a day, if both dates are weekdays."""
    furthest = math.ceil(max(_offset(start), _offset(end)) / 7) + 2
    for week in range(-furthest, furthest + 1):
        try:
            anchor = on + timedelta(weeks=week)
        except OverflowError:
            continue
        first, last = evaluate(start, anchor), evaluate(end, anchor)
        if first is None or last is None:
            continue
        yield first, last + timedelta(days=7) if last < first else last


def _offset(node: nodes.Expression) -> float:
    """The maximum shift in days by the offsets of an expression."""
    match node:
        case nodes.Arithmetic(left=left, right=nodes.Number(value=days)):
            return _offset(left) + abs(float(days))
        case _:
            return 0


def _is_weekly(node: nodes.Expression) -> bool:
    base = _without_offset(node)
    return isinstance(base, nodes.Call) and base.name.text == "weekday"


def _without_offset(node: nodes.Expression) -> nodes.Expression:
    """The date to which an expression adds days."""
    while isinstance(node, nodes.Arithmetic):
        node = node.left
    return node


def _periods(
    start: nodes.Expression, end: nodes.Expression, year: int
) -> Iterator[tuple[date, date]]:
    """The periods of the years around `year`.

    If the end has an earlier month than the start, it belongs to the following year. If only
    one of the two has an explicit year, it fixes the year of the other.
    """
    start_month = _month(start)
    end_month = _month(end)
    rolls_over = bool(start_month and end_month and end_month < start_month)
    fixed_start = _fixed_year(start)
    fixed_end = _fixed_year(end)
    years = range(max(year - 1, 1), min(year + 1, 9999) + 1)
    if fixed_start:
        years = range(fixed_start, fixed_start + 1)
    elif fixed_end:
        before = max(fixed_end - (rolls_over and not _names_year(start)), 1)
        years = range(before, before + 1)
    for anchor in (date(in_year, month, 1) for in_year in years for month in range(1, 13)):
        first, last = evaluate(start, anchor), evaluate(end, anchor)
        if first is None:
            continue
        if rolls_over and not _names_year(end) and (last is None or last < first):
            last = evaluate(end, anchor.replace(year=min(anchor.year + 1, 9999)))
        if last is not None:
            yield first, last


def evaluate(node: nodes.Expression, anchor: date) -> date | None:
    """The date of an expression in the month and year of `anchor`.

    None if the month has no such date, for example a fifth Thursday. The expression has passed
    `check_date`.
    """
    match node:
        case nodes.Day(value=day):
            return day
        case nodes.Arithmetic(op=op, left=left, right=nodes.Number(value=days)):
            base = evaluate(left, anchor)
            try:
                return base + timedelta(float(days if op == "+" else -days)) if base else None
            except OverflowError:
                return None  # after the year 9999
        case nodes.Call(name=nodes.Name(text="last_day_of_month")):
            return anchor.replace(day=calendar.monthrange(anchor.year, anchor.month)[1])
        case nodes.Call(name=nodes.Name(text="weekday"), arguments=(weekday,)):
            monday = anchor - timedelta(days=anchor.weekday())
            return monday + timedelta(days=WEEKDAYS[_word(weekday)])
        case nodes.Call(name=nodes.Name(text="nth_weekday"), arguments=(weekday, n)):
            place = WEEKDAYS[_word(weekday)]
            return _nth_weekday(anchor.year, anchor.month, place, _whole(n))
        case nodes.Call(name=nodes.Name(text="nth_weekday"), arguments=(month, weekday, n, *year)):
            in_year = _year(year, anchor)
            return _nth_weekday(in_year, MONTHS[_word(month)], WEEKDAYS[_word(weekday)], _whole(n))
        case nodes.Call(name=nodes.Name(text=month), arguments=(day, *year)):
            in_year = _year(year, anchor)
            number = MONTHS[month]
            if not 1 <= in_year <= 9999 or _whole(day) > calendar.monthrange(in_year, number)[1]:
                return None  # february(29) in most years
            return date(in_year, number, _whole(day))
        case _:
            return None


def _nth_weekday(year: int, month: int, weekday: int, n: int) -> date | None:
    if not 1 <= year <= 9999:
        return None
    weekday_of_first, length = calendar.monthrange(year, month)
    days = range(1 + (weekday - weekday_of_first) % 7, length + 1, 7)
    index = n - 1 if n > 0 else n
    return date(year, month, days[index]) if -len(days) <= index < len(days) else None


def _year(arguments: list[nodes.Expression], anchor: date) -> int:
    """`2025`, `year`, `year + 1`; by default the year of the anchor."""
    if not arguments:
        return anchor.year
    match arguments[0]:
        case nodes.Number(value=year):
            return int(year)
        case nodes.Arithmetic(op=op, right=nodes.Number(value=offset)):
            return anchor.year + (int(offset) if op == "+" else -int(offset))
        case _:
            return anchor.year


def _month(node: nodes.Expression) -> int | None:
    """The month that an expression names, without offsets."""
    match _without_offset(node):
        case nodes.Day(value=day):
            return day.month
        case nodes.Call(name=nodes.Name(text="nth_weekday"), arguments=arguments):
            return MONTHS.get(_word(arguments[0]))  # without a month it applies to every month
        case nodes.Call(name=name):
            return MONTHS.get(name.text)
        case _:
            return None


def _year_argument(node: nodes.Expression) -> nodes.Expression | None:
    match _without_offset(node):
        case nodes.Call(name=name, arguments=arguments):
            position = 3 if name.text == "nth_weekday" else 1
            return arguments[position] if len(arguments) > position else None
        case _:
            return None


def _names_year(node: nodes.Expression) -> bool:
    """True if an expression has an explicit year, so that it never rolls over into the next one."""
    return _fixed_year(node) is not None or _year_argument(node) is not None


def _fixed_year(node: nodes.Expression) -> int | None:
    """The year if it is a number; None if it depends on the date of the run."""
    match _without_offset(node):
        case nodes.Day(value=day):
            return day.year
        case _:
            year = _year_argument(node)
            return _whole(year) if isinstance(year, nodes.Number) else None


def check_date(node: nodes.Expression) -> Iterator[Diagnostic]:
    """Reports the mistakes in a date expression."""
    match node:
        case nodes.Day():
            return
        case nodes.Arithmetic(op="+" | "-", left=left, right=nodes.Number() as days):
            if not 0 <= _whole(days, -1) <= FURTHEST_OFFSET:
                message = f"an offset must be a whole number of days up to {FURTHEST_OFFSET}"
                yield _bad(message, days)
            yield from check_date(left)
        case nodes.Call(name=name) if name.text not in _FUNCTIONS:
            help_line = did_you_mean(name.text, _FUNCTIONS)
            yield _bad(f"unknown date function `{name.text}`", name, help_line)
        case nodes.Call(name=nodes.Name(text="last_day_of_month"), arguments=arguments):
            if arguments:
                yield _bad("last_day_of_month() takes no argument", arguments[0])
        case nodes.Call(name=nodes.Name(text="nth_weekday")):
            yield from _check_nth_weekday(node)
        case nodes.Call(name=nodes.Name(text="weekday")):
            yield from _check_weekday(node)
        case nodes.Call():
            yield from _check_day_of_month(node)
        case _:
            example = "2024-11-29, december(25), nth_weekday(november, thursday, 4) + 3"
            yield _bad("this is not a date", node, f"write a date such as {example}")


def _check_weekday(call: nodes.Call) -> Iterator[Diagnostic]:
    if len(call.arguments) != 1:
        yield _bad("weekday takes a weekday", call, "write weekday(sunday)")
        return
    (word,) = call.arguments
    if not isinstance(word, nodes.Name) or word.text not in WEEKDAYS:
        yield _bad("this is not a weekday", word, did_you_mean(_word(word), WEEKDAYS))


def _check_nth_weekday(call: nodes.Call) -> Iterator[Diagnostic]:
    example = "nth_weekday(november, thursday, 4)"
    is_monthly = len(call.arguments) == 2 and _word(call.arguments[0]) not in MONTHS
    if not is_monthly and len(call.arguments) not in (3, 4):
        yield _bad("nth_weekday takes a month, a weekday and a number", call, f"write {example}")
        return
    in_month = () if is_monthly else call.arguments[:1]
    weekday, n, *year = call.arguments[len(in_month) :]
    words = [*((word, MONTHS, "month") for word in in_month), (weekday, WEEKDAYS, "weekday")]
    for word, names, noun in words:
        if not isinstance(word, nodes.Name) or word.text not in names:
            yield _bad(f"this is not a {noun}", word, did_you_mean(_word(word), names))
    if not isinstance(n, nodes.Number) or _whole(n) not in (*range(1, 6), *range(-5, 0)):
        yield _bad("the number of a weekday in its month must be 1 to 5, or -1 for the last", n)
    yield from _check_year(year)


def _check_day_of_month(call: nodes.Call) -> Iterator[Diagnostic]:
    month = call.name.text
    if len(call.arguments) not in (1, 2):
        yield _bad(f"{month} takes a day and an optional year", call, f"write {month}(1)")
        return
    day, *year = call.arguments
    longest = calendar.monthrange(2024, MONTHS[month])[1]
    if not isinstance(day, nodes.Number) or not 1 <= _whole(day) <= longest:
        yield _bad(f"{month} has the days 1 to {longest}", day)
    yield from _check_year(year)


def _check_year(year: list[nodes.Expression]) -> Iterator[Diagnostic]:
    for node in year:
        match node:
            case nodes.Number() if 1 < _whole(node) < 9998:
                continue
            case nodes.Name(text="year"):
                continue
            case nodes.Arithmetic(
                op="+" | "-", left=nodes.Name(text="year"), right=nodes.Number() as offset
            ) if 0 <= _whole(offset, -1) <= 10:
                continue
        yield _bad("this is not a year", node, "write `year`, `year + 1`, `year - 1` or a number")


def _bad(message: str, node: nodes.Expression, help_line: str | None = None) -> Diagnostic:
    return Diagnostic(message, node.span, code="E301", help=help_line)


def _word(node: nodes.Expression) -> str:
    return node.text if isinstance(node, nodes.Name) else ""


def _whole(node: nodes.Expression, otherwise: int = 0) -> int:
    """The integer of a node; `otherwise` for 1.5, 5% or 2 days."""
    match node:
        case nodes.Number(value=int(value), unit=nodes.Unit.PLAIN):
            return value
        case _:
            return otherwise
