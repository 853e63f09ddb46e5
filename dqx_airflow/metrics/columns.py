"""Where the names of columns lead, by the types that a schema has.

A name is a column, however it is spelled; where no column has it, it may lead to a field of a
struct: `address.city`. Names that differ in case alone are the same, as they are to Spark, unless
there is a column that is spelled exactly so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dqx_airflow.metrics.types import fields_of, spelled_like


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """Where a name leads: the names of the columns and fields on the way, and the type there."""

    path: tuple[str, ...]
    type: str


def find_column_path(name: str, types: Mapping[str, str]) -> ColumnPath | None:
    """Where a name leads among columns with their types; None where it leads nowhere."""
    return next(find_column_paths(name, types), None)


def find_column_paths(name: str, types: Mapping[str, str]) -> Iterator[ColumnPath]:
    """All that a name may mean: a column, and fields of structs to which its points lead."""
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
