"""The types of databases, by their names in SQL, as types of Spark.

`types.md` lists the names of all databases, sqlglot knows their grammar: sizes, time zones, parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dqx_airflow.contracts.field_types import spark_type_of, types_named
from dqx_airflow.metrics.types import LONGEST_DECIMAL, Family, family_of, parts_of

if TYPE_CHECKING:
    from sqlglot import Expr

DIALECTS = ("postgres", None, "bigquery", "snowflake", "tsql", "oracle", "mysql", "duckdb")
"""The dialects whose types are tried if Spark has no such name, in this order."""
_UNLIMITED = 2**31 - 1
_BARE_NUMBER = re.compile(r"(?:decimal|dec|numeric|number|bignumeric|bigdecimal)", re.IGNORECASE)
_LENGTH_IN_BRACKETS = re.compile(r"(\w*char\w*)\s*\[(\d+)\]", re.IGNORECASE)
_ARRAYS_BY_BRACKETS = ("postgres", "duckdb")
"""Databases in which `varchar[20]` is an array."""
_ARRAY = re.compile(r"(.+?)\s*(?:\[\d*\]|\sarray\s*(?:\[\d*\])?)", re.IGNORECASE | re.DOTALL)
"""An array of PostgreSQL or DuckDB, such as `integer[]`, `integer[3]` or `integer ARRAY[3]`."""
_INTERNAL_ARRAY = re.compile(r"_(\w+)")
"""An array as the catalog of PostgreSQL and its drivers spell it: `_int4`."""
_OTHER_NAMES = ("clickhouse",)
"""Databases in which names have other meanings: `Int8` has 8 bits."""
_SIZE = re.compile(r"\s*\([^()]*\)")
_ONE_SIZE = re.compile(r"\(\s*(\d+)\s*\)")
_QUOTED = re.compile(r"""[\["`](\w+)[\]"`]""")
"""A name in the quotes of its database, as scripts of SQL Server write it: `[nvarchar](50)`."""
_OF_SYSTEM = re.compile(r"^(?:pg_catalog|sys)\.", re.IGNORECASE)
_NATIONAL = re.compile(r"national\s+(?=(?:var)?char)", re.IGNORECASE)
_BIT_STRING = re.compile(
    r"bit\s+varying.*|varbit.*|bitstring|bit\s*\((?!\s*1\s*\)).*", re.IGNORECASE
)
"""A string of bits, which Spark does not have: `bit` and `bit(1)` are one, except in DuckDB."""
_OF_STORAGE = re.compile(
    r"\s+(?:(?:character set|charset|collate)\s+[\w.\"]+|auto_increment"
    r"|identity(?:\s*\([^()]*\))?|null)$",
    re.IGNORECASE,
)
"""An attribute of a column that no value could violate."""
_UNSIGNED = re.compile(r"((?:float|real)\s*(?:\([^()]*\))?)\s+unsigned", re.IGNORECASE)
"""A floating-point number of MySQL that is not negative, as sqlglot does not read it."""
_ZEROFILL = re.compile(r"\s+(?:unsigned\s+)?zerofill\b", re.IGNORECASE)
"""An attribute of numbers of MySQL, which are not negative then."""
_NOT_NULL = re.compile(r"\bnot\s+null\b", re.IGNORECASE)
_OF_PYSPARK = re.compile(r"(\w+?)type\s*(\(.*\))?", re.IGNORECASE)
"""A type of Spark by the name of its class: `StringType()`, `DecimalType(18,2)`."""
_ROUNDED = re.compile(r"\(\s*(\d+)\s*,\s*-(\d+)\s*\)")
"""The sizes of a number that is rounded to tens or more: `NUMBER(5,-2)` has up to seven digits."""

_WITH_ZONE = re.compile(
    r"timestamp_?l?tz|datetimeoffset|timestamp with(?: local)? time zone", re.IGNORECASE
)
_WITHOUT_ZONE = re.compile(
    r"timestamp(?:_?ntz|_(?:s|ms|us|ns)| without time zone)?|datetime(?:2|64)?|smalldatetime",
    re.IGNORECASE,
)
"""Timestamps as a clock on the wall shows them: in the standard of SQL `timestamp`, too."""
_INSTANTS = {
    "bigquery": ("timestamp",),
    "mysql": ("timestamp",),
    "clickhouse": ("datetime", "datetime64"),
}
"""The names without a word for a zone that are points in time nevertheless, by database."""
_INSTANTS_OF_SPARK = ("timestamp", "timestamptype")


@dataclass(frozen=True, slots=True)
class PhysicalType:
    """A database type in Spark: its type there, and the maximum length of a string."""

    spark_type: str
    most_characters: int | None = None


def physical_type(written: str, sql_dialect: str | None, *, is_spark: bool) -> PhysicalType | None:
    """The Spark type for a physical type; None if there is none."""
    text = _spelled_plainly(written)
    if _BIT_STRING.fullmatch(text) or (sql_dialect == "duckdb" and text.lower() == "bit"):
        return None
    if sql_dialect not in _ARRAYS_BY_BRACKETS:
        text = _LENGTH_IN_BRACKETS.sub(r"\1(\2)", text)
    if (element := _element_of_array(text, sql_dialect)) is not None:
        return _array_of(physical_type(element, sql_dialect, is_spark=is_spark))
    if _BARE_NUMBER.fullmatch(text):
        return PhysicalType("number")
    if is_spark and (spark_type := spark_type_of(_of_pyspark(text))) is not None:
        if family_of(spark_type) is not Family.TEXT:
            return PhysicalType(_without_lengths(spark_type))
        parts = parts_of(spark_type)
        return PhysicalType("string", int(parts[0]) if parts else None)
    if sql_dialect not in _OTHER_NAMES and (named := _named(text.lower(), sql_dialect)) is not None:
        return PhysicalType(named)
    dialects = DIALECTS if is_spark else (sql_dialect,)
    understood = (_transpiled(text, dialect) for dialect in dialects)
    return next((physical for physical in understood if physical is not None), None)


def has_zone(written: str, sql_dialect: str | None, *, is_spark: bool) -> bool | None:
    """True for a type of points in time, False for one of times on the wall; None for others."""
    name = _SIZE.sub("", _spelled_plainly(written)).strip().lower()
    instants = _INSTANTS_OF_SPARK if is_spark else _INSTANTS.get(sql_dialect or "", ())
    if name in instants or _WITH_ZONE.fullmatch(name):
        return True
    return False if _WITHOUT_ZONE.fullmatch(name) else None


def _spelled_plainly(written: str) -> str:
    """A type without quotes, attributes of storage and the schema of the system's types, with
    single spaces and with sizes that sqlglot reads."""
    text = _OF_SYSTEM.sub("", " ".join(written.split()).replace(" (", "("))
    text = _ONE_SIZE.sub(r"(\1)", _ZEROFILL.sub(" unsigned", text))
    quoted = _QUOTED.match(text)
    if quoted is not None:
        text = quoted[1] + text[quoted.end() :]
    while (without := _OF_STORAGE.sub("", text)) != text and not _NOT_NULL.search(text):
        text = without
    text = _ROUNDED.sub(lambda sizes: f"({int(sizes[1]) + int(sizes[2])},0)", text)
    return _NATIONAL.sub("", _UNSIGNED.sub(r"\1", text))


def _element_of_array(text: str, sql_dialect: str | None) -> str | None:
    """The type of the elements of an array of PostgreSQL or DuckDB; None for another type."""
    if match := _ARRAY.fullmatch(text):
        return match[1]
    match = _INTERNAL_ARRAY.fullmatch(text)
    return match[1] if match is not None and sql_dialect == "postgres" else None


def _array_of(element: PhysicalType | None) -> PhysicalType | None:
    return PhysicalType(f"array<{element.spark_type}>") if element is not None else None


def _of_pyspark(text: str) -> str:
    """The name of a type in SQL for the name of its class in Spark."""
    match = _OF_PYSPARK.fullmatch(text)
    if match is None:
        return text
    sizes = match[2] or ""
    name = match[1].lower()
    return ("timestamp_ntz" if name == "timestampntz" else name) + sizes.replace("()", "")


def _named(text: str, sql_dialect: str | None) -> str | None:
    """The type that `types.md` lists for a name, which means another one in some databases; None
    for a name that sqlglot reads."""
    bare = _SIZE.sub("", text)
    in_one = types_named("in one database").get(f"{sql_dialect} {bare}")
    return in_one or types_named("databases").get(text) or types_named("databases").get(bare)


def why_unread(written: str) -> str:
    """The reason why a physical type has no Spark type."""
    if _NOT_NULL.search(written):
        return "NOT NULL does not belong to a type: write `required: true` at the property"
    return "Spark has no type of this name"


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
    if kind in ("DECIMAL", "BIGDECIMAL", "UDECIMAL"):
        written_sizes = [part.name for part in data_type.expressions]
        if written_sizes == ["*"]:
            return _decimal([])
        if written_sizes[:1] == ["*"]:  # Oracle: as many digits as there can be
            sizes.insert(0, LONGEST_DECIMAL)
        return _decimal(sizes) if len(sizes) == len(written_sizes) else None
    named = types_named("sqlglot").get(kind)
    if named == "string" and sizes and sizes[0] < _UNLIMITED:
        return PhysicalType("string", sizes[0])
    if named is not None:
        return PhysicalType(named)
    return _nested(kind, data_type.expressions, sql_dialect)


_NOT_IN_A_NAME = re.compile(r"[<>(),:`]")
"""Characters that part a type: a field with one in its name cannot be written in a type."""


def _nested(kind: str, parts: list[Expr], sql_dialect: str | None) -> PhysicalType | None:
    """The nested type with the parts that sqlglot read; None if Spark has no such type."""
    match kind:
        case "ARRAY" | "LIST":
            name, count = "array", 1
            types = [_type_inside(part, sql_dialect) for part in parts]
        case "MAP":
            name, count = "map", 2
            types = [_type_inside(part, sql_dialect) for part in parts]
        case "STRUCT" | "OBJECT":
            name, count = "struct", len(parts)
            types = [_field_inside(part, sql_dialect) for part in parts]
        case _:
            return None
    if not parts or len(parts) != count or None in types:
        return None
    return PhysicalType(f"{name}<{','.join(map(str, types))}>")


def _type_inside(part: Expr | None, sql_dialect: str | None) -> str | None:
    """The type of elements, keys or values; None if Spark has no such type."""
    from sqlglot import exp

    if not isinstance(part, exp.DataType):
        return None
    text = part.sql(dialect=sql_dialect if sql_dialect != "ansi" else None)
    inner = physical_type(text, sql_dialect, is_spark=False)
    return inner.spark_type if inner is not None else None


def _field_inside(part: Expr, sql_dialect: str | None) -> str | None:
    """A field of a struct with its type; None for one without a name, or with `NOT NULL`, which a
    type of Spark's data does not show."""
    from sqlglot import exp

    if not isinstance(part, exp.ColumnDef) or _NOT_IN_A_NAME.search(part.name):
        return None
    for constraint in part.constraints:
        if not isinstance(constraint.kind, exp.CommentColumnConstraint):
            return None
    inner = _type_inside(part.kind, sql_dialect)
    return f"{part.name}:{inner}" if inner is not None else None


_STRING_INSIDE = re.compile(r"(?<=[<,:])(?:var)?char(?:\(\d+\))?(?=[>,])")


def _without_lengths(spark_type: str) -> str:
    """A nested type whose strings are of any length, as Spark reads them."""
    return _STRING_INSIDE.sub("string", spark_type)


def _decimal(sizes: list[int]) -> PhysicalType:
    """The decimal with a precision and a scale; a number of any size if Spark has none."""
    if not sizes:
        return PhysicalType("number")
    scale = sizes[1] if len(sizes) > 1 else 0
    # `numeric(3,5)` has three digits after two zeros.
    precision = max(sizes[0], scale)
    if precision > LONGEST_DECIMAL:
        return PhysicalType("number")
    return PhysicalType(f"decimal({precision},{scale})")
