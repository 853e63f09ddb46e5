"""The types of databases, by their names in SQL, as types of Spark.

`types.md` lists the names of all databases, sqlglot knows their grammar: sizes, time zones, parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dqx_airflow.contracts.field_types import spark_type_of, types_named
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, family_of, parts_of

_SPOKEN = ("postgres", None, "bigquery", "snowflake", "tsql", "oracle", "mysql", "duckdb")
"""The dialects whose types are tried if Spark has no such name, in this order."""
_UNLIMITED = 2**31 - 1
_BARE_NUMBER = re.compile(r"(?:decimal|dec|numeric|number|bignumeric|bigdecimal)", re.IGNORECASE)
_LENGTH_IN_BRACKETS = re.compile(r"(\w*char\w*)\s*\[(\d+)\]", re.IGNORECASE)


_OTHER_NAMES = ("clickhouse",)
"""Databases in which names have other meanings: `Int8` has 8 bits."""
_SIZE = re.compile(r"\s*\([^()]*\)")
_NATIONAL = re.compile(r"national\s+(?=char)", re.IGNORECASE)
_BIT_STRING = re.compile(r"bit\s+varying.*|varbit.*|bit\s*\((?!\s*1\s*\)).*", re.IGNORECASE)
"""A string of bits, which Spark does not have: `bit` and `bit(1)` are one."""


@dataclass(frozen=True, slots=True)
class PhysicalType:
    """A database type in Spark: its type there, and the maximum length of a string."""

    spark_type: str
    most_characters: int | None = None


def physical_type(written: str, sql_dialect: str | None, *, is_spark: bool) -> PhysicalType | None:
    """The Spark type for a physical type; None if there is none."""
    text = _NATIONAL.sub("", written.strip())
    if _BIT_STRING.fullmatch(text):
        return None
    if match := _LENGTH_IN_BRACKETS.fullmatch(text):
        text = f"{match[1]}({match[2]})"
    if _BARE_NUMBER.fullmatch(text):
        return PhysicalType("number")
    spark_type = spark_type_of(text)
    if is_spark and spark_type is not None:
        if family_of(spark_type) is not Family.TEXT:
            return PhysicalType(_without_lengths(spark_type))
        parts = parts_of(spark_type)
        return PhysicalType("string", int(parts[0]) if parts else None)
    if sql_dialect not in _OTHER_NAMES:
        named = types_named("databases").get(_SIZE.sub("", text).lower())
        if named is not None:
            return PhysicalType(named)
    dialects = _SPOKEN if is_spark else (sql_dialect,)
    understood = (_transpiled(text, dialect) for dialect in dialects)
    return next((physical for physical in understood if physical is not None), None)


def written_in(spark_type: str, sql_dialect: str | None) -> str:
    """The name of a Spark type in the SQL of a database; as in Spark if it is not known."""
    from dqx_airflow.dql.sql_parser import InvalidSqlError, parse_type

    known = sql_dialect if sql_dialect != "ansi" else None
    try:
        return parse_type(spark_type, "spark").sql(dialect=known)
    except InvalidSqlError:
        return spark_type


def _transpiled(text: str, sql_dialect: str | None) -> PhysicalType | None:
    from sqlglot import exp

    from dqx_airflow.dql.sql_parser import InvalidSqlError, parse_type

    try:
        data_type = parse_type(text, sql_dialect if sql_dialect != "ansi" else None)
    except InvalidSqlError:
        return None
    kind = data_type.this.name if isinstance(data_type.this, exp.DataType.Type) else ""
    sizes = [int(part.name) for part in data_type.expressions if part.name.isdigit()]
    if sizes and data_type.expressions[0].name == "*":  # Oracle: as many digits as there can be
        sizes.insert(0, LONGEST_DECIMAL)
    if kind in ("DECIMAL", "BIGDECIMAL"):
        return _decimal(sizes)
    if kind == "DATE" and sql_dialect == "oracle":
        return PhysicalType("timestamp")  # with a time of day
    named = types_named("sqlglot").get(kind)
    if named == "string" and sizes and sizes[0] < _UNLIMITED:
        return PhysicalType("string", sizes[0])
    if named is not None:
        return PhysicalType(named)
    if data_type.args.get("nested") and data_type.expressions:
        nested = spark_type_of(data_type.sql(dialect="spark"))
        return PhysicalType(_without_lengths(nested)) if nested is not None else None
    return None


_STRING_INSIDE = re.compile(r"(?<=[<,:])(?:var)?char(?:\(\d+\))?(?=[>,])")


def _without_lengths(spark_type: str) -> str:
    """A nested type whose strings are of any length, as Spark reads them."""
    return _STRING_INSIDE.sub("string", spark_type)


def _decimal(sizes: list[int]) -> PhysicalType:
    """The decimal with a precision and a scale; a number of any size if Spark has none."""
    if not sizes or sizes[0] > LONGEST_DECIMAL:
        return PhysicalType("number")
    scale = sizes[1] if len(sizes) > 1 else 0
    return PhysicalType(f"decimal({sizes[0]},{scale})")
