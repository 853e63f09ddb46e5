"""Compares the cost of assertions `for each` group with an aggregate written by hand.

Twenty assertions `for each country` over five columns take one grouped pass and a verdict per
group. By hand it is one `groupBy` with the same aggregates, collected. Each round runs both in
turn; the figures are medians of the ratios within a round.

    python benchmarks/group_cost.py [--rows 5000000] [--groups 200] [--rounds 7]
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from typing import Any

from measuring import java_version, rounds
from scan_cost import gate, session, table

from dqx_airflow.values import DatasetRef

COLUMNS = 5
KINDS = (
    ("average(c{c}) between 0 and 1000", "avg(c{c})"),
    ("null_count(c{c}) == 0", "count_if(c{c} IS NULL)"),
    ("maximum(c{c}) < 1000", "max(c{c})"),
    ("sum(c{c}) >= 0", "sum(c{c})"),
)


def write_sales(spark: Any, path: str, rows: int, groups: int) -> None:
    columns = ", ".join(f"cast(rand({n}) * 1000 AS int) AS c{n}" for n in range(COLUMNS))
    country = f"concat('country ', id % {groups})"
    query = f"SELECT {country} AS country, {columns} FROM range({rows})"
    spark.sql(query).write.mode("overwrite").parquet(path)


def suite() -> str:
    lines = [
        f'assert {claim.format(c=c)} for each country name "{kind} {c}"'
        for c in range(COLUMNS)
        for kind, (claim, _) in enumerate(KINDS)
    ]
    return "\n".join(['suite "Groups" {', 'check "C" on sales {', *lines, "}", "}"])


def by_hand(spark: Any, path: str) -> None:
    from pyspark.sql import functions as F

    texts = [sql.format(c=c) for c in range(COLUMNS) for _, sql in KINDS]
    found = spark.read.parquet(path).groupBy("country").agg(*map(F.expr, texts)).collect()
    assert all(None not in row for row in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--groups", type=int, nargs="+", default=[200])
    parser.add_argument("--rounds", type=int, default=7, help="how often, warm")
    options = parser.parse_args()
    spark = session()
    java = java_version(spark)
    print(f"Spark {spark.version}, Java {java}, Python {platform.python_version()}, local[2]")
    with tempfile.TemporaryDirectory() as folder:
        for groups in options.groups:
            path = f"{folder}/sales_{groups}"
            write_sales(spark, path, options.rows, groups)
            ref = DatasetRef("sales", path, format="parquet")
            ways = {
                "by hand": lambda path=path: by_hand(spark, path),
                "ours": gate(spark, ref, suite()),
            }
            told = rounds(spark, ways, options.rounds)
            title = f"20 assertions for each of {groups:,} groups, {options.rows:,} rows, warm"
            print("\n".join(table(title, "by hand", told)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
