"""The effect of other values of tunables, of another suite, or of a shadow on past days: verdicts
and alarms side by side, judged from stored values; nothing is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from dqx_airflow.dql import nodes
from dqx_airflow.plan.adjustments import active_profiles
from dqx_airflow.plan.description import describe_term
from dqx_airflow.plan.model import DEFAULT_COST, Plan, PlannedAssertion
from dqx_airflow.plan.resolve import DEFAULT_AVAILABILITY_THRESHOLD, QUIET, resolve
from dqx_airflow.results.past_days import AssertionKey, PastDay, ShadowDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.past_judge import JudgedDays, refs_of
from dqx_airflow.tuning.tunables import units_of
from dqx_airflow.values import MetricValue, Severity, SourceFile, Span, Status, day_of_instance
from dqx_airflow.values.exact import exact_text

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ComparedDay:
    """One assertion on one day: the current verdict, the proposed verdict, and the label.
    `map_index` is that of an instance of a mapped gate, -1 for others.

    A status is None if it is unknown, and `unknown` says why. `value` is the compared value.
    """

    date: date
    before: Status | None
    after: Status | None
    label: bool | None = None
    value: MetricValue = None
    unknown: str | None = None
    map_index: int = -1

    @property
    def changes_side(self) -> bool:
        """True if only one of the two verdicts is an alarm."""
        return (self.before is Status.FAILED) != (self.after is Status.FAILED)


@dataclass(frozen=True, slots=True)
class ComparedAssertion:
    check: str
    name: str
    severity: Severity
    days: tuple[ComparedDay, ...]

    def count(self, status: Status | None, *, after: bool) -> int:
        statuses = ((day.after if after else day.before) for day in self.days)
        return sum(of_day is status for of_day in statuses)


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of verdicts of each kind. `false_alarms` are failures labelled as wrong, `missed`
    are passes on days with a real issue."""

    passed: int
    failed: int
    skipped: int
    error: int
    unknown: int
    false_alarms: int
    missed: int


@dataclass(frozen=True, slots=True)
class BacktestComparison:
    """The days of a suite with their current and their proposed verdicts. `units` is how it writes
    the values of its constants."""

    suite: str
    values_before: Mapping[str, float]
    values_after: Mapping[str, float]
    assertions: tuple[ComparedAssertion, ...]
    units: Mapping[str, nodes.Unit] = field(default_factory=dict)

    @property
    def dates(self) -> tuple[date, ...]:
        """Each date once, ascending."""
        days = self.assertions[0].days if self.assertions else ()
        return tuple(dict.fromkeys(day.date for day in days))

    @property
    def instances(self) -> int:
        """The number of instances of a mapped gate; 0 if it is not mapped."""
        return len({day.map_index for _, day in self._all() if day.map_index >= 0})

    @property
    def before(self) -> Tally:
        return self._tally(after=False)

    @property
    def after(self) -> Tally:
        return self._tally(after=True)

    @property
    def changed(self) -> tuple[tuple[ComparedAssertion, ComparedDay], ...]:
        """The days that change sides, each with its assertion."""
        return tuple((assertion, day) for assertion, day in self._all() if day.changes_side)

    def _all(self) -> Iterator[tuple[ComparedAssertion, ComparedDay]]:
        return ((assertion, day) for assertion in self.assertions for day in assertion.days)

    def _tally(self, *, after: bool) -> Tally:
        judged = [(day.after if after else day.before, day.label) for _, day in self._all()]
        numbers = Counter(status for status, _ in judged)
        return Tally(
            passed=numbers[Status.PASSED],
            failed=numbers[Status.FAILED],
            skipped=numbers[Status.SKIPPED],
            error=numbers[Status.ERROR],
            unknown=numbers[None],
            false_alarms=judged.count((Status.FAILED, False)),
            missed=judged.count((Status.PASSED, True)),
        )


def compare_judged(
    today: Backtest, judged: JudgedDays, proposed: Backtest, would_be: JudgedDays
) -> BacktestComparison:
    """The comparison of two backtests over the same days; first the assertions of the proposed
    suite, then those that only the current suite has."""
    rows_before = {assertion.key: row for row, assertion in enumerate(today.assertions)}
    rows_after = {assertion.key: row for row, assertion in enumerate(proposed.assertions)}
    keys = [*rows_after, *(key for key in rows_before if key not in rows_after)]
    return BacktestComparison(
        today.suite.name.value,
        judged.values,
        would_be.values,
        tuple(
            _compared(
                (today, judged, rows_before.get(key)), (proposed, would_be, rows_after.get(key))
            )
            for key in keys
        ),
        units_of(today.suite) | units_of(proposed.suite),
    )


