"""Compares two versions of a contract: what is said about it, its models, and other clauses.

Clauses without rules are identified by their paths, in which items of lists have names instead of
numbers: inserting a column moves no other one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from dqx_airflow.contracts.demands import Unique, one_line
from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.diff.columns import (
    ColumnChanges,
    ContractLocation,
    Habits,
    column_changes,
    compare_columns,
    compare_rules,
    renamed_models,
)
from dqx_airflow.contracts.diff.kinds import Change, Diff, Wording, compare_wording
from dqx_airflow.contracts.model import (
    Bump,
    Contract,
    Dialect,
    Lifecycle,
    Model,
    Note,
    Rule,
    Server,
    Treatment,
)
from dqx_airflow.values import Span

_PART = re.compile(r"\[(\d+)\]|`([^`]*)`|([^.\[`]+)")
_NAME = re.compile(r"[^.`\[\]{}]+")
_NAMING_KEYS = ("name", "id", "column", "field", "property", "team", "server", "key", "url", "rule")
_NOTHING = ("", "null", "~")
_LONGEST_LIST = 150
_LONGEST_NAME = 200


def compare_clauses(
    old: Contract, new: Contract, changes: Collection[Change], come_and_gone: frozenset[str]
) -> Iterator[Change]:
    """The changes of clauses that the rest of the comparison has not reported.

    :param come_and_gone: names of columns, models, servers and consumers that are in only one of
        the versions: their details are not separate changes.
    """
    before, after = _named_leaves(_leaves(old), _leaves(new))
    known = _Reported.of(changes, old, new)
    parts_of_rules = _parts_of_rules(before, after) | _parts_of_rules(after, before)
    for path in dict.fromkeys((*before, *after)):
        old_leaf, new_leaf = before.get(path), after.get(path)
        texts = _text_of(old_leaf), _text_of(new_leaf)
        if texts[0] == texts[1]:
            continue
        names = frozenset(part.strip("[]") for part in path[:-1])
        names = names.union(*(leaf.columns for leaf in (old_leaf, new_leaf) if leaf))
        if come_and_gone & names or known.has(names, *texts) or known.has_rule(old_leaf, new_leaf):
            continue
        if parts_of_rules.isdisjoint(path[:end] for end in range(1, len(path))):
            yield _change(path, old_leaf, new_leaf, special=_special_kind(new.dialect, path))


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A clause. `note` is None if it has a rule; then `rule` is the path of that rule and of its
    column, `columns` are the names of its columns."""

    text: str
    span: Span
    note: Note | None
    rule: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()


def _parts_of_rules(
    leaves: dict[tuple[str, ...], _Leaf], other_leaves: dict[tuple[str, ...], _Leaf]
) -> set[tuple[str, ...]]:
    """The mappings and list items that are in only one version, and contain a rule: they are added
    and removed as one change, that of the rule."""
    known = {path[:end] for path in other_leaves for end in range(len(path))}
    with_rules = (path for path, leaf in leaves.items() if leaf.note is None)
    return {
        path[:end]
        for path in with_rules
        for end in range(1, len(path))
        if end == len(path) - 1 or path[end - 1].startswith("[")
    } - known


def _leaves(contract: Contract) -> dict[tuple[str, ...], _Leaf]:
    """All clauses by their paths."""
    leaves: dict[tuple[str, ...], _Leaf] = {}
    for note in contract.notes:
        clause = note.clause
        leaves[_parts(clause.path)] = _Leaf(clause.text, clause.span, note)
    for model, item, rule in contract.rules():
        paths = {contract.assertion_name(model, item, rule)}
        paths |= {f"{model.name}.{item.path}"} if item is not None else set()
        columns = frozenset(rule.demand.named_columns)
        for clause in rule.clauses:
            leaf = _Leaf(clause.text, clause.span, None, frozenset(paths), columns)
            leaves[_parts(clause.path)] = leaf
    return leaves


def _named_leaves(
    old: dict[tuple[str, ...], _Leaf], new: dict[tuple[str, ...], _Leaf]
) -> tuple[dict[tuple[str, ...], _Leaf], dict[tuple[str, ...], _Leaf]]:
    """The clauses of both versions by their paths with names in them.

    An item with another name in the place of a removed one keeps the name of that one.
    """
    old_names, new_names = _item_names(old), _item_names(new)
    known = {(item[:-1], name) for item, name in new_names.items()}
    known_before = {(item[:-1], name) for item, name in old_names.items()}
    for item, name in old_names.items():
        other = new_names.get(item)
        if other is None or (item[:-1], name) in known or (item[:-1], other) in known_before:
            continue
        new_names[item] = name
    return (
        {_named(path, old_names): leaf for path, leaf in old.items()},
        {_named(path, new_names): leaf for path, leaf in new.items()},
    )


