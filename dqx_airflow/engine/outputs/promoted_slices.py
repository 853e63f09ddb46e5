"""Which gate promoted which slice of a table, recorded in the table itself: no gate replaces the
rows of another.

A slice is a date, or the whole table, or the rows of either with certain values. The records are
the versions of application transactions in the log of the table. They outlive the history of its
commits, and two commits that record the same transaction concurrently conflict.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from dqx_airflow.values import DatasetRef, RunKey

Noted: TypeAlias = Callable[[str], int | None]
"""The number recorded in a table under a name; None if there is none."""

_DATED = "dqx:dated"


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows that a promotion replaces.

    :param on: the date; None if the table has no dates.
    :param values: columns with the value of these rows, as strings.
    """

    on: date | None
    values: tuple[tuple[str, str], ...] = ()

    @property
    def _day(self) -> str:
        return self.on.isoformat() if self.on else "all"

    @property
    def name(self) -> str:
        """An identifier of the slice."""
        values = json.dumps(sorted(self.values), ensure_ascii=False) if self.values else ""
        return f"{self._day}{values}"

    @property
    def order(self) -> str:
        """The name of the record of when the run started that last promoted the slice."""
        return f"dqx:promote:{self.name}"

    @property
    def columns(self) -> str:
        """The name under which the columns are recorded by which the date is cut into slices."""
        return f"dqx:slicing:{self._day}"

    @property
    def cut(self) -> int:
        """The number for the columns by which the date is cut; 0 if it is a single slice."""
        return _number(*sorted(name for name, _ in self.values)) if self.values else 0

    @property
    def whole(self) -> Slice:
        return Slice(self.on)

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value!r}" for name, value in self.values)
        day = f"the date {self._day}" if self.on else "the table"
        return f"{day} with {values}" if values else day


@dataclass(frozen=True, slots=True)
class Promoter:
    """The author of a promotion: a gate, in a scheduler run, possibly an instance of a mapped task.

    :param source: the path or table that it reads.
    """

    gate: str
    run: str
    map_index: int | None
    source: str

    @classmethod
    def of(cls, key: RunKey, ref: DatasetRef) -> Promoter:
        source = json.dumps([ref.location, ref.filter, sorted(ref.options)], ensure_ascii=False)
        index = key.map_index if key.map_index >= 0 else None
        return cls(key.gate, key.dag_run_id, index, source)

    def notes(self, place: Slice, order: int, noted: Noted) -> dict[str, int]:
        """The records of a commit that promotes a slice, by name.

        A record that is the same for all slices is written only once: writing it again would
        conflict with the other slices.
        """
        own_notes = {
            place.order: order,
            _note_name(place, "gate"): _number(self.gate),
            _note_name(place, "run"): _number(self.run),
            _note_name(place, "index"): -1 if self.map_index is None else self.map_index,
            _note_name(place, "source"): _number(self.source),
        }
        shared = {place.columns: place.cut}
        if place.on is not None:
            shared[_DATED] = 1
        return {
            **own_notes,
            **{name: value for name, value in shared.items() if noted(name) != value},
        }

    def objection(self, place: Slice, noted: Noted) -> tuple[str, str] | None:
        """Why this gate must not replace the slice, and how to resolve that; None if it may."""
        if place.on is None and noted(_DATED) is not None:
            return (
                "dates were promoted there one by one, but this dataset has no date_column and "
                "would replace them all",
                "give the dataset a date_column, or promote it to a separate location",
            )
        everything = Slice(None)
        if place.on is not None and self._is_of_another(everything, noted):
            return "another gate promotes the whole table", _OWN_PLACE
        cut = noted(place.columns)
        if cut is None and noted(place.whole.order) is not None:
            cut = 0  # promoted before this was recorded
        if cut is not None and cut != place.cut and not self._may_cut(place, cut, noted):
            columns = "other columns" if place.cut else "columns, with promote_slice"
            whole = f"{place.whole} was promoted there as a whole, by another gate"
            cut_up = f"{place.whole} was promoted there in slices of {columns}"
            return (cut_up, _SAME_SLICES) if cut else (whole, _OWN_PLACE)
        return self._objection_to_last(place, noted)

    def _objection_to_last(self, place: Slice, noted: Noted) -> tuple[str, str] | None:
        if self._is_of_another(place, noted):
            return f"another gate promoted {place} there, and its rows would be lost", _SLICE
        if noted(_note_name(place, "gate")) is None:
            return None
        same_source = noted(_note_name(place, "source")) == _number(self.source)
        same_index = noted(_note_name(place, "index")) == (
            -1 if self.map_index is None else self.map_index
        )
        if noted(_note_name(place, "run")) == _number(self.run):
            if same_source and same_index:
                return None
            promoter = (
                "this map index has promoted other data" if same_index else "another map index"
            )
            promoted = f"as {place}" if same_index else f"of this run promoted {place}"
            return f"{promoter} {promoted} there, and its rows would be lost", _SLICE
        if self.map_index is None or same_source or place.values:
            return None
        return (
            f"a mapped task of this gate that read other data promoted {place} there, and its "
            "rows would be lost",
            _SLICE,
        )

    def _is_of_another(self, place: Slice, noted: Noted) -> bool:
        gate = noted(_note_name(place, "gate"))
        return gate is not None and gate != _number(self.gate)

    def _may_cut(self, place: Slice, cut: int, noted: Noted) -> bool:
        """True if the gate may cut what it promoted as a whole: nothing is lost by that."""
        return cut == 0 and noted(_note_name(place.whole, "gate")) == _number(self.gate)


_OWN_PLACE = "promote to a separate location"
_SLICE = (
    "set promote_slice to the values of the rows of this task, as in "
    'promote_slice={"store": "zurich"}, or give each task a separate target'
)
_SAME_SLICES = "give the same columns in promote_slice, or promote to a separate location"


def _note_name(place: Slice, kind: str) -> str:
    return f"dqx:{kind}:{place.name}"


def _number(*texts: str) -> int:
    """A 62-bit integer that identifies strings."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2 | 1
