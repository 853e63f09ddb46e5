"""A contract of ODCS as a document of the standard: as it is written, in the form that the official
schema of its version accepts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dqx_airflow.contracts.dialects.foreign import is_threshold
from dqx_airflow.contracts.dialects.library_metrics import LIBRARY_METRICS, OLDER_NAMES
from dqx_airflow.contracts.document import (
    Entry,
    Mapping,
    Node,
    Scalar,
    Sequence,
    plain_value,
    show_path,
)
from dqx_airflow.contracts.export.exported import Exported, Loss, yaml_text
from dqx_airflow.contracts.model import Contract, Treatment
from dqx_airflow.contracts.schema import NEWER, validator_of

_OLDER = "v3.1.0"
_NEWEST = "v3.2.0"
"""The versions that are written: a document of 3.0 becomes one of the first that has its keys."""
_FREE = ("implementation", "specification", "arguments", "value")
"""Keys whose values are not described by the standard."""
_BOUNDS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def as_written(contract: Contract, root: Mapping) -> Exported:
    """The document with the models of the contract, without the typos of keys.

    Keys that only 3.0 permits, and keys that begin with `x-`, become custom properties.
    """
    unknown = frozenset(key.path for key in contract.unknown_keys)
    is_of_3_0 = (contract.dialect_version or "").startswith("3.0")
    writer = _Writer(unknown, is_of_3_0=is_of_3_0)
    plain = writer.mapping(root)
    _keep_objects(plain, {model.name for model in contract.models})
    plain["apiVersion"] = _version_of(plain)
    if is_of_3_0:
        _move_extensions(plain)
    losses = [
        Loss(note.clause.path, f"not checked at all: {note.reason}")
        for note in contract.notes
        if note.treatment is Treatment.UNSUPPORTED and writer.is_removed(note.clause.path)
    ]
    return Exported(yaml_text(plain), tuple(losses))


@dataclass(slots=True)
class _Writer:
    """Writes nodes as plain values. `unknown` are the paths of keys that the standard does not
    have, `removed` are the paths of all values that are left out."""

    unknown: frozenset[str]
    is_of_3_0: bool
    removed: list[str] = field(default_factory=list)

    def is_removed(self, path: str) -> bool:
        """Whether a clause is in a value that is left out."""
        for removed in self.removed:
            rest = path[len(removed) :]
            if path.startswith(removed) and rest[:1] in ("", ".", "["):
                return True
        return False

    def mapping(self, node: Mapping) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        extensions = []
        for key, entry in node.entries.items():
            path = show_path(entry.node.path)
            if key.lower().startswith("x-"):
                extensions.append({"property": key, "value": _verbatim(entry.node)})
            elif path in self.unknown:
                self.removed.append(path)
            else:
                plain[key] = self._value(key, entry)
        if self.is_of_3_0 and _is_date_with_hours(plain):
            plain["logicalType"] = "timestamp"
        if extensions:
            plain["customProperties"] = [*plain.get("customProperties", ()), *extensions]
        return plain

    def _value(self, key: str, entry: Entry) -> Any:
        node = entry.node
        if key in _FREE:
            return _verbatim(node)
        if key == "quality" and isinstance(node, Sequence):
            return [rule for item in node.items for rule in self._rules(item)]
        if key == "logicalTypeOptions" and isinstance(node, Mapping):
            return _with_exclusive_bounds(self.mapping(node))
        return self._plain(node)

    def _plain(self, node: Node) -> Any:
        match node:
            case Mapping():
                return self.mapping(node)
            case Sequence(items=items):
                return [self._plain(item) for item in items]
        return _verbatim(node)

    def _rules(self, node: Node) -> list[dict[str, Any]]:
        """A rule of `quality` in the form since 3.1: one for each of its thresholds. None for a
        metric that the standard does not have."""
        if not isinstance(node, Mapping):
            return []
        rule = self.mapping(node)
        if "engine" in rule:
            return [rule]
        if "metric" not in rule and "rule" in rule:
            rule["metric"] = rule.pop("rule")
        if "metric" in rule:
            rule["metric"] = OLDER_NAMES.get(rule["metric"], rule["metric"])
            if rule["metric"] not in LIBRARY_METRICS:
                self.removed.append(show_path(node.path))
                return []
        if "validValues" in rule and "arguments" not in rule:
            rule["arguments"] = {"validValues": rule.pop("validValues")}
            if not any(map(is_threshold, rule)):
                rule["mustBe"] = 0
        return _one_for_each_threshold(rule)


def _verbatim(node: Node) -> Any:
    """A value with its variables, which are not replaced by the values that they have here."""
    match node:
        case Mapping():
            return {key: _verbatim(entry.node) for key, entry in node.entries.items()}
        case Sequence(items=items):
            return [_verbatim(item) for item in items]
        case Scalar(written=str(text)):
            return text
    return plain_value(node)


def _is_date_with_hours(plain: dict[str, Any]) -> bool:
    """True for a property of 3.0, which has one type for dates with and without a time."""
    options = plain.get("logicalTypeOptions")
    if plain.get("logicalType") != "date" or "physicalType" in plain:
        return False
    return isinstance(options, dict) and "H" in str(options.get("format", ""))


def _one_for_each_threshold(rule: dict[str, Any]) -> list[dict[str, Any]]:
    thresholds = [key for key in rule if is_threshold(key)]
    if len(thresholds) < 2:
        return [rule]
    others = {key: value for key, value in rule.items() if not is_threshold(key)}
    rules = [others | {key: rule[key]} for key in thresholds]
    for further in rules[1:]:
        identifier = further.pop("id", None)
        if identifier is not None:
            further.setdefault("name", identifier)
    return rules


def _with_exclusive_bounds(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a type in the form since 3.1: in 3.0, `exclusiveMinimum: true` makes the
    `minimum` exclusive."""
    for exclusive, inclusive in _BOUNDS.items():
        if options.get(exclusive) is True and inclusive in options:
            options[exclusive] = options.pop(inclusive)
        elif isinstance(options.get(exclusive), bool):
            del options[exclusive]
    return options


