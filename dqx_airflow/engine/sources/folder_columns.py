"""The columns in the names of folders of files, such as `ds=2024-03-02`, with the types that Spark
infers from all of them: only of strings of which that type is certain, which are dates, whole
numbers of at most nine digits, and words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pyspark.sql.types import DataType, DateType, IntegerType, StringType, StructType

from dqx_airflow.engine.sources.partition_folders import PartitionFolders
from dqx_airflow.engine.sources.partition_values import NO_VALUE

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
_WORD = re.compile(r"(?!(?:NaN|Infinity) *$|[Tt]\d)[A-Za-z_][ -~]*", re.ASCII)
"""Strings that are neither numbers nor times to Java, which strips them."""


def _as_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def _as_whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _as_word(text: str) -> str | None:
    return text if _WORD.fullmatch(text) else None


_KINDS: tuple[tuple[DataType, Callable[[str], Any]], ...] = (
    (DateType(), _as_date),
    (IntegerType(), _as_whole),
    (StringType(), _as_word),
)
"""The types that are inferred, each with the value of a string, or None."""


class UncertainFoldersError(Exception):
    """Folders in which an engine may find other values than Spark; the text says which."""


@dataclass(frozen=True, slots=True)
class FolderColumn:
    """A column in the names of folders, with its values by their strings."""

    name: str
    type: DataType
    values: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, texts: Collection[str]) -> FolderColumn | None:
        """The column with the type that Spark infers from strings; None if that is not certain."""
        for kind, value_of in _KINDS:
            values = {text: value_of(text) for text in texts if text != NO_VALUE}
            if values and None not in values.values():
                return cls(name, kind, {**values, NO_VALUE: None})
        return None


def columns_of_folders(
    partitions: PartitionFolders, in_files: Collection[str]
) -> tuple[FolderColumn, ...]:
    """The columns in the names of folders.

    :param in_files: the columns in the files, in lower case.
    :raises UncertainFoldersError: their types are not certain, or folders name other columns than
        the first one, a column twice, or one that is in the files, or are not in one folder.
    """
    folders = partitions.folders
    names = partitions.names
    if any([name for name, _ in partitions.partition_of(one)] != names for one in folders):
        raise UncertainFoldersError("folders that name different columns")
    if len({partitions.place_of(folder) for folder in folders}) > 1:
        raise UncertainFoldersError("partitions in several folders")
    columns = []
    for name, found in partitions.texts.items():
        column = FolderColumn.of(name, found)
        # Spark takes an escaped digit for a character of a string.
        is_string = column is not None and column.type == StringType()
        if column is None or (
            not is_string and any("%" in one for one in partitions.encoded[name])
        ):
            raise UncertainFoldersError(f"the values of {name} in the names of folders")
        columns.append(column)
    if len({name.casefold() for name in names}) < len(names):
        raise UncertainFoldersError(f"several folders that name {names[0]}")
    both = [name for name in names if name.lower() in in_files]
    if both:
        what = f"{both[0]}, which is in the files and in the names of folders,"
        raise UncertainFoldersError(what)
    return tuple(columns)


def without_folders(struct: StructType, columns: Iterable[FolderColumn]) -> StructType:
    """The columns of a schema that no folder names."""
    folders = {column.name.casefold() for column in columns}
    return StructType([one for one in struct.fields if one.name.casefold() not in folders])
