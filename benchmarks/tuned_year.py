"""The false alarms and misses of gates in the second half of a year, in companies of many
families: prints the table of `docs/evidence.md`.

    python -m benchmarks.tuned_year [--families grocer adtech ...] [--seed N ...] [--labels N]

Each company (`companies.py`) has five suites of six assertions. Fixed limits are guessed from the
first month. In the first half of the year, a person labels at most 60 alerts, spread evenly, those
of the noisiest assertion first, at most 8 of each; `dql tune --holidays` proposes every four weeks,
and the person approves everything. The second half is judged, and nothing more is changed. The
other rules need no labels: three standard deviations from the mean of 28 days; a z-score of the
same weekday of 98 days; STL of 84 days and 8 MAD; the claims `within usual(...)` alone; `watch`.
Alarms of other assertions of a dataset that has an issue on a day count neither way. Nothing is
measured on Spark.

Seeds rotate: each month judges two other companies of each family, so that no one tunes to them.
They are the month followed by 1 and by 2, such as 2026111 and 2026112 in November 2026.
Limits are chosen on families A to Q; the ten businesses of `SCORED` are only scored.
"""

from __future__ import annotations

import argparse
import math
import resource
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.companies import (
    ASSERTIONS,
    DATASETS,
    DAYS,
    FAMILIES,
    FIRST,
    HELD_OUT,
    SCORED,
    Company,
    company,
)
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.watches import claims_on
from dqx_airflow.metrics.usual_limits import (
    DEFAULT_DAYS,
    DayBefore,
    Kind,
    UsualLimits,
    usual_limits,
)
from dqx_airflow.plan.measurements import Measurements
from dqx_airflow.results.causes import Failure, Side, causes_of
from dqx_airflow.results.past_days import PastDay, StoredVerdict
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.forms import tune
from dqx_airflow.tuning.protection import judge_change
from dqx_airflow.tuning.suite_file import SuiteText, with_edits
from dqx_airflow.values import DatasetRef, SourceFile, Status

MONTH, MOST_LABELS, MOST_OF_ASSERTION = 31, 60, 8
SECOND_HALF = range(HELD_OUT, DAYS)
METRICS = {
    "rows": "num_rows()",
    "amount": "sum(amount)",
    "price": "average(price)",
    "nulls": "null_count(email) / num_rows()",
    "matched": "count_values(known, 1) / num_rows()",
    "keys": "duplicate_count([id])",
}
OF_ONE_COLUMN = {"rows": "num_rows", "amount": "sum", "price": "average"}
WATCHED = {
    "rows": ("rows",),
    "amount": ("rows", "mean.amount"),
    "price": ("mean.price",),
    "nulls": ("nulls.email",),
    "matched": ("mean.known",),
    "keys": ("distinct.id",),
}
"""The claims of `watch` that stand for the assertions; it makes more of them."""

COLUMNS = {"id": "bigint", "email": "string", "amount": "double", "price": "double", "known": "int"}
NOT_SIMULATED = "distinct.email"
SIDES = {"nulls": "<=", "keys": "<=", "matched": ">="}


@dataclass(frozen=True)
class Score:
    """False alarms of assertions, false alerts of causes, missed assertion-days, incidents that
    nothing saw."""

    false_alarms: int = 0
    false_alerts: int = 0
    missed: int = 0
    unseen: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.false_alarms + other.false_alarms,
            self.false_alerts + other.false_alerts,
            self.missed + other.missed,
            self.unseen + other.unseen,
        )

    def __str__(self) -> str:
        return f"{self.false_alarms}/{self.false_alerts}/{self.missed}/{self.unseen}"


def fixed_limits(assertion: str, values: np.ndarray) -> tuple[float, float]:
    """Limits as a person would guess them from a month, rounded outwards."""
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    match assertion:
        case "rows" | "amount":
            return least * 0.75, most * 1.3
        case "price":
            return least * 0.93, most * 1.07
        case "nulls":
            return 0.0, most * 1.5
        case "matched":
            return 1 - (1 - least) * 1.5, 1.0
    return 0.0, most * 1.5 + 1


