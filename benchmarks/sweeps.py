"""What it costs to ask for more: days, assertions, keys. Warm, beside the plans written by hand.

All ways of a step run one after the other in each round, in changing order, in one JVM. The ratio
within a round is what counts, of the wall time and of the CPU seconds of the JVM.

The result goes to benchmarks/results/sweeps.json, and from there into the docs.

    python benchmarks/sweeps.py [--rows ROWS] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import report
from measuring import conditions, rounds
from scan_cost import gate, session, wide_suite, write_wide
from workload import DAY, events, write_events

from dqx_airflow.values import DatasetRef

Ways = Mapping[str, Callable[[], object]]

WINDOWS = (1, 8, 30)
ASSERTIONS = (10, 100, 1_000)
KEYS = (1, 2, 4, 8)
KEY = ("machine_id", "event_ts")
MORE = (
    (),
    ("casino_id",),
    ("game_type",),
    ("amount_wagered",),
    ("amount_won",),
    ("casino_id", "game_type"),
    ("casino_id", "amount_wagered"),
    ("game_type", "amount_wagered"),
)
"""What is added to the key, so that there are several."""


def windows(spark: Any, folder: str, rows: int) -> dict[str, Ways]:
    """Means over some days of five metrics. The day has a thirtieth of the rows."""
    path = f"{folder}/days"
    write_events(spark, path, rows // WINDOWS[-1], days=WINDOWS[-1])
    aggregates = {
        "num_rows()": "count(1)",
        "average(amount_wagered)": "avg(amount_wagered)",
        "maximum(amount_won)": "max(amount_won)",
        "null_count(player_id)": "count_if(player_id IS NULL)",
        "sum(amount_won)": "sum(amount_won)",
    }
    ref = DatasetRef("events", path, format="parquet", date_column="event_date")

    def step(days: int) -> Ways:
        dates = [DAY - timedelta(days=back) for back in range(days)]
        suite = _suite(
            f'assert mean({metric}, n {days}) > 0 name "{number}"'
            for number, metric in enumerate(aggregates)
        )

        def naive() -> None:
            for day in dates:
                frame = spark.read.parquet(path).where(f"event_date = DATE'{day}'")
                frame.selectExpr(*aggregates.values()).collect()

        def tuned() -> None:
            texts = ", ".join(f"DATE'{day}'" for day in dates)
            frame = spark.read.parquet(path).where(f"event_date IN ({texts})")
            frame.createOrReplaceTempView("days")
            columns = ", ".join(aggregates.values())
            spark.sql(f"SELECT event_date, {columns} FROM days GROUP BY event_date").collect()

        return {"ours": gate(spark, ref, suite), "naive": naive, "tuned": tuned}

    return {f"{days:,}": step(days) for days in WINDOWS}


def assertions(spark: Any, folder: str, rows: int) -> dict[str, Ways]:
    """More and more assertions over the same twenty columns."""
    path = f"{folder}/wide"
    write_wide(spark, path, rows)
    ref = DatasetRef("wide", path, format="parquet")
    return {f"{count:,}": {"ours": gate(spark, ref, wide_suite(count))} for count in ASSERTIONS}


def keys(spark: Any, folder: str, rows: int) -> dict[str, Ways]:
    """More and more combinations of columns that have to be unique."""
    path = f"{folder}/keys"
    write_events(spark, path, rows)
    ref = DatasetRef("events", path, format="parquet", date_column="event_date")

    def step(count: int) -> Ways:
        wanted = [KEY + more for more in MORE[:count]]
        suite = _suite(f"assert unique({', '.join(key)})" for key in wanted)

        def naive() -> None:
            for key in wanted:
                events(spark, path).groupBy(*key).count().where("count > 1").count()

        def tuned() -> None:
            for key in wanted:
                hashes = events(spark, path).selectExpr(f"xxhash64({', '.join(key)}) AS hash")
                copies = hashes.repartition("hash").selectExpr(
                    "count(1) OVER (PARTITION BY hash) AS copies"
                )
                copies.selectExpr("max(copies)").collect()

        return {"ours": gate(spark, ref, suite), "naive": naive, "tuned": tuned}

    return {f"{count:,}": step(count) for count in KEYS}


def _suite(assertions: Iterable[str]) -> str:
    return "\n".join(['suite "Sweep" {', 'check "C" on events {', *assertions, "}", "}"])


SWEEPS: Mapping[str, tuple[str, Callable[[Any, str, int], dict[str, Ways]]]] = {
    "Days of a window": ("days", windows),
    "Assertions over twenty columns": ("assertions", assertions),
    "Uniqueness of several keys": ("keys", keys),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spark = session()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for title, (unit, sweep) in SWEEPS.items():
            steps = []
            for name, ways in sweep(spark, folder, options.rows).items():
                told = rounds(spark, ways, options.rounds)
                runs = {way: [asdict(run) for run in own] for way, own in told.items()}
                steps.append({"name": name, "runs": runs})
                print(f"{title}: {name} {unit}", flush=True)
            found.append({"title": title, "step": unit, "steps": steps})
    path = report.RESULTS / "sweeps.json"
    content = {
        "conditions": conditions(spark),
        "spark": spark.version,
        "rows": options.rows,
        "rounds": options.rounds,
        "sweeps": found,
    }
    spark.stop()
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    report.main()


if __name__ == "__main__":
    main()
