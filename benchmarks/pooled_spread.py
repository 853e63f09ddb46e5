"""Whether the limits of `within usual(...)` gain if the assertions of one kind share their spread:
prints false alarms and missed issues, as in `tuned_year.py`, of limits that each assertion
estimates alone, and of those drawn towards the mean of its kind.

    python -m benchmarks.pooled_spread [--families ABCDEF] [--seed 1 2] [--days 100]

A company has five assertions of each kind, one for each dataset. The distance of a limit from the
expected value, on a scale where the noise is about the same at every size, contains the spread and
the tail of the errors. It becomes the mean of the own distance, weighted by the known days, and of
that of its kind, weighted as if `--days` days were known of it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from benchmarks.companies import ASSERTIONS, DATASETS, DAYS, HELD_OUT, TUNED_ON, Company, company
from benchmarks.tuned_year import Score, beyond, scored, usual_days
from dqx_airflow.metrics.usual_limits import UsualLimits

SPANS = {"second half of the year": range(HELD_OUT, DAYS), "days 35 to 91": range(35, 92)}


def _logarithm(value: float) -> float:
    return math.log(max(value, 1e-300))


def _root(value: float) -> float:
    return math.sqrt(max(value, 0))


def _square(root: float) -> float:
    return max(root, 0) ** 2


LOGARITHM = (_logarithm, math.exp)
ROOT = (_root, _square)
COMPLEMENT = (lambda share: -_root(1 - share), lambda root: 1 - _square(-root))
Limits: TypeAlias = Mapping[str, Sequence[UsualLimits | None]]
Scale: TypeAlias = tuple[Callable[[float], float], Callable[[float], float]]
SCALES: Mapping[str, Scale] = {
    "rows": LOGARITHM,
    "amount": LOGARITHM,
    "price": LOGARITHM,
    "nulls": ROOT,
    "matched": COMPLEMENT,
    "keys": ROOT,
}


def alarms(year: Company, judged: range, limits: Limits, pooled_days: int) -> dict[str, set[int]]:
    """For each assertion the days that are not usual; alone with 0 pooled days."""
    found: dict[str, set[int]] = {}
    for assertion in ASSERTIONS:
        keys = [f"{dataset}.{assertion}" for dataset in DATASETS]
        forth, back = SCALES[assertion]
        for number, day in enumerate(judged):
            own = {
                key: np.array([forth(one.low), forth(one.expected), forth(one.high)])
                for key in keys
                if (one := limits[key][number]) is not None
            }
            distances = {key: np.abs(ends - ends[1]) for key, ends in own.items()}
            of_kind = np.mean([*distances.values()], axis=0)
            for key, ends in own.items():
                series = year.values[key]
                known = np.count_nonzero(~np.isnan(series[max(0, day - 126) : day]))
                share = pooled_days / (known + pooled_days)
                below, _, above = (1 - share) * distances[key] + share * of_kind
                low, high = back(ends[1] - below), back(ends[1] + above)
                is_repeated = limits[key][number].repeated == series[day]
                if is_repeated or beyond(assertion, series[day], low, high):
                    found.setdefault(key, set()).add(day)
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--families", default="ABCDEF")
    arguments.add_argument("--seed", type=int, nargs="*", default=[1, 2])
    arguments.add_argument("--days", type=int, default=100)
    given = arguments.parse_args()
    years = [company(TUNED_ON[name], seed) for name in given.families for seed in given.seed]
    for span, judged in SPANS.items():
        totals = {0: Score(), given.days: Score()}
        for year in years:
            limits = {key: usual_days(year, key, judged) for key in year.values}
            for days in totals:
                totals[days] += scored(year, alarms(year, judged, limits, days), judged)
        print(f"{span}: alone {totals[0]}, pooled {totals[given.days]}", flush=True)


if __name__ == "__main__":
    main()
