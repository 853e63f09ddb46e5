"""Two types of a column: does every value of the old one fit into the new one, for Delta?

Changes that Delta Lake makes without rewriting files are widenings: integers to larger ones, to
`double` (not `bigint`) and to sufficient decimals, `float` to `double`, decimals to those with more
digits on both sides, `date` to `timestamp_ntz`. Longer strings and the words that stand for several
types are widenings too.
"""

from __future__ import annotations

from dqx_airflow.contracts.diff.strictness import Order
from dqx_airflow.metrics.types import parts_of

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")
_TEXTS = ("string", "varchar", "char")
_DIGITS_FOR_WHOLE = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
_ANY = "any"


def compare_types(old: str | None, new: str | None) -> Order:
    """The order of two types, `LOOSER` for a widening; `OTHER` also for a change to `any`.

    A column that may hold anything breaks every consumer that relies on its type.
    """
    before, after = old or _ANY, new or _ANY
    if before == after or {before, after} == {"string", "text"}:
        return Order.SAME
    if _ANY in (before, after):
        return Order.OTHER
    if _is_wider(before, after):
        return Order.LOOSER
    return Order.TIGHTER if _is_wider(after, before) else Order.OTHER


def is_delta_widening(old: str, new: str) -> bool:
    """True if Delta changes the type of a column without rewriting its files."""
    kinds = {_kind(old), _kind(new)}
    is_text = kinds <= set(_TEXTS)
    return not is_text and kinds <= {*_NUMBERS, "date", "timestamp_ntz"} and _is_wider(old, new)


def _is_wider(narrow: str, wide: str) -> bool:
    kind, other = _kind(narrow), _kind(wide)
    match other:
        case "number":
            return kind in (*_NUMBERS, "whole_number")
        case "whole_number":
            return kind in _WHOLE
        case "text":
            return kind in _TEXTS
        case "string":
            return kind in ("varchar", "char")
        case "varchar":
            return kind in ("varchar", "char") and _length(wide) > _length(narrow)
        case "double":
            return kind in ("tinyint", "smallint", "int", "float")
        case "decimal":
            return _fits_decimal(narrow, wide)
        case "timestamp_ntz":
            return kind == "date"
    both_whole = kind in _WHOLE and other in _WHOLE
    return both_whole and _WHOLE.index(kind) < _WHOLE.index(other)


def _fits_decimal(narrow: str, wide: str) -> bool:
    precision, scale = _decimal(wide)
    kind = _kind(narrow)
    if kind in _DIGITS_FOR_WHOLE:
        return precision - scale >= _DIGITS_FOR_WHOLE[kind]
    if kind != "decimal" or narrow == wide:
        return False
    old_precision, old_scale = _decimal(narrow)
    return precision - scale >= old_precision - old_scale and scale >= old_scale


def _decimal(spark_type: str) -> tuple[int, int]:
    sizes = [int(part) for part in parts_of(spark_type)]
    precision, scale = [*sizes, *(10, 0)[len(sizes) :]]
    return precision, scale


def _length(spark_type: str) -> int:
    sizes = parts_of(spark_type)
    return int(sizes[0]) if sizes else 0


def _kind(spark_type: str) -> str:
    return spark_type.partition("(")[0]