def _compared(
    before: tuple[Backtest, JudgedDays, int | None], after: tuple[Backtest, JudgedDays, int | None]
) -> ComparedAssertion:
    source, _, row = after if after[2] is not None else before
    assert row is not None
    assertion = source.assertions[row]
    values, labels = source.compared(row), source.labels[row]
    was, becomes = _statuses(before), _statuses(after)
    days = []
    for index, day in enumerate(source.days):
        is_known = was[index] is not None or becomes[index] is not None
        why = None if is_known else source.why_unknown(row, index)
        facts = labels[index], values[index], why, day.map_index
        days.append(ComparedDay(day.date, was[index], becomes[index], *facts))
    return ComparedAssertion(assertion.check, assertion.name, assertion.severity, tuple(days))


def _statuses(side: tuple[Backtest, JudgedDays, int | None]) -> Sequence[Status | None]:
    backtest, judged, row = side
    return [None] * len(backtest.days) if row is None else judged.statuses[row]


@dataclass(frozen=True, slots=True)
class Alarms:
    """The alarms of one suite: their number, the false ones, and the missed issues, according to
    labels. `days` are those on which it passed or failed."""

    days: int
    alarms: int
    false: int
    missed: int


@dataclass(frozen=True, slots=True)
class ShadowedAssertion:
    """An assertion in the gate and in its shadow. On the days `only_own` and `only_shadow`, such as
    `2024-03-20`, or `2024-03-20[3]` for an instance of a mapped gate, only one of the two alarms:
    the other one passed, was skipped, or lacks the assertion."""

    check: str
    name: str
    own: Alarms
    shadow: Alarms
    only_own: tuple[str, ...]
    only_shadow: tuple[str, ...]


def compare_alarms(days: Sequence[ShadowDay]) -> tuple[ShadowedAssertion, ...]:
    """A comparison for each assertion of the gate or the shadow, in the order of the gate."""
    keys = dict.fromkeys(
        key for side in ("own", "other") for day in days for key in getattr(day, side)
    )
    return tuple(_shadowed(key, days) for key in keys)


def _shadowed(key: AssertionKey, days: Sequence[ShadowDay]) -> ShadowedAssertion:
    def fails(statuses: Mapping[AssertionKey, Status]) -> bool:
        return statuses.get(key) is Status.FAILED

    def shown(day: ShadowDay) -> str:
        return day_of_instance(day.date, day.map_index)

    return ShadowedAssertion(
        *key,
        _alarms(key, [(day.own, day.labels) for day in days]),
        _alarms(key, [(day.other, day.labels) for day in days]),
        tuple(shown(day) for day in days if fails(day.own) and not fails(day.other)),
        tuple(shown(day) for day in days if fails(day.other) and not fails(day.own)),
    )


def _alarms(
    key: AssertionKey,
    days: Sequence[tuple[Mapping[AssertionKey, Status], Mapping[AssertionKey, bool]]],
) -> Alarms:
    judged = [
        (statuses[key] is Status.FAILED, labels.get(key))
        for statuses, labels in days
        if statuses.get(key) in (Status.PASSED, Status.FAILED)
    ]
    return Alarms(
        len(judged),
        sum(failed for failed, _ in judged),
        sum(failed and label is False for failed, label in judged),
        sum(not failed and label is True for failed, label in judged),
    )


ABSENT = "absent"
"""The verdict on an assertion that the suite does not have."""

_QUIET = frozenset({ABSENT, Status.PASSED.value, Status.SKIPPED.value})


@dataclass(frozen=True, slots=True)
class ChangedAssertion:
    """An assertion as it was and as it is, in words: None if it is new, or removed.

    `turned` are the past days by their verdicts before and after (`passed -> failed`), where one of
    them is an alarm and the other is not that. `unknown` counts the days that stored values do not
    decide, by the reason; `known` are the others. `span` is in the new version, if it is there.
    """

    check: str
    name: str
    before: str | None
    after: str | None
    span: Span | None = None
    turned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    known: int = 0

    @property
    def kind(self) -> str:
        if self.before is None:
            return "new"
        return "removed" if self.after is None else "changed"


