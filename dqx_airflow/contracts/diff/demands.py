"""What changed about the rules of a contract: which demands are stricter, and by what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.demands import (
    Demand,
    Order,
    all_of,
    compare_demands,
    literal_text,
    rising,
)
from dqx_airflow.contracts.diff.kinds import KINDS, Change
from dqx_airflow.contracts.model import Rule
from dqx_airflow.values import Span


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

    def compared(self, kind: str, what: str, old: str | None, new: str | None) -> Iterator[Change]:
        """The change of a value, if it differs: `the unit of price changes: EUR → USD`."""
        if old != new:
            message = f"{what} changes: {old or 'none'} → {new or 'none'}"
            yield self.change(kind, message, old, new)


_KINDS = {
    Order.LOOSER: ("rule_loosened", "is loosened"),
    Order.TIGHTER: ("rule_tightened", "is tightened"),
    Order.OTHER: ("rule_changed", "changes"),
}
_NAMED_BY_PEOPLE = (demands.MetricRule, demands.QueryGives, demands.RowsSatisfy)
_NUMBER = re.compile(r"_\d+$")
_HARMLESS_FOR_NEW_COLUMNS = (demands.Unique, demands.Refers, demands.Distinct)


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
    before = [
        _renamed(rule, columns) for rule in old if not isinstance(rule.demand, demands.OfType)
    ]
    after = [rule for rule in new if not isinstance(rule.demand, demands.OfType)]
    for old_rule, new_rule in _pairs(before, after):
        if old_rule is not None and new_rule is not None:
            yield from _compared(old_rule, new_rule, location, is_whole=is_whole)
        elif old_rule is not None and not set(old_rule.demand.named_columns) & columns.dropped:
            yield _removed(old_rule, location)
        elif new_rule is not None and not _comes_with_its_columns(new_rule.demand, columns):
            yield _added(new_rule, location)


def _renamed(rule: Rule, columns: ColumnChanges) -> Rule:
    demand = rule.demand.renamed(columns.renamed)
    return rule if demand is rule.demand else replace(rule, demand=demand)


def _comes_with_its_columns(demand: Demand, columns: ColumnChanges) -> bool:
    named = set(demand.named_columns)
    is_harmless = isinstance(demand, _HARMLESS_FOR_NEW_COLUMNS)
    return is_harmless and bool(named) and named <= columns.added


def _compared(
    old: Rule, new: Rule, location: ContractLocation, *, is_whole: bool
) -> Iterator[Change]:
    place = location.below(new.name, _span(old, location.old_span), _span(new, location.new_span))
    stricter = compare_demands(old.demand, new.demand, is_whole=is_whole)
    order = all_of(stricter, rising(old.share, new.share))
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
    if not (isinstance(old, demands.OneOf) and isinstance(new, demands.OneOf)):
        return None
    added = [literal_text(value) for value in new.values if value not in old.values]
    removed = [literal_text(value) for value in old.values if value not in new.values]
    parts = [f"{', '.join(added)} added"] if added else []
    parts += [f"{', '.join(removed)} removed"] if removed else []
    return "; ".join(parts) or None


def _removed(rule: Rule, location: ContractLocation) -> Change:
    place = location.below(rule.name, _span(rule, location.old_span), location.new_span)
    message = f"`{rule.name}` is removed: {rule.text}"
    if isinstance(rule.demand, demands.Required):
        message = "NULL is allowed"
    return place.change("rule_removed", message, old=rule.text)


def _added(rule: Rule, location: ContractLocation) -> Change:
    place = location.below(rule.name, location.old_span, _span(rule, location.new_span))
    if isinstance(rule.demand, demands.Required):
        return place.change("rule_tightened", "NULL is no longer allowed", new=rule.text)
    return place.change("rule_added", f"`{rule.name}` is added: {rule.text}", new=rule.text)


def _span(rule: Rule, otherwise: Span | None) -> Span | None:
    return rule.clauses[0].span if rule.clauses else otherwise


# Matching rules of both versions ------------------------------------------------------------------


def _is_about_the_same(old: Rule, new: Rule) -> bool:
    return old.demand.subject == new.demand.subject


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
