"""Keys of a document that its dialect does not define: typos, synonyms, and missing checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from dqx_airflow.contracts.document import (
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    children,
    show_path,
)
from dqx_airflow.contracts.field_types import types_named
from dqx_airflow.contracts.key_words import key_words, listed_key_words
from dqx_airflow.contracts.model import UnknownKey
from dqx_airflow.contracts.references import References
from dqx_airflow.diagnostics.diagnostic import edits, folded_word, slip_of
from dqx_airflow.metrics.types import TYPE_NAMES

_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_CASES = ("then", "else")
_SYNONYMS = listed_key_words("checks", "parts", "types", "described")
_NEAREST = {word: others for word, *others in listed_key_words("nearest")}
_CHECKS = key_words("checks", "more checks") - key_words("no checks")
"""Words that promise a check: if none of their group is known, a promised check is missing."""
_MEASURES = key_words("measures")
_SECTIONS = key_words("measures", "sections")
_RULE_WORDS = key_words("rules")
_FEWEST_OF_RULE_WORD = 5
_FEWEST_OF_SLIP = 6
"""The minimum number of letters of words that are recognized as a part of a key, or with a typo, if
additional keys are allowed: shorter ones are parts of many other words."""
_WHOLE_RULES = key_words("rules", "whole rules", "of a rule")
_LONG_CHECKS = sorted(
    word
    for word in _CHECKS | _WHOLE_RULES | {other for others in _NEAREST.values() for other in others}
    if len(word) >= _FEWEST_OF_SLIP
)
_REMARKS = key_words("remarks")
_PARTS = key_words("parts")
_DESCRIBING = (_REMARKS | key_words("describing")) - _PARTS - key_words("no remarks")
_OF_RULES = _CHECKS | key_words("of a rule")
_ELSEWHERE = key_words("elsewhere")
"""Keys of the standards that have a meaning at another position only."""
_SHARES = key_words("shares")
_TYPES = key_words("types")
_TYPE_KEYS = frozenset({"type", "logicalType", "physicalType"})
_FREE_BELOW = key_words("free below")
_CLIENTS_BELOW = key_words("clients below")
_FEWEST_OF_ABBREVIATION = 6
"""The minimum number of letters of a word that abbreviates a key: `physical` for `physicalType`."""
_MOST_COMPARED = 2_000
"""At most this many different unknown keys of a contract are compared with the known ones."""
STATES = "x-states"
"""The key in a schema with the contents that unknown keys of a mapping may have: `rules`, or
`sections` with rules. If additional keys are allowed, typos of known keys count in `sections`; with
`typos`, only they count; with `times`, they and every key whose value is a time."""
_STATED = _CHECKS | {"true", "false", "yes", "no", "on", "off", "y", "n"}
_DELAY = re.compile(r"_p\d+(_|$)")
_SQL = re.compile(
    r"\b(is\s+(not\s+)?null|(not\s+)?between\s.+\sand|(not\s+)?in\s*\(|(not\s+)?r?like\s+'|select\s)",
    re.IGNORECASE,
)
"""Signs of a condition of SQL without an operator."""
_TIME = re.compile(
    r"\d+([.,]\d+)?[\s_]*([a-z]*|%)|P(\d|T\d)\w*|@?[a-z]+ly|([\d*][\d*/,-]*\s+){4}\S+",
    re.IGNORECASE,
)
"""A time in a text: a number with its unit, a duration of ISO 8601, an interval, or a schedule; or
the share of the time in which another one is kept."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DOUBLED = re.compile(r"(.)\1+")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


Position: TypeAlias = "tuple[str, str]"
"""The file and the path of a node."""


@dataclass(frozen=True, slots=True)
class UndefinedKeys:
    """The keys of a document that its dialect does not define at their positions.

    `unknown` are typos, and keys that promise a check, in the order of the document. `own` are the
    positions of the keys that users may add: what is below them is theirs.
    """

    unknown: tuple[UnknownKey, ...]
    own: frozenset[Position]


def undefined_keys(
    root: Mapping, schema: MappingType[str, Any], references: References, *, is_open: bool
) -> UndefinedKeys:
    """The keys of a document that its schema does not define at their positions.

    :param is_open: the dialect allows additional keys; only likely typos are unknown. Keys that
        begin with `x-` are allowed everywhere.
    """
    walk = _Walk(schema, references, is_open)
    found = tuple(dict.fromkeys(walk.below(root, (schema,))))
    # A definition is visited at each of its uses: a use that names the right key is more precise.
    named = {(key.span.file, key.path) for key in found if key.is_check and key.meant}
    unknown = (
        key
        for key in found
        if (place := (key.span.file, key.path)) not in walk.defined
        and (key.meant or place not in named)
    )
    return UndefinedKeys(tuple(unknown), frozenset(walk.own - walk.defined))


