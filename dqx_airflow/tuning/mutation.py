"""Mutation testing of suites: plants faults in the rows of a fine day, one at a time, and finds a
line of DQL for each fault that no assertion notices.

Mutation testing of programs: DeMillo, Lipton and Sayward, "Hints on test data selection", 1978.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise, takewhile
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.contracts.drafting import ObservedColumn, ObservedTable
from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.dql.watches import claims_on
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.metric import Scan
from dqx_airflow.metrics.sql import quote_literal, quote_name
from dqx_airflow.metrics.types import Family, family_of
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table, calculate, value_of
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.model import Lookup, MetricRequest, Plan, Scanned
from dqx_airflow.plan.selection import plan_of
from dqx_airflow.tuning import column_tables, observed_days, table_profile
from dqx_airflow.values import MASK, DatasetRef, GateRequest, Severity, SourceFile, Status, Verdict

_WORST_FIRST = (
    "lost rows",
    "lost group",
    "yesterday again",
    "duplicated rows",
    "duplicated keys",
    "broken reference",
    "other unit",
    "swapped columns",
    "changed type",
    "shifted dates",
    "late rows",
    "NULLs",
    "new value",
    "blank value",
)
_LOST = 0.3
"""The share of the rows that are lost."""
_HIT = 0.1
"""The share of the rows that are repeated or late, or of whose values some are wrong."""
DAY = timedelta(days=1)
_MOST_DAYS = 30
"""The days before the fine one on which a suggested line is tried."""
_NEVER_SEEN = {"string": "never seen before", "int": -(2**31), "bigint": -(2**63)}
_ROWS = ("num_rows()", "num_rows() / num_rows(lag 7)", "num_rows() / num_rows(lag 1)")


# The rows of a day -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DayRows:
    """The rows of a dataset on a date, and on the days before it, by date. Without a date column
    all rows belong to every date, by None.

    Days without rows are among them. `rows` is the number of rows of the date, more than were read
    if these are a sample. `seen` is the profile of what was read.
    """

    ref: DatasetRef
    tables: Mapping[date | None, Table]
    rows: int
    seen: ObservedTable

    def is_sample(self, on: date) -> bool:
        """Whether only some rows of the date are here."""
        return len(self.on(on).rows) < self.rows

    def judged(self, on: date) -> str:
        """How many rows of the date are here, and of how many they are a sample."""
        return f"{len(self.on(on).rows):,} of {self.rows:,} rows"

    def on(self, *days: date) -> Table:
        """The rows of some days; all of a dataset without dates."""
        wanted = dict.fromkeys(days) if self.ref.date_column else (None,)
        rows = tuple(row for day in wanted if day in self.tables for row in self.tables[day].rows)
        return replace(next(iter(self.tables.values())), rows=rows)


def read_days(ref: DatasetRef, on: date, *, days: int, most: int, seed: int = 0) -> DayRows:
    """The rows of a dataset as a gate reads them, without Spark.

    :param days: how many days before the date are wanted; those beyond `most` rows in all are not
        read.
    :param most: the number of rows above which the rows of the date are sampled.
    :raises RequestError: only Spark can read them.
    :raises DatasetError: they cannot be read.
    """
    reasons = {
        "it has a filter": ref.filter,
        "it has a declared schema": ref.schema,
        "it is not a path": ref.path is None,
        f"its format is {ref.format}": ref.path and ref.format not in column_tables.FORMATS,
    }
    why = [reason for reason, is_so in reasons.items() if is_so]
    if ref.path is None or why:
        raise RequestError(
            f"dataset '{ref.name}' can only be read with Spark: {', and '.join(why)}",
            f"add --dataset '{ref.name}=PATH?date_column=COLUMN', its rows as Parquet or Delta, "
            "or let `dql mutate` read it with Spark by --connection 'local[*]'",
        )

    read = partial(days_of, ref=ref, on=on, days=days, most=most, seed=seed)
    version = ref.version if ref.version is not None else ref.timestamp
    return column_tables.read_files(ref.path, ref.format, read, ref.options, version)


def days_of(
    table: column_tables.ColumnTable, ref: DatasetRef, on: date, *, days: int, most: int, seed: int
) -> DayRows:
    """The rows of a dataset as for `read_days`, from its columns."""
    places: dict[date | None, Any] = {None: pa.array(range(table.rows), pa.int64())}
    column = None
    if ref.date_column:
        column, dates = observed_days.date_column_of(table, ref)
        counts = observed_days.counted(dates)
        wanted = [on]
        while len(wanted) <= days and sum(counts.get(day, 0) for day in wanted) <= most:
            wanted.append(on - timedelta(days=len(wanted)))
        places = {day: pc.indices_nonzero(pc.equal(dates, day)) for day in wanted}
        if len(places) > 1 and sum(map(len, places.values())) > most:
            places.popitem()
    newest = next(iter(places))
    rows = len(places[newest])
    if rows > most:
        chosen = random.Random(seed).sample(range(rows), most)  # noqa: S311
        places[newest] = places[newest].take(pa.array(sorted(chosen)))
    chosen_rows = pa.concat_arrays([*places.values()])
    columns = {name: table.column(name).take(chosen_rows) for name in table.names}
    part = replace(table, rows=len(chosen_rows), column=columns.__getitem__)
    values = {name: _values_of(column, table.types[name]) for name, column in columns.items()}
    whole = Table.of_columns(values, table.types)
    unread, tables = iter(whole.rows), {}
    for day, found in places.items():
        tables[day] = replace(whole, rows=tuple(next(unread) for _ in found))
    seen = table_profile.profile_of_columns(part, ref.name, ref.location)
    return DayRows(replace(ref, date_column=column), tables, rows, seen)


def _values_of(column: Any, spark_type: str) -> list[Any]:
    """The values of a column in Python; strings that stand for another type are converted."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("us", column.type.tz), safe=False)
    is_read = pa.types.is_string(column.type) and family_of(spark_type) is not Family.TEXT
    values = column.to_pylist()
    return [value_of(it, spark_type) if is_read and it is not None else it for it in values]


