"""Measures the savings of stored states: a window of days against a single day, and the window once
more.

The workload is that of `workload`, on parquet with a folder per date. The window takes the mean
over eight days of every metric that has one, and the other metrics of the day alone. A run is warm
and lasts from the open session to the last verdict, listing and comparing the files included:

- a single day without stored states
- the window, with states of all days but the last
- the window once more, on the same data

Each round runs all three; the figures are medians of the ratios within a round.

    python benchmarks/states_cost.py [--rows ROWS] [--rounds 5]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from measuring import Run, run_of
from peers.engines.ours import verdicts_of
from scan_cost import session
from workload import CHECKS, DAY, SUITE, write_events

from dqx_airflow.engine.scan.states import StateCache, StateStore
from dqx_airflow.results.tables import locate
from dqx_airflow.values import DatasetRef

DAYS = 8
OF_A_DAY = ("each row:", "unique(", "unique_count(", 'maximum(event_ts) > "')
"""What has no mean over days that is a number, and what is a matter of each day."""
OPERATORS = ("between", "==", ">=", "<", ">")
SINGLE, WINDOW, RERUN = "a single day", f"a window of {DAYS} days", "the window once more"


def window_suite() -> str:
    lines = (f'assert {_over_days(text)} name "{name}"' for name, text in CHECKS.items())
    return "\n".join(['suite "Telemetry" {', 'check "W20" on events {', *lines, "}", "}"])


def _over_days(text: str) -> str:
    """An assertion over the mean of eight days: `mean(sum(a), n 8) > 0` for `sum(a) > 0`."""
    if text.startswith(OF_A_DAY):
        return text
    operator = next(word for word in OPERATORS if f" {word} " in text)
    value, _, bound = text.partition(f" {operator} ")
    return f"mean({value}, n {DAYS}) {operator} {bound}"


def judge(spark: Any, ref: DatasetRef, suite: str, day: date, states: Path) -> None:
    """Runs the suite, whose assertions must all pass."""
    memory = StateCache(spark, StateStore(locate(str(states))), "run", datetime.now(timezone.utc))
    verdicts = verdicts_of(spark, ref, suite, day, memory)
    assert all(verdicts.values()), verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="of each day")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spark = session()
    costs: dict[str, list[Run]] = {SINGLE: [], WINDOW: [], RERUN: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ref = DatasetRef("events", f"{folder}/events", format="parquet", date_column="event_date")
        write_events(spark, ref.path, options.rows, days=DAYS + 1)
        asked = partial(judge, spark, ref)
        before = folder / "before"
        asked(window_suite(), DAY - timedelta(days=1), before)
        for number in range(options.rounds + 1):
            alone, stored = folder / f"alone {number}", folder / f"stored {number}"
            shutil.copytree(before, stored)
            runs: dict[str, Callable[[], None]] = {
                SINGLE: partial(asked, SUITE, DAY, alone),
                WINDOW: partial(asked, window_suite(), DAY, stored),
                RERUN: partial(asked, window_suite(), DAY, stored),
            }
            for what, work in runs.items():
                run, _ = run_of(spark, work)
                if number:  # the first round warms up
                    costs[what].append(run)
    spark.stop()
    print(f"| {options.rows:,} rows a day | jobs | MB read | seconds | to {SINGLE} |")
    print("|---|---:|---:|---:|---:|")
    for what, found in costs.items():
        pairs = zip(found, costs[SINGLE], strict=True)
        ratio = statistics.median(run.wall_s / single.wall_s for run, single in pairs)
        seconds = statistics.median(run.wall_s for run in found)
        read = found[-1].bytes_read / 1e6
        print(f"| {what} | {found[-1].jobs} | {read:,.0f} | {seconds:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
