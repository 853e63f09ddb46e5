"""Types of columns: their names, families, and which may stand for which.

A name is a column, however it is spelled; if no column has it, it may be a field of a struct:
`address.city`. Names that differ only in case are the same, as in Spark, unless a column is spelled
exactly so.

Typos in the types of declared schemas of files, such as `id int, total decimal(18, 2)`, are found
here: only what resembles one of Spark's types is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any

from dqx_airflow.diagnostics.diagnostic import slip_of
from dqx_airflow.values.files import table_rows


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """The column or field that a name refers to: its path, and the type at the end of it."""

    path: tuple[str, ...]
    type: str


def find_column_path(name: str, types: Mapping[str, str]) -> ColumnPath | None:
    """The column or field that a name refers to, given all columns and types; None if there is
    none."""
    return next(find_column_paths(name, types), None)


def find_column_paths(name: str, types: Mapping[str, str]) -> Iterator[ColumnPath]:
    """All columns and struct fields that a name with dots may refer to."""
    column = spelled_like(name, types)
    if column is not None:
        yield ColumnPath((column,), types[column])
    for position, character in enumerate(name):
        if character != ".":
            continue
        outer = spelled_like(name[:position], types)
        if outer is not None:
            for inner in find_column_paths(name[position + 1 :], fields_of(types[outer])):
                yield ColumnPath((outer, *inner.path), inner.type)


TYPE_WORDS = (
    *("number", "whole_number", "decimal_number", "floating_number"),
    *("text", "any", "array", "map", "struct"),
)
"""Words for several types in a type check. The last three stand for nested types with any parts."""

_EXACT_IN = {"float": ("tinyint", "smallint"), "double": ("tinyint", "smallint", "int", "float")}
"""The numeric types that floating point represents exactly."""


def misfits(actual: str, wanted: str, place: str) -> Iterator[str]:
    """Where a type contains more than another one, in words: `address.zip is bigint, not text`.

    Empty if it fits. Both types are spelled as `canonical_type` spells them.

    :param place: the column or field of the type `found`.
    """
    kind = _name(wanted)
    if actual == "void" or kind == "any":
        return
    if kind == _name(actual) == "struct":
        actual_fields = fields_of(actual)
        for field, inner in fields_of(wanted).items():
            name = spelled_like(field, actual_fields)
            if name is None:
                yield f"{place}.{field} is missing"
            else:
                yield from misfits(actual_fields[name], inner, f"{place}.{name}")
    elif kind == _name(actual) and wanted in ("array", "map"):
        return
    elif kind == _name(actual) and kind in ("array", "map"):
        parts = ("item",) if kind == "array" else ("key", "value")
        for part, own_type, inner in zip(parts, parts_of(actual), parts_of(wanted), strict=True):
            yield from misfits(own_type, inner, f"{place}[{part}]")
    elif not _is_within(actual, wanted):
        yield f"{place} is {actual}, not {wanted}"


def _is_within(actual: str, wanted: str) -> bool:
    """True if a simple type is the wanted type, a narrower one, or one that the word includes."""
    kind = _name(actual)
    match _name(wanted):
        case "number":
            return family_of(actual) is Family.NUMBER
        case "whole_number":
            return kind in WHOLE_SIZES or (kind == "decimal" and decimal_size(actual)[1] == 0)
        case "decimal_number":
            return kind == "decimal"
        case "floating_number":
            return kind in ("float", "double")
        case "text":
            return family_of(actual) is Family.TEXT
        case ("smallint" | "int" | "bigint") as whole if kind in WHOLE_SIZES:
            return WHOLE_SIZES[kind] <= WHOLE_SIZES[whole]
        case "decimal" if kind in WHOLE_SIZES or kind == "decimal":
            (precision, scale), (digits, fraction) = decimal_size(actual), decimal_size(wanted)
            return scale <= fraction and precision - scale <= digits - fraction
        case ("float" | "double") as floating if actual != wanted:
            return kind in _EXACT_IN[floating]
        case "string":
            return family_of(actual) is Family.TEXT
        case "timestamp":
            # Files without a time zone are read as the other type, whatever wrote them.
            return kind in ("timestamp", "timestamp_ntz")
        case "varchar" if kind in ("char", "varchar") and parts_of(actual) and parts_of(wanted):
            return int(parts_of(actual)[0]) <= int(parts_of(wanted)[0])
        case _:
            return actual == wanted


_WORDS_WITHIN = {"number": ("whole_number", "decimal_number", "floating_number")}


def is_covered(wanted: str, word: str) -> bool:
    """Whether a word for several types covers a type, or another word."""
    if wanted in TYPE_WORDS:
        return wanted in _WORDS_WITHIN.get(word, ())
    return next(misfits(wanted, word, ""), None) is None


def _name(spark_type: str) -> str:
    return spark_type.split("(", 1)[0].split("<", 1)[0]


class Family(str, Enum):
    """The families of Spark types that metrics distinguish."""

    NUMBER = "number"
    TEXT = "string"
    TIME = "date or timestamp"
    BOOLEAN = "boolean"
    ARRAY = "array"
    MAP = "map"
    OTHER = "nested or binary"


def _meanings(heading: str) -> dict[str, str]:
    """The names in a table of `types.txt`, each with what it stands for."""
    rows = table_rows(__package__, "types.txt", heading)
    return {name: meaning for meaning, names in rows for name in names.split()}


_FAMILIES = {name: Family(family) for name, family in _meanings("families").items()}
_OTHER_NAMES = _meanings("other names")

TYPE_NAMES = (*_FAMILIES, *_OTHER_NAMES, "struct")
"""The names of all types, including synonyms that Spark accepts."""

_SIZED = {"decimal": 2, "varchar": 1, "char": 1}
_DEEPEST = 50
_TOKEN = re.compile(r"`[^`]+`|\w+|[<>(),:]")


class TypeTextError(ValueError):
    """A text is not a type of Spark; `text` is the wrong part of it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


