"""Compares the columns of two versions of a model, and the rules of columns and models: which
demands are stricter.

Changes that Delta Lake makes without rewriting files are widenings: integers to larger integers, to
`double` (not `bigint`) and to sufficient decimals, `float` to `double`, decimals to decimals with
more digits on both sides, `date` to `timestamp_ntz`. Longer strings and the words for several types
are widenings too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, NamedTuple, TypeAlias, TypeVar

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.diff.kinds import KINDS, Change
from dqx_airflow.contracts.diff.wording import Wording, compare_wording
from dqx_airflow.contracts.field_types import narrower_types
from dqx_airflow.contracts.model import Field, Model, Renamed, Rule
from dqx_airflow.dql.nodes import DEFAULT_SEVERITY
from dqx_airflow.metrics.types import parts_of
from dqx_airflow.values import FieldSource, Span
from dqx_airflow.values.files import table_rows

Fields: TypeAlias = Sequence[Field]


_MESSAGES: dict[str, str] = dict(table_rows(__package__, "messages.txt", "messages"))


class ContractLocation(NamedTuple):
    """An element of a contract, in both versions; a span is None if it is missing."""

    path: str
    old_span: Span | None
    new_span: Span | None
    model: str | None = None
    column: str | None = None

    def below(self, name: str, **spans: Any) -> ContractLocation:
        """The location of a child of the element, with the same spans unless others are given."""
        return self._replace(path=f"{self.path}.{name}" if self.path else name, **spans)

    def change(
        self,
        kind: str,
        old: str | None = None,
        new: str | None = None,
        message: str | None = None,
        **named: object,
    ) -> Change:
        """A change of a kind at this location.

        :param message: by default the message in `messages.txt`; `named` fills its placeholders.
        """
        shown = {"path": self.column or self.path, "old": old, "new": new, **named}
        text = message or _MESSAGES[kind].format(**shown)
        return Change(KINDS[kind], text, KINDS[kind].bump, old, new, *self)


T = TypeVar("T")


def shown(value: object) -> str | None:
    """A value as text; None for an empty tuple, and for None."""
    if value is None or value == ():
        return None
    if isinstance(value, tuple):
        return shown_items(value)
    return str(value)


def shown_items(values: tuple[object, ...]) -> str:
    """Values as text with commas between them."""
    return ", ".join(map(_item_text, values))


def not_shown(_value: object) -> None:
    """Shows no value: examples of a model are too long."""


def _item_text(item: object) -> str:
    if isinstance(item, FieldSource):
        return f"{item.name}.{item.field}"
    return demands.literal_text(item)


def verb_of(old: object, new: object) -> str:
    """What happened to an element of which one version may be missing, which None stands for."""
    return "is added" if old is None else "is removed" if new is None else "changes"


def compare_values(
    old: T,
    new: T,
    place: ContractLocation,
    kind: str,
    message: str | None = None,
    *,
    show: Callable[[T], str | None] = shown,
    is_prose: bool = False,
    **named: object,
) -> Iterator[Change]:
    """The change of a value, if it differs.

    :param message: by default the message in `messages.txt`; `named` fills its placeholders.
    :param show: returns the text of a value for the change.
    :param is_prose: a corrected wording is another kind of change.
    """
    if old == new:
        return
    before, after = show(old), show(new)
    path = place.column or place.path
    placeholders = {"path": path, "old": before or "none", "new": after or "none", **named}
    text = message or _MESSAGES[kind].format(**placeholders)
    is_corrected = (
        is_prose and before and after and compare_wording(before, after) is Wording.CORRECTED
    )
    yield place.change("wording_corrected" if is_corrected else kind, before, after, text)


def both_versions(
    old: Iterable[T],
    new: Iterable[T],
    names: Mapping[str, str] | None = None,
    name_of: Callable[[T], str] = lambda item: item.name,  # type: ignore[attr-defined]
) -> Iterator[tuple[T, T | None, T | None]]:
    """Each item with its old and its new version, None if missing; added items come last.

    :param names: the new names by the old ones, where they differ.
    """
    after = {name_of(item): item for item in new}
    for item in old:
        name = name_of(item)
        other = after.pop((names or {}).get(name, name), None)
        yield other or item, item, other
    yield from ((item, None, item) for item in after.values())


_KINDS_OF_ORDERS = {
    demands.Order.LOOSER: "rule_loosened",
    demands.Order.TIGHTER: "rule_tightened",
    demands.Order.OTHER: "rule_changed",
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
    before = [replace(rule, demand=rule.demand.renamed(columns.renamed)) for rule in old]
    for old_rule, new_rule in _pairs_of_rules(before, new):
        if old_rule is not None and new_rule is not None:
            yield from _compared_rules(old_rule, new_rule, location, is_whole=is_whole)
        elif old_rule is not None and not set(old_rule.demand.named_columns) & columns.dropped:
            yield _removed(old_rule, location)
        elif new_rule is not None and not _comes_with_its_columns(new_rule.demand, columns):
            yield _added(new_rule, location)


def _comes_with_its_columns(demand: demands.Demand, columns: ColumnChanges) -> bool:
    named = set(demand.named_columns)
    is_harmless = isinstance(demand, _HARMLESS_FOR_NEW_COLUMNS)
    return is_harmless and bool(named) and named <= columns.added


def _compared_rules(
    old: Rule, new: Rule, location: ContractLocation, *, is_whole: bool
) -> Iterator[Change]:
    spans = {"old_span": _span(old, location.old_span), "new_span": _span(new, location.new_span)}
    place = location.below(new.name, **spans)
    stricter = demands.compare_demands(old.demand, new.demand, is_whole=is_whole)
    order = demands.all_of(stricter, demands.rising(old.share, new.share))
    if order is not demands.Order.SAME:
        before, after = old.text, new.text
        detail = _of_enums(old.demand, new.demand) or f"{before} → {after}"
        yield place.change(_KINDS_OF_ORDERS[order], before, after, name=new.name, detail=detail)
    if _given_name(old) != _given_name(new):
        message = f"`{old.name}` is renamed to `{new.name}`"
        yield place.change("rule_described", old.name, new.name, message)
    severities = tuple(str(rule.severity or DEFAULT_SEVERITY) for rule in (old, new))
    if severities[0] != severities[1]:
        yield place.change("severity_changed", *severities, name=new.name)
    for what in ("description", "dimension", "tags"):
        described, redescribed = shown(getattr(old, what)), shown(getattr(new, what))
        if described != redescribed:
            message = f"the {what} of `{new.name}` {verb_of(described, redescribed)}"
            yield place.change("rule_described", described, redescribed, message)


def _given_name(rule: Rule) -> str | None:
    """The name that the author gave to a rule; None for a name derived from its kind."""
    return _NUMBER.sub("", rule.name) if isinstance(rule.demand, _NAMED_BY_PEOPLE) else None


def _of_enums(old: demands.Demand, new: demands.Demand) -> str | None:
    """The added and removed values, if both demands are lists of values."""
    if not (isinstance(old, demands.OneOf) and isinstance(new, demands.OneOf)):
        return None
    added = [demands.literal_text(value) for value in new.values if value not in old.values]
    removed = [demands.literal_text(value) for value in old.values if value not in new.values]
    parts = [f"{', '.join(added)} added"] if added else []
    parts += [f"{', '.join(removed)} removed"] if removed else []
    return "; ".join(parts) or None


def _removed(rule: Rule, location: ContractLocation) -> Change:
    place = location.below(rule.name, old_span=_span(rule, location.old_span))
    message = "NULL is allowed" if isinstance(rule.demand, demands.Required) else None
    return place.change("rule_removed", old=rule.text, message=message, name=rule.name)


def _added(rule: Rule, location: ContractLocation) -> Change:
    place = location.below(rule.name, new_span=_span(rule, location.new_span))
    if isinstance(rule.demand, demands.Required):
        message = "NULL is no longer allowed"
        return place.change("rule_tightened", new=rule.text, message=message)
    return place.change("rule_added", new=rule.text, name=rule.name)


def _span(rule: Rule, otherwise: Span | None) -> Span | None:
    return rule.clauses[0].span if rule.clauses else otherwise


# Matching rules of both versions ------------------------------------------------------------------


_Likeness: TypeAlias = Callable[[Rule, Rule], bool]

_LIKENESSES: tuple[_Likeness, ...] = (
    lambda old, new: old.name == new.name and old.demand == new.demand,
    lambda old, new: old.demand == new.demand,
    lambda old, new: old.name == new.name and old.demand.subject == new.demand.subject,
    lambda old, new: old.demand.subject == new.demand.subject,
    lambda old, new: old.name == new.name and type(old.demand) is type(new.demand),
)


def _pairs_of_rules(
    old: Sequence[Rule], new: Sequence[Rule]
) -> Iterator[tuple[Rule | None, Rule | None]]:
    """Pairs of the old and new version of each rule, the most certain first; None if missing."""
    left, right = (
        [rule for rule in rules if not isinstance(rule.demand, demands.OfType)]
        for rules in (old, new)
    )
    for is_alike in _LIKENESSES:
        for old_rule in tuple(left):
            new_rule = next((rule for rule in right if is_alike(old_rule, rule)), None)
            if new_rule is not None:
                left.remove(old_rule)
                right.remove(new_rule)
                yield old_rule, new_rule
    yield from ((old_rule, None) for old_rule in left)
    yield from ((None, new_rule) for new_rule in right)


FieldOrModel = TypeVar("FieldOrModel", Field, Model)

_ALIKE = 0.4
_SAME_PLACE = 0.2
_SHARED_COLUMNS = 0.6
_MOST_PAIRS = 4000
_LONGEST_TEXT = 400
_NO_SIGN = (demands.Presence, demands.OfType, demands.Required)


def renamed_fields(old: Fields, new: Fields, declared: Mapping[str, str]) -> dict[str, str]:
    """The new names of fields that were probably renamed, by their old names.

    :param declared: the old path by the new one, as declared in the new version.
    """
    places = {id(item): place for items in (old, new) for place, item in enumerate(items)}

    def likeness(old_field: Field, new_field: Field) -> float:
        if compare_types(old_field.type, new_field.type) not in (
            demands.Order.SAME,
            demands.Order.LOOSER,
        ):
            return 0.0
        is_in_place = places[id(old_field)] == places[id(new_field)]
        return _likeness_of_fields(old_field, new_field) + _SAME_PLACE * is_in_place

    before = {item.path: item.name for item in old}
    known = {item.name: before[path] for item in new if (path := declared.get(item.path)) in before}
    return _pairs(old, new, likeness, known)


def renamed_models(
    old: Sequence[Model], new: Sequence[Model], declared: Mapping[str, str]
) -> dict[str, str]:
    """The new names of models that share most of their columns, by their old names.

    :param declared: the old name by the new one, as declared in the new version.
    """

    def likeness(old_model: Model, new_model: Model) -> float:
        before = {(item.name, item.type) for item in old_model.fields}
        after = {(item.name, item.type) for item in new_model.fields}
        shared = len(before & after) / max(len(before | after), 1)
        return shared if shared >= _SHARED_COLUMNS else 0.0

    return _pairs(old, new, likeness, declared)


def _pairs(
    old: Sequence[FieldOrModel],
    new: Sequence[FieldOrModel],
    likeness: Callable[[FieldOrModel, FieldOrModel], float],
    declared: Mapping[str, str],
) -> dict[str, str]:
    """The new names by the old ones: declared pairs first, then similar pairs, best first; each
    name occurs in one pair."""
    before, after = {item.name for item in old}, {item.name for item in new}
    removed = [item for item in old if item.name not in after]
    added = [item for item in new if item.name not in before]
    old_names = {item.name for item in removed}
    known = {item.name: declared.get(item.name) for item in reversed(added)}
    pairs = {name: new_name for new_name, name in known.items() if name in old_names}
    if len(removed) * len(added) > _MOST_PAIRS:
        return pairs
    ranked = sorted(
        (
            (-score, first, second)
            for first, old_item in enumerate(removed)
            for second, new_item in enumerate(added)
            if (score := likeness(old_item, new_item)) >= _ALIKE
        )
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


def _signs(item: Field) -> tuple[demands.Demand, ...]:
    """The demands by which a column is recognised."""
    return tuple(rule.demand for rule in item.rules if not isinstance(rule.demand, _NO_SIGN))


_DIGITS_FOR_WHOLE = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
_WIDENED_BY_DELTA = {*_DIGITS_FOR_WHOLE, "float", "double", "decimal", "date", "timestamp_ntz"}
_ANY = "any"


def compare_types(old: str | None, new: str | None) -> demands.Order:
    """The order of two types, `LOOSER` for a widening; `OTHER` also for a change to `any`.

    A column that may hold anything breaks every consumer that relies on its type.
    """
    before, after = old or _ANY, new or _ANY
    if before == after or {before, after} == {"string", "text"}:
        return demands.Order.SAME
    if _ANY in (before, after):
        return demands.Order.OTHER
    if _is_wider(before, after):
        return demands.Order.LOOSER
    return demands.Order.TIGHTER if _is_wider(after, before) else demands.Order.OTHER


def is_delta_widening(old: str, new: str) -> bool:
    """True if Delta changes the type of a column without rewriting its files."""
    return {_kind(old), _kind(new)} <= _WIDENED_BY_DELTA and _is_wider(old, new)


def _is_wider(narrow: str, wide: str) -> bool:
    kind = _kind(narrow)
    other = _kind(wide)
    if other == "varchar":
        return kind in ("varchar", "char") and _sizes(wide, 0) > _sizes(narrow, 0)
    if other == "decimal":
        return _fits_decimal(narrow, wide)
    return kind in narrower_types(other)


def _fits_decimal(narrow: str, wide: str) -> bool:
    precision, scale = _sizes(wide, 10, 0)
    kind = _kind(narrow)
    if kind in _DIGITS_FOR_WHOLE:
        return precision - scale >= _DIGITS_FOR_WHOLE[kind]
    if kind != "decimal" or narrow == wide:
        return False
    old_precision, old_scale = _sizes(narrow, 10, 0)
    return precision - scale >= old_precision - old_scale and scale >= old_scale


def _sizes(spark_type: str, *defaults: int) -> list[int]:
    """The sizes of a type, such as its length, with defaults for missing sizes."""
    sizes = [int(part) for part in parts_of(spark_type)]
    return [*sizes, *defaults[len(sizes) :]]


def _kind(spark_type: str) -> str:
    return spark_type.partition("(")[0]


_WORDINGS = {
    Wording.CORRECTED: ("wording_corrected", "wording_corrected"),
    Wording.REWORDED: ("semantic_changed", "description_changed"),
    Wording.OTHER_MEANING: ("semantic_changed", "semantic_changed"),
}
"""The kinds of changes of a meaning, and of a description."""


@dataclass(frozen=True, slots=True)
class Habits:
    """The properties of a dialect that matter for comparisons.

    `has_semantics`: the dialect has a key for the meaning of a column, whose text then is a
    promise; otherwise the text is a description. `needs_every_column`: a query must return each
    promised column. `renames` are the renames that the new version declares.
    """

    has_semantics: bool
    needs_every_column: bool
    renames: tuple[Renamed, ...] = ()

    def renamed_columns(self, model: str | None) -> dict[str, str]:
        """The declared renames of the columns of a model: old paths by new paths."""
        return {
            rename.field: rename.old
            for rename in self.renames
            if rename.model == model and rename.field
        }


def column_changes(old: Fields, new: Fields, declared: Mapping[str, str]) -> ColumnChanges:
    """The renamed, removed and added columns of one nesting level, by their paths.

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
    old: Fields, new: Fields, columns: ColumnChanges, location: ContractLocation, habits: Habits
) -> Iterator[Change]:
    """The changes of the columns of a model, or of a struct.

    :param columns: the result of `column_changes` for them.
    """
    for item, before, after in both_versions(old, new, columns.names):
        place = _located(location, item.path, before, after)
        if before is None:
            needed = not item.has_default and _must_be_there(item)
            is_required = needed or habits.needs_every_column
            kind = "required_column_added" if is_required else "column_added"
            why = ", must not be NULL, and has no default" if needed else ""
            yield place.change(kind, new=item.name, needed=why)
        elif after is None:
            yield place.change("column_removed", old=item.name)
        else:
            if before.name in columns.names:
                names = before.name, after.name
                yield place.change("column_renamed", *names, before=before.path)
            yield from _compared(before, after, place, habits)
    yield from _order(old, new, columns, location)


