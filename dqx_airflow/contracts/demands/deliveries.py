"""Demands on the time and the volume of deliveries."""

from __future__ import annotations

import math
from calendar import monthrange
from datetime import date, datetime, time, timedelta
from math import inf
from typing import Any

from dqx_airflow.contracts import demand as base
from dqx_airflow.contracts.compile import claims, expectations, rule_context, terms
from dqx_airflow.contracts.compile.terms import ValueKind, kind_of, sql_name
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.sql import quote_name


class ServiceLevel(base.Demand, is_service_level=True):
    """A demand on the time and volume of deliveries."""


_PERIODS = ("age_s", "period_s", "interval_s")


class DemandOnPeriod(ServiceLevel):
    """A demand on the time between the values of a column and something else."""

    column: str | None

    @property
    def seconds(self) -> float:
        seconds: float = next(value for name, value in self._values.items() if name in _PERIODS)
        return seconds

    def not_before(self, extreme: str) -> expectations.Expectation:
        """The expectation that an extreme of the column is not older than the demand allows."""
        if self.column is None:
            raise NoCounterpartError("it does not name a column")
        timestamp = f"{extreme}({sql_name(self.column)})"
        oldest = f"current_timestamp() - INTERVAL {self.seconds:.10g} SECONDS"
        return expectations.unexpected_rows(
            f"SELECT {timestamp} AS moment FROM {{batch}} HAVING {timestamp} < {oldest}"  # noqa: S608
        )


class Fresh(
    DemandOnPeriod,
    dimension="timeliness",
    is_quality=True,
    odcs_property="freshness",
    words="{column} at most {age_s} old",
    stricter={"age_s": base.falling},
):
    """The latest value of the column is at most this many seconds old. By default the column is the
    only timestamp of the model, or the date column of its dataset."""

    age_s: float

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        try:
            column = self.column or _clock(context)
        except NoCounterpartError:
            ref = context.ref
            if ref is None or ref.path is None or ref.format != "delta":
                raise
            return claims.CompiledClaim(f"commit_age() <= {_time(self.seconds)}")
        return _younger(context, column, self.seconds)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return self.not_before("max")


class Prompt(
    ServiceLevel,
    dimension="timeliness",
    is_quality=True,
    stricter={"delay_s": base.falling, "share": base.rising},
):
    """`processed` is at most this many seconds after `source`, for this share of the rows."""

    source: str
    processed: str
    delay_s: float
    share: float = 1.0

    @property
    def text(self) -> str:
        between = f"from {self.source} to {self.processed}"
        share = base.share_of_rows(self.share)
        return f"{between} at most {base.duration_text(self.delay_s)}{share}"

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        share = min(self.share, context.rule.share)
        if any(_is_text(context, column) for column in (self.source, self.processed)):
            passed = f"{_timestamp(context, self.processed)} - {_timestamp(context, self.source)}"
            is_prompt = f"{passed} <= INTERVAL '{_seconds(self.delay_s)}' SECOND"
            # A string that is not a timestamp violates; a row without one of the two is not judged.
            both = " AND ".join(
                f"{terms.quoted(column)} IS NOT NULL" for column in (self.source, self.processed)
            )
            return claims.satisfied(
                f"CASE WHEN {both} THEN coalesce({is_prompt}, false) END", share
            )
        source = terms.column(self.source)
        processed = terms.column(self.processed)
        delay = nodes.Arithmetic("-", processed, source)
        predicate = nodes.Compare("<=", delay, terms.duration(self.delay_s))
        return claims.each_row(predicate, share)

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        deadline = f"{sql_name(self.source)} + INTERVAL {self.delay_s:.10g} SECONDS"
        return expectations.rows_where(f"{sql_name(self.processed)} > {deadline}", self.share)


