"""Compares two versions of a contract: what is said about it, and its models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dqx_airflow.contracts.demands import Unique
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.diff.clauses import compare_clauses
from dqx_airflow.contracts.diff.columns import (
    Habits,
    column_changes,
    compare_columns,
    renamed_models,
)
from dqx_airflow.contracts.diff.demands import ColumnChanges, ContractLocation, compare_rules
from dqx_airflow.contracts.diff.kinds import Change, Diff, Wording, compare_wording
from dqx_airflow.contracts.model import Contract, Lifecycle, Model, Rule, Server
from dqx_airflow.contracts.versions import Bump

_FORWARD = {"draft": 0, "active": 1, "deprecated": 2}
_DATES = ("effective_date", "deprecation_date", "sunset_date")
_POLICY = ("successor", "notice_days", "breaking_notice_days", "dual_write_days", "cadence")


def compare_identity(old: Contract, new: Contract) -> Iterator[Change]:
    """The id, the dialect, and the descriptions of the contract."""
    location = ContractLocation("", old.span, new.span)
    place = location.below("id", old.span, new.span)
    yield from place.compared("id_changed", "the id", old.id, new.id)
    for name in ("dialect", "dialect_version"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            message = f"the {_words(name)} changes: {before or 'none'} → {after or 'none'}"
            place = location.below(name, old.span, new.span)
            yield place.change("dialect_changed", message, before and str(before), str(after or ""))
    for name in ("name", "description", "owner", "contacts", "domain", "tags"):
        before, after = (_text(getattr(contract, name)) for contract in (old, new))
        if before == after:
            continue
        corrected = before and after and compare_wording(before, after) is Wording.CORRECTED
        kind = "wording_corrected" if corrected else "about_changed"
        place = location.below(name, old.span, new.span)
        verb = "change" if name in ("contacts", "tags") else "changes"
        yield place.change(kind, f"the {name} of the contract {verb}", before, after)


def compare_parties(old: Contract, new: Contract) -> Iterator[Change]:
    """The servers, and the consumers."""
    servers = {server.name: server for server in old.servers}
    for server in new.servers:
        before = servers.pop(server.name, None)
        if before is None:
            place = ContractLocation(f"servers.{server.name}", None, server.span)
            message = f"server {server.name} is added"
            yield place.change("server_added", message, new=server.name)
        else:
            yield from _server(before, server)
    for name, removed in servers.items():
        place = ContractLocation(f"servers.{name}", removed.span, None)
        yield place.change("server_changed", f"server {name} is removed", old=name)
    consumers = {consumer.team: consumer for consumer in old.consumers}
    for consumer in new.consumers:
        previous = consumers.pop(consumer.team, None)
        if previous != consumer:
            place = ContractLocation(f"consumers.{consumer.team}", old.span, new.span)
            verb = "is listed" if previous is None else "has a changed description"
            if previous is not None and previous.pin != consumer.pin:
                verb = f"pins version {consumer.pin}" if consumer.pin else "does not pin a version"
            message = f"consumer {consumer.team} {verb}"
            yield place.change(
                "consumers_changed", message, previous.team if previous else None, consumer.team
            )
    for team in consumers:
        place = ContractLocation(f"consumers.{team}", old.span, new.span)
        yield place.change("consumers_changed", f"consumer {team} is no longer listed", old=team)


def _server(old: Server, new: Server) -> Iterator[Change]:
    location = ContractLocation(f"servers.{new.name}", old.span, new.span)
    if old.format != new.format and old.format and new.format:
        message = f"the files of server {new.name} change: {old.format} → {new.format}"
        yield location.change("format_changed", message, old.format, new.format)
    elif old != new:
        message = f"server {new.name} changes"
        if old.location != new.location:
            message = f"server {new.name} moves: {old.location} → {new.location}"
        yield location.change("server_changed", message, old.location, new.location)


def compare_lifecycles(old: Contract, new: Contract) -> Iterator[Change]:
    """The status of the contract, its dates, and its promises about changes."""
    before, after = old.lifecycle, new.lifecycle
    location = ContractLocation("lifecycle", old.span, new.span)
    yield from _status(before, after, location.below("status", old.span, new.span))
    for name in _DATES:
        old_date, new_date = getattr(before, name), getattr(after, name)
        is_earlier = name == "sunset_date" and old_date and new_date and new_date < old_date
        kind = "sunset_advanced" if is_earlier else "dates_changed"
        place = location.below(name, old.span, new.span)
        yield from place.compared(kind, f"the {_words(name)}", old_date, new_date)
    for name in _POLICY:
        first, second = (_text(getattr(lifecycle, name)) for lifecycle in (before, after))
        place = location.below(name, old.span, new.span)
        yield from place.compared("policy_changed", _words(name), first, second)


def _status(old: Lifecycle, new: Lifecycle, location: ContractLocation) -> Iterator[Change]:
    if old.status == new.status:
        return
    before, after = old.status or "active", new.status or "active"
    if before == after:
        return
    ends = after == "sunset" or (after == "draft" and before in _FORWARD)
    message = f"the status changes: {before} → {after}"
    kind = "status_withdrawn" if ends else "status_advanced"
    yield location.change(kind, message, old.written_status, new.written_status)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: object) -> str | None:
    if isinstance(value, tuple):
        return ", ".join(value) or None
    return None if value is None else str(value)


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


_COME_AND_GO = {
    *("column_added", "required_column_added", "column_removed", "column_renamed"),
    *("model_added", "model_removed", "model_renamed", "server_added", "server_changed"),
    "consumers_changed",
}
_SEMANTIC = {"semantic_changed", "semantic_removed", "grain_changed"}


def diff(old: Contract, new: Contract, *, semantic: Bump = Bump.MAJOR) -> Diff:
    """The changes between two versions of a contract, those with the largest bump first.

    :param semantic: the bump for a change of the meaning of a column, if only its wording has
        changed.
    """
    habits = Habits(
        has_semantics=any(reader_of(contract.dialect).weighs_meaning for contract in (old, new)),
        needs_every_column=reader_of(new.dialect).versions_models,
        renames=new.renames,
    )
    changes = [
        *compare_identity(old, new),
        *compare_models(old.models, new.models, habits),
        *compare_parties(old, new),
        *compare_lifecycles(old, new),
    ]
    if old.dialect is new.dialect:
        # In another dialect everything is written elsewhere, even if it means the same.
        changes += compare_clauses(old, new, changes, _come_and_gone(changes))
    weighed = (
        replace(change, bump=semantic) if change.kind.name in _SEMANTIC else change
        for change in changes
    )
    return Diff(old, new, tuple(sorted(weighed, key=lambda change: -change.bump)))


def _come_and_gone(changes: list[Change]) -> frozenset[str]:
    """The names of what is in only one of the versions, or renamed."""
    names = set()
    for change in changes:
        if change.kind.name in _COME_AND_GO:
            names |= {change.old, change.new} - {None}
    return frozenset(name for name in names if name is not None)