@dataclass(frozen=True, slots=True)
class MemoryJudge:
    """Judges suites over the rows of a day in plain Python, with the rules of a gate.

    :param request: the gate, its datasets and options.
    :param data: the rows by dataset.
    :param now: the time from which ages on the date are measured.
    """

    request: GateRequest
    data: Mapping[str, DayRows]
    now: datetime
    is_of_samples: ClassVar[bool] = True
    """Whether of larger days only the rows that were read are judged."""

    def plan(self, checked: Checked, on: date | None = None) -> Plan:
        """The plan of a suite over these datasets."""
        watched = {
            name: claims_on(
                {column.name: column.type for column in self.data[name].on().fields},
                self.data[name].ref,
            )
            for name in checked.valid_suite.watched
        }
        key = replace(self.request.run_key, date=on or self.request.run_key.date)
        return plan_of(replace(self.request, run_key=key), checked, watched)

    def fine(self, plan: Plan) -> Scanned:
        """The values of the requests of a plan without faults."""
        return self.scan(plan, None)

    def with_faults(
        self, plan: Plan, planted: Iterable[Planted], fine: Scanned
    ) -> Iterator[tuple[Planted, Scanned]]:
        """Each of some faults, and the values with it.

        :param fine: the values without them.
        """
        for one in planted:
            yield one, self.scan(plan, one, fine)

    def scan(self, plan: Plan, planted: Planted | None, known: Scanned | None = None) -> Scanned:
        """The values of the requests of a plan. Days that were not read have none.

        :param planted: a fault in the rows of a dataset on the date of the plan.
        :param known: the values without them: only what may differ is measured again.
        """
        days_with_fault = (None, plan.date)
        scanned = Scanned()
        wanted = set(plan.requests)
        if planted is not None and known is not None:
            wanted = {
                request
                for request in wanted
                if request.date in days_with_fault and planted.may_change(request)
            }
            scanned = known.of(request for request in plan.requests if request not in wanted)
        refs = [rows.ref for rows in self.data.values()]
        for day in {request.date for request in wanted}:
            requests = tuple(one for one in plan.requests if one in wanted and one.date == day)
            tables = self._tables(day, plan.date)
            if planted is not None and day in days_with_fault:
                tables[planted.fault.dataset] = planted.table
            scanned.add(measure(replace(plan, requests=requests), refs, tables))
        return scanned

    def _tables(self, day: date | None, on: date) -> dict[str, Table]:
        """The rows of each dataset that the requests of a day measure; None is the day of requests
        without a date. Datasets whose rows of the day were not read have none."""
        return {
            name: rows.on(day or on, on)
            for name, rows in self.data.items()
            if day is None or rows.ref.date_column is None or day in rows.tables
        }

    def judge(self, plan: Plan, scanned: Scanned) -> tuple[Verdict, ...]:
        """The verdicts, as at the same time of day on the date of the plan."""
        now = self.now - (self.request.run_key.date - plan.date)
        return evaluate(plan, scanned, self.request.skip_dates, now=now)


