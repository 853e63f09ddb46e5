"""The JSON Schemas of the dialects, and the errors of a document by its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from dqx_airflow.contracts.document import Mapping, Node, find, plain_value, show_path
from dqx_airflow.contracts.unknown_keys import meant_key
from dqx_airflow.diagnostics.diagnostic import Diagnostic, did_you_mean
from dqx_airflow.values import Span, exact

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
NEWER = "x-newer"
"""The key in a schema with the keys that only the newest version of the standard has."""
_NEWEST_ODCS = "v3.2.0"


@cache
def load_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a dialect. `tools/schemas` wrote the schemas of the standards."""
    text = files(__package__).joinpath(f"schemas/{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def schema_errors(root: Node, name: str) -> tuple[Diagnostic, ...]:
    """All reasons why a document is invalid by the schema of this name, in its order."""
    errors = validator_of(name).iter_errors(plain_value(root))
    found = (_diagnostic(root, cause) for error in errors for cause in _causes(error))
    once = {(diagnostic.span, diagnostic.message): diagnostic for diagnostic in found}
    return tuple(sorted(once.values(), key=lambda item: (item.span.line, item.span.column)))


@cache
def validator_of(name: str) -> Any:
    """The validator of a schema. JSON has no NaN or infinite number."""
    from jsonschema.validators import extend, validator_for

    schema = load_schema(name)
    known = validator_for(schema)
    types = known.TYPE_CHECKER.redefine("number", lambda _, value: exact.is_finite_number(value))
    # A schema may name a file next to it; nothing is ever downloaded.
    return extend(known, type_checker=types)(schema)  # type: ignore[no-untyped-call]


def _causes(error: Any) -> Iterator[Any]:
    """The errors of the alternative in the schema that fits best."""
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


@dataclass(frozen=True, slots=True)
class _Error:
    """An error of the validator at a node of the document."""

    node: Node
    path: str
    wanted: Any
    """The value of the keyword in the schema: the maximum of `maximum`."""
    actual: Any
    schema: MappingType[str, Any]
    """The schema with the keyword."""

    @property
    def shown(self) -> str:
        return _shown_value(self.actual)

    def diagnostic(
        self, message: str, help: str | None = None, span: Span | None = None
    ) -> Diagnostic:
        return Diagnostic(message, span or self.node.span, "E405", help=help)


def _diagnostic(root: Node, error: Any) -> Diagnostic:
    """The diagnostic of an error of the validator."""
    path = tuple(error.absolute_path)
    node = find(root, path) or root
    where = show_path(path) or "the document"
    found = _Error(node, where, error.validator_value, error.instance, error.schema)
    draw = _DIAGNOSTICS.get(error.validator)
    diagnostic = draw(found) if draw is not None else None
    if diagnostic is not None:
        return diagnostic
    first = str(error.message).splitlines()[0]
    if len(first) > 2 * _LONGEST:
        first = f"{found.shown} is not valid"
    return found.diagnostic(f"{where}: {first}")


def _missing_keys(error: _Error) -> Diagnostic:
    missing = [key for key in error.wanted if key not in error.actual]
    known = error.schema.get("properties", {})
    if isinstance(error.node, Mapping):
        for key in error.actual:
            meant = meant_key(key, missing) if key not in known else None
            if meant is not None:
                return error.diagnostic(
                    f"{error.path} has no '{meant}', and the key '{key}' is unknown",
                    f"write '{meant}' instead of '{key}'",
                    error.node.span_of(key),
                )
    keys = _quoted(missing)
    return error.diagnostic(f"{error.path} has no {keys}", f"add {keys}")


def _wrong_type(error: _Error) -> Diagnostic:
    names = [error.wanted] if isinstance(error.wanted, str) else error.wanted
    wanted = " or ".join(_TYPE_NAMES.get(name, name) for name in names)
    is_unquoted = names == ["string"] and not isinstance(error.actual, dict | list)
    message = f"{error.path} is {error.shown}, not {wanted}"
    return error.diagnostic(message, "put it in quotes" if is_unquoted else None)


def _not_a_choice(error: _Error) -> Diagnostic:
    choices = [str(choice) for choice in error.wanted]
    message = f"{error.path}: {error.shown} is not an allowed value"
    return error.diagnostic(message, did_you_mean(str(error.actual), choices))


def _not_the_constant(error: _Error) -> Diagnostic:
    return _not_a_choice(replace(error, wanted=[error.wanted]))


def _extra_keys(error: _Error) -> Diagnostic:
    known = list(error.schema.get("properties", ()))
    patterns = error.schema.get("patternProperties", ())
    extra = [
        key
        for key in error.actual
        if key not in known and not any(re.search(name, key) for name in patterns)
    ]
    message = f"{error.path} has unknown keys: {_quoted(extra)}"
    if not extra:
        return error.diagnostic(message, did_you_mean("", known))
    meant = meant_key(extra[0], known)
    help_line: str | None
    if extra[0] in error.schema.get(NEWER, ()):
        help_line = f"it is a key since ODCS 3.2: write `apiVersion: {_NEWEST_ODCS}`"
    elif meant is not None:
        help_line = f"did you mean '{meant}'?"
    else:
        help_line = did_you_mean("", known)
    span = error.node.span_of(extra[0]) if isinstance(error.node, Mapping) else None
    return error.diagnostic(message, help_line, span)


def _forbidden_keys(error: _Error) -> Diagnostic | None:
    """The diagnostic of keys that are forbidden; None for another condition that is negated."""
    if list(error.wanted) != ["required"]:
        return None
    keys = _quoted(error.wanted["required"])
    return error.diagnostic(f"{error.path} may not have {keys}", "remove it")


def _duplicate_items(error: _Error) -> Diagnostic:
    return error.diagnostic(f"{error.path} has a duplicate item", "remove it")


def _wrong_form(error: _Error) -> Diagnostic:
    examples = error.schema.get("examples", ())
    help_line = f"write it as {examples[0]}" if examples else None
    message = f"{error.path}: {error.shown} does not match {error.wanted}"
    return error.diagnostic(message, help_line)


def _too_short(error: _Error) -> Diagnostic:
    return error.diagnostic(f"{error.path} is too short: the minimum is {error.wanted}")


def _too_small(error: _Error) -> Diagnostic:
    return error.diagnostic(f"{error.path} is too small: the limit is {error.wanted}")


def _too_large(error: _Error) -> Diagnostic:
    return error.diagnostic(f"{error.path} is too large: the limit is {error.wanted}")


_DIAGNOSTICS: dict[str, Callable[[_Error], Diagnostic | None]] = {
    "required": _missing_keys,
    "type": _wrong_type,
    "enum": _not_a_choice,
    "const": _not_the_constant,
    "additionalProperties": _extra_keys,
    "unevaluatedProperties": _extra_keys,
    "not": _forbidden_keys,
    "uniqueItems": _duplicate_items,
    "pattern": _wrong_form,
    "minItems": _too_short,
    "minLength": _too_short,
    "minProperties": _too_short,
    "minimum": _too_small,
    "exclusiveMinimum": _too_small,
    "maximum": _too_large,
    "exclusiveMaximum": _too_large,
}
"""The diagnostics of errors by the keyword of JSON Schema; others show the validator's message."""


def _quoted(keys: Iterable[str]) -> str:
    return ", ".join(f"'{key}'" for key in keys)


def _shown_value(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return f"'{short}'" if isinstance(value, str) else short
