"""Compares two versions of a contract: its properties, its models, and other clauses.

Clauses without rules are identified by their paths, in which items of lists have names instead of
numbers: inserting a column moves no other column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from dqx_airflow.contracts.demands import Unique, one_line
from dqx_airflow.contracts.dialects import ClauseKind, reader_of
from dqx_airflow.contracts.diff.columns import (
    ColumnChanges,
    ContractLocation,
    Habits,
    both_versions,
    column_changes,
    compare_columns,
    compare_rules,
    compare_values,
    not_shown,
    renamed_models,
    shown_items,
    verb_of,
)
from dqx_airflow.contracts.diff.kinds import Change, Diff
from dqx_airflow.contracts.diff.wording import Wording, compare_wording
from dqx_airflow.contracts.model import (
    Consumer,
    Contract,
    Lifecycle,
    Model,
    Note,
    Server,
    Treatment,
)
from dqx_airflow.contracts.versions import Bump
from dqx_airflow.values import Span

_PART = re.compile(r"(\[\d+\])|`([^`]*)`|([^.\[`]+)")
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
    rated = _rules_with_other_severity(before, changes) | _rules_with_other_severity(after, changes)
    sourced = [_names(change.path) for change in changes if change.kind.name == "lineage_changed"]
    found: list[tuple[_Keys, _Leaf | None, _Leaf | None]] = []
    items_reported: set[_Keys] = set()
    for path in dict.fromkeys((*before, *after)):
        old_leaf = before.get(path)
        new_leaf = after.get(path)
        texts = _text_of(old_leaf), _text_of(new_leaf)
        if texts[0] == texts[1]:
            continue
        names = frozenset(part.strip("[]") for part in path[:-1])
        names = names.union(*(leaf.columns for leaf in (old_leaf, new_leaf) if leaf))
        if path[-1] == "severity" and path[:-1] in rated:
            continue
        is_source = ("lineage", "inputFields") in pairwise(path)
        if is_source and any(of_column <= names for of_column in sourced):
            continue
        if come_and_gone & names or known.has(names, *texts) or known.has_rule(old_leaf, new_leaf):
            items_reported.add(path[:-1])
        elif parts_of_rules.isdisjoint(path[:end] for end in range(1, len(path))):
            found.append((path, old_leaf, new_leaf))
    in_one_version = _holders(before) ^ _holders(after)
    for path, old_leaf, new_leaf in found:
        # The name of an item that came or went says no more than what it holds does.
        text = _text_of(old_leaf) or _text_of(new_leaf)
        is_name = path[-1] in _NAMING_KEYS and path[-2:-1] == (f"[{text}]",)
        if is_name and path[:-1] in items_reported & in_one_version:
            continue
        yield _change(path, old_leaf, new_leaf, reader_of(new.dialect).change_kinds)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A clause. `note` is None if it has a rule; then `rule` has the paths of the rule and of its
    column, `columns` the names of the columns in the rule."""

    text: str
    span: Span
    note: Note | None
    rule: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()


_Keys: TypeAlias = tuple[str, ...]
"""The keys on the path to a clause, and the indexes or names of items: `[0]`, `[amount]`."""
_Leaves: TypeAlias = dict[_Keys, _Leaf]


def _holders(leaves: _Leaves) -> set[_Keys]:
    """The mappings and lists that hold clauses."""
    return {path[:-1] for path in leaves}


def _rules_with_other_severity(leaves: _Leaves, changes: Collection[Change]) -> set[_Keys]:
    """The mappings of rules whose severity is reported as a change of its own."""
    reported = {change.path for change in changes if change.kind.name == "severity_changed"}
    return {path[:-1] for path, leaf in leaves.items() if leaf.rule & reported}


def _parts_of_rules(leaves: _Leaves, other_leaves: _Leaves) -> set[_Keys]:
    """The mappings and list items that are in only one version, and contain a rule: the change of
    the rule reports them."""
    known = {path[:end] for path in other_leaves for end in range(len(path))}
    with_rules = (path for path, leaf in leaves.items() if leaf.note is None)
    return {
        path[:end]
        for path in with_rules
        for end in range(1, len(path))
        if end == len(path) - 1 or path[end - 1].startswith("[")
    } - known


def _leaves(contract: Contract) -> _Leaves:
    """All clauses by their paths."""
    leaves: _Leaves = {}
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


def _named_leaves(old: _Leaves, new: _Leaves) -> tuple[_Leaves, _Leaves]:
    """The clauses of both versions by their paths, with names of items instead of numbers.

    An item that replaces a removed item at the same index keeps the name of the removed item.
    """
    old_names = _item_names(old)
    new_names = _item_names(new)
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