# Faults ------------------------------------------------------------------------------------------


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
    of which one may be `retyped`; or the rows of the day before."""

    times: str = "1"
    cells: Mapping[str, str] = field(default_factory=dict)
    retyped: str | None = None
    is_of_day_before: bool = False


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
        if change.times != "1" or change.retyped or change.is_of_day_before:
            return True
        # A name that is quoted somewhere may be written otherwise there.
        is_named = any(it.lower() in written or not it.isidentifier() for it in change.cells)
        return is_named or request.definition.scan is Scan.MATCH


@dataclass(frozen=True, slots=True)
class Mutation:
    """The faults of a suite on a day, those that block nothing first, the worst first; the
    assertions that were not judged, with the reason: they notice nothing; and how many rows of each
    dataset were judged, as text."""

    suite: str
    date: date
    faults: tuple[Fault, ...]
    not_judged: Mapping[str, str]
    rows: Mapping[str, str]

    @property
    def missed(self) -> tuple[Fault, ...]:
        """The faults that block nothing."""
        return tuple(fault for fault in self.faults if not fault.noticed_by)

    @property
    def score(self) -> Fraction:
        """The share of the faults that block."""
        return 1 - Fraction(len(self.missed), len(self.faults))


def mutate(judge: MemoryJudge, checked: Checked, seed: int = 0) -> Mutation:
    """Plants all faults, one at a time, and judges the suite on each. If some datasets have dates,
    the others are references, and get none.

    :raises RequestError: no assertion passes without a fault, or there is none to plant.
    """
    plan = judge.plan(checked)
    fine = judge.fine(plan)
    before = judge.judge(plan, fine)
    others = [one for one in before if one.status is not Status.PASSED]
    if len(others) == len(before):
        raise RequestError(
            f"no assertion of {plan.suite} passes on {plan.date}",
            "choose a fine day with --date; `dql run` shows what fails",
        )
    lines = _Lines(judge)
    faults = []
    dated = [rows for rows in judge.data.values() if rows.ref.date_column]
    for rows in dated or judge.data.values():
        planted = _Planter(rows, plan.date, seed).faults(plan.lookups)
        for one, scanned in judge.with_faults(plan, planted, fine):
            found = _noticed(one.fault, before, judge.judge(plan, scanned), judge.request.fail_on)
            if not found.noticed_by:
                line, days = lines.noticing(one)
                found = replace(found, line=line, days=days)
            faults.append(replace(found, is_of_sample=rows.is_sample(plan.date)))
    if not faults:
        raise RequestError(f"no fault can be planted: no dataset has rows on {plan.date}")
    rank = _WORST_FIRST.index
    faults.sort(key=lambda one: (bool(one.noticed_by), rank(one.kind), -one.rows))
    return Mutation(
        plan.suite, plan.date, tuple(faults), _not_judged(judge, plan, others), _read(judge, plan)
    )


def _noticed(
    fault: Fault, before: Sequence[Verdict], after: Sequence[Verdict], fail_on: Severity
) -> Fault:
    """The fault with the assertions that passed before it, and fail because of it."""
    noticed, warned = [], []
    for was, now in zip(before, after, strict=True):
        if was.status is not Status.PASSED or now.status not in (Status.FAILED, Status.ERROR):
            continue
        if now.can_block(fail_on):
            noticed.append(now.name)
        else:
            warned.append(now.name)
    return replace(fault, noticed_by=tuple(noticed), warned_by=tuple(warned))


def _not_judged(judge: MemoryJudge, plan: Plan, failing: Sequence[Verdict]) -> dict[str, str]:
    """The reasons why assertions are not judged that do not pass without a fault."""
    is_sampled = any(rows.is_sample(plan.date) for rows in judge.data.values())
    why = "it fails without a fault"
    if is_sampled and judge.is_of_samples:
        why += ", on a sample: --rows reads more"
    return {verdict.name: verdict.reason or why for verdict in failing}


def _read(judge: MemoryJudge, plan: Plan) -> dict[str, str]:
    """How many rows of each dataset were judged, as text."""
    read = {}
    for name, rows in judge.data.items():
        read[name] = rows.judged(plan.date)
        if rows.is_sample(plan.date) and not judge.is_of_samples:
            read[name] += ", all of which are judged"
    return read


_Cells: TypeAlias = Mapping[str, tuple[Sequence[Any], str]]
"""The values of columns, by name, and the same as Spark SQL."""
_Hit: TypeAlias = tuple[Collection[int], str]
"""The places of some rows, and the condition in Spark SQL by which they are chosen in a whole
day."""


class _Planter:
    """Plants faults in a dataset, the same ones for the same seed."""

    def __init__(self, rows: DayRows, on: date, seed: int) -> None:
        self.name, self.rows, self.on, self.seed = rows.ref.name, rows, on, seed
        self.table = rows.on(on)
        self.types = {column.name: column.type for column in self.table.fields}
        self.cells = dict(zip(self.types, zip(*self.table.rows, strict=True), strict=False))
        self.every = range(len(self.table.rows))
        self.marks = [_marks(row, self.types.values()) for row in self.table.rows]
        self.key = [name for name in rows.ref.keys or rows.seen.key if name in self.cells]
        self.dated = rows.ref.date_column
        self.columns = [one for one in rows.seen.columns if one.name != self.dated]

    def faults(self, references: Iterable[Lookup]) -> Iterator[Planted]:
        """The faults that change something."""
        if self.every:
            of_columns = (one for column in self.columns for one in self._of_column(column))
            found = (*self._of_rows(), *self._of_keys(references), *of_columns, *self._swapped())
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
        earlier = _Planter(self.rows, self.on - DAY, self.seed)
        later = f"CAST({quote_name(self.dated)} + INTERVAL 1 DAY AS {self.types[self.dated]})"
        cells = {self.dated: (earlier.changed(self.dated, lambda it: it + DAY), later)}
        sums = [f"sum({show_name(one.name)}" for one in self.columns if self._is_measure(one)]
        lines = [*(f"{metric}) != {metric}, lag 1)" for metric in sums), *_ROWS]
        text = "the rows are those of the day before"
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

    def _of_column(self, column: ObservedColumn) -> Iterator[Planted]:
        name, shown, kind = column.name, show_name(column.name), self.types[column.name]
        nulls, lines = f"null_count({shown})", self._lines(column)
        filled = [f"{nulls} == 0", f"{nulls} / num_rows()"]
        yield self._wrong("NULLs", name, "become NULL", None, filled)
        if family_of(kind) is Family.TEXT:
            claims = [f'each row: trim({shown}) != ""']
            yield self._wrong("blank value", name, "become blank", " ", claims)
        if column.values:
            yield self._wrong("new value", name, "become a new value", _NEVER_SEEN["string"], lines)
        changes: list[tuple[str, str, Callable[[Any], Any], str]] = []
        if self._is_measure(column):
            sql, less = f"try_multiply({quote_name(name)}, 100)", f"{quote_name(name)} / 1000"
            changes += [
                ("other unit", "multiplied by 100", lambda it: calculate("*", it, 100, kind), sql),
                ("other unit", "divided by 1000", lambda it: type(it)(it / 1000), less),
            ]
        if family_of(kind) is Family.TIME:
            sql = f"{quote_name(name)} - INTERVAL 1 DAY"
            earlier = lambda it: it - DAY if it.year > 1 else it  # noqa: E731
            changes.append(("shifted dates", "a day earlier", earlier, sql))
        for fault, text, change, sql in changes:
            cells = {name: (self.changed(name, change), f"CAST({sql} AS {kind})")}
            yield self._planted(fault, f"{name} is {text}", cells, lines)
        if family_of(kind) in (Family.NUMBER, Family.TIME):
            cells = {name: (self.changed(name, str), f"CAST({quote_name(name)} AS STRING)")}
            lines, text = [f"column {shown} type {kind}"], f"{name} becomes a string"
            yield self._planted("changed type", text, cells, lines, Change(retyped=name))

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
        hashes = {place: _hash(salt, self.marks[place]) for place in places}
        if not hashes:
            return (), "false"
        wanted = min(max(1, round(share * len(self.every))), len(hashes))
        limit = sorted(hashes.values())[wanted - 1]
        chosen = [place for place in places if hashes[place] <= limit]
        return chosen, f"{_hash_sql(salt, self.types)} <= {limit}"

    def _replaced(self, name: str, hit: _Hit, value: Any) -> str:
        column = quote_name(name)
        return f"IF({column} IS NOT NULL AND {hit[1]}, {self._literal(name, value)}, {column})"

    def _literal(self, name: str, value: Any) -> str:
        text = "NULL" if value is None else quote_literal(str(value))
        return f"CAST({text} AS {self.types[name]})"


def _marks(row: Sequence[Any], types: Iterable[str]) -> str:
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


def _hash(salt: str, marks: str) -> int:
    text = f"{salt}|{marks}"
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8], 16)


def _hash_sql(salt: str, types: Mapping[str, str]) -> str:
    """`_hash` in Spark SQL, of a row with columns of these types."""
    marks = ", ".join(_mark_sql(name, kind) for name, kind in types.items())
    text = f"concat_ws('|', {quote_literal(salt)}, {marks})"
    return f"CAST(conv(left(md5({text}), 8), 16, 10) AS BIGINT)"


_GROWING = ("num_rows()", "unique_count(", "null_count(", "duplicate_count(", "sum(")
"""How metrics begin that grow with the number of rows, unless they are divided by it."""
_checked = lru_cache(maxsize=4096)(check_source)


def _source(claim: str, dataset: str) -> SourceFile:
    """A suite with one claim."""
    text = f'suite "S" {{ check "C" on {show_name(dataset)} {{ assert {claim} name "it" }} }}'
    return SourceFile("line", text)


@dataclass(slots=True)
class _Lines:
    """Finds assertions that notice a fault, and caches which hold on days without it."""

    judge: MemoryJudge
    _fine: dict[tuple[str, str, date | None], Verdict] = field(default_factory=dict)

    def noticing(self, planted: Planted) -> tuple[str | None, int]:
        """The first line that fails with the fault and holds on all days without it, and the number
        of days before on which it was tried."""
        dataset = planted.fault.dataset
        days = self._days(dataset)
        is_sample = self.judge.data[dataset].is_sample(days[0])
        for line in planted.lines:
            is_metric = not any(mark in line for mark in (" in ", "= ", " type "))
            if is_sample and is_metric and "/ num_rows()" not in line and line.startswith(_GROWING):
                continue  # a limit of the sample would be none of all rows
            claim = self._limited(line, dataset, planted) if is_metric else line
            if claim is None or _checked(_source(claim, dataset)).errors:
                continue  # a value that DQL cannot write
            if self._judge(claim, dataset, planted).status is not Status.FAILED:
                continue
            fine = (self._judge(claim, dataset, None, on).status for on in days)
            held = [*takewhile(lambda status: status is not Status.FAILED, fine)]
            if len(held) == len(days) and held[0] is Status.PASSED:
                return f"assert {claim}", held.count(Status.PASSED) - 1
        return None, 0

    def _days(self, dataset: str) -> list[date]:
        """The fine day, and those before it with rows, newest first."""
        on, tables = self.judge.request.run_key.date, self.judge.data[dataset].tables
        before = [day for day, table in tables.items() if day and day != on and table.rows]
        return [on, *before[:_MOST_DAYS]]

    def _limited(self, metric: str, dataset: str, planted: Planted) -> str | None:
        """A claim about a metric: a short limit beyond its values on the fine days, by a quarter of
        the way to that with the fault."""
        claim = f"{metric} is not None"
        verdicts = [self._judge(claim, dataset, None, on) for on in self._days(dataset)]
        values = [one.value for one in (*verdicts, self._judge(claim, dataset, planted))]
        *fine, bad = (
            float(it) if isinstance(it, int | float | Fraction) else None for it in values
        )
        known = [value for value in fine if value is not None]
        if bad is None or not known or min(known) <= bad <= max(known):
            return None
        near, op = (max(known), "<=") if bad > max(known) else (min(known), ">=")
        limits = (float(f"{(3 * near + bad) / 4:.{digits}g}") for digits in range(2, 18))
        limit = next((it for it in limits if min(near, bad) < it < max(near, bad)), near)
        return f"{metric} {op} {Decimal(repr(limit)).normalize():f}"

    def _judge(
        self, claim: str, dataset: str, planted: Planted | None, on: date | None = None
    ) -> Verdict:
        """The verdict on a claim, with other rows on the fine day or on a day as it is."""
        source, key = _source(claim, dataset), (claim, dataset, on)
        if key not in self._fine or planted is not None:
            request = replace(self.judge.request, suite=source, imports=(), contract=None)
            judge = replace(self.judge, request=replace(request, allow_empty=True, selection=None))
            plan = judge.plan(_checked(source), on)
            if planted is not None:
                return judge.judge(plan, judge.scan(plan, planted))[-1]
            self._fine[key] = judge.judge(plan, judge.scan(plan, None))[-1]
        return self._fine[key]
