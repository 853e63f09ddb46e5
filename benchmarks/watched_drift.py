"""The false alarms of `watch orders drift`, and the shifts that it finds, in simulated companies:
prints the figures of `docs/evidence.md`.

    python -m benchmarks.watched_drift [--families ABCDEFGHIJKL] [--seed N ...]

Each dataset of a company (`companies.py`) gets columns with 2, 6, 30 and 300 values. Their shares
differ by weekday, wander, vary from day to day, and change in campaigns. Every 17th day of the
second half has a fault: the most common value is lost or changes places with a rare one, or a fifth
or a twentieth of the rows has a new value. Days with an issue of the dataset count neither way.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.companies import DATASETS, DAYS, HELD_OUT, TUNED_ON, Company, company
from dqx_airflow.metrics.drift import SMALLEST_SHARE
from dqx_airflow.metrics.usual_limits import DEFAULT_DAYS, DayBefore, Kind, usual_limits

REFERENCES = {
    "usual n 28": range(1, 29),
    "usual n 8, step 7": range(7, 57, 7),
    "usual n 4, step 7": range(7, 29, 7),
}
FAULTS = ("lost", "a fifth is new", "swapped", "a twentieth is new")
AVAILABLE, LARGE_SHIFT, TIMES_NOISE = 0.9, 0.25, 20


def rows_by_value(year: Company, rows: np.ndarray, values: int, rng: np.random.Generator) -> tuple:
    """The rows of each day and value, with a last value that no row has, and the campaign days."""
    is_campaign = np.zeros(DAYS, bool)
    for _ in range(year.family.campaigns):
        first = int(rng.integers(35, 355))
        is_campaign[first : first + int(rng.integers(1, 6))] = True
    shares = np.log(rng.dirichlet(np.ones(values)) + 1e-5)
    shares = shares + np.cumsum(rng.normal(0, 0.01, (DAYS, values)), 0)
    shares += rng.normal(0, rng.uniform(0.02, 0.08), (DAYS, values))
    shares += rng.normal(0, 0.15, (7, values))[[on.weekday() for on in year.dates]]
    shares += is_campaign[:, None] * rng.normal(0, 0.4, values)
    shares = np.exp(shares) / np.exp(shares).sum(1, keepdims=True)
    drawn = [rng.multinomial(int(rows[day]), shares[day]) for day in range(DAYS)]
    return np.pad(np.array(drawn, float), ((0, 0), (0, 1))), is_campaign


def planted(rows: np.ndarray, fault: str) -> np.ndarray:
    """The rows of a day by value, with a fault."""
    found, order = rows.copy(), np.argsort(-rows)
    if fault == "lost":
        found[order[0]] = 0
    elif fault == "swapped":
        found[order[[0, -2]]] = found[order[[-2, 0]]]
    else:
        moved = np.floor(found * (0.2 if fault == "a fifth is new" else 0.05))
        found -= moved
        found[-1] += moved.sum()
    return found


def psi(rows: np.ndarray, day: int, lags: Sequence[int]) -> float:
    """The drift of a day; NaN if too few of the others have rows."""
    earlier = [day - lag for lag in lags if day >= lag and rows[day - lag].sum()]
    if len(earlier) < AVAILABLE * len(lags) or not rows[day].sum():
        return math.nan
    both = np.array([rows[day], rows[earlier].sum(0)])
    some = both.sum(0) > 0
    p, q = np.maximum(both / both.sum(1, keepdims=True), SMALLEST_SHARE)
    return float(((p - q) * np.log(p / q))[some].sum())


def judge(
    year: Company, dataset: str, values: int, lags: Sequence[int], rng: np.random.Generator
) -> Counter[str]:
    """How many days and faults of a column there are, and alarm."""
    rows, is_campaign = rows_by_value(year, year.parts[dataset]["rows"], values, rng)
    key = f"{dataset}.rows"
    is_quiet = ~(year.issues[key] | year.neutral[key]) & (rows.sum(1) > 0)
    faults = {}
    for number, day in enumerate(range(HELD_OUT + 10, DAYS - 5, 17)):
        fault = FAULTS[number % len(FAULTS)]
        changed = planted(rows[day], fault)
        if is_quiet[day] and rows[day].sum() >= TIMES_NOISE and changed.sum():
            rows[day], faults[day] = changed, fault
    drift = [psi(rows, day, lags) for day in range(DAYS)]
    known = [None if math.isnan(value) else value for value in drift]
    days = [day for day in range(HELD_OUT, DAYS) if is_quiet[day]]
    before = [DayBefore(year.dates[day], known[max(0, day - DEFAULT_DAYS) : day]) for day in days]
    found: Counter[str] = Counter()
    for day, usual in zip(days, usual_limits(before, Kind.OTHER, year.family.country), strict=True):
        noise = TIMES_NOISE * (rows[day] > 0).sum() / rows[day].sum()
        highest = math.inf if usual is None else usual.high
        is_alarm = bool(drift[day] > max(LARGE_SHIFT, noise, highest))
        if day in faults:
            found["faults"] += 1
            found["found"] += is_alarm
            continue
        found["days"] += 1
        found["skipped"] += math.isnan(drift[day])
        found["false"] += is_alarm
        found["in campaigns"] += is_alarm and bool(is_campaign[day])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--families", default="".join(TUNED_ON))
    parser.add_argument("--seed", type=int, nargs="+", default=[2026111])
    arguments = parser.parse_args()
    years = [
        company(TUNED_ON[name], seed) for name in arguments.families for seed in arguments.seed
    ]
    for reference, lags in REFERENCES.items():
        total: Counter[str] = Counter()
        rng = np.random.default_rng(arguments.seed)
        for year in years:
            for dataset in DATASETS:
                for values in (2, 6, 30, 300):
                    total += judge(year, dataset, values, lags, rng)
        print(
            f"{reference}: {total['false']} of {total['days']} days alarmed, "
            f"{total['in campaigns']} of them in campaigns; {total['skipped']} were skipped; "
            f"{total['found']} of {total['faults']} faults found"
        )


if __name__ == "__main__":
    main()