def meant_key(key: str, known: Collection[str], *, is_open: bool = False) -> str | None:
    """The known key that was probably meant by another spelling, a typo, or a synonym.

    :param is_open: additional keys are allowed, so a typo of a synonym may well be meant.
    """
    return _meant_key(key, tuple(known), is_open)


@lru_cache(maxsize=20_000)
def _meant_key(key: str, known: tuple[str, ...], is_open: bool) -> str | None:
    folded = folded_word(key)
    forms = {folded_word(name): name for name in reversed(known)}
    words = (folded, folded.removeprefix("is"))
    for form in (*words, *_other_numbers(folded)):
        if form in forms:
            return forms[form]
    # A doubled letter is one slip more: `sccal` for `scale`.
    for written in (key, _DOUBLED.sub(r"\1", key)):
        near = slip_of(written, known)
        if near is not None:
            return near
    if is_open and len(folded) >= _FEWEST_OF_ABBREVIATION:
        for form, name in forms.items():
            if form.startswith(folded):
                return name
    meant = {*words, *_other_numbers(folded), _check_word(key, takes_slips=not is_open)}
    for group in _SYNONYMS:
        if meant.isdisjoint(group):
            continue
        for word in group:
            if word in forms:
                return forms[word]
    return None


def _other_numbers(word: str) -> Iterator[str]:
    """A word in the plural and in the singular."""
    yield f"{word}s"
    yield word.removesuffix("s")
    if word.endswith("ies"):
        yield f"{word[:-3]}y"
    if word.endswith("y"):
        yield f"{word[:-1]}ies"


def _is_check(key: str, node: Node, meant: str | None, states: Collection[str | None]) -> bool:
    """True if a check is missing because the key is unknown here."""
    if {folded_word(meant or ""), folded_word(key).removeprefix("is")} & _CHECKS:
        return True
    takes_typos = {"typos", "times", "sections"} & {*states}
    if takes_typos and folded_word(meant or "") not in {"", *_REMARKS}:
        return True
    if "times" in states:
        return _states_time(key, node)
    if "rules" in states:
        return _states_check(key, node)
    if "sections" not in states:
        return False
    words = {word.lower() for word in _WORDS.findall(key)}
    is_rule = words & _MEASURES or (words & _RULE_WORDS and not words & _REMARKS)
    is_section = bool(is_rule or _DELAY.search(key) or _check_word(meant or key))
    return is_section or _may_hold_checks(key, node)


def _drops_content(
    key: str, node: Node, meant: str | None, owner: Mapping, known: Collection[str]
) -> bool:
    """True if content that could be enforced has no effect because its key is unknown, in a dialect
    that allows additional keys: elements of the contract, a type, a check by another name.

    :param meant: the known key that was probably meant, present or not.
    """
    folded = folded_word(key)
    types = _TYPE_KEYS & {*known}
    if types and slip_of(folded, sorted(_TYPES)) is not None:
        return True
    if types and not types & {*owner.entries} and _is_type_name(node):
        return True
    if meant is not None:
        return folded_word(meant) not in _DESCRIBING
    words = {folded, *_other_numbers(folded)}
    if words & (_CHECKS | _MEASURES | _SECTIONS):
        return True
    if folded in _ELSEWHERE and not (isinstance(node, Scalar) and node.value is None):
        return True
    return _may_hold_checks(key, node) or _states_check_in_words(key, node)


def _states_check_in_words(key: str, node: Node) -> bool:
    """True if a key with a scalar states a constraint in plain words: `not_nul`, `mustBe: 5`.

    A text as its value describes, except after a typo of a check (`fromat: email`).
    """
    if not isinstance(node, Scalar) or node.value is None:
        return False
    parts = [word.lower() for word in _WORDS.findall(key)]
    if not _REMARKS.isdisjoint(parts):
        return False
    has_spaces = len(node.text.split()) > 1
    is_text = isinstance(node.value, str) and _is_prose(node) and not _SQL.search(node.text)
    if is_text:
        return _is_slip_of_check(key) and not has_spaces
    folded = folded_word(key)
    if folded in _WHOLE_RULES or _check_word(key, takes_slips=False) or _is_slip_of_check(key):
        return True
    if _DATE.match(node.text):  # validFrom: 2024-01-01
        return False
    has_rule = len(parts) > 1 and not _RULE_WORDS.isdisjoint(parts)
    is_of_rules = has_rule and _SHARES.union(_RULE_WORDS).issuperset(parts)
    return is_of_rules or any(
        word in _RULE_WORDS and len(word) >= _FEWEST_OF_RULE_WORD for word in parts
    )


