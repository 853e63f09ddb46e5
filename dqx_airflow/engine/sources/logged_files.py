"""The files in the log of a Delta table, in Arrow: their facts become values of Python only where
they are needed, since a table may have a million files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.engine.sources.partition_values import as_bytes

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
"""Some files of a log, as their numbers in it, in its order."""

_PARTITION = "partition."


class LoggedFiles:
    """The files in a log, with everything that it records about each, by the name of the column."""

    def __init__(self, actions: pa.Table) -> None:
        # By position: a column called `a.b` beside a field of that path gives one name twice.
        self._positions = {name: number for number, name in enumerate(actions.column_names)}
        self._actions = actions
        self._whole: dict[str, pa.Array] = {}
        self.all: Numbers = np.arange(len(actions), dtype=np.int64)

    def __contains__(self, name: str) -> bool:
        return name in self._positions

    def values(self, name: str, numbers: Numbers) -> list[Any]:
        """What the log records about some files; None for each if it has no such column."""
        if name not in self:
            return [None] * len(numbers)
        return _values_of(name, self._taken(name, numbers))

    def integers(self, name: str, numbers: Numbers) -> Numbers:
        """The sizes or times of some files, which each file has."""
        column = self._taken(name, numbers)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
        found: Numbers = column.cast(pa.int64()).to_numpy()
        return found

    def total(self, name: str, numbers: Numbers) -> int | None:
        """The sum of a column of counts; None if the log does not have it for each of the files."""
        if len(numbers) == 0:
            return 0
        if name not in self:
            return None
        column = self._taken(name, numbers)
        return None if column.null_count else int(pc.sum(column).as_py())

    def named(self, paths: Iterable[str]) -> Numbers:
        """The files with these paths in the log."""
        wanted = pa.array(paths, pa.string())
        is_named = pc.is_in(self._column("path").cast(pa.string()), value_set=wanted)
        found: Numbers = np.flatnonzero(is_named.to_numpy(zero_copy_only=False))
        return found

    def where(self, name: str, is_wanted: Callable[[Any], bool]) -> Numbers:
        """The files whose value in a column is wanted; each different value is asked for once."""
        codes, values = self.codes(name)
        wanted = [code for code, value in enumerate(values) if is_wanted(value)]
        found: Numbers = np.flatnonzero(np.isin(codes, wanted))
        return found

    def codes(self, name: str) -> tuple[Numbers, list[Any]]:
        """For each file the position of its value in the list of different values. Times are cut
        to the beginning of their day."""
        if name not in self:
            return np.zeros(len(self.all), dtype=np.int64), [None]
        column = self._column(name)
        if pa.types.is_timestamp(column.type) and column.type.unit == "us":
            # Without their zone, which is UTC: Arrow would look for it on the system.
            plain = column.cast(pa.timestamp("us"))
            column = pc.floor_temporal(plain, unit="day").cast(column.type)
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes: Numbers = encoded.indices.to_numpy().astype(np.int64)
        return codes, _values_of(name, encoded.dictionary)

    def _column(self, name: str) -> pa.Array:
        """A column in one piece: taking values from many pieces is slow."""
        if name not in self._whole:
            column = self._actions.column(self._positions[name])
            self._whole[name] = pa.concat_arrays([pa.array([], column.type), *column.chunks])
        return self._whole[name]

    def _taken(self, name: str, numbers: Numbers) -> pa.Array:
        column = self._column(name)
        return column if len(numbers) == len(column) else column.take(pa.array(numbers))


def _values_of(name: str, column: pa.Array) -> list[Any]:
    """Recorded values. Of dates and timestamps that Python does not have, such as those after the
    year 9999, partition values are strings, and statistics are unknown."""
    try:
        values = list(column.to_pylist())
    except (OverflowError, ValueError):
        return [_value_of(name, cell) for cell in column]
    if name.startswith(_PARTITION) and pa.types.is_binary(column.type):
        return [value if value is None else as_bytes(value) for value in values]
    return values


def _value_of(name: str, cell: pa.Scalar) -> Any:
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return str(cell.cast(pa.string())) if name.startswith(_PARTITION) else None
