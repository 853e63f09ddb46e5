"""Which folders of a dataset are partitions, such as `ds=2024-03-02`, as Spark decides it.

From the folder of a file upward: folders without a value are passed over, then the last ones in a
row that have one are partitions. Nothing is one above the base path of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TypeAlias
from urllib.parse import unquote

from dqx_airflow.engine.sources.date_column import DateColumn
from dqx_airflow.engine.sources.partition_values import are_utf8

Partition: TypeAlias = tuple[tuple[str, str], ...]
"""The columns in the path of a folder, each with its string."""


@dataclass(frozen=True)
class PartitionFolders:
    """The folders with the files of a dataset, and which of them are partitions.

    :param depth: the number of names in the base path; None: no folder is a partition.
    """

    depth: int | None
    folders: Collection[str]
    _partitions: dict[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """By folder: a run asks for each of them on each of its dates."""

    def partition_of(self, folder: str) -> Partition:
        """The columns in the path of a folder. `prod` is no value in
        `env=prod/orders/ds=2024-03-02`."""
        return tuple((unquote(name), unquote(text)) for name, text in self.as_written(folder))

    def as_written(self, folder: str) -> Partition:
        """The columns in the path of a folder, with characters that are escaped there."""
        return self._above_and_in(folder)[1]

    def place_of(self, folder: str) -> str:
        """The folder that the partitions in the path of a folder are in."""
        return self._above_and_in(folder)[0]

    def _above_and_in(self, folder: str) -> tuple[str, Partition]:
        parts = folder.rstrip("/").split("/")
        pairs: list[tuple[str, str]] = []
        # The path begins with a slash, or with the name of a bucket.
        first = len(parts) if self.depth is None else self.depth + (not parts[0])
        while len(parts) > first:
            name, equals, text = parts[-1].partition("=")
            if equals:
                pairs.append((name, text))
            elif pairs:
                break
            parts.pop()
        return "/".join(parts), tuple(reversed(pairs))

    @cached_property
    def encoded(self) -> Mapping[str, Collection[str]]:
        """The values of each column in the names of folders, as they are written there."""
        found: dict[str, dict[str, None]] = {}
        for folder in self.folders:
            for name, text in self.as_written(folder):
                found.setdefault(unquote(name), {})[text] = None
        return found

    @cached_property
    def texts(self) -> Mapping[str, Collection[str]]:
        """The strings of each column in the names of folders."""
        return {name: dict.fromkeys(map(unquote, some)) for name, some in self.encoded.items()}

    @cached_property
    def in_utf8(self) -> tuple[str, ...]:
        """The columns whose folders certainly have bytes of UTF-8 behind `%`."""
        return tuple(name for name, some in self.encoded.items() if are_utf8(some))

    @property
    def names(self) -> list[str]:
        """The columns in the names of folders."""
        return [*self.texts]

    def text_of(self, folder: str, column: str) -> str | None:
        """The string of a column in the path of a folder; None if it has none."""
        if folder not in self._partitions:
            self._partitions[folder] = {
                name.casefold(): text for name, text in self.partition_of(folder)
            }
        return self._partitions[folder].get(column.casefold())

    def lead_to(self, column: DateColumn, dates: Collection[date | None]) -> Callable[[str], bool]:
        """Whether the path of a folder may lead to rows of some dates. None is all of them."""
        days = [on for on in dates if on]
        is_in_names = column.name.casefold() in map(str.casefold, self.names)
        if None in dates or not is_in_names:
            return lambda _: True

        def leads(folder: str) -> bool:
            text = self.text_of(folder, column.name)
            return any(text is None or not column.is_elsewhere(on, text) for on in days)

        return leads
