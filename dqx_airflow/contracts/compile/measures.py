"""Demands on measured values and on whole datasets as DQL: metrics, volume, freshness, delivery.

The engine writes its own SQL, with faster patterns; in the text of a suite, patterns stay as in the
contract.
"""

from __future__ import annotations

import math
from calendar import monthrange
from datetime import date, datetime, time, timedelta

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile import terms
from dqx_airflow.contracts.compile.columns import among, matches, nested, spark_text
from dqx_airflow.contracts.compile.context import (
    CompiledClaim,
    CountOfRows,
    Query,
    RowSql,
    RuleContext,
    SqlAggregate,
    TableSql,
    each_row,
    no_rows,
    query,
    query_meaning,
    row_meaning,
    sql,
)
from dqx_airflow.contracts.compile.terms import ValueKind, kind_of
from dqx_airflow.contracts.model import Field, parts_of
from dqx_airflow.diagnostics.diagnostic import did_you_mean
from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_number
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.metrics.builtin import CALLABLE
from dqx_airflow.metrics.derived import MOST_COMMON
from dqx_airflow.metrics.sql import quote_name


def unique(context: RuleContext, demand: demands.Unique) -> CompiledClaim:
    return CompiledClaim(f"{repeated(demand.columns)} == 0")


def distinct(context: RuleContext, demand: demands.Distinct) -> CompiledClaim:
    if demand.duplicates <= 0:
        return CompiledClaim(f"{repeated(demand.columns)} == 0")
    most = show_number(terms.share(demand.duplicates))
    return CompiledClaim(f"{repeated(demand.columns)} / num_rows() <= {most}")


def complete(context: RuleContext, demand: demands.Complete) -> CompiledClaim:
    column = show(terms.column(demand.column))
    if demand.share >= 1:
        return CompiledClaim(f"null_count({column}) == 0")
    return CompiledClaim(
        f"count({column}) / num_rows() >= {show_number(terms.share(demand.share))}"
    )


def all_complete(context: RuleContext, demand: demands.AllComplete) -> CompiledClaim:
    counts = [f"null_count({show(terms.column(item.path))})" for item in context.model.fields]
    if not counts:
        raise NoCounterpartError("the contract lists no columns")
    if demand.share >= 1:
        return CompiledClaim(f"{' + '.join(counts)} == 0")
    most = show_number(terms.share(round(1 - demand.share, 12)))
    missing = f"({' + '.join(counts)})" if len(counts) > 1 else counts[0]
    return CompiledClaim(f"coalesce({missing} / (num_rows() * {len(counts)}), 0) <= {most}")


def measured(context: RuleContext, demand: demands.MetricRule) -> CompiledClaim:
    """A metric with a condition. A count of rows becomes a demand on each of them if possible: then
    failing rows can be shown."""
    if demand.metric == MOST_COMMON:
        column, item = _subject(context, demand)
        membership = among(column, demand.values, item)
        if isinstance(membership, nodes.Member):
            return CompiledClaim(f"{MOST_COMMON}({show(column)}, 1) in {show(membership.choices)}")
    counted = _COUNTED.get(demand.metric)
    if counted is None:
        expression = _metric(demand)
    else:
        bad = counted(context, demand)
        condition = demand.condition
        if condition == demands.NONE or (condition.op == "<=" and condition.bound == 0):
            return each_row(terms.negation(bad))
        expression = (
            f"num_rows(where {show(bad)})"
            if context.is_filtered
            else sql(f"count_if({spark_text(bad)})")
        )
    if demand.is_percent:
        return CompiledClaim(compared(f"{expression} / num_rows()", demand.condition, "%"))
    return CompiledClaim(compared(expression, demand.condition))


def query_gives(context: RuleContext, demand: demands.QueryGives) -> CompiledClaim:
    rule = query_meaning(context, demand)
    if isinstance(rule, CountOfRows):
        if demand.condition == demands.NONE:
            return each_row(terms.negation(rule.predicate))
        return CompiledClaim(
            compared(sql(f"count_if({spark_text(rule.predicate)})"), demand.condition)
        )
    if isinstance(rule, SqlAggregate):
        return CompiledClaim(compared(sql(rule.sql), demand.condition))
    other_datasets = tuple(name for name in rule.datasets if name != context.model.name)
    return CompiledClaim(compared(query(rule.sql), demand.condition), other_datasets)


def repeated(columns: tuple[str, ...]) -> str:
    """The number of rows that repeat another one, except for those with NULL in the columns."""
    listed = ", ".join(show(terms.column(column)) for column in columns)
    return f"repeated_count({listed if len(columns) == 1 else f'[{listed}]'})"


