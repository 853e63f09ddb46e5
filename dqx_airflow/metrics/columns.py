"""Resolves column names, given the types of a schema.

A name is a column, however it is spelled; if no column has it, it may be a field of a struct:
`address.city`. Names that differ only in case are the same, as in Spark, unless a column is spelled
exactly so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dqx_airflow.metrics.types import fields_of, spelled_like


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """What a name refers to: the columns and fields on the path, and the type at its end."""

    path: tuple[str, ...]
    type: str


def find_column_path(name: str, types: Mapping[str, str]) -> ColumnPath | None:
    """What a name refers to among columns with their types; None if nothing."""
    return next(find_column_paths(name, types), None)


def find_column_paths(name: str, types: Mapping[str, str]) -> Iterator[ColumnPath]:
    """Everything a name may refer to: a column, and struct fields that its dots lead to."""
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