def suite_text(dataset: str, year: Company) -> str:
    """The suite of a dataset, whose thresholds can be tuned."""
    constants, claims = [], []
    for assertion in ASSERTIONS:
        low, high = fixed_limits(assertion, year.values[f"{dataset}.{assertion}"][:MONTH])
        name, op = assertion.upper(), SIDES.get(assertion)
        if op != "<=":
            bounds = (low / 10, 1) if assertion == "matched" else (low / 10, low * 4)
            constants.append(_constant(f"LEAST_{name}", low, *bounds))
        if op != ">=":
            most = 1 if assertion == "nulls" else high * 10
            constants.append(_constant(f"MOST_{name}", high, high / 10, most))
        condition = f"between LEAST_{name} and MOST_{name}"
        if op is not None:
            condition = f"{op} {'MOST' if op == '<=' else 'LEAST'}_{name}"
        claims.append(f'assert {METRICS[assertion]} {condition} name "{assertion}"')
    body = "\n        ".join(claims)
    lines = "\n    ".join(constants)
    check = f'check "C" on {dataset} {{\n        {body}\n    }}'
    return f'suite "{dataset}" {{\n    {lines}\n\n    {check}\n}}\n'


def usual_text(dataset: str, country: str | None) -> str:
    """The claims that need no label, with the sides of the assertions."""
    known = f', holidays "{country}"' if country else ""
    claims = []
    for assertion in ASSERTIONS:
        metric = METRICS[assertion]
        condition = {
            "<=": f"<= highest_usual({metric}{known})",
            ">=": f">= lowest_usual({metric}{known})",
        }.get(SIDES.get(assertion, ""), f"within usual({metric}{known})")
        claims.append(f'assert {metric} {condition} name "{assertion}"')
    body = "\n        ".join(claims)
    return f'suite "{dataset}" {{\n    check "C" on {dataset} {{\n        {body}\n    }}\n}}\n'


def watch_text(dataset: str, country: str | None) -> str:
    known = f' holidays "{country}"' if country else ""
    return f'suite "{dataset}" {{\n    check "C" on {dataset} {{ watch {dataset}{known} }}\n}}\n'


def watched_days(dataset: str, year: Company) -> list[PastDay]:
    """The days with all metrics that `watch` requests: columns that never have a NULL or a value of
    their own follow from the others."""
    claims = claims_on(COLUMNS, DatasetRef(dataset))
    names = [f"{dataset}.watch.{kind}.{column}" for kind, column in claims]
    stored = StoredVerdict(Status.PASSED, "", None)
    verdicts = {("C", name): stored for name in names if not name.endswith(NOT_SIMULATED)}
    days = []
    for day in past_days(dataset, year):
        values = dict(day.measured.values)

        def key(metric: str, dataset: str = dataset) -> str:
            return f'["{dataset}",{metric},0]'

        rows, known = values[key('"num_rows",[]')], values[key('"count_values",["known",1]')]
        more = {
            '"average",["amount"]': values[key('"sum",["amount"]')] / rows,
            '"average",["known"]': known / rows,
            '"unique_count",["id"]': rows - values[key('"duplicate_count",["id"]')],
            **{f'"null_count",["{name}"]': 0 for name in COLUMNS if name != "email"},
        }
        values |= {key(metric): value for metric, value in more.items()}
        days.append(replace(day, measured=Measurements(values), verdicts=verdicts))
    return days


def score_of_watch(year: Company) -> Score:
    """The score of `watch`: an issue is found by any claim about it, and every alarm of a claim is
    one, whatever it is about."""
    alarms, false = {}, 0
    for name in DATASETS:
        found = alarms_of(watch_text(name, year.family.country), watched_days(name, year))
        for assertion, claims in WATCHED.items():
            about = [found[f"{name}.watch.{claim}"] for claim in claims]
            alarms[f"{name}.{assertion}"] = set().union(*about)
        key = f"{name}.rows"
        quiet = ~(year.issues[key] | year.neutral[key])
        false += sum(bool(quiet[day]) for days in found.values() for day in days if day >= HELD_OUT)
    return replace(scored(year, alarms), false_alarms=false)