def _keep_objects(plain: dict[str, Any], names: set[str]) -> None:
    """Leaves out other objects, and the service levels about them."""
    objects = plain.get("schema") or []
    kept = [item for item in objects if item.get("name") in names]
    others = {item.get("name") for item in objects} - names
    if not others:
        return
    plain["schema"] = kept
    levels = []
    for level in plain.get("slaProperties") or []:
        elements = [name.strip() for name in str(level.get("element", "")).split(",")]
        left = [name for name in elements if name.partition(".")[0] not in others]
        if left:
            levels.append(level | ({"element": ", ".join(left)} if "element" in level else {}))
    plain["slaProperties"] = levels


def _version_of(plain: dict[str, Any]) -> str:
    """The version of the document; for 3.0, the first version that has its keys."""
    written = f"v{str(plain['apiVersion']).removeprefix('v')}"
    if not written.startswith("v3.0"):
        return written
    for error in _errors(plain, _OLDER):
        has_newer_keys = not set(error.schema.get(NEWER, ())).isdisjoint(_extra_keys(error))
        if error.validator != "additionalProperties" or has_newer_keys:
            return _NEWEST
    return _OLDER


def _move_extensions(plain: dict[str, Any]) -> None:
    """Makes custom properties of keys that only 3.0 permits; without a place for them they are left
    out."""
    for error in _errors(plain, plain["apiVersion"]):
        for key in _extra_keys(error):
            value = error.instance.pop(key)
            if "customProperties" in error.schema["properties"]:
                custom = error.instance.setdefault("customProperties", [])
                custom.append({"property": key, "value": value})


def _errors(plain: dict[str, Any], version: str) -> list[Any]:
    """The errors of the document, were it of a version."""
    written = plain["apiVersion"]
    plain["apiVersion"] = version
    errors = list(validator_of("odcs").iter_errors(plain))
    plain["apiVersion"] = written
    return errors


def _extra_keys(error: Any) -> list[str]:
    """The keys that an error of the validator is about, if they are unknown."""
    if error.validator != "additionalProperties":
        return []
    return [key for key in error.instance if key not in error.schema["properties"]]