class Retained(
    DemandOnPeriod,
    dimension="conformity",
    odcs_property="retention",
    words="{column} at most {period_s} back",
    stricter={"period_s": base.falling},
):
    """The earliest value of the column is at most this many seconds old.

    Without a column, the default column of `Fresh` is used.
    """

    period_s: float

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        column = self.column or _clock(context)
        _time(self.seconds)
        days, rest = divmod(self.seconds, _DAY_S)
        period = f"{days:.0f}' DAY" if rest == 0 else f"{self.seconds:.0f}' SECOND"
        limit = f"current_timestamp() - INTERVAL '{period}"
        is_older = f"{_timestamp(context, column)} < {limit}"
        if _is_text(context, column):  # a string that is not a timestamp violates
            is_older = f"coalesce({is_older}, {terms.quoted(column)} IS NOT NULL)"
        return claims.no_rows(claims.sql(f"count_if({is_older})"))

    def expectation(self, place: expectations.ExportedRule) -> expectations.Expectation:
        return self.not_before("min")


def _lower_end(old: float | None, new: float | None) -> base.Order:
    return base.rising(*(-inf if value is None else value for value in (old, new)))


def _upper_end(old: float | None, new: float | None) -> base.Order:
    return base.falling(*(inf if value is None else value for value in (old, new)))


class Volume(ServiceLevel, dimension="coverage", is_quality=True):
    """The rows of a day, or their mean over several days, compared with a baseline.

    The default baseline is the mean of the `days` before. `low` and `high` are multiples of it.
    """

    low: float | None
    high: float | None
    baseline: float | None = None
    days: int = 1

    @property
    def text(self) -> str:
        times = base.range_text(self.low, self.high)
        baseline = "the mean of the days before"
        if self.baseline is not None:
            baseline = f"{base.number_text(self.baseline)} rows"
        return f"{times} times {baseline}" + (f", over {self.days} days" * (self.days > 1))

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        if self.days != new.days or (self.baseline is None) != (new.baseline is None):
            return base.Order.OTHER
        low, high = zip(self._band, new._band, strict=True)
        return base.all_of(_lower_end(*low), _upper_end(*high))

    @property
    def _band(self) -> tuple[float | None, float | None]:
        """The bounds as numbers of rows if `baseline` is given, else as multiples of the mean."""
        factor = 1.0 if self.baseline is None else self.baseline
        low = None if self.low is None else self.low * factor
        high = None if self.high is None else self.high * factor
        return low, high

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        _need_dates(context)
        rows = "num_rows()" if self.days <= 1 else mean_rows(context, self.days)
        if self.baseline is None:
            days = max(self.days, 2)
            return _within(f"num_rows() / mean(num_rows(), n {days}, lag 1)", self.low, self.high)
        # Without binary rounding errors in late digits: 1.1 times 3 is 3.3.
        low, high = (
            None if factor is None else float(f"{factor * self.baseline:.12g}")
            for factor in (self.low, self.high)
        )
        return _within(rows, low, high)


class HourlyVolume(
    ServiceLevel,
    dimension="coverage",
    subject_fields=("column",),
    stricter={"low": _lower_end, "high": _upper_end},
):
    """The rows of each hour of the column are within the bounds, including hours without rows.
    Without a column, the default column of `Fresh` is used."""

    column: str | None
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        of_column = f" of {self.column}" if self.column else ""
        return f"{base.range_text(self.low, self.high)} rows an hour{of_column}"

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        bounds = [
            f"found {op} {show(terms.number(limit))}"
            for op, limit in (("<", self.low), (">", self.high))
            if limit is not None
        ]
        if not bounds:
            raise NoCounterpartError("it has no limits")
        column = self.column or _clock(context, of_what="hours", tells_hours=True)
        zone = context.ref.time_zone if context.ref else None
        timestamp = _local(terms.quoted(column), zone)
        now = _local("current_timestamp()", zone)
        model = quote_name(context.model.name)
        timestamps = f"SELECT {timestamp} AS moment FROM {model}"  # noqa: S608
        hours = (
            f"SELECT date_trunc('HOUR', moment) AS hour, count(*) AS found FROM ({timestamps}) "  # noqa: S608
            "WHERE moment IS NOT NULL GROUP BY 1"
        )
        if self.low is not None:
            hours = _with_empty_hours(context, timestamps, hours, now)
        text = f"SELECT count(*) FROM ({hours}) WHERE {' OR '.join(bounds)}"  # noqa: S608
        return claims.no_rows(claims.query(text))


