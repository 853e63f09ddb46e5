"""Proposes another form of an assertion: within what is usual, instead of fixed limits; and all
proposals of a tuner for a suite.

What is usual on a day follows from the days before it, so that every day of the past is a test of
the form, and nothing is fitted to labels. They decide whether it is proposed: the labels of
an assertion, and of other metrics of its dataset on the same day, which share the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.dql.constants import fold, settle
from dqx_airflow.dql.printer import show, show_selector, show_text
from dqx_airflow.dql.walk import parts_of
from dqx_airflow.errors import RequestError, SourceError
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.calls import CHANGES, HOLIDAYS, USUAL, USUAL_LIMITS, WINDOWS
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning import tuner
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.costs import KnownTruth, label_of
from dqx_airflow.tuning.proposals import Proposal, ProposedForm
from dqx_airflow.tuning.protection import judge_change
from dqx_airflow.tuning.suite_file import SuiteText, assertion_of, claim_text
from dqx_airflow.tuning.tuner import AGENT, KnownPast, Rules, Tuned, change_of, is_weekly, passing
from dqx_airflow.values import Status
from dqx_airflow.values.exact import NUMBERS

FEWEST_DAYS = 28
"""The minimum number of days on which it is known what is usual."""

_DAYS_WITHOUT_LABELS = 84
"""The same where the suite has too few labels: fine days need none."""

_DAYS_OF_LEARNING = 91
"""Three months: before that, no end of a month is usual. Where there are enough later days, they
alone decide."""

_MOST_ALARMS = 0.08
"""The share of days on which a form may alarm more often, if it misses no more: with tighter limits
it finds issues that no one could label, since nothing alarmed."""
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
    def fields(self) -> dict[str, int]:
        return {"false_alarms": self.false, "missed": self.missed, "unlabelled": self.unlabelled}


def tuned_forms(
    past: KnownPast,
    rules: Rules,
    text: SuiteText,
    gate: str | None = None,
    holidays: str | None = None,
) -> dict[int, Tuned]:
    """The assertions that should follow what is usual, by their row.

    :param holidays: the country whose public holidays they know.
    """
    labels = sum(label is not None for row in past.backtest.labels for label in row)
    fewest = FEWEST_DAYS if labels >= rules.fewest_labels else _DAYS_WITHOUT_LABELS
    if len({*past.backtest.dates}) < fewest:
        return {}  # before any form is tried, which costs the most
    forms = {
        row: form
        for row, assertion in enumerate(past.backtest.assertions)
        if not assertion.is_required and assertion.tunables
        for form in _forms(past.backtest.suite, assertion.check, assertion.name, text, holidays)
    }
    tried = ((row, _tuned(past, row, form, text, fewest, gate)) for row, form in forms.items())
    return {row: tuned for row, tuned in tried if tuned is not None}


def _tuned(
    past: KnownPast,
    row: int,
    form: ProposedForm,
    source: SuiteText,
    fewest_days: int,
    gate: str | None,
) -> Tuned | None:
    backtest = past.backtest
    assertion = backtest.assertions[row]
    about = (assertion.name, "another form")
    known = past.shared(row)
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
    first = backtest.dates[0]
    late = [day for day in days if (backtest.dates[day] - first).days >= _DAYS_OF_LEARNING]
    if backtest.count_dates(days) < fewest_days:
        return None
    days = late if backtest.count_dates(late) >= FEWEST_DAYS else days
    before, now = (_Alarms.of(statuses, known, days) for statuses in (was, becomes))
    allowed = before.false + before.unlabelled + _MOST_ALARMS * len(days)
    if now.missed > before.missed or now.false + now.unlabelled > allowed:
        return None
    if judge_change(backtest.suite, after, AGENT, form=form).refusals:
        return None
    labels = sum(truth is not None and truth.is_label for truth in known)
    passes = passing(past, row, days, tried)
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
        "passes": passes,
        "changes": [
            {
                **change_of(past, row, day, (was[day], becomes[day]), days),
                "label": label_of(known[day]),
            }
            for day in days
            if was[day] is not becomes[day]
        ],
    }
    reason = (
        f"'{assertion.name}' follows what is usual; on {evidence['days']} days, each evaluated "
        f"from those before it: false alarms {before.false} -> {now.false}, missed issues "
        f"{before.missed} -> {now.missed}, alarms without a label {before.unlabelled} -> "
        f"{now.unlabelled} ({labels} labels, with the labels of its dataset); {passes}"
    )
    name = backtest.suite.name.value
    proposal = Proposal(name, AGENT, reason=reason, gate=gate, evidence=evidence, form=form)
    return Tuned(about, proposal, reason, labels)


# The form


def _forms(
    suite: nodes.Suite, check: str, name: str, text: SuiteText, holidays: str | None
) -> Iterator[ProposedForm]:
    """The claim that follows what is usual; none for claims of another kind."""
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
    calendar = f', {HOLIDAYS} "{holidays}"' if holidays else ""
    arguments = f"({show(measured)}{calendar})"
    lowest, highest = USUAL_LIMITS
    if not isinstance(condition, nodes.Comparison) or is_change:
        claim = f"within {USUAL}{arguments}"
    elif condition.op[0] == ">":
        claim = f">= {lowest}{arguments}"
    else:
        claim = f"<= {highest}{arguments}"
    yield ProposedForm(
        check,
        name,
        claim_text(text.text, node),
        f"{show(measured)} {claim}",
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