def _constant(name: str, value: float, low: float, high: float) -> str:
    def digits(number: float) -> str:
        return f"{number:.10f}".rstrip("0").rstrip(".")

    return f"const {name} = {digits(value)} tunable [{digits(low)}, {digits(high)}]"


def past_days(dataset: str, year: Company) -> list[PastDay]:
    """The days with data, with the values that a gate would have stored."""
    rows, columns = (
        year.parts[dataset]["rows"],
        {name: year.values[f"{dataset}.{name}"] for name in ASSERTIONS},
    )
    days = []
    for number, on in enumerate(year.dates):
        if not rows[number]:
            continue
        own = {name: float(series[number]) for name, series in columns.items()}
        count = int(rows[number])
        found = {
            '"num_rows",[]': count,
            '"sum",["amount"]': own["amount"],
            '"average",["price"]': own["price"],
            '"null_count",["email"]': round(own["nulls"] * count),
            '"count_values",["known",1]': round(own["matched"] * count),
            '"duplicate_count",["id"]': int(own["keys"]),
        }
        values = {f'["{dataset}",{key},0]': value for key, value in found.items()}
        days.append(PastDay(on, Measurements(values)))
    return days


def node_of(text: str) -> nodes.Suite:
    checked = check_source(SourceFile("suite.dql", text), needs_suite=True)
    assert checked.suite is not None
    assert not checked.errors, checked.errors
    return checked.suite


def alarms_of(text: str, days: Sequence[PastDay]) -> dict[str, set[int]]:
    """For each assertion the days since the first that it fails on."""
    backtest = Backtest(node_of(text), days)
    return {
        assertion.name: {
            (day.date - FIRST).days
            for day, status in zip(backtest.days, statuses, strict=True)
            if status is Status.FAILED
        }
        for assertion, statuses in zip(backtest.assertions, backtest.judge().statuses, strict=True)
    }


@dataclass
class Tuning:
    """The suites of a company while they are tuned."""

    year: Company
    texts: dict[str, str]
    labels: dict[tuple[str, str, int], bool]
    moved: set[tuple[str, str]] = field(default_factory=set)
    """The assertions that an approved proposal changed."""

    def learn(self, most_labels: int) -> None:
        """Labels and tunes the suites through the first half of the year."""
        asked: Counter[tuple[str, str]] = Counter()
        noise: Counter[tuple[str, str]] = Counter()
        past = {name: past_days(name, self.year) for name in self.texts}
        for until in range(28, HELD_OUT + 1, 28):
            fresh = []
            for name, text in self.texts.items():
                known = [day for day in past[name] if (day.date - FIRST).days < until]
                for assertion, failed in alarms_of(text, known).items():
                    new = [day for day in failed if until - 28 <= day]
                    noise[name, assertion] += len(new)
                    fresh += [(name, assertion, day) for day in new]
            budget = most_labels * until // HELD_OUT - len(self.labels)
            fresh.sort(key=lambda alert: (-noise[alert[:2]], alert[2]))
            while fresh and budget > 0:
                alert = min(fresh, key=lambda one: asked[one[:2]])
                fresh.remove(alert)
                if asked[alert[:2]] >= MOST_OF_ASSERTION:
                    continue
                asked[alert[:2]] += 1
                name, assertion, day = alert
                self.labels[alert] = bool(self.year.issues[f"{name}.{assertion}"][day])
                budget -= 1
            for name in self.texts:
                self._tune(name, [day for day in past[name] if (day.date - FIRST).days < until])

    def _tune(self, name: str, days: Sequence[PastDay]) -> None:
        text = self.texts[name]
        failed = alarms_of(text, days)
        labelled = []
        for day in days:
            number = (day.date - FIRST).days
            said = {
                ("C", assertion): issue
                for (dataset, assertion, on), issue in self.labels.items()
                if dataset == name and on == number
            }
            verdicts = {
                ("C", assertion): StoredVerdict(
                    Status.FAILED if number in failed[assertion] else Status.PASSED, "", None
                )
                for assertion in ASSERTIONS
            }
            labelled.append(replace(day, verdicts=verdicts, labels=said))
        suite = SuiteText(text, node_of(text), node_of)
        for tuned in tune(suite, labelled, holidays=self.year.family.country):
            if tuned.proposal is None:
                continue
            one, now = tuned.proposal, node_of(text)
            after = with_edits(text, now, one.values, one.profile, one.form)
            if not judge_change(now, node_of(after), one.agent, form=one.form).refusals:
                text = after
                changed = [constant.partition("_")[2].lower() for constant in one.values]
                named = changed if one.form is None else [one.form.assertion]
                self.moved |= {(name, assertion) for assertion in named}
        self.texts[name] = text