def _parts(path: str) -> _Keys:
    """`columns`, `[0]`, `name` for `columns[0].name`."""
    return tuple(match[match.lastindex or 0] for match in _PART.finditer(path))


def _item_names(leaves: _Leaves) -> dict[_Keys, str]:
    """The names of list items: their own name, or their text."""
    texts = {path: leaf.text for path, leaf in leaves.items()}
    names: dict[_Keys, str] = {}
    taken: dict[tuple[_Keys, str], int] = {}
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


def _named(path: _Keys, names: dict[_Keys, str]) -> _Keys:
    return tuple(names.get(path[: place + 1], part) for place, part in enumerate(path))


def _names(path: str) -> frozenset[str]:
    """The names of the elements on a path."""
    return frozenset(_NAME.findall(path))


def _text_of(leaf: _Leaf | None) -> str | None:
    """The text of a clause; `null` is equivalent to no clause."""
    return leaf.text if leaf is not None and leaf.text not in _NOTHING else None


def _change(
    path: _Keys, old: _Leaf | None, new: _Leaf | None, special: Collection[ClauseKind]
) -> Change:
    """The change of a clause.

    :param special: the clauses that only the dialect has and consumers rely on, each with the kind
        of its change, and the texts that mean the same as none."""
    notes = [leaf.note for leaf in (old, new) if leaf is not None and leaf.note is not None]
    kind = "documented_clause_changed"
    if any(note.treatment is Treatment.UNSUPPORTED for note in notes):
        kind = "unsupported_clause_changed"
    if path[-1] != "description":
        pairs = (path[-1:], *pairwise(path))
        for part, name, defaults in special:
            if part in pairs and _stated(old, defaults) != _stated(new, defaults):
                kind = name
                break
    shown = ".".join(path).replace(".[", "[")
    place = ContractLocation(shown, old.span if old else None, new.span if new else None)
    old_text = old.text if old else None
    new_text = new.text if new else None
    return place.change(kind, old_text, new_text, f"{shown} {verb_of(old, new)}")


def _stated(leaf: _Leaf | None, defaults: Collection[str]) -> str | None:
    """The text of a clause; None if it means the same as no clause."""
    return None if leaf is None or leaf.text in defaults else leaf.text


@dataclass(slots=True)
class _Reported:
    """The contents of other changes: their paths, and the pairs of old and new texts, complete and
    as list items.

    Each pair is stored with the names of its columns; with none if it is about no column.
    """

    texts: dict[tuple[str | None, str | None], list[frozenset[str]]] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)
    spans: set[Span | None] = field(default_factory=set)

    @classmethod
    def of(cls, changes: Collection[Change], old: Contract, new: Contract) -> _Reported:
        known = cls()
        known._add(frozenset(), (old.version, new.version))
        # `odcs` writes the version of its format with a "v".
        known._add(frozenset(), (f"v{old.dialect_version}", f"v{new.dialect_version}"))
        for change in changes:
            known.paths.update(_reported_paths(change))
            known.spans |= {change.old_span, change.new_span}
            before, after = _listed(change.old), _listed(change.new)
            known._add(
                _names(change.column or ""),
                (change.old, change.new),
                *((item, None) for item in before - after),
                *((None, item) for item in after - before),
                *((old_text, new_text) for old_text in before for new_text in after),
            )
        return known

    def _add(self, names: frozenset[str], *pairs: tuple[str | None, str | None]) -> None:
        for old, new in pairs:
            self.texts.setdefault((old and one_line(old), new and one_line(new)), []).append(names)

    def has_rule(self, *leaves: _Leaf | None) -> bool:
        """True if a change of a rule or its column reports a clause of the rule."""
        return any(
            leaf is not None
            and leaf.note is None
            and (leaf.rule & self.paths or leaf.span in self.spans)
            for leaf in leaves
        )

    def has(self, names: frozenset[str], old: str | None, new: str | None) -> bool:
        reported = self.texts.get((old and one_line(old), new and one_line(new)), ())
        return any(not about or about & names for about in reported)


def _reported_paths(change: Change) -> Iterator[str]:
    """The path of a change; for a nested column also the paths of the enclosing types."""
    yield change.path
    parts = change.path.split(".")
    for end in range(2, len(parts)) if change.column is not None else ():
        yield ".".join((*parts[:end], "type"))


