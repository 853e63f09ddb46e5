"""The types of fields: their names in other languages, their representation in Spark, and the types
of expressions in the SQL of a contract.

The names are listed in `types.md`, which has a row for each type.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files

from dqx_airflow.contracts.model import Field, Model, column_path
from dqx_airflow.metrics import types


@cache
def names_in(column: str) -> dict[str, str]:
    """The cells of a column of the table, by their type."""
    text = files(__package__).joinpath("types.md").read_text("utf-8")
    heads, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    )
    place = heads.index(column)
    return {row[0]: row[place] for row in rows if row[place]}


@cache
def types_named(column: str) -> dict[str, str]:
    """The types by the names that a column of the table lists."""
    cells = names_in(column).items()
    return {name: spark_type for spark_type, names in cells for name in names.split(", ")}


@cache
def narrower_types(spark_type: str) -> tuple[str, ...]:
    """The types that are narrower than a type, except for those that depend on sizes."""
    return tuple(names_in("widened from").get(spark_type, "").split(", "))


def spark_schema(model: Model) -> str:
    """The columns of a model as Spark's DDL: `id bigint, price double`."""
    return ", ".join(f"{column_path(item.name)} {spark_type(item)}" for item in model.fields)


def spark_type(item: Field) -> str:
    """A Spark type that holds the values of a field; the widest of several."""
    match item.type:
        case "array":
            return f"array<{spark_type(item.items) if item.items else 'string'}>"
        case "map":
            key = spark_type(item.keys) if item.keys else "string"
            return f"map<{key},{spark_type(item.values) if item.values else 'string'}>"
        case "struct":
            inner = ",".join(f"{column_path(part.name)}:{spark_type(part)}" for part in item.fields)
            return f"struct<{inner}>" if inner else "string"
        case kind:
            return names_in("held as").get(kind or "any") or str(kind)


NUMBER_WORDS = ("number", "whole_number")


def spark_type_of(text: str) -> str | None:
    """A Spark type as spelled in schemas: `bigint` for `LONG`; None if Spark has no such type."""
    try:
        return types.canonical_type(text)
    except types.TypeTextError:
        return None


def is_spark_type(text: str) -> bool:
    """Whether a text is a type of Spark, as spelled in schemas."""
    return spark_type_of(text) is not None


def with_type(item: Field, spark_type: str) -> Field:
    """The field with a Spark type; the fields, items, keys and values of a nested type become
    fields."""
    parts = types.parts_of(spark_type)
    match spark_type.partition("<")[0]:
        case "array":
            return replace(item, type="array", items=_part(item, "[]", parts[0]))
        case "map":
            keys = _part(item, "{key}", parts[0])
            values = _part(item, "{value}", parts[1])
            return replace(item, type="map", keys=keys, values=values)
        case "struct":
            inner = types.fields_of(spark_type).items()
            fields = (_part(item, f".{column_path(name)}", kind, name) for name, kind in inner)
            return replace(item, type="struct", fields=tuple(fields))
    return replace(item, type=spark_type)


def most_digits(spark_type: str | None) -> int:
    """The maximum number of digits of a decimal; of the longest decimal for every other type."""
    if spark_type is not None and spark_type.startswith("decimal"):
        return int(types.parts_of(spark_type)[0])
    return types.LONGEST_DECIMAL


def _part(item: Field, mark: str, spark_type: str, name: str | None = None) -> Field:
    part = Field(mark if name is None else name, item.path + mark, None, item.span, spark_type)
    return with_type(part, spark_type)
