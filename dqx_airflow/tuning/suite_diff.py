"""The assertions that differ between two versions of a suite, and the past days whose verdict turns
with them: judged from stored values, nothing is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from dqx_airflow.dql import nodes
from dqx_airflow.plan.model import Plan, PlannedAssertion
from dqx_airflow.plan.resolve import QUIET, active_profiles, resolve
from dqx_airflow.results.past_days import AssertionKey, PastDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.past_judge import refs_of
from dqx_airflow.values import SourceFile, Span, Status, day_of_instance
from dqx_airflow.values.exact import exact_text

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
        if was is None or was != replace(planned, span=was.span, source_line=was.source_line):
            words = None if was is None else in_words(was)
            yield ChangedAssertion(
                planned.check, planned.name, words, in_words(planned), planned.span
            )
    for (check, name), was in before.items():
        yield ChangedAssertion(check, name, in_words(was), None)


def in_words(planned: PlannedAssertion) -> str:
    """What an assertion claims, with the values of constants: `num_rows() >= LEAST (10) (P1)`."""
    words = [planned.severity.value, *(f"tag {tag}" for tag in planned.tags)]
    words += ["experimental"] * planned.is_experimental
    if planned.multiplier != 1:
        words.append(f"times {exact_text(planned.multiplier)} by {', '.join(planned.profiles)}")
    if planned.disabled_by:
        words.append(f"disabled by {planned.disabled_by}")
    groups = f" {planned.groups.text}" if planned.groups else ""
    return f"{planned.expression} {planned.condition.text}{groups} ({', '.join(words)})"


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
    """The verdict on each day, or None and why it is unknown."""
    row = next((n for n, assertion in enumerate(side.assertions) if assertion.key == key), None)
    for index in range(len(side.days)):
        if row is None:
            yield ABSENT, ""
        elif (status := side.judge().statuses[row][index]) is not None:
            yield status.value, ""
        else:
            yield None, side.why_unknown(row, index) or "its values are not stored"
