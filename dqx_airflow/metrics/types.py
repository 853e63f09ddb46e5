"""Spark types as text: one spelling for one type, and the families that metrics tell apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum


class Family(str, Enum):
    """The families of Spark types that metrics tell apart."""

    NUMBER = "number"
    TEXT = "text"
    TIME = "date or timestamp"
    BOOLEAN = "boolean"
    OTHER = "nested or binary"


_FAMILIES = {
    **dict.fromkeys(
        ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"), Family.NUMBER
    ),
    **dict.fromkeys(("string", "varchar", "char"), Family.TEXT),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), Family.TIME),
    "boolean": Family.BOOLEAN,
    **dict.fromkeys(("binary", "variant", "interval", "void"), Family.OTHER),
}
_OTHER_NAMES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "bool": "boolean",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}

TYPE_NAMES = (*_FAMILIES, *_OTHER_NAMES, "array", "map", "struct")
"""The names of all types, those included that Spark accepts for others."""

_SIZED = {"decimal": 2, "varchar": 1, "char": 1}
_DEEPEST = 50
_TOKEN = re.compile(r"`[^`]+`|\w+|[<>(),:]")


class TypeTextError(ValueError):
    """`text` is the part of a type that is no type."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def family_of(spark_type: str) -> Family:
    """The family of a Spark type as written in a schema, such as `decimal(18,2)`."""
    name = spark_type.split("(", 1)[0].split("<", 1)[0]
    return _FAMILIES.get(name, Family.OTHER)


def parts_of(spark_type: str) -> tuple[str, ...]:
    """What stands in the brackets of a type: (`18`, `2`) for `decimal(18,2)`; none without any."""
    opening = re.search(r"[<(]", spark_type)
    if opening is None:
        return ()
    parts, depth = [""], 0
    for character in spark_type[opening.end() : -1]:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(parts)


def fields_of(spark_type: str) -> dict[str, str]:
    """The fields of a struct by name, with their types; none for every other type."""
    if not spark_type.startswith("struct<"):
        return {}
    pairs = (part.partition(":") for part in parts_of(spark_type) if part)
    return {name: inner for name, _, inner in pairs}


WHOLE_SIZES = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The types of whole numbers from small to large, each with the most digits that it needs."""

LONGEST_DECIMAL = 38


def decimal_size(number_type: str) -> tuple[int, int]:
    """The precision and the scale of a decimal that holds all numbers of a type, if one does."""
    if number_type in WHOLE_SIZES:
        return WHOLE_SIZES[number_type], 0
    precision, scale = parts_of(number_type)
    return int(precision), int(scale)


def widest(*types: str) -> str:
    """The type that holds the values of all of these, which can be compared with each other."""
    found = types[0]
    for other in types[1:]:
        found = _wider(found, other)
    return found


def _wider(one: str, other: str) -> str:
    pair = {one, other}
    if len(pair) == 1 or other == "void":
        return one
    if one == "void":
        return other
    if Family.TIME in (family_of(one), family_of(other)):
        return "timestamp" if "timestamp" in pair or "date" not in pair else "timestamp_ntz"
    if pair & {"float", "double"}:
        return "double"
    if all(name in WHOLE_SIZES for name in pair):
        return max(pair, key=WHOLE_SIZES.__getitem__)
    if family_of(one) is not Family.NUMBER:
        return one
    (precision, scale), (other_precision, other_scale) = decimal_size(one), decimal_size(other)
    fraction = max(scale, other_scale)
    whole = max(precision - scale, other_precision - other_scale)
    return f"decimal({min(whole + fraction, LONGEST_DECIMAL)},{min(fraction, LONGEST_DECIMAL)})"


def canonical_type(text: str) -> str:
    """The type as Spark writes it in a schema: `decimal(18,2)`, `array<struct<id:bigint>>`.

    :raises TypeTextError: it is no type of Spark.
    """
    tokens = _TOKEN.findall(text)
    if "".join("".join(tokens).split()) != "".join(text.split()):
        raise TypeTextError(text)
    tokens.reverse()
    spelled = _read_type(tokens, depth=0)
    if tokens:
        raise TypeTextError(tokens[-1])
    return spelled


def _read_type(tokens: list[str], depth: int) -> str:
    """Takes one type from the end of `tokens`, which are in reverse."""
    written = tokens.pop() if tokens else ""
    name = _OTHER_NAMES.get(written.lower(), written.lower())
    if name not in TYPE_NAMES or depth > _DEEPEST:
        raise TypeTextError(written)
    if name == "struct":
        fields = _read_list(tokens, lambda: _read_field(tokens, depth))
        return f"struct<{','.join(fields)}>"
    if name in ("array", "map"):
        parts = _read_list(tokens, lambda: _read_type(tokens, depth + 1))
        if len(parts) != (1 if name == "array" else 2):
            raise TypeTextError(written)
        return f"{name}<{','.join(parts)}>"
    sizes = []
    if tokens and tokens[-1] == "(":
        sizes = _read_list(tokens, lambda: tokens.pop() if tokens else "")
        if name not in _SIZED or len(sizes) > _SIZED[name] or not all(map(str.isdigit, sizes)):
            raise TypeTextError(f"{written}({','.join(sizes)})")
    if name == "decimal":
        sizes = [*sizes, *("10", "0")[len(sizes) :]]
    return f"{name}({','.join(sizes)})" if sizes else name


def _read_field(tokens: list[str], depth: int) -> str:
    name = tokens.pop().strip("`") if tokens else ""
    _take(tokens, ":")
    return f"{name}:{_read_type(tokens, depth + 1)}"


def _read_list(tokens: list[str], read: Callable[[], str]) -> list[str]:
    """What stands in brackets, separated by commas."""
    closing = {"<": ">", "(": ")"}[_take(tokens, "<", "(")]
    items = [read()]
    while _take(tokens, ",", closing) == ",":
        items.append(read())
    return items


def _take(tokens: list[str], *wanted: str) -> str:
    found = tokens.pop() if tokens else ""
    if found not in wanted:
        raise TypeTextError(found)
    return found
