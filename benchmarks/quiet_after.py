"""How long rules alarm after a legal change: prints the table of `docs/evidence.md`.

    python -m benchmarks.quiet_after [--seed N ...]

In the ten businesses that are only scored, the rows and the mean price of each dataset are
multiplied from a day of the second half of the year on, without an end, and no one labels anything.
Counted are the alarms of the next 28 days beyond those without the change, and the days until seven
days without such an alarm begin. `watch` claims both as `within usual(...)`. The other rules are
three standard deviations of 28 and of 14 days, and of the same weekday of 98 days.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from statistics import mean

import numpy as np

from benchmarks.companies import DATASETS, HELD_OUT, SCORED, Company, company
from benchmarks.tuned_year import by_sigmas, usual_days

CHANGES: Mapping[str, tuple[float, ...]] = {
    "rows": (0.75, 1.25, 1.5, 2.0),
    "price": (0.83, 1.2, 1.5, 3.6),
}
CHANGED = HELD_OUT + 42
JUDGED = range(CHANGED, CHANGED + 28)
QUIET = 7


def by_watch(year: Company) -> dict[str, set[int]]:
    """The alarms of `within usual(...)`."""
    alarms = {}
    for key, series in year.values.items():
        limits = zip(JUDGED, usual_days(year, key, JUDGED), strict=True)
        alarms[key] = {
            day
            for day, one in limits
            if one is not None
            and (one.repeated == series[day] or not one.low <= series[day] <= one.high)
        }
    return alarms


RULES: dict[str, Callable[[Company], dict[str, set[int]]]] = {
    "watch": by_watch,
    "3 sigma": lambda year: by_sigmas(year, 28)[3.0],
    "z 14 d": lambda year: by_sigmas(year, 14)[3.0],
    "weekday z": lambda year: by_sigmas(year, 98, step=7)[3.0],
}


def changed(year: Company, key: str, factor: float) -> Company:
    """The company with one series only, which changes by a factor."""
    series = year.values[key].copy()
    series[CHANGED:] *= factor
    return replace(year, values={key: series})


def days_until_quiet(alarms: set[int]) -> int:
    """The days after the change until seven days without an alarm begin."""
    for day in JUDGED:
        if not alarms & {*range(day, day + QUIET)}:
            return day - CHANGED
    return len(JUDGED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    month = date.today().strftime("%Y%m")
    parser.add_argument("--seed", type=int, nargs="*", default=[int(f"{month}1")])
    given = parser.parse_args()
    years = [company(family, seed) for family in SCORED.values() for seed in given.seed]
    print(f"Alarms of 28 days beyond those without the change / days until quiet; {given.seed}\n")
    print(f"| change | {' | '.join(RULES)} |")
    print("|---|" + "---|" * len(RULES))
    for assertion, factors in CHANGES.items():
        for factor in factors:
            cells = [_measured(years, assertion, factor, rule) for rule in RULES.values()]
            print(f"| {assertion} x {factor:g} | {' | '.join(cells)} |", flush=True)


def _measured(
    years: list[Company],
    assertion: str,
    factor: float,
    rule: Callable[[Company], dict[str, set[int]]],
) -> str:
    more, days = [], []
    for year in years:
        for dataset in DATASETS:
            key = f"{dataset}.{assertion}"
            troubled = year.issues[key] | year.neutral[key]
            if troubled[CHANGED : JUDGED.stop].any() or np.isnan(year.values[key][CHANGED]):
                continue  # an incident would count as the change
            before, after = (
                {day for day in rule(changed(year, key, of))[key] if day in JUDGED}
                for of in (1.0, factor)
            )
            more.append(len(after) - len(before))
            days.append(days_until_quiet(after - before))
    return f"{mean(more):.1f} / {mean(days):.1f}"


if __name__ == "__main__":
    main()
