"""The columns of a model in two versions, including nested ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dqx_airflow.contracts.demands import Complete, Required
from dqx_airflow.contracts.demands.wording import literal_text
from dqx_airflow.contracts.diff.change import Change
from dqx_airflow.contracts.diff.location import ContractLocation
from dqx_airflow.contracts.diff.renames import renamed_fields
from dqx_airflow.contracts.diff.rules import ColumnChanges, compare_rules
from dqx_airflow.contracts.diff.strictness import Order
from dqx_airflow.contracts.diff.types import compare_types
from dqx_airflow.contracts.diff.wording import Wording, compare_wording
from dqx_airflow.contracts.model import Field, Renamed

_WHOLE_TYPES = {"tinyint", "smallint", "int", "bigint", "whole_number"}
_NO_COLUMN_CHANGES = ColumnChanges()
_CHANGES_OF_TYPES = {
    Order.LOOSER: ("type_widened", "is widened"),
    Order.TIGHTER: ("type_changed", "is narrowed"),
    Order.OTHER: ("type_changed", "changes"),
}


@dataclass(frozen=True, slots=True)
class Habits:
    """The properties of a dialect that matter here.

    `has_semantics`: it has a key for the meaning of a column, whose text then is a promise;
    otherwise it is a description. `needs_every_column`: a query must return each promised column.
    `renames` are those that the new version declares.
    """

    has_semantics: bool
    needs_every_column: bool
    renames: tuple[Renamed, ...] = ()

    def renamed_columns(self, model: str | None) -> dict[str, str]:
        """The old path by the new one, for the columns of a model."""
        return {
            rename.field: rename.old
            for rename in self.renames
            if rename.model == model and rename.field
        }


def column_changes(
    old: Sequence[Field], new: Sequence[Field], declared: Mapping[str, str]
) -> ColumnChanges:
    """The columns of a level that were renamed, removed, or added; by their paths.

    :param declared: the old path by the new one, as declared in the new version.
    """
    names = renamed_fields(old, new, declared)
    before, after = ({item.name: item.path for item in items} for items in (old, new))
    pairs = {name: names.get(name, name) for name in before if names.get(name, name) in after}
    return ColumnChanges(
        {
            before[name]: after[other]
            for name, other in pairs.items()
            if before[name] != after[other]
        },
        names,
        frozenset(path for name, path in before.items() if name not in pairs),
        frozenset(path for name, path in after.items() if name not in pairs.values()),
    )


def compare_columns(
    old: Sequence[Field],
    new: Sequence[Field],
    columns: ColumnChanges,
    location: ContractLocation,
    habits: Habits,
) -> Iterator[Change]:
    """The changes of the columns of a model, or of a struct.

    :param columns: the result of `column_changes` for them.
    """
    after = {item.name: item for item in new}
    for item in old:
        if item.path in columns.dropped:
            place = _located(location, item.path, item, None)
            yield place.change("column_removed", f"column {item.path} is dropped", old=item.name)
            continue
        other = after[columns.names.get(item.name, item.name)]
        place = _located(location, other.path, item, other)
        if item.name in columns.names:
            message = f"column {item.path} is renamed to {other.path}"
            yield place.change("column_renamed", message, item.name, other.name)
        yield from _compared(item, other, place, habits)
    for item in new:
        if item.path in columns.added:
            place = _located(location, item.path, None, item)
            needed = not item.has_default and _must_be_there(item)
            kind = "column_added"
            message = f"column {item.path} is added"
            if needed or habits.needs_every_column:
                kind = "required_column_added"
                message += ", must not be NULL, and has no default" if needed else ""
            yield place.change(kind, message, new=item.name)
    yield from _order(old, new, columns, location)


def _located(
    location: ContractLocation, path: str, old: Field | None, new: Field | None
) -> ContractLocation:
    return ContractLocation(
        f"{location.model}.{path}",
        old.span if old else location.old_span,
        new.span if new else location.new_span,
        location.model,
        path,
    )


def _must_be_there(item: Field) -> bool:
    """True if rows without the column are invalid."""
    demands = (rule.demand for rule in item.rules)
    return any(
        isinstance(demand, Required) or (isinstance(demand, Complete) and demand.share > 0)
        for demand in demands
    )


def _order(
    old: Sequence[Field], new: Sequence[Field], columns: ColumnChanges, location: ContractLocation
) -> Iterator[Change]:
    before = [
        columns.names.get(item.name, item.name) for item in old if item.path not in columns.dropped
    ]
    after = [item.name for item in new if item.path not in columns.added]
    if before != after and sorted(before) == sorted(after):
        yield location.change(
            "columns_reordered",
            "columns are reordered",
            ", ".join(item.name for item in old),
            ", ".join(item.name for item in new),
        )


def _compared(
    old: Field, new: Field, location: ContractLocation, habits: Habits
) -> Iterator[Change]:
    yield from _types(old, new, location)
    is_whole = {old.type, new.type} <= _WHOLE_TYPES
    renamed = {old.path: new.path} if old.path != new.path else {}
    columns = ColumnChanges(renamed) if renamed else _NO_COLUMN_CHANGES
    yield from compare_rules(old.rules, new.rules, location, columns, is_whole=is_whole)
    yield from _meaning(old, new, location, habits)
    yield from _defaults(old, new, location)
    yield from _treatment(old, new, location)
    yield from _remarks(old, new, location)
    inner = column_changes(old.fields, new.fields, habits.renamed_columns(location.model))
    yield from compare_columns(old.fields, new.fields, inner, location, habits)
    for old_inner, new_inner in (
        (old.items, new.items),
        (old.keys, new.keys),
        (old.values, new.values),
    ):
        if old_inner is not None and new_inner is not None:
            place = _located(location, new_inner.path, old_inner, new_inner)
            yield from _compared(old_inner, new_inner, place, habits)


def _types(old: Field, new: Field, location: ContractLocation) -> Iterator[Change]:
    order = compare_types(old.type, new.type)
    before, after = old.written_type or old.type or "any", new.written_type or new.type or "any"
    match order:
        case Order.SAME if before != after and _is_leaf(old) and _is_leaf(new):
            message = f"the type of {new.path} is now written as {after}"
            yield location.change("type_respelled", message, before, after)
        case Order.LOOSER | Order.TIGHTER | Order.OTHER:
            kind, verb = _CHANGES_OF_TYPES[order]
            message = f"the type of {new.path} {verb}: {before} → {after}"
            yield location.change(kind, message, before, after)


def _is_leaf(item: Field) -> bool:
    """False for nested types, whose parts are compared separately."""
    return item.type not in ("array", "map", "struct")


def _meaning(
    old: Field, new: Field, location: ContractLocation, habits: Habits
) -> Iterator[Change]:
    subject = (
        f"the meaning of {new.path}" if habits.has_semantics else f"the description of {new.path}"
    )
    if old.semantic is not None and new.semantic is not None:
        wording = compare_wording(old.semantic, new.semantic)
        kind = {
            Wording.CORRECTED: "wording_corrected",
            Wording.REWORDED: "semantic_changed" if habits.has_semantics else "description_changed",
            Wording.OTHER_MEANING: "semantic_changed",
        }.get(wording)
        if kind is not None:
            verb = "is corrected" if kind == "wording_corrected" else "changes"
            yield location.change(kind, f"{subject} {verb}", old.semantic, new.semantic)
    elif old.semantic is not None:
        kind = "semantic_removed" if habits.has_semantics else "description_changed"
        yield location.change(kind, f"{subject} is removed", old=old.semantic)
    elif new.semantic is not None:
        yield location.change("description_changed", f"{subject} is added", new=new.semantic)
    if old.unit != new.unit:
        if old.unit is None:
            message = f"the unit of {new.path} is added: {new.unit}"
            yield location.change("unit_added", message, new=new.unit)
        else:
            message = f"the unit of {new.path} changes: {old.unit} → {new.unit or 'none'}"
            yield location.change("unit_changed", message, old.unit, new.unit)


def _defaults(old: Field, new: Field, location: ContractLocation) -> Iterator[Change]:
    before, after = literal_text(old.default), literal_text(new.default)
    if old.has_default and not new.has_default:
        kind = "default_removed" if new.is_nullable else "needed_default_removed"
        yield location.change(kind, f"the default of {new.path} is removed", old=before)
    elif new.has_default and not old.has_default:
        message = f"{new.path} now has the default {after}"
        yield location.change("default_added", message, new=after)
    elif before != after:
        message = f"the default of {new.path} changes: {before} → {after}"
        yield location.change("default_changed", message, before, after)


def _treatment(old: Field, new: Field, location: ContractLocation) -> Iterator[Change]:
    """Who may see the values."""
    if new.is_sensitive and not old.is_sensitive:
        message = f"{new.path} becomes sensitive"
        yield location.change("sensitivity_raised", message, "false", "true")
    if old.is_sensitive and not new.is_sensitive:
        message = f"{new.path} is no longer sensitive"
        yield location.change("sensitivity_lowered", message, "true", "false")
    if old.classification != new.classification:
        before, after = old.classification or "none", new.classification or "none"
        message = f"the classification of {new.path} changes: {before} → {after}"
        yield location.change(
            "classification_changed", message, old.classification, new.classification
        )


def _remarks(old: Field, new: Field, location: ContractLocation) -> Iterator[Change]:
    if old.title != new.title:
        message = f"the title of {new.path} changes"
        yield location.change("description_changed", message, old.title, new.title)
    for kind, noun, before, after in (
        ("example_changed", "examples", old.examples, new.examples),
        ("tags_changed", "tags", old.tags, new.tags),
    ):
        if before != after:
            listed = (", ".join(map(literal_text, values)) for values in (before, after))
            yield location.change(kind, f"the {noun} of {new.path} change", *listed)
    if old.inputs != new.inputs:
        message = f"the source fields of {new.path} change"
        texts = tuple(
            ", ".join(f"{item.name}.{item.field}" for item in inputs)
            for inputs in (old.inputs, new.inputs)
        )
        yield location.change("lineage_changed", message, *texts)
