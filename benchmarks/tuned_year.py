"""A simulated year of daily metrics: the false alarms and misses that tuned thresholds leave.

    python -m benchmarks.tuned_year [--seed N ...] [--shape NAME ...] [--cost F M] [--holidays]
        [--svg FILE]

The thresholds start as a person would guess them, for a shop (`simulated_years.py`). In the first
half of the year, a person labels 60 alerts, those of the least known assertions first; `dql tune`
proposes every four weeks, and the person approves. The second half is judged with the tuned
thresholds, with those of the start, and with a rolling rule for the same seven values: three
standard deviations on either side of the mean of the last 28 days, days with issues included. The
rule is also tried with fewer standard deviations, until it misses no more than the tuned
thresholds. `--cost` sets the costs of a false alarm and of a missed issue for the tuner. Nothing is
measured on Spark.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from statistics import mean, stdev

from benchmarks.simulated_years import DAYS, FIRST, SHAPES, Day
from dqx_airflow.dql import nodes
from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.term_values import Measurements
from dqx_airflow.results.past import PastDay, StoredVerdict
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.tuning.calendars import holidays_of
from dqx_airflow.tuning.protection import judge_change
from dqx_airflow.tuning.suite_file import SuiteText, with_edits
from dqx_airflow.tuning.tune import tune
from dqx_airflow.values import SourceFile, Status

LEARNED, MOST_LABELS = 182, 60
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


@dataclass(frozen=True, slots=True)
class Score:
    """The alarms and misses of a half year.

    `missed` counts issues that their assertion did not find, `unseen` incidents on whose day no
    assertion failed.
    """

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
class Learned:
    """The suite after half a year, and the suite in force in each week until then."""

    text: str
    labels: int
    approved: int
    in_force: tuple[str, ...]


def node_of(text: str) -> nodes.Suite:
    checked = check_source(SourceFile("suite.dql", text), needs_suite=True)
    assert checked.suite is not None
    assert not checked.errors, checked.errors
    return checked.suite


def past_day(day: Day) -> PastDay:
    values = {KEYS[name]: value for name, value in day.metrics.items()}
    return PastDay(day.date, Measurements(values))


def simulated(
    days: Sequence[Day], suite_text: str = SUITE, holidays: Mapping[date, str] | None = None
) -> Learned:
    """Half a year of labels and proposals."""
    text, approved = suite_text, 0
    past: list[PastDay] = []
    asked: Counter[tuple[str, str]] = Counter()
    in_force: list[str] = []
    for week in range(0, LEARNED, 7):
        in_force.append(text)
        suite = node_of(text)
        fresh = [past_day(day) for day in days[week : min(week + 7, LEARNED)]]
        backtest = Backtest(suite, [*past[-WINDOW - 7 :], *fresh])
        names = [one.key for one in backtest.assertions]
        last = [row[-len(fresh) :] for row in backtest.judge().statuses]
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
                key: StoredVerdict(status, "", None)
                for key in names
                if (status := statuses[key][index]) is not None
            }
            past.append(replace(day, verdicts=verdicts, labels=said))
        if (week // 7 + 1) % 4 and week + 7 < LEARNED:
            continue
        for tuned in tune(SuiteText(text, suite, node_of), past, holidays=holidays):
            if tuned.proposal is None:
                continue
            one, now = tuned.proposal, node_of(text)
            after = with_edits(text, now, one.values, one.profile, one.form)
            if not judge_change(now, node_of(after), one.agent, form=one.form).refusals:
                text, approved = after, approved + 1
    return Learned(text, asked.total(), approved, tuple(in_force))


def alarms_of(text: str, days: Sequence[Day]) -> list[Set[str]]:
    """For each day, the assertions of a suite that would have failed."""
    backtest = Backtest(node_of(text), [past_day(day) for day in days])
    names = [one.name for one in backtest.assertions]
    return [
        {name for name, status in zip(names, of_day, strict=True) if status is Status.FAILED}
        for of_day in zip(*backtest.judge().statuses, strict=True)
    ]


def score(text: str, days: Sequence[Day], held: range) -> Score:
    """The score of a suite on some of the days."""
    return scored(days, alarms_of(text, days), held)


def scored(days: Sequence[Day], alarms: Sequence[Set[str]], held: range) -> Score:
    return Score.of([days[number] for number in held], [alarms[number] for number in held])


def distances(days: Sequence[Day]) -> dict[str, list[float]]:
    """By assertion, the distance of its value from the mean of the last 28 days, in standard
    deviations.

    Days with issues count; with fewer than 28 days of data the distance is 0.
    """
    values = {
        "rows": [day.metrics["rows"] for day in days],
        "revenue": [day.metrics["revenue"] for day in days],
        "nulls": [day.metrics["nulls"] / max(day.metrics["rows"], 1) for day in days],
        "duplicates": [day.metrics["duplicates"] for day in days],
        "change": [abs(day.metrics["rows"] / max(day.metrics["before"], 1) - 1) for day in days],
        "price": [day.metrics["price"] for day in days],
        "ids": [day.metrics["ids"] for day in days],
    }
    found = {}
    for name, series in values.items():
        away = [0.0] * len(series)
        for number in range(WINDOW, len(series)):
            window = series[number - WINDOW : number]
            difference, spread = abs(series[number] - mean(window)), stdev(window)
            away[number] = difference / spread if spread else math.inf if difference else 0.0
        found[name] = away
    return found


def sigma_score(away: Mapping[str, Sequence[float]], days: Sequence[Day], sigmas: float) -> Score:
    """The score of a rule that alarms beyond some standard deviations from the rolling mean."""
    held = held_out(days)
    alarms: list[Set[str]] = [
        {name for name, series in away.items() if series[number] > sigmas}
        for number in range(len(days))
    ]
    return scored(days, alarms, held)


def held_out(days: Sequence[Day]) -> range:
    return range(min(LEARNED, len(days)), len(days))


def as_careful(away: Mapping[str, Sequence[float]], days: Sequence[Day], most: Score) -> float:
    """The largest number of standard deviations, to a tenth, with which the rolling rule misses no
    more than the thresholds.
    """
    for tenths in range(10 * SIGMAS, 0, -1):
        found = sigma_score(away, days, tenths / 10)
        if found.missed <= most.missed and found.unseen <= most.unseen:
            return tenths / 10
    return 0.0


def with_costs(text: str, false_positive: float, false_negative: float) -> str:
    """The suite with a cost for each tunable assertion."""
    cost = f"@cost(false_positive={false_positive:g}, false_negative={false_negative:g})"
    head, *claims = text.split("        assert ")
    return head + "".join(
        f"        {'' if 'P0' in claim else cost + chr(10) + '        '}assert {claim}"
        for claim in claims
    )


def by_week(learned: Learned, days: Sequence[Day]) -> list[tuple[int, int]]:
    """The false alarms of each week, with the thresholds of the start and with those in force."""
    in_force = [*learned.in_force]
    in_force += [learned.text] * (len(range(0, len(days), 7)) - len(in_force))
    alarms = {text: alarms_of(text, days) for text in {SUITE, *in_force}}
    weeks = []
    for number, now in enumerate(in_force):
        week = range(7 * number, min(7 * number + 7, len(days)))
        start, tuned = (scored(days, alarms[text], week) for text in (SUITE, now))
        weeks.append((start.false_alarms, tuned.false_alarms))
    return weeks


def picture(weeks: Sequence[tuple[int, int]]) -> str:
    """The false alarms of each week as bars: pale with the thresholds of the start, dark with
    those in force.
    """
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


def total(scores: Iterable[Score]) -> Score:
    rows = [(one.false_alarms, one.missed, one.unseen) for one in scores]
    return Score(*(sum(column) for column in zip(*rows, strict=True)))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    arguments.add_argument("--shape", nargs="*", default=["shop"], choices=SHAPES)
    arguments.add_argument(
        "--cost",
        type=float,
        nargs=2,
        default=[1, 10],
        metavar=("FALSE_ALARM", "MISS"),
        help="what the suite declares",
    )
    arguments.add_argument("--holidays", action="store_true", help="look at public holidays")
    arguments.add_argument("--svg", type=Path, help="draws the first of the years")
    given = arguments.parse_args()
    holidays = holidays_of("DE", FIRST, FIRST + timedelta(days=DAYS)) if given.holidays else None
    text = with_costs(SUITE, *given.cost) if given.cost != [1, 10] else SUITE
    print("false alarms/missed issues/incidents that nothing saw")
    print(
        "shape       seed  issues  labels  approved          start        3-sigma          tuned"
        "     sigmas that miss no more"
    )
    every = []
    for shape in given.shape:
        for seed in given.seed:
            days = SHAPES[shape].days(seed)
            held, away = held_out(days), distances(days)
            learned = simulated(days, text, holidays)
            if given.svg and not every:
                given.svg.write_text(picture(by_week(learned, days)), encoding="utf-8")
            tuned = score(learned.text, days, held)
            careful = as_careful(away, days, tuned)
            cells = (
                score(SUITE, days, held),
                sigma_score(away, days, SIGMAS),
                tuned,
                sigma_score(away, days, careful),
            )
            every.append(cells)
            issues = sum(len(days[number].issues) for number in held)
            shown = "  ".join(f"{told(one):>13}" for one in cells)
            print(
                f"{shape:<10}  {seed:>4}  {issues:>6}  {learned.labels:>6}  "
                f"{learned.approved:>8}  {shown} ({careful:g})",
                flush=True,
            )
    shown = "  ".join(f"{told(total(column)):>13}" for column in zip(*every, strict=True))
    print("all" + " " * 37 + shown)


if __name__ == "__main__":
    main()
