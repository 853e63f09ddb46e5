"""What `rows of silver match bronze` costs beside a full outer join on hashes written by hand.

Both datasets are parquet files with a key, a decimal, a status and a note, ordered differently on
the two sides. The decimal and the status are compared:

- by hand, with a join on the hash of the key and a comparison of the hashes of the values, which is
  wrong where a hash collides, a key occurs twice or a key is NULL
- with us, from the open session to the verdict, which includes counting the rows of both datasets

Each round runs both in turn; the figures are medians of the ratios within a round.

    python benchmarks/matching_cost.py [--rows ROWS] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from functools import partial
from typing import Any

from measuring import Run, rounds
from pyspark.sql import functions as F
from scan_cost import session
from workload import DAY

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.measure import measure
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Status

SUITE = """
suite "Promotion" {
    check "Rows" on silver {
        assert rows of silver match bronze on (id) comparing [amount, status]
            name "rows"
    }
}
"""
BY_HAND, OURS = "by hand", "ours"


def write(spark: Any, path: str, rows: int, seed: int) -> None:
    spark.range(rows).selectExpr(
        "id",
        "CAST(id * 37 % 100000 AS DECIMAL(12,2)) / 100 AS amount",
        "concat('status ', id % 7) AS status",
        "concat('some note of order ', id) AS note",
    ).orderBy(F.expr(f"xxhash64(id, {seed})")).write.parquet(path)


def by_hand(spark: Any, silver: str, bronze: str) -> None:
    left, right = (
        spark.read.parquet(path).selectExpr(
            f"xxhash64(id) AS {side}k", f"xxhash64(amount, status) AS {side}v"
        )
        for path, side in ((silver, "l"), (bronze, "r"))
    )
    joined = left.join(right, left["lk"] == right["rk"], "full")
    (told,) = joined.selectExpr(
        "count_if(lk IS NULL)", "count_if(rk IS NULL)", "count_if(lv <> rv)"
    ).collect()
    assert tuple(told) == (0, 0, 0), told


def ours(spark: Any, silver: str, bronze: str) -> None:
    refs = [
        DatasetRef(name, path, format="parquet")
        for name, path in (("silver", silver), ("bronze", bronze))
    ]
    source = SourceFile("suite.dql", SUITE)
    suite = check_source(source).suite
    assert suite is not None
    plan = resolve(suite, source, refs, DAY)
    verdicts = evaluate(plan, measure(spark, refs, plan)[1])
    assert all(verdict.status is Status.PASSED for verdict in verdicts), verdicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="of each dataset")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        places = (f"{folder}/silver", f"{folder}/bronze")
        for seed, path in enumerate(places):
            write(spark, path, options.rows, seed)
        ways = {BY_HAND: partial(by_hand, spark, *places), OURS: partial(ours, spark, *places)}
        costs = rounds(spark, ways, options.rounds)
    for name, runs in costs.items():
        wall, cpu = (statistics.median(of(run) for run in runs) for of in (_wall, _cpu))
        print(f"{name}: {wall:.2f} s, {cpu:.2f} s CPU, {runs[0].jobs} jobs")
    for what, of in (("wall", _wall), ("CPU", _cpu)):
        pairs = zip(costs[OURS], costs[BY_HAND], strict=True)
        ratio = statistics.median(of(own) / of(hand) for own, hand in pairs)
        print(f"ours to the join by hand, {what}: {ratio:.2f}")


def _wall(run: Run) -> float:
    return run.wall_s


def _cpu(run: Run) -> float:
    return run.cpu_s


if __name__ == "__main__":
    main()
