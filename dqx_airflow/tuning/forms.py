"""Proposes another form of an assertion, with the evidence: a limit relative to what is usual.

A fixed limit has to let the lowest weekday of the slowest month pass. A multiple of what is usual,
on the same weekday or over the last weeks, can be tight on every day. What is usual is a median of
earlier days, so that one incident does not move it. A form is learned on earlier days and tested on
later ones, against the best fixed limits on the same days.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import mean, median, stdev
from typing import Any

from dqx_airflow.dql import nodes
from dqx_airflow.dql.printer import show
from dqx_airflow.dql.walk import fold, parts_of, settle
from dqx_airflow.errors import RequestError, SourceError
from dqx_airflow.metrics.builtin import METRICS
from dqx_airflow.metrics.derived import CHANGES, USUAL, WINDOWS
from dqx_airflow.tuning.calendars import is_weekly
from dqx_airflow.tuning.costs import Counts, Fold, Trial, counts, folds_of, wins
from dqx_airflow.tuning.proposals import Proposal, ProposedForm
from dqx_airflow.tuning.protection import judge_change
from dqx_airflow.tuning.search import Search, groups_of
from dqx_airflow.tuning.suite_file import SuiteText, assertion_of, claim_text
from dqx_airflow.tuning.tuner import (
    AGENT,
    KnownPast,
    Rules,
    Tuned,
    change_of,
    curve_of,
    evidence_of,
    held_out_days,
    no_win,
    reason_of,
    thin_evidence,
)
from dqx_airflow.values import Status
from dqx_airflow.values.exact import NUMBERS

FEWEST_DAYS = 28
"""The minimum number of days with a known usual value, before any held-out days."""

FEWEST_FOLDS = 2

_WINDOWS = ("n 4, step 7", "n 28")
_SHARPER = 0.8
"""The maximum ratio of distances between limit and values for a form to count as better at equal
cost."""
_DECIDED = (Status.PASSED, Status.FAILED)
_LOWER, _UPPER, _APART = (0.5, (0.05, 0.99)), (2.0, (1.01, 10.0)), (0.5, (0.02, 2.0))
"""A tunable to start with: its value, and its bounds. For the lowest share of what is usual, the
largest multiple, and the largest distance."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A form, and the past judged by it. `reference` is what is usual, in DQL."""

    form: ProposedForm
    reference: str
    past: KnownPast


@dataclass(frozen=True, slots=True)
class _Tried:
    """A form with its best values. `candidate` is None for the current form with other values.
    `fit` is the cost of labels on all days with them, `nearness` the median distance of the limit
    from the compared value on fine days, `false_alarm` the cost of one."""

    candidate: _Candidate | None
    search: Search
    days: tuple[int, ...]
    trials: tuple[Trial, ...]
    values: tuple[float, ...]
    fit: float
    nearness: float
    false_alarm: float

    @property
    def after(self) -> Counts:
        return sum((trial.after for trial in self.trials), Counts())

    def is_cheaper(self, other: _Tried) -> bool:
        """True if its folds cost less: by more than their noise, and by at least one false alarm,
        which unlabelled failures do not reach."""
        pairs = zip(self.trials, other.trials, strict=True)
        saved = [theirs.after.cost - own.after.cost for own, theirs in pairs]
        noise = stdev(saved) / math.sqrt(len(saved))
        return mean(saved) > noise and sum(saved) >= self.false_alarm


def tuned_forms(
    past: KnownPast,
    rules: Rules,
    text: SuiteText,
    profiles: Mapping[int, str],
    gate: str | None = None,
) -> dict[int, Tuned]:
    """The assertions for which another form is proposed, by their row.

    :param profiles: the proposed ones, by the row of the assertion that they scale: another form
        has to be better than fixed limits with the profile.
    """
    rows = range(len(past.backtest.assertions))
    tried = ((row, _tuned(past, row, rules, text, profiles.get(row), gate)) for row in rows)
    return {row: tuned for row, tuned in tried if tuned is not None and tuned.proposal is not None}


def _tuned(
    past: KnownPast, row: int, rules: Rules, text: SuiteText, profile: str | None, gate: str | None
) -> Tuned | None:
    assertion = past.backtest.assertions[row]
    if assertion.is_required or not assertion.tunables:
        return None
    about = (assertion.name, "another form")
    candidates = list(_candidates(past, row, text))
    if not candidates:
        return None
    current = past.alone(row)
    days = _known_in_all([current, *(candidate.past for candidate in candidates)])
    labelled = current.labelled([0], days)
    count_dates = current.backtest.count_dates
    if count_dates(days) < FEWEST_DAYS:
        return None
    name_of_days = "days with enough history to know the usual value"
    thin = thin_evidence(about, current, [0], days, rules, name_of_days)
    if thin is not None:
        return thin
    folds = [fold for fold in folds_of(days, labelled) if count_dates(fold.learned) >= FEWEST_DAYS]
    if len(folds) < FEWEST_FOLDS:
        reason = "too little history before the labelled days to learn the usual value"
        return Tuned(about, None, reason, len(labelled))
    best = _best(
        [_try(current, days, folds, candidate.past, candidate) for candidate in candidates]
    )
    if not wins(best.trials):
        return Tuned(about, None, no_win(best.trials), len(labelled))
    rival = current if profile is None else past.alone(row, text.changed(profile))
    fixed = _try(current, days, folds, rival)
    if fixed.is_cheaper(best) or best.fit > fixed.fit:
        return Tuned(about, None, "fixed limits cost less on held-out days", len(labelled))
    is_better = best.is_cheaper(fixed) or best.fit < fixed.fit
    if not is_better and best.nearness > _SHARPER * fixed.nearness:
        return Tuned(about, None, "fixed limits are just as good on held-out days", len(labelled))
    return _proposed(past, row, best, fixed, text, gate, len(labelled))


