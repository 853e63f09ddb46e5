"""The date of the data that a task run judges: the argument `date`, or the date of its run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from dqx_airflow.diagnostics.diagnostic import listed
from dqx_airflow.errors import RequestError
from dqx_airflow.operators.exceptions import GateMisconfiguredError
from dqx_airflow.values import request as of_request
from dqx_airflow.values.typed_values import day_in

_STARTS_WITH_DAY = re.compile(r"\d{4}-\d{2}-\d{2}([T ]|$)")
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DataDate:
    """The date of the data, and its origin in words (`from the logical date`).

    `objection` says why the date is in doubt and what to write instead; None if it is certain.
    `later` are the other dates of a range.
    """

    on: date
    source: str
    objection: str | None = None
    later: tuple[date, ...] = ()

    def __str__(self) -> str:
        if not self.later:
            return f"date {self.on.isoformat()}, {self.source}"
        first, last = self.on.isoformat(), self.later[-1].isoformat()
        return f"{len(self.later) + 1} dates from {first} to {last}, {self.source}"


def data_date(given: object, template: object, context: Any, log: Any) -> DataDate:
    """Determines the date of the data, and logs it first.

    :param given: the argument `date`, rendered; a value may render to nothing.
    :param template: the argument as written in the DAG.
    :raises GateMisconfiguredError: it is not a date.
    """
    is_given = template is not None or given is not None
    chosen = given_date(given, template) if is_given else date_of_run(context)
    write = log.info if chosen.objection is None else log.warning
    write("%s", chosen)
    return chosen


def given_date(value: object, template: object) -> DataDate:
    """The date, or the range, in `date=`; for a timestamp, its date as written.

    :param value: the value, rendered.
    :param template: the value as written in the DAG.
    :raises GateMisconfiguredError: it is neither a date nor a range.
    """
    # A template may yield a timestamp, or, with native rendering, a date or a number like 20240517.
    text = "" if value is None else str(value).strip()
    if of_request.is_range(text):
        try:
            dates = of_request.dates_of_range(text, _day_in)
        except RequestError as error:
            raise GateMisconfiguredError(f"date={value!r}: {error.in_one_line}") from None
        return DataDate(dates[0], f"from date={text!r}", later=dates[1:])
    on = _day_in(text)
    if on is None:
        is_template = isinstance(template, str) and template != value
        rendered = f"; {template!r} renders to that" if is_template else ""
        raise GateMisconfiguredError(
            f"date={value!r} is not a date: write YYYY-MM-DD, or leave date out to check the "
            f"logical date of the run{rendered}"
        )
    return DataDate(on, f"from date={text!r}")


def date_of_run(context: Any) -> DataDate:
    """The date of the run: its logical date, or else its partition key or the date in the asset
    events of the gates that triggered it."""
    run = context["dag_run"]
    timestamp = getattr(run, "logical_date", None)
    key = getattr(run, "partition_key", None)
    if timestamp is not None:
        found = _logical_date(timestamp, getattr(context.get("dag"), "timezone", None))
        return _agreeing(found, key) if key else found
    due = DataDate(_day_of(run.run_after), "the scheduled day of the run")
    named: dict[tuple[date, str], None] = {}
    if key:
        on = _day_of_key(key)
        if on is None:
            return _in_doubt(
                due,
                f"the partition key of the run, {str(key)!r}, is not a date",
                "date= with a template that returns a date from {{ partition_key }}",
            )
        named[on, f"the partition key {key}"] = None
    for event in getattr(run, "consumed_asset_events", None) or ():
        extra = event.extra
        if not isinstance(extra, Mapping) or "gate" not in extra:
            continue
        on = _day_of_key(getattr(event, "partition_key", None)) or _day_in(str(extra.get("date")))
        if on is None:
            problem = f"the asset event of {extra['gate']} has the date {extra.get('date')!r}"
            return _in_doubt(due, problem, "date=, a date or a template that returns one")
        named[on, f"the asset event of {extra['gate']}"] = None
    dates = {on for on, _ in named}
    if len(dates) > 1:
        return _different(due, named)
    if dates:
        return DataDate(dates.pop(), f"from {next(iter(named))[1]}")
    return _in_doubt(
        due,
        "the run has no logical date, and was not triggered by the asset event of a gate",
        "date=, such as date=\"{{ dag_run.conf['date'] }}\", or trigger it with a logical date",
    )


def _logical_date(timestamp: datetime, zone: Any) -> DataDate:
    """The day of a logical date as in `{{ ds }}`, if it is the same day in the time zone of the
    DAG."""
    on = _day_of(timestamp)
    source = "from the logical date of the run"
    local_day = _day_of(timestamp.astimezone(zone)) if zone is not None else on
    if local_day == on:
        return DataDate(on, source)
    name = getattr(zone, "name", None) or str(zone)
    return DataDate(
        on,
        source,
        f"the logical date {timestamp.isoformat()} is {on.isoformat()} in UTC and "
        f"{local_day.isoformat()} "
        f'in {name}, the time zone of the DAG: write date="{{{{ ds }}}}" for {on.isoformat()}, or '
        f"date=\"{{{{ logical_date.in_timezone('{name}') | ds }}}}\" for {local_day.isoformat()}",
    )


def _agreeing(found: DataDate, key: str) -> DataDate:
    """The date, in doubt if the partition key is another one: a form of Airflow that asks for the
    key fills in the logical date itself."""
    on = _day_of_key(key)
    if found.objection is not None or on is None or on == found.on:
        return found
    return _different(found, [(found.on, "the logical date"), (on, f"the partition key {key}")])


def _different(due: DataDate, named: Iterable[tuple[date, str]]) -> DataDate:
    """A date in doubt.

    :param named: the dates, each with its origin.
    """
    dates = [f"{on.isoformat()} ({origin})" for on, origin in named]
    return _in_doubt(
        due,
        f"the run was triggered with different dates: {listed(dates, most=_MOST_SHOWN)}",
        "date= with one of them, or expand the gate over all of them with .expand(date=...)",
    )


def _in_doubt(due: DataDate, problem: str, hint: str) -> DataDate:
    return DataDate(due.on, f"{due.source}: {problem}", f"{problem}: write {hint}")


def _day_in(text: str) -> date | None:
    """The day of an ISO date or timestamp, as written; None for other strings."""
    try:
        on = day_in(text)
        return on or datetime.fromisoformat(text.replace("Z", "+00:00")).date()
    except ValueError:
        return None


def _day_of_key(key: object) -> date | None:
    """The day in a partition key; None for a month, a week, or several segments."""
    return _day_in(str(key)) if _STARTS_WITH_DAY.match(str(key)) else None


def _day_of(timestamp: datetime) -> date:
    return date(timestamp.year, timestamp.month, timestamp.day)