def compared(expression: str, condition: demands.Condition, unit: str = "") -> str:
    """An expression with its condition; bounds are in the unit."""
    op, low, high = condition.op, condition.bound, condition.high
    if op == "between" and high is not None:
        return f"{expression} between {_bound(low, unit)} and {_bound(high, unit)}"
    if op == "not between" and high is not None:
        # A value outside of both bounds is further from their middle than they are.
        middle, half = (low + high) / 2, (high - low) / 2
        return f"abs({expression} - {_bound(middle, unit)}) > {_bound(half, unit)}"
    return f"{expression} {op} {_bound(low, unit)}"


def _bound(value: int | float, unit: str) -> str:
    return f"{show(terms.number(value))}{unit}"


def _metric(demand: demands.MetricRule) -> str:
    if demand.metric == "duplicate_count":
        return repeated(demand.arguments)
    if demand.metric not in CALLABLE:
        hint = did_you_mean(demand.metric, CALLABLE)
        raise NoCounterpartError(f"unknown metric '{demand.metric}': {hint}")
    arguments = ", ".join(show(terms.column(column)) for column in demand.arguments)
    return f"{demand.metric}({arguments})"


def _invalid(context: RuleContext, demand: demands.MetricRule) -> nodes.Expression:
    """A value is none of the valid ones."""
    column, item = _subject(context, demand)
    valid = _listed(column, demand, item)
    if not valid:
        raise NoCounterpartError("it does not define which values are valid")
    return terms.negated(_joined(valid, "and"))


def _missing(context: RuleContext, demand: demands.MetricRule) -> nodes.Expression:
    """The value is NULL, or one of those that mean a missing value."""
    column, item = _subject(context, demand)
    try:
        listed = _listed(column, demand, item)
    except NoCounterpartError:
        if demand.pattern is not None:
            raise
        listed = []  # No value of a numeric column is such a string.
    return _joined([terms.is_null(column), *listed], "or")


def _equal(context: RuleContext, demand: demands.MetricRule) -> nodes.Expression:
    """A value is one of those that are counted."""
    column, item = _subject(context, demand)
    predicates = _listed(column, demand, item)
    if not predicates:
        raise NoCounterpartError("it does not define which values are counted")
    return _joined(predicates, "or")


_COUNTED = {"invalid_count": _invalid, "missing_count": _missing, "count_values": _equal}
"""Metrics that count the rows for which a predicate is true."""


def _subject(context: RuleContext, demand: demands.MetricRule) -> tuple[nodes.Name, Field | None]:
    if len(demand.arguments) != 1:
        raise NoCounterpartError(f"{demand.metric} takes exactly one column")
    (path,) = demand.arguments
    return terms.column(path), context.field_at(path)


def _listed(
    column: nodes.Name, demand: demands.MetricRule, item: Field | None
) -> list[nodes.Expression]:
    predicates = []
    if demand.values:
        predicates.append(among(column, demand.values, item))
    if demand.pattern is not None:
        predicates.append(matches(column, demands.Pattern(demand.pattern), item))
    return predicates


def _joined(predicates: list[nodes.Expression], op: str) -> nodes.Expression:
    joined = predicates[0]
    for predicate in predicates[1:]:
        joined = nodes.Junction(op, joined, predicate, terms.NOWHERE)
    return joined


_MONTH_S = 31_556_952 // 12
"""A twelfth of a year of 365.2425 days: the length of a month in durations."""