def _is_slip_of_check(key: str) -> bool:
    """True for a key that is one typo away from a word for a check."""
    folded = folded_word(key)
    for written in {folded, folded.removeprefix("is")}:
        for word in _LONG_CHECKS:
            if word[0] == written[:1] and edits(written, word, 1) == 1:
                return True
    return False


def _is_type_name(node: Node) -> bool:
    if not isinstance(node, Scalar):
        return False
    word = re.split(r"[<(]", node.text, maxsplit=1)[0].strip().lower()
    return word in TYPE_NAMES or word in types_named("DCS") or word in types_named("ODCS")


def _may_hold_checks(key: str, node: Node) -> bool:
    """True for a mapping or a list, unless its key describes and no key below means a check."""
    if isinstance(node, Scalar) or not children(node):
        return False
    words = {word.lower() for word in _WORDS.findall(key)}
    describes = bool(words & _REMARKS) and folded_word(key) not in _PARTS
    return not describes or any(folded_word(name) in _OF_RULES for name in _keys_below(node))


def _keys_below(node: Node) -> Iterator[str]:
    if isinstance(node, Mapping):
        yield from node.entries
    for inner in children(node):
        yield from _keys_below(inner)


def _check_word(key: str, *, takes_slips: bool = True) -> str | None:
    """The word for a check, in whatever dialect, that a key is or is a typo of."""
    folded = folded_word(key)
    near = [word for word, others in _NEAREST.items() if folded in others]
    for word in near or (folded, folded.removeprefix("is"), _DOUBLED.sub(r"\1", folded)):
        if word in _CHECKS | _SECTIONS:
            return word
    if not takes_slips:
        return None
    long = [word for word in (*_CHECKS, *_SECTIONS) if len(word) > 4 and word[0] == folded[:1]]
    return slip_of(key, sorted(long))


def _states_check(key: str, node: Node) -> bool:
    """True if an unknown key of a field or of a quality rule may state a constraint: by a word in
    the key, or because its value is not a remark."""
    words = {word.lower() for word in _WORDS.findall(key)}
    if _check_word(key) is not None or words & _RULE_WORDS:
        return True
    if words & _REMARKS or (isinstance(node, Scalar) and node.value is None):
        return False
    return not isinstance(node, Scalar) or not isinstance(node.value, str) or not _is_prose(node)


def _states_time(key: str, node: Node) -> bool:
    """True if an unknown key of a service level may state a time: 5, `1d`, `P1D`, `daily`, or more
    than a scalar."""
    words = {word.lower() for word in _WORDS.findall(key)}
    if words & _REMARKS:
        return False
    if not isinstance(node, Scalar):
        return bool(children(node))
    if isinstance(node.value, str):
        return _TIME.fullmatch(node.text.strip()) is not None
    return node.value is not None


def _is_prose(node: Scalar) -> bool:
    text = node.text.strip().lower()
    return folded_word(text) not in _STATED and not re.search(
        r"[<>=^$\\[\]{}|*]|^[\d.,%\s-]+$", text
    )


def has_misspelled(node: Mapping, key: str) -> bool:
    """True if a key of the mapping is a typo of `key`, which is missing."""
    return key not in node.entries and any(slip_of(other, [key]) for other in node.entries)


def _position(node: Node) -> Position:
    return node.span.file, show_path(node.path)


@dataclass(frozen=True, slots=True)
class _SchemaKeys:
    """The keys of a mapping that some subschemas describe, with the subschemas of their values."""

    known: dict[str, list[Any]]
    patterns: dict[str, Any]
    additional: tuple[Any, ...]
    """The subschemas of all other keys."""

    @classmethod
    def of(cls, parts: tuple[Any, ...]) -> _SchemaKeys:
        known: dict[str, list[Any]] = {"$ref": []}
        patterns: dict[str, Any] = {}
        additional = []
        for part in parts:
            for key, inner in part.get("properties", {}).items():
                known.setdefault(key, []).append(inner)
            patterns |= part.get("patternProperties", {})
            if isinstance(part.get("additionalProperties"), dict):
                additional.append(part["additionalProperties"])
        return cls(known, patterns, tuple(additional))

    @property
    def are_described(self) -> bool:
        """False for a mapping that may contain anything, and for a mapping by names."""
        return len(self.known) > 1 or bool(self.patterns)

    def schemas_of(self, key: str) -> tuple[Any, ...] | None:
        """The subschemas of the value of a key; None if the key is not described."""
        fitting = [part for pattern, part in self.patterns.items() if re.search(pattern, key)]
        if key not in self.known and not fitting:
            return None
        return (*self.known.get(key, ()), *fitting)


