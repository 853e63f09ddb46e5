"""Tables in the notation of cases: columns with types, then a line per row; and as Spark frames.

    name: string | price: double | tags: array<string>
    "a \\"b\\""  | NaN           | ["x", null]
    NULL         | -0.0          | NULL

Strings and nested values are JSON, in which maps and structs are objects; everything else is as it
is usually written. A name that holds a space, a colon or a bar stands in backticks.
"""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from dqx_airflow.metrics.types import fields_of, parts_of
from dqx_airflow.plan.in_memory.table import Table

_COLUMN = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>[^\s:|`]+))\s*:(?P<type>[^|]+)\|?")
_CELL = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^|"])+')


def read_table(text: str) -> Table:
    header, *lines = text.splitlines()
    types = read_types(header)
    return Table.typed(types, [_row(line, list(types.values())) for line in lines])


def read_types(header: str) -> dict[str, str]:
    """The columns with their types."""
    columns = list(_COLUMN.finditer(header))
    assert "".join(found[0] for found in columns) == header, f"not a header: {header}"
    return {
        found["name"] or found["quoted"].replace("``", "`"): found["type"].strip()
        for found in columns
    }


def _row(line: str, types: list[str]) -> list[Any]:
    cells = [cell.strip() for cell in _CELL.findall(line)]
    assert len(cells) == len(types), f"{len(cells)} cells for {len(types)} columns: {line}"
    return [_value(cell, type_) for cell, type_ in zip(cells, types, strict=True)]


def _value(text: str, spark_type: str) -> Any:
    if text == "NULL":
        return None
    if text.startswith(('"', "[", "{")):
        return _converted(json.loads(text), spark_type)
    return _converted(text, spark_type)


def _converted(value: Any, spark_type: str) -> Any:
    if value is None:
        return None
    match re.split(r"[(<]", spark_type, maxsplit=1)[0]:
        case "tinyint" | "smallint" | "int" | "bigint":
            return int(value)
        case "float" | "double":
            return float(value)
        case "decimal":
            return Decimal(str(value))
        case "boolean":
            return {"true": True, "false": False}[str(value).lower()]
        case "date":
            return date.fromisoformat(value)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(value.replace("Z", "+00:00"))
        case "binary":
            return bytes.fromhex(value)
        case "array":
            return [_converted(item, *parts_of(spark_type)) for item in value]
        case "map":
            key, inner = parts_of(spark_type)
            return {_converted(k, key): _converted(item, inner) for k, item in value.items()}
        case "struct":
            inner_types = fields_of(spark_type)
            return {name: _converted(value[name], inner_types[name]) for name in value}
        case _:
            return value


def frame_of(spark: Any, table: Table) -> Any:
    """The table as a view of a session would hold it.

    Spark keeps what comes from Arrow as rows of its own; rows of Python take a quarter more time.
    Arrow's way in has no columns of type void.
    """
    from dqx_airflow.engine.session.spark_versions import takes_arrow

    types = [field.type for field in table.fields]
    if takes_arrow() and not any("void" in type_ for type_ in types):
        return spark.createDataFrame(arrow_of(table), schema_of(table))
    rows = [tuple(map(_in_spark, row, types)) for row in table.rows]
    return spark.createDataFrame(rows, schema_of(table))


def schema_of(table: Table) -> Any:
    from pyspark.sql.types import StructField, StructType

    from dqx_airflow.engine.session.spark_versions import type_named

    types = ((field.name, type_named(field.type)) for field in table.fields)
    return StructType([StructField(name, type_) for name, type_ in types])


def _in_spark(value: Any, spark_type: str) -> Any:
    """The value with all maps in it as Spark takes them."""
    match value:
        case dict():
            types = fields_of(spark_type)
            return {name: _in_spark(inner, types[name]) for name, inner in value.items()}
        case tuple() if spark_type.startswith("map<"):
            inner_type = parts_of(spark_type)[1]
            return {key: _in_spark(inner, inner_type) for key, inner in value}
        case tuple():
            return [_in_spark(item, *parts_of(spark_type)) for item in value]
        case _:
            return value


def arrow_of(table: Table) -> Any:
    import pyarrow

    from dqx_airflow.engine.session.spark_versions import arrow_schema

    schema = arrow_schema(schema_of(table))
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.fields)
    arrays = [pyarrow.array(c, item.type) for c, item in zip(columns, schema, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
