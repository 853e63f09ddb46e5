"""What a table demands of the values of its rows, beyond their types: NOT NULL, also within
structs, arrays and maps, and the lengths of `char(n)` and `varchar(n)`.

Files that break such a demand can be committed, but not read: Spark has 0 for a NULL where the
table has none. So rows are compared with all demands before they are written, whoever writes them:
Delta itself enforces none within arrays and maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from dqx_airflow.engine.sources.value_forms import CHAR_TYPE
from dqx_airflow.metrics.sql import quote_name
from dqx_airflow.metrics.types import fields_of, parts_of

_LENGTHS = {"varchar": "length({})", "char": "length(rtrim({}))"}
"""The length that is limited: the spaces that fill up a `char(n)` do not count."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand of a table.

    :param column: the column that it is about.
    :param broken: what is wrong with rows that break it.
    :param condition: Spark SQL that is true for these rows.
    """

    column: str
    broken: str
    condition: str


def demands_on_values(struct: StructType) -> Iterator[Demand]:
    """All demands of a table with these columns."""
    for field in struct.fields:
        name, kind = quote_name(field.name), field.metadata.get(CHAR_TYPE, "")
        within = _within(name, field.dataType, kind, field.name, is_nullable=field.nullable)
        for broken, condition in within:
            yield Demand(field.name, broken, condition)


def _within(
    value: str, held: DataType, kind: str, place: str, *, is_nullable: bool, depth: int = 0
) -> Iterator[tuple[str, str]]:
    """What is wrong with a value that breaks a demand, and Spark SQL that is true for it.

    :param held: the type of the value.
    :param kind: its type in the table, if it is spelled otherwise: `array<char(5)>`.
    """
    if not is_nullable:
        yield f"'{place}' is NOT NULL, and rows have NULL", f"{value} IS NULL"
    name, parts = kind.partition("(")[0], parts_of(kind)
    match held:
        case StructType(fields=fields):
            kinds = [*fields_of(kind).values()] or [""] * len(fields)
            for field, part in zip(fields, kinds, strict=True):
                path, below = f"{value}.{quote_name(field.name)}", f"{place}.{field.name}"
                for broken, sql in _within(
                    path, field.dataType, part, below, is_nullable=field.nullable, depth=depth
                ):
                    yield broken, f"({value} IS NOT NULL AND {sql})"
        case ArrayType(elementType=item, containsNull=may_be_null):
            part = parts[0] if parts else ""
            yield from _among(value, item, part, f"{place}[item]", may_be_null, depth)
        case MapType(keyType=key, valueType=item, valueContainsNull=may_be_null):
            of_key, of_value = parts or ("", "")
            keys, values = f"map_keys({value})", f"map_values({value})"
            yield from _among(keys, key, of_key, f"{place}[key]", True, depth)
            yield from _among(values, item, of_value, f"{place}[value]", may_be_null, depth)
        case _ if name in _LENGTHS and parts:
            length = _LENGTHS[name].format(value)
            yield f"'{place}' is {kind}, and rows have longer strings", f"{length} > {parts[0]}"


def _among(
    array: str, item: DataType, kind: str, place: str, may_be_null: bool, depth: int
) -> Iterator[tuple[str, str]]:
    """What is wrong with the items of an array that break a demand, as `_within` yields it."""
    one = f"x{depth}"
    for broken, sql in _within(one, item, kind, place, is_nullable=may_be_null, depth=depth + 1):
        yield broken, f"exists({array}, {one} -> {sql})"
