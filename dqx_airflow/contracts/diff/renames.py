"""Renamed columns and models: removed and added ones, paired as declared in the new version, or
else by similarity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TypeVar

from dqx_airflow.contracts.demands import Demand, OfType, Presence, Required
from dqx_airflow.contracts.diff.strictness import Order
from dqx_airflow.contracts.diff.types import compare_types
from dqx_airflow.contracts.model import Field, Model

T = TypeVar("T", Field, Model)

_ALIKE = 0.4
_SAME_PLACE = 0.2
_SHARED_COLUMNS = 0.6
_MOST_PAIRS = 4000
_LONGEST_TEXT = 400
_NO_SIGN = (Presence, OfType, Required)


def renamed_fields(
    old: Sequence[Field], new: Sequence[Field], declared: Mapping[str, str]
) -> dict[str, str]:
    """The new name by the old one, for fields that are probably the same.

    :param declared: the old path by the new one, as declared in the new version.
    """
    places = {id(item): place for items in (old, new) for place, item in enumerate(items)}

    def likeness(old_field: Field, new_field: Field) -> float:
        if compare_types(old_field.type, new_field.type) not in (Order.SAME, Order.LOOSER):
            return 0.0
        is_in_place = places[id(old_field)] == places[id(new_field)]
        return _likeness_of_fields(old_field, new_field) + _SAME_PLACE * is_in_place

    before = {item.path: item.name for item in old}
    known = {item.name: before[path] for item in new if (path := declared.get(item.path)) in before}
    return _pairs(old, new, likeness, known)


def renamed_models(
    old: Sequence[Model], new: Sequence[Model], declared: Mapping[str, str]
) -> dict[str, str]:
    """The new name by the old one, for models that share most of their columns.

    :param declared: the old name by the new one, as declared in the new version.
    """

    def likeness(old_model: Model, new_model: Model) -> float:
        before = {(item.name, item.type) for item in old_model.fields}
        after = {(item.name, item.type) for item in new_model.fields}
        shared = len(before & after) / max(len(before | after), 1)
        return shared if shared >= _SHARED_COLUMNS else 0.0

    return _pairs(old, new, likeness, declared)


def _pairs(
    old: Sequence[T],
    new: Sequence[T],
    likeness: Callable[[T, T], float],
    declared: Mapping[str, str],
) -> dict[str, str]:
    """The declared pairs, old name by new one, and then similar ones, best first; each name occurs
    in one pair."""
    before, after = {item.name for item in old}, {item.name for item in new}
    removed = [item for item in old if item.name not in after]
    added = [item for item in new if item.name not in before]
    old_names = {item.name for item in removed}
    pairs: dict[str, str] = {}
    for item in added:
        name = declared.get(item.name)
        if name in old_names and name not in pairs:
            pairs[name] = item.name
    if len(removed) * len(added) > _MOST_PAIRS:
        return pairs
    ranked = sorted(
        (
            (-score, first, second)
            for first, old_item in enumerate(removed)
            for second, new_item in enumerate(added)
            if (score := likeness(old_item, new_item)) >= _ALIKE
        ),
    )
    for _, first, second in ranked:
        name, new_name = removed[first].name, added[second].name
        if name not in pairs and new_name not in pairs.values():
            pairs[name] = new_name
    return pairs


def _likeness_of_fields(old_field: Field, new_field: Field) -> float:
    score = 0.4 * _likeness_of_names(old_field.name, new_field.name)
    if old_field.semantic and new_field.semantic:
        likeness = _likeness_of_texts(old_field.semantic, new_field.semantic)
        score += 0.6 * likeness if likeness >= 0.6 else -0.3 if likeness < 0.3 else 0.0
    signs = _signs(old_field)
    if signs and signs == _signs(new_field):
        score += 0.3
    return score


def _likeness_of_names(old_name: str, new_name: str) -> float:
    first, second = old_name.lower(), new_name.lower()
    words, other_words = set(first.split("_")), set(second.split("_"))
    if words <= other_words or other_words <= words or first.replace("_", "") in second:
        return 0.9
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _likeness_of_texts(old_text: str, new_text: str) -> float:
    words, other_words = old_text.lower().split(), new_text.lower().split()
    first, second = words[:_LONGEST_TEXT], other_words[:_LONGEST_TEXT]
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _signs(item: Field) -> tuple[Demand, ...]:
    """The demands by which a column is recognised."""
    return tuple(rule.demand for rule in item.rules if not isinstance(rule.demand, _NO_SIGN))
