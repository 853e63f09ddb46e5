"""Compares two demands of the same kind: does the new one allow more data, or less?"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor, inf
from typing import Any

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
    HourlyVolume,
    Length,
    Literal,
    MetricRule,
    MultipleOf,
    OneOf,
    Prompt,
    QueryGives,
    Refers,
    Retained,
    RowsSatisfy,
    Unique,
    Volume,
)
from dqx_airflow.contracts.demands.measured import Interval
from dqx_airflow.contracts.diff.strictness import Order, admitting, all_of, falling, rising
from dqx_airflow.exact import is_finite_number


def compare_demands(old: Demand, new: Demand, *, is_whole: bool = False) -> Order:
    """The order of two demands of one kind, about the same column.

    :param is_whole: the values are integers, so that `> 0` is equivalent to `>= 1`.
    """
    # Python takes `1` and `true` for the same value, data does not.
    if old == new and not isinstance(old, OneOf):
        return Order.SAME
    match old, new:
        case Bound(), Bound():
            return _bounds(old, new, is_whole)
        case Length(), Length():
            return _sided(old.op, old.count, new.count) if old.op == new.op else Order.OTHER
        case OneOf(), OneOf():
            return admitting(frozenset(map(_typed, old.values)), frozenset(map(_typed, new.values)))
        case MultipleOf(), MultipleOf():
            return _multiples(old, new)
        case Digits(), Digits():
            whole = falling(old.precision - old.scale, new.precision - new.scale)
            return all_of(whole, falling(old.scale, new.scale))
        case Unique(), Unique():
            # Two rows that differ in one of these columns differ in any superset of them too.
            return admitting(frozenset(old.columns), frozenset(new.columns))
        case MetricRule(), MetricRule():
            if replace(old, condition=new.condition) != new:
                return Order.OTHER
            return _conditions(old.condition, new.condition)
        case Complete(), Complete() if old.column == new.column:
            return rising(old.share, new.share)
        case AllComplete(), AllComplete():
            return rising(old.share, new.share)
        case Distinct(), Distinct():
            columns = admitting(frozenset(old.columns), frozenset(new.columns))
            return all_of(columns, falling(old.duplicates, new.duplicates))
        case RowsSatisfy(), RowsSatisfy():
            return all_of(_predicates(old, new), rising(old.share, new.share))
        case AmongRows(), AmongRows():
            from dqx_airflow.contracts.diff.sql import is_same_sql

            if not is_same_sql(old.where, old.sql_dialect, new.where, new.sql_dialect):
                return Order.OTHER
            if type(old.demand) is not type(new.demand):
                return Order.OTHER
            return compare_demands(old.demand, new.demand, is_whole=is_whole)
        case QueryGives(), QueryGives():
            from dqx_airflow.contracts.diff.sql import is_same_sql

            if not is_same_sql(old.query, old.sql_dialect, new.query, new.sql_dialect):
                return Order.OTHER
            return _conditions(old.condition, new.condition)
        case Fresh(), Fresh() if old.column == new.column:
            return falling(old.seconds, new.seconds)
        case Prompt(), Prompt() if (old.source, old.processed) == (new.source, new.processed):
            return all_of(falling(old.delay_s, new.delay_s), rising(old.share, new.share))
        case Retained(), Retained() if old.column == new.column:
            return falling(old.seconds, new.seconds)
        case Volume(), Volume():
            return _volumes(old, new)
        case HourlyVolume(), HourlyVolume() if old.column == new.column:
            return _bands((old.low, old.high), (new.low, new.high))
        case Arrives(), Arrives() if old.column == new.column:
            if old.schedule != new.schedule and old.seconds == new.seconds:
                return Order.OTHER
            return falling(old.seconds, new.seconds)
    return Order.OTHER


def subject_of(demand: Demand) -> tuple[Any, ...]:
    """The subject of a demand; two demands with the same subject are versions of one."""
    kind = type(demand)
    match demand:
        case Bound(op=op) | Length(op=op):
            return (kind, op[0])
        case MetricRule():
            return (kind, demand.metric, demand.arguments, demand.is_percent)
        case Complete(column=column) | HourlyVolume(column=column):
            return (kind, column)
        case Unique(columns=columns) | Distinct(columns=columns):
            return (kind, columns)
        case RowsSatisfy() | QueryGives():
            return (kind, demand)
        case AmongRows():
            return (kind, demand.where, *subject_of(demand.demand))
        case Refers():
            return (kind, demand.columns)
    return (kind,)


def with_columns_renamed(demand: Demand, names: dict[str, str]) -> Demand:
    """The demand after columns were renamed, including those in its SQL."""
    if not names:
        return demand
    renamed: dict[str, Any] = {}
    for item in fields(demand):
        value = getattr(demand, item.name)
        if isinstance(value, tuple) and item.name in demand.column_fields:
            renamed[item.name] = tuple(names.get(name, name) for name in value)
        elif item.name in demand.column_fields:
            renamed[item.name] = names.get(value, value)
        elif isinstance(demand, AmongRows) and item.name == "demand":
            renamed[item.name] = with_columns_renamed(value, names)
        elif item.name in _SQL:
            renamed[item.name] = _in_sql(value, names)
    return replace(demand, **renamed) if renamed else demand


_SQL = {"predicate", "query", "where"}


def _in_sql(text: str, names: dict[str, str]) -> str:
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return re.sub(rf"(?<!\w)({words})(?!\w)", lambda match: names[match[1]], text)


# Bounds --------------------------------------------------------------------------------------


def _sided(op: str, old: Any, new: Any) -> Order:
    return rising(old, new) if op.startswith(">") else falling(old, new)


def _bounds(old: Bound, new: Bound, is_whole: bool) -> Order:
    if old.op[0] != new.op[0]:
        return Order.OTHER
    before, after = _comparable(old.value), _comparable(new.value)
    if before is None or after is None or type(before) is not type(after):
        return Order.OTHER
    return _sided(
        old.op, _bound_rank(old.op, before, is_whole), _bound_rank(new.op, after, is_whole)
    )


def _bound_rank(op: str, value: Any, is_whole: bool) -> tuple[Any, int]:
    """The rank of a bound: its value, and for exclusive ones the side."""
    is_exclusive = not op.endswith("=")
    side = 1 if op[0] == ">" else -1
    if is_whole and isinstance(value, Decimal):
        if value != floor(value):
            return (Decimal(floor(value) + (side > 0)), 0)
        return (value + side if is_exclusive else value, 0)
    return (value, side if is_exclusive else 0)


def _comparable(value: Literal) -> Decimal | datetime | None:
    """A number or a timestamp; None for values without a common order."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = Decimal(str(value))
        return number if number.is_finite() else None
    except InvalidOperation:
        pass
    try:
        timestamp = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return timestamp.replace(tzinfo=None) - (timestamp.utcoffset() or timestamp - timestamp)


