"""Equal values in one form: strings of `char(n)`, maps, and on Sail also zeros, NaN and structs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from dqx_airflow.engine.sources.dataset import OpenDataset, StoredForm
from dqx_airflow.metrics.spark_values import FLOATING
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import parts_of

CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of the metadata with the type of a column that Spark takes for a string."""
_CHAR = re.compile(r"\bchar\([0-9]+\)")
_MAP = re.compile("map<")
_TYPES_OF_SAIL = re.compile(r"map<|struct<|\b(float|double)\b")


_DOUBLED = "raise_error('a map holds a key twice: write each key once')"


def in_one_form(opened: OpenDataset, *, of_sail: bool = False) -> OpenDataset:
    """The dataset with equal values in the same form, also in nested columns.

    Values of `char(n)` lose the spaces up to the length n, which Spark ignores in some comparisons
    and not in others. Maps have their entries in the order of the keys: otherwise Spark would take
    them for different values. A map that holds a key twice is an error where it is read.

    :param of_sail: also zeros and NaN, of which Sail knows several, and fields of a missing struct.
    """
    rewritten: dict[str, Column] = {}
    fields: list[StructField] = []
    char_types: dict[str, str] = {}
    for column in opened.struct.fields:
        kind = column.metadata.get(CHAR_TYPE, "")
        if kind.startswith("char("):
            char_types[column.name] = kind
        name = quote_name(column.name)
        sql = _in_one_form(name, column.dataType, kind, of_sail)
        if sql == name:
            fields.append(column)
        else:
            rewritten[column.name] = F.expr(sql)
            fields.append(StructField(column.name, column.dataType, column.nullable))
    if not rewritten:
        return opened
    changed = opened.with_frames(lambda frame: frame.withColumns(rewritten))
    stored = _stored(opened, rewritten) if of_sail else None
    return replace(changed, struct=StructType(fields), char_types=char_types, stored=stored)


def _stored(opened: OpenDataset, rewritten: Mapping[str, Column]) -> StoredForm:
    """The frames that also hold the values as the files have them.

    A map that holds a key twice stays an error: the value is asked for its other form.
    """
    columns = {name: f"dqx: stored {name}" for name in rewritten}
    kept = {
        columns[name]: F.when(
            form.isNull() & F.expr(f"{quote_name(name)} IS NOT NULL"), None
        ).otherwise(F.expr(quote_name(name)))
        for name, form in rewritten.items()
    }
    return StoredForm(lambda dates: opened.read(dates).withColumns({**kept, **rewritten}), columns)


def form_of_sail(value: str, held: DataType) -> str:
    """Spark SQL for a value in the form that all values which equal it have on Sail."""
    return _in_one_form(value, held, "", True)


def _in_one_form(value: str, held: DataType, kind: str, of_sail: bool) -> str:
    """Spark SQL for a value in the form of all values that equal it.

    :param held: its type in the frame.
    :param kind: its type in the table, if the frame has another one: `char(5)` for a string.
    """
    wanted = _TYPES_OF_SAIL if of_sail else _MAP
    if not _CHAR.search(kind) and not wanted.search(held.simpleString()):
        return value
    parts = parts_of(kind)
    match held:
        case StructType(fields=fields):
            present, end = (f"CASE WHEN {value} IS NOT NULL THEN ", " END") if of_sail else ("", "")
            inner = (
                f"{quote_literal(field.name)}, "
                + _in_one_form(
                    f"{present}{value}.{quote_name(field.name)}{end}", field.dataType, part, of_sail
                )
                for field, part in zip(fields, parts or [""] * len(fields), strict=True)
            )
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(inner)}) END"
        case ArrayType():
            item = _in_one_form("x", held.elementType, parts[0] if parts else "", of_sail)
            return f"transform({value}, x -> {item})"
        case MapType():
            kinds = parts or ("", "")
            key = _in_one_form("x.key", held.keyType, kinds[0], of_sail)
            item = _in_one_form("x.value", held.valueType, kinds[1], of_sail)
            entries = f"map_entries({value})"
            if (key, item) != ("x.key", "x.value"):
                entries = f"transform({entries}, x -> struct({key} AS key, {item} AS value))"
            order = "CASE WHEN x.key < y.key THEN -1 WHEN x.key > y.key THEN 1 ELSE 0 END"
            rebuilt = f"map_from_entries(array_sort({entries}, (x, y) -> {order}))"
            # Whatever the session does with such keys: it may be set to drop all but the last.
            is_doubled = f"size(array_distinct(map_keys({value}))) < size({value})"
            return f"CASE WHEN {is_doubled} THEN {_DOUBLED} ELSE {rebuilt} END"
        case _ if (name := held.simpleString()) in FLOATING:
            return f"CASE WHEN isnan({value}) THEN CAST('NaN' AS {name}) ELSE {value} + 0 END"
        case _:
            return f"rtrim({value})"
