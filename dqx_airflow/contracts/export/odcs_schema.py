"""Models of a contract as objects of ODCS, with their properties and rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile.expectations import ExportedRule
from dqx_airflow.contracts.database_types import physical_type, written_in
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S, MONTH_S, YEAR_S
from dqx_airflow.contracts.dialects.foreign import great_expectations
from dqx_airflow.contracts.dialects.odcs.physical_types import SPARK_TYPE
from dqx_airflow.contracts.dialects.odcs.service_levels import DIMENSIONS
from dqx_airflow.contracts.dialects.personal_data import is_sensitive
from dqx_airflow.contracts.export.exported import Loss, ModelWriter, without_empty
from dqx_airflow.contracts.export.odcs_rules import (
    compared,
    is_same_dialect,
    library_metric,
    query_of,
)
from dqx_airflow.contracts.field_types import names_in, spark_type
from dqx_airflow.contracts.model import Field, Model, Rule, plain_name
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Severity
from dqx_airflow.values.exact import is_finite_number

_SEVERITIES = {
    Severity.P0: "critical",
    Severity.P1: "error",
    Severity.P2: "warning",
    Severity.P3: "info",
}
_NO_COUNTERPART = "the standard has no counterpart"
_WORDS = ("text", "number", "whole_number", "any")
_NESTED = ("array", "map", "struct")
_UNITS = ((YEAR_S, "y"), (MONTH_S, "mo"), (DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "minutes"))
_MARK = "sensitive"
_NAMED = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)+", re.ASCII)
"""The names of properties to which a relationship may refer."""
_NAMED_IN_OLDER = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*", re.ASCII)
"""These names before the newest version of the standard."""


@dataclass(slots=True)
class SchemaWriter(ModelWriter):
    """Also collects the service levels of the model.

    `sql_dialect` is the dialect of SQL, and of types, in the document, None for Spark's own;
    `is_spark`: types are read as types of Spark first. `needs_newest`: something was written
    that only the newest version has: a map with its parts, or a reference to a nested property.
    """

    sql_dialect: str | None = None
    is_spark: bool = True
    service: list[dict[str, Any]] = field(default_factory=list)
    needs_newest: bool = False

    def object(self) -> dict[str, Any]:
        model = self.model
        keys = _unique_key(model)
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
            written = self._property(item)
            if item.name in model.partition_by:
                written["partitioned"] = True
                written["partitionKeyPosition"] = model.partition_by.index(item.name) + 1
            properties.append(written)
        relationships = []
        quality = []
        for rule in model.rules:
            is_key = isinstance(rule.demand, demands.Unique) and {*rule.demand.columns} == {*keys}
            if is_key or self._is_service(rule):
                self._check_is_plain(None, rule)
            elif isinstance(rule.demand, demands.Refers) and self._can_name(
                rule.demand.dataset, *_ends(model, rule.demand)
            ):
                relationships.append(_relationship(model, rule.demand))
            elif isinstance(rule.demand, demands.OnlyColumns):
                self.lose(None, rule, "the standard cannot say that there is nothing else")
            else:
                quality += self._quality(None, rule)
        plain |= {"properties": properties, "relationships": relationships, "quality": quality}
        return without_empty(plain)

    def _property(self, item: Field) -> dict[str, Any]:
        plain: dict[str, Any] = {"name": item.name}
        keys = _unique_key(self.model)
        if item.path in keys:
            plain |= {"primaryKey": True, "primaryKeyPosition": keys.index(item.path) + 1}
        return plain | self._value(item)

    def _value(self, item: Field) -> dict[str, Any]:
        """A property without its name: its type, its rules, and its nested values."""
        physical = self._physical_type(item)
        logical = _logical_type(item, is_in_physical_type=physical is not None)
        plain: dict[str, Any] = {
            "businessName": item.title,
            "description": (item.semantic or "").strip(),
            "logicalType": logical,
            "physicalType": physical,
            "classification": item.classification,
            "tags": _tags(item),
            "examples": list(item.examples),
        }
        options: dict[str, Any] = {}
        quality: list[dict[str, Any]] = []
        for rule in item.rules:
            if isinstance(rule.demand, demands.OfType) and logical is None and physical is None:
                self.lose(item, rule, f"the standard has no type for {item.type}")
            elif not self._write_keys(item, rule, logical, plain, options):
                quality += self._quality(item, rule)
        plain["logicalTypeOptions"] = options
        plain["quality"] = quality
        if not _is_written_as_type(item) or (_is_known(item) and physical is None):
            plain |= self._parts(item)
        plain["customProperties"] = self._custom(item, physical)
        return without_empty(plain)

    def _write_keys(
        self,
        item: Field,
        rule: Rule,
        logical: str | None,
        plain: dict[str, Any],
        options: dict[str, Any],
    ) -> bool:
        """Adds the keys that are equivalent to a rule to a property or to its options; False if
        there are none, or if another rule has them already."""
        keys = self._keys_of(item, rule, logical) if rule.share >= 1 else None
        if keys is None:
            return False
        at, values = keys
        target = options if at == "logicalTypeOptions" else plain
        if target.keys() & values.keys():
            return False
        self._check_is_plain(item, rule)
        target |= values
        return True

    def _parts(self, item: Field) -> dict[str, Any]:
        """The properties, items, keys and values of a nested value."""
        parts: dict[str, Any] = {"properties": [self._property(inner) for inner in item.fields]}
        if item.items is not None:
            parts["items"] = self._value(item.items)
        if item.keys is not None and item.values is not None:
            self.needs_newest = True
            parts["map"] = {"key": self._value(item.keys), "value": self._value(item.values)}
        return parts

    def _keys_of(
        self, item: Field, rule: Rule, logical: str | None
    ) -> tuple[str, dict[str, Any]] | None:
        """The keys of a property, or of its options, that are equivalent to a rule."""
        demand = rule.demand
        match demand:
            case demands.Presence() | demands.OfType():
                return "property", {}
            case demands.OfFormat(name=name) if name == logical:
                return "property", {}
            case demands.Required():
                return "property", {"required": True}
            case demands.Unique(columns=columns) if columns == (item.path,):
                is_key = columns == self.model.key
                return "property", {} if is_key else {"unique": True}
            case demands.Refers(columns=columns) if columns == (item.path,):
                to = f"{demand.dataset}.{plain_name(demand.other_columns[0])}"
                if self._can_name(demand.dataset, to):
                    return "property", {"relationships": [{"type": "foreignKey", "to": to}]}
        if self._is_service(rule):
            return "property", {}
        options = _options(logical, demand)
        return ("logicalTypeOptions", options) if options is not None else None

    def _can_name(self, dataset: str, *properties: str) -> bool:
        """Whether a relationship can name the properties, one of them in a dataset, whose name may
        have no dot: it would lead to a property."""
        if "." in dataset or not all(map(_NAMED.fullmatch, properties)):
            return False
        if not all(map(_NAMED_IN_OLDER.fullmatch, properties)):
            self.needs_newest = True
        return True

    def _is_service(self, rule: Rule) -> bool:
        """Adds the service level that is equivalent to a rule, if there is one."""
        demand = rule.demand
        if not isinstance(demand, demands.DemandOnPeriod):
            return False
        value, unit = _duration(demand.seconds)
        element = self.model.name
        if demand.column is not None:
            element = f"{element}.{plain_name(demand.column)}"
        level = {"property": demand.odcs_property, "value": value, "unit": unit, "element": element}
        if isinstance(demand, demands.Arrives) and demand.schedule is not None:
            del level["unit"]
            level["value"] = demand.schedule
        self.service.append(level)
        return True

    def _quality(self, item: Field | None, rule: Rule) -> list[dict[str, Any]]:
        """The rule of `quality` that is equivalent to a rule, if there is one."""
        found = library_metric(item, rule) or self._expectation(item, rule) or self._sql(item, rule)
        if found is None:
            self.lose(item, rule, _NO_COUNTERPART)
            return []
        about = {
            "name": rule.name,
            "description": rule.description,
            "dimension": rule.dimension if rule.dimension in DIMENSIONS else None,
            "severity": _SEVERITIES[rule.severity] if rule.severity is not None else None,
            "tags": list(rule.tags),
        }
        quality = without_empty(about) | found
        if rule.dimension is not None and "dimension" not in quality:
            self.lose(item, rule, f"the standard has no dimension {rule.dimension}")
        return [quality]

    def _expectation(self, item: Field | None, rule: Rule) -> dict[str, Any] | None:
        """An expectation, if it is read back as the same demand."""
        try:
            expectation = ExportedRule(self.model, item, rule).expectation()
            kwargs = {key: value for key, value in expectation.kwargs.items() if value is not None}
            plain = {"type": expectation.type, "kwargs": kwargs}
            read = great_expectations.translate(plain, item.path if item is not None else None)
        except NoCounterpartError:
            return None
        if read.demands != (rule.demand,) or read.share != rule.share:
            return None
        return {"type": "custom", "engine": "great-expectations", "implementation": plain}

    def _sql(self, item: Field | None, rule: Rule) -> dict[str, Any] | None:
        is_column = item is not None and item in self.model.fields
        written = query_of(rule, item.path if item is not None and is_column else None)
        if written is None:
            return None
        query, condition, dialect = written
        found = {"type": "sql", "query": query} | compared(condition)
        if not is_same_dialect(dialect, self.sql_dialect):
            found["customProperties"] = [{"property": "dialect", "value": dialect or "spark"}]
        return found

    def _physical_type(self, item: Field) -> str | None:
        """The type of a field as the server names it; None for a nested type that the server has no
        name for, whose parts are listed."""
        spark_type = _physical_type(item)
        if spark_type is None:
            return None
        written = written_in(spark_type, self.sql_dialect)
        for name in (spark_type, written):
            if self._reads(name, spark_type):
                return name
        return None if item.type in _NESTED else written

    def _reads(self, name: str, spark_type: str) -> bool:
        """Whether a physical type of the server is read back as a Spark type."""
        read = physical_type(name, self.sql_dialect, is_spark=self.is_spark)
        return read is not None and read.spark_type == spark_type

    def _custom(self, item: Field, physical: str | None) -> list[dict[str, Any]]:
        """The custom properties of a column: facts that the standard has no key for, and the type
        in Spark if the server has no name for it."""
        spark_type = _physical_type(item) if physical is not None else None
        if spark_type is not None and self._reads(str(physical), spark_type):
            spark_type = None
        custom = []
        for name, value in (
            ("unit", item.unit),
            ("default", item.default),
            (SPARK_TYPE, spark_type),
        ):
            if value is not None:
                custom.append({"property": name, "value": value})
        return custom

    def _check_is_plain(self, item: Field | None, rule: Rule) -> None:
        """Reports properties of a rule that only rules of `quality` have."""
        if rule.severity is not None:
            self.lose(item, rule, f"without its severity {rule.severity}")


def _logical_type(item: Field, *, is_in_physical_type: bool) -> str | None:
    """The logical type of a field.

    :param is_in_physical_type: the physical type says everything about the parts of the field.
    """
    of_text = _logical_of_text(item)
    if of_text is not None:
        return of_text
    if item.type == "map" and (item.keys is None or item.values is None):
        return None  # the logical type requires both
    if item.type == "map" and is_in_physical_type:
        return "object"  # which every version has
    by_type = names_in("written to ODCS").get((item.type or "").partition("(")[0])
    return item.logical_type or by_type


def _physical_type(item: Field) -> str | None:
    if item.type == "struct" and not item.fields:
        return "struct"  # an undescribed object may also be JSON
    if item.type in _NESTED:
        return spark_type(item) if _is_written_as_type(item) and _is_known(item) else None
    return None if item.type in (None, *_WORDS) else item.type


def _tags(item: Field) -> list[str]:
    """The tags, with a mark of sensitive values that neither they nor the classification show."""
    tags = list(item.tags)
    if item.is_sensitive and not is_sensitive(item.classification, tags):
        tags.append(_MARK)
    return tags


def _is_written_as_type(item: Field) -> bool:
    """True for a nested value whose physical type says everything about its parts."""
    return item.type in _NESTED and not _has_more_than_types(item)


def _has_more_than_types(item: Field) -> bool:
    """Whether fields nested in a field have rules, meanings or types that its type lacks."""
    parts = [part for part in item.walk() if part is not item]
    return any(part.rules or part.semantic or part.type in (None, *_WORDS) for part in parts)


def _is_known(item: Field) -> bool:
    """Whether everything nested in a type is known."""
    parts = {"array": (item.items,), "map": (item.keys, item.values), "struct": item.fields}
    inner = parts.get(item.type or "")
    return inner is None or (bool(inner) and all(part and _is_known(part) for part in inner))


def _unique_key(model: Model) -> tuple[str, ...]:
    """The columns of the key of a model, if a rule demands that it identifies a row: a primary key
    of the standard does."""
    of_fields = [rule for item in model.fields for rule in item.rules]
    for rule in (*model.rules, *of_fields):
        if isinstance(rule.demand, demands.Unique) and {*rule.demand.columns} == {*model.key}:
            return model.key
    return ()


def _ends(model: Model, demand: demands.Refers) -> list[str]:
    """The properties of both ends of a reference."""
    own = [f"{model.name}.{plain_name(column)}" for column in demand.columns]
    return own + [f"{demand.dataset}.{plain_name(column)}" for column in demand.other_columns]


def _relationship(model: Model, demand: demands.Refers) -> dict[str, Any]:
    ends = _ends(model, demand)
    count = len(demand.columns)
    start, end = ends[:count], ends[count:]
    if count == 1:
        return {"type": "foreignKey", "from": start[0], "to": end[0]}
    return {"type": "foreignKey", "from": start, "to": end}


def _duration(seconds: float) -> tuple[int | float, str]:
    for size, unit in _UNITS:
        if seconds % size == 0:
            return int(seconds // size), unit
    return (int(seconds) if seconds == int(seconds) else seconds), "seconds"


_TIMES = ("date", "timestamp")


def _logical_of_text(item: Field) -> str | None:
    """The logical type of strings that stand for times; None for other values."""
    for rule in item.rules:
        if isinstance(rule.demand, demands.TimeBound | demands.TimeText):
            return "time" if rule.demand.is_time else "timestamp"
    return None


def _options(logical: str | None, demand: demands.Demand) -> dict[str, Any] | None:
    if logical not in demand.odcs_types:
        return None
    match demand:
        case demands.Bound() if logical in _TIMES:
            demand = replace(demand, value=str(demand.value))
        case demands.Bound() if not is_finite_number(demand.value):
            return None
    return demand.keywords(is_array=logical == "array")
