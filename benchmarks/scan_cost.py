"""What the scan costs beside a plan written by hand: pairs of runs in one session, warm.

The workload is slot-machine telemetry with twenty checks. `naive` is what a careful engineer
writes: one aggregate with everything flat, one exact grouping for the key. Each pair runs both, one
after the other, in changing order; the ratio of a pair is what counts, the median of all is told.

    python benchmarks/scan_cost.py [ROWS ...]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.java import java_environment
from dqx_airflow.engine.measure import measure
from dqx_airflow.engine.session import create_session
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile

PAIRS = 5
DAY = date(2024, 3, 2)
SUITE = """
suite "Telemetry" {
    check "W20" on events {
        assert num_rows() > 1000 name "rows"
        assert null_count(machine_id) == 0 name "machine null"
        assert null_count(casino_id) == 0 name "casino null"
        assert null_count(event_ts) == 0 name "time null"
        assert null_count(player_id) / num_rows() < 40% name "player null rate"
        assert null_count(tax_id_hashed) / num_rows() < 60% name "tax null rate"
        assert minimum(amount_wagered) >= 0 name "wagered least"
        assert maximum(amount_wagered) < 1000 name "wagered most"
        assert average(amount_wagered) between 10 and 90 name "wagered mean"
        assert sum(amount_won) > 0 name "won total"
        assert sqrt(variance(amount_won)) < 100 name "won deviation"
        assert each row: machine_id matches "^M[0-9]{4}$" name "machine format"
        assert each row: tax_id_hashed matches "^[0-9a-f]{64}$" name "tax format"
        assert each row: game_type in ["slots", "poker", "roulette"] name "game"
        assert each row: amount_wagered between 0 and 1000 name "wagered range"
        assert each row: amount_won <= amount_wagered * 100 name "won at most"
        assert unique_count(machine_id) == 5000 name "machines"
        assert maximum(event_ts) > "2024-01-01" name "newest"
        assert maximum(amount_won) < 1000 name "won most"
        assert unique(machine_id, event_ts) name "key"
    }
}
"""
NAIVE = """
    count(1), count_if(machine_id IS NULL), count_if(casino_id IS NULL), count_if(event_ts IS NULL),
    count_if(player_id IS NULL), count_if(tax_id_hashed IS NULL), min(amount_wagered),
    max(amount_wagered), avg(amount_wagered), sum(amount_won), stddev_samp(amount_won),
    count_if(NOT machine_id RLIKE '^M[0-9]{4}$'),
    count_if(NOT tax_id_hashed RLIKE '^[0-9a-f]{64}$'),
    count_if(NOT game_type IN ('slots', 'poker', 'roulette')),
    count_if(NOT amount_wagered BETWEEN 0 AND 1000),
    count_if(NOT amount_won <= amount_wagered * 100), count(DISTINCT machine_id), max(event_ts),
    max(amount_won)
"""


def write_events(spark: object, path: str, rows: int) -> None:
    spark.sql(  # type: ignore[attr-defined]
        f"""
        SELECT concat('M', lpad(cast(id % 5000 AS string), 4, '0')) AS machine_id,
               cast(id % 40 AS int) AS casino_id,
               timestamp_seconds(1709337600 + id DIV 5000) AS event_ts,
               cast(1 + rand(1) * 99 AS decimal(18,2)) AS amount_wagered,
               cast(rand(2) * 90 AS decimal(18,2)) AS amount_won,
               elt(cast(id % 3 AS int) + 1, 'slots', 'poker', 'roulette') AS game_type,
               if(rand(3) < 0.35, NULL, id % 100000) AS player_id,
               if(rand(4) < 0.5, NULL, sha2(cast(id AS string), 256)) AS tax_id_hashed,
               DATE'{DAY}' AS event_date
        FROM range({rows})
        """
    ).write.partitionBy("event_date").mode("overwrite").parquet(path)


def compare(rows: int, folder: Path) -> None:
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        "--master local[2] --driver-memory 3g --conf spark.log.level=ERROR pyspark-shell"
    )
    spark = create_session("benchmark")
    path = str(folder / f"events_{rows}")
    write_events(spark, path, rows)
    checked = check_source(SourceFile("suite.dql", SUITE))
    assert checked.suite is not None
    assert not checked.errors
    ref = DatasetRef("events", path, format="parquet", date_column="event_date")
    plan = resolve(checked.suite, SourceFile("suite.dql", SUITE), [ref], DAY)

    def ours() -> None:
        found = measure(spark, [ref], plan)[1]
        verdicts = evaluate(plan, found)
        assert {verdict.status.value for verdict in verdicts} == {"passed"}, [
            (verdict.name, verdict.value, verdict.reason)
            for verdict in verdicts
            if verdict.status.value != "passed"
        ]

    def naive() -> None:
        frame = spark.read.parquet(path).where(f"event_date = DATE'{DAY}'")
        frame.selectExpr(f"struct({NAIVE})").collect()
        frame.groupBy("machine_id", "event_ts").count().where("count > 1").count()

    first = {"ours": seconds(ours), "naive": seconds(naive)}
    ratios = []
    for pair in range(PAIRS):
        order = (ours, naive) if pair % 2 else (naive, ours)
        took = {way.__name__: seconds(way) for way in order}
        ratios.append(took["ours"] / took["naive"])
        print(f"  {rows:>10,} rows: ours {took['ours']:.2f} s, naive {took['naive']:.2f} s")
    print(
        f"{rows:>12,} rows: ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}), first runs {first['ours']:.2f} s and "
        f"{first['naive']:.2f} s (the second of them in a warm session)"
    )
    spark.stop()


def seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    os.environ.update(java_environment())
    with tempfile.TemporaryDirectory() as place:
        for count in [int(text) for text in sys.argv[1:]] or [1_000_000, 5_000_000]:
            compare(count, Path(place))
