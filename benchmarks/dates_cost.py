"""Compares the cost of a range of dates in one call with a single scan of the same bytes.

The table is partitioned by date. Measured are all dates of the range in one call, with
`day_over_day`; the same assertions once over all rows, as a table without dates; and the dates in
separate runs, of which the first few are run and the others estimated from them. Each round runs
all of them in turn; the figures are medians of the ratios within a round.

    python benchmarks/dates_cost.py [--rows 9000000] [--dates 90] [--rounds 5]
"""

from __future__ import annotations

import argparse
import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from statistics import median
from typing import Any

from measuring import java_version, rounds
from scan_cost import session, table

from dqx_airflow.engine.job import try_gates
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, Outcome, RunKey, SourceFile

FIRST = date(2024, 1, 1)
ONE_BY_ONE = 5
FLAT = """
        assert num_rows() > 0 name "rows"
        assert null_count(id) == 0 name "ids"
        assert unique(id) name "keys"
        assert average(price) between 0 and 1000 name "price"
        assert sum(amount) > 0 name "amount"
        assert minimum(amount) >= 0 name "least"
        assert maximum(price) <= 1000 name "most"
        assert null_count(status) / num_rows() < 90% name "status"
        assert each row: price >= 0 and amount < 1000 name "positive"
        assert average(price) > 0 name "paid" where status == "s1"
"""
CHANGE = '        assert day_over_day(sum(amount)) < 50% name "change"\n'


def write_sales(spark: Any, path: str, rows: int, dates: int) -> None:
    """Writes this number of rows for each date of the range, and for the day before it."""
    on = f"date_add(DATE'{FIRST}', CAST(id % {dates + 1} AS INT) - 1)"
    columns = (
        "id, rand(1) * 1000 AS price, CAST(rand(2) * 1000 AS INT) AS amount, "
        f"concat('s', CAST(rand(3) * 9 AS INT)) AS status, {on} AS ds"
    )
    frame = spark.sql(f"SELECT {columns} FROM range({rows})").repartition("ds")
    frame.write.mode("overwrite").partitionBy("ds").parquet(path)


def request(path: str, assertions: str, date_column: str | None) -> GateRequest:
    suite = f'suite "Sales" {{\n    check "All" on sales {{{assertions}    }}\n}}\n'
    return GateRequest(
        run_key=RunKey("benchmark", FIRST, "benchmark"),
        attempt=Attempt(1, "benchmark"),
        suite=SourceFile("sales.dql", suite),
        datasets=(DatasetRef("sales", path, format="parquet", date_column=date_column),),
        results_root="",
    )


def judged(spark: Any, requests: Sequence[GateRequest]) -> Callable[[], None]:
    def work() -> None:
        reports = try_gates(requests, lambda _: spark)
        assert {report.outcome for report in reports} == {Outcome.PASSED}

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=9_000_000)
    parser.add_argument("--dates", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=5, help="how often, warm")
    options = parser.parse_args()
    spark = session()
    java = java_version(spark)
    print(f"Spark {spark.version}, Java {java}, Python {platform.python_version()}, local[2]")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/sales"
        write_sales(spark, path, options.rows, options.dates)
        dated = request(path, FLAT + CHANGE, "ds")
        days = [
            replace(dated, run_key=replace(dated.run_key, date=FIRST + timedelta(days=number)))
            for number in range(options.dates)
        ]
        ways = {
            "one scan": judged(spark, [request(path, FLAT, None)]),
            "all dates in one call": judged(spark, days),
            f"{ONE_BY_ONE} dates one by one": lambda: [
                judged(spark, [one])() for one in days[:ONE_BY_ONE]
            ],
        }
        found = rounds(spark, ways, options.rounds)
    title = f"{options.dates} dates, {options.rows:,} rows, warm"
    print("\n".join(table(title, "one scan", found)), flush=True)
    few = median(run.wall_s for run in found[f"{ONE_BY_ONE} dates one by one"])
    print(f"\nall dates one by one, reckoned: {few / ONE_BY_ONE * options.dates:.0f} s")
    spark.stop()


if __name__ == "__main__":
    main()
