"""All proposals of a tuner for a suite: first other forms, then profiles where false alarms cluster
on the calendar, then values.

A profile scales the value to what it is on other days; it never disables anything. A cluster counts
if a binomial test finds it unlikely to be chance, at `CHANCE` divided by the number of calendars
that are tried (Bonferroni correction). Like a threshold, the profile is tested on later days than
it was learned from.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean, median

from dqx_airflow.dql import nodes
from dqx_airflow.dql.dates import is_active
from dqx_airflow.dql.printer import show
from dqx_airflow.errors import SourceError
from dqx_airflow.results.past import PastDay
from dqx_airflow.tuning import tuner
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.calendars import Calendar, Period, calendars
from dqx_airflow.tuning.costs import Fold, Trial, counts, folds_of, wins
from dqx_airflow.tuning.forms import tuned_forms
from dqx_airflow.tuning.past_judge import alone
from dqx_airflow.tuning.proposals import Proposal
from dqx_airflow.tuning.protection import judge_change
from dqx_airflow.tuning.suite_file import SuiteText
from dqx_airflow.values import Status
from dqx_airflow.values.exact import NUMBERS, nearest_float

FEWEST_IN_CLUSTER = 2
"""The minimum number of alarms labelled as false."""
CHANCE = 0.01
"""The maximum probability of a cluster by chance, over all calendars that are tried."""

_MOST_CLUSTERS = 4
_FURTHEST_FACTOR = 4.0
_SAME = 0.05
"""Factors that differ from 1 by less are ignored."""


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Alarms of an assertion on days of a calendar, without those known to be real."""

    calendar: Calendar
    days: frozenset[int]
    alarms: int
    all_alarms: int
    labels: int
    chance: float
    factor: float | None
    """The factor by which to scale its days; None if it is not different."""
    spread: float
    """The spread of all values, after scaling, around the usual one: relative to that."""


def tuned_profiles(
    past: tuner.KnownPast,
    rules: tuner.Rules,
    calendars: Sequence[Calendar],
    text: SuiteText,
    gate: str | None = None,
) -> tuple[dict[int, tuner.Tuned], dict[int, frozenset[int]]]:
    """The assertions whose false alarms cluster, and the days for which a profile is proposed, both
    by the row of the assertion.

    :param text: that of the suite.
    """
    candidates = [*calendars]
    if rules.profile_days is tuner.ProfileDays.INCLUDE:
        candidates += map(_existing, past.backtest.suite.profiles)
    used_names = {profile.name.value for profile in past.backtest.suite.profiles}
    profiles: dict[int, tuner.Tuned] = {}
    left_out = {}
    for row, assertion in enumerate(past.backtest.assertions):
        if assertion.is_required:
            continue
        # Also days of profiles: an assertion that alarms there in spite of scaling may need another
        # one.
        days = range(len(past.backtest.days))
        failed: list[tuner.Tuned] = []
        new = [
            calendar
            for calendar in candidates
            if not used_names & set(_profile_names(assertion.name, calendar))
        ]
        for cluster in _clusters(past, row, days, new):
            tuned = _tuned(past, row, cluster, days, rules, text, gate)
            if tuned.proposal is not None:
                profiles[row] = tuned
                left_out[row] = cluster.days
                break
            failed.append(tuned)
        else:
            if failed:
                profiles[row] = failed[0]
    return profiles, left_out


def _existing(profile: nodes.Profile) -> Calendar:
    """The days of an existing profile: another factor may be better there."""
    start, end, name = profile.start, profile.end, profile.name.value
    assert start is not None
    assert end is not None
    period = Period(name, show(start), show(end))

    def holds(on: date) -> bool:
        return is_active(start, end, on)

    return Calendar(name, f"the days of '{name}'", (period,), holds)