class Arrives(DemandOnPeriod, dimension="timeliness", odcs_property="frequency"):
    """Every interval of this many seconds has new rows, on any of its days. With a `schedule`
    (`monthly`, or a cron expression), there are new rows since the last delivery day.

    Without a column the rows of the days are counted. If the dataset of the gate has no dates, the
    only timestamp of the model is the column.
    """

    interval_s: float
    schedule: str | None = None

    @property
    def text(self) -> str:
        when = f" ({self.schedule})" if self.schedule else ""
        return f"new rows every {base.duration_text(self.seconds)}{when}"

    def order(self, new: Any, *, is_whole: bool = False) -> base.Order:
        if self.column != new.column or self.seconds == new.seconds:
            return base.Order.OTHER
        return base.falling(self.seconds, new.seconds)

    def claim(self, context: rule_context.RuleContext) -> claims.CompiledClaim:
        column = self.column
        if column is None and not _may_have_dates(context):
            column = _only_timestamp(context)
        if column is not None:
            return _younger(context, column, self.seconds)
        _time(self.seconds)
        days = days_due(self, context.on)
        return claims.CompiledClaim(
            "num_rows() > 0" if days == 1 else f"{mean_rows(context, days)} > 0"
        )


def days_due(demand: Arrives, on: date | None) -> int:
    """The number of days from the last delivery day up to a date, inclusive: one of these days must
    have rows.

    Without a schedule, data is due at any time within the interval: a month ends with the same day
    of the next month, or with its last day.

    :param on: the date of the data. Without it, the longest interval counts.
    """
    if on is not None and demand.schedule is not None:
        return (on - _last_run(demand.schedule, on)).days + 1
    months, rest = divmod(demand.seconds, _MONTH_S)
    if on is not None and rest == 0:
        return (on - _months_before(on, int(months))).days
    return max(1, math.ceil(demand.seconds / _DAY_S))


def _last_run(cron: str, on: date) -> date:
    """The last day up to a date on which a cron expression runs."""
    from croniter import croniter

    midnight = datetime.combine(on + timedelta(days=1), time.min)
    last: datetime = croniter(cron, midnight, ret_type=datetime).get_prev()
    return last.date()


def _months_before(on: date, months: int) -> date:
    years, month = divmod(on.year * 12 + on.month - 1 - months, 12)
    years = max(years, date.min.year)
    return date(years, month + 1, min(on.day, monthrange(years, month + 1)[1]))


_MONTH_S = 31_556_952 // 12
"""A twelfth of a year of 365.2425 days: the length of a month in durations."""
_DAY_S = 86400


def _clock(
    context: rule_context.RuleContext, *, of_what: str = "age", tells_hours: bool = False
) -> str:
    """The default time column of a model: its only timestamp, or the date column of the gate's
    dataset.

    :raises NoCounterpartError: the model has neither.
    """
    timestamps = _timestamps(context)
    if len(timestamps) == 1:
        return timestamps[0]
    dated = context.ref.date_column if context.ref is not None else None
    if dated is not None and (not tells_hours or dated in timestamps):
        return dated
    objection = (
        "the dataset has several timestamp columns"
        if timestamps
        else "the dataset has no timestamp column"
    )
    raise NoCounterpartError(
        f"{objection}, so the column of the {of_what} is unknown: name one, or set a date_column"
    )


def _timestamps(context: rule_context.RuleContext) -> list[str]:
    """The columns of the model that are timestamps."""
    return [item.path for item in context.model.fields if kind_of(item) is ValueKind.TIMESTAMP]


def _only_timestamp(context: rule_context.RuleContext) -> str:
    """The only timestamp of a model whose dataset has no date column.

    :raises NoCounterpartError: the model has no timestamp, or several.
    """
    timestamps = _timestamps(context)
    if len(timestamps) == 1:
        return timestamps[0]
    found = "several timestamps" if timestamps else "no timestamp"
    raise NoCounterpartError(f"{_undated(context)}, and its model has {found}")


