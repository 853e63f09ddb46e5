"""Mutation testing of suites: plants faults in the rows of a fine day, one at a time, and finds a
line of DQL for each fault that no assertion notices.

Mutation testing of programs: DeMillo, Lipton and Sayward, "Hints on test data selection", 1978.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile
from typing import ClassVar

from dqx_airflow.dql.check import Checked, check_source
from dqx_airflow.dql.printer import show_name
from dqx_airflow.dql.watches import claims_on
from dqx_airflow.errors import RequestError
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.model import Plan, Scanned
from dqx_airflow.plan.selection import plan_of
from dqx_airflow.tuning.day_rows import DayRows
from dqx_airflow.tuning.planted_faults import WORST_FIRST, Fault, Planted, Planter
from dqx_airflow.values import GateRequest, Severity, SourceFile, Status, Verdict


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
            "choose a good day with --date; `dql run` shows what fails",
        )
    lines = _Lines(judge)
    faults = []
    dated = [rows for rows in judge.data.values() if rows.ref.date_column]
    for rows in dated or judge.data.values():
        planted = Planter(rows, plan.date, seed).faults(plan.lookups)
        for one, scanned in judge.with_faults(plan, planted, fine):
            found = _noticed(one.fault, before, judge.judge(plan, scanned), judge.request.fail_on)
            if not found.noticed_by:
                line, days = lines.noticing(one)
                found = replace(found, line=line, days=days)
            faults.append(replace(found, is_of_sample=rows.is_sample(plan.date)))
    if not faults:
        raise RequestError(f"no fault can be planted: no dataset has rows on {plan.date}")
    rank = WORST_FIRST.index
    faults.sort(key=lambda one: (bool(one.noticed_by), rank(one.kind), -one.rows, one.text))
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
            read[name] += ", all of which are evaluated"
    return read


_MOST_DAYS = 30
"""The days before the fine one on which a suggested line is tried."""
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
