"""Whether a type contains only values of another one, for `column price fits number`."""

from __future__ import annotations

from collections.abc import Iterator

from dqx_airflow.metrics.types import (
    WHOLE_SIZES,
    Family,
    decimal_size,
    family_of,
    fields_of,
    parts_of,
    spelled_like,
)

TYPE_WORDS = ("number", "whole_number", "text", "any")
"""Words for several types in a type check."""

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


def _name(spark_type: str) -> str:
    return spark_type.split("(", 1)[0].split("<", 1)[0]
