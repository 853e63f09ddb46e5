"""Unknown keys for the schema of a dialect, each with the probably intended key.

The schema is traversed along with the document, and each key is compared with those known at its
position. This is generous: a key that one of several alternatives knows is known, whichever of them
applies.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from typing import Any

from dqx_airflow.contracts.model import UnknownKey
from dqx_airflow.contracts.source.references import References
from dqx_airflow.contracts.source.yaml_document import Mapping, Node, Scalar, Sequence, show_path
from dqx_airflow.diagnostics.nearest import folded_word, slip_of

_ALTERNATIVES = ("allOf", "anyOf", "oneOf")
_CASES = ("then", "else")
_SYNONYMS = (
    ("required", "nullable", "notnull", "mandatory", "optional", "notnullable"),
    ("pattern", "regex", "regexp", "matches"),
    ("enum", "validvalues", "allowedvalues", "acceptedvalues", "const", "values", "oneof"),
    ("minimum", "min", "minvalue", "greaterthanorequal", "gte"),
    ("maximum", "max", "maxvalue", "lessthanorequal", "lte"),
    ("minlength", "lengthmin"),
    ("maxlength", "lengthmax", "length"),
    ("unique", "distinct"),
    ("primarykey", "businesskey", "pk", "primary"),
    ("references", "foreignkey", "relationships", "fk"),
    ("quality", "checks", "qualitychecks", "tests", "expectations"),
    ("type", "datatype", "logicaltype"),
    ("description", "semantic", "comment", "doc"),
    ("partitionby", "partitionedby", "partitions"),
)
"""Synonyms in several dialects. If one is unknown, another one is probably meant."""

_CHECKS = frozenset(word for group in _SYNONYMS[:11] for word in group) - {"values", "length"} | {
    *("multipleof", "uniqueitems", "minitems", "maxitems", "exclusiveminimum", "exclusivemaximum"),
    *("format", "precision", "scale"),
}
"""Words that promise a check: if none of their group is known, a promised check is missing."""


def unknown_keys(
    root: Mapping, schema: MappingType[str, Any], references: References, *, is_open: bool
) -> tuple[UnknownKey, ...]:
    """The keys that are unknown at their positions, in the order of the document.

    :param is_open: the dialect allows additional keys; only likely typos are reported. Keys that
        begin with `x-` are allowed everywhere.
    """
    walk = _Walk(schema, references, is_open)
    return tuple(dict.fromkeys(walk.below(root, (schema,))))


def meant_key(key: str, known: Collection[str]) -> str | None:
    """The known key that was probably meant: in another spelling, a typo, or a synonym."""
    folded = folded_word(key)
    forms = {folded_word(name): name for name in reversed(list(known))}
    words = (folded, folded.removeprefix("is"))
    for form in (*words, folded.removesuffix("s"), f"{folded}s"):
        if form in forms:
            return forms[form]
    synonyms = (word for group in _SYNONYMS if set(words) & {*group} for word in group)
    return slip_of(key, known) or next((forms[word] for word in synonyms if word in forms), None)


def promises_check(key: UnknownKey) -> bool:
    """True if the key promises a check."""
    return key.is_check or folded_word(key.meant or "") in _CHECKS


def has_misspelled(node: Mapping, key: str) -> bool:
    """True if a key of the mapping is a typo of one that is missing."""
    return key not in node.entries and any(slip_of(other, [key]) for other in node.entries)


@dataclass(slots=True)
class _Walk:
    """A traversal of a document and its schema. `seen` are the visited mappings."""

    schema: MappingType[str, Any]
    references: References
    is_open: bool
    seen: set[tuple[object, ...]] = field(default_factory=set)

    def below(self, node: Node, parts: tuple[Any, ...]) -> Iterator[UnknownKey]:
        parts = tuple(self._alternatives(parts))
        if isinstance(node, Sequence):
            inner = tuple(part["items"] for part in parts if isinstance(part.get("items"), dict))
            for item in node.items if inner else ():
                yield from self.below(item, inner)
        elif isinstance(node, Mapping):
            yield from self._in_mapping(node, parts)

    def _in_mapping(self, node: Mapping, parts: tuple[Any, ...]) -> Iterator[UnknownKey]:
        place = (node.span, *map(id, parts))
        if place in self.seen:
            return
        self.seen.add(place)
        known: dict[str, list[Any]] = {"$ref": []}
        for part in parts:
            for key, inner in part.get("properties", {}).items():
                known.setdefault(key, []).append(inner)
        additional = tuple(
            part["additionalProperties"]
            for part in parts
            if isinstance(part.get("additionalProperties"), dict)
        )
        patterns = {
            pattern: inner
            for part in parts
            for pattern, inner in part.get("patternProperties", {}).items()
        }
        # An undescribed mapping may contain anything; so may one of names.
        is_described = len(known) > 1 or bool(patterns)
        reference = node.get("$ref")
        if is_described and isinstance(reference, Scalar):
            target = self.references.target(reference)
            yield from self.below(target, parts) if target is not None else ()
        for key, entry in node.entries.items():
            fitting = tuple(part for name, part in patterns.items() if re.search(name, key))
            if key in known or fitting:
                yield from self.below(entry.node, (*known.get(key, ()), *fitting))
            elif not is_described:
                yield from self.below(entry.node, additional)
            elif not key.lower().startswith("x-"):
                meant = meant_key(key, [name for name in known if name not in node.entries])
                is_check = folded_word(key).removeprefix("is") in _CHECKS and not additional
                if meant is not None or is_check or not (self.is_open or additional):
                    path = show_path(entry.node.path)
                    yield UnknownKey(key, path, entry.span, meant, is_check)
                else:
                    yield from self.below(entry.node, additional)

    def _alternatives(self, parts: tuple[Any, ...]) -> Iterator[Any]:
        """The parts of the schema that may apply, including nested ones."""
        waiting, seen = list(parts), set[int]()
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
