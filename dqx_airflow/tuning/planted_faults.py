"""Faults planted in the rows of a good day, one at a time: as rows in memory, and as Spark SQL that
makes the same rows of the whole day."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from math import isinf, isnan
from string import ascii_lowercase, ascii_uppercase
from typing import Any, TypeAlias

from dqx_airflow.contracts.drafting import ObservedColumn
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.metrics.spark_values import EXACT, has_room, rounded_half_up
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import WHOLE_SIZES, Family, decimal_size, family_of
from dqx_airflow.plan.in_memory.table import Table, calculate, has_bits_for, narrowed
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.model import Lookup, MetricRequest
from dqx_airflow.tuning.day_rows import DAY, DayRows
from dqx_airflow.values import MASK, DatasetField

WORST_FIRST = (
    "lost rows",
    "lost group",
    "lost column",
    "renamed column",
    "yesterday again",
    "duplicated rows",
    "duplicated keys",
    "broken reference",
    "constant column",
    "other unit",
    "changed sign",
    "swapped columns",
    "changed type",
    "shifted dates",
    "shifted hours",
    "late rows",
    "NULLs",
    "truncated text",
    "new value",
    "changed case",
    "added space",
    "blank value",
    "added column",
)
_LOST = 0.3
"""The share of the rows that are lost."""
_HIT = 0.1
"""The share of the rows that are repeated or late, or of whose values some are wrong."""
_NEVER_SEEN = {"string": "never seen before", "int": -(2**31), "bigint": -(2**63)}
_FACTOR = Decimal("1.1")
"""The factor of a wrong rate, such as a tax that is added twice."""
_ZONE = timedelta(hours=2)
"""The difference between two time zones."""
_ROWS = ("num_rows()", "num_rows() / num_rows(lag 7)", "num_rows() / num_rows(lag 1)")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in the `rows` of a dataset, and the assertions that fail because of it: those that
    block, and those that only warn. If none blocks, `line` is an assertion that would, which holds
    on the fine day and on `days` days before it, or on the sample of the day that was
    judged; None if none was found."""

    kind: str
    dataset: str
    text: str
    rows: int
    noticed_by: tuple[str, ...] = ()
    warned_by: tuple[str, ...] = ()
    line: str | None = None
    days: int = 0
    is_of_sample: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A fault as Spark SQL: how often each row of a day is there, and the values of some columns,
    of which one may be `retyped`, or `lost`; the `added` columns; or the rows of the day before."""

    times: str = "1"
    cells: Mapping[str, str] = field(default_factory=dict)
    retyped: str | None = None
    lost: str | None = None
    added: Mapping[str, str] = field(default_factory=dict)
    is_of_day_before: bool = False

    @property
    def has_other_columns(self) -> bool:
        """Whether the columns are others, or one has another type."""
        return bool(self.retyped or self.lost or self.added)


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault, the rows with it, what it changes, and claims that may notice it, or metrics for
    such a claim, the best first."""

    fault: Fault
    table: Table
    change: Change
    lines: Sequence[str]

    def may_change(self, request: MetricRequest) -> bool:
        """Whether the value of a request may differ. The names in an argument or a predicate are
        somewhere in it."""
        written = repr((request.arguments, request.where, request.grouping)).lower()
        change = self.change
        if request.dataset != self.fault.dataset:
            return self.fault.dataset.lower() in written
        if change.times != "1" or change.has_other_columns or change.is_of_day_before:
            return True
        # A name that is quoted somewhere may be written otherwise there.
        is_named = any(it.lower() in written or not it.isidentifier() for it in change.cells)
        return is_named or request.definition.scan is Scan.MATCH


_Cells: TypeAlias = Mapping[str, tuple[Sequence[Any], str]]
"""The values of columns, by name, and the same as Spark SQL."""
_Hit: TypeAlias = tuple[Collection[int], str]
"""The places of some rows, and the condition in Spark SQL by which they are chosen in a whole
day."""