def mean_rows(context: rule_context.RuleContext, days: int) -> str:
    """The mean number of rows over n days. A day without rows counts: that is the fault."""
    _need_dates(context)
    return f"mean(coalesce(num_rows(), 0), n {days})"


def _may_have_dates(context: rule_context.RuleContext) -> bool:
    """False if the gate's dataset is known, and has no date column."""
    return context.ref is None or context.ref.date_column is not None


def _need_dates(context: rule_context.RuleContext) -> None:
    """:raises NoCounterpartError: the gate's dataset has no date column."""
    if not _may_have_dates(context):
        raise NoCounterpartError(_undated(context))


def _undated(context: rule_context.RuleContext) -> str:
    return f"it compares days, but dataset '{context.model.name}' has no date_column"


def _with_empty_hours(
    context: rule_context.RuleContext, timestamps: str, hours: str, now: str
) -> str:
    """The hours including hours without rows, as SQL: all past hours of the days with rows; for a
    dataset without dates, from the first hour with rows to the last."""
    first, last = "date_trunc('HOUR', min(moment))", "date_trunc('HOUR', max(moment))"
    if _may_have_dates(context):
        first = "date_trunc('DAY', min(moment))"
        over = f"date_trunc('HOUR', {now}) - INTERVAL '1' HOUR"
        end = "date_trunc('DAY', max(moment)) + INTERVAL '1' DAY - INTERVAL '1' HOUR"
        last = f"greatest({last}, least({end}, {over}))"
    every = (
        f"SELECT explode(sequence({first}, {last}, INTERVAL '1' HOUR)) AS hour FROM ({timestamps})"  # noqa: S608
    )
    return (
        f"SELECT hour, coalesce(found, 0) AS found FROM ({every}) "  # noqa: S608
        f"LEFT JOIN ({hours}) USING (hour)"
    )


def _local(timestamp: str, zone: str | None) -> str:
    """A timestamp in the local time of a zone, by default the zone of the session."""
    if zone is None:
        return timestamp
    name = zone.replace("'", "")
    return f"from_utc_timestamp(to_utc_timestamp({timestamp}, current_timezone()), '{name}')"


def _within(expression: str, low: float | None, high: float | None) -> claims.CompiledClaim:
    if low is not None and high is not None:
        return claims.compared(expression, base.Condition("between", low, high))
    if low is not None:
        return claims.compared(expression, base.Condition(">=", low))
    if high is not None:
        return claims.compared(expression, base.Condition("<=", high))
    raise NoCounterpartError("it has no limits")


def _younger(
    context: rule_context.RuleContext, column: str, seconds: float
) -> claims.CompiledClaim:
    """The claim that the latest value of a column is at most this old."""
    limit = _time(seconds)
    if not _is_text(context, column):
        return claims.CompiledClaim(f"freshness({show(terms.column(column))}) <= {limit}")
    oldest = f"current_timestamp() - INTERVAL '{_seconds(seconds)}' SECOND"
    is_young = f"CAST(max({_timestamp(context, column)}) >= {oldest} AS INT)"
    return claims.CompiledClaim(f"{claims.sql(is_young)} == 1")


def _timestamp(context: rule_context.RuleContext, column: str) -> str:
    """A column of timestamps or of strings with timestamps, as SQL; NULL for other strings."""
    name = terms.quoted(column)
    return f"try_cast({name} AS TIMESTAMP)" if _is_text(context, column) else name


def _is_text(context: rule_context.RuleContext, column: str) -> bool:
    return kind_of(context.model.field_at(column)) is ValueKind.TEXT


def _seconds(seconds: float) -> str:
    return show(terms.number(seconds))


def _time(seconds: float) -> str:
    terms.number(seconds)
    if seconds <= 0:
        raise NoCounterpartError("a time must be above 0")
    return show_number(terms.duration(seconds))
