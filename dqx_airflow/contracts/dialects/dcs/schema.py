"""The JSON Schema of the Data Contract Specification, as all versions that are read permit it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

VERSIONS = ("0.9.0", "0.9.1", "0.9.2", "0.9.3", "1.1.0", "1.2.0", "1.2.1")

_OF_EVERY_RULE = ("id", "name", "dimension", "severity", "tags", "engine", "specification")
"""What a rule of `quality` may say of itself, as the standard after this one has it."""

_SCALAR = {"type": ["string", "number", "boolean", "null"]}


@cache
def load_schema() -> dict[str, Any]:
    """The schema of the newest version, less what it forbids for no reason or forbids by mistake.

    A version that is not known is told apart from what does not fit, so its list is not in it.
    """
    text = files("datacontract_specification").joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    properties = schema["properties"]
    properties["dataContractSpecification"] = {"type": ["string", "number"]}
    # "such as a UUID, URN, slug, string, or number", says the specification.
    properties["id"] = {"type": ["string", "number"]}
    # These stood beside the servers in 0.9.
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
    # A definition of 0.9 said for which domain it was.
    properties["definitions"]["additionalProperties"]["properties"] |= {"domain": {}, "name": {}}
    for owner in (model["fields"], properties["definitions"]):
        described = owner["additionalProperties"]["properties"]
        # Numbers are listed by contracts whose field is one; examples are of the field's type.
        described["enum"] = {"type": "array", "items": _SCALAR}
        described["example"] = {}
    properties["definitions"]["additionalProperties"].pop("required")
    properties["definitions"]["additionalProperties"]["anyOf"] = [
        {"required": ["type"]},
        {"required": ["$ref"]},
    ]
    parts = schema["$defs"]["Quality"]["allOf"]
    parts[0]["properties"] |= {key: {} for key in _OF_EVERY_RULE}
    _permit_quality_without_type(parts)
    return schema


def _permit_quality_without_type(parts: list[dict[str, Any]]) -> None:
    """`if` holds of a rule without a `type` as well, and would ask for the keys of all types."""
    for part in parts:
        condition = part.get("if", {})
        for alternative in condition.get("anyOf", [condition]):
            if "type" in alternative.get("properties", {}):
                alternative["required"] = ["type"]
        # The `rule` of 1.1 is the `metric` of 1.2.
        if part.get("then", {}).get("required") == ["metric"]:
            part["then"].pop("required")
            part["then"]["anyOf"] = [{"required": ["metric"]}, {"required": ["rule"]}]
