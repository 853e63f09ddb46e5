"""The clauses without rules in two versions: terms, links, and what is not checked here.

They are identified by their paths, in which items of lists have names instead of numbers: inserting
a column moves no other one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from dqx_airflow.contracts.dialects import reader_of
from dqx_airflow.contracts.diff.demands import ContractLocation
from dqx_airflow.contracts.diff.kinds import Change
from dqx_airflow.contracts.model import Contract, Dialect, Note, Treatment
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
        texts = {(no_names, _on_one_line(old.version), _on_one_line(new.version))}
        for change in changes:
            names = frozenset(_NAME.findall(change.column or ""))
            before, after = _listed(change.old), _listed(change.new)
            pairs = {(_on_one_line(change.old), _on_one_line(change.new))}
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
        wanted = _on_one_line(old), _on_one_line(new)
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


def _on_one_line(text: str | None) -> str | None:
    return None if text is None else " ".join(text.split())


def _listed(text: str | None) -> set[str | None]:
    """The items of a list that a change shows in one line; none for long texts."""
    if text is None or len(text) > _LONGEST_LIST or "\n" in text:
        return set()
    return {item.strip() for item in text.split(",")}