def changed_assertions(
    old: nodes.Suite | None, new: nodes.Suite | None, around: date, days: Sequence[PastDay] = ()
) -> tuple[ChangedAssertion, ...]:
    """The assertions that differ: first those of the new version, then the removed ones.

    An assertion is known by its check and name. It differs if its condition, severity or another
    setting does with any of the profiles.

    :param old: without errors, its macros expanded, as is `new`; None if there is none.
    :param around: profiles count that are active in the year before or after this day.
    :param days: the days to judge with both; without any, nothing is judged.
    """
    some = new or old
    assert some is not None
    empty = replace(some, checks=())
    before, after = Backtest(old or empty, days), Backtest(new or empty, days)
    changes: dict[AssertionKey, ChangedAssertion] = {}
    for plans in _plans((before.suite, after.suite), around, days):
        for change in _differences(*plans):
            changes.setdefault((change.check, change.name), change)
    return tuple(
        _judged(change, before, after) if days else change
        for change in sorted(changes.values(), key=lambda change: change.after is None)
    )


def _plans(
    suites: Sequence[nodes.Suite], around: date, days: Sequence[PastDay]
) -> Iterator[tuple[Plan, ...]]:
    """The plans of both versions, for a date of each combination of active profiles."""
    dates: dict[object, date] = {}
    # Each profile of a year is active on one of these days.
    for number in sorted(range(-366, 367), key=abs):
        on = around + timedelta(days=number)
        active = (profile.name.value for suite in suites for profile in active_profiles(suite, on))
        dates.setdefault(tuple(active), on)
    for on in dates.values():
        yield tuple(
            resolve(suite, SourceFile("", ""), refs_of(suite, days), on, QUIET) for suite in suites
        )


def _differences(old: Plan, new: Plan) -> Iterator[ChangedAssertion]:
    before = {(planned.check, planned.name): planned for planned in old.assertions}
    for planned in new.assertions:
        was = before.pop((planned.check, planned.name), None)
        shows_term = bool(was and was.expression == planned.expression and was.term != planned.term)
        words = None if was is None else _in_words(was, old, shows_term=shows_term)
        now = _in_words(planned, new, shows_term=shows_term)
        same = was and replace(planned, span=was.span, source_line=was.source_line)
        if words != now or was != same:
            yield ChangedAssertion(planned.check, planned.name, words, now, planned.span)
    for (check, name), was in before.items():
        yield ChangedAssertion(check, name, _in_words(was, old), None)


def _in_words(planned: PlannedAssertion, plan: Plan, *, shows_term: bool = False) -> str:
    """The claim of an assertion with the values of constants: `num_rows() >= LEAST (10) (P1)`.

    :param shows_term: with the datasets and the filters in full, for a date of the plan.
    """
    words = [planned.severity.value, *(f"tag {tag}" for tag in planned.tags)]
    cost = planned.cost
    if cost != DEFAULT_COST:
        words.append(f"costs {cost.false_positive:g} and {cost.false_negative:g}")
    if planned.is_protected and planned.severity is not Severity.P0:
        words.append("required")
    needs_past = any({one.date} - {None, plan.date} for one in planned.requests + planned.history)
    if needs_past and plan.availability_threshold != DEFAULT_AVAILABILITY_THRESHOLD:
        words.append(f"availability from {plan.availability_threshold:.0%}")
    if planned.is_experimental:
        words.append("experimental")
    if planned.multiplier != 1:
        words.append(f"times {exact_text(planned.multiplier)} by {', '.join(planned.profiles)}")
    if planned.disabled_by:
        words.append(f"disabled by {planned.disabled_by}")
    groups = f" {planned.groups.text}" if planned.groups else ""
    expression = describe_term(planned.term) if shows_term else planned.expression
    return f"{expression} {planned.condition.text}{groups} ({', '.join(words)})"


def _judged(change: ChangedAssertion, old: Backtest, new: Backtest) -> ChangedAssertion:
    turned: dict[str, list[str]] = {}
    unknown = Counter[str]()
    sides = (_verdicts(side, (change.check, change.name)) for side in (old, new))
    for day, (was, why_was), (becomes, why) in zip(new.days, *sides, strict=True):
        if was is None or becomes is None:
            unknown[why or why_was] += 1
        elif was != becomes and not {was, becomes} <= _QUIET:
            shown = day_of_instance(day.date, day.map_index)
            turned.setdefault(f"{was} -> {becomes}", []).append(shown)
    return replace(
        change,
        turned={turn: tuple(dates) for turn, dates in sorted(turned.items())},
        unknown=dict(unknown.most_common()),
        known=len(new.days) - unknown.total(),
    )


def _verdicts(side: Backtest, key: AssertionKey) -> Iterator[tuple[str | None, str]]:
    """Yields the verdict on each day, None and the reason if it is unknown."""
    row = next((n for n, assertion in enumerate(side.assertions) if assertion.key == key), None)
    for index in range(len(side.days)):
        if row is None:
            yield ABSENT, ""
        elif (status := side.judge().statuses[row][index]) is not None:
            yield status.value, ""
        else:
            yield None, side.why_unknown(row, index) or "its values are not stored"
