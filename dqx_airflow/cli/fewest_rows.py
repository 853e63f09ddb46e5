"""The fewest rows on which an assertion still fails as in an incident: in the same groups, and as
far beyond its limit. So a rule that would let the incident pass lets these rows pass, too, and a
rule that would not does not.

Rows are left out by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002): half of them, then quarters, and so on.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import compress, count
from math import isnan
from string import ascii_lowercase
from typing import Any, TypeAlias

from dqx_airflow.api.database import MemoryDatabase
from dqx_airflow.api.run import RunSettings, plan_of, run
from dqx_airflow.dql.check import Checked
from dqx_airflow.errors import RequestError
from dqx_airflow.metrics.derived import as_float
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.masks import is_masked
from dqx_airflow.plan.model import Plan, PlannedAssertion
from dqx_airflow.tuning.past_judge import number_of
from dqx_airflow.values import MetricValue, Selection, Status, Verdict
from dqx_airflow.values.exact import NUMBERS

_MOST_WRITTEN = 500
"""The most different rows of a test that someone reads."""
_MOST_JUDGED = 3_000_000
"""The rows judged in all tries, after which the rows that are left count as the fewest."""
_FARTHER = 0.01
"""How much farther beyond its limit a value may be, as a share of its distance on the day."""
_ROUNDED = 1e-9
"""How much of that distance two equal values may differ by because floats are rounded."""
_FEW_ROWS = 50
"""The number of different rows from which on half of them are left out at random."""
_PARTS = 64
"""Into how many parts too many rows are divided at most."""
_DRAWS = 8
"""How many random halves are tried."""
_DIGITS = "1234567890"
"""The digits of fakes, with 0 last, so that numbers do not begin with 0."""
_ONE_SIDED = frozenset({"<", "<=", ">", ">=", "==", "between"})
"""The conditions of which a value farther away violates the same limit."""

Tables: TypeAlias = Mapping[str, Table]
"""The rows of a day, by dataset."""
CountedRow: TypeAlias = tuple[tuple[Any, ...], int]
"""A row, and how often it is there."""


def counted_rows(rows: Iterable[tuple[Any, ...]]) -> list[CountedRow]:
    """Each different row once, in the order of its first occurrence, with its count."""
    counts: dict[str, CountedRow] = {}
    for row in rows:
        # Values such as lists have no hash; 0.0 and -0.0 are equal and may be judged differently.
        key = repr(row)
        counts[key] = (row, counts[key][1] + 1 if key in counts else 1)
    return list(counts.values())


@dataclass(frozen=True, slots=True)
class Failure:
    """How an assertion failed: its value, the limit that it violates, and the failed groups.

    `groups` has each failed group with its value, without the values of masked columns.
    `failed_groups` counts them, `judged_groups` all groups. `is_exact`: another value would not be
    the same failure, however near.
    """

    value: MetricValue
    limit: MetricValue
    groups: tuple[tuple[str, MetricValue], ...]
    failed_groups: int | None
    judged_groups: int | None
    is_exact: bool

    @classmethod
    def of(cls, verdict: Verdict, planned: PlannedAssertion, masked: Sequence[str]) -> Failure:
        """The failure of a verdict.

        :param masked: the masked columns of the datasets of the assertion.
        """
        groups = []
        for sample in verdict.failing_rows if planned.groups else ():
            cells: dict[str, MetricValue] = json.loads(sample.row)
            _, value = cells.popitem()
            shown = {name: it for name, it in cells.items() if not is_masked(name, masked)}
            groups.append((json.dumps(shown), value))
        limit = verdict.threshold
        kind = planned.condition.kind
        if kind == "between":
            highest = number_of(planned.condition.bounds[-1])
            value = verdict.scaled_value
            if isinstance(highest, NUMBERS) and isinstance(value, NUMBERS) and value > highest:
                limit = highest
        return cls(
            verdict.scaled_value,
            limit,
            tuple(sorted(groups, key=repr)),
            verdict.failed_groups,
            verdict.groups,
            is_exact=kind not in _ONE_SIDED,
        )

    def is_kept_by(self, other: Failure, *, needs_all_groups: bool) -> bool:
        """Whether another failure is this one.

        :param needs_all_groups: as many groups must be judged, as the share of those that pass
            counts.
        """
        if self.failed_groups != other.failed_groups:
            return False
        if needs_all_groups and self.judged_groups != other.judged_groups:
            return False
        if [group for group, _ in self.groups] != [group for group, _ in other.groups]:
            return False
        pairs = [(self.value, other.value)]
        pairs += [(was, now) for (_, was), (_, now) in zip(self.groups, other.groups, strict=True)]
        return all(self._is_as_far(was, now, other.limit) for was, now in pairs)

    def _is_as_far(self, was: MetricValue, now: MetricValue, limit: MetricValue) -> bool:
        """Whether a value is as far beyond its limit as it was, or a little farther."""
        if now == was and limit == self.limit:
            return True
        value_then = as_float(was)
        limit_then = as_float(self.limit)
        value_now = as_float(now)
        limit_now = as_float(limit)
        if self.is_exact or value_then is None or limit_then is None:
            return False
        if value_now is None or limit_now is None:
            return False
        distance = value_then - limit_then
        farther = (value_now - limit_now - distance) * (1 if distance > 0 else -1)
        room = _FARTHER * abs(distance)
        rounding = _ROUNDED * max(abs(value_then), abs(limit_then))
        return abs(limit_now - limit_then) <= room + rounding and -rounding <= farther <= room


@dataclass(slots=True)
class Shrinker:
    """Leaves out rows and columns as long as an assertion still fails as in a run.

    :param checked: the suite.
    :param on: the date of the data.
    :param dates: the date columns, by dataset.
    :param failed: its verdict in the run.
    :param masked: the masked columns, by dataset.
    """

    checked: Checked
    on: date
    dates: Mapping[str, str]
    failed: Verdict
    masked: Mapping[str, tuple[str, ...]]
    has_copies: bool = field(default=False, init=False)
    """Whether some rows are copies instead of others, since all would be too many."""
    _planned: PlannedAssertion = field(init=False)
    _failure: Failure = field(init=False)
    _judged: int = field(default=0, init=False)

    def fewest(self, tables: Tables) -> Tables:
        """The fewest rows and columns that still fail, with other values in masked columns. A
        dataset keeps one row at least.

        :raises RequestError: the assertion cannot be judged in memory, it does not fail there, too
            many rows are needed, or masked values cannot be replaced.
        """
        plan = plan_of(self.checked, self._database(tables), self.on, self._settings())
        self._understand(tables, plan)
        tables = self._without_unnamed_columns(tables, plan)
        # A row that is not at fault may fail without its reference, which is therefore whole; what
        # another dataset needs may then be less.
        names = sorted(tables, key=lambda one: one not in self.failed.datasets)
        for name in 2 * names if len(names) > 1 else names:
            tables = self._with_fewest_rows(tables, name)
        for name in tables:
            for column in tables[name].fields:
                fewer = {**tables, name: _without(tables[name], {column.name})}
                if column.name != self.dates.get(name) and self._fails(fewer):
                    tables = fewer
        tables = self._written_at_most(tables)
        tables = _with_fakes(tables, self.masked)
        if not self._fails(tables):
            raise self._error("depends on masked values: it does not fail with others")
        return tables

    def verdict_on(self, tables: Tables, now: datetime | None = None) -> Verdict:
        """The verdict of the assertion."""
        database = self._database(tables)
        own = (self.failed.check, self.failed.name)
        results = run(self.checked, database, self.on, self._settings(now))
        return next(one for one in results.report.verdicts if (one.check, one.name) == own)

    def _understand(self, tables: Tables, plan: Plan) -> None:
        """Finds out how the assertion fails.

        :raises RequestError: it does not fail here, or fails for other reasons than these rows.
        """
        own = (self.failed.check, self.failed.name)
        self._planned = next(one for one in plan.assertions if (one.check, one.name) == own)
        if any(one.date not in (None, self.on) for one in plan.requests):
            raise self._error(f"compares {self.on} with other days")
        verdict = self.verdict_on(tables)
        later = datetime.now(timezone.utc) + timedelta(days=365)
        if verdict.status is not Status.FAILED:
            reason = verdict.reason or "the rule has changed, or these are other rows"
            raise self._error(f"does not fail in memory: {reason}")
        if self.verdict_on(tables, later).value != verdict.value:
            raise self._error("depends on the time at which it is evaluated")
        self._failure = self._failure_of(verdict)

    def _failure_of(self, verdict: Verdict) -> Failure:
        masked = [column for name in self.failed.datasets for column in self.masked.get(name, ())]
        return Failure.of(verdict, self._planned, masked)

    def _fails(self, tables: Tables) -> bool:
        """Whether the assertion fails as on its day."""
        self._judged += sum(len(table.rows) for table in tables.values())
        verdict = self.verdict_on(tables)
        groups = self._planned.groups
        return verdict.status is Status.FAILED and self._failure.is_kept_by(
            self._failure_of(verdict), needs_all_groups=groups is not None and groups.share != 1
        )

    def _error(self, problem: str) -> RequestError:
        hint = "choose another failure with --assertion, or write the test by hand"
        return RequestError(f"'{self.failed.name}' {problem}", hint)

    def _database(self, tables: Tables) -> MemoryDatabase:
        return MemoryDatabase(tables, date_columns=self.dates)

    def _settings(self, now: datetime | None = None) -> RunSettings:
        alone = Selection((f"{self.failed.check}::{self.failed.name}",))
        return RunSettings(now=now, selection=alone)

    # Columns and rows

    def _without_unnamed_columns(self, tables: Tables, plan: Plan) -> Tables:
        """The tables without the columns whose names are nowhere in what is measured, if it still
        fails: rows that differ elsewhere are then equal."""
        measured = repr(plan.requests).lower()
        fewer = {}
        for name, table in tables.items():
            names = {column.name for column in table.fields if column.name.lower() not in measured}
            fewer[name] = _without(table, names - {self.dates.get(name)})
        return fewer if self._fails(fewer) else tables

    def _with_fewest_rows(self, tables: Tables, name: str) -> Tables:
        """The tables with the fewest rows of one of them."""
        table = tables[name]

        def fails(counted: Sequence[CountedRow]) -> bool:
            return bool(counted) and self._fails({**tables, name: _table(table, counted)})

        counted = counted_rows(table.rows)
        # Rows that violate a limit are then next to each other, and the others leave together.
        in_order = sorted(counted, key=lambda one: [*map(_sort_key, one[0])])
        if fails(in_order):
            counted = in_order
        for step in (self._with_random_halves, self._with_fewest_kinds, self._with_fewest_copies):
            counted = step(counted, fails)
        return {**tables, name: _table(table, counted)}

    def _with_random_halves(self, counted: list[CountedRow], fails: _Fails) -> list[CountedRow]:
        """Half of the rows at random, as long as one half fails: an average or a share is the same
        of a sample, and not of neighbours."""
        while len(counted) > _FEW_ROWS and self._judged < _MOST_JUDGED:
            for draw in range(_DRAWS):
                chance = random.Random(f"{len(counted)} {draw}")  # noqa: S311
                places = sorted(chance.sample(range(len(counted)), len(counted) // 2))
                half = [counted[place] for place in places]
                if fails(half):
                    counted = half
                    break
            else:
                break
        return counted

    def _with_fewest_kinds(self, counted: list[CountedRow], fails: _Fails) -> list[CountedRow]:
        """The rows without those that are not needed, all copies of a row together. Of more rows
        than a test has, only parts are tried: copies will replace them."""
        size = len(counted) // 2
        smallest_part = len(counted) // _PARTS
        while size and (len(counted) <= _MOST_WRITTEN or size > smallest_part):
            at = 0
            while at < len(counted) and self._judged < _MOST_JUDGED:
                rest = counted[:at] + counted[at + size :]
                if fails(rest):
                    counted = rest
                else:
                    at += size
            size //= 2
        return counted

    def _with_fewest_copies(self, counted: list[CountedRow], fails: _Fails) -> list[CountedRow]:
        """The rows with as few copies of each as are needed."""
        for place in range(len(counted)):
            row, copies = counted[place]
            step = copies - 1
            while step and self._judged < _MOST_JUDGED:
                fewer = [*counted[:place], (row, copies - step), *counted[place + 1 :]]
                if copies > step and fails(fewer):
                    copies -= step
                    counted = fewer
                else:
                    step //= 2
        return counted

    def _written_at_most(self, tables: Tables) -> Tables:
        """The tables with copies of rows in the place of others, where there are too many.

        :raises RequestError: there are still too many.
        """
        for name, table in tables.items():
            counted = counted_rows(table.rows)
            if len(counted) <= _MOST_WRITTEN:
                continue
            counted = self._with_copies(tables, name, counted)
            if len(counted) > _MOST_WRITTEN:
                needed = f"needs {len(counted):,} different rows to fail as on {self.on}"
                raise self._error(f"{needed}, more than {_MOST_WRITTEN} in a test")
            self.has_copies = True
            tables = self._with_fewest_rows({**tables, name: _table(table, counted)}, name)
        return tables

    def _with_copies(
        self, tables: Tables, name: str, counted: list[CountedRow]
    ) -> list[CountedRow]:
        """The rows with copies of the first one of several neighbours in the place of all."""
        self._judged = 0
        size = len(counted)
        while size > 1:
            at = 0
            while at < len(counted) and self._judged < _MOST_JUDGED:
                near = counted[at : at + size]
                copies = (near[0][0], sum(number for _, number in near))
                fewer = [*counted[:at], copies, *counted[at + size :]]
                at += 1
                if self._fails({**tables, name: _table(tables[name], fewer)}):
                    counted = fewer
                else:
                    at += size - 1
            size //= 2
        return counted_rows(_table(tables[name], counted).rows)


_Fails: TypeAlias = Callable[[Sequence[CountedRow]], bool]
"""Whether the assertion fails as on its day with other rows of a dataset."""


def _table(table: Table, counted: Iterable[CountedRow]) -> Table:
    return replace(table, rows=tuple(row for row, copies in counted for _ in range(copies)))


def _sort_key(value: Any) -> tuple[int, Any]:
    """A key by which values of one type are in order: NULL first, then numbers by size."""
    if value is None:
        return 0, 0
    if isinstance(value, int | float | Decimal) and not isnan(value):
        return 1, value
    return 2, str(value)


def _without(table: Table, columns: Iterable[str]) -> Table:
    dropped = set(columns)
    kept = [one.name not in dropped for one in table.fields]
    rows = (tuple(compress(row, kept)) for row in table.rows)
    return Table(tuple(compress(table.fields, kept)), tuple(rows))


def _with_fakes(tables: Tables, masked: Mapping[str, tuple[str, ...]]) -> Tables:
    """The tables with other values in masked columns, equal ones for equal ones. NULL and blanks
    stay."""
    taken = {str(value) for table in tables.values() for row in table.rows for value in row}
    fakes: dict[str, Any] = {}

    def shown(value: Any, is_hidden: bool) -> Any:
        if not is_hidden or value is None or not str(value).strip():
            return value
        if repr(value) not in fakes:
            others = (_fake(value, number) for number in count())
            fakes[repr(value)] = next(one for one in others if str(one) not in taken)
            taken.add(str(fakes[repr(value)]))
        return fakes[repr(value)]

    shown_tables = {}
    for name, table in tables.items():
        hidden = [is_masked(column.name, masked[name]) for column in table.fields]
        rows = tuple(tuple(map(shown, row, hidden)) for row in table.rows)
        shown_tables[name] = replace(table, rows=rows)
    return shown_tables


def _fake(value: Any, number: int) -> Any:
    """The fake with a number for a value, of its type, length and shape: letters for letters,
    digits for digits.

    :raises RequestError: there are no more, or the type has none.
    """
    is_text = isinstance(value, str)
    text = ""
    for character in reversed(str(value)):
        is_letter = is_text and character.isalpha()
        letters = _DIGITS if character.isdecimal() else ascii_lowercase if is_letter else character
        number, place = divmod(number, len(letters))
        text = (letters[place].upper() if character.isupper() else letters[place]) + text
    if number or isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise RequestError(
            "a masked column that it needs has values that cannot be replaced",
            "choose another failure with --assertion",
        )
    return type(value)(text)