def scored(year: Company, alarms: dict[str, set[int]], days: range = SECOND_HALF) -> Score:
    """The score of some days."""
    false = missed = 0
    seen: set[tuple[str, int]] = set()
    for key, issues in year.issues.items():
        known = ~np.isnan(year.values[key])
        for day in days:
            failed = day in alarms.get(key, ())
            false += bool(failed and not issues[day] and not year.neutral[key][day] and known[day])
            missed += bool(issues[day] and not failed)
            if issues[day] and failed:
                seen.add((key.partition(".")[0], day))
    unseen = sum(
        incident.day in days
        and any(year.issues[f"{incident.dataset}.{name}"][incident.day] for name in ASSERTIONS)
        and not any(
            (incident.dataset, day) in seen
            for day in range(incident.day, incident.day + incident.days)
        )
        for incident in year.incidents
    )
    return Score(false, false_alerts(year, alarms, days), missed, unseen)


def false_alerts(year: Company, alarms: dict[str, set[int]], days: range) -> int:
    """The alerts that a person gets for nothing: one for each cause of failures, none of which is
    about an issue when it begins."""
    failures = []
    for key, failed in alarms.items():
        dataset, _, assertion = key.partition(".")
        series = year.values[key]
        for day in failed & {*days}:
            usual = np.nanmedian(series[day - 28 : day])
            failures.append(
                Failure(
                    key,
                    "company",
                    (dataset,),
                    year.dates[day],
                    year.dates[day - 1],
                    OF_ONE_COLUMN.get(assertion),
                    Side.ABOVE if series[day] > usual else Side.BELOW,
                )
            )
    found = 0
    for cause in causes_of(failures):
        begun = [one for one in cause if one.date == cause[0].date]
        places = [(str(one.assertion), (one.date - FIRST).days) for one in begun]
        is_issue = any(year.issues[key][day] for key, day in places)
        is_neutral = all(year.neutral[key][day] for key, day in places)
        found += not (is_issue or is_neutral)
    return found


# The rules of others


def beyond(assertion: str, value: float, low: float, high: float) -> bool:
    op = SIDES.get(assertion)
    return (op != "<=" and value < low) or (op != ">=" and value > high)


def by_fixed_limits(year: Company) -> dict[str, set[int]]:
    """The alarms of limits that a person guessed from the first month."""
    alarms = {}
    for key, series in year.values.items():
        assertion = key.partition(".")[2]
        limits = fixed_limits(assertion, series[:MONTH])
        alarms[key] = {day for day in SECOND_HALF if beyond(assertion, series[day], *limits)}
    return alarms


def by_sigmas(
    year: Company, days: int, step: int = 1, sigmas: Sequence[float] = (3.0,)
) -> dict[float, dict[str, set[int]]]:
    """The alarms beyond a number of standard deviations from the mean of the days before, `step`
    days apart, for each number."""
    found: dict[float, dict[str, set[int]]] = {sigma: {} for sigma in sigmas}
    for key, series in year.values.items():
        assertion = key.partition(".")[2]
        before = np.array([series[day - days : day][::-1][step - 1 :: step] for day in SECOND_HALF])
        middles, spreads = np.nanmean(before, 1), np.nanstd(before, 1, ddof=1)
        for sigma in sigmas:
            found[sigma][key] = {
                day
                for day, middle, spread in zip(SECOND_HALF, middles, spreads, strict=True)
                if beyond(assertion, series[day], middle - sigma * spread, middle + sigma * spread)
            }
    return found


