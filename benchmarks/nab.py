"""How `within usual(...)` judges the days of real series: those of the Numenta Anomaly Benchmark.

    git clone https://github.com/numenta/NAB    # not part of this repository
    python -m benchmarks.nab NAB

All series of at least eight weeks are read, without the first and the last day, which are not
whole. Counts, of taxi passengers and of tweets, are summed for each day, anything else is averaged.
Days from the 29th on are judged, each from those before it. A window of the labels is found if one
of its days alarms; an alarm on a day without a window is false. `by hour` judges each hour of the
day as a series of its own, and a day alarms if one of them does. `watch` claims the rows and the
mean; `with extremes` also judges the largest and the smallest value. The other rules are three
standard deviations from the mean of 28 days, and of the same weekday of 98.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.measurements import Measurements
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.values import SourceFile, Status

FEWEST_DAYS, LEARNT = 56, 28
EXTREMES = ("maximum", "minimum")
COUNTS = ("nyc_taxi", "Twitter_volume")


@dataclass(frozen=True)
class Series:
    """A series, and the dates of each of its windows."""

    name: str
    values: pd.Series
    windows: tuple[frozenset[date], ...]

    @property
    def metric(self) -> str:
        return "sum" if self.name.startswith(COUNTS) else "average"

    @property
    def dates(self) -> list[date]:
        """All dates but the first and the last."""
        days = self.values.index
        return [day.date() for day in pd.date_range(days[0].date(), days[-1].date())[1:-1]]


def series_in(folder: Path) -> list[Series]:
    labels = json.loads((folder / "labels" / "combined_windows.json").read_text())
    found = []
    for file, windows in labels.items():
        path = folder / "data" / file
        if file.startswith("artificial") or not path.exists():
            continue
        table = pd.read_csv(path, parse_dates=["timestamp"])
        dates = (frozenset(d.date() for d in pd.date_range(a[:10], b[:10])) for a, b in windows)
        one = Series(path.stem, table.set_index("timestamp")["value"].sort_index(), tuple(dates))
        if len(one.dates) >= FEWEST_DAYS - 2:
            found.append(one)
    return found


def key_of(dataset: str, metric: str) -> str:
    """The key of a stored value."""
    arguments = [] if metric == "num_rows" else ["value"]
    return json.dumps([dataset, metric, arguments, 0], separators=(",", ":"))


def by_suite(claims: str, values: pd.DataFrame) -> set[date]:
    """The dates on which a suite alarms. The columns of the values are datasets and metrics."""
    text = f'suite "NAB" {{\n{claims}\n}}'
    suite = check_source(SourceFile("suite.dql", text), needs_suite=True).valid_suite
    days = []
    for on, row in zip(values.index, values.astype(float).to_numpy().tolist(), strict=True):
        known = {
            key_of(name, metric): value
            for (name, metric), value in zip(values.columns, row, strict=True)
            if not np.isnan(value)
        }
        days.append(PastDay(on, Measurements(known)))
    backtest = Backtest(suite, days)
    by_day = zip(*backtest.judge().statuses, strict=True)
    return {
        day.date for day, found in zip(backtest.days, by_day, strict=True) if Status.FAILED in found
    }


def usual(series: Series) -> set[date]:
    return _usual_of(series, {"s": series.values})


def by_hour(series: Series) -> set[date]:
    hours = series.values.groupby(series.values.index.hour)
    return _usual_of(series, {f"h{hour}": values for hour, values in hours})


def with_extremes(series: Series) -> set[date]:
    """The mean or the sum, the largest and the smallest value of the day."""
    kinds = (series.metric, *EXTREMES)
    claims = "\n".join(
        f'assert {kind}(value) within usual({kind}(value)) name "{kind}"' for kind in kinds
    )
    daily = {("s", kind): _daily(series, series.values, kind) for kind in ("num_rows", *kinds)}
    return by_suite(f'check "C" on s {{ {claims} }}', pd.DataFrame(daily))


def _usual_of(series: Series, parts: dict[str, pd.Series]) -> set[date]:
    metric = series.metric
    claim = f"assert {metric}(value) within usual({metric}(value))"
    claims = "\n".join(f'check "{name}" on {name} {{ {claim} name "{name}" }}' for name in parts)
    daily = {
        (name, kind): _daily(series, values, kind)
        for name, values in parts.items()
        for kind in ("num_rows", metric)  # a day without rows is missing
    }
    return by_suite(claims, pd.DataFrame(daily))


def watch(series: Series) -> set[date]:
    kinds = ("num_rows", "average")
    claims = "\n".join(
        f'assert {call} within usual({call}) name "{number}"'
        for number, call in enumerate(("num_rows()", "average(value)"))
    )
    daily = {("s", metric): _daily(series, series.values, metric) for metric in kinds}
    return by_suite(f'check "C" on s {{ {claims} }}', pd.DataFrame(daily))


def _daily(series: Series, values: pd.Series, metric: str) -> pd.Series:
    how = {
        "num_rows": "count",
        "sum": "sum",
        "average": "mean",
        "maximum": "max",
        "minimum": "min",
    }[metric]
    return values.groupby(values.index.date).agg(how).reindex(series.dates)


def by_sigmas(series: Series, days: int, step: int, extremes: tuple[str, ...] = ()) -> set[date]:
    """The dates of values beyond three standard deviations from the mean of the days before, `step`
    days apart."""
    found = set()
    for metric in (series.metric, *extremes):
        daily = _daily(series, series.values, metric)
        for at in range(LEARNT, len(daily)):
            before = daily.to_numpy()[max(0, at - days) : at][::-1][step - 1 :: step]
            middle, spread = np.nanmean(before), np.nanstd(before, ddof=1)
            if abs(daily.iloc[at] - middle) > 3 * spread:
                found.add(daily.index[at])
    return found


RULES: dict[str, Callable[[Series], set[date]]] = {
    "3 sigma, 28 days": partial(by_sigmas, days=28, step=1),
    "weekday z-score": partial(by_sigmas, days=98, step=7),
    "3 sigma, with extremes": partial(by_sigmas, days=28, step=1, extremes=EXTREMES),
    "within usual": usual,
    "usual, with extremes": with_extremes,
    "by hour": by_hour,
    "watch": watch,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    print(f"| series | days | windows | {' | '.join(RULES)} |")
    print("|---|---|---|" + "---|" * len(RULES))
    total = np.zeros(2 + 2 * len(RULES), int)
    of_taxis = total
    for series in series_in(given.folder):
        judged = series.dates[LEARNT:]
        windows = [window for window in series.windows if window & set(judged)]
        fine = set(judged).difference(*windows)
        row = [len(judged), len(windows)]
        for rule in RULES.values():
            alarms = rule(series) & set(judged)
            row += [sum(bool(window & alarms) for window in windows), len(alarms & fine)]
        total = total + row
        of_taxis = np.array(row) if series.name == "nyc_taxi" else of_taxis
        print(shown(series.name, row), flush=True)
    print(shown("**all**", total.tolist()))
    print(shown("**all but nyc_taxi**", (total - of_taxis).tolist()))


def shown(name: str, row: list[int]) -> str:
    pairs = (f"{found}/{false}" for found, false in zip(row[2::2], row[3::2], strict=True))
    return f"| {name} | {row[0]} | {row[1]} | {' | '.join(pairs)} |"


if __name__ == "__main__":
    main()