def _located(
    location: ContractLocation, path: str, old: Field | None, new: Field | None
) -> ContractLocation:
    return location._replace(
        path=f"{location.model}.{path}",
        old_span=old.span if old else location.old_span,
        new_span=new.span if new else location.new_span,
        column=path,
    )


def _must_be_there(item: Field) -> bool:
    """True if rows without the column are invalid."""
    stated = (rule.demand for rule in item.rules)
    return not item.is_nullable or any(
        isinstance(demand, demands.Complete) and demand.share > 0 for demand in stated
    )


def _order(
    old: Fields, new: Fields, columns: ColumnChanges, location: ContractLocation
) -> Iterator[Change]:
    before = [
        columns.names.get(item.name, item.name) for item in old if item.path not in columns.dropped
    ]
    after = [item.name for item in new if item.path not in columns.added]
    if before != after and sorted(before) == sorted(after):
        names = (", ".join(item.name for item in items) for items in (old, new))
        yield location.change("columns_reordered", *names)


def _compared(
    old: Field, new: Field, location: ContractLocation, habits: Habits
) -> Iterator[Change]:
    yield from _types(old, new, location)
    is_whole = {old.type, new.type} <= {*_DIGITS_FOR_WHOLE, "whole_number"}
    columns = ColumnChanges({old.path: new.path} if old.path != new.path else {})
    yield from compare_rules(old.rules, new.rules, location, columns, is_whole=is_whole)
    yield from _meaning(old, new, location, habits)
    yield from _defaults(old, new, location)
    if old.is_sensitive != new.is_sensitive:
        kind = "sensitivity_raised" if new.is_sensitive else "sensitivity_lowered"
        yield location.change(kind, *(demands.literal_text(one.is_sensitive) for one in (old, new)))
    yield from compare_values(
        old.classification, new.classification, location, "classification_changed"
    )
    title_message = f"the title of {new.path} changes"
    yield from compare_values(old.title, new.title, location, "description_changed", title_message)
    yield from compare_values(
        old.examples, new.examples, location, "example_changed", show=shown_items
    )
    yield from compare_values(old.tags, new.tags, location, "tags_changed", show=shown_items)
    yield from compare_values(old.inputs, new.inputs, location, "lineage_changed", show=shown_items)
    inner = column_changes(old.fields, new.fields, habits.renamed_columns(location.model))
    yield from compare_columns(old.fields, new.fields, inner, location, habits)
    parts = ((item.items, item.keys, item.values) for item in (old, new))
    for old_inner, new_inner in zip(*parts, strict=True):
        yield from _compared_parts(old, new, old_inner, new_inner, location, habits)


