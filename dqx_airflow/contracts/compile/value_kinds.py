"""Kinds of values in SQL, on which translations depend: the kinds of columns, sums and products."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from dqx_airflow.contracts.field_types import names_in
from dqx_airflow.contracts.model import Field

LONGEST = 38
"""The digits of the longest decimal in Spark."""


class Kind(NamedTuple):
    """The properties of a type that translations of SQL depend on; `digits` and `scale` are the
    sizes of a decimal.

    An `interval` is a number of microseconds in Spark. `int` has up to 32 bits, `whole` is an
    integer and `number` a number of unknown size. `numeric` is a decimal of SQLite, which stores a
    value without a fraction as an integer, and divides it as an integer. `stamp` is a timestamp,
    `moment` a DATE of Oracle, `midnight` the start of a day in the zone of the session.
    `shown` is a number with more digits than are shown, so that nothing is computed with it.
    `bytes` are text that is compared by its bytes, `padded` is text without its trailing spaces.
    """

    name: str
    digits: int = 0
    scale: int = 0


_NAMES = "int bigint whole number numeric float real text char bytes padded bool date stamp moment"
KINDS = {name: Kind(name) for name in f"{_NAMES} midnight interval list null shown other".split()}
_BLANK_PADDED = re.compile(r"\s*(n?char(acter)?|bpchar)\s*(\(.*)?", re.IGNORECASE)
_SIZES = {"int": (10, 0), "bigint": (20, 0)}
_LONGEST_SCALES = {"snowflake": 12, "bigquery": 9}


def columns_of(fields: Iterable[Field], sql_dialect: str) -> dict[str, Kind | None]:
    """The kinds of columns and of the fields of structs, by their paths in lower case; None if the
    contract does not state the type."""
    found: dict[str, Kind | None] = {}
    for item in fields:
        found[item.name.lower()] = _kind_of(item, sql_dialect)
        inner = columns_of(item.fields, sql_dialect)
        found |= {f"{item.name.lower()}.{path}": kind for path, kind in inner.items()}
    return found


def _kind_of(item: Field, sql_dialect: str) -> Kind | None:
    written = item.type
    native = (item.written_type or "").strip()
    if written in (None, "any"):
        return None
    if sizes := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", str(written)):
        return Kind("decimal", int(sizes[1]), int(sizes[2]))
    name = names_in("kind").get(re.split(r"[(<]", str(written))[0], "other")
    if name == "text" and _BLANK_PADDED.fullmatch(native):
        name = "char"
    if name in ("date", "stamp") and sql_dialect == "sqlite":
        name = "other"
    if sql_dialect == "oracle" and (
        name == "date" or (name == "stamp" and native.upper() == "DATE")
    ):
        name = "moment"
    return KINDS[name]


def as_decimal(kind: Kind | None) -> Kind | None:
    """The decimal that Spark makes of a number; None if its size is unknown."""
    if kind is None or kind.name == "decimal":
        return kind
    sizes = _SIZES.get(kind.name)
    return Kind("decimal", *sizes) if sizes is not None else None


def widest(kinds: Iterable[Kind | None]) -> Kind | None:
    """The kind of a value that has one of several kinds; `other` if they have no common kind."""
    known = [kind for kind in dict.fromkeys(kinds) if kind != KINDS["null"]]
    if len(known) < 2:
        return known[0] if known else KINDS["null"]
    names = {kind.name for kind in known if kind is not None}
    if None in known:
        return None
    if names <= {"int", "bigint", "whole"}:
        return KINDS["whole" if "whole" in names else "bigint"]
    if names <= {"date", "stamp"}:
        return KINDS["stamp"]
    if names == {"float", "numeric"}:
        return KINDS["numeric"]
    exact = {"int", "bigint", "whole", "number", "decimal"}
    if names <= exact:
        return _decimal("added", known, 0, LONGEST)
    is_float = "float" in names and names <= {*exact, "float"}
    return KINDS["float" if is_float else "other"]


def sum_of(how: str, kinds: list[Kind | None], sql_dialect: str) -> Kind | None:
    """The kind of a sum, a product or a total of exact numbers; `other` if Spark would round it."""
    if how in ("added", "product"):
        return _decimal(how, kinds, 1, _LONGEST_SCALES.get(sql_dialect, LONGEST))
    (kind,) = kinds
    name = kind.name if kind is not None else ""
    if kind is not None and name == "decimal":
        return Kind("decimal", min(kind.digits + 10, LONGEST), kind.scale)
    if name == "int" or (name in ("bigint", "whole") and how == "total"):
        return KINDS["bigint"]
    return Kind("decimal", 20) if name == "bigint" else KINDS["number"]


def _decimal(how: str, kinds: Iterable[Kind | None], more: int, longest: int) -> Kind:
    sizes = [size for size in map(as_decimal, kinds) if size is not None]
    if len(sizes) < len(list(kinds)):
        return KINDS["number"]
    if how == "product":
        scale = sum(size.scale for size in sizes)
        digits = sum(size.digits for size in sizes) + more
    else:
        scale = max(size.scale for size in sizes)
        digits = max(size.digits - size.scale for size in sizes) + scale + more
    return (
        Kind("decimal", digits, scale) if digits <= LONGEST and scale <= longest else KINDS["other"]
    )
