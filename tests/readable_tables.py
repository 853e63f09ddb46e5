"""Tables in the notation of test cases: columns with types, then a line per row.

    name: string | price: double | tags: array<string>
    "a \\"b\\""  | NaN           | ["x", null]
    NULL         | -0.0          | NULL

Text and nested values are JSON, in which maps and structs are objects; everything else is as it
is usually written. A name that holds a blank, a colon or a bar stands in backticks.
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