def _compared_parts(
    old: Field,
    new: Field,
    old_part: Field | None,
    new_part: Field | None,
    location: ContractLocation,
    habits: Habits,
) -> Iterator[Change]:
    """The changes of the items, keys or values of a field; those that one version does not
    describe may be anything there."""
    known = old_part or new_part
    if known is None or (old.type != new.type and None in (old_part, new_part)):
        return  # the type of the field itself changes
    undescribed = Field(known.name, known.path, None, known.span)
    place = _located(location, known.path, old_part, new_part)
    yield from _compared(old_part or undescribed, new_part or undescribed, place, habits)


def _types(old: Field, new: Field, location: ContractLocation) -> Iterator[Change]:
    order = compare_types(old.type, new.type)
    before, after = old.written_type or old.type or "any", new.written_type or new.type or "any"
    match order:
        case demands.Order.SAME if {old.has_zone, new.has_zone} == {True, False}:
            yield location.change("zone_changed", before, after)
        case demands.Order.SAME if before != after and _is_leaf(old) and _is_leaf(new):
            yield location.change("type_respelled", before, after)
        case demands.Order.LOOSER:
            yield location.change("type_widened", before, after)
        case demands.Order.TIGHTER | demands.Order.OTHER:
            verb = "is narrowed" if order is demands.Order.TIGHTER else "changes"
            yield location.change("type_changed", before, after, verb=verb)
    if order is demands.Order.SAME and new.type not in (None, _ANY):
        # A type that only follows from the parts of a field is not checked.
        before_rule, after_rule = _type_rule(old), _type_rule(new)
        if before_rule is not None and after_rule is None:
            yield _removed(before_rule, location)
        elif after_rule is not None and before_rule is None:
            yield _added(after_rule, location)


