"""The models of a contract in two versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dqx_airflow.contracts.demands import Unique
from dqx_airflow.contracts.diff.change import Change
from dqx_airflow.contracts.diff.columns import Habits, column_changes, compare_columns
from dqx_airflow.contracts.diff.location import ContractLocation
from dqx_airflow.contracts.diff.renames import renamed_models
from dqx_airflow.contracts.diff.rules import ColumnChanges, compare_rules
from dqx_airflow.contracts.diff.wording import Wording, compare_wording
from dqx_airflow.contracts.model import Model, Rule

_KEY = "primary_key"


def compare_models(old: Sequence[Model], new: Sequence[Model], habits: Habits) -> Iterator[Change]:
    """The changes of the models and of everything in them."""
    declared = {rename.model: rename.old for rename in habits.renames if rename.field is None}
    names = renamed_models(old, new, declared)
    after = {model.name: model for model in new}
    for model in old:
        other = after.get(names.get(model.name, model.name))
        if other is None:
            place = ContractLocation(model.name, model.span, None, model.name)
            yield place.change("model_removed", f"model {model.name} is dropped", old=model.name)
            continue
        place = ContractLocation(other.name, model.span, other.span, other.name)
        if model.name in names:
            message = f"model {model.name} is renamed to {other.name}"
            yield place.change("model_renamed", message, model.name, other.name)
        yield from _compared(model, other, place, habits)
    old_names = {model.name for model in old} | set(names.values())
    for model in new:
        if model.name not in old_names:
            place = ContractLocation(model.name, None, model.span, model.name)
            yield place.change("model_added", f"model {model.name} is added", new=model.name)


def _compared(
    old: Model, new: Model, location: ContractLocation, habits: Habits
) -> Iterator[Change]:
    columns = column_changes(old.fields, new.fields, habits.renamed_columns(new.name))
    yield from compare_columns(old.fields, new.fields, columns, location, habits)
    keys = tuple(_keys(old, columns)), tuple(_keys(new, ColumnChanges()))
    yield from _key(*keys, location)
    rules = old.rules, new.rules
    if keys[0] and keys[0] != keys[1]:
        # A change of the key is reported separately.
        rules = _but_the_key(old.rules), _but_the_key(new.rules)
    yield from compare_rules(*rules, location, columns)
    yield from _storage(old, new, location, columns)
    yield from _remarks(old, new, location)


def _keys(model: Model, columns: ColumnChanges) -> Iterator[str]:
    """The columns of the key by their new names."""
    key = next((rule.demand for rule in model.rules if rule.name == _KEY), None)
    if isinstance(key, Unique):
        named = key.columns
    else:
        named = tuple(item.path for item in model.walk() if item.is_key)
    return (columns.renamed.get(path, path) for path in named)


def _but_the_key(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.name != _KEY)


def _key(
    old: tuple[str, ...], new: tuple[str, ...], location: ContractLocation
) -> Iterator[Change]:
    if set(old) == set(new):
        return
    before, after = ", ".join(old), ", ".join(new)
    place = location.below(_KEY, location.old_span, location.new_span)
    if not old:
        yield place.change("key_added", f"{after} becomes the key of {location.path}", new=after)
    else:
        message = f"the key of {location.path} changes: {before} → {after or 'none'}"
        yield place.change("key_changed", message, before, after or None)


def _storage(
    old: Model, new: Model, location: ContractLocation, columns: ColumnChanges
) -> Iterator[Change]:
    before = tuple(columns.renamed.get(path, path) for path in old.partition_by)
    if before != new.partition_by:
        texts = ", ".join(old.partition_by) or "none", ", ".join(new.partition_by) or "none"
        message = f"the partitions of {location.path} change: {texts[0]} → {texts[1]}"
        yield location.change("partition_changed", message, *texts)
    if old.location != new.location and old.location is not None:
        message = f"{location.path} moves: {old.location} → {new.location or 'nowhere'}"
        if old.name == new.name or not _is_named_by_its_place(new):
            yield location.change("location_changed", message, old.location, new.location)


def _described(old: str | None, new: str | None, location: ContractLocation) -> Change:
    """A description defines the rows of a table: reworded, it may be another table, and nothing
    else would show that."""
    message = f"the description of {location.path} changes"
    wording = compare_wording(old, new) if old and new else None
    if wording is Wording.CORRECTED:
        return location.change("wording_corrected", message, old, new)
    if wording in (Wording.REWORDED, Wording.OTHER_MEANING):
        message = f"the description of {location.path} changes, and possibly what a row represents"
        return location.change("grain_changed", message, old, new)
    return location.change("description_changed", message, old, new)


def _is_named_by_its_place(model: Model) -> bool:
    """True if another name of the model is another location, which the name already reports."""
    return (model.location or "").rpartition(".")[2] == model.name


def _remarks(old: Model, new: Model, location: ContractLocation) -> Iterator[Change]:
    if old.description != new.description:
        yield _described(old.description, new.description, location)
    if old.title != new.title:
        same = old.title and new.title and compare_wording(old.title, new.title)
        kind = "wording_corrected" if same is Wording.CORRECTED else "description_changed"
        message = f"the title of {location.path} changes"
        yield location.change(kind, message, old.title, new.title)
    if old.tags != new.tags:
        texts = ", ".join(old.tags), ", ".join(new.tags)
        yield location.change("tags_changed", f"the tags of {location.path} change", *texts)
    if old.examples != new.examples:
        yield location.change("example_changed", f"the examples of {location.path} change")
