"""Proposes values of tunables that would have cost less on past days, with the evidence.

Values are searched on earlier days and tested on later ones. A proposal is made if it wins on these
by more than their noise, and if the protection of the suite lets an algorithm make it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from statistics import median
from typing import Any

from dqx_airflow.diagnostics.verdicts import format_value
from dqx_airflow.dql import nodes
from dqx_airflow.plan.selection import left_of
from dqx_airflow.tuning import costs
from dqx_airflow.tuning.backtest import Backtest, bits_of
from dqx_airflow.tuning.proposals import Proposal, ProposedValue
from dqx_airflow.tuning.protection import judge_values
from dqx_airflow.tuning.search import Search, allowed_range, groups_of, with_value
from dqx_airflow.tuning.tunables import TunableNumber, units_of, with_values
from dqx_airflow.values import Status
from dqx_airflow.values.exact import NUMBERS, nearest_float

AGENT = "autotuner"
FEWEST_LABELS = 4
MAX_MOVE = 0.25


class ProfileDays(str, Enum):
    """The treatment of days on which a profile has a rule for an assertion.

    `EXCLUDE` learns from the other days only, so that thresholds are for normal periods; `INCLUDE`
    learns from all days, with values as the profiles scale them, and searches profiles by which the
    existing ones should be scaled.
    """

    EXCLUDE = "exclude"
    INCLUDE = "include"


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of a proposal.

    :param max_move: how far a value may move, as a share of the range between its bounds.
    :param fewest_labels: with fewer labels on the days that count, nothing is proposed.
    """

    max_move: float = MAX_MOVE
    fewest_labels: int = FEWEST_LABELS
    profile_days: ProfileDays = ProfileDays.EXCLUDE


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result for some tunables, or for an assertion: a proposal, or why there is none.

    `lacking` is the number of missing labels, if that is the reason, and `alarms` the number of
    failures without a label.
    """

    about: tuple[str, ...]
    proposal: Proposal | None
    reason: str
    labels: int = 0
    lacking: int = 0
    alarms: int = 0


@dataclass(frozen=True, slots=True)
class KnownPast:
    """The input of tuners: the days, and the truth about them."""

    backtest: Backtest
    known: tuple[tuple[costs.KnownTruth | None, ...], ...]

    @classmethod
    def of(cls, backtest: Backtest) -> KnownPast:
        return cls(backtest, costs.truths(backtest))

    def alone(self, row: int, suite: nodes.Suite | None = None) -> KnownPast:
        """The past of a single assertion, optionally as in another version of the suite."""
        only = left_of(suite or self.backtest.suite, (other == row for other in count()))
        return KnownPast(Backtest(only, self.backtest.days), (self.known[row],))

    def shared(self, row: int) -> tuple[costs.KnownTruth | None, ...]:
        """The truth about an assertion on each day.

        Without its own label, a day counts as fine if other assertions on the same datasets have
        labels that it was, and none that it was not: they share the cause.
        """
        datasets = self.backtest.datasets
        others = [n for n, own in enumerate(datasets) if n != row and own == datasets[row]]

        def on_day(day: int) -> costs.KnownTruth | None:
            own = self.known[row][day]
            if own is not None and own.is_label:
                return own
            labels = {self.label(other, day) for other in others}
            if own is not None and labels - {None} == {False}:
                return costs.KnownTruth(False)
            return own

        return tuple(map(on_day, range(len(self.backtest.days))))

    def label(self, row: int, index: int) -> bool | None:
        """The label of an assertion on a day: True for a real issue; None without a label."""
        return costs.label_of(self.known[row][index])

    def days(
        self, rules: Rules, rows: Collection[int], *, with_weekdays: bool = False
    ) -> tuple[int, ...]:
        """The days that count for some assertions.

        :param with_weekdays: days of weekly profiles count, with the values as these profiles scale
            them.
        """
        indexes = range(len(self.backtest.days))
        if rules.profile_days is ProfileDays.INCLUDE:
            return tuple(indexes)
        weekly = {
            profile.name.value for profile in self.backtest.suite.profiles if is_weekly(profile)
        }
        left_out = frozenset[int]().union(
            *(self.backtest.profiled(row, without=weekly if with_weekdays else ()) for row in rows)
        )
        return tuple(index for index in indexes if index not in left_out)

    def labelled(self, rows: Iterable[int], days: Collection[int]) -> tuple[int, ...]:
        """The days with labels of some assertions, once for each label. Labels of a mapped gate
        count for the first day of their date, since folds are cut between dates."""
        days = costs.labelled_days([self.known[row] for row in rows], days)
        return tuple(map(self.backtest.first_of_date, days))


def is_weekly(profile: nodes.Profile) -> bool:
    """True for a profile that is active on days of the week, every week."""
    return all(
        isinstance(end, nodes.Call) and end.name.text == "weekday"
        for end in (profile.start, profile.end)
    )


def tuned_values(
    past: KnownPast, rules: Rules, gate: str | None = None, *, without: Collection[str] = ()
) -> tuple[Tuned, ...]:
    """The result for each tunable; tunables that share assertions are tuned together.

    :param without: the names of tunables to keep, with those that share their assertions.
    """
    groups = groups_of(past.backtest)
    return tuple(
        _tuned(past, group, rules, gate)
        for group in groups
        if not any(tunable.name in without for tunable in group)
    )


def thin_evidence(
    about: tuple[str, ...],
    past: KnownPast,
    rows: Collection[int],
    days: Collection[int],
    rules: Rules,
    name_of_days: str = "these days",
) -> Tuned | None:
    """The result without a proposal if some assertions have too few labels; None if enough.

    :param days: the days that count.
    :param name_of_days: the name of these days in the reason.
    """
    labelled = past.labelled(rows, days)
    missing_labels = rules.fewest_labels - len(labelled)
    missing_days = costs.FEWEST_LABELLED_DAYS - len(set(labelled))
    lacking = max(missing_labels, missing_days)
    if lacking <= 0:
        return None
    if missing_labels > 0:
        reason = _few_labels(len(labelled), lacking, name_of_days)
    else:
        reason = _few_labelled_days(len(set(labelled)), lacking)
    truths = [past.known[row][day] for row in rows for day in days]
    free = sum(truth is not None and not truth.is_label for truth in truths)
    if free < lacking:
        verdicts = f"{free} verdict{'' if free == 1 else 's'}"
        reason += f", but only {verdicts} can be labeled: run the gate on more days"
    statuses = past.backtest.judge().statuses
    alarms = sum(
        statuses[row][day] is Status.FAILED and past.label(row, day) is None
        for row in rows
        for day in days
    )
    return Tuned(about, None, reason, len(labelled), lacking, alarms)


def _few_labels(labels: int, lacking: int, name_of_days: str) -> str:
    text = f"{labels} label{'' if labels == 1 else 's'} on {name_of_days}"
    return f"{text}: at least {lacking} more {'is' if lacking == 1 else 'are'} needed"


def _few_labelled_days(days: int, lacking: int) -> str:
    text = f"its labels are on {days} day{'' if days == 1 else 's'}"
    return f"{text}: labels on at least {lacking} more day{'' if lacking == 1 else 's'} are needed"


def _tuned(
    past: KnownPast, tunables: tuple[TunableNumber, ...], rules: Rules, gate: str | None
) -> Tuned:
    backtest = past.backtest
    names = tuple(tunable.name for tunable in tunables)
    rows = [
        row for row, assertion in enumerate(backtest.assertions) if assertion.tunables & set(names)
    ]
    if not rows:
        return Tuned(names, None, "no assertion depends on it")
    days = past.days(rules, rows)
    if len(past.labelled(rows, days)) < rules.fewest_labels:
        days = past.days(rules, rows, with_weekdays=True)
    name_of_days = "days without profiles" if len(days) < len(backtest.days) else "these days"
    thin = thin_evidence(names, past, rows, days, rules, name_of_days)
    if thin is not None:
        return thin
    labelled = past.labelled(rows, days)
    is_required = any(backtest.assertions[row].is_required for row in rows)

    def is_allowed(values: dict[str, float]) -> bool:
        return not is_required or not judge_values(backtest.suite, values, AGENT).refusals

    search = Search(backtest, past.known, tunables, max_move=rules.max_move, is_allowed=is_allowed)
    best = search.best(days)
    if not search.named(best) or not _costs_less(search, best, days):
        reason = "no allowed value costs less than the current one"
        if is_required:
            reason += "; it is required, so only stricter values are allowed"
        return Tuned(names, None, reason, len(labelled))
    refusals = judge_values(backtest.suite, search.named(best), AGENT).refusals
    if refusals:
        return Tuned(names, None, refusals[0].message, len(labelled))
    trials = _trials(search, days, labelled)
    if not costs.wins(trials):
        return Tuned(names, None, no_win(trials), len(labelled))
    evidence = {
        **evidence_of(backtest, trials, len(labelled), days),
        "max_move": rules.max_move,
        "profile_days": rules.profile_days.value,
        "changes": _changes(past, search, best, days, trials),
        "curves": [curve_of(search, best, position, days) for position in range(len(tunables))],
        "passes": _passing_with(past, rows, days, search.named(best)),
    }
    reason = f"{reason_of(evidence)}; {evidence['passes']}"
    proposal = Proposal(
        backtest.suite.name.value,
        AGENT,
        _changed_values(backtest.suite, search, best),
        reason=reason,
        gate=gate,
        evidence=evidence,
    )
    return Tuned(names, proposal, reason, len(labelled))


def _costs_less(search: Search, values: tuple[float, ...], days: Sequence[int]) -> bool:
    """Whether values cost less than the current ones."""
    return search.counts(values, days).cost < search.counts(search.now, days).cost


def _trials(
    search: Search, days: Sequence[int], labelled: Sequence[int]
) -> tuple[costs.Trial, ...]:
    """The current values, and those that were best on earlier days, on the held-out days of each
    fold."""
    return tuple(
        costs.Trial(
            fold,
            search.counts(search.now, fold.held_out),
            search.counts(search.best(fold.learned), fold.held_out),
        )
        for fold in costs.folds_of(days, labelled)
    )


def _passing_with(
    past: KnownPast, rows: Sequence[int], days: Sequence[int], values: dict[str, float]
) -> str:
    """The ranges that some assertions let pass with other values of tunables."""
    after = with_values(past.backtest.suite, values)
    shown = []
    for row in rows:
        text = passing_then_and_now(past, row, days, past.alone(row, after).backtest)
        name = past.backtest.assertions[row].name
        shown.append(text if len(rows) == 1 else f"'{name}': {text}")
    return "; ".join(shown)


def _changed_values(
    suite: nodes.Suite, search: Search, values: tuple[float, ...]
) -> tuple[ProposedValue, ...]:
    chosen = search.named(values)
    units = units_of(suite)
    return tuple(
        ProposedValue(tunable.name, tunable.value, chosen[tunable.name], units[tunable.name])
        for tunable in search.tunables
        if tunable.name in chosen
    )


def passing_then_and_now(past: KnownPast, row: int, days: Sequence[int], tried: Backtest) -> str:
    """A sentence about the ranges that an assertion lets pass today, and as the only assertion of
    another version of the suite."""
    today = _passing(past, row, days, past.backtest, row)
    proposed = _passing(past, row, days, tried, 0)
    if today is None or proposed is None:
        return "its values have no scale"
    return f"today it lets pass {today}; as proposed, {proposed}"


def _passing(
    past: KnownPast, row: int, days: Sequence[int], judged: Backtest, position: int
) -> str | None:
    """The range that an assertion lets pass on a median day, with the number of known issues beyond
    each limit.

    :param position: the row of the assertion in a version of the suite.
    """
    shown = []
    for op, limits in judged.limits(position):
        values = judged.compared(position)
        known = {
            day: (nearest_float(value), limit)
            for day, (value, limit) in enumerate(zip(values, limits, strict=True))
            if isinstance(value, NUMBERS) and limit is not None
        }
        usual = [known[day] for day in days if day in known and known[day][0]]
        if not usual or op[0] not in "<>":
            continue
        word, side = ("up to", 1) if op[0] == "<" else ("down to", -1)
        issues = sum(
            past.label(row, day) is True and side * value > side * limit
            for day, (value, limit) in known.items()
        )
        share = median(limit / value for value, limit in usual)
        example = float(f"{median(limit for _, limit in usual):.3g}")
        shown.append(
            f"{word} {format_value(round(share, 2))} times the day's value, such as "
            f"{example:,.10g} ({issues} known issue{'' if issues == 1 else 's'} beyond)"
        )
    return " and ".join(shown) or None


def no_win(trials: Sequence[costs.Trial]) -> str:
    return (
        f"on held-out days it gains {costs.mean_gain(trials):.3g} a fold, which is within the "
        f"noise of the folds ({costs.noise_of(trials):.3g})"
    )


def evidence_of(
    backtest: Backtest, trials: Sequence[costs.Trial], labels: int, days: Collection[int]
) -> dict[str, Any]:
    """The evidence from the folds, as JSON."""
    dates = backtest.dates
    instances = {backtest.days[index].map_index for index in days} - {-1}
    before = sum((trial.before for trial in trials), costs.Counts())
    after = sum((trial.after for trial in trials), costs.Counts())
    return {
        "from": dates[0].isoformat(),
        "to": dates[-1].isoformat(),
        "days": backtest.count_dates(days),
        **({"instances": len(instances)} if instances else {}),
        "labels": labels,
        "held_out": {
            "days": sum(backtest.count_dates(trial.fold.held_out) for trial in trials),
            "before": _counts_fields(before),
            "after": _counts_fields(after),
            "gain": round(costs.mean_gain(trials), 6),
            "noise": round(costs.noise_of(trials), 6),
        },
        "folds": [
            {
                "from": dates[trial.fold.held_out[0]].isoformat(),
                "to": dates[trial.fold.held_out[-1]].isoformat(),
                "before": _counts_fields(trial.before),
                "after": _counts_fields(trial.after),
            }
            for trial in trials
        ],
    }


def reason_of(evidence: dict[str, Any]) -> str:
    """The evidence in one line."""
    held_out = evidence["held_out"]
    before, after = held_out["before"], held_out["after"]
    of_instances = f" of {evidence['instances']} instances" if "instances" in evidence else ""
    return (
        f"on {held_out['days']} held-out days{of_instances}: "
        f"false alarms {before['false_alarms']} -> {after['false_alarms']}, "
        f"missed issues {before['missed']} -> {after['missed']} ({evidence['labels']} labels)"
    )


def change_of(
    past: KnownPast,
    row: int,
    index: int,
    verdicts: tuple[Status | None, Status | None],
    held_out: Collection[int],
) -> dict[str, Any]:
    """A changed verdict on one assertion on one day, as JSON.

    :param verdicts: before and after.
    """
    assertion, day = past.backtest.assertions[row], past.backtest.days[index]
    before, after = (status.value if status else "unknown" for status in verdicts)
    return {
        "date": day.date.isoformat(),
        **({"map_index": day.map_index} if day.map_index >= 0 else {}),
        "check": assertion.check,
        "assertion": assertion.name,
        "before": before,
        "after": after,
        "label": past.label(row, index),
        "held_out": index in held_out,
    }


def _counts_fields(counts: costs.Counts) -> dict[str, float]:
    return {
        "false_alarms": counts.false_alarms,
        "missed": counts.missed,
        "cost": round(counts.cost, 6),
    }


def _changes(
    past: KnownPast,
    search: Search,
    values: tuple[float, ...],
    days: Iterable[int],
    trials: Sequence[costs.Trial],
) -> list[dict[str, Any]]:
    """The days that change sides with the proposed values."""
    before, after = search.statuses(search.now), search.statuses(values)
    held_out = {index for trial in trials for index in trial.fold.held_out}
    return [
        change_of(past, row, index, (was[index], becomes[index]), held_out)
        for index in days
        for row, was, becomes in zip(search.rows, before, after, strict=True)
        if (was[index] is Status.FAILED) != (becomes[index] is Status.FAILED)
    ]


def curve_of(
    search: Search, values: tuple[float, ...], position: int, days: Sequence[int]
) -> dict[str, Any]:
    """The cost of each value of a tunable on all days, with the others as proposed."""
    tunable = search.tunables[position]
    points, day_bits = [], bits_of(days)
    for value in search.candidates[position]:
        cost = search.price(with_value(values, position, value), day_bits)
        if cost < math.inf:
            points.append([value, round(cost, 6)])
    low, high = allowed_range(tunable, 1.0)
    return {
        "tunable": tunable.name,
        "type": tunable.type,
        "bounds": [low, high],
        "today": tunable.value,
        "proposed": values[position],
        "fine_days": search.fine_days(position, days),
        "points": points,
    }