def _clusters(
    past: tuner.KnownPast, row: int, days: Sequence[int], calendars: Sequence[Calendar]
) -> list[_Cluster]:
    """The calendars on which the alarms of an assertion cluster: first those whose factor explains
    the values best, such as that of Sundays if Saturdays are almost usual.

    Alarms without a label also count, but some of them must be labelled as false. Real issues do
    not count. Chance is a matter of dates: instances of a mapped gate often alarm together.
    """
    count = past.backtest.count_dates
    dates, statuses = past.backtest.dates, past.backtest.judge().statuses[row]
    judged = [n for n in days if statuses[n] is not None]
    label = {n: past.label(row, n) for n in judged}
    alarms = [n for n in judged if statuses[n] is Status.FAILED and not label[n]]
    clusters = []
    for calendar in calendars:
        matching = frozenset(n for n in judged if calendar.holds(dates[n]))
        inside = [n for n in alarms if n in matching]
        false = sum(label[n] is False for n in inside)
        if false < FEWEST_IN_CLUSTER or len(matching) == len(judged):
            continue
        chance = _at_least(count(inside), count(alarms), count(matching) / count(judged))
        if chance < CHANCE / len(calendars):
            factor, spread = _factor(past, row, matching, days)
            counted = len(inside), len(alarms), false, chance
            clusters.append(_Cluster(calendar, matching, *counted, factor, spread))
    return sorted(clusters, key=lambda cluster: (cluster.spread, cluster.chance))[:_MOST_CLUSTERS]


def _at_least(hits: int, trials: int, rate: float) -> float:
    """The probability of at least this many hits: the upper tail of the binomial distribution."""
    return sum(
        math.comb(trials, n) * rate**n * (1 - rate) ** (trials - n) for n in range(hits, trials + 1)
    )


def _tuned(
    past: tuner.KnownPast,
    row: int,
    cluster: _Cluster,
    days: Sequence[int],
    rules: tuner.Rules,
    source: SuiteText,
    gate: str | None,
) -> tuner.Tuned:
    backtest, assertion = past.backtest, past.backtest.assertions[row]
    about = (assertion.name, cluster.calendar.name)
    thin = tuner.thin_evidence(about, past, [row], days, rules)
    if thin is not None:
        return thin
    factor = cluster.factor
    if factor is None:
        return tuner.Tuned(
            about, None, "its values on these days are not a different share of the usual ones"
        )
    labelled = past.labelled([row], days)
    text = profile_text(
        assertion.check, assertion.name, cluster.calendar, factor, _why(cluster, assertion.name)
    )
    try:
        after = source.changed(text)
    except SourceError as error:
        return tuner.Tuned(about, None, f"no profile can be written: {error}", len(labelled))
    refusals = judge_change(backtest.suite, after, tuner.AGENT).refusals
    if refusals:
        return tuner.Tuned(about, None, refusals[0].message, len(labelled))
    trials = [_trial(past, row, cluster, fold, source) for fold in folds_of(days, labelled)]
    if not wins(trials):
        return tuner.Tuned(about, None, tuner.no_win(trials), len(labelled))
    statuses, would_be = backtest.judge().statuses[row], _judged_alone(backtest, after, row)
    was, becomes = (
        counts(judged, past.known[row], assertion.cost, days) for judged in (statuses, would_be)
    )
    if becomes.cost >= was.cost:
        return tuner.Tuned(about, None, "over all days it costs more than it saves", len(labelled))
    held_out = tuner.held_out_days(trials)
    evidence = {
        **tuner.evidence_of(backtest, trials, len(labelled), days),
        "cluster": {
            "days": cluster.calendar.text,
            "alarms": cluster.alarms,
            "of": cluster.all_alarms,
            "labelled_false": cluster.labels,
            "chance": float(f"{cluster.chance:.2g}"),
            "factor": factor,
        },
        "changes": [
            tuner.change_of(past, row, n, (statuses[n], would_be[n]), held_out)
            for n in days
            if statuses[n] is not would_be[n]
        ],
    }
    reason = f"{_why(cluster, assertion.name)}; {tuner.reason_of(evidence)}"
    proposal = Proposal(
        backtest.suite.name.value,
        tuner.AGENT,
        (),
        text,
        reason=reason,
        gate=gate,
        evidence=evidence,
    )
    return tuner.Tuned(about, proposal, reason, len(labelled))


def _trial(
    past: tuner.KnownPast, row: int, cluster: _Cluster, fold: Fold, source: SuiteText
) -> Trial:
    """The held-out days of a fold, with the factor that its earlier days suggest."""
    assertion, known = past.backtest.assertions[row], past.known[row]
    before = after = past.backtest.judge().statuses[row]
    factor, _ = _factor(past, row, cluster.days, fold.learned)
    if factor is not None:
        text = profile_text(assertion.check, assertion.name, cluster.calendar, factor, "")
        after = _judged_alone(past.backtest, source.changed(text), row)
    return Trial(
        fold,
        counts(before, known, assertion.cost, fold.held_out),
        counts(after, known, assertion.cost, fold.held_out),
    )


