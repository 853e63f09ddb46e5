"""Compares the cost of a gate over a warm Spark Connect server with a client written by hand.

The benchmark starts a server on this machine and stops it by its process id. The client by hand
runs one query with the same six aggregates, in a fresh process that imports the client only.
Compared with it are `dql run` in fresh processes, once with all queries and a new results store and
once with stored states, and gates: the time of the operator alone, in a process that has imported
Airflow already, as a task has. Each round runs all of them in turn, in changing order; the figures
are medians of the ratios and differences within a round. On a busy machine, rely on the processor
time, which is that of the client.

    python benchmarks/connect_cost.py [--rows 125000] [--rounds 7] [--ways WAY ...]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dqx_airflow.engine.session.java import java_environment

PROGRAMS = Path(sys.executable).parent
SUITE = """
suite "Sales" {
    check "Six" on sales {
        assert num_rows() > 1000 name "rows"
        assert null_count(id) == 0 name "ids"
        assert null_count(country) == 0 name "countries"
        assert minimum(amount) >= 0 name "least"
        assert maximum(amount) < 1000 name "most"
        assert average(amount) between 100 and 900 name "mean"
    }
}
"""
BY_HAND = """
import sys
from pyspark.sql import SparkSession
address, table = sys.argv[1:]
spark = SparkSession.builder.remote(address).getOrCreate()
(row,) = spark.read.parquet(table).selectExpr(
    "count(1)", "count_if(id IS NULL)", "count_if(country IS NULL)",
    "min(amount)", "max(amount)", "avg(amount)",
).collect()
rows, ids, countries, least, most, mean = row
assert rows > 1000 and ids == 0 and countries == 0
assert least >= 0 and most < 1000 and 100 <= mean <= 900
spark.stop()
"""
WRITE = """
import sys
from pyspark.sql import SparkSession
address, table, rows = sys.argv[1:]
spark = SparkSession.builder.remote(address).getOrCreate()
spark.range(int(rows)).selectExpr(
    "id", "concat('country ', id % 40) AS country", "rand(1) * 999 AS amount",
    "date_add(DATE '2024-01-01', cast(id % 30 AS int)) AS day",
).coalesce(1).write.parquet(table)
spark.stop()
"""
GATE = """
import json, os, resource, sys, time
from types import SimpleNamespace
from uuid import uuid4
from datetime import datetime, timezone
suite, table, results = sys.argv[1:]
from dqx_airflow.operators import DqlGateOperator
gate = DqlGateOperator(
    task_id="gate", suite=suite, datasets={"sales": {"path": table, "format": "parquet"}},
    date="2024-03-02", results_root=results, conn_id="server",
)
now = datetime.now(timezone.utc)
run = SimpleNamespace(run_id="manual", logical_date=now, clear_number=0, conf={},
    run_after=now, data_interval_start=now, data_interval_end=now)
task = SimpleNamespace(id=uuid4(), dag_id="cost", task_id="gate", run_id="manual", try_number=1,
    map_index=-1, dag_run=run, xcom_push=lambda *a, **k: None,
    get_template_context=lambda: {"dag_run": run})
context = {"ti": task, "dag_run": run, "dag": SimpleNamespace(fileloc=suite)}
def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
used, started = cpu(), time.perf_counter()
gate.execute(context)
print(json.dumps([time.perf_counter() - started, cpu() - used]))
"""
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
HAND, RUN, STORED, GATED, GATED_STORED = WAYS = (
    "by hand",
    "dql run",
    "dql run, stored states",
    "gate",
    "gate, stored states",
)


@dataclass(frozen=True)
class Cost:
    """Seconds of wall time, and of processor time in the processes of the client."""

    wall_s: float
    cpu_s: float


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, int]]:
    """Starts a Spark Connect server, and yields its address and its process id."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": folder / "warehouse",
    }
    told = [word for item in settings.items() for word in ("--conf", "{}={}".format(*item))]
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ["spark-submit", "--master", "local[2]", *told, "--class", kind, "spark-internal"]
    path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", **java_environment()}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=env, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    try:
        deadline = time.monotonic() + 180
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit((folder / "server.log").read_text(errors="replace")[-4000:])
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}", process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def cost(command: Sequence[str], env: Mapping[str, str]) -> Cost:
    """The cost of a process and its children."""
    used, started = _cpu_of_children(), time.perf_counter()
    _done(command, env)
    return Cost(time.perf_counter() - started, _cpu_of_children() - used)


