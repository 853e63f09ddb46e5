"""The errors of a JSON Schema in readable form, each with its position."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from dqx_airflow.contracts.source import yaml_document
from dqx_airflow.contracts.source.unknown_keys import meant_key
from dqx_airflow.contracts.source.yaml_document import Node, show_path
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean

_TYPE_NAMES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_LONGEST = 60


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a dialect. Those of the standards were written by `tools/schemas`."""
    text = files(__package__).joinpath(f"schemas/{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def schema_errors(root: Node, schema: Mapping[str, Any]) -> tuple[Diagnostic, ...]:
    """All reasons why a document is invalid, in its order."""
    from jsonschema.validators import validator_for

    # A schema may name a file next to it; nothing is ever downloaded.
    validator = validator_for(schema)(schema)
    diagnostics = {}
    for error in validator.iter_errors(yaml_document.plain(root)):
        for cause in _causes(error):
            diagnostic = _diagnostic(root, cause)
            diagnostics[diagnostic.span, diagnostic.message] = diagnostic
    return tuple(sorted(diagnostics.values(), key=lambda item: (item.span.line, item.span.column)))


def _causes(error: Any) -> Iterator[Any]:
    """The errors of one of several alternatives: the one that fits best."""
    if error.validator not in ("anyOf", "oneOf") or not error.context:
        yield error
        return
    branches: dict[Any, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)
    # An alternative of another type was not meant at all.
    meant = [
        errors
        for errors in branches.values()
        if not any(cause.validator == "type" and not cause.relative_path for cause in errors)
    ]
    if not meant:
        yield error
        return
    for inner in min(meant, key=len):
        yield from _causes(inner)


def _diagnostic(root: Node, error: Any) -> Diagnostic:
    path = tuple(error.absolute_path)
    node = yaml_document.find(root, path) or root
    span, where = node.span, show_path(path) or "the document"
    wanted, actual = error.validator_value, error.instance
    match error.validator:
        case "required":
            missing = [key for key in wanted if key not in actual]
            keys = ", ".join(f"'{key}'" for key in missing)
            known = error.schema.get("properties", {})
            slips = (key for key in actual if key not in known and meant_key(key, missing))
            slip = next(slips, None)
            if slip is not None and isinstance(node, yaml_document.Mapping):
                meant = meant_key(slip, missing)
                return Diagnostic(
                    f"{where} has no '{meant}', and the key '{slip}' is unknown",
                    node.span_of(slip),
                    "E405",
                    help=f"write '{meant}' instead of '{slip}'",
                )
            return Diagnostic(f"{where} has no {keys}", span, "E405", help=f"add {keys}")
        case "type":
            names = [wanted] if isinstance(wanted, str) else wanted
            meant = " or ".join(_TYPE_NAMES.get(name, name) for name in names)
            message = f"{where} is {_shown(actual)}, not {meant}"
            hint = "put it in quotes" if names == ["string"] and not _is_nested(actual) else None
            return Diagnostic(message, span, "E405", help=hint)
        case "enum" | "const":
            choices = [str(item) for item in (wanted if error.validator == "enum" else [wanted])]
            message = f"{where}: {_shown(actual)} is not an allowed value"
            return Diagnostic(message, span, "E405", help=did_you_mean(str(actual), choices))
        case "additionalProperties" | "unevaluatedProperties":
            properties = list(error.schema.get("properties", ()))
            patterns = error.schema.get("patternProperties", ())
            extra = [
                key
                for key in actual
                if key not in properties and not any(re.search(name, key) for name in patterns)
            ]
            place = (
                node.span_of(extra[0])
                if extra and isinstance(node, yaml_document.Mapping)
                else span
            )
            keys = ", ".join(f"'{key}'" for key in extra)
            message = f"{where} has unknown keys: {keys}"
            meant = meant_key(extra[0], properties) if extra else None
            hint = f"did you mean '{meant}'?" if meant else did_you_mean("", properties)
            return Diagnostic(message, place, "E405", help=hint)
        case "not" if list(wanted) == ["required"]:
            keys = ", ".join(f"'{key}'" for key in wanted["required"])
            return Diagnostic(f"{where} may not have {keys}", span, "E405", help="remove it")
        case "uniqueItems":
            return Diagnostic(f"{where} has a duplicate item", span, "E405", help="remove it")
        case "pattern":
            message = f"{where}: {_shown(actual)} does not match {wanted}"
            examples = error.schema.get("examples") or [None]
            hint = f"write it as {examples[0]}" if examples[0] is not None else None
            return Diagnostic(message, span, "E405", help=hint)
        case "minItems" | "minLength" | "minProperties":
            return Diagnostic(f"{where} is too short: the minimum is {wanted}", span, "E405")
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            side = "small" if error.validator.lower().endswith("minimum") else "large"
            return Diagnostic(f"{where} is too {side}: the limit is {wanted}", span, "E405")
        case _:
            first = str(error.message).splitlines()[0]
            summary = first if len(first) <= 2 * _LONGEST else f"{_shown(actual)} is not valid"
            return Diagnostic(f"{where}: {summary}", span, "E405")


def _is_nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return f"'{short}'" if isinstance(value, str) else short