def profile_text(check: str, name: str, calendar: Calendar, factor: float, why: str) -> str:
    """The profile that scales an assertion on the days of a calendar, in DQL."""
    comment = f"# {why}\n# On these days its value is about {1 / factor:.2g} of the usual one.\n"
    blocks = []
    for title, period in zip(_profile_names(name, calendar), calendar.periods, strict=True):
        blocks.append(
            f'profile "{title}" {{\n'
            "    type recurring\n"
            f"    from {period.start}\n"
            f"    to   {period.end}\n"
            f'    scale assertion "{name}" in "{check}" by {factor:g}x\n'
            "}\n"
        )
    return (comment if why else "") + "\n".join(blocks)


def _profile_names(name: str, calendar: Calendar) -> list[str]:
    return [f"{period.title}: {name}" for period in calendar.periods]


def _why(cluster: _Cluster, name: str) -> str:
    return (
        f"{cluster.alarms} of {cluster.all_alarms} alarms of '{name}' are on "
        f"{cluster.calendar.text}, {cluster.labels} of them labelled false"
    )


def _factor(
    past: tuner.KnownPast, row: int, inside: frozenset[int], days: Sequence[int]
) -> tuple[float | None, float]:
    """The factor by which values on some days have to be scaled to be like the others, and the
    resulting spread around the usual one.

    It is the quotient of the medians, to two digits, and at most fourfold. Days with a real issue
    do not count.
    """
    values, backtest = past.backtest.compared(row), past.backtest
    of_instances: dict[Hashable, tuple[list[float], list[float]]] = {}
    for n in days:
        value, truth = values[n], past.known[row][n]
        if not isinstance(value, NUMBERS) or (truth and truth.is_label and truth.is_issue):
            continue
        sides = of_instances.setdefault(backtest.days[n].instance, ([], []))
        sides[n not in inside].append(nearest_float(value))
    # Of a mapped gate, each instance has its own usual value.
    inside_shares: list[float] = []
    outside_shares: list[float] = []
    for inner, outer in of_instances.values():
        usual = median(outer) if outer else 0.0
        if usual:
            inside_shares += (value / usual for value in inner)
            outside_shares += (value / usual for value in outer)
    if not inside_shares or median(inside_shares) <= 0:
        return None, math.inf
    factor = float(f"{1 / median(inside_shares):.2g}")
    if abs(factor - 1) < _SAME:
        return None, math.inf
    factor = min(max(factor, 1 / _FURTHEST_FACTOR), _FURTHEST_FACTOR)
    scaled = [*outside_shares, *(value * factor for value in inside_shares)]
    return factor, fmean(abs(value - 1) for value in scaled)


def _judged_alone(backtest: Backtest, suite: nodes.Suite, row: int) -> tuple[Status | None, ...]:
    """The statuses of one assertion in a suite with more profiles."""
    return Backtest(alone(suite, row), backtest.days).judge().statuses[0]


def tune(
    text: SuiteText,
    days: Sequence[PastDay],
    rules: tuner.Rules | None = None,
    *,
    holidays: Mapping[date, str] | None = None,
    gate: str | None = None,
) -> tuple[tuner.Tuned, ...]:
    """The results for the tunables, for false alarms that cluster on the calendar, and for the
    forms of assertions.

    An assertion with a proposal of another form gets no other proposals. Days with a proposed
    profile do not count for the values that the same assertion depends on: loosening a limit for
    Sundays would loosen it for all days.

    :param holidays: names of public holidays by date; by default they are not considered.
    """
    rules = rules or tuner.Rules()
    past = tuner.KnownPast.of(Backtest(text.suite, days))
    assertions = past.backtest.assertions
    profiles, left_out = tuned_profiles(past, rules, calendars(holidays), text, gate)
    texts = {row: tuned.proposal.profile or "" for row, tuned in profiles.items() if tuned.proposal}
    forms = tuned_forms(past, rules, text, texts, gate)
    values = tuner.tuned_values(
        past.without({row: reason for row, reason in left_out.items() if row not in forms}),
        rules,
        gate,
        without={name for row in forms for name in assertions[row].tunables},
    )
    kept = (tuned for row, tuned in profiles.items() if row not in forms)
    return (*values, *kept, *forms.values())
