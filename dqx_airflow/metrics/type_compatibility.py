"""Whether a type holds nothing but values of another one: what `column price fits number` asks."""

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
"""Words that stand for several types where a type has to fit."""

_EXACT_IN = {
    "float": ("tinyint", "smallint"),
    "double": ("tinyint", "smallint", "int", "float"),
}
"""The numbers of which floating point holds every one."""


def misfits(found: str, wanted: str, place: str) -> Iterator[str]:
    """Where a type holds more than another one, in words: `address.zip is bigint, not text`.

    Nothing where it fits. Both types are spelled as `canonical_type` spells them.

    :param place: what is of the type `found`: a column, a field.
    """
    kind = _name(wanted)
    if found == "void" or kind == "any":
        return
    if kind == _name(found) == "struct":
        own = fields_of(found)
        for field, inner in fields_of(wanted).items():
            name = spelled_like(field, own)
            if name is None:
                yield f"{place}.{field} is missing"
            else:
                yield from misfits(own[name], inner, f"{place}.{name}")
    elif kind == _name(found) and kind in ("array", "map"):
        parts = ("item",) if kind == "array" else ("key", "value")
        for part, own_type, inner in zip(parts, parts_of(found), parts_of(wanted), strict=True):
            yield from misfits(own_type, inner, f"{place}[{part}]")
    elif not _is_within(found, wanted):
        yield f"{place} is {found}, not {wanted}"


def _is_within(found: str, wanted: str) -> bool:
    """True where a simple type is the wanted one, or a narrower one, or among those of a word."""
    kind = _name(found)
    match _name(wanted):
        case "number":
            return family_of(found) is Family.NUMBER
        case "whole_number":
            return kind in WHOLE_SIZES or (kind == "decimal" and decimal_size(found)[1] == 0)
        case "text":
            return family_of(found) is Family.TEXT
        case ("smallint" | "int" | "bigint") as whole if kind in WHOLE_SIZES:
            return WHOLE_SIZES[kind] <= WHOLE_SIZES[whole]
        case "decimal" if kind in WHOLE_SIZES or kind == "decimal":
            (precision, scale), (digits, fraction) = decimal_size(found), decimal_size(wanted)
            return scale <= fraction and precision - scale <= digits - fraction
        case ("float" | "double") as floating if found != wanted:
            return kind in _EXACT_IN[floating]
        case "string":
            return family_of(found) is Family.TEXT
        case "timestamp":  # files without a zone are read as the other one, whoever wrote them
            return kind in ("timestamp", "timestamp_ntz")
        case "varchar" if kind in ("char", "varchar") and parts_of(found) and parts_of(wanted):
            return int(parts_of(found)[0]) <= int(parts_of(wanted)[0])
        case _:
            return found == wanted


def _name(spark_type: str) -> str:
    return spark_type.split("(", 1)[0].split("<", 1)[0]
