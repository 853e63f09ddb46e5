"""The types of columns in Parquet files, and which of them Spark reads as other values.

Spark takes the columns of all files from one of them, or from a declared schema. A file that stores
another type of the same physical one it reads without an error: the `smallint` 4464 for 70000 in
INT32, microseconds as a `bigint`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from dqx_airflow.metrics.types import decimal_size, is_covered, spelled_like
from dqx_airflow.values.files import table_rows

_NO_PARTS: Mapping[str, NestedType] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NestedType:
    """A type by its name, with the types within it: fields, `element`, or `key` and `value`."""

    name: str
    parts: Mapping[str, NestedType] = field(default_factory=lambda: _NO_PARTS)


Columns: TypeAlias = Mapping[str, NestedType]
"""The columns of a file, or of a dataset, with their types."""


@dataclass(frozen=True, slots=True)
class Misread:
    """A column, or a part of it, of which Spark reads other values than a file holds."""

    path: tuple[str, ...]
    read: str
    stored: str

    @property
    def column(self) -> str:
        return self.path[0]

    def wider(self, *, is_declared: bool) -> str | None:
        """The type to declare so that the values are read as they are; None if there is none.

        :param is_declared: true if the type that is read was declared, and not found in a file
            whose values the other one has to hold as well.
        """
        if self.stored.startswith("decimal("):
            held = self.stored
        else:
            held = next(iter(_TYPES[_in_table(self.stored)].held), self.read)
        # Spark has an interval from a note in the first file, and reads it as declared.
        is_free = is_declared or self.read.startswith("interval") or is_covered(self.read, held)
        return held if is_free and held != self.read else None


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The names of the columns in a file, those of which Spark reads other values, and the path of
    the first half float; None without one."""

    names: tuple[str, ...]
    misread: tuple[Misread, ...]
    half_float: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """The columns of a dataset as Spark reads them, compared with those in its files.

    :param as_stored: true if types that Spark lacks may be read as what is stored for them, such
        as a string for bytes, and a whole number for nanoseconds.
    """

    columns: Columns
    as_stored: bool = False
    _known: list[tuple[pq.ParquetSchema, FileColumns]] = field(default_factory=list)

    @classmethod
    def of(cls, struct: StructType, *, as_stored: bool = False) -> ReadColumns:
        return cls(columns_of(struct), as_stored)

    def compared(self, schema: pq.ParquetSchema) -> FileColumns:
        """The columns of a file. The files of a dataset are mostly alike: each schema is compared
        once.

        :raises pa.ArrowException: they have a type that Arrow does not know.
        """
        for other, found in self._known:
            if other.equals(schema):
                return found
        stored = columns_in_file(schema)
        found = FileColumns(
            tuple(stored),
            tuple(self._misread((), self.columns, stored)),
            next(_half_floats((), stored), None),
        )
        self._known.append((schema, found))
        return found

    def _misread(self, path: tuple[str, ...], read: Columns, stored: Columns) -> Iterator[Misread]:
        for name, kind in read.items():
            own = spelled_like(name, stored)
            if own is None:
                continue
            place = (*path, name)
            if kind.parts and stored[own].parts:
                yield from self._misread(place, kind.parts, stored[own].parts)
            elif is_misread(kind.name, stored[own].name, as_stored=self.as_stored):
                yield Misread(place, kind.name, stored[own].name)


def _half_floats(path: tuple[str, ...], columns: Columns) -> Iterator[tuple[str, ...]]:
    for name, kind in columns.items():
        place = (*path, name)
        if kind.name == "float16":
            yield place
        yield from _half_floats(place, kind.parts)


def columns_of(struct: StructType) -> dict[str, NestedType]:
    """The columns of a dataset as Spark reads them."""
    return {one.name: _in_spark(one.dataType) for one in struct.fields}


def _in_spark(kind: DataType) -> NestedType:
    match kind:
        case StructType():
            return NestedType("struct", columns_of(kind))
        case ArrayType():
            return NestedType("array", {"element": _in_spark(kind.elementType)})
        case MapType():
            parts = {"key": _in_spark(kind.keyType), "value": _in_spark(kind.valueType)}
            return NestedType("map", parts)
    return NestedType(kind.simpleString())


