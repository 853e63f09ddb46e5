"""Proposes another form of an assertion: within what is usual, or within three standard deviations,
instead of fixed limits; and all proposals of a tuner for a suite.

Both follow from the days before a day, so that every day of the past is a test of a form, and
nothing is fitted to labels. They decide whether it is proposed: the labels of an assertion, and of
other metrics of its dataset on the same day, which share the cause. Of several forms, and today's,
the one is chosen that costs the least: by its alarms and known misses, and by the changes of the
days' own values that it would not find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.printer import show, show_selector, show_text
from dqx_airflow.dql.walk import parts_of
from dqx_airflow.errors import RequestError, SourceError
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import CHANGES, HOLIDAYS, USUAL, USUAL_LIMITS, WINDOWS
from dqx_airflow.plan.model import Cost
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning import tuner
from dqx_airflow.tuning.alarm_holidays import AlarmHolidays, alarm_holidays
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.costs import KnownTruth, label_of
from dqx_airflow.tuning.found_changes import FACTORS, FoundChanges, found_changes
from dqx_airflow.tuning.proposals import Proposal, ProposedForm
from dqx_airflow.tuning.protection import judge_change
from dqx_airflow.tuning.suite_file import SuiteText, assertion_of, claim_text
from dqx_airflow.tuning.tuner import (
    AGENT,
    KnownPast,
    Rules,
    Tuned,
    change_of,
    is_weekly,
    passing_then_and_now,
)
from dqx_airflow.values import Status
from dqx_airflow.values.exact import NUMBERS

FEWEST_DAYS = 28
"""The minimum number of days on which it is known what is usual."""

_DAYS_WITHOUT_LABELS = 84
"""The same where the suite has too few labels: fine days need none."""

_DAYS_OF_LEARNING = 91
"""Three months: before that, no end of a month is usual. Where there are enough later days, they
alone decide."""

_ISSUES = 0.01
"""The assumed share of days with an issue of an assertion, of which a form misses the share of
changes that it does not find."""

_SIGMAS, _SIGMA_DAYS = 3, 28
"""The other form: the number of standard deviations from the mean, and of days of the mean."""

_LEAST_SAVED = 0.1
"""The least share of days on which standard deviations save an alarm: they forget an incident that
stays, so that they are for limits alone that alarm all the time."""

_DECIDED = (Status.PASSED, Status.FAILED)


@dataclass(frozen=True, slots=True)
class _Alarms:
    """How often an assertion fails on some days, by their labels."""

    false: int
    missed: int
    unlabelled: int

    @classmethod
    def of(
        cls,
        statuses: Sequence[Status | None],
        known: Sequence[KnownTruth | None],
        days: Sequence[int],
    ) -> _Alarms:
        counted = Counter((label_of(known[day]), statuses[day] is Status.FAILED) for day in days)
        return cls(counted[False, True], counted[True, False], counted[None, True])

    @property
    def all(self) -> int:
        """The alarms that were not issues, as far as anyone knows."""
        return self.false + self.unlabelled

    def is_better_than(self, other: _Alarms) -> bool:
        """Whether fewer days alarm or are missed, and no more of either."""
        adds = self.missed > other.missed or self.false > other.false or self.all > other.all
        return not adds and (self.missed < other.missed or self.all < other.all)

    @property
    def fields(self) -> dict[str, int]:
        return {"false_alarms": self.false, "missed": self.missed, "unlabelled": self.unlabelled}


@dataclass(frozen=True, slots=True)
class _Trial:
    """Another form of an assertion, judged on the past: the verdicts on all days, today's and its
    own, and the days that decide."""

    row: int
    form: ProposedForm
    after: nodes.Suite
    tried: Backtest
    was: Sequence[Status | None]
    becomes: Sequence[Status | None]
    days: Sequence[int]
    known: Sequence[KnownTruth | None]

    @property
    def form_in_words(self) -> str:
        if self.is_usual:
            return "follows what is usual"
        return f"is within {_SIGMAS} standard deviations"

    @property
    def is_usual(self) -> bool:
        return USUAL in self.form.claim

    @property
    def before(self) -> _Alarms:
        return _Alarms.of(self.was, self.known, self.days)

    @property
    def now(self) -> _Alarms:
        return _Alarms.of(self.becomes, self.known, self.days)

    def gain(self, today: Backtest, cost: Cost, found: tuple[FoundChanges, FoundChanges]) -> float:
        """The cost that the form saves: of alarms, known misses, and changes that are not found.

        :param found: the changes that today's limits and its own find.
        """

        def cost_of(alarms: _Alarms, changes: FoundChanges) -> float:
            unseen = _ISSUES * today.count_dates(self.days) * (1 - changes.share)
            return cost.false_positive * alarms.all + cost.false_negative * (alarms.missed + unseen)

        before, now = found
        return cost_of(self.before, before) - cost_of(self.now, now)

    @property
    def alarm_days(self) -> set[int]:
        """The days on which the form alarms without a known issue."""
        return {
            day
            for day in self.days
            if self.becomes[day] is Status.FAILED and label_of(self.known[day]) is not True
        }


def tuned_forms(
    past: KnownPast,
    rules: Rules,
    text: SuiteText,
    gate: str | None = None,
    holidays: str | None = None,
) -> dict[int, Tuned]:
    """The assertions that should follow what is usual, by their row: those that then have fewer
    alarms or misses, and no more of either.

    :param holidays: the country whose public holidays they know; without it, the country on whose
        holidays alarms fall is tried.
    """
    labels = sum(label is not None for row in past.backtest.labels for label in row)
    fewest = FEWEST_DAYS if labels >= rules.fewest_labels else _DAYS_WITHOUT_LABELS
    if len({*past.backtest.dates}) < fewest:
        return {}  # before any form is tried, which costs the most
    trials = _trials(past, text, fewest, holidays)
    on_holidays = None
    if holidays is None:
        dates = past.backtest.dates
        usual = [trial for trials_of_row in trials.values() for trial in trials_of_row[:1]]
        alarms = {dates[day] for trial in usual for day in trial.alarm_days}
        on_holidays = alarm_holidays(alarms, dates[0], dates[-1])
    if on_holidays is not None:
        knowing = _trials(past, text, fewest, on_holidays.country, rows=[*trials])
        for row, of_row in knowing.items():
            trials[row] += of_row[:1]
    tuned = ((row, _best(past, of_row, gate, on_holidays)) for row, of_row in trials.items())
    return {row: found for row, found in tuned if found is not None}


def _trials(
    past: KnownPast,
    text: SuiteText,
    fewest_days: int,
    holidays: str | None,
    rows: Collection[int] | None = None,
) -> dict[int, list[_Trial]]:
    """The forms that can be tried, by the row of their assertion, first what is usual.

    :param rows: the rows to try what is usual for; None for all forms of all rows.
    """
    found: dict[int, list[_Trial]] = {}
    for row, assertion in enumerate(past.backtest.assertions):
        if assertion.is_required or not assertion.tunables or row not in (rows or [row]):
            continue
        forms = _forms(past.backtest.suite, assertion.check, assertion.name, text, holidays)
        for form in forms if rows is None else islice(forms, 1):
            trial = _trial(past, row, form, text, fewest_days)
            if trial is not None:
                found.setdefault(row, []).append(trial)
    return found


def _best(
    past: KnownPast, trials: Sequence[_Trial], gate: str | None, on_holidays: AlarmHolidays | None
) -> Tuned | None:
    """The proposal of the form of an assertion that saves the most; None if none helps, or is
    allowed."""
    best: tuple[float, _Trial, tuple[FoundChanges, FoundChanges]] | None = None
    for trial in trials:
        if not trial.now.is_better_than(trial.before):
            continue
        fine = [day for day in trial.days if label_of(trial.known[day]) is not True]
        quiet = [
            day
            for day in fine
            if trial.was[day] is Status.PASSED and trial.becomes[day] is Status.PASSED
        ]
        found = (
            found_changes(past.backtest, trial.row, quiet),
            found_changes(trial.tried, 0, quiet),
        )
        if not trial.is_usual:
            saved = trial.before.all - trial.now.all
            if found[1].share < found[0].share or saved < _LEAST_SAVED * len(trial.days):
                continue
        gain = trial.gain(past.backtest, past.backtest.assertions[trial.row].cost, found)
        if gain > 0 and (best is None or gain > best[0]):
            best = gain, trial, found
    if best is None:
        return None
    _, trial, found = best
    return _tuned(past, trial, found, gate, on_holidays)


def _trial(
    past: KnownPast, row: int, form: ProposedForm, source: SuiteText, fewest_days: int
) -> _Trial | None:
    """None if the form cannot be written, or too few days are known."""
    backtest = past.backtest
    try:
        after = source.changed(form=form)
    except (SourceError, RequestError):
        return None
    tried = past.alone(row, after).backtest
    was, becomes = backtest.judge().statuses[row], tried.judge().statuses[0]
    days = [
        day
        for day, pair in enumerate(zip(was, becomes, strict=True))
        if all(status in _DECIDED for status in pair)
    ]
    if backtest.count_dates(days) < fewest_days:
        return None
    first = backtest.dates[0]
    late = [day for day in days if (backtest.dates[day] - first).days >= _DAYS_OF_LEARNING]
    days = late if backtest.count_dates(late) >= FEWEST_DAYS else days
    return _Trial(row, form, after, tried, was, becomes, days, past.shared(row))


def _tuned(
    past: KnownPast,
    trial: _Trial,
    found: tuple[FoundChanges, FoundChanges],
    gate: str | None,
    on_holidays: AlarmHolidays | None,
) -> Tuned | None:
    """The proposal of a form; None if it is not allowed.

    :param found: the changes that today's limits and the form find.
    """
    backtest = past.backtest
    row, days, known = trial.row, trial.days, trial.known
    before, now = trial.before, trial.now
    if judge_change(backtest.suite, trial.after, AGENT, form=trial.form).refusals:
        return None
    assertion = backtest.assertions[row]
    labels = sum(truth is not None and truth.is_label for truth in known)
    passes = passing_then_and_now(past, row, days, trial.tried)
    dates = backtest.dates
    evidence: dict[str, Any] = {
        "from": dates[0].isoformat(),
        "to": dates[-1].isoformat(),
        "days": backtest.count_dates(days),
        "labels": labels,
        "held_out": {
            "days": backtest.count_dates(days),
            "before": before.fields,
            "after": now.fields,
        },
        "found_changes": {
            "factors": list(FACTORS),
            "before": round(found[0].share, 3),
            "after": round(found[1].share, 3),
        },
        "passes": passes,
        "changes": [
            {
                **change_of(past, row, day, (trial.was[day], trial.becomes[day]), days),
                "label": label_of(known[day]),
            }
            for day in days
            if trial.was[day] is not trial.becomes[day]
        ],
    }
    reason = (
        f"'{assertion.name}' {trial.form_in_words}; on {evidence['days']} days, each evaluated "
        f"from those before it: false alarms {before.false} -> {now.false}, missed issues "
        f"{before.missed} -> {now.missed}, alarms without a label {before.unlabelled} -> "
        f"{now.unlabelled} ({labels} labels, with the labels of its dataset); of changes to "
        f"{FACTORS[0]:g} to {FACTORS[-1]:g} times a day's value, it finds {found[0]} -> "
        f"{found[1]}; {passes}"
    )
    if on_holidays is not None and HOLIDAYS in trial.form.claim:
        evidence["holidays"] = on_holidays.country
        reason += f"; {on_holidays}"
    name = backtest.suite.name.value
    proposal = Proposal(name, AGENT, reason=reason, gate=gate, evidence=evidence, form=trial.form)
    return Tuned((assertion.name, "another form"), proposal, reason, labels)


# The form


def _forms(
    suite: nodes.Suite, check: str, name: str, text: SuiteText, holidays: str | None
) -> Iterator[ProposedForm]:
    """The claim that follows what is usual, and the claim of standard deviations; none for claims
    of another kind."""
    node = assertion_of(suite, check, name)
    if node is None or node.tolerance is not None or not isinstance(node.claim, nodes.Measure):
        return
    condition, constants = node.claim.condition, settle(suite.constants)
    limits = _limits(condition)
    if not limits or any(not isinstance(fold(limit, constants), NUMBERS) for _, limit in limits):
        return
    measured = node.claim.expression
    is_change = False
    match measured:
        case nodes.Call(name=called, arguments=(inner,), parameters=()) if called.text in CHANGES:
            measured = inner
            is_change = True
    if not _may_follow(measured) or (is_change and [op[0] for op, _ in limits] != ["<"]):
        return
    shown = show(measured)
    calendar = f', {HOLIDAYS} "{holidays}"' if holidays else ""
    arguments = f"({shown}{calendar})"
    lowest, highest = USUAL_LIMITS
    days = f"({shown}, n {_SIGMA_DAYS}, lag 1)"
    if not isinstance(condition, nodes.Comparison) or is_change:
        claims = [f"within {USUAL}{arguments}", f"within {_SIGMAS} stddev of {_SIGMA_DAYS} days"]
    elif condition.op[0] == ">":
        sigmas = f">= mean{days} - {_SIGMAS} * stddev{days}"
        claims = [f">= {lowest}{arguments}", sigmas]
    else:
        sigmas = f"<= mean{days} + {_SIGMAS} * stddev{days}"
        claims = [f"<= {highest}{arguments}", sigmas]
    for claim in claims:
        yield ProposedForm(
            check,
            name,
            claim_text(text.text, node),
            f"{shown} {claim}",
            replaces=_needed_here_alone(suite, node, limits),
            drops=_weekly_profiles(suite, check, name),
        )


def _limits(condition: nodes.Condition | None) -> list[tuple[str, nodes.Expression]]:
    match condition:
        case nodes.Between(low=low, high=high):
            return [(">=", low), ("<=", high)]
        case nodes.Comparison(op=op, bound=bound) if op[0] in "<>":
            return [(op, bound)]
        case _:
            return []


def _may_follow(measured: nodes.Expression) -> bool:
    """True if an expression measures the day itself, by metrics that other days have as well."""
    calls = [part for part in parts_of(measured) if isinstance(part, nodes.Call)]
    return (
        bool(calls)
        and all(
            call.name.text not in (*CHANGES, *WINDOWS)
            and not any(parameter.name.text == "lag" for parameter in call.parameters)
            and (call.name.text not in METRICS or METRICS[call.name.text].scan.has_dates)
            for call in calls
        )
        and any(call.name.text in METRICS for call in calls)
    )


def _needed_here_alone(
    suite: nodes.Suite, node: nodes.Assertion, limits: Sequence[tuple[str, nodes.Expression]]
) -> tuple[str, ...]:
    """The names of constants that only the limits of an assertion need."""
    limit_names = {limit.text for _, limit in limits if isinstance(limit, nodes.Name)}
    others = [one for check in suite.checks for one in check.assertions if one is not node]
    values = [constant.value for constant in suite.constants]
    needed = {
        part.text
        for part in chain.from_iterable(map(parts_of, [*others, *values]))
        if isinstance(part, nodes.Name)
    }
    return tuple(
        constant.name.text
        for constant in suite.constants
        if constant.name.text in limit_names - needed and not constant.is_exported
    )


def _weekly_profiles(suite: nodes.Suite, check: str, name: str) -> tuple[str, ...]:
    """The names of profiles that only scale an assertion on weekdays: what is usual on a weekday
    needs none."""
    its = f"assertion {show_text(name)} in {show_text(check)}"
    return tuple(
        profile.name.value
        for profile in suite.profiles
        if profile.rules and is_weekly(profile)
        if all(isinstance(rule, nodes.Scale) for rule in profile.rules)
        if {show_selector(rule.selector) for rule in profile.rules} == {its}
    )


def tune(
    text: SuiteText,
    days: Sequence[PastDay],
    rules: tuner.Rules | None = None,
    *,
    holidays: str | None = None,
    gate: str | None = None,
) -> tuple[tuner.Tuned, ...]:
    """The proposals first, then the tunables without one, those with the most unlabelled alarms
    first.

    An assertion that should follow what is usual gets no other proposal.

    :param holidays: the country whose public holidays count.
    """
    rules = rules or tuner.Rules()
    past = tuner.KnownPast.of(Backtest(text.suite, days))
    forms = tuned_forms(past, rules, text, gate, holidays)
    values = tuner.tuned_values(
        past,
        rules,
        gate,
        without={name for row in forms for name in past.backtest.assertions[row].tunables},
    )
    found = (*forms.values(), *values)
    return tuple(sorted(found, key=lambda one: (one.proposal is None, -one.alarms, -one.labels)))
