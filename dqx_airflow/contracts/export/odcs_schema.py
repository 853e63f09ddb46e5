"""The objects of an ODCS contract: properties, their options, quality and service levels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from dqx_airflow.contracts.column_paths import plain_name
from dqx_airflow.contracts.demands import (
    Bound,
    Demand,
    Length,
    MultipleOf,
    OfFormat,
    OfType,
    OnlyColumns,
    Pattern,
    Presence,
    Refers,
    Required,
    Unique,
    UniqueItems,
)
from dqx_airflow.contracts.demands.time import DemandOnPeriod
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.dialects.sensitivity import is_sensitive
from dqx_airflow.contracts.enforcement.dataset_locations import spark_type
from dqx_airflow.contracts.export.exported import Loss, loss_of
from dqx_airflow.contracts.export.keywords import keywords_of
from dqx_airflow.contracts.export.odcs_quality import quality_of
from dqx_airflow.contracts.export.yaml_text import filled
from dqx_airflow.contracts.model import Contract, Field, Model, Rule
from dqx_airflow.exact import is_finite_number

_LOGICAL = {
    **dict.fromkeys(("string", "text", "binary"), "string"),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "whole_number"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "number"), "number"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
    "date": "date",
    "boolean": "boolean",
    "array": "array",
    "map": "map",
    "struct": "object",
}
_WORDS = ("text", "number", "whole_number", "any")
_NESTED = ("array", "map", "struct")
_UNITS = ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "minutes"))
_MARK = "sensitive"


@dataclass(slots=True)
class SchemaWriter:
    """Writes models, and collects their service levels and what the standard cannot express.

    `server` is the type of the first server: the SQL of the document is in its dialect.
    """

    contract: Contract
    server: str | None
    service: list[dict[str, Any]] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def object(self, model: Model) -> dict[str, Any]:
        keys = model.key
        for name in model.partition_by:
            if model.field_at(name) is None:
                reason = f"partitioned by {name}, which is not one of its columns"
                self.losses.append(Loss(model.name, reason))
        plain: dict[str, Any] = {
            "name": model.name,
            "physicalName": model.location,
            "physicalType": "table",
            "businessName": model.title,
            "description": model.description,
            "tags": list(model.tags),
        }
        properties = []
        for item in model.fields:
            written = self._property(model, item, keys)
            if item.name in model.partition_by:
                written["partitioned"] = True
                written["partitionKeyPosition"] = model.partition_by.index(item.name) + 1
            properties.append(written)
        relationships, quality = [], []
        for rule in model.rules:
            if _is_the_key(rule, keys) or self._is_service(model, rule):
                self._check_is_plain(model, None, rule)
            elif isinstance(rule.demand, Refers) and self._is_object(rule.demand.dataset):
                relationships.append(_relationship(model, rule.demand))
            elif isinstance(rule.demand, OnlyColumns):
                self._lose(model, None, rule, "the standard cannot say that there is nothing else")
            else:
                quality += self._quality(model, None, rule)
        plain |= {"properties": properties, "relationships": relationships, "quality": quality}
        return filled(plain)

    def _property(self, model: Model, item: Field, keys: tuple[str, ...]) -> dict[str, Any]:
        plain: dict[str, Any] = {"name": item.name}
        if item.path in keys:
            plain |= {"primaryKey": True, "primaryKeyPosition": keys.index(item.path) + 1}
        return plain | self._value(model, item)

    def _value(self, model: Model, item: Field) -> dict[str, Any]:
        tags = list(item.tags)
        if item.is_sensitive and not is_sensitive(item.classification, tags):
            tags.append(_MARK)
        is_whole = item.type in ("array", "struct") and not _says_more(item)
        logical = _LOGICAL.get((item.type or "").partition("(")[0])
        if item.type == "map" and (item.keys is None or item.values is None):
            logical = None  # which requires its parts
        physical = None if item.type in (None, *_WORDS) else item.type
        if item.type in _NESTED:
            physical = spark_type(item) if is_whole and _is_known(item) else None
        if item.type == "struct" and not item.fields:
            physical = "struct"  # an undescribed object may also be JSON
        plain: dict[str, Any] = {
            "businessName": item.title,
            "description": (item.semantic or "").strip(),
            "logicalType": logical,
            "physicalType": physical,
            "classification": item.classification,
            "tags": tags,
            "examples": list(item.examples),
        }
        options: dict[str, Any] = {}
        quality: list[dict[str, Any]] = []
        for rule in item.rules:
            keys = self._keys_of(model, item, rule, logical) if rule.share >= 1 else None
            if keys is None:
                quality += self._quality(model, item, rule)
                continue
            at, values = keys
            target = options if at == "logicalTypeOptions" else plain
            if any(key in target for key in values):
                quality += self._quality(model, item, rule)
            else:
                self._check_is_plain(model, item, rule)
                target |= values
        plain |= {"logicalTypeOptions": options, "quality": quality}
        if not is_whole:
            plain |= self._parts(model, item)
        plain["customProperties"] = self._custom(model, item)
        return filled(plain)

    def _parts(self, model: Model, item: Field) -> dict[str, Any]:
        """The parts of a nested value."""
        parts: dict[str, Any] = {
            "properties": [self._property(model, inner, ()) for inner in item.fields]
        }
        if item.items is not None:
            parts["items"] = self._value(model, item.items)
        if item.keys is not None and item.values is not None:
            parts["map"] = {
                "key": self._value(model, item.keys),
                "value": self._value(model, item.values),
            }
        return parts

    def _keys_of(
        self, model: Model, item: Field, rule: Rule, logical: str | None
    ) -> tuple[str, dict[str, Any]] | None:
        """The keys of a property, or of its options, that are equivalent to a rule."""
        demand = rule.demand
        match demand:
            case Presence() | OfType():
                return "property", {}
            case Required():
                return "property", {"required": True}
            case Unique(columns=columns) if columns == (item.path,):
                return "property", {"unique": True}
            case Refers(columns=columns) if columns == (item.path,) and self._is_object(
                demand.dataset
            ):
                to = f"{demand.dataset}.{plain_name(demand.other_columns[0])}"
                return "property", {"relationships": [{"type": "foreignKey", "to": to}]}
        if self._is_service(model, rule):
            return "property", {}
        options = _options(logical, demand)
        return ("logicalTypeOptions", options) if options is not None else None

    def _is_object(self, dataset: str) -> bool:
        """Whether a relationship can name the dataset: a dot would lead to a property of it."""
        return "." not in dataset

    def _is_service(self, model: Model, rule: Rule) -> bool:
        """Adds the service level that is equivalent to a rule, if there is one."""
        demand = rule.demand
        if not isinstance(demand, DemandOnPeriod) or demand.column is None:
            return False
        value, unit = _duration(demand.seconds)
        element = f"{model.name}.{plain_name(demand.column)}"
        level = {"property": demand.odcs_property, "value": value, "unit": unit, "element": element}
        self.service.append(level)
        return True

    def _quality(self, model: Model, item: Field | None, rule: Rule) -> list[dict[str, Any]]:
        quality = quality_of(model, item, rule, self.server)
        if isinstance(quality, str):
            self._lose(model, item, rule, quality)
            return []
        if rule.dimension is not None and "dimension" not in quality:
            self._lose(model, item, rule, f"the standard has no dimension {rule.dimension}")
        return [quality]

    def _custom(self, model: Model, item: Field) -> list[dict[str, Any]]:
        """What the standard has no place for in a property."""
        custom = []
        path = f"{model.name}.{item.path}"
        for name, value in (("unit", item.unit), ("default", item.default)):
            if value is not None:
                reason = f"its {name} is a custom property: the standard has no place for it"
                self.losses.append(Loss(path, reason))
                custom.append({"property": name, "value": value})
        if item.inputs:
            self.losses.append(Loss(path, "what it is made of is left out"))
        return custom

    def _check_is_plain(self, model: Model, item: Field | None, rule: Rule) -> None:
        """Reports properties of a rule that only rules of `quality` have."""
        if rule.severity is not None:
            self._lose(model, item, rule, f"without its severity {rule.severity}")

    def _lose(self, model: Model, item: Field | None, rule: Rule, reason: str) -> None:
        self.losses.append(loss_of(self.contract, model, item, rule, reason))


def _says_more(item: Field) -> bool:
    """Whether the parts of a nested type have more information than their types."""
    parts = [part for part in item.walk() if part is not item]
    return any(part.rules or part.semantic or part.type in (None, *_WORDS) for part in parts)


def _is_known(item: Field) -> bool:
    """Whether everything nested in a type is known."""
    parts = {"array": (item.items,), "map": (item.keys, item.values), "struct": item.fields}
    inner = parts.get(item.type or "")
    return inner is None or (bool(inner) and all(part and _is_known(part) for part in inner))


def _is_the_key(rule: Rule, keys: tuple[str, ...]) -> bool:
    return isinstance(rule.demand, Unique) and set(rule.demand.columns) == set(keys)


def _relationship(model: Model, demand: Refers) -> dict[str, Any]:
    ends = (
        [f"{name}.{plain_name(column)}" for column in columns]
        for name, columns in ((model.name, demand.columns), (demand.dataset, demand.other_columns))
    )
    start, end = (names if len(names) > 1 else names[0] for names in ends)
    return {"type": "foreignKey", "from": start, "to": end}


def _duration(seconds: float) -> tuple[int | float, str]:
    for size, unit in _UNITS:
        if seconds % size == 0:
            return int(seconds // size), unit
    return (int(seconds) if seconds == int(seconds) else seconds), "seconds"


# Options of a logical type -----------------------------------------------------------------------


_NUMBERS, _TIMES = ("integer", "number"), ("date", "timestamp")
_TYPES_OF_OPTIONS: dict[type[Demand], tuple[str, ...]] = {
    Bound: (*_NUMBERS, *_TIMES),
    Length: ("string", "array"),
    Pattern: ("string",),
    OfFormat: ("string",),
    MultipleOf: _NUMBERS,
    UniqueItems: ("array",),
}
"""The logical types with an option that is equivalent to a demand."""


def _options(logical: str | None, demand: Demand) -> dict[str, Any] | None:
    if logical not in _TYPES_OF_OPTIONS.get(type(demand), ()):
        return None
    match demand:
        case Bound() if logical in _TIMES:
            demand = replace(demand, value=str(demand.value))
        case Bound() if not is_finite_number(demand.value):
            return None
        case OfFormat():
            return {"format": demand.name}
    return keywords_of(demand, is_array=logical == "array")
