"""The JSON Schemas of the two standards, as the package reads them: those that their own Python
packages publish, without restrictions that are arbitrary or mistaken.

    python tools/schemas/standard_schemas.py

writes them to `dqx_airflow/contracts/schemas/`; a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import dqx_airflow.contracts
from dqx_airflow.contracts.schema import NEWER
from dqx_airflow.contracts.unknown_keys import STATES

_SEVERAL = ("allOf", "anyOf", "oneOf")
_OLDER = Path(__file__).with_name("odcs-3.1.0.schema.json")
"""The schema of version 3.1 as it was published."""


def odcs_schema() -> dict[str, Any]:
    """One schema with the schemas of all versions: since 3.1 only keys of the standard are allowed.

    3.0 has the keys of the newest version, since examples of the standard use them there. An
    unknown version is reported separately, so the list of versions is not in it.
    """
    text = files("open_data_contract_standard").joinpath("schema.json").read_text(encoding="utf-8")
    newest = _relaxed(json.loads(text))
    older = _relaxed(json.loads(_OLDER.read_text(encoding="utf-8")))
    _mark_newer_keys(older, newest)
    loose = deepcopy(newest)
    loose["required"] = older["required"]
    _loosen(loose)
    return {
        "$schema": newest["$schema"],
        "if": _is_of_version("3\\.0"),
        "then": {"$ref": "#/$defs/loose"},
        "else": {
            "if": _is_of_version("3\\.1"),
            "then": {"$ref": "#/$defs/older"},
            "else": {"$ref": "#/$defs/strict"},
        },
        "$defs": {
            "loose": _moved(loose, "loose"),
            "older": _moved(older, "older"),
            "strict": _moved(newest, "strict"),
        },
    }


def _mark_newer_keys(older: object, newer: object) -> None:
    """Lists the keys that only the newest version has where the older one forbids them, so that
    a diagnostic can name the version."""
    if isinstance(older, dict) and isinstance(newer, dict):
        if older.get("additionalProperties") is False:
            added = [key for key in newer.get("properties", {}) if key not in older["properties"]]
            older |= {NEWER: added} if added else {}
        for key in older.keys() & newer.keys():
            _mark_newer_keys(older[key], newer[key])
    elif isinstance(older, list) and isinstance(newer, list):
        for before, after in zip(older, newer, strict=False):
            _mark_newer_keys(before, after)


def _is_of_version(pattern: str) -> dict[str, Any]:
    return {"properties": {"apiVersion": {"type": "string", "pattern": f"^v?{pattern}"}}}


def _relaxed(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of the standard without restrictions that are arbitrary or mistaken."""
    schema["properties"]["apiVersion"] = {"type": "string"}
    definitions = schema["$defs"]
    _permit_several_operators(definitions["DataQualityOperators"])
    # They may lead into other contracts in both ways: the reader reports broken ones.
    for name in ("ShorthandReference", "FullyQualifiedReference"):
        definitions[name].pop("pattern")
    # An item is a property without a name, which describes the properties below it.
    definitions["SchemaItemProperty"]["properties"] = {"properties": {}}
    definitions["SchemaBaseProperty"].pop("unevaluatedProperties")
    _each_mapping(schema, _demand_what_is_asked)
    _each_mapping(schema, _permit_several_that_fit)
    _each_mapping(schema, partial(_list_keys, schema))
    return schema


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


_OF_EVERY_RULE = ("id", "name", "dimension", "severity", "tags", "engine", "specification")
"""Properties of a rule of `quality`, as in the successor of the standard."""

_SCALAR = {"type": ["string", "number", "boolean", "null"]}


def dcs_schema() -> dict[str, Any]:
    """The schema of the newest version, without restrictions that are arbitrary or mistaken.

    An unknown version is reported separately, so the list of versions is not in it.
    """
    text = files("datacontract_specification").joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    properties = schema["properties"]
    properties["dataContractSpecification"] = {"type": ["string", "number"]}
    # "such as a UUID, URN, slug, string, or number", says the specification.
    properties["id"] = {"type": ["string", "number"]}
    # In 0.9 these were next to the servers.
    properties["servers"]["properties"] = {
        "description": {"type": "string"},
        "environment": {"type": "string"},
    }
    properties |= {key: {} for key in ("quality", "examples", "schema")}
    schema["$defs"]["SftpServer"]["properties"]["location"].pop("pattern")
    model = properties["models"]["additionalProperties"]["properties"]
    model |= {key: {} for key in ("tags", "links", "namespace")}
    policies = properties["terms"]["properties"]["policies"]["items"]["properties"]
    policies["name"] = {}
    # A definition of 0.9 named its domain.
    properties["definitions"]["additionalProperties"]["properties"] |= {"domain": {}, "name": {}}
    for owner in (model["fields"], properties["definitions"]):
        described = owner["additionalProperties"]["properties"]
        # Numbers are listed by contracts with a numeric field; examples are of the field's type.
        described["enum"] = {"type": "array", "items": _SCALAR}
        described["example"] = {}
    properties["definitions"]["additionalProperties"].pop("required")
    properties["definitions"]["additionalProperties"]["anyOf"] = [
        {"required": ["type"]},
        {"required": ["$ref"]},
    ]
    parts = schema["$defs"]["Quality"]["allOf"]
    parts[0]["properties"] |= {key: {} for key in _OF_EVERY_RULE}
    levels = properties["servicelevels"]
    servers = [part for name, part in schema["$defs"].items() if name.endswith("Server")]
    tables = (schema, properties["models"]["additionalProperties"])
    for part in (*tables, *servers, parts[0], levels, *levels["properties"].values()):
        part[STATES] = "typos"
    for name in ("freshness", "latency", "retention", "frequency"):
        levels["properties"][name][STATES] = "times"
    _permit_quality_without_type(parts)
    return schema


def _permit_quality_without_type(parts: list[dict[str, Any]]) -> None:
    """`if` also matches a rule without a `type`, and would require the keys of all types."""
    for part in parts:
        condition = part.get("if", {})
        for alternative in condition.get("anyOf", [condition]):
            if "type" in alternative.get("properties", {}):
                alternative["required"] = ["type"]
        # The `rule` of 1.1 is the `metric` of 1.2.
        if part.get("then", {}).get("required") == ["metric"]:
            part["then"].pop("required")
            part["then"]["anyOf"] = [{"required": ["metric"]}, {"required": ["rule"]}]


SCHEMAS = {"odcs": odcs_schema, "dcs": dcs_schema}


def schema_text(name: str) -> str:
    """The schema of a standard as its file contains it."""
    return json.dumps(SCHEMAS[name](), indent=1, ensure_ascii=False) + "\n"


def stored_at(name: str) -> Path:
    """The file of a schema."""
    return Path(dqx_airflow.contracts.__file__).with_name("schemas") / f"{name}.schema.json"


if __name__ == "__main__":
    for standard in SCHEMAS:
        stored_at(standard).write_text(schema_text(standard), encoding="utf-8")