def columns_in_file(schema: pq.ParquetSchema) -> dict[str, NestedType]:
    """The columns of a Parquet file as they are stored.

    :raises pa.ArrowException: they have a type that Arrow does not know.
    """
    # Arrow finds lists and maps, however they are written. It has the same leaves in the same
    # order, but other types for some of them, which its writer has noted beside the schema.
    leaves = map(schema.column, range(len(schema)))
    return {one.name: _in_file(one.type, leaves) for one in schema.to_arrow_schema()}


def _in_file(kind: pa.DataType, leaves: Iterator[pq.ColumnSchema]) -> NestedType:
    """:param leaves: the stored columns from the first one of this type on."""
    if isinstance(kind, pa.BaseExtensionType):
        return _in_file(kind.storage_type, leaves)
    if pa.types.is_struct(kind):
        fields = map(kind.field, range(kind.num_fields))
        return NestedType("struct", {one.name: _in_file(one.type, leaves) for one in fields})
    if pa.types.is_map(kind):
        key = _in_file(kind.key_type, leaves)
        return NestedType("map", {"key": key, "value": _in_file(kind.item_type, leaves)})
    if hasattr(kind, "value_field"):  # a list of any kind
        return NestedType("array", {"element": _in_file(kind.value_type, leaves)})
    return NestedType(stored_type(next(leaves)))


_UNITS_OF_TIME = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def stored_type(leaf: pq.ColumnSchema) -> str:
    """The type of a stored column, as in the table, with the digits of a decimal."""
    logical = json.loads(leaf.logical_type.to_json())
    match logical["Type"]:
        case "Int":
            return f"{'int' if logical['isSigned'] else 'uint'}{logical['bitWidth']}"
        case "Decimal":
            return f"decimal({leaf.precision},{leaf.scale})"
        case "Time":
            return f"time({_UNITS_OF_TIME[logical['timeUnit']]})"
        case "Timestamp":
            zone = ",utc" if logical["isAdjustedToUTC"] else ""
            return f"timestamp({_UNITS_OF_TIME[logical['timeUnit']]}{zone})"
        case "None":
            return _PHYSICAL[leaf.physical_type]
        case "Null":
            return "null"
        case name:
            return str(name).lower()


_PHYSICAL = {
    **{"BOOLEAN": "boolean", "INT32": "int32", "INT64": "int64", "INT96": "int96"},
    **{"FLOAT": "float", "DOUBLE": "double", "BYTE_ARRAY": "binary"},
    "FIXED_LEN_BYTE_ARRAY": "binary",
}


@dataclass(frozen=True, slots=True)
class _StoredType:
    """A type in a file, with types of Spark: that hold its values, as which it silently reads
    others, and of these the types of what is stored."""

    held: tuple[str, ...]
    misread: tuple[str, ...]
    as_stored: tuple[str, ...]


_TYPES = {
    stored: _StoredType(*(tuple(cell.replace("-", "").split()) for cell in cells))
    for stored, *cells in table_rows(__package__, "parquet_types.txt", "types")
}


def is_misread(read: str, stored: str, *, as_stored: bool = False) -> bool:
    """True if Spark reads values in a file as others, without an error.

    :param read: a type of Spark.
    :param stored: the type in the file.
    :param as_stored: see `ReadColumns`.
    """
    row = _TYPES.get(_in_table(stored))
    name = re.split(r"[( ]", read)[0]  # all intervals are alike
    if row is None or name not in row.misread or (as_stored and name in row.as_stored):
        return False
    needed = [kind for kind in (stored, *row.held) if kind.startswith("decimal(")]
    if name != "decimal" or not needed:
        return True
    (digits, scale), (its_digits, its_scale) = decimal_size(read), decimal_size(needed[0])
    return scale < its_scale or digits - scale < its_digits - its_scale


def _in_table(stored: str) -> str:
    """A type as it is in the table: a decimal has no size there, and times have no zone."""
    if stored.startswith("decimal("):
        return "decimal"
    return stored.replace(",utc", "")
