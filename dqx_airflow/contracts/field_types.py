"""The types of fields: their names in other languages, and how Spark holds their values.

The names are those of `types.md`, which has a row for each type.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from dqx_airflow.contracts.model import Field, Model, column_path


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
