"""A contract as a document of the Open Data Contract Standard: schema, quality, the rest."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dqx_airflow.contracts import demands, export
from dqx_airflow.contracts.compile.expectations import ExportedRule
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects.durations import DAY_S, HOUR_S, MINUTE_S
from dqx_airflow.contracts.dialects.foreign import THRESHOLDS, great_expectations
from dqx_airflow.contracts.dialects.library_metrics import DQL_METRICS
from dqx_airflow.contracts.dialects.personal_data import is_sensitive
from dqx_airflow.contracts.field_types import names_in, spark_type
from dqx_airflow.contracts.model import Contract, Field, Model, Rule, Server, Treatment, plain_name
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Severity
from dqx_airflow.values.exact import is_finite_number

_SEVERITIES = dict(zip(Severity, ("critical", "error", "warning", "info"), strict=True))
_DIMENSIONS = (
    *("accuracy", "completeness", "conformity", "consistency", "coverage", "timeliness"),
    "uniqueness",
)
_OF_DUCKDB = ("local", "s3", "azure", "sftp")
_NO_COUNTERPART = "the standard has no counterpart"


def _compared(condition: demands.Condition) -> dict[str, Any]:
    value: Any = condition.bound
    if condition.high is not None:
        value = [condition.bound, condition.high]
    return {THRESHOLDS[condition.op][0]: value}


# Metrics -----------------------------------------------------------------------------------------


def _library(item: Field | None, rule: Rule) -> dict[str, Any] | None:
    column = item.path if item is not None else None
    match rule.demand:
        case demands.OneOf(values=values) if rule.share >= 1:
            return _metric("invalidValues", demands.NONE, {"validValues": list(values)})
        case demands.Unique(columns=columns):
            return _duplicates(columns, column, demands.NONE, is_percent=False)
        case demands.Distinct(columns=columns, duplicates=share):
            return _duplicates(columns, column, _at_most(share), is_percent=True)
        case demands.Complete(column=named, share=share) if named == column:
            return _metric("nullValues", _at_most(1 - share), is_percent=True)
        case demands.MetricRule() as demand:
            return _measured(demand, column)
    return None


def _measured(demand: demands.MetricRule, column: str | None) -> dict[str, Any] | None:
    metric = DQL_METRICS.get(demand.metric)
    is_percent, columns = demand.is_percent, demand.arguments
    if metric == "duplicateValues":
        return _duplicates(columns, column, demand.condition, is_percent=is_percent)
    if metric is None or (metric == "rowCount") != (not columns):
        return None
    if columns and columns != (column,):
        return None
    arguments: dict[str, Any] = {}
    if demand.pattern is not None:
        arguments["pattern"] = demand.pattern
    if demand.values:
        if metric == "missingValues":
            arguments["missingValues"] = [None, *demand.values]
        else:
            arguments["validValues"] = [*demand.values]
    return _metric(metric, demand.condition, arguments, is_percent=is_percent)


def _duplicates(
    columns: tuple[str, ...], column: str | None, condition: demands.Condition, *, is_percent: bool
) -> dict[str, Any] | None:
    if columns == (column,):
        return _metric("duplicateValues", condition, is_percent=is_percent)
    if column is not None:
        return None
    names = {"properties": [plain_name(name) for name in columns]}
    return _metric("duplicateValues", condition, names, is_percent=is_percent)


def _at_most(share: float) -> demands.Condition:
    percent = round(share * 100, 9)
    return demands.Condition("<=", int(percent) if percent == int(percent) else percent)


def _metric(
    name: str,
    condition: demands.Condition,
    arguments: dict[str, Any] | None = None,
    *,
    is_percent: bool = False,
) -> dict[str, Any]:
    unit = "percent" if is_percent else None
    metric = {"type": "library", "metric": name, "arguments": arguments, "unit": unit}
    return export.without_empty(metric) | _compared(condition)


# SQL ---------------------------------------------------------------------------------------------


def _query(rule: Rule, column: str | None) -> tuple[str, demands.Condition, str | None] | None:
    """A query that returns a number, its condition, and its dialect.

    :param column: the column that the rule is about; None for a rule of the model or of a nested
        value.
    """
    demand: demands.Demand = rule.demand
    match demand:
        case demands.QueryGives():
            return demand.query, demand.condition, demand.sql_dialect
        case demands.RowsSatisfy(share=1):
            return f"{_COUNT} WHERE NOT ({demand.predicate})", demands.NONE, demand.sql_dialect
        case demands.RowsSatisfy():
            wrong = f"count(CASE WHEN NOT ({demand.predicate}) THEN 1 END)"
            query = f"SELECT 100.0 * {wrong} / count(*) FROM {{model}}"  # noqa: S608
            return query, _at_most(1 - demand.share), demand.sql_dialect
        case demands.Refers():
            rows = demand.missing_rows("{model}")
            return rows.replace("SELECT *", "SELECT count(*)", 1), demands.NONE, None
        case demands.Digits() if column is not None and rule.share >= 1:
            too_long = demand.too_many(sql_name(column))
            return f"{_COUNT} WHERE {too_long}", demands.NONE, None
    return None


_COUNT = "SELECT count(*) FROM {model}"


def _dialect_of(server: str | None) -> str:
    if server in _OF_DUCKDB:
        return "duckdb"
    return "databricks" if server == "databricks" else "spark"


def _translated(query: str, read: str | None, write: str) -> str | None:
    """The query in another dialect; None if it cannot be parsed."""
    if (read or "spark") == write or {read, write} <= {None, "spark", "databricks"}:
        return query
    import sqlglot
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    # Placeholders are not SQL: they are replaced by names.
    marks = {"{model}": "dqx__model", "{field}": "dqx__field", "{column}": "dqx__column"}
    for mark, name in marks.items():
        query = query.replace(mark, name)
    try:
        (text,) = sqlglot.transpile(query, read=read or "spark", write=write)
    except (SqlglotError, ValueError, RecursionError):
        return None
    for mark, name in marks.items():
        text = text.replace(name, mark)
    return text


_WORDS = ("text", "number", "whole_number", "any")
_NESTED = ("array", "map", "struct")
_UNITS = ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "minutes"))
_MARK = "sensitive"


@dataclass(slots=True)
class SchemaWriter(export.ModelWriter):
    """Also collects the service levels of the model.

    `server` is the type of the first server: the SQL of the document is in its dialect.
    """

    server: str | None = None
    service: list[dict[str, Any]] = field(default_factory=list)

    def object(self) -> dict[str, Any]:
        model, keys = self.model, self.model.key
        for name in model.partition_by:
            if model.field_at(name) is None:
                reason = f"partitioned by {name}, which is not one of its columns"
                self.losses.append(export.Loss(model.name, reason))
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
            written = self._property(item, keys)
            if item.name in model.partition_by:
                written["partitioned"] = True
                written["partitionKeyPosition"] = model.partition_by.index(item.name) + 1
            properties.append(written)
        relationships, quality = [], []
        for rule in model.rules:
            is_key = isinstance(rule.demand, demands.Unique) and {*rule.demand.columns} == {*keys}
            if is_key or self._is_service(rule):
                self._check_is_plain(None, rule)
            elif isinstance(rule.demand, demands.Refers) and self._is_object(rule.demand.dataset):
                relationships.append(_relationship(model, rule.demand))
            elif isinstance(rule.demand, demands.OnlyColumns):
                self.lose(None, rule, "the standard cannot say that there is nothing else")
            else:
                quality += self._quality(None, rule)
        plain |= {"properties": properties, "relationships": relationships, "quality": quality}
        return export.without_empty(plain)

    def _property(self, item: Field, keys: tuple[str, ...]) -> dict[str, Any]:
        plain: dict[str, Any] = {"name": item.name}
        if item.path in keys:
            plain |= {"primaryKey": True, "primaryKeyPosition": keys.index(item.path) + 1}
        return plain | self._value(item)

    def _value(self, item: Field) -> dict[str, Any]:
        tags = list(item.tags)
        if item.is_sensitive and not is_sensitive(item.classification, tags):
            tags.append(_MARK)
        is_whole = item.type in ("array", "struct") and not _has_more_than_types(item)
        by_type = names_in("written to ODCS").get((item.type or "").partition("(")[0])
        logical = item.logical_type or by_type
        if item.type == "map" and (item.keys is None or item.values is None):
            logical = None  # which requires its parts
        physical = None if item.type in (None, *_WORDS) else item.type
        if item.type in _NESTED:
            physical = spark_type(item) if is_whole and _is_known(item) else None
        if item.type == "struct" and not item.fields:
            physical = "struct"  # an undescribed object may also be JSON
        logical = _logical_of_text(item) or logical
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
            keys = self._keys_of(item, rule, logical) if rule.share >= 1 else None
            if keys is None:
                quality += self._quality(item, rule)
                continue
            at, values = keys
            target = options if at == "logicalTypeOptions" else plain
            if any(key in target for key in values):
                quality += self._quality(item, rule)
            else:
                self._check_is_plain(item, rule)
                target |= values
        plain |= {"logicalTypeOptions": options, "quality": quality}
        if not is_whole:
            plain |= self._parts(item)
        plain["customProperties"] = self._custom(item)
        return export.without_empty(plain)

    def _parts(self, item: Field) -> dict[str, Any]:
        """The properties, items, keys and values of a nested value."""
        parts: dict[str, Any] = {"properties": [self._property(inner, ()) for inner in item.fields]}
        if item.items is not None:
            parts["items"] = self._value(item.items)
        if item.keys is not None and item.values is not None:
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
                return "property", {"unique": True}
            case demands.Refers(columns=columns) if columns == (item.path,) and self._is_object(
                demand.dataset
            ):
                to = f"{demand.dataset}.{plain_name(demand.other_columns[0])}"
                return "property", {"relationships": [{"type": "foreignKey", "to": to}]}
        if self._is_service(rule):
            return "property", {}
        options = _options(logical, demand)
        return ("logicalTypeOptions", options) if options is not None else None

    def _is_object(self, dataset: str) -> bool:
        """Whether a relationship can name the dataset: a dot would lead to a property of it."""
        return "." not in dataset

    def _is_service(self, rule: Rule) -> bool:
        """Adds the service level that is equivalent to a rule, if there is one."""
        demand = rule.demand
        if not isinstance(demand, demands.DemandOnPeriod) or demand.column is None:
            return False
        value, unit = _duration(demand.seconds)
        element = f"{self.model.name}.{plain_name(demand.column)}"
        level = {"property": demand.odcs_property, "value": value, "unit": unit, "element": element}
        if isinstance(demand, demands.Arrives) and demand.schedule is not None:
            del level["unit"]
            level["value"] = demand.schedule
        self.service.append(level)
        return True

    def _quality(self, item: Field | None, rule: Rule) -> list[dict[str, Any]]:
        """The rule of `quality` that is equivalent to a rule, if there is one."""
        found = _library(item, rule) or self._expectation(item, rule) or self._sql(item, rule)
        if not isinstance(found, dict):
            self.lose(item, rule, found or _NO_COUNTERPART)
            return []
        about = {
            "name": rule.name,
            "description": rule.description,
            "dimension": rule.dimension if rule.dimension in _DIMENSIONS else None,
            "severity": _SEVERITIES[rule.severity] if rule.severity is not None else None,
            "tags": list(rule.tags),
        }
        quality = export.without_empty(about) | found
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

    def _sql(self, item: Field | None, rule: Rule) -> dict[str, Any] | str | None:
        is_column = item is not None and item in self.model.fields
        written = _query(rule, item.path if item is not None and is_column else None)
        if written is None:
            return None
        query, condition, dialect = written
        text = _translated(query, dialect, _dialect_of(self.server))
        if text is None:
            return "its SQL cannot be written in the dialect of the server"
        return {"type": "sql", "query": text} | _compared(condition)

    def _custom(self, item: Field) -> list[dict[str, Any]]:
        """The custom properties of a column: facts that the standard has no key for."""
        custom = []
        path = f"{self.model.name}.{item.path}"
        for name, value in (("unit", item.unit), ("default", item.default)):
            if value is not None:
                reason = f"its {name} is a custom property: the standard has no place for it"
                self.losses.append(export.Loss(path, reason))
                custom.append({"property": name, "value": value})
        if item.inputs:
            self.losses.append(export.Loss(path, "what it is made of is left out"))
        return custom

    def _check_is_plain(self, item: Field | None, rule: Rule) -> None:
        """Reports properties of a rule that only rules of `quality` have."""
        if rule.severity is not None:
            self.lose(item, rule, f"without its severity {rule.severity}")


def _has_more_than_types(item: Field) -> bool:
    """Whether fields nested in a field have rules, meanings or types that its type lacks."""
    parts = [part for part in item.walk() if part is not item]
    return any(part.rules or part.semantic or part.type in (None, *_WORDS) for part in parts)


def _is_known(item: Field) -> bool:
    """Whether everything nested in a type is known."""
    parts = {"array": (item.items,), "map": (item.keys, item.values), "struct": item.fields}
    inner = parts.get(item.type or "")
    return inner is None or (bool(inner) and all(part and _is_known(part) for part in inner))


def _relationship(model: Model, demand: demands.Refers) -> dict[str, Any]:
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


_VERSION, _WITH_MAPS = "v3.1.0", "v3.2.0"
_STATUS = {"draft": "draft", "active": "active", "deprecated": "deprecated", "sunset": "retired"}
_FILES = ("local", "s3", "azure", "sftp")
_FIRST_VERSION = "1.0.0"
_NOTHING = ("", "false", "null", "~", "[]", "{}")
_DIALECT_VERSIONS = ("apiVersion", "dataContractSpecification")
_NO_PLACE = "a custom property: the standard has no place for it, and no other tool reads it"


def document(contract: Contract) -> export.Exported:
    """The contract as YAML."""
    losses: list[export.Loss] = []
    servers = [_server(server, losses) for server in contract.servers]
    kind = servers[0]["type"] if servers else None
    writers = [SchemaWriter(contract, model, server=kind) for model in contract.models]
    objects = [writer.object() for writer in writers]
    dates = []
    if contract.lifecycle.effective_date is not None:
        value = contract.lifecycle.effective_date
        dates.append({"property": "generalAvailability", "value": value})
    if contract.lifecycle.sunset_date is not None:
        dates.append({"property": "endOfLife", "value": contract.lifecycle.sunset_date})
    if contract.version is None:
        reason = f"written as {_FIRST_VERSION}: the standard asks for one"
        losses.append(export.Loss("version", reason))
    has_maps = any(item.type == "map" for model in contract.models for item in model.walk())
    plain = {
        "apiVersion": _WITH_MAPS if has_maps else _VERSION,
        "kind": "DataContract",
        "id": contract.id,
        "name": contract.name,
        "version": contract.version or _FIRST_VERSION,
        "status": _STATUS.get(contract.lifecycle.status or "", contract.lifecycle.written_status),
        "domain": contract.domain,
        "tags": list(contract.tags),
        "description": {"purpose": contract.description.strip()} if contract.description else None,
        "team": _team(contract),
        "servers": servers,
        "schema": objects,
        "slaProperties": [*(level for writer in writers for level in writer.service), *dates],
        "customProperties": [*_custom(contract, losses)],
    }
    kept = {key: value for key, value in plain.items() if value not in (None, [], {})}
    losses += [loss for writer in writers for loss in writer.losses]
    losses += [*export.unsupported_clauses(contract), *_left_out(contract, kept)]
    return export.Exported(export.yaml_text(kept), tuple(losses))


def _team(contract: Contract) -> dict[str, Any] | None:
    members = [{"username": name} for name in contract.contacts]
    return export.without_empty({"name": contract.owner, "members": members}) or None


def _server(server: Server, losses: list[export.Loss]) -> dict[str, Any]:
    """A server of its own type if everything that the standard requires is known, else `custom`."""
    about = {"server": server.name, "environment": server.environment}
    place = _place(server)
    if place is None:
        reason = f"a custom server: not all is known that one of type {server.type} needs"
        losses.append(export.Loss(f"servers.{server.name}", reason))
        properties = [{"property": "serverType", "value": server.type}]
        place = {"type": "custom", "location": server.location, "format": server.format}
        place["customProperties"] = properties
    if server.options:
        losses.append(export.Loss(f"servers.{server.name}", "its options are left out"))
    return {key: value for key, value in (about | place).items() if value is not None}


def _place(server: Server) -> dict[str, Any] | None:
    if server.type in _FILES and server.location is not None:
        key = "path" if server.type == "local" else "location"
        if server.format is None and server.type in ("local", "azure"):
            return None
        return {"type": server.type, key: server.location, "format": server.format}
    parts = (server.location or "").split(".")
    if server.type == "databricks" and len(parts) == 3 and parts[2] == "{model}":
        return {"type": "databricks", "catalog": parts[0], "schema": parts[1]}
    return None


def _custom(contract: Contract, losses: list[export.Loss]) -> Iterator[dict[str, Any]]:
    """The custom properties of a contract: facts that the standard has no key for."""
    consumers = [
        {"team": consumer.team}
        | export.without_empty({"useCase": consumer.use_case, "pin": consumer.pin})
        for consumer in contract.consumers
    ]
    lifecycle = contract.lifecycle
    custom = {
        "consumers": consumers,
        "deprecationDate": lifecycle.deprecation_date,
        "successor": lifecycle.successor,
        "deprecationNoticeDays": lifecycle.notice_days,
        "breakingChangeNoticeDays": lifecycle.breaking_notice_days,
        "dualWriteDays": lifecycle.dual_write_days,
        "breakingChangeCadence": lifecycle.cadence,
    }
    for name, value in custom.items():
        if value:
            losses.append(export.Loss(name, _NO_PLACE))
            yield {"property": name, "value": value}


def _left_out(contract: Contract, written: Any) -> Iterator[export.Loss]:
    """Texts of the document that the export does not contain."""
    known = {demands.one_line(text) for text in _scalars(written)}
    for note in contract.notes:
        remark = demands.one_line(note.clause.text)
        is_exported = (
            remark in known or remark.lower() in _NOTHING or _is_in_other_form(note.clause.path)
        )
        if note.treatment is Treatment.DOCUMENTED and not is_exported:
            yield export.Loss(note.clause.path, "the export has no place for it")


def _is_in_other_form(path: str) -> bool:
    """True for the version of a dialect, for nullability, which is the default, and for marks of
    personal data, which become a classification or a tag."""
    return path.endswith((".nullable", ".pii")) or path in _DIALECT_VERSIONS


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner)
    else:
        yield str(value)