_VARIANT = re.compile(r"(?:^|[<:,])variant(?![^,>])")


def has_variant(spark_type: str) -> bool:
    """True if values of the type are variants, or hold some: Spark cannot compare them."""
    return _VARIANT.search(spark_type) is not None


@lru_cache(maxsize=1024)
def family_of(spark_type: str) -> Family:
    """The family of a Spark type as written in a schema, such as `decimal(18,2)`."""
    name = spark_type.split("(", 1)[0].split("<", 1)[0]
    return _FAMILIES.get(name, Family.OTHER)


def parts_of(spark_type: str) -> tuple[str, ...]:
    """The parts in the parentheses of a type: (`18`, `2`) for `decimal(18,2)`; empty if there are
    none."""
    opening = re.search(r"[<(]", spark_type)
    if opening is None:
        return ()
    return tuple(_between_commas(spark_type[opening.end() : -1]))


def fields_of(spark_type: str) -> dict[str, str]:
    """The fields of a struct by name, with their types; empty for every other type."""
    if not spark_type.startswith("struct<"):
        return {}
    pairs = (part.partition(":") for part in parts_of(spark_type) if part)
    return {name: inner for name, _, inner in pairs}


WHOLE_SIZES = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The integer types from small to large, each with its maximum number of digits."""

LONGEST_DECIMAL = 38


@lru_cache(maxsize=1024)
def decimal_size(number_type: str) -> tuple[int, int]:
    """The precision and scale of a decimal that holds all numbers of a type, if there is one."""
    if number_type in WHOLE_SIZES:
        return WHOLE_SIZES[number_type], 0
    precision, scale = parts_of(number_type)
    return int(precision), int(scale)


def roomless_decimal(*number_types: str) -> str | None:
    """The longest decimal with all fractional digits of several types, if no decimal holds the
    numbers of all of them; None if a decimal does.

    A number that does not fit into it belongs to only one of the types.

    :param number_types: none is floating.
    """
    if not all(family_of(type_) is Family.NUMBER for type_ in number_types):
        return None
    sizes = [decimal_size(type_) for type_ in number_types]
    scale = max(scale for _, scale in sizes)
    if max(precision - fraction for precision, fraction in sizes) + scale <= LONGEST_DECIMAL:
        return None
    return f"DECIMAL({LONGEST_DECIMAL},{scale})"


def decimal_type(value: Decimal) -> str | None:
    """The smallest decimal type that holds a number; None if it has too many digits for any."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return None
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    return f"decimal({precision},{scale})" if precision <= LONGEST_DECIMAL else None


