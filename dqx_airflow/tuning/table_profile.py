"""The profile of a table from which contracts are drafted: exact over all rows, but for the forms
of strings in large tables.

One column is in memory at a time, two while keys are sought.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json

from dqx_airflow.contracts import drafting
from dqx_airflow.contracts.dialects.rule_names import slug
from dqx_airflow.contracts.drafting import ObservedColumn, ObservedTable
from dqx_airflow.datasets.reader_options import with_default_options
from dqx_airflow.metrics.text_formats import TEXT_FORMATS
from dqx_airflow.metrics.types import WHOLE_SIZES, Family, family_of
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.tuning.column_tables import ColumnTable, read_files, texts_of
from dqx_airflow.values import DatasetRef
from dqx_airflow.values.json_form import iso_timestamp

T = TypeVar("T")
_NONE: Mapping[str, Mapping[str, str]] = MappingProxyType({})

_FEWEST_ROWS = 20
"""With fewer rows, few distinct values and similar strings are coincidental."""

MOST_VALUES = 20
_LONGEST_VALUE = 40
_MOST_READ = 100_000
"""Of more rows, the form of strings is taken from this many, and the evidence reports it."""

_MOST_COMPARED = 10_000
"""Of more rows, this many show that a column has more values than a set, unless it may be a key."""

_MOST_TEXTS = 500
"""The strings from which a form is guessed, before all that are read have to have it."""

_VARYING_LENGTH = re.compile(r"\{\d+,\d+\}")
_MOST_ODD_TEXTS = 1_000
_LEAST_REPEATED = 0.01
"""The share of repeated values in a part of the rows with which a column is no key of all of them,
not even but for a few."""

_MOST_KEY_CANDIDATES = 8
_MOST_KEY_ROWS = 5_000_000
_PERSONAL_FORMATS = ("email", "phone", "iban")
_NAMED_FORMATS = ("uuid", "ipv4")


Defaults: TypeAlias = "Mapping[str, Mapping[str, str]]"
"""Reader options by format, as in `dqx.toml`."""


def name_of(ref: DatasetRef) -> str:
    """The name of a dataset, by default the name of its file, its folder or its table."""
    if ref.name:
        return ref.name
    if ref.path is None:
        return slug(ref.location.rpartition(".")[2]) or "data"
    return slug(Path(ref.path.rstrip("/")).name.partition(".")[0]) or "data"


def profile_of_path(ref: DatasetRef, defaults: Defaults = _NONE) -> ObservedTable:
    """The profile of the table at the path of a dataset, without the values of masked columns.

    :param defaults: reader options by format.
    :raises DatasetError: there is none, or it cannot be read.
    """
    place = str(ref.path)
    name = name_of(ref)
    options = with_default_options(ref, defaults).options

    def profile(table: ColumnTable) -> ObservedTable:
        return profile_of_columns(table, name, place, ref.format, ref.masked)

    return read_files(place, ref.format, profile, options)


def profile_of_columns(
    table: ColumnTable,
    name: str,
    place: str,
    file_format: str | None = None,
    masked: Sequence[str] = (),
) -> ObservedTable:
    """The profile of a table whose columns can be read."""
    columns = tuple(
        _profile_of_column(table, column, is_masked(column, masked)) for column in table.names
    )
    profile = ObservedTable(
        name=name,
        place=place,
        format=file_format,
        rows=table.rows,
        columns=columns,
        key=_key(table, columns),
        options=table.needed_options,
    )
    return replace(profile, newest=_newest_day(table, profile))


# Columns -----------------------------------------------------------------------------------------


def _profile_of_column(table: ColumnTable, name: str, is_hidden: bool) -> ObservedColumn:
    column = table.column(name)
    type_name = table.types[name]
    family = family_of(type_name)
    profile = ObservedColumn(name, type_name, nulls=column.null_count)
    if family in (Family.ARRAY, Family.MAP, Family.OTHER):
        return replace(profile, is_personal=drafting.is_personal(name, is_hidden))
    if family is Family.TEXT:
        column = texts_of(column)
    part = _spread(column, _MOST_READ)
    may_be_key = profile.is_named_like_a_key or part is column
    compared = part if may_be_key else _spread(column, _MOST_COMPARED)
    in_part = pc.unique(compared.drop_null())
    if part is column:
        profile = replace(profile, distinct=len(in_part))
    elif len(in_part) <= MOST_VALUES:
        in_part = pc.unique(column).drop_null()
        profile = replace(profile, distinct=len(in_part))
    elif _may_be_almost_a_key(profile, part, in_part):
        profile = replace(profile, distinct=distinct_count(column))
    texts = _spread(in_part, _MOST_TEXTS).to_pylist() if family is Family.TEXT else []
    if drafting.is_personal(name, is_hidden or _look_personal(texts)):
        return replace(profile, is_personal=True)
    if family is Family.NUMBER:
        lowest, highest = _ends(column)
        return replace(profile, lowest=lowest, highest=highest)
    return _with_form(profile, column, part, in_part, texts) if texts else profile


def _spread(values: Any, most: int) -> Any:
    """At most this number of values, evenly spread: all of them if there are no more."""
    if len(values) <= most:
        return values
    positions = numpy.linspace(0, len(values) - 1, most, dtype="int64")
    if not isinstance(values, pa.ChunkedArray):
        return values.take(pa.array(positions))
    # Arrow copies all chunks into one before it takes from them.
    parts = []
    start = 0
    for chunk in values.chunks:
        first, end = numpy.searchsorted(positions, (start, start + len(chunk)))
        parts.append(chunk.take(pa.array(positions[first:end] - start)))
        start += len(chunk)
    return pa.chunked_array(parts, values.type)


def _may_be_almost_a_key(profile: ObservedColumn, part: Any, distinct: Any) -> bool:
    """Whether a column may identify all rows but a few, by its name and a part of the rows.

    :param distinct: the different values of this part.
    """
    repeated = len(part) - part.null_count - len(distinct)
    return profile.is_named_like_a_key and repeated <= _LEAST_REPEATED * len(part)


def _look_personal(texts: Sequence[str]) -> bool:
    """True if most of the strings are email addresses, phone numbers or account numbers."""
    patterns = [re.compile(TEXT_FORMATS[name].pattern) for name in _PERSONAL_FORMATS]
    return any(
        2 * sum(pattern.fullmatch(text) is not None for text in texts) > len(texts)
        for pattern in patterns
    )


def _with_form(
    profile: ObservedColumn, column: Any, part: Any, distinct: Any, texts: list[str]
) -> ObservedColumn:
    """The column with its few values, or with the common pattern of its strings.

    :param part: the values that are read for a pattern.
    :param distinct: its different values, all of them if they are few.
    :param texts: some of its different strings.
    """
    filled = len(column) - profile.nulls
    if filled < _FEWEST_ROWS:
        return profile
    if profile.distinct is not None and profile.distinct <= MOST_VALUES:
        values = sorted(distinct.to_pylist())
        if 2 * len(values) <= filled and max(map(len, values)) <= _LONGEST_VALUE:
            return replace(profile, values=tuple(values))
    read = None if part is column else len(part) - part.null_count
    for name in _NAMED_FORMATS:
        pattern = re.compile(TEXT_FORMATS[name].pattern)
        if pattern.fullmatch(texts[0]) and not len(_without_form(part, pattern.pattern)):
            return replace(profile, pattern=f"^({pattern.pattern})$", read_for_pattern=read)
    found = drafting.common_pattern(texts)
    if found is not None and len(odd := _without_form(part, found)):
        found = drafting.common_pattern([*texts, *_spread(odd, _MOST_ODD_TEXTS).to_pylist()])
        if found is not None and len(_without_form(part, found)):
            found = None
    if found is None:
        return profile
    if read is not None:  # others may be longer or shorter
        found = _VARYING_LENGTH.sub("+", found)
    return replace(profile, pattern=found, read_for_pattern=read)


def _without_form(texts: Any, pattern: str) -> Any:
    """The strings that a pattern does not match as a whole, without NULL."""
    is_match = pc.match_substring_regex(texts, f"^(?:{pattern})$")
    return texts.filter(pc.invert(is_match))


def _ends(column: Any) -> tuple[int | float | None, int | float | None]:
    """The minimum and maximum; none if some numbers are infinite or NaN."""
    if pa.types.is_floating(column.type) and pc.all(pc.is_finite(column)).as_py() is not True:
        return None, None
    extremes = pc.min_max(column).as_py()
    lowest = _number(extremes["min"])
    highest = _number(extremes["max"])
    # A decimal of many digits has no exact number in YAML.
    is_below = lowest is not None and _as_written(lowest) <= _as_written(extremes["min"])
    is_above = highest is not None and _as_written(highest) >= _as_written(extremes["max"])
    return (lowest if is_below else None), (highest if is_above else None)


def _as_written(number: int | float | Decimal) -> Decimal:
    return Decimal(str(number))


def _number(value: Any) -> int | float | None:
    if not isinstance(value, Decimal):
        return value if value is None or isinstance(value, int) else float(value)
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None


# Keys --------------------------------------------------------------------------------------------


def _key(table: ColumnTable, columns: Sequence[ObservedColumn]) -> tuple[str, ...]:
    """The columns that identify the rows: one, or else two; none if that would be coincidental."""
    candidates = sorted(
        (column for column in columns if column.nulls == 0 and _may_be_key(column)), key=_key_rank
    )
    if table.rows > 1:
        for column in candidates:
            if _identifies(column, table):
                return (column.name,)
    if not _FEWEST_ROWS <= table.rows <= _MOST_KEY_ROWS:
        return ()
    named = [
        column
        for column in candidates
        if column.is_named_like_a_key or family_of(column.type) is not Family.NUMBER
    ]
    for first, second in combinations(named[:_MOST_KEY_CANDIDATES], 2):
        if (first.distinct or table.rows) * (second.distinct or table.rows) < table.rows:
            continue
        pair = pa.table({"one": table.column(first.name), "other": table.column(second.name)})
        if _are_different(pair.slice(0, _MOST_READ)) and _are_different(pair):
            return first.name, second.name
    return ()


def _identifies(column: ObservedColumn, table: ColumnTable) -> bool:
    """True if a column without NULL has another value in each row."""
    if column.distinct is not None:
        return column.distinct == table.rows
    if column.is_named_like_a_key:
        return False  # its values are known to repeat
    values = table.column(column.name)
    part = _spread(values, _MOST_READ)
    if len(pc.unique(part)) < len(part):
        return False
    return distinct_count(values) == table.rows


def distinct_count(column: Any) -> int:
    """The number of different values of a column, without NULL. Arrow's `count_distinct` takes more
    than twice as long."""
    return len(pc.unique(column)) - bool(column.null_count)


def _are_different(rows: Any) -> bool:
    """True if no row of a table is repeated."""
    distinct = rows.group_by(rows.column_names).aggregate([]).num_rows
    return bool(distinct == rows.num_rows)


def _may_be_key(column: ObservedColumn) -> bool:
    is_whole = column.type in WHOLE_SIZES
    is_keyable = is_whole or family_of(column.type) in (Family.TEXT, Family.TIME)
    return is_keyable and not column.is_personal


def _key_rank(column: ObservedColumn) -> tuple[bool, int]:
    families = (Family.TEXT, Family.NUMBER, Family.TIME)
    return not column.is_named_like_a_key, families.index(family_of(column.type))


# The newest row -----------------------------------------------------------------------------------


def newest_timestamp(table: ColumnTable, profile: ObservedTable) -> datetime | None:
    """The newest timestamp of the clock column, in UTC; None if there is none."""
    if profile.clock is None or "timestamp" not in table.types[profile.clock]:
        return None
    newest = pc.max(table.column(profile.clock)).as_py()
    if isinstance(newest, str):
        newest = iso_timestamp(newest)
    if not isinstance(newest, datetime):
        return None
    return newest.replace(tzinfo=newest.tzinfo or timezone.utc).astimezone(timezone.utc)


def _newest_day(table: ColumnTable, profile: ObservedTable) -> date | None:
    """The day of the newest date or timestamp of the clock column; None if there is none."""
    if profile.clock is not None and table.types[profile.clock] == "date":
        newest: date | None = pc.max(table.column(profile.clock)).as_py()
        return newest
    timestamp = newest_timestamp(table, profile)
    return timestamp.date() if timestamp is not None else None
