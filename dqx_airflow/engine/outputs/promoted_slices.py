"""Records in a table which gate promoted which of its rows, so that no gate replaces the rows of
another.

A region is recorded by value: the canonical values of columns, and the moments that a date covers.
The records are the versions of application transactions in the log of the table. They outlive the
history of its commits, and two commits that record the same transaction concurrently conflict.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

from dqx_airflow.values import DatasetRef, RunKey

Bounds: TypeAlias = "str | tuple[str, str] | None"
"""The values of a region in a column: one, or the moments from one to before another. None is a
string that is not a value of the column."""

_ADOPTED = "dqx.adopted."
"""The table property, before two gates, of when the first was allowed to replace what the second
had promoted until then, in milliseconds."""
_NOTE = re.compile(r"dqx:(promote|date|gate|run|index|source):(.*)", re.DOTALL)
_NAMED = "dqx:named:"
_BY = "dqx:by:"


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows that a promotion is to replace.

    :param on: the date; None if the dataset has no dates.
    :param values: columns with the value of these rows, as strings.
    """

    on: date | None
    values: tuple[tuple[str, str], ...] = ()

    @property
    def day(self) -> int:
        """The proleptic ordinal of the date; 0 without a date."""
        return self.on.toordinal() if self.on else 0

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value!r}" for name, value in self.values)
        day = f"the date {self.on}" if self.on else "the table"
        return f"{day} with {values}" if values else day


@dataclass(frozen=True, slots=True)
class Region:
    """The rows with certain values in some columns; all rows if there are no columns.

    `is_known` is false for a date whose column, time zone or format is unknown.
    """

    bounds: tuple[tuple[str, Bounds], ...] = ()
    is_known: bool = True

    @classmethod
    def of(cls, bounds: Mapping[str, Bounds], *, is_known: bool = True) -> Region:
        return cls(tuple(sorted(bounds.items())), is_known and None not in bounds.values())

    @property
    def name(self) -> str:
        return json.dumps(dict(self.bounds), ensure_ascii=False)

    def is_apart(self, other: Region) -> bool:
        """True if no row can be in both regions."""
        own = dict(self.bounds)
        return any(column in own and _are_apart(own[column], at) for column, at in other.bounds)

    def is_within(self, other: Region) -> bool:
        """True if every row of this region is in the other."""
        own = dict(self.bounds)
        return all(_is_within(own.get(column), at) for column, at in other.bounds)

    def __str__(self) -> str:
        parts = (
            f"{column} = {at}" if isinstance(at, str) else f"{column} from {at[0]} to {at[1]}"
            for column, at in self.bounds
            if at is not None
        )
        return ", ".join(parts) or "the whole table"


@dataclass(frozen=True, slots=True)
class Record:
    """The recorded facts about the last promotion of a region.

    :param name: the name of the region as recorded.
    :param notes: numbers by name: `promote`, `date`, `gate`, `run`, `index`, `source`.
    """

    name: str
    region: Region
    notes: Mapping[str, int]

    @property
    def gate(self) -> int | None:
        """The number that stands for the gate; None if an early version did not record it."""
        return self.notes.get("gate")

    @property
    def order(self) -> int:
        """The start of the run, in milliseconds since 1970; 0 if it was not recorded."""
        return self.notes.get("promote", 0)

    def __str__(self) -> str:
        where = str(self.region) if self.region.is_known else self.name
        on = date.fromordinal(self.notes.get("date") or 1).isoformat()
        return where if not self.notes.get("date") or on in where else f"{where}, as the date {on}"


@dataclass(frozen=True, slots=True)
class Objection:
    """The reason why a gate must not replace a region, and how to resolve it.

    :param record: the promotion whose rows would be lost.
    """

    problem: str
    advice: str
    record: Record


def claim(gate: str, region: Region) -> str:
    """The name of the transaction with which Spark's Delta source, which writes only one, records a
    promotion. Its number is `Record.order`."""
    return f"{_BY}{json.dumps([gate, region.name], ensure_ascii=False)}"


def with_claims(numbers: Mapping[str, int]) -> dict[str, int]:
    """The transactions of a table, with the transactions that deltalake would have written for each
    claim."""
    found = dict(numbers)
    for name, order in numbers.items():
        if name.startswith(_BY):
            gate, region = json.loads(name[len(_BY) :])
            found[f"{_NAMED}{gate}"] = _number(gate)
            if order > found.get(f"dqx:promote:{region}", -1):
                found |= {f"dqx:promote:{region}": order, f"dqx:gate:{region}": _number(gate)}
    return found