def by_stl(year: Company) -> dict[str, set[int]]:
    """STL of 84 days, period 7, robust with 1 inner and 10 outer loops, of logarithms where they
    exist; and 8 MAD of its rest."""
    from statsmodels.tsa.seasonal import STL

    alarms: dict[str, set[int]] = {}
    for key, series in year.values.items():
        is_log = np.nanmin(series) > 0
        filled = np.log(series) if is_log else series.copy()
        gaps = np.isnan(filled)
        filled[gaps] = np.interp(np.flatnonzero(gaps), np.flatnonzero(~gaps), filled[~gaps])
        alarms[key] = set()
        for day in range(HELD_OUT, DAYS):
            if gaps[day]:
                continue
            rest = STL(filled[day - 83 : day + 1], period=7, robust=True).fit(1, 10).resid
            spread = 1.4826 * np.median(np.abs(rest[:-1] - np.median(rest[:-1])))
            away = 8 * spread + 1e-12
            assertion = key.partition(".")[2]
            if beyond(assertion, float(rest[-1]), -away, away):
                alarms[key].add(day)
    return alarms


def by_suites(year: Company, texts: dict[str, str]) -> dict[str, set[int]]:
    return {
        f"{name}.{assertion}": failed
        for name, text in texts.items()
        for assertion, failed in alarms_of(text, past_days(name, year)).items()
    }


RULES = (*("fixed", "3 sigma", "z 14 d", "weekday z", "STL + MAD"), *("usual", "watch", "dql tune"))
WIDTHS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
SIGMAS = (1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)


@dataclass(frozen=True)
class Judged:
    """What the rules found in the year of a company; `wider` are the scores of limits of
    `within usual` and of standard deviations that are farther away by a factor."""

    issues: int
    labels: int
    moved: int
    scores: dict[str, Score]
    wider: dict[tuple[str, float], Score]


def judged(named: tuple[str, int], labels: int, rules: Sequence[str]) -> Judged:
    name, seed = named
    year = company(FAMILIES[name], seed)
    fixed = {dataset: suite_text(dataset, year) for dataset in DATASETS}
    tuning = Tuning(year, dict(fixed), {})
    if "dql tune" in rules:
        tuning.learn(labels)
    of_sigmas = by_sigmas(year, 28, sigmas=SIGMAS)
    wider = {("3 sigma", sigma): scored(year, alarms) for sigma, alarms in of_sigmas.items()}
    wider |= {("usual", width): one for width, one in _by_width(year).items()}
    scores = {
        "fixed": scored(year, by_fixed_limits(year)),
        "3 sigma": wider["3 sigma", 3.0],
        "z 14 d": scored(year, by_sigmas(year, 14)[3.0]),
        "weekday z": scored(year, by_sigmas(year, 98, step=7)[3.0]),
        "usual": wider["usual", 1.0],
    }
    if "STL + MAD" in rules:
        scores["STL + MAD"] = scored(year, by_stl(year))
    if "watch" in rules:
        scores["watch"] = score_of_watch(year)
    if "dql tune" in rules:
        scores["dql tune"] = scored(year, by_suites(year, tuning.texts))
    return Judged(
        sum(int(series[HELD_OUT:].sum()) for series in year.issues.values()),
        len(tuning.labels),
        len(tuning.moved),
        scores,
        wider,
    )


def usual_days(year: Company, key: str, judged: range) -> list[UsualLimits | None]:
    """The usual limits of an assertion on some days."""
    known = [None if math.isnan(value) else value for value in year.values[key].tolist()]
    days = [DayBefore(year.dates[n], known[max(0, n - DEFAULT_DAYS) : n]) for n in judged]
    is_volume = key.partition(".")[2] in ("rows", "amount", "keys")
    return usual_limits(days, Kind.VOLUME if is_volume else Kind.OTHER, year.family.country)


