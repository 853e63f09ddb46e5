"""Logical types of ODCS, and whether physical types agree with them."""

from __future__ import annotations

import re

from dqx_airflow.contracts.database_types import PhysicalType, physical_type
from dqx_airflow.contracts.field_types import types_named
from dqx_airflow.contracts.mistyped_types import meant_type
from dqx_airflow.metrics.types import Family, family_of

SPARK_TYPE = "sparkType"
"""The custom property with the type in Spark, where the physical type of the database says less."""
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
_FLAG = re.compile(r"tinyint\s*\(\s*1\s*\)", re.IGNORECASE)
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


def read_physical_type(
    written: str, logical: str | None, sql_dialect: str | None, *, is_spark: bool
) -> PhysicalType | None:
    """The Spark type for a physical type; None if there is none.

    `tinyint(1)` of MySQL is a boolean in Spark, as in most other tools that copy tables from there,
    unless the logical type is a number.
    """
    physical = physical_type(written, sql_dialect, is_spark=is_spark)
    if logical in ("integer", "number") and _FLAG.fullmatch(written.strip()):
        return PhysicalType("tinyint")
    return physical


def meant_physical_type(
    written: str, logical: str | None, sql_dialect: str | None, *, is_spark: bool
) -> str | None:
    """The physical type of which a text is probably a typo, if there is one."""

    def is_type(text: str) -> bool:
        if logical is not None and names_nested(logical, text):
            return True
        return physical_type(text, sql_dialect, is_spark=is_spark) is not None

    return meant_type(written, is_type)


def _word(written: str) -> str:
    return re.split(r"[\s<(\[]", written.strip().lower(), maxsplit=1)[0]