def _listed(text: str | None) -> set[str | None]:
    """The items of a list that a change shows in one line; none for long texts."""
    if text is None or len(text) > _LONGEST_LIST or "\n" in text:
        return set()
    return {item.strip() for item in text.split(",")}


_FORWARD = ("draft", "active", "deprecated")


def compare_identity(old: Contract, new: Contract) -> Iterator[Change]:
    """The id, the format, and the descriptions of the contract."""
    location = ContractLocation("", old.span, new.span)
    yield from compare_values(old.id, new.id, location.below("id"), "id_changed")
    yield from compare_values(
        old.dialect,
        new.dialect,
        location.below("format"),
        "contract_format_changed",
        words="format",
    )
    yield from compare_values(
        old.dialect_version,
        new.dialect_version,
        location.below("format_version"),
        "contract_format_changed",
        words="format version",
    )
    for name, before, after in (
        ("name", old.name, new.name),
        ("description", old.description, new.description),
        ("owner", old.owner, new.owner),
        ("contacts", old.contacts, new.contacts),
        ("domain", old.domain, new.domain),
        ("tags", old.tags, new.tags),
    ):
        verb = "change" if isinstance(after, tuple) else "changes"
        message = f"the {name} of the contract {verb}"
        place = location.below(name)
        yield from compare_values(before, after, place, "about_changed", message, is_prose=True)


def compare_parties(old: Contract, new: Contract) -> Iterator[Change]:
    """The servers, and the consumers."""
    for item, server, before in both_versions(new.servers, old.servers):
        name = item.name
        place = ContractLocation(
            f"servers.{name}", before.span if before else None, server.span if server else None
        )
        if server is None:
            yield place.change("server_changed", name, None, f"server {name} is removed")
        elif before is None:
            yield place.change("server_added", new=name)
        else:
            yield from _server(before, server, place)
    teams = both_versions(new.consumers, old.consumers, name_of=lambda consumer: consumer.team)
    for named, consumer, previous in teams:
        if consumer == previous:
            continue
        place = ContractLocation(f"consumers.{named.team}", old.span, new.span)
        yield place.change(
            "consumers_changed",
            previous.team if previous else None,
            consumer.team if consumer else None,
            f"consumer {named.team} {_verb_of(previous, consumer)}",
        )


def _verb_of(old: Consumer | None, new: Consumer | None) -> str:
    """The change of a consumer in words."""
    if new is None:
        return "is no longer listed"
    if old is None:
        return "is listed"
    if old.pin == new.pin:
        return "has a changed description"
    return f"pins version {new.pin}" if new.pin else "does not pin a version"


def _server(old: Server, new: Server, location: ContractLocation) -> Iterator[Change]:
    if old.format != new.format and old.format and new.format:
        yield location.change("format_changed", old.format, new.format, name=new.name)
    elif old != new:
        message = f"server {new.name} changes"
        if old.location != new.location:
            message = f"server {new.name} moves: {old.location} → {new.location}"
        yield location.change("server_changed", old.location, new.location, message)


def compare_lifecycles(old: Contract, new: Contract) -> Iterator[Change]:
    """The status of the contract, its dates, and its promises about changes."""
    before, after = old.lifecycle, new.lifecycle
    location = ContractLocation("lifecycle", old.span, new.span)
    yield from _status(before, after, location.below("status"))
    is_earlier = before.sunset_date and after.sunset_date and after.sunset_date < before.sunset_date
    for name, kind, old_date, new_date in (
        ("effective_date", "dates_changed", before.effective_date, after.effective_date),
        ("deprecation_date", "dates_changed", before.deprecation_date, after.deprecation_date),
        (
            "sunset_date",
            "sunset_advanced" if is_earlier else "dates_changed",
            before.sunset_date,
            after.sunset_date,
        ),
    ):
        words = name.replace("_", " ")
        yield from compare_values(old_date, new_date, location.below(name), kind, words=words)
    for name, old_value, new_value in (
        ("successor", before.successor, after.successor),
        ("notice_days", before.notice_days, after.notice_days),
        ("breaking_notice_days", before.breaking_notice_days, after.breaking_notice_days),
        ("dual_write_days", before.dual_write_days, after.dual_write_days),
        ("cadence", before.cadence, after.cadence),
    ):
        place = location.below(name)
        words = name.replace("_", " ")
        yield from compare_values(old_value, new_value, place, "policy_changed", words=words)


def _status(old: Lifecycle, new: Lifecycle, location: ContractLocation) -> Iterator[Change]:
    before, after = old.status or "active", new.status or "active"
    if before != after:
        ends = after == "sunset" or (after == "draft" and before in _FORWARD)
        kind = "status_withdrawn" if ends else "status_advanced"
        written = old.written_status, new.written_status
        yield location.change(kind, *written, before=before, after=after)