class Planter:
    """Plants faults in a dataset, the same ones for the same seed."""

    def __init__(self, rows: DayRows, on: date, seed: int) -> None:
        self.name, self.rows, self.on, self.seed = rows.ref.name, rows, on, seed
        self.table = rows.on(on)
        self.types = {column.name: column.type for column in self.table.fields}
        self.cells = dict(zip(self.types, zip(*self.table.rows, strict=True), strict=False))
        self.every = range(len(self.table.rows))
        self.marks = [marks_of(row, self.types.values()) for row in self.table.rows]
        self.key = [name for name in rows.ref.keys or rows.seen.key if name in self.cells]
        self.dated = rows.ref.date_column
        self.columns = [one for one in rows.seen.columns if one.name != self.dated]

    def faults(self, references: Iterable[Lookup]) -> Iterator[Planted]:
        """The faults that change something."""
        if self.every:
            of_columns = (one for column in self.columns for one in self._of_column(column))
            of_rows = (*self._of_rows(), *self._of_keys(references))
            found = (*of_rows, *self._other_columns(), *of_columns, *self._swapped())
            yield from (planted for planted in found if planted.table != self.table)

    def _of_rows(self) -> Iterator[Planted]:
        yield self._lost_rows()
        yield from self._lost_groups()
        yield from self._yesterday_again()
        yield self._duplicated_rows()
        yield from self._late_rows()

    def _lost_rows(self) -> Planted:
        text = f"{_LOST:.0%} of the rows are lost"
        hit = self._hit("lost", self.every, _LOST)
        return self._repeated("lost rows", text, hit, 0, _ROWS)

    def _lost_groups(self) -> Iterator[Planted]:
        """All rows with one of the values of a column with few values are lost."""
        for column in self.columns:
            if not column.values or not any(self.cells[column.name]):
                continue
            cells = self.cells[column.name]
            groups = sorted({*cells} - {None})
            gone = self._chance(column.name).choice(groups)
            places = [place for place in self.every if cells[place] == gone]
            hit = places, f"{quote_name(column.name)} = {self._literal(column.name, gone)}"
            if is_masked(column.name, self.rows.ref.masked):
                shown, lines = MASK, list(_ROWS)
            else:
                shown = gone
                each = f"num_rows() > 0 for each {show_name(column.name)}"
                all_groups = ", ".join(map(show_text, groups))
                lines = [f"{each} in [{all_groups}]", f"{each} in [{show_text(gone)}]"]
            text = f"the rows with {column.name} {shown} are lost"
            yield self._repeated("lost group", text, hit, 0, lines)

    def _yesterday_again(self) -> Iterator[Planted]:
        """The rows of the day before are there instead, with the date of the day."""
        before = self.rows.tables.get(self.on - DAY)
        if not self.dated or self.types[self.dated] == "string" or not before or not before.rows:
            return
        earlier = Planter(self.rows, self.on - DAY, self.seed)
        later = f"CAST({quote_name(self.dated)} + INTERVAL 1 DAY AS {self.types[self.dated]})"
        cells = {self.dated: (earlier.changed(self.dated, lambda it: it + DAY), later)}
        sums = [f"sum({show_name(one.name)}" for one in self.columns if self._is_measure(one)]
        lines = [*(f"{metric}) != {metric}, lag 1)" for metric in sums), *_ROWS]
        text = "the rows are the rows of the day before"
        change = Change(cells={self.dated: later}, is_of_day_before=True)
        yield self._planted("yesterday again", text, earlier.with_cells(cells), lines, change)

    def _duplicated_rows(self) -> Planted:
        names = [name for name in self.types if family_of(self.types[name]) is not Family.OTHER]
        count = f"duplicate_count([{', '.join(map(show_name, self.key or names))}])"
        text = f"{_HIT:.0%} of the rows are there twice"
        hit = self._hit("repeated", self.every)
        return self._repeated("duplicated rows", text, hit, 2, [f"{count} == 0", count, *_ROWS])

    def _late_rows(self) -> Iterator[Planted]:
        """The last rows by the column of their time are not there yet."""
        clock = self.rows.seen.clock
        if clock is None or clock == self.dated:
            return
        times = self.cells[clock]
        known = sorted(
            (place for place in self.every if times[place] is not None), key=times.__getitem__
        )
        late = known[round((1 - _HIT) * len(known)) :]
        first = times[late[0]] if late else None
        if first is not None:
            # By value, as in Spark: of rows of one time, some cannot be late.
            late = [place for place in known if times[place] >= first]
        text = f"the last {_HIT:.0%} of the rows by {clock} are not there yet"
        hit = late, f"{quote_name(clock)} >= {self._literal(clock, first)}"
        yield self._repeated("late rows", text, hit, 0, _ROWS)

    def _of_keys(self, references: Iterable[Lookup]) -> Iterator[Planted]:
        hit, key = self._hit("key", self.every), ", ".join(map(show_name, self.key))
        cells = {
            name: (
                [self.cells[name][place - (place in hit[0])] for place in self.every],
                self._replaced(name, hit, self.cells[name][0]),
            )
            for name in self.key
        }
        text = f"{_HIT:.0%} of the rows have the {key} of the row before"
        yield self._planted("duplicated keys", text, cells, [f"duplicate_count([{key}]) == 0"])
        own = (one for one in references if one.dataset == self.name)
        for one in {(it.column, it.reference): it for it in own}.values():
            if (value := _NEVER_SEEN.get(self.types.get(one.column, ""))) is not None:
                name, other = show_name(one.column), show_name(one.reference_column)
                looked_up = f"{name} in values({other}, dataset {show_name(one.reference)})"
                lines = [f"{rows}: {looked_up}" for rows in ("each row", "95% of rows")]
                text = f"are not in {one.reference}.{one.reference_column}"
                yield self._wrong("broken reference", one.column, text, value, lines)

    def _other_columns(self) -> Iterator[Planted]:
        """A column is lost, one is renamed, or one is added."""
        for column in self.columns:
            text = f"the column {column.name} is lost"
            lines = [f"column {show_name(column.name)} exists"]
            yield self._with_other_columns("lost column", text, column.name, {}, lines)
        added = self._new_name("added")
        lines = ["column_count()"]
        cells = {added: (["x" for _ in self.every], "'x'", "string")}
        yield self._with_other_columns("added column", "a column is added", None, cells, lines)
        if self.columns:
            lost = self._chance("renamed").choice(self.columns).name
            renamed = self._new_name(f"{lost}_new")
            cells = {renamed: (list(self.cells[lost]), quote_name(lost), self.types[lost])}
            lines = [f"column {show_name(lost)} exists"]
            text = f"the column {lost} is called {renamed}"
            yield self._with_other_columns("renamed column", text, lost, cells, lines)

    def _new_name(self, name: str) -> str:
        """A name that no column has."""
        known = {one.lower() for one in self.types}
        while name.lower() in known:
            name += "_"
        return name

    def _with_other_columns(
        self,
        kind: str,
        text: str,
        lost: str | None,
        added: Mapping[str, tuple[list[Any], str, str]],
        lines: Sequence[str],
    ) -> Planted:
        """The rows without a column, and with others: their values, the same as Spark SQL, and
        their types."""
        kept = [one for one in self.table.fields if one.name != lost]
        columns: list[Sequence[Any]] = [self.cells[one.name] for one in kept]
        for name, (values, _, spark_type) in added.items():
            kept.append(DatasetField(name, spark_type))
            columns.append(values)
        rows = zip(*columns, strict=True) if columns else (() for _ in self.every)
        change = Change(lost=lost, added={name: sql for name, (_, sql, _) in added.items()})
        fault = Fault(kind, self.name, text, len(self.every))
        return Planted(fault, Table(tuple(kept), tuple(rows)), change, lines)

    def _of_column(self, column: ObservedColumn) -> Iterator[Planted]:
        """The faults in the values of a column."""
        name, shown, kind = column.name, show_name(column.name), self.types[column.name]
        nulls, lines = f"null_count({shown})", self._lines(column)
        filled = [f"{nulls} == 0", f"{nulls} / num_rows()"]
        yield self._wrong("NULLs", name, "become NULL", None, filled)
        if column.values:
            yield self._wrong("new value", name, "become a new value", _NEVER_SEEN["string"], lines)
        if family_of(kind) is not Family.OTHER:
            yield from self._constant(column)
        if family_of(kind) is Family.TEXT:
            claims = [f'each row: trim({shown}) != ""']
            yield self._wrong("blank value", name, "become blank", " ", claims)
            yield from self._other_texts(column)
        if self._is_measure(column):
            yield from self._other_numbers(column)
        if family_of(kind) is Family.TIME:
            yield from self._other_times(column)
        if family_of(kind) in (Family.NUMBER, Family.TIME):
            cells = {name: (self.changed(name, str), f"CAST({quote_name(name)} AS STRING)")}
            lines, text = [f"column {shown} type {kind}"], f"{name} becomes a string"
            yield self._planted("changed type", text, cells, lines, Change(retyped=name))

    def _constant(self, column: ObservedColumn) -> Iterator[Planted]:
        """All values that are not NULL become one of them."""
        name = column.name
        known = [place for place in self.every if self.cells[name][place] is not None]
        if known:
            salt = f"{self.seed} constant {name}"
            value = self.cells[name][min(known, key=lambda at: hash_of(salt, self.marks[at]))]
            sql = f"IF({quote_name(name)} IS NULL, NULL, {self._literal(name, value)})"
            lines = [f"unique_count({show_name(name)})", *self._lines(column)]
            text = f"{name} has one value in all rows"
            cells = {name: (self.changed(name, lambda _: value), sql)}
            yield self._planted("constant column", text, cells, lines)

    def _other_numbers(self, column: ObservedColumn) -> Iterator[Planted]:
        """All values are in another unit, at another rate, or have the other sign."""
        kind, quoted = self.types[column.name], quote_name(column.name)
        factor = f"{_FACTOR}{'BD' if kind.startswith('decimal') else 'D'}"
        lines = self._lines(column)
        signs = lines
        if column.lowest is not None and column.lowest >= 0 and not self._is_masked(column):
            signs = [f"each row: {self._shown(column.name)} >= 0", *lines]

        def changed(
            fault: str, text: str, change: Callable[[Any], Any], sql: str, lines: Sequence[str]
        ) -> Planted:
            values = self.changed(column.name, change), f"try_cast({sql} AS {kind})"
            return self._planted(fault, f"{column.name} {text}", {column.name: values}, lines)

        yield changed(
            "other unit",
            "is multiplied by 100",
            lambda it: calculate("*", it, 100, kind),
            f"try_multiply({quoted}, 100)",
            lines,
        )
        yield changed(
            "other unit",
            "is divided by 1000",
            lambda it: _fitted(_times(it, Decimal("0.001"), float(it) / 1000), kind),
            f"{quoted} / 1000",
            lines,
        )
        yield changed(
            "other unit",
            f"is multiplied by {_FACTOR}",
            lambda it: _fitted(_times(it, _FACTOR, float(it) * float(_FACTOR)), kind),
            f"try_multiply({quoted}, {factor})",
            lines,
        )
        yield changed(
            "changed sign",
            "has the other sign",
            lambda it: calculate("*", it, -1, kind),
            f"try_multiply({quoted}, -1)",
            signs,
        )

    def _other_times(self, column: ObservedColumn) -> Iterator[Planted]:
        """All values are a day earlier, or, with a time, a few hours later."""
        name, kind = column.name, self.types[column.name]
        lines = self._lines(column)
        sql = f"CAST({quote_name(name)} - INTERVAL 1 DAY AS {kind})"
        cells = {name: (self.changed(name, lambda it: it - DAY if it.year > 1 else it), sql)}
        yield self._planted("shifted dates", f"{name} is a day earlier", cells, lines)
        if kind.startswith("timestamp"):
            hours = int(_ZONE.total_seconds()) // 3600
            sql = f"CAST({quote_name(name)} + INTERVAL {hours} HOURS AS {kind})"
            later = self.changed(name, lambda it: it + _ZONE if it.year < 9999 else it)
            text = f"{name} is {hours} hours later"
            yield self._planted("shifted hours", text, {name: (later, sql)}, lines)

    def _other_texts(self, column: ObservedColumn) -> Iterator[Planted]:
        """All values are cut off, in upper case, or end with a space."""
        name, quoted, lines = column.name, quote_name(column.name), self._lines(column)
        shown = show_name(name)
        longest = max((len(it) for it in self.cells[name] if it is not None), default=0)
        most = (longest + 1) // 2
        cut = (self.changed(name, lambda it: it[:most]), f"left({quoted}, {most})")
        lengths = [f"min_length({shown})", f"max_length({shown})"]
        text = f"{name} is cut off after {most} characters"
        yield self._planted("truncated text", text, {name: cut}, [*lines, *lengths])
        # Only ASCII: other capital letters depend on the locale and the version of Unicode.
        upper = (
            self.changed(name, lambda it: it.translate(_UPPER)),
            f"translate({quoted}, {quote_literal(ascii_lowercase)}, "
            f"{quote_literal(ascii_uppercase)})",
        )
        pattern = (
            [f"each row: {shown} matches {show_text(column.pattern)}"] if column.pattern else []
        )
        text = f"{name} is in upper case"
        yield self._planted("changed case", text, {name: upper}, [*lines, *pattern])
        spaced = (self.changed(name, lambda it: f"{it} "), f"concat({quoted}, ' ')")
        claims = [f"each row: trim({shown}) == {shown}", *lines]
        yield self._planted("added space", f"{name} ends with a space", {name: spaced}, claims)

    def _swapped(self) -> Iterator[Planted]:
        """Neighbours among the columns of each type."""
        for kind in dict.fromkeys(self.types.values()):
            for one, other in pairwise(it for it in self.columns if self.types[it.name] == kind):
                cells = {
                    it.name: (self.cells[by.name], quote_name(by.name))
                    for it, by in ((one, other), (other, one))
                }
                lines = [*self._lines(one), *self._lines(other)]
                text = f"{one.name} and {other.name} are swapped"
                yield self._planted("swapped columns", text, cells, lines)

    def changed(self, name: str, change: Callable[[Any], Any]) -> list[Any]:
        """The values of a column, those that are not NULL changed."""
        return [None if value is None else change(value) for value in self.cells[name]]

    def with_cells(self, cells: _Cells, retyped: str | None = None) -> Table:
        """The rows with other values in some columns, of which one is now a string."""
        columns = [cells[name][0] if name in cells else self.cells[name] for name in self.types]
        fields = (
            replace(one, type="string") if one.name == retyped else one for one in self.table.fields
        )
        return Table(tuple(fields), tuple(zip(*columns, strict=True)))

    def _wrong(self, kind: str, name: str, text: str, value: Any, lines: Sequence[str]) -> Planted:
        """A share of the values that are not NULL become another one."""
        values = list(self.cells[name])
        filled = [place for place in self.every if values[place] is not None]
        hit = self._hit(f"{kind} {name}", filled)
        for place in hit[0]:
            values[place] = value
        cells = {name: (values, self._replaced(name, hit, value))}
        return self._planted(kind, f"{_HIT:.0%} of {name} {text}", cells, lines)

    def _repeated(
        self, kind: str, text: str, hit: _Hit, times: int, lines: Sequence[str]
    ) -> Planted:
        """Some rows are there twice, or not at all."""
        rows, (places, sql) = enumerate(self.table.rows), (set(hit[0]), hit[1])
        kept = [row for place, row in rows for _ in range(times if place in places else 1)]
        table, change = replace(self.table, rows=tuple(kept)), Change(f"IF({sql}, {times}, 1)")
        return self._planted(kind, text, table, lines, change)

    def _planted(
        self,
        kind: str,
        text: str,
        changed: Table | _Cells,
        lines: Sequence[str],
        change: Change = Change(),
    ) -> Planted:
        if isinstance(changed, Table):
            table = changed
        else:
            table = self.with_cells(changed, change.retyped)
            change = replace(change, cells={name: sql for name, (_, sql) in changed.items()})
        pairs = zip(self.table.rows, table.rows, strict=False)
        differing = sum(was != row for was, row in pairs)
        rows = abs(len(table.rows) - len(self.every)) or differing
        return Planted(Fault(kind, self.name, text, rows), table, change, lines)

    def _is_masked(self, column: ObservedColumn) -> bool:
        return is_masked(column.name, self.rows.ref.masked)

    def _is_measure(self, column: ObservedColumn) -> bool:
        is_number = family_of(self.types[column.name]) is Family.NUMBER
        return is_number and not column.is_named_like_a_key and column.name not in self.key

    def _lines(self, column: ObservedColumn) -> list[str]:
        """Claims and metrics that may notice a fault in a column; for a masked one only a count."""
        name = self._shown(column.name)
        lines = [f"unique_count({show_name(column.name)})"]
        if is_masked(column.name, self.rows.ref.masked):
            return lines
        if self._is_measure(column):
            lines = [f"{metric}({name})" for metric in ("maximum", "average", "minimum")] + lines
        if column.values:
            lines.insert(0, f"each row: {name} in [{', '.join(map(show_text, column.values))}]")
        if family_of(self.types[column.name]) is Family.TIME:
            for other in self.types:
                if family_of(self.types[other]) is Family.TIME and other != column.name:
                    sides = [f"{name} {op} {self._shown(other)}" for op in ("==", "<=", ">=")]
                    lines += [f"each row: {claim}" for claim in sides]
        return lines

    def _shown(self, name: str) -> str:
        is_timestamp = self.types[name].startswith("timestamp")
        return f"date({show_name(name)})" if is_timestamp else show_name(name)

    def _chance(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {self.name} {what}")  # noqa: S311

    def _hit(self, what: str, places: Sequence[int], share: float = _HIT) -> _Hit:
        """Chooses rows at some places, as many as a share of all rows: those with the least hashes,
        which memory and Spark compute alike. Equal rows are chosen together."""
        salt = f"{self.seed} {what}"
        hashes = {place: hash_of(salt, self.marks[place]) for place in places}
        if not hashes:
            return (), "false"
        wanted = min(max(1, round(share * len(self.every))), len(hashes))
        limit = sorted(hashes.values())[wanted - 1]
        chosen = [place for place in places if hashes[place] <= limit]
        return chosen, f"{hash_sql(salt, self.types)} <= {limit}"

    def _replaced(self, name: str, hit: _Hit, value: Any) -> str:
        column = quote_name(name)
        return f"IF({column} IS NOT NULL AND {hit[1]}, {self._literal(name, value)}, {column})"

    def _literal(self, name: str, value: Any) -> str:
        text = "NULL" if value is None else quote_literal(str(value))
        return f"CAST({text} AS {self.types[name]})"


_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)


