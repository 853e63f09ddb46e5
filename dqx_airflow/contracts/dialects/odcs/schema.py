"""Objects of an ODCS schema and their quality rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

from dqx_airflow.contracts.dialects.dcs.quality import read_quality
from dqx_airflow.contracts.dialects.extensions import PlacedRule
from dqx_airflow.contracts.dialects.foreign.thresholds import is_threshold
from dqx_airflow.contracts.dialects.odcs.service import OdcsContext
from dqx_airflow.contracts.source.yaml_document import Entry, Mapping, Node, Scalar, Sequence

_OF_PEOPLE = ("businessImpact", "method", "schedule", "scheduler")


def read_rules(
    context: OdcsContext, owner: Mapping, column: str | None = None, columns: tuple[str, ...] = ()
) -> Iterator[PlacedRule]:
    """The rules of an object with these columns, or of the property with this column."""
    rules = tuple(context.reading.mappings(owner, "quality"))
    metrics = [_as_metric(context, rule) for rule in rules]
    listed = Sequence(tuple(metrics), owner.path, owner.span)
    quality = {"quality": Entry("quality", listed, owner.span_of("quality"))}
    stand_in = Mapping(quality, owner.path, owner.span)
    yield from read_quality(context.reading, stand_in, column, context.sql_dialect, columns)
    for rule in rules:
        context.document_remarks(rule, *_OF_PEOPLE)
        if "query" in rule.entries:
            context.reading.documented_keys(rule, "unit", reason="what the query counts")


def _as_metric(context: OdcsContext, rule: Mapping) -> Mapping:
    """The rule in the form of 3.2, with columns instead of properties, and 1 for the boolean result
    of a query."""
    entries = dict(rule.entries)
    if "metric" not in entries and "rule" in entries:
        entries["metric"] = entries.pop("rule")
    if "type" not in entries and "metric" in entries:
        metric = entries["metric"]
        library = Scalar("library", "library", metric.node.path, metric.span)
        entries = {"type": Entry("type", library, metric.span), **entries}
    if "validValues" in entries and "arguments" not in entries:
        values = entries.pop("validValues")
        inner = Mapping({"validValues": values}, values.node.path, values.node.span)
        entries["arguments"] = Entry("arguments", inner, values.span)
        if not any(map(is_threshold, entries)):
            none = Scalar(0, "0", values.node.path, values.span)
            entries["mustBe"] = Entry("mustBe", none, values.span)
    for key in ("mustBe", "mustNotBe"):
        match entries.get(key):
            case Entry(node=Scalar(value=bool(value)) as scalar) as entry:
                entries[key] = replace(entry, node=replace(scalar, value=int(value)))
                _make_number(entries)
    match entries.get("arguments"):
        case Entry(node=Mapping() as arguments) as entry:
            entries["arguments"] = replace(entry, node=_with_columns(context, arguments))
    return replace(rule, entries=entries)


def _make_number(entries: dict[str, Entry]) -> None:
    """Turns the boolean result of a query into 1 or 0."""
    match entries.get("query"):
        case Entry(node=Scalar(text=text) as scalar) as entry:
            query = text.strip().rstrip(";")
            number = "".join(("SELECT CAST((", query, ") AS INT)"))
            entries["query"] = replace(entry, node=replace(scalar, text=number))


def _with_columns(context: OdcsContext, arguments: Mapping) -> Mapping:
    match arguments.entries.get("properties"):
        case Entry(node=Sequence(items=items) as listed) as entry:
            columns = tuple(_column(context, item) for item in items)
            entry = replace(entry, node=replace(listed, items=columns))
            return replace(arguments, entries=arguments.entries | {"properties": entry})
    return arguments


def _column(context: OdcsContext, item: Node) -> Node:
    if not isinstance(item, Scalar):
        return item
    return replace(item, value=context.elements.name_in_data(context.model, item.text))


VERSIONS = ("3.0.0", "3.0.1", "3.0.2", "3.1.0", "3.2.0")

_SEVERAL = ("allOf", "anyOf", "oneOf")


@cache
def load_schema() -> dict[str, Any]:
    """One schema for all versions: since 3.1 only keys of the standard are allowed.

    An unknown version is reported separately, so the list of versions is not in it.
    """
    text = files("open_data_contract_standard").joinpath("schema.json").read_text(encoding="utf-8")
    strict: dict[str, Any] = json.loads(text)
    strict["properties"]["apiVersion"] = {"type": "string"}
    definitions = strict["$defs"]
    _permit_several_operators(definitions["DataQualityOperators"])
    # They may lead into other contracts in both ways: the reader reports broken ones.
    for name in ("ShorthandReference", "FullyQualifiedReference"):
        definitions[name].pop("pattern")
    # An item is a property without a name, which describes the properties below it.
    definitions["SchemaItemProperty"]["properties"] = {"properties": {}}
    definitions["SchemaBaseProperty"].pop("unevaluatedProperties")
    _each_mapping(strict, _demand_what_is_asked)
    _each_mapping(strict, _permit_several_that_fit)
    _each_mapping(strict, partial(_list_keys, strict))
    loose = deepcopy(strict)
    _loosen(loose)
    return {
        "$schema": strict["$schema"],
        "if": {"properties": {"apiVersion": {"type": "string", "pattern": "^v?3\\.0"}}},
        "then": {"$ref": "#/$defs/loose"},
        "else": {"$ref": "#/$defs/strict"},
        "$defs": {"loose": _moved(loose, "loose"), "strict": _moved(strict, "strict")},
    }


def _moved(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The schema with references that remain valid when it becomes a definition of another one."""

    def move(part: dict[str, Any]) -> None:
        if "$ref" in part:
            part["$ref"] = part["$ref"].replace("#/", f"#/$defs/{name}/", 1)

    _each_mapping(schema, move)
    schema.pop("$schema")
    return schema