def _typed(value: Literal) -> tuple[str, Literal]:
    """A value that equals only itself: `1` is not `true`, but `1.0` is `1`."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", float(value) if is_finite_number(value) else str(value))
    return ("text", value)


def _multiples(old: MultipleOf, new: MultipleOf) -> Order:
    before, after = Fraction(str(old.divisor)), Fraction(str(new.divisor))
    if before == after:
        return Order.SAME
    if after and (before / after).denominator == 1:
        return Order.LOOSER
    return Order.TIGHTER if before and (after / before).denominator == 1 else Order.OTHER


def _bands(old: tuple[float | None, float | None], new: tuple[float | None, float | None]) -> Order:
    low = rising(*(-inf if value is None else value for value in (old[0], new[0])))
    high = falling(*(inf if value is None else value for value in (old[1], new[1])))
    return all_of(low, high)


def _volumes(old: Volume, new: Volume) -> Order:
    if old.days != new.days or (old.baseline is None) != (new.baseline is None):
        return Order.OTHER
    return _bands(_band(old), _band(new))


def _band(volume: Volume) -> tuple[float | None, float | None]:
    """The bounds as numbers of rows if there is a baseline, else as multiples of it."""
    factor = 1.0 if volume.baseline is None else volume.baseline
    low, high = volume.low, volume.high
    return (None if low is None else low * factor, None if high is None else high * factor)


# Conditions ----------------------------------------------------------------------------------


def _conditions(old: Condition, new: Condition) -> Order:
    before, after = old.accepted, new.accepted
    gains, loses = _covers(after, before), _covers(before, after)
    if gains and loses:
        return Order.SAME
    return Order.LOOSER if gains else Order.TIGHTER if loses else Order.OTHER


def _covers(wide: tuple[Interval, ...], narrow: tuple[Interval, ...]) -> bool:
    return all(any(low <= start and end <= high for low, high in wide) for start, end in narrow)


def _predicates(old: RowsSatisfy, new: RowsSatisfy) -> Order:
    from dqx_airflow.contracts.diff.sql import compare_predicates, is_same_sql

    if is_same_sql(old.predicate, old.sql_dialect, new.predicate, new.sql_dialect):
        return Order.SAME
    pair = compare_predicates(old.predicate, old.sql_dialect, new.predicate, new.sql_dialect)
    return _conditions(*pair) if pair is not None else Order.OTHER