def recorded(numbers: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The notes on each region, by its name, from all transactions of a table."""
    found: dict[str, dict[str, int]] = {}
    for name, number in numbers.items():
        if match := _NOTE.fullmatch(name):
            found.setdefault(match[2], {})[match[1]] = number
    return found


def spelled(name: str) -> tuple[date | None, dict[str, Bounds]]:
    """Parses the name of a region into a date without a column, or None, and the bounds by column.
    Earlier versions recorded such a date, and values as the user spelled them."""
    if name.startswith("{"):
        bounds: dict[str, Any] = json.loads(name)
        return None, {key: tuple(at) if isinstance(at, list) else at for key, at in bounds.items()}
    is_dated = not name.startswith("all")
    values = dict(json.loads(name[10 if is_dated else 3 :] or "[]"))
    return date.fromisoformat(name[:10]) if is_dated else None, values


def adoption(gate: str, owner: str) -> str:
    """The name of the table property by which a gate may replace the rows of another one."""
    return f"{_ADOPTED}{json.dumps([gate, owner], ensure_ascii=False)}"


def adopted_by(gate: str, properties: Mapping[str, str]) -> dict[str, int]:
    """The latest `Record.order` that a gate may replace, by the name of the owner of the rows."""
    found: dict[str, int] = {}
    for name, until in properties.items():
        if name.startswith(_ADOPTED):
            by, owner = json.loads(name[len(_ADOPTED) :])
            if by == gate:
                found[owner] = int(until)
    return found


def gates_in(numbers: Mapping[str, int]) -> list[str]:
    """The gates that have promoted into a table, as far as they are recorded by name."""
    return sorted(name[len(_NAMED) :] for name in numbers if name.startswith(_NAMED))


def has_promoted(gate: str, numbers: Mapping[str, int]) -> bool:
    """True if the transactions of a table include a promotion by a gate, or by an unknown one."""
    owners = [notes.get("gate") for notes in recorded(numbers).values()]
    return _number(gate) in owners or None in owners


def gate_of(number: int | None, numbers: Mapping[str, int]) -> str | None:
    """The name of the gate that a number stands for; None if an early version did not record it."""
    names = (name for name, known in numbers.items() if known == number)
    return next((name[len(_NAMED) :] for name in names if name.startswith(_NAMED)), None)


@dataclass(frozen=True, slots=True)
class Promoter:
    """The author of a promotion: a gate, in a scheduler run, possibly an instance of a mapped task.

    :param source: the path or table that the gate reads.
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

    def notes(
        self, asked: Slice, region: Region, order: int, numbers: Mapping[str, int]
    ) -> dict[str, int]:
        """The transactions to write in a commit that promotes a region: numbers by name.

        :param numbers: the transactions of the table. The transaction that is the same for all
            regions is written only once: writing it again would conflict with the other regions.
        """
        notes = {
            "promote": order,
            "date": asked.day,
            "gate": _number(self.gate),
            "run": _number(self.run),
            "index": -1 if self.map_index is None else self.map_index,
            "source": _number(self.source),
        }
        named = f"{_NAMED}{self.gate}"
        shared = {} if named in numbers else {named: notes["gate"]}
        return {f"dqx:{kind}:{region.name}": note for kind, note in notes.items()} | shared

    def owns(self, record: Record) -> bool:
        return record.gate == _number(self.gate)

    def objection(
        self,
        asked: Slice,
        region: Region,
        records: Sequence[Record],
        adopted: Mapping[str, int],
        has_rows: Callable[[], bool],
    ) -> Objection | None:
        """The objection to replacing a region by this gate; None if it may.

        :param asked: the date and the values to replace, as the user wrote them.
        :param records: the promotions into the table.
        :param adopted: the latest `Record.order` that this gate may replace, by owner.
        :param has_rows: returns true if the table has rows in the region.
        """
        until: dict[int | None, int] = {_number(gate): end for gate, end in adopted.items()}
        until[None] = adopted.get(self.gate, -1)  # rows without a recorded owner
        others = [
            record
            for record in records
            if not record.region.is_apart(region) and until.get(record.gate, -1) < record.order
        ]
        same = [record for record in others if record.region == region]
        newest = max(same, key=lambda record: record.order, default=None)
        if newest is not None and (objection := self._objection_to_same(asked, newest)):
            return objection
        for record in others:
            is_own = self.owns(record)
            if not record.region.is_known:
                # What this gate has promoted already was not of others.
                if newest is None and has_rows():
                    whose = "this" if is_own else "another"
                    return Objection(
                        f"whether {asked} overlaps what {whose} gate promoted there is unknown",
                        f"if its rows may be replaced, {_ADOPT}",
                        record,
                    )
            elif not self._may_replace(asked, region, record):
                whose = "this gate has promoted" if is_own else "another gate promoted"
                return Objection(
                    f"{asked} overlaps other rows that {whose} there",
                    _AS_BEFORE if is_own else _APART,
                    record,
                )
        return None

    def _may_replace(self, asked: Slice, region: Region, record: Record) -> bool:
        """True if the region equals the recorded one, or belongs to it and to the same date."""
        if not self.owns(record):
            return record.region == region
        has_same_day = record.notes.get("date", asked.day) == asked.day
        is_same = record.region == region and 0 in (record.notes.get("date", 0), asked.day)
        return is_same or (has_same_day and region.is_within(record.region))

    def _objection_to_same(self, asked: Slice, record: Record) -> Objection | None:
        if record.gate is None:
            return None
        lost = "and its rows would be lost"
        if not self.owns(record):
            problem = f"another gate promoted {asked} there, {lost}"
            return Objection(problem, f"{_SLICE}; if they may be replaced, {_ADOPT}", record)
        same_source = record.notes.get("source") == _number(self.source)
        same_index = record.notes.get("index") == (-1 if self.map_index is None else self.map_index)
        if record.notes.get("run") == _number(self.run):
            if same_source and same_index:
                return None
            promoter = (
                "this map index has promoted other data" if same_index else "another map index"
            )
            promoted = f"as {asked}" if same_index else f"of this run promoted {asked}"
            return Objection(f"{promoter} {promoted} there, {lost}", _SLICE, record)
        if self.map_index is None or same_source or asked.values or "source" not in record.notes:
            return None
        return Objection(
            f"a mapped task of this gate that read other data promoted {asked} there, {lost}",
            _SLICE,
            record,
        )


_ADOPT = "run `dql tables adopt {target} --gate {gate} --from-gate {owner}`"
_ADOPT_OWN = "run `dql tables adopt {target} --gate {gate}`"
_SLICE = (
    "set promote_slice to the values of the rows of this task, as in "
    'promote_slice={{"store": "zurich"}}, or give each task a separate target'
)
_APART = (
    "give all gates of a target the same columns in promote_slice and the same days, or separate "
    f"targets; if the rows may be replaced, {_ADOPT}"
)
_AS_BEFORE = (
    "give the same promote_slice, date_column, date_format and time_zone as before, or promote to "
    f"a separate location; if the rows may be replaced, {_ADOPT_OWN}"
)


def advice_of(objection: Objection, target: str, gate: str, owner: str) -> str:
    """The advice of an objection, with the command to type."""
    names = {"target": target, "gate": gate, "owner": owner}
    return objection.advice.format_map({key: shlex.quote(name) for key, name in names.items()})


def _are_apart(bounds: Bounds, others: Bounds) -> bool:
    if isinstance(bounds, str) and isinstance(others, str):
        return bounds != others
    try:
        (first, end), (other_first, other_end) = _moments(bounds), _moments(others)
        return end <= other_first or other_end <= first
    except (TypeError, ValueError):
        return False


def _is_within(bounds: Bounds, others: Bounds) -> bool:
    if bounds is None or others is None or isinstance(others, str):
        return bounds == others is not None
    try:
        (first, end), (other_first, other_end) = _moments(bounds), _moments(others)
        return other_first <= first and end <= other_end
    except (TypeError, ValueError):
        return False


def _moments(bounds: Bounds) -> tuple[datetime, datetime]:
    """The first moment within bounds, and the first moment after them.

    :raises ValueError: the bounds are not moments.
    """
    if isinstance(bounds, tuple):
        return datetime.fromisoformat(bounds[0]), datetime.fromisoformat(bounds[1])
    moment = datetime.fromisoformat(bounds or "")
    return moment, moment + timedelta(microseconds=1)


def _number(*texts: str) -> int:
    """A 62-bit integer from the digest of some strings."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2 | 1