_KEY = "primary_key"


def compare_models(old: Sequence[Model], new: Sequence[Model], habits: Habits) -> Iterator[Change]:
    """The changes of the models and of everything in them."""
    declared = {rename.model: rename.old for rename in habits.renames if rename.field is None}
    names = renamed_models(old, new, declared)
    for item, before, after in both_versions(old, new, names):
        name = item.name
        old_span = before.span if before else None
        new_span = after.span if after else None
        place = ContractLocation(name, old_span, new_span, name)
        if before is None:
            yield place.change("model_added", new=name)
        elif after is None:
            yield place.change("model_removed", old=name)
        else:
            if before.name in names:
                yield place.change("model_renamed", before.name, name)
            yield from _compared(before, after, place, habits)


def _compared(
    old: Model, new: Model, location: ContractLocation, habits: Habits
) -> Iterator[Change]:
    columns = column_changes(old.fields, new.fields, habits.renamed_columns(new.name))
    yield from compare_columns(old.fields, new.fields, columns, location, habits)
    keys = _key(old, columns), _key(new, ColumnChanges())
    rules = [old.rules, new.rules]
    if keys[0] and keys[0] != keys[1]:
        # A change of the key is reported separately.
        rules = [tuple(rule for rule in side if rule.name != _KEY) for side in rules]
    if set(keys[0]) != set(keys[1]):
        names, new_names = (", ".join(key) or None for key in keys)
        kind = "key_changed" if names else "key_added"
        place = location.below(_KEY)
        yield place.change(kind, names, new_names, path=location.path, to=new_names or "none")
    yield from compare_rules(rules[0], rules[1], location, columns)
    yield from _storage(old, new, location, columns)
    if old.description != new.description:
        yield _described(old.description, new.description, location)
    yield from compare_values(
        old.title,
        new.title,
        location,
        "description_changed",
        f"the title of {location.path} changes",
        is_prose=True,
    )
    yield from compare_values(old.tags, new.tags, location, "tags_changed", show=shown_items)
    yield from compare_values(
        old.examples, new.examples, location, "example_changed", show=not_shown
    )


def _key(model: Model, columns: ColumnChanges) -> _Keys:
    """The new names of the columns of the key."""
    key = next((rule.demand for rule in model.rules if rule.name == _KEY), None)
    named = tuple(item.path for item in model.walk() if item.is_key)
    if isinstance(key, Unique):
        named = key.columns
    return tuple(columns.renamed.get(path, path) for path in named)


def _storage(
    old: Model, new: Model, location: ContractLocation, columns: ColumnChanges
) -> Iterator[Change]:
    before = tuple(columns.renamed.get(path, path) for path in old.partition_by)
    if before != new.partition_by:
        texts = ", ".join(old.partition_by) or "none", ", ".join(new.partition_by) or "none"
        yield location.change("partition_changed", *texts)
    # Another name of the model may be another location, which the name already reports.
    is_reported = old.name != new.name and (new.location or "").rpartition(".")[2] == new.name
    if old.location != new.location and old.location is not None and not is_reported:
        to = new.location or "nowhere"
        yield location.change("location_changed", old.location, new.location, to=to)


def _described(old: str | None, new: str | None, location: ContractLocation) -> Change:
    """The change of a description, which defines the rows of a table: a reworded description may
    mean another table, and no other change would show it."""
    message = f"the description of {location.path} changes"
    wording = compare_wording(old, new) if old and new else None
    if wording is Wording.CORRECTED:
        return location.change("wording_corrected", old, new, message)
    if wording in (Wording.REWORDED, Wording.OTHER_MEANING):
        return location.change("grain_changed", old, new)
    return location.change("description_changed", old, new, message)


_COME_AND_GO = {
    "column_added",
    "required_column_added",
    "column_removed",
    "column_renamed",
    "model_added",
    "model_removed",
    "model_renamed",
    "server_added",
    "server_changed",
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
        names = {
            name
            for change in changes
            if change.kind.name in _COME_AND_GO
            for name in (change.old, change.new)
            if name is not None
        }
        changes += compare_clauses(old, new, changes, frozenset(names))
    weighed = (
        replace(change, bump=semantic) if change.kind.name in _SEMANTIC else change
        for change in changes
    )
    return Diff(old, new, tuple(sorted(weighed, key=lambda change: -change.bump)))