def _type_rule(item: Field) -> Rule | None:
    for rule in item.rules:
        if isinstance(rule.demand, demands.OfType):
            return rule
    return None


def _is_leaf(item: Field) -> bool:
    """False for nested types, whose fields, items, keys and values are compared separately."""
    return item.type not in ("array", "map", "struct")


def _meaning(
    old: Field, new: Field, location: ContractLocation, habits: Habits
) -> Iterator[Change]:
    subject = f"the {'meaning' if habits.has_semantics else 'description'} of {new.path}"
    if old.semantic is not None and new.semantic is not None:
        wording = compare_wording(old.semantic, new.semantic)
        if wording is not Wording.SAME:
            kind = _WORDINGS[wording][not habits.has_semantics]
            verb = "is corrected" if kind == "wording_corrected" else "changes"
            yield location.change(kind, old.semantic, new.semantic, f"{subject} {verb}")
    elif old.semantic is not None:
        kind = "semantic_removed" if habits.has_semantics else "description_changed"
        yield location.change(kind, old.semantic, None, f"{subject} is removed")
    elif new.semantic is not None:
        yield location.change("description_changed", None, new.semantic, f"{subject} is added")
    if old.unit is None and new.unit is not None:
        yield location.change("unit_added", new=new.unit)
    else:
        yield from compare_values(old.unit, new.unit, location, "unit_changed")


def _defaults(old: Field, new: Field, location: ContractLocation) -> Iterator[Change]:
    before, after = demands.literal_text(old.default), demands.literal_text(new.default)
    if old.has_default and not new.has_default:
        kind = "default_removed" if new.is_nullable else "needed_default_removed"
        yield location.change(kind, old=before)
    elif new.has_default and not old.has_default:
        yield location.change("default_added", new=after)
    elif before != after:
        yield location.change("default_changed", before, after)