def _by_width(year: Company) -> dict[float, Score]:
    """The scores of `within usual` with limits that are narrower or wider by a factor."""
    alarms: dict[float, dict[str, set[int]]] = {width: {} for width in WIDTHS}
    for key, series in year.values.items():
        assertion, limits = key.partition(".")[2], usual_days(year, key, SECOND_HALF)
        for width in WIDTHS:
            alarms[width][key] = {
                day
                for day, one in zip(SECOND_HALF, limits, strict=True)
                if one is not None
                and (
                    one.repeated == series[day]
                    or beyond(
                        assertion,
                        series[day],
                        one.expected - width * (one.expected - one.low),
                        one.expected + width * (one.high - one.expected),
                    )
                )
            }
    return {width: scored(year, found) for width, found in alarms.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--families", nargs="*", choices=FAMILIES, default=[*FAMILIES])
    month = date.today().strftime("%Y%m")
    arguments.add_argument(
        "--seed", type=int, nargs="*", default=[int(f"{month}{n}") for n in (1, 2)]
    )
    arguments.add_argument("--labels", type=int, default=MOST_LABELS)
    arguments.add_argument("--rules", nargs="*", choices=RULES, default=[*RULES])
    arguments.add_argument("--processes", type=int, default=2)
    given = arguments.parse_args()
    if "STL + MAD" in given.rules and find_spec("statsmodels") is None:
        arguments.error("STL needs statsmodels: pip install statsmodels")
    seeds = ", ".join(map(str, given.seed))
    print(f"False alarms / alerts / missed issues / incidents that nothing saw; seeds {seeds}.\n")
    print(_row(["family", "issues", "labels", "moved", *given.rules]))
    print(_row(["---"] * (4 + len(given.rules))))
    totals: dict[str, Judged] = {}
    years = [(name, seed) for name in given.families for seed in given.seed]
    with ProcessPoolExecutor(given.processes) as pool:
        found = pool.map(partial(judged, labels=given.labels, rules=given.rules), years)
        for name in given.families:
            of_family = [next(found) for _ in given.seed]
            _print_line(name, of_family, given.rules)
            group = "scored" if name in SCORED else "tuned on"
            totals[group] = _together([*filter(None, [totals.get(group)]), *of_family])
    for group, total in totals.items():
        _print_line(f"**all {group}**", [total], given.rules)
    for group, total in totals.items():
        print(f"\n{group}:")
        for rule in given.rules[given.rules.index("usual") :]:
            print(f"- {_verdict(rule, total.scores)}")
        for rule, words in (("usual", "limits x"), ("3 sigma", "standard deviations")):
            ends = [f"{words} {at:g}: {one}" for (of, at), one in total.wider.items() if of == rule]
            print(f"- frontier of {rule}: {'; '.join(ends)}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{used.ru_utime:.0f} s CPU, to {FIRST + timedelta(days=DAYS - 1)}")


def _verdict(rule: str, scores: dict[str, Score]) -> str:
    """The verdict on a rule. Its goal, as alerts that a person gets: 80% fewer than fixed limits
    have false alarms, 55% fewer than three standard deviations, 45% fewer than their alerts, and
    fewer misses than either."""
    own, fixed, sigma = scores[rule], scores["fixed"], scores["3 sigma"]
    others = (fixed.false_alarms, sigma.false_alarms, sigma.false_alerts)
    fewer = [1 - own.false_alerts / max(other, 1) for other in others]
    enough = all(found >= goal for found, goal in zip(fewer, (0.8, 0.55, 0.45), strict=True))
    is_met = enough and own.missed < min(fixed.missed, sigma.missed)
    return (
        f"{rule}: {fewer[0]:.0%} fewer false alerts than fixed limits have false alarms, "
        f"{fewer[1]:.0%} than 3 sigma, {fewer[2]:.0%} than 3 sigma by cause; {own.missed} missed, "
        f"{fixed.missed} and {sigma.missed} by these: the goal is {'met' if is_met else 'not met'}"
    )


def _together(several: Sequence[Judged]) -> Judged:
    def added(parts: Iterable[dict[Any, Score]]) -> dict[Any, Score]:
        total: dict[Any, Score] = {}
        for part in parts:
            for key, score in part.items():
                total[key] = total.get(key, Score()) + score
        return total

    return Judged(
        sum(one.issues for one in several),
        sum(one.labels for one in several),
        sum(one.moved for one in several),
        added(one.scores for one in several),
        added(one.wider for one in several),
    )


def _print_line(name: str, companies: Sequence[Judged], rules: Sequence[str]) -> None:
    one = _together(companies)
    counts = map(str, (one.issues, one.labels, one.moved))
    print(_row([name, *counts, *(str(one.scores[rule]) for rule in rules)]), flush=True)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
