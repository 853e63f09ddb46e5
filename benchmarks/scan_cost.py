"""Compares the cost of the scan with plans written by hand.

The workload and the two plans, a naive and a tuned one, are in `workload`. Each round runs all of
them in turn, in changing order; the figures are medians of the ratios within a round. On a busy
machine, rely on the ratio of CPU seconds: other processes lengthen the wall time only.

First runs have a JVM of their own and last from the open session to the last value. The wide
workload is 1,000 assertions over twenty columns, against ten over the same twenty, two columns
each.

    python benchmarks/scan_cost.py [--rows ROWS ...] [--rounds 5] [--first-runs 3] [--wide ROWS]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from measuring import JVM, Run, java_version, rounds, run_of, submit_with
from workload import DAY, SUITE, naive, tuned, write_events

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.measure import measure
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.launch import collect_rarely
from dqx_airflow.engine.session.spark_session import create_session
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Status

WIDE_COLUMNS, FEW, MANY = 20, 10, 1_000


def write_wide(spark: Any, path: str, rows: int, columns: int = WIDE_COLUMNS) -> None:
    values = (f"cast(rand({n}) * 1000 AS int) AS c{n}" for n in range(columns))
    query = f"SELECT {', '.join(values)} FROM range({rows})"
    spark.sql(query).write.mode("overwrite").parquet(path)


def many_suite() -> str:
    """1,000 assertions of five kinds over all columns, with different bounds."""
    kinds = (
        "assert each row: c{c} between -{n} and 100{n}",
        "assert each row: c{c} >= -{n}",
        "assert average(c{c}) < 100{n}",
        "assert null_count(c{c}) <= {n}",
        "assert count_values(c{c}, -{m}) == 0",
    )
    return _suite(
        kinds[n % len(kinds)].format(c=n % WIDE_COLUMNS, n=n, m=n + 1) for n in range(MANY)
    )


def few_suite() -> str:
    """Ten assertions of the same kinds over the same columns, two columns each."""
    kinds = (
        "assert each row: c{c} between -{n} and 100{n} and c{d} between -{n} and 100{n}",
        "assert each row: c{c} >= -{n} and c{d} >= -{n}",
        "assert average(c{c}) + average(c{d}) < 300{n}",
        "assert null_count(c{c}) + null_count(c{d}) <= {n}",
        "assert count_values(c{c}, -{m}) + count_values(c{d}, -{m}) == 0",
    )
    return _suite(
        kinds[n % len(kinds)].format(c=n, d=n + WIDE_COLUMNS // 2, n=n, m=n + 1) for n in range(FEW)
    )


def _suite(assertions: Iterable[str]) -> str:
    lines = (f'{text} name "a{n}"' for n, text in enumerate(assertions))
    return "\n".join(['suite "Wide" {', 'check "C" on wide {', *lines, "}", "}"])


def session() -> Any:
    """A session with the settings of a gate on a machine with two cores."""
    collect_rarely()  # as a gate does
    os.environ.update(java_environment())
    submit_with(JVM)
    return create_session("benchmark")


def gate(spark: Any, ref: DatasetRef, suite: str) -> Callable[[], object]:
    """Runs the suite from the open dataset to the verdicts, all of which must pass."""
    source = SourceFile("suite.dql", suite)
    checked = check_source(source)
    assert checked.suite is not None
    assert not checked.errors
    plan = resolve(checked.suite, source, [ref], DAY)

    def ours() -> None:
        verdicts = evaluate(plan, measure(spark, [ref], plan)[1])
        assert [verdict for verdict in verdicts if verdict.status is not Status.PASSED] == []

    return ours


def plans(spark: Any, path: str) -> dict[str, Callable[[], object]]:
    """Three ways to compute the twenty checks, by name."""
    ref = DatasetRef("events", path, format="parquet", date_column="event_date")
    return {
        "naive": partial(naive, spark, path),
        "tuned": partial(tuned, spark, path),
        "ours": gate(spark, ref, SUITE),
    }


def table(title: str, base: str, runs: Mapping[str, Sequence[Run]]) -> Iterator[str]:
    yield f"\n{title}\n"
    yield f"| plan | jobs | seconds | ratio to {base} | CPU seconds | ratio to {base} |"
    yield "|---|---|---|---|---|---|"
    for name, own in runs.items():
        wall, wall_ratio = _median_and_ratio([run.wall_s for run in own], runs[base], "wall_s")
        cpu, cpu_ratio = _median_and_ratio([run.cpu_s for run in own], runs[base], "cpu_s")
        yield f"| {name} | {own[0].jobs} | {wall} | {wall_ratio} | {cpu} | {cpu_ratio} |"


def _median_and_ratio(own: Sequence[float], base: Sequence[Run], what: str) -> tuple[str, str]:
    ratios = [a / max(getattr(b, what), 1e-9) for a, b in zip(own, base, strict=True)]
    return f"{statistics.median(own):.2f}", f"{statistics.median(ratios):.2f}"


def first_runs(path: str, count: int) -> dict[str, list[Run]]:
    """Each way in a JVM of its own, in rounds."""
    found: dict[str, list[Run]] = {"naive": [], "tuned": [], "ours": []}
    for number in range(count):
        for name in list(found)[:: -1 if number % 2 else 1]:
            command = [sys.executable, __file__, "--once", name, path]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name].append(Run(**json.loads(done.stdout.splitlines()[-1])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=5, help="how often, warm")
    parser.add_argument("--first-runs", type=int, default=3, help="how often in a fresh JVM")
    parser.add_argument(
        "--wide", type=int, default=1_000_000, help="rows of the wide table; 0: none"
    )
    parser.add_argument("--once", nargs=2, metavar=("PLAN", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    spark = session()
    if options.once:
        name, path = options.once
        print(json.dumps(asdict(run_of(spark, plans(spark, path)[name])[0])))
        return
    java = java_version(spark)
    print(f"Spark {spark.version}, Java {java}, Python {platform.python_version()}, local[2]")
    with tempfile.TemporaryDirectory() as folder:
        for rows in options.rows:
            path = f"{folder}/events_{rows}"
            write_events(spark, path, rows)
            told = rounds(spark, plans(spark, path), options.rounds)
            print("\n".join(table(f"W20, {rows:,} rows, warm", "naive", told)), flush=True)
            if options.first_runs:
                first = first_runs(path, options.first_runs)
                title = f"W20, {rows:,} rows, first run of a JVM"
                print("\n".join(table(title, "naive", first)), flush=True)
        if options.wide:
            path = f"{folder}/wide"
            write_wide(spark, path, options.wide)
            ref = DatasetRef("wide", path, format="parquet")
            suites = {FEW: few_suite(), MANY: many_suite()}
            ways = {f"{n:,} assertions": gate(spark, ref, text) for n, text in suites.items()}
            told = rounds(spark, ways, options.rounds)
            title = f"{WIDE_COLUMNS} columns, {options.wide:,} rows, warm"
            print("\n".join(table(title, f"{FEW:,} assertions", told)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
