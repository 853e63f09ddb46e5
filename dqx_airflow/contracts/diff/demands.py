"""What changed about the rules of a contract: which demands are stricter, and by what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from functools import reduce
from math import floor, inf
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import expressions as sql
from sqlglot import parse_one
from sqlglot.errors import SqlglotError

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
    Interval,
    Length,
    Literal,
    MetricRule,
    MultipleOf,
    OfType,
    OneOf,
    Prompt,
    QueryGives,
    Refers,
    Required,
    Retained,
    RowsSatisfy,
    Unique,
    Volume,
    literal_text,
)
from dqx_airflow.contracts.diff.kinds import KINDS, Change
from dqx_airflow.contracts.model import Rule
from dqx_airflow.values import Span
from dqx_airflow.values.exact import is_finite_number

if TYPE_CHECKING:
    from sqlglot.expressions import Expr


class Order(str, Enum):
    """What a new demand allows, compared with the old one. `OTHER`: neither allows everything that
    both do."""

    SAME = "same"
    LOOSER = "looser"
    TIGHTER = "tighter"
    OTHER = "other"

    __str__ = str.__str__  # prints as its value, on every Python


def rising(old: Any, new: Any) -> Order:
    """The order of two values of which the larger one demands more."""
    if old == new:
        return Order.SAME
    return Order.TIGHTER if new > old else Order.LOOSER


def falling(old: Any, new: Any) -> Order:
    """The order of two values of which the smaller one demands more."""
    return rising(new, old)


def admitting(old: frozenset[Any], new: frozenset[Any]) -> Order:
    """The order of two sets of allowed values."""
    if old == new:
        return Order.SAME
    if old < new:
        return Order.LOOSER
    return Order.TIGHTER if new < old else Order.OTHER


def all_of(*orders: Order) -> Order:
    """The order of demands that apply together."""
    return reduce(_together, orders, Order.SAME)


def _together(first: Order, second: Order) -> Order:
    if first is second or second is Order.SAME:
        return first
    return second if first is Order.SAME else Order.OTHER


@dataclass(frozen=True, slots=True)
class ContractLocation:
    """An element of a contract, in both versions; a span is None if it is missing."""

    path: str
    old_span: Span | None
    new_span: Span | None
    model: str | None = None
    column: str | None = None

    def below(self, name: str, old_span: Span | None, new_span: Span | None) -> ContractLocation:
        """The location of a part of the element."""
        path = f"{self.path}.{name}" if self.path else name
        return replace(self, path=path, old_span=old_span, new_span=new_span)

    def change(
        self, kind: str, message: str, old: str | None = None, new: str | None = None
    ) -> Change:
        change_kind = KINDS[kind]
        return Change(
            change_kind,
            self.path,
            message,
            change_kind.bump,
            old,
            new,
            self.old_span,
            self.new_span,
            self.model,
            self.column,
        )


_SPARK = "spark"


def is_same_sql(old: str, old_dialect: str | None, new: str, new_dialect: str | None) -> bool:
    """True if two SQL texts are equivalent."""
    if old.strip() == new.strip() and old_dialect == new_dialect:
        return True
    before, after = _parsed(old, old_dialect), _parsed(new, new_dialect)
    return before is not None and before == after


def compare_predicates(
    old: str, old_dialect: str | None, new: str, new_dialect: str | None
) -> tuple[Condition, Condition] | None:
    """The demands of two predicates on the same expression: `x >= 0` and `x >= 1`, else None."""
    before, after = _comparison(_parsed(old, old_dialect)), _comparison(_parsed(new, new_dialect))
    if before is None or after is None or before[0] != after[0]:
        return None
    return before[1], after[1]


def _parsed(text: str, dialect: str | None) -> Expr | None:
    """The SQL as a tree; None if it cannot be parsed."""
    # Placeholders such as {model} are words to the parser.
    plain = text.replace("{", "__").replace("}", "__")
    try:
        return parse_one(plain, read=dialect or _SPARK)
    except (SqlglotError, ValueError, RecursionError):
        return None


def _comparison(tree: Expr | None) -> tuple[Expr, Condition] | None:
    ops = {sql.GT: ">", sql.GTE: ">=", sql.LT: "<", sql.LTE: "<=", sql.EQ: "==", sql.NEQ: "!="}
    op = next((op for kind, op in ops.items() if isinstance(tree, kind)), None)
    if not isinstance(tree, sql.Binary) or op is None:
        return None
    number, sign = tree.expression, 1
    if isinstance(number, sql.Neg):
        number, sign = number.this, -1
    if not isinstance(number, sql.Literal) or number.is_string:
        return None
    return tree.this, Condition(op, sign * float(number.this))


_KINDS = {
    Order.LOOSER: ("rule_loosened", "is loosened"),
    Order.TIGHTER: ("rule_tightened", "is tightened"),
    Order.OTHER: ("rule_changed", "changes"),
}
_NAMED_BY_PEOPLE = (MetricRule, QueryGives, RowsSatisfy)
_NUMBER = re.compile(r"_\d+$")
_HARMLESS_FOR_NEW_COLUMNS = (Unique, Refers, Distinct)


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """The changes of the columns of a model or a struct, by their paths."""

    renamed: dict[str, str] = field(default_factory=dict)
    """The new paths by the old ones, where they differ."""
    names: dict[str, str] = field(default_factory=dict)
    """The new names by the old ones, where they differ."""
    dropped: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()


def compare_rules(
    old: Sequence[Rule],
    new: Sequence[Rule],
    location: ContractLocation,
    columns: ColumnChanges,
    *,
    is_whole: bool = False,
) -> Iterator[Change]:
    """The changes of the rules of one column or model.

    A rule that is added or removed with its columns is not a separate change.

    :param is_whole: the column holds integers.
    """
    before = [_renamed(rule, columns) for rule in old if not isinstance(rule.demand, OfType)]
    after = [rule for rule in new if not isinstance(rule.demand, OfType)]
    for old_rule, new_rule in _pairs(before, after):
        if old_rule is not None and new_rule is not None:
            yield from _compared(old_rule, new_rule, location, is_whole=is_whole)
        elif old_rule is not None and not set(old_rule.demand.named_columns) & columns.dropped:
            yield _removed(old_rule, location)
        elif new_rule is not None and not _comes_with_its_columns(new_rule.demand, columns):
            yield _added(new_rule, location)


def _renamed(rule: Rule, columns: ColumnChanges) -> Rule:
    demand = with_columns_renamed(rule.demand, columns.renamed)
    return rule if demand is rule.demand else replace(rule, demand=demand)


def _comes_with_its_columns(demand: Demand, columns: ColumnChanges) -> bool:
    named = set(demand.named_columns)
    is_harmless = isinstance(demand, _HARMLESS_FOR_NEW_COLUMNS)
    return is_harmless and bool(named) and named <= columns.added


def _compared(
    old: Rule, new: Rule, location: ContractLocation, *, is_whole: bool
) -> Iterator[Change]:
    place = location.below(new.name, _span(old, location.old_span), _span(new, location.new_span))
    demands = compare_demands(old.demand, new.demand, is_whole=is_whole)
    order = all_of(demands, rising(old.share, new.share))
    if order is not Order.SAME:
        kind, verb = _KINDS[order]
        before, after = old.text, new.text
        detail = _of_enums(old.demand, new.demand) or f"{before} → {after}"
        yield place.change(kind, f"`{new.name}` {verb}: {detail}", before, after)
    if _given_name(old) != _given_name(new):
        message = f"`{old.name}` is renamed to `{new.name}`"
        yield place.change("rule_described", message, old.name, new.name)
    if old.severity is not new.severity:
        severities = tuple(str(rule.severity or "none") for rule in (old, new))
        message = f"the severity of `{new.name}` changes: {severities[0]} → {severities[1]}"
        yield place.change("severity_changed", message, *severities)
    if (old.description, old.dimension, old.tags) != (new.description, new.dimension, new.tags):
        message = f"`{new.name}` has a changed description"
        yield place.change("rule_described", message, old.description, new.description)


def _given_name(rule: Rule) -> str | None:
    """The name that the author gave to a rule; None for a name derived from its kind."""
    return _NUMBER.sub("", rule.name) if isinstance(rule.demand, _NAMED_BY_PEOPLE) else None


def _of_enums(old: Demand, new: Demand) -> str | None:
    """The added and removed values, if both demands are lists of values."""
    if not (isinstance(old, OneOf) and isinstance(new, OneOf)):
        return None
    added = [literal_text(value) for value in new.values if value not in old.values]
    removed = [literal_text(value) for value in old.values if value not in new.values]
    parts = [f"{', '.join(added)} added"] if added else []
    parts += [f"{', '.join(removed)} removed"] if removed else []
    return "; ".join(parts) or None


def _removed(rule: Rule, location: ContractLocation) -> Change:
    place = location.below(rule.name, _span(rule, location.old_span), location.new_span)
    message = f"`{rule.name}` is removed: {rule.text}"
    if isinstance(rule.demand, Required):
        message = "NULL is allowed"
    return place.change("rule_removed", message, old=rule.text)


def _added(rule: Rule, location: ContractLocation) -> Change:
    place = location.below(rule.name, location.old_span, _span(rule, location.new_span))
    if isinstance(rule.demand, Required):
        return place.change("rule_tightened", "NULL is no longer allowed", new=rule.text)
    return place.change("rule_added", f"`{rule.name}` is added: {rule.text}", new=rule.text)


def _span(rule: Rule, otherwise: Span | None) -> Span | None:
    return rule.clauses[0].span if rule.clauses else otherwise


# Matching rules of both versions ------------------------------------------------------------------


def _is_about_the_same(old: Rule, new: Rule) -> bool:
    return subject_of(old.demand) == subject_of(new.demand)


_Likeness: TypeAlias = Callable[[Rule, Rule], bool]

_LIKENESSES: tuple[_Likeness, ...] = (
    lambda old, new: old.name == new.name and old.demand == new.demand,
    lambda old, new: old.demand == new.demand,
    lambda old, new: old.name == new.name and _is_about_the_same(old, new),
    _is_about_the_same,
    lambda old, new: old.name == new.name and type(old.demand) is type(new.demand),
)


def _pairs(old: Sequence[Rule], new: Sequence[Rule]) -> Iterator[tuple[Rule | None, Rule | None]]:
    """Each rule with its other version, the most certain pairs first; None if it has none."""
    left, right = list(old), list(new)
    pairs: list[tuple[Rule | None, Rule | None]] = []
    for is_alike in _LIKENESSES:
        for old_rule in tuple(left):
            new_rule = next((rule for rule in right if is_alike(old_rule, rule)), None)
            if new_rule is not None:
                left.remove(old_rule)
                right.remove(new_rule)
                pairs.append((old_rule, new_rule))
    yield from pairs
    yield from ((old_rule, None) for old_rule in left)
    yield from ((None, new_rule) for new_rule in right)


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
            if not is_same_sql(old.where, old.sql_dialect, new.where, new.sql_dialect):
                return Order.OTHER
            if type(old.demand) is not type(new.demand):
                return Order.OTHER
            return compare_demands(old.demand, new.demand, is_whole=is_whole)
        case QueryGives(), QueryGives():
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

    if is_same_sql(old.predicate, old.sql_dialect, new.predicate, new.sql_dialect):
        return Order.SAME
    pair = compare_predicates(old.predicate, old.sql_dialect, new.predicate, new.sql_dialect)
    return _conditions(*pair) if pair is not None else Order.OTHER
