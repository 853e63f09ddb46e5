"""Date expressions of profiles: what they mean on a given date, which is an argument."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date, timedelta

from dqx_airflow.diagnostics.diagnostic import Diagnostic
from dqx_airflow.diagnostics.nearest import did_you_mean
from dqx_airflow.dql import nodes

MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
WEEKDAYS = {name.lower(): number for number, name in enumerate(calendar.day_name)}

_FUNCTIONS = (*MONTHS, "nth_weekday", "last_day_of_month")


def is_active(start: nodes.Expression, end: nodes.Expression, on: date) -> bool:
    """True where `on` lies between the two dates, both included.

    Expressions are evaluated around `on`: in its month and the neighbours, in its year and the
    neighbours, so that a period that reaches over the turn of a month or year is found from both
    sides. An `end` in an earlier month than `start` belongs to the following year.
    """
    for anchor in _anchors(on):
        first, last = evaluate(start, anchor), evaluate(end, anchor)
        if first is None or last is None:
            continue
        if last < first and not _is_fixed(end):
            last = evaluate(end, anchor.replace(year=anchor.year + 1, day=1)) or last
        if first <= on <= last:
            return True
    return False


def _anchors(on: date) -> Iterator[date]:
    first = on.replace(day=1)
    yield first
    yield (first - timedelta(days=1)).replace(day=1)
    yield (first + timedelta(days=32)).replace(day=1)
    yield first.replace(year=first.year - 1)
    yield first.replace(year=first.year + 1)


def evaluate(node: nodes.Expression, anchor: date) -> date | None:
    """The date that an expression stands for in the month and year of `anchor`.

    None where there is no such date, such as a fifth Thursday. The expression has passed
    `check_date`.
    """
    match node:
        case nodes.Day(value=day):
            return day
        case nodes.Arithmetic(op=op, left=left, right=nodes.Number(value=days)):
            base = evaluate(left, anchor)
            offset = timedelta(days=int(days) if op == "+" else -int(days))
            return base + offset if base else None
        case nodes.Call(name=nodes.Name(text="last_day_of_month")):
            return anchor.replace(day=calendar.monthrange(anchor.year, anchor.month)[1])
        case nodes.Call(name=nodes.Name(text="nth_weekday"), arguments=(month, weekday, n, *year)):
            in_year = _year(year, anchor)
            return _nth_weekday(in_year, MONTHS[_word(month)], WEEKDAYS[_word(weekday)], _whole(n))
        case nodes.Call(name=nodes.Name(text=month), arguments=(day, *year)):
            in_year, number = _year(year, anchor), MONTHS[month]
            if _whole(day) > calendar.monthrange(in_year, number)[1]:
                return None  # february(29) in most years
            return date(in_year, number, _whole(day))
        case _:
            return None


def _nth_weekday(year: int, month: int, weekday: int, n: int) -> date | None:
    days = [week[weekday] for week in calendar.monthcalendar(year, month) if week[weekday]]
    index = n - 1 if n > 0 else n
    return date(year, month, days[index]) if -len(days) <= index < len(days) else None


def _year(arguments: list[nodes.Expression], anchor: date) -> int:
    """`2025`, `year`, `year + 1`; the year of the anchor where nothing is said."""
    if not arguments:
        return anchor.year
    match arguments[0]:
        case nodes.Number(value=year):
            return int(year)
        case nodes.Arithmetic(op=op, right=nodes.Number(value=offset)):
            return anchor.year + (int(offset) if op == "+" else -int(offset))
        case _:
            return anchor.year


def _is_fixed(node: nodes.Expression) -> bool:
    """True where the year is written down: no rollover into the next one."""
    match node:
        case nodes.Day():
            return True
        case nodes.Arithmetic(left=left):
            return _is_fixed(left)
        case nodes.Call(name=name, arguments=arguments):
            return len(arguments) > (3 if name.text == "nth_weekday" else 1)
        case _:
            return False


def check_date(node: nodes.Expression) -> Iterator[Diagnostic]:
    """What is wrong with a date expression."""
    match node:
        case nodes.Day():
            return
        case nodes.Arithmetic(op="+" | "-", left=left, right=nodes.Number(value=int())):
            yield from check_date(left)
        case nodes.Call(name=name) if name.text not in _FUNCTIONS:
            help_line = did_you_mean(name.text, _FUNCTIONS)
            yield _bad(f"unknown date function `{name.text}`", name, help_line)
        case nodes.Call(name=nodes.Name(text="last_day_of_month"), arguments=arguments):
            if arguments:
                yield _bad("last_day_of_month() takes no argument", arguments[0])
        case nodes.Call(name=nodes.Name(text="nth_weekday")):
            yield from _check_nth_weekday(node)
        case nodes.Call():
            yield from _check_day_of_month(node)
        case _:
            example = "2024-11-29, december(25), nth_weekday(november, thursday, 4) + 3"
            yield _bad("this is not a date", node, f"write a date such as {example}")


def _check_nth_weekday(call: nodes.Call) -> Iterator[Diagnostic]:
    example = "nth_weekday(november, thursday, 4)"
    if len(call.arguments) not in (3, 4):
        yield _bad("nth_weekday takes a month, a weekday and a number", call, f"write {example}")
        return
    month, weekday, n, *year = call.arguments
    for word, known, what in ((month, MONTHS, "month"), (weekday, WEEKDAYS, "weekday")):
        if not isinstance(word, nodes.Name) or word.text not in known:
            yield _bad(f"this is not a {what}", word, did_you_mean(_word(word), known))
    if not isinstance(n, nodes.Number) or _whole(n) not in (*range(1, 6), *range(-5, 0)):
        yield _bad("the number of a weekday in its month is 1 to 5, or -1 for the last", n)
    yield from _check_year(year)


def _check_day_of_month(call: nodes.Call) -> Iterator[Diagnostic]:
    month = call.name.text
    if len(call.arguments) not in (1, 2):
        yield _bad(f"{month} takes a day, and maybe a year", call, f"write {month}(1)")
        return
    day, *year = call.arguments
    longest = calendar.monthrange(2024, MONTHS[month])[1]
    if not isinstance(day, nodes.Number) or not 1 <= _whole(day) <= longest:
        yield _bad(f"{month} has the days 1 to {longest}", day)
    yield from _check_year(year)


def _check_year(year: list[nodes.Expression]) -> Iterator[Diagnostic]:
    for node in year:
        match node:
            case nodes.Number(value=int(value)) if 1 < value < 9998:
                continue
            case nodes.Name(text="year"):
                continue
            case nodes.Arithmetic(
                op="+" | "-", left=nodes.Name(text="year"), right=nodes.Number(value=int())
            ):
                continue
        yield _bad("this is not a year", node, "write `year`, `year + 1`, `year - 1` or a number")


def _bad(message: str, node: nodes.Expression, help_line: str | None = None) -> Diagnostic:
    return Diagnostic(message, node.span, code="E301", help=help_line)


def _word(node: nodes.Expression) -> str:
    return node.text if isinstance(node, nodes.Name) else ""


def _whole(node: nodes.Expression) -> int:
    return int(node.value) if isinstance(node, nodes.Number) else 0