def _parts(path: str) -> tuple[str, ...]:
    """`columns`, `[0]`, `name` for `columns[0].name`."""
    return tuple(
        f"[{match[1]}]" if match[1] is not None else match[2] if match[2] is not None else match[3]
        for match in _PART.finditer(path)
    )


def _item_names(leaves: dict[tuple[str, ...], _Leaf]) -> dict[tuple[str, ...], str]:
    """The names of list items: their own name, or their text."""
    texts = {path: leaf.text for path, leaf in leaves.items()}
    names: dict[tuple[str, ...], str] = {}
    taken: dict[tuple[tuple[str, ...], str], int] = {}
    items = dict.fromkeys(
        path[: place + 1]
        for path in texts
        for place, part in enumerate(path)
        if part.startswith("[")
    )
    for item in items:
        keys = (texts.get((*item, key)) for key in _NAMING_KEYS)
        name = next((text for text in keys if text), None) or texts.get(item)
        if name is None:
            continue
        name = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
        count = taken[item[:-1], name] = taken.get((item[:-1], name), 0) + 1
        names[item] = f"[{name}]" if count == 1 else f"[{name} ({count})]"
    return names


def _named(path: tuple[str, ...], names: dict[tuple[str, ...], str]) -> tuple[str, ...]:
    return tuple(names.get(path[: place + 1], part) for place, part in enumerate(path))


def _text_of(leaf: _Leaf | None) -> str | None:
    """The text of a clause; `null` is equivalent to no clause."""
    return leaf.text if leaf is not None and leaf.text not in _NOTHING else None


def _special_kind(dialect: Dialect, path: tuple[str, ...]) -> str | None:
    """The kind of a change of a clause that only one dialect has, and consumers rely on."""
    kinds = (
        kind
        for part, kind in reader_of(dialect).change_kinds
        if part == path[-1:] or any(part == pair for pair in pairwise(path))
    )
    return None if path[-1] == "description" else next(kinds, None)


def _change(
    path: tuple[str, ...], old: _Leaf | None, new: _Leaf | None, *, special: str | None
) -> Change:
    leaf = new or old
    assert leaf is not None
    shown = ".".join(path).replace(".[", "[")
    is_checked_nowhere = any(
        item is not None and item.note is not None and item.note.treatment is Treatment.UNSUPPORTED
        for item in (old, new)
    )
    kind = "unsupported_clause_changed" if is_checked_nowhere else "documented_clause_changed"
    verb = "is added" if old is None else "is removed" if new is None else "changes"
    place = ContractLocation(shown, old.span if old else None, new.span if new else None)
    return place.change(
        special or kind, f"{shown} {verb}", old.text if old else None, new.text if new else None
    )


@dataclass(frozen=True, slots=True)
class _Reported:
    """What other changes report: their paths, and the texts, whole and as list items.

    Each text is stored with the names of its column; with none if it is about no column.
    """

    texts: frozenset[tuple[frozenset[str], str | None, str | None]]
    paths: frozenset[str]
    spans: frozenset[Span | None]

    @classmethod
    def of(cls, changes: Collection[Change], old: Contract, new: Contract) -> _Reported:
        no_names: frozenset[str] = frozenset()
        texts = {
            (
                no_names,
                (old.version and one_line(old.version)),
                (new.version and one_line(new.version)),
            )
        }
        for change in changes:
            names = frozenset(_NAME.findall(change.column or ""))
            before, after = _listed(change.old), _listed(change.new)
            pairs = {((change.old and one_line(change.old)), (change.new and one_line(change.new)))}
            pairs |= {(item, None) for item in before - after}
            pairs |= {(None, item) for item in after - before}
            pairs |= {(old_text, new_text) for old_text in before for new_text in after}
            texts |= {(names, *pair) for pair in pairs}
        return cls(
            frozenset(texts),
            frozenset(path for change in changes for path in _reported_paths(change)),
            frozenset(span for change in changes for span in (change.old_span, change.new_span)),
        )

    def has_rule(self, *leaves: _Leaf | None) -> bool:
        """True if a change of a rule or its column reports a clause of the rule."""
        return any(
            leaf is not None
            and leaf.note is None
            and (leaf.rule & self.paths or leaf.span in self.spans)
            for leaf in leaves
        )

    def has(self, names: frozenset[str], old: str | None, new: str | None) -> bool:
        wanted = (old and one_line(old)), (new and one_line(new))
        return any(
            (old_text, new_text) == wanted and (not about or about & names)
            for about, old_text, new_text in self.texts
        )


def _reported_paths(change: Change) -> Iterator[str]:
    """The path of a change; for a nested column also those of the enclosing types."""
    yield change.path
    parts = change.path.split(".")
    for end in range(2, len(parts)) if change.column is not None else ():
        yield ".".join((*parts[:end], "type"))


def _listed(text: str | None) -> set[str | None]:
    """The items of a list that a change shows in one line; none for long texts."""
    if text is None or len(text) > _LONGEST_LIST or "\n" in text:
        return set()
    return {item.strip() for item in text.split(",")}


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