@dataclass(slots=True)
class _Walk:
    """A traversal of a document and its schema. `seen` are the visited mappings."""

    schema: MappingType[str, Any]
    references: References
    is_open: bool
    seen: set[tuple[object, ...]] = field(default_factory=set)
    compared: set[str] = field(default_factory=set)
    """The different unknown keys so far."""
    own: set[Position] = field(default_factory=set)
    """The positions of the keys of users so far."""
    defined: set[Position] = field(default_factory=set)
    """The positions of defined keys so far: that of a definition may be one only where it is used,
    such as `quality` for a field."""

    def below(self, node: Node, parts: tuple[Any, ...]) -> Iterator[UnknownKey]:
        parts = tuple(self._alternatives(parts))
        if isinstance(node, Sequence):
            inner = tuple(part["items"] for part in parts if isinstance(part.get("items"), dict))
            if inner:
                for item in node.items:
                    yield from self.below(item, inner)
        elif isinstance(node, Mapping):
            yield from self._in_mapping(node, parts)

    def _in_mapping(self, node: Mapping, parts: tuple[Any, ...]) -> Iterator[UnknownKey]:
        place = (node.span, *map(id, parts))
        if place in self.seen:
            return
        self.seen.add(place)
        keys = _SchemaKeys.of(parts)
        reference = node.get("$ref")
        if keys.are_described and isinstance(reference, Scalar):
            target = self.references.target(reference)
            if target is not None:
                yield from self.below(target, parts)
        states = {part.get(STATES) for part in parts}
        for key, entry in node.entries.items():
            schemas = keys.schemas_of(key)
            if schemas is not None:
                self.defined.add(_position(entry.node))
                yield from self.below(entry.node, schemas)
            elif not keys.are_described:
                yield from self.below(entry.node, keys.additional)
            elif not key.lower().startswith("x-"):
                has_more = bool(keys.additional)
                unknown = self._unknown(node, entry, keys.known, states, has_more=has_more)
                if unknown is not None:
                    yield unknown
                elif has_more:
                    yield from self.below(entry.node, keys.additional)
                else:
                    self.own.add(_position(entry.node))
            else:
                self.own.add(_position(entry.node))

    def _unknown(
        self,
        owner: Mapping,
        entry: Entry,
        known: Collection[str],
        states: Collection[str | None],
        *,
        has_more: bool,
    ) -> UnknownKey | None:
        """An unknown key of a mapping; None if it may be a custom key of the user.

        :param has_more: the schema describes additional keys.
        """
        key = entry.key
        node = entry.node
        path = show_path(node.path)
        self.compared.add(key)
        if len(self.compared) > _MOST_COMPARED:
            return UnknownKey(key, path, entry.span, None, is_check=True)
        free = [name for name in known if name not in owner.entries]
        meant = meant_key(key, free, is_open=self.is_open)
        if meant is None and {"typos", "times"} & {*states}:
            meant = meant_key(key, known, is_open=self.is_open)
        is_check = (meant is not None or not has_more) and _is_check(key, node, meant, states)
        if not is_check and not has_more and _FREE_BELOW.isdisjoint(node.path[:-1]):
            is_check = self._drops_content(owner, entry, meant, known)
        if is_check and meant is None:  # a second spelling of a key that is there
            meant = meant_key(key, known)
        may_be_custom = self.is_open or has_more
        if may_be_custom and meant is None and not is_check:
            return None
        return UnknownKey(key, path, entry.span, meant, is_check)

    def _drops_content(
        self, owner: Mapping, entry: Entry, meant: str | None, known: Collection[str]
    ) -> bool:
        """True if something that may be enforced has no effect because a key is unknown."""
        if not self.is_open:
            return meant is not None and folded_word(meant) not in _DESCRIBING
        near = meant or meant_key(entry.key, known, is_open=True)
        if near is None and _CLIENTS_BELOW & {*entry.node.path[:-1]}:
            return False
        return _drops_content(entry.key, entry.node, near, owner, known)

    def _alternatives(self, parts: tuple[Any, ...]) -> Iterator[Any]:
        """The subschemas that may apply, including nested ones."""
        waiting = list(parts)
        seen = set[int]()
        while waiting:
            part = waiting.pop(0)
            if not isinstance(part, dict) or id(part) in seen:
                continue
            seen.add(id(part))
            yield part
            for key in _ALTERNATIVES:
                waiting += part.get(key, ())
            waiting += [part[key] for key in _CASES if key in part]
            if "$ref" in part:
                waiting.append(self._target(part["$ref"]))

    def _target(self, reference: str) -> Any:
        target: Any = self.schema
        for step in reference.removeprefix("#").split("/"):
            if step:
                target = target.get(step, {}) if isinstance(target, dict) else {}
        return target