def cost_told(command: Sequence[str], env: Mapping[str, str]) -> Cost:
    """The cost that a process prints in its last line."""
    return Cost(*json.loads(_done(command, env).splitlines()[-1]))


def _done(command: Sequence[str], env: Mapping[str, str]) -> str:
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)[:200]}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return ended.stdout


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=125_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, server(Path(name)) as (address, _):
        folder = Path(name)
        suite, table = folder / "sales.dql", folder / "sales"
        suite.write_text(SUITE, encoding="utf-8")
        host, port = address.removeprefix("sc://").split(":")
        connection = {"conn_type": "spark_connect", "host": host, "port": int(port)}
        env = {
            # Keep bytecode, as an installation does.
            **{key: value for key, value in os.environ.items() if key != NO_BYTECODE},
            "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_CONN_SERVER": json.dumps(connection),
        }
        _done([sys.executable, "-c", WRITE, address, str(table), str(options.rows)], env)
        numbers = iter(range(10**6))

        def new() -> str:
            return str(folder / f"results {next(numbers)}")

        def run(results: str) -> list[str]:
            told = ["--dataset", f"sales={table}?format=parquet", "--date", "2024-03-02"]
            where = ["--connection", address, "--results-root", results]
            return [str(PROGRAMS / "dql"), "run", str(suite), *told, *where]

        def gate(results: str) -> list[str]:
            return [sys.executable, "-c", GATE, str(suite), str(table), results]

        kept = str(folder / "kept"), str(folder / "kept of gates")
        by_hand = [sys.executable, "-c", BY_HAND, address, str(table)]
        works: dict[str, Callable[[], Cost]] = {
            HAND: lambda: cost(by_hand, env),
            RUN: lambda: cost(run(new()), env),
            STORED: lambda: cost(run(kept[0]), env),
            GATED: lambda: cost_told(gate(new()), env),
            GATED_STORED: lambda: cost_told(gate(kept[1]), env),
        }
        found: dict[str, list[Cost]] = {way: [] for way in options.ways}
        for number in range(options.rounds + 1):  # the first one warms up
            for way in list(found)[:: -1 if number % 2 else 1]:
                taken = works[way]()
                if number:
                    found[way].append(taken)
        tell(found)


def tell(found: Mapping[str, Sequence[Cost]]) -> None:
    print(f"{'':<24} {'wall':>7} {'CPU':>7} {'ratio':>6} {'CPU':>6} {'more':>8}")
    for way, costs in found.items():
        wall, cpu = (statistics.median(of(one) for one in costs) for of in (_wall, _cpu))
        line = f"{way:<24} {wall:>5.2f} s {cpu:>5.2f} s"
        if HAND in found and way != HAND:
            pairs = list(zip(costs, found[HAND], strict=True))
            walls, cpus = (
                statistics.median(of(own) / of(hand) for own, hand in pairs) for of in (_wall, _cpu)
            )
            more = statistics.median(own.wall_s - hand.wall_s for own, hand in pairs)
            line += f" {walls:>6.2f} {cpus:>6.2f} {more:>+6.2f} s"
        print(line)


def _wall(cost: Cost) -> float:
    return cost.wall_s


def _cpu(cost: Cost) -> float:
    return cost.cpu_s


if __name__ == "__main__":
    main()
