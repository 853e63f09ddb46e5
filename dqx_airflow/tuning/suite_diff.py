"""The assertions that differ between two versions of a suite, and the past days on which their
effects on the gate would differ, judged from stored values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import ClassVar

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show, show_constant, show_watch
from dqx_airflow.dql.watches import claims_named
from dqx_airflow.plan.adjustments import active_profiles
from dqx_airflow.plan.description import describe_term
from dqx_airflow.plan.model import DEFAULT_COST, Plan, PlannedAssertion
from dqx_airflow.plan.resolve import DEFAULT_AVAILABILITY_THRESHOLD, QUIET, resolve
from dqx_airflow.results.past_days import AssertionKey, PastDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.effects import Effect, is_changed
from dqx_airflow.tuning.past_judge import refs_of
from dqx_airflow.values import Severity, SourceFile, Span, day_of_instance
from dqx_airflow.values.exact import exact_text


@dataclass(frozen=True, slots=True)
class ChangedAssertion:
    """An assertion before and after, in words: None if it is new, or removed.

    `turned` are the past days by their effects before and after (`blocked -> warned`), where at
    least one of the two is noticed. `unknown` counts the days that stored values do not decide, by
    the reason; `known` is the number of the others. `span` is in the new version.
    """

    check: str
    name: str
    before: str | None
    after: str | None
    span: Span | None = None
    turned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    known: int = 0

    noun: ClassVar[str] = "assertion"

    @property
    def kind(self) -> str:
        if self.before is None:
            return "new"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class ChangedSetting(ChangedAssertion):
    """A setting before and after, as JSON, by its keys; no check has it."""

    noun: ClassVar[str] = "setting"

    @property
    def last(self) -> str:
        """The last part of its keys."""
        return self.name.rpartition(".")[2]


def changed_assertions(
    old: nodes.Suite | None, new: nodes.Suite | None, around: date, days: Sequence[PastDay] = ()
) -> tuple[ChangedAssertion, ...]:
    """The assertions that differ: first the new and the changed ones, then the removed ones.

    An assertion is known by its check and name. It differs if its condition, severity or another
    setting does with any of the profiles.

    :param old: without errors, its macros expanded, as is `new`; None if there is none.
    :param around: profiles count that are active in the year before or after this day.
    :param days: the days to judge with both; without any, nothing is judged.
    """
    version = new or old
    assert version is not None
    empty = replace(version, checks=())
    before = Backtest(old or empty, days)
    after = Backtest(new or empty, days)
    changes: dict[AssertionKey, ChangedAssertion] = {}
    for plans in _plans((before.suite, after.suite), around, days):
        for change in _differences(*plans):
            changes.setdefault((change.check, change.name), change)
    judged = [_judged(change, before, after) if days else change for change in changes.values()]
    others = (
        *_changed_watches(old or empty, new or empty, changes),
        *_changed_bounds(old or empty, new or empty),
    )
    return tuple(sorted((*judged, *others), key=lambda change: change.after is None))


def _changed_watches(
    old: nodes.Suite, new: nodes.Suite, found: Collection[AssertionKey]
) -> Iterator[ChangedAssertion]:
    """The watches that differ, unless a claim of theirs about a column is among those found.

    Which columns a watch has claims about is known from a run only.
    """
    before, after = (
        {
            (check.name.value, watch.dataset.text): watch
            for check in suite.checks
            for watch in check.watches
        }
        for suite in (old, new)
    )
    for check, dataset in dict.fromkeys((*after, *before)):
        was, becomes = (side.get((check, dataset)) for side in (before, after))
        words = None if was is None else show_watch(was)
        now = None if becomes is None else show_watch(becomes)
        about_columns = claims_named(name for among, name in found if among == check)
        if words != now and dataset not in about_columns:
            span = None if becomes is None else becomes.span
            yield ChangedAssertion(check, f"{dataset}.watch", words, now, span)


def _changed_bounds(old: nodes.Suite, new: nodes.Suite) -> Iterator[ChangedAssertion]:
    """The tunable constants whose bounds differ: a tuner keeps within them, and no past day depends
    on them."""
    before, after = (
        {one.name.text: one for one in suite.constants if one.bounds is not None}
        for suite in (old, new)
    )
    for name in dict.fromkeys((*after, *before)):
        was, becomes = before.get(name), after.get(name)
        if _bounds_in_words(was) != _bounds_in_words(becomes):
            words = None if was is None else show_constant(was)
            now = None if becomes is None else show_constant(becomes)
            span = None if becomes is None else becomes.span
            yield ChangedAssertion("", f"{name}.tunable", words, now, span)


def _bounds_in_words(constant: nodes.Constant | None) -> list[str]:
    return [] if constant is None else [show(bound) for bound in constant.bounds or ()]


def turned_by_setting(
    suite: nodes.Suite, days: Sequence[PastDay], setting: str, was: str, becomes: str
) -> dict[str, list[str]]:
    """The past days on which a gate ends in another way with another value of a setting.

    :param setting: `fail_on`, for the days on which it was `was`, or `on_violation`.
    """
    turned: dict[str, list[str]] = {}
    changed = days
    if setting == "fail_on":
        changed = [
            replace(day, fail_on=Severity(becomes)) if day.fail_on is Severity(was) else day
            for day in days
        ]
    outcomes = zip(days, _outcomes(suite, days), _outcomes(suite, changed), strict=True)
    for day, before, after in outcomes:
        shown = day_of_instance(day.date, day.map_index)
        if is_changed(before, after):
            turned.setdefault(f"{before.value} -> {after.value}", []).append(shown)
        elif setting == "on_violation" and before is Effect.BLOCKED:
            turned.setdefault(f"blocked ({was}) -> blocked ({becomes})", []).append(shown)
    return turned


def _outcomes(suite: nodes.Suite, days: Sequence[PastDay]) -> list[Effect]:
    """The worst effect of the known verdicts of a suite on each day."""
    side = Backtest(suite, days)
    judged = side.judge()
    rows = [side.effects(row, judged) for row in range(len(side.assertions))]
    order = [*Effect]
    return [
        max((effect for effect in of_day if effect), key=order.index, default=Effect.PASSED)
        for of_day in zip(*rows, strict=True)
    ]


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
    requests = planned.requests + planned.history
    needs_past = any(request.date not in (None, plan.date) for request in requests)
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
    sides = (_effects(side, (change.check, change.name)) for side in (old, new))
    for day, (was, why_was), (becomes, why) in zip(new.days, *sides, strict=True):
        if was is None or becomes is None:
            unknown[why or why_was] += 1
        elif is_changed(was, becomes):
            shown = day_of_instance(day.date, day.map_index)
            turned.setdefault(f"{was.value} -> {becomes.value}", []).append(shown)
    return replace(
        change,
        turned={turn: tuple(dates) for turn, dates in sorted(turned.items())},
        unknown=dict(unknown.most_common()),
        known=len(new.days) - unknown.total(),
    )


def _effects(side: Backtest, key: AssertionKey) -> Iterator[tuple[Effect | None, str]]:
    """Yields the effect of each day's verdict; None and the reason if it is unknown."""
    rows = {assertion.key: row for row, assertion in enumerate(side.assertions)}
    row = rows.get(key)
    if row is None:
        for _ in side.days:
            yield Effect.ABSENT, ""
        return
    for index, effect in enumerate(side.effects(row, side.judge())):
        reason = "" if effect else side.why_unknown(row, index) or "its values are not stored"
        yield effect, reason