def _permit_several_operators(operators: dict[str, Any]) -> None:
    """The text of the standard allows several in one rule, its schema does not."""
    alternatives = operators.pop("oneOf")
    operators["properties"] = {
        key: value
        for alternative in alternatives
        for key, value in alternative["properties"].items()
    }
    operators["anyOf"] = [{"required": alternative["required"]} for alternative in alternatives]


def _demand_what_is_asked(part: dict[str, Any]) -> None:
    """`if` also matches a mapping without the key that it tests, which was not meant."""
    condition = part.get("if", {})
    for alternative in condition.get("anyOf", [condition]):
        if "properties" in alternative:
            alternative["required"] = list(alternative["properties"])


def _permit_several_that_fit(part: dict[str, Any]) -> None:
    """Lets a value match two alternatives: it then has another error, with a message of its own."""
    if "oneOf" in part:
        part["anyOf"] = part.pop("oneOf")


def _list_keys(schema: dict[str, Any], part: dict[str, Any]) -> None:
    """`unevaluatedProperties` with the keys written out: evaluating them takes a time that grows
    with every level of nesting, and one wrong value would make its neighbors unknown."""
    if part.get("unevaluatedProperties") is False:
        part.pop("unevaluatedProperties")
        part["additionalProperties"] = False
        part["properties"] = {key: {} for key in _keys(schema, part)} | part.get("properties", {})


def _keys(schema: dict[str, Any], part: dict[str, Any]) -> Iterator[str]:
    """All keys that a part of the schema knows, in any case."""
    yield from part.get("properties", {})
    for inner in (
        part.get("then"),
        *(schema_part for key in _SEVERAL for schema_part in part.get(key, ())),
    ):
        if inner is not None:
            yield from _keys(schema, inner)
    if "$ref" in part:
        target = schema
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        yield from _keys(schema, target)


def _loosen(schema: dict[str, Any]) -> None:
    """The schema of 3.0: other keys are allowed anywhere except in the options of a type."""
    definitions = schema["$defs"]
    # `rule` became `metric`, and valid values had no operator.
    definitions["DataQualityLibrary"].pop("required")
    definitions["DataQualityLibrary"]["properties"]["validValues"] = {}
    definitions["DataQualityOperators"].pop("anyOf")
    _each_mapping(schema, _permit_other_keys)
    _each_mapping(definitions["SchemaBaseProperty"], _permit_true_for_exclusive)


def _permit_other_keys(part: dict[str, Any]) -> None:
    options = ("exclusiveMaximum", "minLength", "maxItems", "maxProperties")
    if any(name in part.get("properties", {}) for name in options):
        return
    if part.get("additionalProperties") is False:
        part.pop("additionalProperties")


def _permit_true_for_exclusive(part: dict[str, Any]) -> None:
    """`exclusiveMaximum: true` made `maximum` exclusive."""
    for key in ("exclusiveMaximum", "exclusiveMinimum"):
        option = part.get("properties", {}).get(key)
        if option is not None:
            option["type"] = ["boolean", option["type"]]


def _each_mapping(part: object, change: Callable[[dict[str, Any]], None]) -> None:
    if isinstance(part, dict):
        change(part)
        for inner in part.values():
            _each_mapping(inner, change)
    elif isinstance(part, list):
        for inner in part:
            _each_mapping(inner, change)