def days_due(demand: demands.Arrives, on: date | None) -> int:
    """The number of days from the last delivery day up to a date, inclusive: one of them must have
    rows.

    Without a schedule, data is due at any time within the interval: a month ends with the same day
    of the next one, or with its last day.

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


_DAY_S = 86400


def refers(context: RuleContext, demand: demands.Refers) -> CompiledClaim:
    other = context.dataset(demand.dataset)
    if len(demand.columns) != len(demand.other_columns) or not demand.columns:
        raise NoCounterpartError("both sides of a reference need the same number of columns")
    if context.item is not None and not context.is_reachable:
        return _refers_from_within(context, other, demand.other_columns[0])
    if len(demand.columns) == 1:
        values = terms.values_of(show_free(demand.other_columns[0]), other)
        column = terms.column(demand.columns[0])
        return each_row(nodes.Member(column, values, terms.NOWHERE))
    pairs = list(zip(demand.columns, demand.other_columns, strict=True))
    present = " AND ".join(f"own.{_quoted(column)} IS NOT NULL" for column, _ in pairs)
    equal = " AND ".join(
        f"other.{_quoted(other_column)} = own.{_quoted(column)}" for column, other_column in pairs
    )
    return _unfound(context, f"{quote_name(context.model.name)} AS own", other, present, equal)


def rows_satisfy(context: RuleContext, demand: demands.RowsSatisfy) -> CompiledClaim:
    share = min(demand.share, context.rule.share)
    rule = row_meaning(context, demand.predicate, demand.sql_dialect)
    match rule:
        case RowSql(sql=predicate):
            return _satisfied(predicate, share)
        case TableSql(sql=predicate):
            return CompiledClaim(f"{sql(f'CAST({predicate} AS INT)')} == 1")
        case Query(sql=text, datasets=datasets):
            if share < 1:
                raise NoCounterpartError(
                    "a share of rows cannot be combined with other datasets or window functions"
                )
            other_datasets = tuple(name for name in datasets if name != context.model.name)
            return CompiledClaim(f"{query(text)} == 0", other_datasets)
        case _:
            return each_row(rule, share)


def fresh(context: RuleContext, demand: demands.Fresh) -> CompiledClaim:
    try:
        column = demand.column or _clock(context)
    except NoCounterpartError:
        if not _is_delta(context):
            raise
        return CompiledClaim(f"commit_age() <= {_time(demand.seconds)}")
    return _younger(context, column, demand.seconds)


def _is_delta(context: RuleContext) -> bool:
    ref = context.ref
    return ref is not None and ref.path is not None and ref.format == "delta"


def _clock(context: RuleContext, *, of_what: str = "age", tells_hours: bool = False) -> str:
    """The time column of a model if the contract names none: its only timestamp, or the date column
    of the gate's dataset.

    :raises NoCounterpartError: there is neither.
    """
    timestamps = [
        item.path for item in context.model.fields if kind_of(item) is ValueKind.TIMESTAMP
    ]
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


def prompt(context: RuleContext, demand: demands.Prompt) -> CompiledClaim:
    share = min(demand.share, context.rule.share)
    if any(_is_text(context, column) for column in (demand.source, demand.processed)):
        passed = f"{_timestamp(context, demand.processed)} - {_timestamp(context, demand.source)}"
        return _satisfied(f"{passed} <= INTERVAL '{_seconds(demand.delay_s)}' SECOND", share)
    source, processed = terms.column(demand.source), terms.column(demand.processed)
    delay = terms.arithmetic(processed, "-", source)
    predicate = terms.compare(delay, "<=", terms.duration(demand.delay_s))
    return each_row(predicate, share)


def retained(context: RuleContext, demand: demands.Retained) -> CompiledClaim:
    column = demand.column or _clock(context)
    _time(demand.seconds)
    days, rest = divmod(demand.seconds, _DAY_S)
    period = f"{days:.0f}' DAY" if rest == 0 else f"{demand.seconds:.0f}' SECOND"
    limit = f"current_timestamp() - INTERVAL '{period}"
    return CompiledClaim(f"{sql(f'count_if({_timestamp(context, column)} < {limit})')} == 0")


def volume(context: RuleContext, demand: demands.Volume) -> CompiledClaim:
    rows = "num_rows()" if demand.days <= 1 else mean_rows(context, demand.days)
    if demand.baseline is None:
        _need_dates(context)
        days = max(demand.days, 2)
        return _within(f"num_rows() / mean(num_rows(), n {days}, lag 1)", demand.low, demand.high)
    low, high = (
        None if factor is None else _rounded(factor * demand.baseline)
        for factor in (demand.low, demand.high)
    )
    return _within(rows, low, high)


def mean_rows(context: RuleContext, days: int) -> str:
    """The mean number of rows over n days. A day without rows counts: that is the fault."""
    _need_dates(context)
    return f"mean(coalesce(num_rows(), 0), n {days})"


def _need_dates(context: RuleContext) -> None:
    """:raises NoCounterpartError: the gate's dataset has no date column."""
    if context.ref is not None and context.ref.date_column is None:
        reason = f"it compares days, but dataset '{context.model.name}' has no date_column"
        raise NoCounterpartError(reason)


def hourly_volume(context: RuleContext, demand: demands.HourlyVolume) -> CompiledClaim:
    bounds = [
        f"found {op} {show(terms.number(limit))}"
        for op, limit in (("<", demand.low), (">", demand.high))
        if limit is not None
    ]
    if not bounds:
        raise NoCounterpartError("it has no limits")
    column = demand.column or _clock(context, of_what="hours", tells_hours=True)
    zone = context.ref.time_zone if context.ref else None
    timestamp, now = _local(_quoted(column), zone), _local("current_timestamp()", zone)
    model = quote_name(context.model.name)
    timestamps = f"SELECT {timestamp} AS moment FROM {model}"  # noqa: S608
    hours = (
        f"SELECT date_trunc('HOUR', moment) AS hour, count(*) AS found FROM ({timestamps}) "  # noqa: S608
        "WHERE moment IS NOT NULL GROUP BY 1"
    )
    if demand.low is not None:
        hours = _with_empty_hours(context, timestamps, hours, now)
    text = f"SELECT count(*) FROM ({hours}) WHERE {' OR '.join(bounds)}"  # noqa: S608
    return CompiledClaim(f"{query(text)} == 0")