def _times(value: Any, factor: Decimal, as_float: float) -> Any:
    """The product of a number and a factor: exact for decimals, else the one of floats."""
    return EXACT.multiply(value, factor) if isinstance(value, Decimal) else as_float


def _fitted(number: Any, kind: str) -> Any:
    """A computed number as Spark's `try_cast` to the type of a column; None if it does not fit."""
    if kind in WHOLE_SIZES:
        is_finite = not (isinf(number) or isnan(number))
        return int(number) if is_finite and has_bits_for(int(number), kind) else None
    if kind == "float":
        return narrowed(number)
    if kind == "double":
        return number
    precision, scale = decimal_size(kind)
    rounded = rounded_half_up(number, scale)
    return rounded if has_room(rounded, precision, scale) else None


def marks_of(row: Sequence[Any], types: Iterable[str]) -> str:
    """A string that identifies a row by its values, the same in memory and in Spark."""
    return "|".join(_mark(value, kind) for value, kind in zip(row, types, strict=True))


def _mark(value: Any, kind: str) -> str:
    if value is None or family_of(kind) is Family.OTHER:
        return ""
    match value:
        case bool():
            return str(value).lower()
        case datetime():
            zone = value.tzinfo or timezone.utc
            return str((value.replace(tzinfo=zone) - _EPOCH) // timedelta(microseconds=1))
        case date():
            return value.isoformat()
        case int():
            return str(value)
        case Decimal() | float() if -(2**63) <= value < 2**63:
            return f"{int(value)}.{int((value - int(value)) * 1_000_000)}"
        case str():
            return value
    return ""


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _mark_sql(name: str, kind: str) -> str:
    """`_mark` in Spark SQL."""
    column = quote_name(name)
    if family_of(kind) is Family.OTHER:
        return "''"
    if kind in ("float", "double") or kind.startswith("decimal"):
        number = f"CAST({column} AS DOUBLE)" if kind == "float" else column
        whole = f"try_cast({number} AS BIGINT)"
        digits = f"try_cast(({number} - {whole}) * 1000000 AS BIGINT)"
        mark = f"concat({whole}, '.', {digits})"
    elif kind == "timestamp":
        mark = f"CAST(unix_micros({column}) AS STRING)"
    elif kind == "timestamp_ntz":
        day = f"unix_date(CAST({column} AS DATE)) * 86400000000"
        times = f"(hour({column}) * 60 + minute({column})) * 60000000L"
        seconds = f"CAST(extract(SECOND FROM {column}) * 1000000 AS BIGINT)"
        mark = f"CAST({day} + {times} + {seconds} AS STRING)"
    else:
        mark = f"CAST({column} AS STRING)"
    return f"coalesce({mark}, '')"


def hash_of(salt: str, marks: str) -> int:
    text = f"{salt}|{marks}"
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16)


def hash_sql(salt: str, types: Mapping[str, str]) -> str:
    """`_hash` in Spark SQL, of a row with columns of these types."""
    marks = ", ".join(_mark_sql(name, kind) for name, kind in types.items())
    text = f"concat_ws('|', {quote_literal(salt)}, {marks})"
    return f"CAST(conv(left(md5({text}), 8), 16, 10) AS BIGINT)"
