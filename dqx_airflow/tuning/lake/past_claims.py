"""How often the claims of a draft would have failed on the past days of their table.

The draft is made again from the earlier days alone, and judged on the later ones, as a gate would
have judged them: by the plan of the suite and its stored values, here measured in memory. What is
usual on a day follows from the days before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from dqx_airflow.contracts.drafting import ObservedColumn
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.suite import IMPLICIT_CHECK
from dqx_airflow.dql.nodes import Suite
from dqx_airflow.dql.printer import show_name, show_text
from dqx_airflow.dql.watches import claims_on, with_columns
from dqx_airflow.plan.measurements import Measurements, request_key, requests_behind
from dqx_airflow.plan.model import MetricRequest
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.column_tables import ColumnTable, texts_of
from dqx_airflow.tuning.observed_days import DayRows, profile_of_days
from dqx_airflow.tuning.suggested import Seen, SeenDays, watched_parts
from dqx_airflow.tuning.table_profile import distinct_count
from dqx_airflow.values import DatasetRef, MetricValue, SourceFile, Status

ByDay: TypeAlias = "Mapping[date, MetricValue]"

_FEWEST_DAYS = 12
_LEARNT = 2 / 3
"""The share of the days from which the draft that is judged is made."""


@dataclass(frozen=True, slots=True)
class PastClaim:
    """A claim on past days that its draft had not seen.

    :param kind: the kind of the claim, the same for all tables: `key`, `filled`, `watch.mean` ...
    :param judged: the number of days on which it could be judged.
    :param failed: the number of these days on which it failed.
    :param failed_on: these days.
    """

    name: str
    kind: str
    judged: int = 0
    failed: int = 0
    failed_on: tuple[date, ...] = ()


def past_claims(
    of_days: DayRows,
    ref: DatasetRef,
    now: datetime,
    learnt_before: date | None = None,
    seen: SeenDays | None = None,
) -> tuple[tuple[PastClaim, ...], tuple[int, int]]:
    """The claims on the last days of a table; and on how many days at least one of them failed, of
    how many days. All zero for a table with too few days.

    :param learnt_before: the first day that the draft has not seen; by default after two thirds of
        the days.
    :param seen: the figures of the days that the draft of all days has measured.
    """
    days = list(of_days.rows)
    if len(days) < _FEWEST_DAYS:
        return (), (0, 0)
    cut = learnt_before or days[int(len(days) * _LEARNT)]
    known = profile_of_days(of_days.before(cut), ref, str(ref.path), seen)
    suite = _suite(known, ref, of_days.table, now)
    if suite is None:
        return (), (0, 0)
    measured = _Measured(of_days, cut, known)
    backtest = Backtest(suite, measured.days(suite, ref), first=cut)
    return _counted(backtest, ref.name, frozenset(day for day in days if day >= cut))


def kind_of(name: str, table: str) -> str:
    """The kind of a claim, by the name of its assertion: `watch.mean` for `orders.watch.mean.x`."""
    rest = name.removeprefix(f"{table}.")
    if rest.startswith("watch."):
        return ".".join(rest.split(".")[:2])
    return rest.rpartition(".")[2]


def _suite(known: Seen, ref: DatasetRef, columns: ColumnTable, now: datetime) -> Suite | None:
    """The suite drafted from a profile, with the claims of its watch."""
    text = f"suite {show_text(ref.name)} {{\n" + "\n\n".join(watched_parts(known, now)) + "\n}"
    checked = check_source(SourceFile("", text), needs_suite=True)
    if checked.suite is None or checked.errors:
        return None
    return with_columns(checked.suite, {ref.name: claims_on(columns.types, ref)})


def _counted(
    backtest: Backtest, table: str, later: frozenset[date]
) -> tuple[tuple[PastClaim, ...], tuple[int, int]]:
    """The claims with their later days, and the later days with a failure."""
    at = [index for index, day in enumerate(backtest.days) if day.date in later]
    claims = []
    failed_days: set[int] = set()
    rows = zip(backtest.assertions, backtest.judge().statuses, strict=True)
    for assertion, statuses in rows:
        if assertion.check == IMPLICIT_CHECK:
            continue
        known = [index for index in at if statuses[index] in (Status.PASSED, Status.FAILED)]
        failed = {index for index in known if statuses[index] is Status.FAILED}
        failed_days |= failed
        kind = kind_of(assertion.name, table)
        on = tuple(backtest.days[index].date for index in sorted(failed))
        claims.append(PastClaim(assertion.name, kind, len(known), len(failed), on))
    return tuple(claims), (len(failed_days), len(at))


class _Measured:
    """The metrics of a table on each of its days, measured in memory when they are requested.

    :param cut: the first day that is judged; what no later day needs is not measured before it.
    :param known: the profile from which the judged suite was drafted.
    """

    def __init__(self, of_days: DayRows, cut: date, known: Seen) -> None:
        self._of_days, self._cut = of_days, cut
        self._known = {column.name: column for column in known.table.columns}
        self._sets = dict(self._claimed_rows())

    def days(self, suite: Suite, ref: DatasetRef) -> list[PastDay]:
        """The days with the values that a gate would have stored."""
        days = list(self._of_days.rows)
        plan = resolve(suite, SourceFile("", ""), [ref], days[-1])
        values: dict[str, ByDay] = {}
        for assertion in plan.assertions:
            for request in requests_behind(assertion):
                key = request_key(request, plan.date)
                if key not in values and (found := self._values(request, key)) is not None:
                    values[key] = found
        return [
            PastDay(day, Measurements({key: of[day] for key, of in values.items() if day in of}))
            for day in days
        ]

    def _claimed_rows(self) -> Iterator[tuple[str, ObservedColumn]]:
        """The column of each claim about single rows, by the text of its predicate."""
        for column in self._known.values():
            name = show_name(column.name)
            if column.values:
                yield f"{name} in [{', '.join(map(show_text, column.values))}]", column
            if column.pattern is not None:
                yield f"{name} matches {show_text(column.pattern)}", column

    def _values(self, request: MetricRequest, key: str) -> ByDay | None:
        """The values of a request by day; None for what is not measured here."""
        arguments = json.loads(key)[2]
        if request.where is not None or request.grouping is not None:
            return None
        measures: dict[str, Callable[[], ByDay]] = {
            "num_rows": lambda: self._of_days.rows,
            "null_count": lambda: self._of_parts(arguments[0], lambda part: part.null_count),
            "unique_count": lambda: self._of_parts(arguments[0], distinct_count),
            "average": lambda: self._of_parts(arguments[0], _mean),
            "duplicate_count": lambda: self._duplicates(arguments),
        }
        if request.metric == "violating_rows" and arguments[0]["rows"] in self._sets:
            return self._violations(arguments[0]["rows"])
        measure = measures.get(request.metric)
        return None if measure is None else measure()

    def _of_parts(self, column: str, measure: Callable[[Any], MetricValue]) -> ByDay:
        """A number for the values of a column on each day."""
        values = self._of_days.table.column(column)
        return {on: measure(part) for on, part in self._of_days.by_day(values)}

    def _duplicates(self, arguments: Sequence[str | Sequence[str]]) -> ByDay:
        """The rows less the distinct tuples of their columns: one, or a list of several."""
        first = arguments[0]
        columns = [first] if isinstance(first, str) else first
        values = [self._of_days.table.column(name) for name in columns]
        rows = pa.table(values, names=[f"c{number}" for number in range(len(values))])
        return {
            on: part.num_rows - part.group_by(part.column_names).aggregate([]).num_rows
            for on, part in self._of_days.by_day(rows)
            if on >= self._cut
        }

    def _violations(self, predicate: str) -> ByDay:
        column = self._sets[predicate]
        values = texts_of(self._of_days.table.column(column.name))
        violations: dict[date, MetricValue] = {}
        for on, part in self._of_days.by_day(values):
            if on < self._cut:
                continue
            if " in [" in predicate and column.values:
                valid = pc.is_in(part, value_set=pa.array(column.values))
            else:
                valid = pc.match_substring_regex(part, column.pattern)
            wrong = pc.and_(pc.invert(valid), pc.is_valid(part))
            violations[on] = pc.sum(wrong).as_py() or 0
        return violations


def _mean(values: Any) -> float | None:
    mean: float | None = pc.mean(pc.cast(values, pa.float64(), safe=False)).as_py()
    return mean