def _with_empty_hours(context: RuleContext, timestamps: str, hours: str, now: str) -> str:
    """The hours, including those without rows: all past hours of the days with rows; for a dataset
    without dates from the first hour with rows to the last."""
    first, last = "date_trunc('HOUR', min(moment))", "date_trunc('HOUR', max(moment))"
    if context.ref is None or context.ref.date_column is not None:
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
    """A timestamp in the local time of a zone, by default that of the session."""
    if zone is None:
        return timestamp
    name = zone.replace("'", "")
    return f"from_utc_timestamp(to_utc_timestamp({timestamp}, current_timezone()), '{name}')"


def arrives(context: RuleContext, demand: demands.Arrives) -> CompiledClaim:
    if demand.column is not None:
        return _younger(context, demand.column, demand.seconds)
    _time(demand.seconds)
    days = days_due(demand, context.on)
    return CompiledClaim("num_rows() > 0" if days == 1 else f"{mean_rows(context, days)} > 0")


def show_free(path: str) -> str:
    """The name of a column of another dataset."""
    return terms.column(path).text


def _within(expression: str, low: float | None, high: float | None) -> CompiledClaim:
    if low is not None and high is not None:
        return CompiledClaim(compared(expression, demands.Condition("between", low, high)))
    if low is not None:
        return CompiledClaim(compared(expression, demands.Condition(">=", low)))
    if high is not None:
        return CompiledClaim(compared(expression, demands.Condition("<=", high)))
    raise NoCounterpartError("it has no limits")


def _rounded(value: float) -> float:
    """The number without binary rounding errors in late digits: 1.1 times 3 is 3.3."""
    return float(f"{value:.12g}")


def _refers_from_within(context: RuleContext, other: str, column: str) -> CompiledClaim:
    """A reference of the items of an array."""
    model, items = quote_name(context.model.name), nested(context.way).sql
    inner = f"SELECT explode({items}) AS item FROM {model}"  # noqa: S608
    equal = f"other.{_quoted(column)} = own.item"
    return _unfound(context, f"({inner}) AS own", other, "own.item IS NOT NULL", equal)


def _unfound(
    context: RuleContext, source: str, other: str, present: str, equal: str
) -> CompiledClaim:
    """No values are missing in another dataset."""
    partner = f"SELECT 1 FROM {quote_name(other)} AS other WHERE {equal}"  # noqa: S608
    text = f"SELECT count(*) FROM {source} WHERE {present} AND NOT EXISTS ({partner})"  # noqa: S608
    return CompiledClaim(f"{query(text)} == 0", () if other == context.model.name else (other,))


def _satisfied(predicate: str, share: float) -> CompiledClaim:
    """A claim on the share of rows for which a predicate is true, of those where it is not NULL."""
    return no_rows(sql(f"count_if(NOT ({predicate}))"), share, sql(f"count(({predicate}))"))


def _younger(context: RuleContext, column: str, seconds: float) -> CompiledClaim:
    """The latest value is at most this old."""
    limit = _time(seconds)
    if not _is_text(context, column):
        return CompiledClaim(f"freshness({_shown(column)}) <= {limit}")
    oldest = f"current_timestamp() - INTERVAL '{_seconds(seconds)}' SECOND"
    is_young = f"CAST(max({_timestamp(context, column)}) >= {oldest} AS INT)"
    return CompiledClaim(f"{sql(is_young)} == 1")


def _timestamp(context: RuleContext, column: str) -> str:
    """A column of timestamps, including those written as strings; NULL for other strings."""
    name = _quoted(column)
    return f"try_cast({name} AS TIMESTAMP)" if _is_text(context, column) else name


def _is_text(context: RuleContext, column: str) -> bool:
    return kind_of(context.field_at(column)) is ValueKind.TEXT


def _seconds(seconds: float) -> str:
    return show(terms.number(seconds))


def _time(seconds: float) -> str:
    terms.number(seconds)
    if seconds <= 0:
        raise NoCounterpartError("a time must be above 0")
    return show_number(terms.duration(seconds))


def _shown(path: str) -> str:
    return show(terms.column(path))


def _quoted(path: str) -> str:
    terms.column(path)
    return quote_name(*parts_of(path))
