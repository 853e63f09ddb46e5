"""Judges past days again, with other values of the tunables: nothing is measured.

Days are the bits of an integer, so that thousands of values are tried quickly. The compared value
and what is usual do not depend on a tunable. So each day has a turning point, the value at which
its verdict changes; in sorted turning points, bisection finds the failing days of a value. Days
whose turning point is close to the value are compared as in a gate.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, cached_property, partial
from itertools import compress, count
from typing import Any, TypeAlias, TypeVar, cast

from dqx_airflow.dql import nodes
from dqx_airflow.dql.checks.profile_rules import is_required
from dqx_airflow.dql.walk import parts_of
from dqx_airflow.dql.watches import claims_named, with_columns
from dqx_airflow.metrics.calls import USUAL_LIMITS, USUAL_OPERANDS
from dqx_airflow.metrics.derived import apply
from dqx_airflow.metrics.spark_values import metric_value
from dqx_airflow.metrics.usual_limits import UsualLimits
from dqx_airflow.plan import model
from dqx_airflow.plan.adjustments import active_profiles
from dqx_airflow.plan.claim_compiler import is_volume
from dqx_airflow.plan.number_comparison import Side, compare
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.plan.selection import left_of
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning import past_judge
from dqx_airflow.tuning.effects import Effect, effect_of
from dqx_airflow.tuning.tunables import TunableNumber, tunables_of, with_values, written_number
from dqx_airflow.values import MetricValue, SourceFile, Status
from dqx_airflow.values.exact import NUMBERS, Number, nearest_float

Method = TypeVar("Method", bound=Callable[..., Any])


def kept(method: Method) -> Method:
    """The method, whose results are kept with its object, for each of the arguments."""
    return cast("Method", cached_property(lambda owner: cache(partial(method, owner))))


_FAR = 1e-6
"""Numbers that differ by more, relative to both, are never treated as equal."""


@dataclass(frozen=True, slots=True)
class ComparedNumber:
    """A compared number, and the float that decides most comparisons."""

    side: Side
    near: float

    @classmethod
    def of(cls, side: Side) -> ComparedNumber:
        return cls(side, nearest_float(side.value))

    def holds(self, op: str, limit: ComparedNumber) -> bool:
        """Whether the condition holds; `compare` decides if the two are close."""
        difference = self.near - limit.near
        if abs(difference) > _FAR * (abs(self.near) + abs(limit.near)):
            return (op[0] == ">") == (difference > 0) if op[0] in "<>" else op == "!="
        return compare(self.side, limit.side).holds(op)


@dataclass(frozen=True, slots=True)
class LimitedDay:
    """The compared number of a day, and the factor by which the tunable makes the limit: 1 where
    the limit is the tunable itself."""

    index: int
    subject: ComparedNumber
    usual: Number

    @property
    def turning_point(self) -> float | None:
        """The value of the tunable at which the verdict changes; None where none does."""
        try:
            return self.subject.near / nearest_float(self.usual)
        except (ZeroDivisionError, OverflowError):
            return None


class MovingLimit:
    """A limit that is a tunable or a multiple of it, and the numbers compared with it on some days.

    :param op: how it is compared, one of < <= > >=.
    :param bound: the limit as it is planned for some value.
    """

    def __init__(self, name: str, op: str, bound: model.Term, days: Iterable[LimitedDay]) -> None:
        self.name, self.op = name, op
        self._bound, self._days = bound, {day.index: day for day in days}
        above: list[tuple[float, int]] = []
        below: list[tuple[float, int]] = []
        self._same: list[int] = []
        for index, day in self._days.items():
            point = day.turning_point
            if point is None:
                self._same.append(index)
                continue
            (above if (day.usual > 0) == (op[0] == ">") else below).append((point, index))
        self._above, self._below = _Sorted(above), _Sorted(below)

    @kept
    def failing(self, value: float) -> int:
        """The days on which this limit does not hold."""
        close = 3 * _FAR * abs(value)
        failing = self._above.before(value - close) | self._below.after(value + close)
        near = (*self._above.within(value, close), *self._below.within(value, close))
        for index in (*near, *self._same):
            if not self._holds(self._days[index], value):
                failing |= 1 << index
        return failing

    def _holds(self, day: LimitedDay, value: float) -> bool:
        limit = apply("*", (written_number(value), day.usual))
        if not isinstance(limit, NUMBERS):
            return False
        return day.subject.holds(self.op, ComparedNumber.of(Side.of(self._bound, limit)))


class _Sorted:
    """Turning points in ascending order, and the days before each."""

    def __init__(self, points: list[tuple[float, int]]) -> None:
        points.sort()
        self._values = [value for value, _ in points]
        self._indexes = [index for _, index in points]
        self._before = [0]
        for index in self._indexes:
            self._before.append(self._before[-1] | 1 << index)

    def before(self, value: float) -> int:
        return self._before[bisect_left(self._values, value)]

    def after(self, value: float) -> int:
        return self._before[-1] ^ self._before[bisect_right(self._values, value)]

    def within(self, value: float, close: float) -> Sequence[int]:
        first = bisect_left(self._values, value - close)
        return self._indexes[first : bisect_right(self._values, value + close)]


@dataclass(frozen=True, slots=True)
class FailingDays:
    """The days on which an assertion fails: `always` with any values, the others by `limits`, each
    of which depends on one tunable."""

    always: int
    limits: tuple[MovingLimit, ...] = field(default=())

    @classmethod
    def over(cls, groups: Iterable[FailingDays]) -> FailingDays:
        """The failing days of several groups of days together."""
        always, limits = 0, list[MovingLimit]()
        for group in groups:
            always |= group.always
            limits += group.limits
        return cls(always, tuple(limits))

    def at(self, values: Mapping[str, float]) -> int:
        """The failing days, as the bits of a number.

        :param values: the values of all tunables that the assertion depends on.
        """
        failing = self.always
        for limit in self.limits:
            failing |= limit.failing(values[limit.name])
        return failing


def usual_behind(bounds: Sequence[model.Term], values: Sequence[float]) -> model.Term | None:
    """The term that a tunable multiplies to a limit: 1 if the limit is the tunable itself; None if
    it is neither the tunable nor a product with it.

    :param bounds: the limit as planned for two values of the tunable.
    :param values: these two values.
    """
    is_value = partial(_are_constants, values=values)
    if is_value(bounds):
        return model.ConstantTerm(1)
    match bounds:
        case (
            model.Applied(function="*", terms=(first, second)),
            model.Applied(function="*", terms=(third, fourth)),
        ):
            if is_value((first, third)) and second == fourth:
                return second
            if is_value((second, fourth)) and first == third:
                return first
    return None


def _are_constants(terms: Sequence[model.Term], values: Sequence[float]) -> bool:
    return all(
        isinstance(term, model.ConstantTerm) and term.value == written_number(value)
        for term, value in zip(terms, values, strict=True)
    )


def bits_of(indexes: Iterable[int]) -> int:
    """The indexes of days as the bits of a number."""
    bits = 0
    for index in indexes:
        bits |= 1 << index
    return bits


_MOST_REMEMBERED = 200_000

_Statuses: TypeAlias = tuple[Status | None, ...]
_Subject: TypeAlias = Status | ComparedNumber | None
"""The compared number of a day; if no limit can change the verdict, its status, None if unknown."""


@dataclass(frozen=True, slots=True)
class _Profiled:
    """The days on which the same profiles are active, and the plan for one of them, which is valid
    for all: a request counts days before the date of the data."""

    on: date
    days: tuple[int, ...]
    plan: model.Plan


class Backtest:
    """The past days of a suite, to be judged with any values of its tunables.

    :param suite: without errors, its macros expanded; `judge()` uses its values by default.
    :param days: one for each date, and for each instance of a mapped gate on it.
    :param first: the first date that is judged; the days before it are only compared with.
    """

    def __init__(self, suite: nodes.Suite, days: Sequence[PastDay], first: date = date.min) -> None:
        self._first = first
        if suite.watched:
            names = (name for day in days for _, name in day.verdicts)
            suite = with_columns(suite, claims_named(names))
        self.suite = suite
        self.days = tuple(sorted(days, key=lambda day: (day.date, day.map_index)))
        self.tunables: tuple[TunableNumber, ...] = tuple(tunables_of(suite))
        self._refs = past_judge.refs_of(suite, self.days)
        self._cache: dict[object, _Statuses] = {}
        self._series: dict[tuple[int, model.Term], tuple[MetricValue, ...]] = {}
        self._groups = self._grouped()
        plan = self._groups[0].plan if self._groups else self._plan(suite, date(2000, 1, 1))
        self.datasets = tuple(planned.datasets for planned in plan.assertions)
        """The datasets of each assertion."""
        self._past_judge = self._judge_of_past(plan)
        self._usual: dict[tuple[model.Term, ...], list[UsualLimits | None]] = {}
        self._repeated: set[tuple[int, int]] = set()
        self.days = past_judge.with_earlier_values(self.days, self._keys_behind())
        self.assertions = self._tuned_assertions(plan)
        self.labels = tuple(
            tuple(day.labels.get(assertion.key) for day in self.days)
            for assertion in self.assertions
        )
        """For each assertion and day whether there was a real issue; None without a label."""
        self._numbers: list[list[MetricValue]] = [[None] * len(self.days) for _ in self.assertions]
        self._raw: list[list[MetricValue]] = [[None] * len(self.days) for _ in self.assertions]
        self._base = self._judged_in_full()

    def _judge_of_past(self, plan: model.Plan) -> past_judge.PastJudge:
        constants = {constant.name.text for constant in self.suite.constants}
        are_plain = [
            past_judge.is_plain(node, constants) and check.where is None
            for check in self.suite.checks
            for node in check.assertions
        ]
        datasets = {(planned.check, planned.name): planned.datasets for planned in plan.assertions}
        return past_judge.PastJudge(self.days, are_plain, datasets)

    def _keys_behind(self) -> Iterator[str]:
        """The keys of the requests on which the values of the assertions depend."""
        for group in self._groups:
            for planned in group.plan.assertions:
                yield from self._past_judge.keys(planned, group.plan).behind.values()

    def _tuned_assertions(self, plan: model.Plan) -> tuple[past_judge.TunedAssertion, ...]:
        assertion_nodes = [node for check in self.suite.checks for node in check.assertions]
        reached = self._reached(plan)
        return tuple(
            past_judge.TunedAssertion(
                planned.check,
                planned.name,
                planned.severity,
                planned.cost,
                is_required=is_required(node),
                is_experimental=planned.is_experimental,
                is_volume=isinstance(node.claim, nodes.Measure)
                and is_volume(node.claim.expression),
                tunables=names,
            )
            for planned, node, names in zip(plan.assertions, assertion_nodes, reached, strict=True)
        )

    @property
    def dates(self) -> tuple[date, ...]:
        return tuple(day.date for day in self.days)

    def count_dates(self, days: Iterable[int]) -> int:
        """The number of dates of some days: instances of a mapped gate share them."""
        return len({self.days[index].date for index in days})

    def first_of_date(self, index: int) -> int:
        """The first day of the same date, which instances of a mapped gate share."""
        return bisect_left(self.days, self.days[index].date, key=lambda day: day.date)

    @property
    def values(self) -> dict[str, float]:
        """The values of the tunables in the suite."""
        return {tunable.name: tunable.value for tunable in self.tunables}

    @property
    def profiles(self) -> tuple[tuple[str, ...], ...]:
        """The names of the active profiles of each day."""
        return tuple(
            tuple(profile.name.value for profile in active_profiles(self.suite, day.date))
            for day in self.days
        )

    def profiled(self, row: int, *, without: Collection[str] = ()) -> frozenset[int]:
        """The days on which a profile has a rule for an assertion.

        :param without: the names of profiles that do not count.
        """
        return frozenset(
            index
            for group in self._groups
            if not {*group.plan.assertions[row].profiles} <= {*without}
            for index in group.days
        )

    def judge(self, values: Mapping[str, float] | None = None) -> past_judge.JudgedDays:
        """The verdicts with these values of tunables; others keep their values in the suite.

        Bounds are not checked: `tuning.protection` decides what may be set.
        """
        current_values = self.values
        new_values = {**current_values, **(values or {})}
        changed = frozenset(
            name for name, value in new_values.items() if current_values.get(name) != value
        )
        if not changed:
            return past_judge.JudgedDays(new_values, self._base)
        tuned, slim = self._reached_by(changed)
        suite = with_values(slim, new_values)
        rows = [[*row] for row in self._base]
        for number, group in enumerate(self._groups):
            plan = self._plan(suite, group.on)
            for row, planned in zip(tuned, plan.assertions, strict=True):
                statuses = self._statuses(row, number, planned)
                for index, status in zip(group.days, statuses, strict=True):
                    rows[row][index] = status
        return past_judge.JudgedDays(new_values, tuple(map(tuple, rows)))

    def effects(self, row: int, judged: past_judge.JudgedDays) -> tuple[Effect | None, ...]:
        """The effect of an assertion on its gate, for each day; None if its verdict is unknown.

        Values of tunables, by which days were judged, change no severity.
        """
        effects: list[Effect | None] = [None] * len(self.days)
        statuses = judged.statuses[row]
        for group in self._groups:
            planned = group.plan.assertions[row]
            for index in group.days:
                status = statuses[index]
                if status is not None:
                    effects[index] = effect_of(status, planned, self.days[index].fail_on)
        return tuple(effects)

    def limits(self, row: int) -> list[tuple[str, list[float | None]]]:
        """How the value is compared with each limit, and the limit on each day."""
        planned = self._groups[0].plan.assertions[row]
        found: list[tuple[str, list[float | None]]] = [
            (op, [None] * len(self.days)) for op in planned.condition.comparators
        ]
        for number, group in enumerate(self._groups):
            planned = group.plan.assertions[row]
            for (_, limits), bound in zip(found, planned.condition.bounds, strict=True):
                of_days = self._limits_of(number, planned, bound)
                for index, limit in zip(group.days, of_days, strict=True):
                    limits[index] = None if limit is None else limit.near
        return found

    def compared(self, row: int) -> tuple[MetricValue, ...]:
        """The compared value on each day, scaled by the profiles, with the suite's own values; None
        if it is unknown, or has no value."""
        return tuple(self._numbers[row])

    def measured(self, row: int) -> tuple[MetricValue, ...]:
        """The value on each day before profiles scale it; None if it is unknown, or does not
        exist."""
        return tuple(self._raw[row])

    def why_unknown(self, row: int, index: int) -> str | None:
        """The reason why a verdict is unknown; None if it is known."""
        day = self.days[index]
        plan = self._plan(self.suite, day.date)
        return self._past_judge.why_unknown(row, plan.assertions[row], plan, day)

    # Plans

    def _plan(self, suite: nodes.Suite, on: date) -> model.Plan:
        return resolve(suite, SourceFile("", ""), self._refs, on, QUIET)

    def _grouped(self) -> list[_Profiled]:
        grouped: dict[tuple[str, ...], list[int]] = {}
        for index, names in enumerate(self.profiles):
            if self.days[index].date >= self._first:
                grouped.setdefault(names, []).append(index)
        return [
            _Profiled(on, tuple(indexes), self._plan(self.suite, on))
            for indexes in grouped.values()
            for on in [self.days[indexes[0]].date]
        ]

    def _reached(self, plan: model.Plan) -> list[frozenset[str]]:
        """The names of the tunables that the plan of each assertion depends on."""
        names: list[set[str]] = [set() for _ in plan.assertions]
        suite = self.suite
        written = [*(node for check in suite.checks for node in check.assertions), *suite.profiles]
        written += [constant.value for constant in suite.constants]
        mentioned = {
            part.text for node in written for part in parts_of(node) if isinstance(part, nodes.Name)
        }
        for tunable in self.tunables:
            if tunable.name not in mentioned:
                continue
            for value in {tunable.min_bound, tunable.max_bound} - {tunable.value}:
                changed_plan = self._plan(with_values(self.suite, {tunable.name: value}), plan.date)
                for tunable_names, planned, changed in zip(
                    names, plan.assertions, changed_plan.assertions, strict=True
                ):
                    if planned != changed:
                        tunable_names.add(tunable.name)
        return [frozenset(tunable_names) for tunable_names in names]

    @kept
    def _reached_by(self, changed: frozenset[str]) -> tuple[list[int], nodes.Suite]:
        """The assertions that depend on some tunables, and the suite reduced to them."""
        is_reached = [bool(assertion.tunables & changed) for assertion in self.assertions]
        return [*compress(count(), is_reached)], left_of(self.suite, is_reached)

    # Verdicts

    def _judged_in_full(self) -> tuple[_Statuses, ...]:
        rows: list[list[Status | None]] = [[None] * len(self.days) for _ in self.assertions]
        for number, group in enumerate(self._groups):
            for row, planned in enumerate(group.plan.assertions):
                is_usual, judged = planned.history and past_judge.has_limits(planned), planned
                if is_usual:  # limits of all days together are fast
                    exists = model.PlannedCondition("is not None", (), planned.condition.text)
                    judged = replace(planned, condition=exists)
                for index in group.days:
                    verdict = self._past_judge.verdict(row, judged, group.plan, self.days[index])
                    if verdict is not None:
                        rows[row][index] = verdict.status
                        self._raw[row][index] = verdict.value
                        self._numbers[row][index] = verdict.scaled_value
                if is_usual:
                    self._judge_usual(row, number, rows[row])
        return tuple(map(tuple, rows))

    def _judge_usual(self, row: int, number: int, statuses: list[Status | None]) -> None:
        """Judges an assertion with `within usual(...)` on the days on which it has a value."""
        group = self._groups[number]
        planned = group.plan.assertions[row]
        bounds = planned.condition.bounds
        limits = [self._limits_of(number, planned, bound) for bound in bounds]
        (limit, *_) = (part for bound in bounds for part in model.usual_limits_in(bound))
        usual = self._usual_of(limit, planned, group.plan)
        is_of_subject = limit.terms[len(USUAL_OPERANDS) - 1] == planned.term
        for index, *ends in zip(group.days, *limits, strict=True):
            value, known = self._numbers[row][index], usual[index]
            if statuses[index] is None:
                continue
            if known is None:
                statuses[index] = Status.SKIPPED
            elif isinstance(value, NUMBERS):
                side = Side.of(planned.term, value, is_scaled=planned.multiplier != 1)
                if is_of_subject and known.repeated == nearest_float(value):
                    self._repeated.add((row, index))
                    statuses[index] = Status.FAILED
                    continue
                statuses[index] = _status(ComparedNumber.of(side), planned, ends)

    def _usual_of(
        self, limit: model.Applied, planned: model.PlannedAssertion, plan: model.Plan
    ) -> list[UsualLimits | None]:
        if limit.terms not in self._usual:
            limits = self._past_judge.limits_of(limit, planned, plan, self._first)
            self._usual[limit.terms] = limits
        return self._usual[limit.terms]

    def _statuses(self, row: int, number: int, planned: model.PlannedAssertion) -> _Statuses:
        """The statuses of a group of days, cached by the planned assertion."""
        group = self._groups[number]
        key = row, number, planned.term, planned.condition, planned.multiplier
        statuses = self._cache.get(key)
        if statuses is None:
            if past_judge.only_limits_differ(group.plan.assertions[row], planned):
                bounds = planned.condition.bounds
                limits = [self._limits_of(number, planned, bound) for bound in bounds]
                subjects, of_days = self._subjects_of(row, number), zip(*limits, strict=True)
                statuses = tuple(
                    _status(subject, planned, ends)
                    if isinstance(subject, ComparedNumber)
                    else subject
                    for subject, ends in zip(subjects, of_days, strict=True)
                )
            else:
                verdicts = (
                    self._past_judge.verdict(row, planned, group.plan, self.days[index])
                    for index in group.days
                )
                statuses = tuple(verdict.status if verdict else None for verdict in verdicts)
            if len(self._cache) > _MOST_REMEMBERED:
                self._cache.clear()
            self._cache[key] = statuses
        return statuses

    def _limits_of(
        self, number: int, planned: model.PlannedAssertion, bound: model.Term
    ) -> Sequence[ComparedNumber | None]:
        """A limit on each day of a group; None if it has no value."""
        days = self._groups[number].days
        value = past_judge.number_of(bound)
        if isinstance(value, NUMBERS):
            return (ComparedNumber.of(Side.of(bound, value)),) * len(days)
        series = self._series_of(number, bound, planned)
        return [
            ComparedNumber.of(Side.of(bound, limit)) if isinstance(limit, NUMBERS) else None
            for limit in series
        ]

    def _series_of(
        self, number: int, term: model.Term, planned: model.PlannedAssertion
    ) -> Sequence[MetricValue]:
        """The values of a term on the days of a group, cached if it contains no constant."""
        days = self._groups[number].days
        match term:
            case model.ConstantTerm(value=value):
                return (metric_value(value),) * len(days)
            case model.Applied(function=function) if function in USUAL_LIMITS:
                usual = self._usual_of(term, planned, self._groups[number].plan)
                end = "low" if function == USUAL_LIMITS[0] else "high"
                found = (usual[index] for index in days)
                return [None if known is None else getattr(known, end) for known in found]
            case model.Applied(function=function, terms=terms) if any(
                isinstance(part, model.ConstantTerm) for part in terms
            ):
                parts = (self._series_of(number, part, planned) for part in terms)
                return [apply(function, values) for values in zip(*parts, strict=True)]
        series = self._series.get((number, term))
        if series is None:
            if isinstance(term, model.Applied):
                parts = (self._series_of(number, part, planned) for part in term.terms)
                series = tuple(apply(term.function, values) for values in zip(*parts, strict=True))
            else:
                assert isinstance(term, model.Measured)
                plan, of_days = self._groups[number].plan, [self.days[index] for index in days]
                series = self._past_judge.values(term.request, planned, plan, of_days)
            self._series[number, term] = series
        return series

    @kept
    def failing_days(self, row: int) -> FailingDays | None:
        """The days on which an assertion fails, for any values of its tunables; None if a limit
        depends on several tunables, or is not a multiple of its tunable."""
        of_groups = [self._failing_days(row, number) for number in range(len(self._groups))]
        judged = [failing for failing in of_groups if failing is not None]
        return FailingDays.over(judged) if len(judged) == len(of_groups) else None

    def _failing_days(self, row: int, number: int) -> FailingDays | None:
        """`failing_days` for a group of days."""
        planned, moving = self._groups[number].plan.assertions[row], self._moving(row, number)
        if moving is None:
            return None
        days, subjects = self._groups[number].days, self._subjects_of(row, number)
        always = {n for n, subject in zip(days, subjects, strict=True) if subject is Status.FAILED}
        limits = []
        for position, bound in enumerate(planned.condition.bounds if moving else ()):
            op = planned.condition.comparators[position]
            compared = []
            of_days = self._limits_of(number, planned, bound)
            usual: Sequence[MetricValue] = [None] * len(days)
            if position in moving:
                usual = self._series_of(number, moving[position][1], planned)
            for index, subject, limit, factor in zip(days, subjects, of_days, usual, strict=True):
                if not isinstance(subject, ComparedNumber):
                    continue
                if isinstance(factor, NUMBERS):
                    compared.append(LimitedDay(index, subject, factor))
                elif position in moving or limit is None or not subject.holds(op, limit):
                    always.add(index)
            if position in moving:
                limits.append(MovingLimit(moving[position][0], op, bound, compared))
        if not moving:
            always = {n for n in days if self._base[row][n] is Status.FAILED}
        return FailingDays(bits_of(always), tuple(limits))

    def _moving(self, row: int, number: int) -> dict[int, tuple[str, model.Term]] | None:
        """The tunables that move limits on a group of days, by the position of the limit, each with
        the term that the limit is a multiple of; None if a tunable has another effect."""
        group, moving = self._groups[number], dict[int, tuple[str, model.Term]]()
        planned = group.plan.assertions[row]
        for name in sorted(self.assertions[row].tunables):
            values = next(tunable for tunable in self.tunables if tunable.name == name).bounds
            ends = self._planned_at(row, group, name, values)
            if all(end == planned for end in ends):
                continue
            if not all(past_judge.only_limits_differ(planned, end) for end in ends):
                return None
            pairs = zip(ends[0].condition.bounds, ends[1].condition.bounds, strict=True)
            for position, bounds in enumerate(pairs):
                if bounds[0] == bounds[1]:
                    continue
                usual, condition = usual_behind(bounds, values), planned.condition
                is_one_sided = condition.comparators[position][0] in "<>"
                # Beyond one limit of `not between`, a day fails only if it is within the other.
                if condition.kind == "not between" or not is_one_sided:
                    return None
                if usual is None or position in moving:
                    return None
                moving[position] = name, usual
        return moving

    def _planned_at(
        self, row: int, group: _Profiled, name: str, values: Iterable[float]
    ) -> list[model.PlannedAssertion]:
        """An assertion as it is planned for some values of a tunable."""
        tuned, slim = self._reached_by(frozenset({name}))
        suites = (with_values(slim, {**self.values, name: value}) for value in values)
        return [self._plan(suite, group.on).assertions[tuned.index(row)] for suite in suites]

    def turning_points(self, row: int, name: str) -> list[float]:
        """The values of a tunable at which the verdict on an assertion changes, one for each day on
        which it is known: the compared value, or its ratio to the term that the tunable scales."""
        tunable = next(tunable for tunable in self.tunables if tunable.name == name)
        low, high = (float(end) for end in tunable.bounds)
        points = []
        for number, group in enumerate(self._groups):
            at_low, at_high = self._planned_at(row, group, name, tunable.bounds)
            if not past_judge.only_limits_differ(at_low, at_high):
                continue
            for first, last in zip(at_low.condition.bounds, at_high.condition.bounds, strict=True):
                limits = (
                    self._limits_of(number, planned, bound)
                    for planned, bound in ((at_low, first), (at_high, last))
                )
                subjects = self._subjects_of(row, number)
                for subject, *pair in zip(subjects, *limits, strict=True):
                    if not isinstance(subject, ComparedNumber) or None in pair:
                        continue
                    start, end = (limit.near for limit in pair if limit is not None)
                    if start != end:
                        points.append(low + (subject.near - start) / (end - start) * (high - low))
        return points

    @kept
    def _subjects_of(self, row: int, number: int) -> tuple[_Subject, ...]:
        """The compared value on each day of a group. Days whose verdict no limit can change have
        their status instead, None if it is unknown."""
        group = self._groups[number]
        planned = group.plan.assertions[row]
        return tuple(self._subject(row, planned, index) for index in group.days)

    def _subject(self, row: int, planned: model.PlannedAssertion, index: int) -> _Subject:
        status = self._base[row][index]
        if status not in (Status.PASSED, Status.FAILED):
            return status
        value = self._numbers[row][index]
        if not isinstance(value, NUMBERS) or (row, index) in self._repeated:
            return status  # without a value it fails, whatever the limit is
        side = Side.of(planned.term, value, is_scaled=planned.multiplier != 1)
        return ComparedNumber.of(side)


def _status(
    subject: ComparedNumber,
    planned: model.PlannedAssertion,
    limits: Sequence[ComparedNumber | None],
) -> Status:
    """The status of a day under its limits. A limit without a value counts as violated."""
    if None in limits:
        return Status.FAILED
    pairs = zip(planned.condition.comparators, limits, strict=True)
    comparisons = (limit is not None and subject.holds(op, limit) for op, limit in pairs)
    return Status.PASSED if planned.condition.holds(comparisons) else Status.FAILED
