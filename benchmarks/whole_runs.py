"""W20 as a user runs it, a whole process at a time: `dql run` over a Sail server that is warm,
with a Sail of its own, and with a local Spark; the plan that was tuned by hand as a Spark job; and
DuckDB by hand, which is the same twenty checks in one query, and one for the key.

The time is that by the clock, with the start of Python and of the JVM; the processor time is that
of the process, its children and the server. Each round runs all of them in turn, in changing order.

    python benchmarks/whole_runs.py [ROUNDS] [--rows 1000000 5000000 20000000] [--ways WAY ...]
        [--other NAME=DQL ...]    # the same over another installation, such as one with Spark 3.5

It needs the extras local and sail, and duckdb.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import sqlglot
import workload
from measuring import conditions
from peers.processes import session_settings
from start_cost import PLAN, cpu_of_children
from workload import DAY, SUITE, write_events

from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.spark_session import create_session

ROUNDS = 5
WARM, OWN, SPARK, TUNED, DUCKDB = "warm Sail", "own Sail", "local Spark", "tuned plan", "DuckDB"
WAYS = (WARM, OWN, SPARK, TUNED, DUCKDB)
SERVER = """
import time
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
time.sleep(1_000_000)
"""
QUERIES = """
import sys
import duckdb
files, values, keys = sys.argv[1:]
duckdb.sql(f"CREATE VIEW events AS FROM read_parquet('{files}')")
((*row,),), ((copied,),) = duckdb.sql(values).fetchall(), duckdb.sql(keys).fetchall()
assert len(row) == 19 and copied == 0, (row, copied)
"""
WITH_ALL_CHILDREN = """
import ctypes, os, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: a JVM that outlives its parent is ours
started = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(time.perf_counter() - started)
try:
    while True:
        os.wait()
except ChildProcessError:
    sys.exit(done.returncode)
"""
KEYS = """
SELECT count(*) FROM (
    SELECT 1 FROM events WHERE machine_id IS NOT NULL AND event_ts IS NOT NULL
    GROUP BY machine_id, event_ts HAVING count(*) > 1)
"""


def by_hand() -> str:
    """The aggregates of the tuned plan in the words of DuckDB."""
    aggregates = {
        **workload.TUNED,
        "wagered range": "count_if(NOT amount_wagered BETWEEN 0 AND 1000)",
        "machines": "count(DISTINCT machine_id)",
    }
    query = f"SELECT {', '.join(aggregates.values())} FROM events"
    return sqlglot.transpile(query, read="spark", write="duckdb")[0]


@contextmanager
def sail_server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env={**os.environ, "RUST_LOG": "off"},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            yield server
        finally:
            server.kill()


def cpu_of(process: int) -> float:
    """The processor time of a process that runs, in seconds (proc(5): utime and stime)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(rows: int, rounds: int, ways: Mapping[str, list[str]], server: int) -> None:
    """Runs each way in turn, and prints what they cost."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    names = list(ways)
    for number in range(-1, rounds):  # the first round warms the server and the caches
        turn = number % len(names)
        for way in [*names[turn:], *names[:turn]]:
            used = cpu_of_children() + cpu_of(server)
            told = [sys.executable, "-c", WITH_ALL_CHILDREN, *ways[way]]
            done = subprocess.run(told, check=False, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{way} ended with {done.returncode}:\n{done.stderr}")
            wall_s = float(done.stdout)
            if number >= 0:
                found[way].append((wall_s, cpu_of_children() + cpu_of(server) - used))
    print(f"{rows:,} rows, load {os.getloadavg()[0]:.1f}: seconds by the clock (least), processor")
    for way, costs in found.items():
        wall, cpu = ([cost[place] for cost in costs] for place in (0, 1))
        print(
            f"  {way:<20} {statistics.median(wall):6.2f} ({min(wall):.2f}) "
            f"{statistics.median(cpu):7.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=ROUNDS)
    parser.add_argument("--rows", type=int, nargs="+", default=(1_000_000, 5_000_000, 20_000_000))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--other", nargs="+", default=(), metavar="NAME=DQL")
    options = parser.parse_args()
    os.environ.update({**java_environment(), "SPARK_LOCAL_IP": "127.0.0.1"})
    bin_folder = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([bin_folder, os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as name, sail_server() as server:
        folder = Path(name)
        suite, plan = folder / "suite.dql", folder / "plan.py"
        suite.write_text(SUITE)
        plan.write_text(PLAN)
        spark = create_session("benchmark")
        settings = session_settings(spark)
        print(*(f"{key}: {value}" for key, value in conditions(spark).items()), sep="\n")
        for rows in options.rows:
            write_events(spark, str(folder / f"events_{rows}"), rows)
        spark.stop()
        assert server.stdout is not None
        address = f"sc://127.0.0.1:{server.stdout.readline().strip()}"
        conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        submit = ["spark-submit", "--master", "local[2]", *conf, str(plan)]
        for rows in options.rows:
            table, day = folder / f"events_{rows}", folder / f"day_{rows}"
            # Sail does not read the date that is only in the name of a folder.
            shutil.copytree(table / f"event_date={DAY}", day, copy_function=os.link)
            asked = [
                *("run", str(suite), "--dataset", f"events={day}?format=parquet"),
                *("--date", str(DAY)),
            ]
            ways = {
                WARM: ["dql", *asked, "--connection", address],
                OWN: ["dql", *asked, "--engine", "sail"],
                SPARK: ["dql", *asked],
                TUNED: [*submit, str(Path(__file__).parent), "tuned", str(table)],
                DUCKDB: [sys.executable, "-c", QUERIES, f"{day}/*.parquet", by_hand(), KEYS],
            }
            chosen = {way: ways[way] for way in options.ways}
            for other in options.other:
                label, _, program = other.partition("=")
                chosen[label] = [program, *asked]
            measured(rows, options.rounds, chosen, server.pid)


if __name__ == "__main__":
    main()