def widest(*types: str) -> str:
    """The type that holds the values of all these types, which are comparable with each other."""
    wide = types[0]
    for other in types[1:]:
        wide = _wider(wide, other)
    return wide


def _wider(first: str, second: str) -> str:
    pair = {first, second}
    if len(pair) == 1 or second == "void":
        return first
    if first == "void":
        return second
    if Family.TIME in (family_of(first), family_of(second)):
        return "timestamp" if "timestamp" in pair or "date" not in pair else "timestamp_ntz"
    if pair & {"float", "double"}:
        return "double"
    if all(name in WHOLE_SIZES for name in pair):
        return max(pair, key=WHOLE_SIZES.__getitem__)
    if family_of(first) is not Family.NUMBER:
        return first
    (precision, scale), (other_precision, other_scale) = decimal_size(first), decimal_size(second)
    fraction = max(scale, other_scale)
    whole = max(precision - scale, other_precision - other_scale)
    return f"decimal({min(whole + fraction, LONGEST_DECIMAL)},{min(fraction, LONGEST_DECIMAL)})"


def spelled_like(name: str, names: Collection[str]) -> str | None:
    """The name that is spelled so; else the only one that differs only in case."""
    if name in names:
        return name
    alike = [other for other in names if other.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def canonical_type(text: str, words: Collection[str] = ()) -> str:
    """The type as Spark writes it in a schema: `decimal(18,2)`, `array<struct<id:bigint>>`.

    :param words: additional words that are accepted as types.
    :raises TypeTextError: it is not a type of Spark.
    """
    tokens = _TOKEN.findall(text)
    if "".join("".join(tokens).split()) != "".join(text.split()):
        raise TypeTextError(text)
    tokens.reverse()
    spelled = _TypeReader(tokens, words).read(depth=0)
    if tokens:
        raise TypeTextError(tokens[-1])
    return spelled


@dataclass(slots=True)
class _TypeReader:
    """Reads types from the end of `tokens`, which are in reverse."""

    tokens: list[str]
    words: Collection[str]

    def read(self, depth: int) -> str:
        written = self._next()
        name = _OTHER_NAMES.get(written.lower(), written.lower())
        has_parts = self.tokens[-1:] == ["<"]
        if name in self.words and not has_parts:
            return name
        if name not in TYPE_NAMES or depth > _DEEPEST:
            raise TypeTextError(written)
        if name == "struct":
            return f"struct<{','.join(self._fields(depth + 1))}>"
        if name in ("array", "map"):
            parts = self._list(lambda: self.read(depth + 1))
            if len(parts) != (1 if name == "array" else 2):
                raise TypeTextError(written)
            return f"{name}<{','.join(parts)}>"
        sizes = self._list(self._next) if self.tokens and self.tokens[-1] == "(" else []
        if sizes and not _is_sized(name, sizes):
            raise TypeTextError(f"{written}({','.join(sizes)})")
        if name == "decimal":
            sizes = [*sizes, *("10", "0")[len(sizes) :]]
        return f"{name}({','.join(sizes)})" if sizes else name

    def _fields(self, depth: int) -> list[str]:
        """The fields of a struct, which may have none."""
        if self.tokens[:-3:-1] == ["<", ">"]:
            del self.tokens[-2:]
            return []
        return self._list(lambda: self._field(depth))

    def _field(self, depth: int) -> str:
        name = self._next().strip("`")
        self._take(":")
        return f"{name}:{self.read(depth)}"

    def _list(self, read: Callable[[], str]) -> list[str]:
        """The elements of a list in brackets, separated by commas."""
        closing = {"<": ">", "(": ")"}[self._take("<", "(")]
        items = [read()]
        while self._take(",", closing) == ",":
            items.append(read())
        return items

    def _take(self, *wanted: str) -> str:
        token = self._next()
        if token not in wanted:
            raise TypeTextError(token)
        return token

    def _next(self) -> str:
        return self.tokens.pop() if self.tokens else ""


def _is_sized(name: str, sizes: Sequence[str]) -> bool:
    """True if a type may have these sizes."""
    if len(sizes) > _SIZED.get(name, 0) or not all(map(str.isdigit, sizes)):
        return False
    if name != "decimal":
        return True
    precision, scale = (*map(int, sizes), 0)[:2]
    return 1 <= precision <= LONGEST_DECIMAL and scale <= precision


_ARROW_TYPES = _meanings("Arrow")


def spark_type_of_arrow(arrow: Any, *, has_zone: bool = False, of_nulls: str = "void") -> str:
    """The Spark type of an Arrow type.

    :param has_zone: a timestamp without a time zone here has one in Spark.
    :param of_nulls: the type of a column with only NULL.
    :raises ValueError: there is none.
    """

    def inner(part: Any) -> str:
        return spark_type_of_arrow(part, has_zone=has_zone, of_nulls=of_nulls)

    match re.split(r"[^a-z0-9_]", str(arrow), maxsplit=1)[0]:
        case "dictionary":
            return inner(arrow.value_type)
        case "null":
            return of_nulls
        case "decimal32" | "decimal64" | "decimal128" | "decimal256":
            return f"decimal({arrow.precision},{arrow.scale})"
        case "timestamp":
            return "timestamp" if arrow.tz is not None or has_zone else "timestamp_ntz"
        case "struct":
            fields = (arrow.field(number) for number in range(arrow.num_fields))
            return f"struct<{','.join(f'{item.name}:{inner(item.type)}' for item in fields)}>"
        case "map":
            return f"map<{inner(arrow.key_type)},{inner(arrow.item_type)}>"
        case "list" | "large_list" | "fixed_size_list":
            return f"array<{inner(arrow.value_type)}>"
        case name if name in _ARROW_TYPES:
            return _ARROW_TYPES[name]
    raise ValueError(f"Spark has no type for {arrow}")


_COLUMN = re.compile(r"(?:`(?:[^`]|``)+`|\w+)[\s:]+(\w+)")
_RARE = ("void", "null", "time", "geometry", "geography", "character", "numeric")
"""Names of types that Spark supports, and that resemble typos of others."""


def slip_in_schema(schema: str) -> tuple[str, str] | None:
    """The first misspelled type of a column, and the intended type; None if there is none.

    >>> slip_in_schema("id itn, total decimal(18, 2) NOT NULL")
    ('itn', 'int')
    """
    for column in _between_commas(schema, "`'\""):
        match = _COLUMN.match(column.strip())
        if match is not None and match[1].lower() not in (*TYPE_NAMES, *_RARE):
            near = slip_of(match[1], TYPE_NAMES)
            if near is not None:
                return match[1], near
    return None


_DECLARED = re.compile(r"(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<name>\w+))[\s:]+(?P<type>.+)", re.DOTALL)
_CLAUSE = re.compile(r"\s+(NOT\s+NULL|COMMENT|DEFAULT)\b.*", re.DOTALL | re.IGNORECASE)


def declared_types(schema: str) -> dict[str, str] | None:
    """The columns of a schema in DDL with their types, as Spark writes them; None if that takes
    Spark to find out.

    >>> declared_types("id long NOT NULL, `total sum` decimal(18, 2)")
    {'id': 'bigint', 'total sum': 'decimal(18,2)'}
    """
    types = {}
    for column in _between_commas(schema, "`'\""):
        declared = _DECLARED.fullmatch(column.strip())
        if declared is None:
            return None
        name = declared["name"] or declared["quoted"].replace("``", "`")
        try:
            types[name] = canonical_type(_CLAUSE.sub("", declared["type"]))
        except TypeTextError:
            return None
    return types


def _between_commas(text: str, quotes: str = "") -> list[str]:
    """The parts between commas outside of brackets and quotes."""
    parts = [""]
    depth = 0
    quote = ""
    for letter in text:
        if quote or letter in quotes:
            quote = "" if letter == quote else quote or letter
        depth += 0 if quote else (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
