"""The JSON Schema of the Data Contract Specification, as the union of all supported versions."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from dqx_airflow.contracts.source.unknown_keys import STATES

VERSIONS = ("0.9.0", "0.9.1", "0.9.2", "0.9.3", "1.1.0", "1.2.0", "1.2.1")

_OF_EVERY_RULE = ("id", "name", "dimension", "severity", "tags", "engine", "specification")
"""Properties of a rule of `quality`, as in the successor of the standard."""

_SCALAR = {"type": ["string", "number", "boolean", "null"]}


@cache
def load_schema() -> dict[str, Any]:
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
    for described in (parts[0], levels, *levels["properties"].values()):
        described[STATES] = "typos"
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
