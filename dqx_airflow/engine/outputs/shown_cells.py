"""The display of values, as Spark SQL: masked, and truncated if they may be long."""

from __future__ import annotations

from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.values import MASK

_LONGEST_TEXT = 200
_LONGEST_BINARY = 32


def shown_cell(value: str, spark_type: str, *, is_masked: bool) -> str:
    """The display of a value of a type."""
    if is_masked:
        return f"CASE WHEN {value} IS NOT NULL THEN {quote_literal(MASK)} END"
    match family_of(spark_type):
        case Family.TEXT:
            return cut(value)
        case Family.OTHER if spark_type == "binary":
            return f"hex(substring({value}, 1, {_LONGEST_BINARY}))"
        case Family.ARRAY | Family.MAP:
            return cut(f"to_json({value})")
        case Family.OTHER if spark_type.startswith("struct"):
            return cut(f"to_json({value})")
        case Family.OTHER:
            return cut(f"CAST({value} AS STRING)")
        case _:
            return value


def cut(text: str) -> str:
    """The string, or its beginning."""
    beginning = f"concat(left({text}, {_LONGEST_TEXT - 1}), '\N{HORIZONTAL ELLIPSIS}')"
    return f"CASE WHEN char_length({text}) > {_LONGEST_TEXT} THEN {beginning} ELSE {text} END"
