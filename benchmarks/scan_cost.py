"""What the scan costs beside plans written by hand.

The workload is slot-machine telemetry with twenty checks. `naive` is what a careful engineer
writes: one aggregate with everything flat, one exact grouping for the key. `tuned` is what an
engineer writes who has measured. All run one after the other in each round, in changing order; the
ratio within a round is what counts, the median of all rounds is told. On a busy machine trust the
ratio of CPU seconds: other processes lengthen the wall time alone.

First runs are in a JVM of their own, from the opened session to the last value. The wide workload
is 1,000 assertions over twenty columns, against ten over the same columns.

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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from dqx_airflow.dql.check import check_source
from dqx_airflow.engine.java import java_environment
from dqx_airflow.engine.measure import measure
from dqx_airflow.engine.session import create_session
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Status

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
_SHARED = """
    count(1), count_if(machine_id IS NULL), count_if(casino_id IS NULL), count_if(event_ts IS NULL),
    count_if(player_id IS NULL), count_if(tax_id_hashed IS NULL), min(amount_wagered),
    max(amount_wagered), avg(amount_wagered), sum(amount_won), max(event_ts), max(amount_won),
    count_if(NOT game_type IN ('slots', 'poker', 'roulette')),
    count_if(NOT amount_won <= amount_wagered * 100)
"""
NAIVE = f"""{_SHARED},
    stddev_samp(amount_won),
    count_if(NOT machine_id RLIKE '^M[0-9]{{4}}$'),
    count_if(NOT tax_id_hashed RLIKE '^[0-9a-f]{{64}}$'),
    count_if(NOT amount_wagered BETWEEN 0 AND 1000),
    count(DISTINCT machine_id)
"""
TUNED = f"""{_SHARED},
    stddev_samp(CAST(amount_won AS DOUBLE)),
    count_if(NOT machine_id RLIKE '^M[0123456789]{{4}}$'),
    count_if(NOT tax_id_hashed RLIKE '^[0123456789abcdef]{{64}}$')
"""
"""The extremes answer the range; the distinct machines are counted in a pass of their own."""

WIDE_COLUMNS, FEW, MANY = 20, 10, 1_000


def write_events(spark: Any, path: str, rows: int) -> None:
    spark.sql(
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


def write_wide(spark: Any, path: str, rows: int) -> None:
    columns = (f"cast(rand({n}) * 1000 AS int) AS c{n}" for n in range(WIDE_COLUMNS))
    spark.sql(f"SELECT {', '.join(columns)} FROM range({rows})").write.mode("overwrite").parquet(
        path
    )


def wide_suite(assertions: int) -> str:
    """Assertions of five kinds over all columns, each with bounds of its own."""
    kinds = (
        "assert each row: c{c} between -{n} and 100{n}",
        "assert each row: c{c} >= -{n}",
        "assert average(c{c}) < 100{n}",
        "assert null_count(c{c}) <= {n}",
        "assert count_values(c{c}, -{m}) == 0",
    )
    lines = (
        kinds[n % len(kinds)].format(c=n % WIDE_COLUMNS, n=n, m=n + 1) + f' name "a{n}"'
        for n in range(assertions)
    )
    return "\n".join(['suite "Wide" {', 'check "C" on wide {', *lines, "}", "}"])


def gate(spark: Any, ref: DatasetRef, suite: str) -> Callable[[], None]:
    """All of the suite, from the opened dataset to the verdicts, which have to be good."""
    source = SourceFile("suite.dql", suite)
    checked = check_source(source)
    assert checked.suite is not None
    assert not checked.errors
    plan = resolve(checked.suite, source, [ref], DAY)

    def ours() -> None:
        verdicts = evaluate(plan, measure(spark, [ref], plan)[1])
        assert [verdict for verdict in verdicts if verdict.status is not Status.PASSED] == []

    return ours


def plans(spark: Any, path: str) -> dict[str, Callable[[], None]]:
    """Three ways to compute the twenty checks, by name."""

    def events() -> Any:
        return spark.read.parquet(path).where(f"event_date = DATE'{DAY}'")

    def naive() -> None:
        frame = events()
        frame.selectExpr(f"struct({NAIVE})").collect()
        frame.groupBy("machine_id", "event_ts").count().where("count > 1").count()

    def tuned() -> None:
        frame = events()
        frame.selectExpr(f"struct({TUNED})").collect()
        frame.selectExpr("count(DISTINCT machine_id)").collect()
        hashes = frame.selectExpr("xxhash64(machine_id, event_ts) AS hash").repartition("hash")
        copies = hashes.selectExpr("count(1) OVER (PARTITION BY hash) AS copies")
        copies.selectExpr("max(copies)").collect()

    ref = DatasetRef("events", path, format="parquet", date_column="event_date")
    return {"naive": naive, "tuned": tuned, "ours": gate(spark, ref, SUITE)}


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took. `cpu_s` is that of the JVM, 0 where the system does not tell it."""

    wall_s: float
    cpu_s: float
    jobs: int


def run_of(spark: Any, work: Callable[[], None]) -> Run:
    tracker = spark.sparkContext.statusTracker()
    jobs, cpu, started = len(tracker.getJobIdsForGroup(None)), _cpu(spark), time.perf_counter()
    work()
    took = time.perf_counter() - started
    return Run(took, _cpu(spark) - cpu, len(tracker.getJobIdsForGroup(None)) - jobs)


def _cpu(spark: Any) -> float:
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    try:
        fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rounds(spark: Any, ways: Mapping[str, Callable[[], None]], count: int) -> dict[str, list[Run]]:
    """The runs of each way. One round more goes first, to warm up."""
    found: dict[str, list[Run]] = {name: [] for name in ways}
    for number in range(count + 1):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            run = run_of(spark, ways[name])
            if number:
                found[name].append(run)
    return found


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


def session() -> Any:
    os.environ.update(java_environment())
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        "--master local[2] --driver-memory 3g --conf spark.log.level=ERROR pyspark-shell"
    )
    return create_session("benchmark")


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
        run = run_of(spark, plans(spark, path)[name])
        print(json.dumps({"wall_s": run.wall_s, "cpu_s": run.cpu_s, "jobs": run.jobs}))
        return
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
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
            ways = {f"{n:,} assertions": gate(spark, ref, wide_suite(n)) for n in (FEW, MANY)}
            told = rounds(spark, ways, options.rounds)
            title = f"{WIDE_COLUMNS} columns, {options.wide:,} rows, warm"
            print("\n".join(table(title, f"{FEW:,} assertions", told)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
