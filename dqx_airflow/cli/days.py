"""Days, periods and spans of time as they are typed: one form in all commands."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, TypeAlias

import typer

from dqx_airflow.errors import RequestError
from dqx_airflow.limits import MOST_DAYS


def day(text: str) -> date:
    """The day of `2024-12-25`, `today`, `yesterday` or `-3d`, three days ago.

    :raises typer.BadParameter: it is none of these.
    """
    return _day(text, date.today())


def day_in_utc(text: str) -> date:
    """The day as from `day`, where today is the day in UTC.

    :raises typer.BadParameter: it is none.
    """
    return _day(text, datetime.now(timezone.utc).date())


def _day(text: str, today: date) -> date:
    from dqx_airflow.values.typed_values import DAY_FORMS, typed_day

    found = typed_day(text, today)
    if found is None:
        raise typer.BadParameter(f"'{text}' is not a day: write {DAY_FORMS}")
    return found


_DAY = "DATE"
"""The name of a day in the help."""

DayOption: TypeAlias = Annotated[
    date | None, typer.Option("--date", parser=day, metavar=_DAY, help="The date of the data.")
]
FromOption: TypeAlias = Annotated[
    date | None,
    typer.Option("--from", parser=day, metavar=_DAY, help="The first day.", show_default=False),
]
ToOption: TypeAlias = Annotated[
    date | None,
    typer.Option("--to", parser=day, metavar=_DAY, help="The last day; default: today."),
]
DaysOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--days",
        min=1,
        max=MOST_DAYS,
        help="The number of days up to the last one, instead of --from.",
    ),
]
TodayOption: TypeAlias = Annotated[
    date | None,
    typer.Option(
        "--today", parser=day_in_utc, metavar=_DAY, help="The current day; default: today, in UTC."
    ),
]


def first_and_last(
    since: date | None, until: date | None, days: int | None = None, *, default: int
) -> tuple[date, date]:
    """The first and the last day of a period.

    :param default: its length in days if neither the first day nor a length is given.
    :raises RequestError: it ends before it begins, or is given twice.
    """
    from dqx_airflow.values.typed_values import days_before

    if since is not None and days is not None:
        raise RequestError("--from and --days contradict each other", "leave one of them out")
    last = until or date.today()
    first = since or days_before(last, (days or default) - 1)
    if first > last:
        raise RequestError(f"--from {first} is after --to {last}", "swap the two dates")
    return first, last


_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def span(text: str | timedelta) -> timedelta:
    """The length of time in `45s`, `30m`, `2h`, `7d` or `1w`. A default is a length already.

    :raises typer.BadParameter: it has no unit, is not positive, or is too long.
    """
    if isinstance(text, timedelta):
        return text
    match = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?)([smhdw])", text, re.ASCII)
    length = float(match[1]) * _UNITS[match[2]] if match else timedelta()
    if not timedelta() < length <= timedelta(days=MOST_DAYS):
        raise typer.BadParameter(
            f"'{text}' is not a length of time: write a number with its unit, such as 2h, 7d or 1w"
        )
    return length


def share(text: str | float) -> float:
    """The share in `10%` or `0.1`. A default is a share already.

    :raises typer.BadParameter: it is not between 0 and 1, or does not say what it is.
    """
    if isinstance(text, float):
        return text
    from dqx_airflow.values.typed_values import share_of

    found = share_of(text)
    if found is None:
        raise typer.BadParameter(f"'{text}' is not a share: write it like 80% or 0.8")
    return float(found)


MinShareOption: TypeAlias = Annotated[
    float, typer.Option("--min", parser=share, metavar="SHARE", show_default="0%")
]
