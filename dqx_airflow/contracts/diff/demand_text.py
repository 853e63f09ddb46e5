"""A demand in a few words, for people who read what has changed."""

from __future__ import annotations

from collections.abc import Iterable

from dqx_airflow.contracts.demands import (
    AllComplete,
    AmongRows,
    Arrives,
    Bound,
    Complete,
    Condition,
    Demand,
    Digits,
    Distinct,
    Fresh,
    HasFormat,
    HourlyVolume,
    Length,
    Literal,
    MetricRule,
    MultipleOf,
    OfType,
    OneOf,
    OnlyColumns,
    Pattern,
    Presence,
    Prompt,
    QueryGives,
    Refers,
    Required,
    Retained,
    RowsSatisfy,
    Unique,
    UniqueItems,
    Volume,
)

_MOST_VALUES = 12
_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def demand_text(demand: Demand) -> str:
    """`>= 1`, `one of A, B`, `unique by (a, b)`."""
    match demand:
        case Presence():
            return "the column exists"
        case OfType():
            return "values of the type"
        case OnlyColumns():
            return "no other columns"
        case Required():
            return "not NULL"
        case Unique():
            return f"unique by {_columns(demand.columns)}"
        case Refers():
            return f"found in {demand.dataset} {_columns(demand.other_columns)}"
        case Pattern():
            return f"matches {demand.expression}"
        case HasFormat():
            return f"has the format {demand.name}"
        case OneOf():
            return f"one of {_values(demand.values)}"
        case Bound():
            return f"{demand.op} {demand.value}"
        case Length():
            return f"length {demand.op} {demand.count}"
        case MultipleOf():
            return f"a multiple of {demand.divisor}"
        case Digits():
            return f"at most {demand.precision} digits, {demand.scale} after the point"
        case UniqueItems():
            return "no item twice"
        case MetricRule():
            return _measured(demand)
        case Complete():
            return f"{_percent(demand.share)} of {demand.column} are not NULL"
        case AllComplete():
            return f"{_percent(demand.share)} of all values are not NULL"
        case Distinct():
            return f"at most {_percent(demand.duplicates)} repeat {_columns(demand.columns)}"
        case RowsSatisfy():
            share = "" if demand.share >= 1 else f" for {_percent(demand.share)} of the rows"
            return f"{_line(demand.predicate)}{share}"
        case AmongRows():
            return f"{demand_text(demand.demand)} where {_line(demand.where)}"
        case QueryGives():
            return f"{_line(demand.query)} gives {_condition(demand.condition)}"
        case Fresh():
            return f"{demand.column or 'data'} at most {_duration(demand.age_s)} old"
        case Prompt():
            share = "" if demand.share >= 1 else f" for {_percent(demand.share)} of the rows"
            between = f"from {demand.source} to {demand.processed}"
            return f"{between} at most {_duration(demand.delay_s)}{share}"
        case Retained():
            return f"{demand.column or 'data'} at most {_duration(demand.period_s)} back"
        case Volume():
            baseline = demand.baseline
            base = (
                "the mean of the days before" if baseline is None else f"{_number(baseline)} rows"
            )
            times = _range(demand.low, demand.high)
            return f"{times} times {base}" + (f", over {demand.days} days" * (demand.days > 1))
        case HourlyVolume():
            of_column = f" of {demand.column}" if demand.column else ""
            return f"{_range(demand.low, demand.high)} rows an hour{of_column}"
        case Arrives():
            when = f" ({demand.schedule})" if demand.schedule else ""
            return f"new rows every {_duration(demand.interval_s)}{when}"


def literal_text(value: Literal) -> str:
    """A value as contracts write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _measured(demand: MetricRule) -> str:
    share = "% of the rows" if demand.is_percent else ""
    of = [f"among {_values(demand.values)}"] if demand.values else []
    of += [f"matching {demand.pattern}"] if demand.pattern is not None else []
    named = f"{demand.metric}({', '.join(demand.arguments)})"
    return " ".join([named, *of, _condition(demand.condition) + share])


def _condition(condition: Condition) -> str:
    if condition.high is None:
        return f"{condition.op} {_number(condition.bound)}"
    return f"{condition.op} {_number(condition.bound)} and {_number(condition.high)}"


def _columns(columns: Iterable[str]) -> str:
    return f"({', '.join(columns)})"


def _values(values: tuple[Literal, ...]) -> str:
    shown = ", ".join(map(literal_text, values[:_MOST_VALUES]))
    left = len(values) - _MOST_VALUES
    return f"{shown} and {left} more" if left > 0 else shown


def _percent(share: float) -> str:
    return f"{round(share * 100, 6):g}%"


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {_number(high)}" if high is not None else "any"
    return f"at least {_number(low)}" if high is None else f"{_number(low)} to {_number(high)}"


def _duration(seconds: float) -> str:
    for unit, length in _UNITS:
        if seconds % length == 0 and seconds:
            count = int(seconds // length)
            return f"{count} {unit if count != 1 else unit[:-1]}"
    return f"{seconds:g} seconds"


def _line(sql: str) -> str:
    return " ".join(sql.split())