def _best(tried: Sequence[_Tried]) -> _Tried:
    """The form with the lowest cost on held-out days; at about equal cost, the one whose limit fits
    the labels best, and is nearest to the values."""
    cheapest = min(tried, key=lambda form: form.after.cost)
    as_good = [form for form in tried if not cheapest.is_cheaper(form)]
    return min(as_good, key=lambda form: (form.fit, form.nearness))


def _known_in_all(pasts: Sequence[KnownPast]) -> tuple[int, ...]:
    """The days on which all forms of an assertion are judged."""
    lines = zip(*(past.backtest.judge().statuses[0] for past in pasts), strict=True)
    return tuple(
        index
        for index, statuses in enumerate(lines)
        if all(status in _DECIDED for status in statuses)
    )


def _try(
    past: KnownPast,
    days: tuple[int, ...],
    folds: Sequence[Fold],
    tried: KnownPast,
    candidate: _Candidate | None = None,
) -> _Tried:
    """The result of a form on held-out days, and its values.

    :param past: the assertion in its current form, alone, as in `tried`.
    """
    backtest, known, cost = tried.backtest, tried.known[0], past.backtest.assertions[0].cost
    (tunables,) = (
        group
        for group in groups_of(backtest)
        if backtest.assertions[0].tunables & {tunable.name for tunable in group}
    )
    search = Search(backtest, tried.known, tunables, max_move=1.0, is_allowed=lambda _: True)
    before = past.backtest.judge().statuses[0]

    def counted(values: tuple[float, ...], on: Sequence[int]) -> Counts:
        return counts(search.statuses(values)[0], known, cost, on)

    trials = tuple(
        Trial(
            fold,
            counts(before, known, cost, fold.held_out),
            counted(search.best(fold.learned), fold.held_out),
        )
        for fold in folds
    )
    values = search.best(days)
    total = counted(values, days)
    fit = total.false_alarms * cost.false_positive + total.missed * cost.false_negative
    nearness = _nearness(tried, search.named(values), days)
    return _Tried(candidate, search, days, trials, values, fit, nearness, cost.false_positive)


def _nearness(past: KnownPast, values: dict[str, float], days: Sequence[int]) -> float:
    fine = [n for n in days if (truth := past.known[0][n]) and not truth.is_issue]
    distances = past.backtest.distances(0, values)
    known_distances = [distance for n in fine if (distance := distances[n]) is not None]
    return median(known_distances) if known_distances else float("inf")


def _proposed(
    past: KnownPast,
    row: int,
    best: _Tried,
    fixed: _Tried,
    text: SuiteText,
    gate: str | None,
    labels: int,
) -> Tuned:
    backtest, assertion = past.backtest, past.backtest.assertions[row]
    about = (assertion.name, "another form")
    tunables, candidate = best.search.tunables, best.candidate
    assert candidate is not None
    form = replace(
        candidate.form,
        constants=tuple(
            _constant(tunable.name, value, tunable.bounds)
            for tunable, value in zip(tunables, best.values, strict=True)
        ),
    )
    try:
        after = text.changed(form=form)
    except (SourceError, RequestError) as error:
        return Tuned(about, None, f"no other form can be written: {error}", labels)
    refusals = judge_change(backtest.suite, after, AGENT, form=form).refusals
    if refusals:
        return Tuned(about, None, refusals[0].message, labels)
    was, (becomes,) = backtest.judge().statuses[row], best.search.statuses(best.values)
    held_out = held_out_days(best.trials)
    evidence: dict[str, Any] = {
        **evidence_of(backtest, best.trials, labels, best.days),
        "form": {
            "reference": candidate.reference,
            "unknown_days": backtest.count_dates({*range(len(backtest.days))} - {*best.days}),
            "fixed_limits": {
                "false_alarms": fixed.after.false_alarms,
                "missed": fixed.after.missed,
                "cost": round(fixed.after.cost, 6),
            },
            "nearness": {
                "fixed": float(f"{fixed.nearness:.3g}"),
                "proposed": float(f"{best.nearness:.3g}"),
            },
        },
        "changes": [
            change_of(past, row, n, (was[n], becomes[n]), held_out)
            for n in best.days
            if was[n] is not becomes[n]
        ],
        "curves": [
            curve_of(best.search, best.values, position, best.days)
            for position in range(len(tunables))
        ],
    }
    reason = f"'{assertion.name}' follows {candidate.reference}; {reason_of(evidence)}"
    proposal = Proposal(
        backtest.suite.name.value, AGENT, reason=reason, gate=gate, evidence=evidence, form=form
    )
    return Tuned(about, proposal, reason, labels)


