"""Logical types of ODCS, and whether physical types agree with them."""

from __future__ import annotations

import re

from dqx_airflow.contracts.field_types import types_named
from dqx_airflow.metrics.types import Family, family_of

_DOCUMENT_WORDS = ("json", "jsonb", "variant", "super")
_NESTED_WORDS = {
    "array": ("array", "list", "repeated", *_DOCUMENT_WORDS),
    "map": ("map", "object", *_DOCUMENT_WORDS),
    "object": ("struct", "object", "record", "row", "map", *_DOCUMENT_WORDS),
    "vector": ("vector", "array"),
    "string": _DOCUMENT_WORDS,
}
"""Physical types that state no more than a logical type does, by the logical type."""
_STRUCTS = {"struct", "record", "row"}
TIMES = ("date", "timestamp", "time")
"""Logical types of dates and times."""
_FAMILY = {
    "string": Family.TEXT,
    "date": Family.TIME,
    "timestamp": Family.TIME,
    "number": Family.NUMBER,
    "integer": Family.NUMBER,
    "boolean": Family.BOOLEAN,
}


def logical_type(word: str | None) -> str | None:
    """The Spark type for a logical type, or a word for several; None if Spark has none."""
    return types_named("ODCS").get(word) if word is not None else None


def agrees(logical: str, spark_type: str) -> bool:
    """Whether values of a Spark type are values of a logical type."""
    name = re.split(r"[<(]", spark_type, maxsplit=1)[0]
    if name == "binary":  # without a logical type
        return logical == "string"
    if logical in _FAMILY:
        family = Family.NUMBER if name == "number" else family_of(spark_type)
        return family is _FAMILY[logical]
    return name == types_named("ODCS").get(logical) or (logical == "object" and name == "map")


def names_nested(logical: str, written: str) -> bool:
    """True for a physical type that only means nested values, such as `RECORD`."""
    return _word(written) in _NESTED_WORDS.get(logical, ())


def may_hold_documents(logical: str, written: str) -> bool:
    """Whether a column of a physical type may hold an object or an array as JSON in a string or a
    variant, or an object as a map."""
    word = _word(written)
    return word not in _STRUCTS if logical == "object" else word in _DOCUMENT_WORDS


def narrower(logical: str, spark_type: str) -> str:
    """The narrower of a logical and a physical type, if both are known: a `NUMBER` that is an
    integer."""
    return "whole_number" if (logical, spark_type) == ("integer", "number") else spark_type


def _word(written: str) -> str:
    return re.split(r"[\s<(\[]", written.strip().lower(), maxsplit=1)[0]
