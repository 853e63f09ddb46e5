"""A simulated year of daily metrics: how many false alarms and misses tuned thresholds leave.

    python -m benchmarks.tuned_year [--seed N ...] [--holidays] [--svg FILE]

A shop with weekdays, a season, growth, holidays and planted incidents; thresholds as people guess
them. In the first half of the year people label 60 alerts, those first of whose assertion they know
least; `dql tune` proposes every four weeks, and a person approves. The second half is judged with
what came of it, against the thresholds of the start and against a rule of three standard deviations
over the last 28 days. Nothing is measured.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from statistics import mean, stdev

from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.measured import Measurements
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.calendars import holidays_of
from dqx_airflow.tuning.past_days import PastDay, StoredVerdict
from dqx_airflow.tuning.protection import judge_change
from dqx_airflow.tuning.suite_text import SuiteText, with_edits
from dqx_airflow.tuning.tune import tune
from dqx_airflow.values import SourceFile, Status

FIRST = date(2025, 1, 1)
DAYS, LEARNED, MOST_LABELS = 365, 182, 60
WINDOW, SIGMAS = 28, 3

SUITE = """\
suite "Shop" {
    const LEAST_ROWS = 9000 tunable [1000, 12000]
    const LEAST_REVENUE = 190000 tunable [20000, 300000]
    const MAX_NULLS = 2% tunable [0%, 20%]
    const MAX_DUPLICATES = 4 tunable [0, 100]
    const MAX_CHANGE = 0.2 tunable [0.05, 2.0]
    const LOW_PRICE = 19.5 tunable [5.0, 25.0]
    const HIGH_PRICE = 20.5 tunable [15.0, 40.0]

    check "Shop" on orders {
        assert num_rows() >= LEAST_ROWS name "rows"
        assert sum(revenue) >= LEAST_REVENUE name "revenue"
        assert null_count(email) / num_rows() <= MAX_NULLS name "nulls"
        assert duplicate_count([id]) <= MAX_DUPLICATES name "duplicates"
        assert day_over_day(num_rows()) <= MAX_CHANGE name "change"
        assert average(price) between LOW_PRICE and HIGH_PRICE name "price"
        @required
        assert null_count(id) == 0 name "ids" severity P0
    }
}
"""
KEYS = {
    "rows": '["orders","num_rows",[],0]',
    "before": '["orders","num_rows",[],1]',
    "revenue": '["orders","sum",["revenue"],0]',
    "nulls": '["orders","null_count",["email"],0]',
    "duplicates": '["orders","duplicate_count",["id"],0]',
    "price": '["orders","average",["price"],0]',
    "ids": '["orders","null_count",["id"],0]',
}
HOLIDAYS = {(1, 1), (4, 18), (5, 1), (10, 3), (12, 25), (12, 26)}


@dataclass(frozen=True, slots=True)
class Day:
    """The metrics of a day, and by assertion whether there was a real issue."""

    date: date
    metrics: Mapping[str, float]
    issues: frozenset[str]


@dataclass(frozen=True, slots=True)
class Score:
    """`missed` counts assertions that passed over an issue of theirs, `unseen` the incidents on
    whose day no assertion failed at all."""

    false_alarms: int
    missed: int
    unseen: int

    @classmethod
    def of(cls, days: Sequence[Day], alarms: Sequence[Set[str]]) -> Score:
        """:param alarms: for each day the assertions that failed."""
        pairs = [(day.issues, failed) for day, failed in zip(days, alarms, strict=True)]
        return cls(
            sum(len(failed - issues) for issues, failed in pairs),
            sum(len(issues - failed) for issues, failed in pairs),
            sum(bool(issues) and not issues & failed for issues, failed in pairs),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    start: Score
    three_sigma: Score
    tuned: Score
    incidents: int
    labels: int
    approved: int
    weeks: tuple[tuple[int, int], ...]
    """False alarms of each week: with the thresholds of the start, and with those in force."""


def simulated_days(seed: int) -> list[Day]:
    """The year: about one incident in twelve days."""
    chance, days, before = random.Random(seed), [], 10_000
    for number in range(DAYS):
        on = FIRST + timedelta(days=number)
        level = (
            10_000 * (1 + 0.15 * number / DAYS) * (1 + 0.08 * math.sin(number / DAYS * 2 * math.pi))
        )
        level *= 0.55 if on.weekday() == 6 else 0.9 if on.weekday() == 5 else 1.0
        level *= 0.6 if (on.month, on.day) in HOLIDAYS else 1.0
        rows = int(level * chance.gauss(1, 0.04))
        price = chance.gauss(20, 0.35)
        share = min(max(chance.gauss(0.02, 0.006), 0.002), 0.05)
        duplicates = int(chance.expovariate(1 / 4))
        ids, issues = 0, set()
        if number > 30 and chance.random() < 0.085:
            kind = chance.choice(("lost", "nulls", "duplicates", "price", "ids"))
            if kind == "lost":
                rows = int(rows * chance.uniform(0.05, 0.25))
                issues |= {"rows", "revenue", "change"}
            elif kind == "nulls":
                share = chance.uniform(0.12, 0.6)
            elif kind == "duplicates":
                duplicates = chance.randint(60, 900)
            elif kind == "price":
                price *= chance.choice((0.01, 0.5, 1.6, 100))
                if price < 15:
                    issues.add("revenue")
            else:
                ids = chance.randint(1, 40)
            issues |= {kind} & {"nulls", "duplicates", "price", "ids"}
        metrics = {
            "rows": rows,
            "before": before,
            "revenue": rows * price,
            "nulls": int(rows * share),
            "duplicates": duplicates,
            "price": price,
            "ids": ids,
        }
        days.append(Day(on, metrics, frozenset(issues)))
        before = rows
    return days


def node_of(text: str) -> nodes.Suite:
    checked = check_source(SourceFile("suite.dql", text), needs_suite=True)
    assert checked.suite is not None
    assert not checked.errors, checked.errors
    return checked.suite


def past_day(day: Day) -> PastDay:
    values = {KEYS[name]: value for name, value in day.metrics.items()}
    return PastDay(day.date, Measurements(values))


def simulated(seed: int, holidays: Mapping[date, str] | None = None) -> Outcome:
    """Half a year of labels and proposals, and the half after it."""
    days = simulated_days(seed)
    text, approved = SUITE, 0
    past: list[PastDay] = []
    asked: Counter[tuple[str, str]] = Counter()
    in_force: list[str] = []
    for week in range(0, LEARNED, 7):
        in_force.append(text)
        suite = node_of(text)
        fresh = [past_day(day) for day in days[week : min(week + 7, LEARNED)]]
        backtest = Backtest(suite, [*past, *fresh])
        names = [one.key for one in backtest.assertions]
        last = [row[len(past) :] for row in backtest.judge().statuses]
        statuses = dict(zip(names, last, strict=True))
        chosen = set()
        for _ in range(MOST_LABELS * (week + 7) // LEARNED - asked.total()):
            alerts = [
                (index, key)
                for index in range(len(fresh))
                for key in names
                if statuses[key][index] is Status.FAILED and (index, key) not in chosen
            ]
            if alerts:
                alert = min(alerts, key=lambda one: asked[one[1]])
                chosen.add(alert)
                asked[alert[1]] += 1
        for index, day in enumerate(fresh):
            said = {key: key[1] in days[week + index].issues for n, key in chosen if n == index}
            verdicts = {
                key: StoredVerdict(known_status(statuses[key][index]), "", None) for key in names
            }
            past.append(replace(day, verdicts=verdicts, labels=said))
        if (week // 7 + 1) % 4 and week + 7 < LEARNED:
            continue
        found = tune(SuiteText(text, suite, node_of), past, holidays=holidays)
        for tuned in found:
            if tuned.proposal is None:
                continue
            one, now = tuned.proposal, node_of(text)
            after = with_edits(text, now, one.values, one.profile, one.form)
            if not judge_change(now, node_of(after), one.agent, form=one.form).refusals:
                text, approved = after, approved + 1
    held = range(LEARNED, DAYS)
    in_force += [text] * (len(range(0, DAYS, 7)) - len(in_force))
    weeks = []
    for number, now in enumerate(in_force):
        week = range(7 * number, min(7 * number + 7, DAYS))
        found = [score(one, days, week).false_alarms for one in (SUITE, now)]
        weeks.append((found[0], found[1]))
    return Outcome(
        score(SUITE, days, held),
        three_sigma(days),
        score(text, days, held),
        sum(len(days[number].issues) for number in held),
        asked.total(),
        approved,
        tuple(weeks),
    )


def known_status(status: Status | None) -> Status:
    assert status is not None
    return status


def score(text: str, days: Sequence[Day], held: range) -> Score:
    """What the suite of a text would have said on some of the days."""
    backtest = Backtest(node_of(text), [past_day(day) for day in days])
    names = [one.name for one in backtest.assertions]
    by_day = list(zip(*backtest.judge().statuses, strict=True))
    failed = [
        {
            name
            for name, status in zip(names, by_day[number], strict=True)
            if status is Status.FAILED
        }
        for number in held
    ]
    return Score.of([days[number] for number in held], failed)


def three_sigma(days: list[Day]) -> Score:
    """An alarm where a value is further than three standard deviations from the mean of the last
    four weeks, for the same seven values."""
    values = {
        "rows": [day.metrics["rows"] for day in days],
        "revenue": [day.metrics["revenue"] for day in days],
        "nulls": [day.metrics["nulls"] / day.metrics["rows"] for day in days],
        "duplicates": [day.metrics["duplicates"] for day in days],
        "change": [abs(day.metrics["rows"] / day.metrics["before"] - 1) for day in days],
        "price": [day.metrics["price"] for day in days],
        "ids": [day.metrics["ids"] for day in days],
    }
    alarms: list[set[str]] = [set() for _ in days[LEARNED:]]
    for name, series in values.items():
        for number in range(LEARNED, DAYS):
            window = series[number - WINDOW : number]
            if abs(series[number] - mean(window)) > SIGMAS * stdev(window):
                alarms[number - LEARNED].add(name)
    return Score.of(days[LEARNED:], alarms)


def picture(weeks: Sequence[tuple[int, int]]) -> str:
    """The false alarms of each week as bars: pale with the thresholds of the start, dark with those
    that were in force."""
    width, height, base, left = 12, 150, 180, 40
    scale = height / max(before for before, _ in weeks)
    bars = []
    for number, (before, after) in enumerate(weeks):
        for count, color in ((before, "#d8c7a8"), (after, "#2f6f62")):
            x, y = left + number * width, base - count * scale
            bars.append(
                f'<rect x="{x}" y="{y:.1f}" width="{width - 3}" height="{count * scale:.1f}" '
                f'fill="{color}"/>'
            )
    half = left + LEARNED // 7 * width - 2
    right = left + len(weeks) * width
    texts = [
        (left, 16, "False alarms a week: thresholds of the start (pale), those in force (dark)"),
        (left, base + 18, "60 alerts are labelled, proposals are approved"),
        (half + 6, base + 18, "nothing more is changed"),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 10} {base + 30}" '
            'font-family="sans-serif" font-size="12" role="img">',
            "<title>False alarms of a simulated year, by week</title>",
            f'<rect width="{right + 10}" height="{base + 30}" fill="#ffffff"/>',
            *bars,
            f'<line x1="{half}" y1="24" x2="{half}" y2="{base}" stroke="#888888"/>',
            f'<line x1="{left}" y1="{base}" x2="{right}" y2="{base}" stroke="#333333"/>',
            *(f'<text x="{x}" y="{y}" fill="#333333">{text}</text>' for x, y, text in texts),
            "</svg>\n",
        ]
    )


def told(one: Score) -> str:
    return f"{one.false_alarms}/{one.missed}/{one.unseen}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    arguments.add_argument("--holidays", action="store_true", help="look at public holidays")
    arguments.add_argument("--svg", type=Path, help="draws the first of the years")
    given = arguments.parse_args()
    holidays = holidays_of("DE", FIRST, FIRST + timedelta(days=DAYS)) if given.holidays else None
    print("false alarms/missed issues/incidents that nothing saw")
    print("seed  issues  labels  approved          start        3-sigma          tuned")
    every = []
    for seed in given.seed:
        found = simulated(seed, holidays)
        if given.svg and seed == given.seed[0]:
            given.svg.write_text(picture(found.weeks), encoding="utf-8")
        cells = (found.start, found.three_sigma, found.tuned)
        every.append(cells)
        shown = "  ".join(f"{told(one):>13}" for one in cells)
        print(f"{seed:>4}  {found.incidents:>6}  {found.labels:>6}  {found.approved:>8}  {shown}")
    sums = (
        Score(*(sum(getattr(one, name) for one in column) for name in Score.__slots__))
        for column in zip(*every, strict=True)
    )
    print("all" + " " * 25 + "  ".join(f"{told(one):>13}" for one in sums))


if __name__ == "__main__":
    main()
