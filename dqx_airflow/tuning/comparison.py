"""The effect of other values of tunables, or of another suite, on past days: the verdicts side by
side, judged from stored values; nothing is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from dqx_airflow.dql import nodes
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.effects import Effect, is_changed
from dqx_airflow.tuning.past_judge import JudgedDays
from dqx_airflow.tuning.tunables import units_of
from dqx_airflow.values import MetricValue, Severity, Status


@dataclass(frozen=True, slots=True)
class ComparedDay:
    """One assertion on one day: the current verdict, the proposed verdict, and the label.

    A status is None if it is unknown, and `unknown` is the reason. The effects say how the
    statuses end the gate. `value` is the measured value, and `scaled_value` the compared one.
    `map_index` is the index of an instance of a mapped gate, -1 for other gates.
    """

    date: date
    before: Status | None
    after: Status | None
    label: bool | None = None
    value: MetricValue = None
    scaled_value: MetricValue = None
    unknown: str | None = None
    map_index: int = -1
    effect_before: Effect | None = None
    effect_after: Effect | None = None

    @property
    def is_changed(self) -> bool:
        """True if the gate would have ended in another way by this assertion, and was or would be
        warned, blocked or broken by it."""
        return is_changed(self.effect_before, self.effect_after)

    @property
    def turn(self) -> str:
        """Both effects in words: `blocked -> warned`."""
        effects = self.effect_before, self.effect_after
        return " -> ".join("unknown" if effect is None else effect.value for effect in effects)


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
    """The days of a suite with their current and their proposed verdicts. `units` are the units of
    its constants, by their names."""

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

    def lost_issues(self, first: date) -> tuple[tuple[str, date], ...]:
        """The days with a real issue that an assertion finds, and the proposed one would not; each
        with the name of the assertion.

        :param first: the first of the days whose earlier values are known: before it, an assertion
            that could not be evaluated loses nothing.
        """
        return tuple(
            (assertion.name, day.date)
            for assertion, day in self._all()
            if day.label
            and day.before is Status.FAILED
            and day.after is not Status.FAILED
            and (day.after is Status.PASSED or day.date >= first)
        )

    @property
    def changed(self) -> tuple[tuple[ComparedAssertion, ComparedDay], ...]:
        """The days whose effect changes, each with its assertion."""
        return tuple((assertion, day) for assertion, day in self._all() if day.is_changed)

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
    assertions = [
        _compared(_Side(today, judged, rows_before.get(key)), _Side(proposed, would_be, row))
        for key, row in rows_after.items()
    ]
    for key, row in rows_before.items():
        if key not in rows_after:
            removed = _Side(proposed, would_be, None)
            assertions.append(_compared(_Side(today, judged, row), removed))
    return BacktestComparison(
        today.suite.name.value,
        values_before=judged.values,
        values_after=would_be.values,
        assertions=tuple(assertions),
        units=units_of(today.suite) | units_of(proposed.suite),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """An assertion in one of the two backtests; `row` is None if its suite does not have it."""

    backtest: Backtest
    judged: JudgedDays
    row: int | None

    @property
    def statuses(self) -> Sequence[Status | None]:
        """The status of each day."""
        if self.row is None:
            return [None] * len(self.backtest.days)
        return self.judged.statuses[self.row]

    @property
    def effects(self) -> Sequence[Effect | None]:
        """The effect of each day's status on the gate."""
        if self.row is None:
            return [Effect.ABSENT] * len(self.backtest.days)
        return self.backtest.effects(self.row, self.judged)


def _compared(before: _Side, after: _Side) -> ComparedAssertion:
    """The assertion with the facts of the proposed suite, or of the current one if that alone has
    it."""
    source = before if after.row is None else after
    assert source.row is not None
    backtest = source.backtest
    assertion = backtest.assertions[source.row]
    measured = backtest.measured(source.row)
    scaled = backtest.compared(source.row)
    labels = backtest.labels[source.row]
    sides = zip(
        backtest.days, before.statuses, after.statuses, before.effects, after.effects, strict=True
    )
    days = []
    for index, (day, was, becomes, effect_before, effect_after) in enumerate(sides):
        is_unknown = was is None and becomes is None
        days.append(
            ComparedDay(
                day.date,
                before=was,
                after=becomes,
                label=labels[index],
                value=measured[index],
                scaled_value=scaled[index],
                unknown=backtest.why_unknown(source.row, index) if is_unknown else None,
                map_index=day.map_index,
                effect_before=effect_before,
                effect_after=effect_after,
            )
        )
    return ComparedAssertion(assertion.check, assertion.name, assertion.severity, tuple(days))
