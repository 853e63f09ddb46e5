"""References between the tables of a lake: columns whose values are keys of another table.

A pair of columns is a candidate by its names: `customer_id` refers to `customers.id`, to
`customers.customer_id`, and `country` to `countries.code`. It is a reference if the values of the
one are, but for a few, values of the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.dql.watches import is_named_like_a_key
from dqx_airflow.errors import DqxError
from dqx_airflow.metrics.types import WHOLE_SIZES, Family, family_of
from dqx_airflow.tuning.column_tables import ColumnTable
from dqx_airflow.tuning.lake.reading import ReadTable, read_table_files
from dqx_airflow.tuning.lake.table_draft import DraftedColumn, TableDraft

_LEAST_INCLUDED = 0.95
"""The least share of different values that are keys of the other table."""

_FEWEST_VALUES = 2
_MOST_REPEATED = 0.01
"""The share of rows that may repeat a key, which is then a fault of it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column whose values are keys of another table.

    :param missing: its different values that are not among the keys.
    :param missing_rows: the rows with such values.
    """

    table: str
    column: str
    to_table: str
    to_column: str
    values: int
    missing: int = 0
    missing_rows: int = 0


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A pair of columns that may be a reference, by their names and types."""

    table: TableDraft
    column: DraftedColumn
    to_table: TableDraft
    to_column: DraftedColumn


def references_between(
    drafts: Sequence[TableDraft], read: ReadTable = read_table_files
) -> list[Reference]:
    """The references between drafted tables, ordered by table and column.

    The keys of one table are in memory at a time.
    """
    by_key: dict[tuple[str, str], list[_Candidate]] = {}
    for candidate in _candidates(drafts):
        key = candidate.to_table.name, candidate.to_column.name
        by_key.setdefault(key, []).append(candidate)
    best: dict[tuple[str, str], Reference] = {}
    for candidates in by_key.values():
        for reference in _references_to(candidates, read):
            place = reference.table, reference.column
            known = best.get(place)
            if known is None or _rank(reference) < _rank(known):
                best[place] = reference
    return [best[place] for place in sorted(best)]


def _rank(reference: Reference) -> tuple[float, str, str]:
    """The order of references of one column: with the fewest missing values first."""
    return reference.missing / reference.values, reference.to_table, reference.to_column


def _references_to(candidates: Sequence[_Candidate], read: ReadTable) -> Iterator[Reference]:
    """The references among candidates for one key."""
    target = candidates[0]
    try:
        keys = pc.unique(_values_of(target.to_table, target.to_column, read))
    except DqxError:
        return  # the table has changed since it was read
    for candidate in candidates:
        try:
            values = _values_of(candidate.table, candidate.column, read)
            counts = pc.value_counts(values.drop_null())
        except DqxError:
            continue
        values, rows = counts.field("values"), counts.field("counts")
        missing = pc.invert(pc.is_in(values, value_set=keys))
        number = pc.sum(missing).as_py() or 0
        if len(values) - number >= _LEAST_INCLUDED * len(values):
            yield Reference(
                candidate.table.name,
                candidate.column.name,
                candidate.to_table.name,
                candidate.to_column.name,
                values=len(values),
                missing=number,
                missing_rows=pc.sum(pc.filter(rows, missing)).as_py() or 0,
            )


def _values_of(draft: TableDraft, column: DraftedColumn, read: ReadTable) -> Any:
    """The values of a column, as strings or as whole numbers.

    :raises DatasetError: the table can no longer be read.
    """

    only = pa.field(column.name, pa.string() if _is_text(column) else pa.int64())

    def values_in(table: ColumnTable) -> Any:
        values = pc.cast(table.column(column.name), only.type)
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values

    return read(draft.table, values_in, only)


def _candidates(drafts: Sequence[TableDraft]) -> Iterator[_Candidate]:
    targets = [
        (draft, column)
        for draft in drafts
        if not draft.problem and draft.rows
        for column in draft.columns
        if _may_be_target(draft, column)
    ]
    for draft in drafts:
        for column in draft.columns if not draft.problem else ():
            for to_table, to_column in targets:
                if to_table is not draft and _fits(draft, column, to_table, to_column):
                    yield _Candidate(draft, column, to_table, to_column)


def _may_be_target(draft: TableDraft, column: DraftedColumn) -> bool:
    """True for the key of a table, and for a column that would be the key but for a few rows."""
    if not _is_comparable(column) or not column.distinct or column.name in _masked(draft):
        return False
    if draft.key == (column.name,):
        return True
    is_almost_key = draft.rows - column.distinct <= _MOST_REPEATED * draft.rows
    return is_almost_key and is_named_like_a_key(column.name)


def _fits(
    draft: TableDraft, column: DraftedColumn, to_table: TableDraft, to_column: DraftedColumn
) -> bool:
    """True if the names and types of two columns suggest a reference."""
    if not _is_comparable(column) or column.name in _masked(draft):
        return False
    if column.distinct is not None and column.distinct < _FEWEST_VALUES:
        return False
    if _is_text(column) != _is_text(to_column):
        return False
    if draft.key == (column.name,):
        return False  # two tables with one key: which of them refers is unknown
    name, key = column.name.lower(), to_column.name.lower()
    if name == key:
        return key not in ("id", "key", "code", "uuid", "number", "no", "name")
    thing = _singular(to_table.name.lower())
    return any(
        name == form or name.endswith(f"_{form}") for form in (f"{thing}_{key}", thing) if form
    )


def _is_comparable(column: DraftedColumn) -> bool:
    return column.type in WHOLE_SIZES or _is_text(column)


def _is_text(column: DraftedColumn) -> bool:
    return family_of(column.type) is Family.TEXT


def _masked(draft: TableDraft) -> Sequence[str]:
    masked: Sequence[str] = draft.settings.get("masked", ())
    return masked


def _singular(name: str) -> str:
    """The name of one row of a table: `country` for `countries`."""
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    if name.endswith(("sses", "xes", "ches", "shes")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name