# Forms


def _candidates(past: KnownPast, row: int, text: SuiteText) -> Iterator[_Candidate]:
    """The possible forms of an assertion, each with the past judged by it."""
    assertion, suite = past.backtest.assertions[row], past.backtest.suite
    node = assertion_of(suite, assertion.check, assertion.name)
    if node is None or node.tolerance is not None:
        return
    for form, reference in _forms(suite, assertion.check, node, text.text):
        try:
            after = text.changed(form=form)
        except (SourceError, RequestError):
            continue
        yield _Candidate(form, reference, past.alone(row, after))


def _forms(
    suite: nodes.Suite, check: str, node: nodes.Assertion, text: str
) -> Iterator[tuple[ProposedForm, str]]:
    claim, constants = node.claim, settle(suite.constants)
    if not isinstance(claim, nodes.Measure) or not isinstance(
        claim.condition, nodes.Comparison | nodes.Between
    ):
        return
    limits = _limits(claim.condition)
    if any(not isinstance(fold(limit, constants), NUMBERS) for _, limit in limits):
        return
    measured, is_change = claim.expression, False
    match measured:
        case nodes.Call(name=name, arguments=(inner,), parameters=()) if name.text in CHANGES:
            measured, is_change = inner, True
    if not _may_follow(measured) or (is_change and [op[0] for op, _ in limits] != ["<"]):
        return
    assertion = node.name.value if node.name else ""
    before = claim_text(text, node)
    replaced = _needed_here_alone(suite, node, limits)
    for window in _WINDOWS:
        reference = f"{USUAL}({show(measured)}, {window})"
        names = _names(suite, limits)
        if is_change:
            op = limits[0][0]
            added: tuple[str, ...] = (_constant(names[0], *_APART),)
            new_claim = f"abs({_factor(measured)} / {reference} - 1) {op} {names[0]}"
        else:
            starts = [_LOWER if op[0] == ">" else _UPPER for op, _ in limits]
            added = tuple(
                _constant(name, *start) for name, start in zip(names, starts, strict=True)
            )
            bounds = [f"{name} * {reference}" for name in names]
            condition = (
                f"between {bounds[0]} and {bounds[1]}"
                if isinstance(claim.condition, nodes.Between)
                else f"{limits[0][0]} {bounds[0]}"
            )
            new_claim = f"{show(measured)} {condition}"
        drops = _weekly_profiles(suite, check, assertion) if "step 7" in window else ()
        yield ProposedForm(check, assertion, before, new_claim, added, replaced, drops), reference


def _limits(condition: nodes.Comparison | nodes.Between) -> list[tuple[str, nodes.Expression]]:
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


def _factor(measured: nodes.Expression) -> str:
    shown = show(measured)
    return shown if isinstance(measured, nodes.Call) else f"({shown})"


def _needed_here_alone(
    suite: nodes.Suite, node: nodes.Assertion, limits: Sequence[tuple[str, nodes.Expression]]
) -> tuple[str, ...]:
    """The names of constants that only the limits of an assertion need."""
    limit_names = {limit.text for _, limit in limits if isinstance(limit, nodes.Name)}
    other_parts = [
        part
        for check in suite.checks
        for assertion in check.assertions
        if assertion is not node
        for part in parts_of(assertion)
    ]
    other_parts += [part for constant in suite.constants for part in parts_of(constant.value)]
    needed = {part.text for part in other_parts if isinstance(part, nodes.Name)}
    return tuple(
        constant.name.text
        for constant in suite.constants
        if constant.name.text in limit_names - needed and not constant.is_exported
    )


def _names(suite: nodes.Suite, limits: Sequence[tuple[str, nodes.Expression]]) -> list[str]:
    """Names for new constants, derived from those of the limits."""
    used_names = {constant.name.text for constant in suite.constants}
    names: list[str] = []
    for op, limit in limits:
        stem = limit.text if isinstance(limit, nodes.Name) else "LEAST" if op[0] == ">" else "MOST"
        numbered = (f"{stem}_OF_USUAL{n if n > 1 else ''}" for n in count(1))
        names.append(
            next(name for name in numbered if name not in used_names and name not in names)
        )
    return names


def _constant(name: str, value: float, bounds: tuple[float, float]) -> str:
    low, high = bounds
    return f"const {name} = {value:g} tunable [{low:g}, {high:g}]"


def _weekly_profiles(suite: nodes.Suite, check: str, name: str) -> tuple[str, ...]:
    """The names of profiles that only scale an assertion on weekdays: what is usual on a weekday
    needs none."""
    return tuple(
        profile.name.value
        for profile in suite.profiles
        if profile.rules
        and all(
            isinstance(rule, nodes.Scale)
            and rule.selector.kind == "assertion"
            and rule.selector.name.value == name
            and rule.selector.check is not None
            and rule.selector.check.value == check
            for rule in profile.rules
        )
        and is_weekly(profile)
    )
