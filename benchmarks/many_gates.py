"""Compares the processor time of many gates: a driver each, in a batch, over a server, on Sail.

Each gate has ten assertions over a table of a million rows and 30 columns. The gates share a few
such tables under names of their own, with a results store for each way. The processor time is that
of all processes of a job, from `getrusage` of the children; of a server from `/proc`. It hardly
depends on what else the machine does, and the time by the clock does.

    python -m benchmarks.many_gates [--gates 20] [--alone 3] [--rows 1000000] [--ways WAY ...]

`by hand` is one Spark session with the aggregates of each gate in one plan written by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from deltalake import write_deltalake
from pyarrow import parquet

from benchmarks.connect_cost import server
from benchmarks.suggest_speed import write_table
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.results.batch_reports import BatchReports
from dqx_airflow.results.stored_requests import store_request
from dqx_airflow.results.tables import locate
from dqx_airflow.values import Attempt, BatchRequest, DatasetRef, GateRequest, RunKey, SourceFile
from dqx_airflow.values.files import shipped
from dqx_airflow.values.json_form import FILE_FLAG, to_arguments

PROGRAMS = Path(sys.executable).parent
DAY = date(2024, 5, 17)
TABLES = 4
COLUMNS = 30
CONF = {"spark.log.level": "ERROR", "spark.driver.memory": "2g"}
SUITE = """suite "Gate {number}" {{
    check "Ten" on t{number} {{
        assert num_rows() > 1000 name "rows"
        assert null_count(id) == 0 name "ids"
        assert null_count(c1) == 0 name "c1"
        assert minimum(c4) >= 0 name "least"
        assert maximum(c4) < 2000000 name "most"
        assert average(c1) between 0 and 20000 name "mean"
        assert null_count(c5) / num_rows() < 0.1 name "nulls"
        assert unique_count(c2) > 5 name "categories"
        assert each row: c9 >= 0 name "positive"
        assert minimum(ds) >= 1970-01-01 name "days"
    }}
}}
"""
BY_HAND = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for path in sys.argv[1:]:
    (row,) = spark.read.parquet(path).selectExpr(
        "count(1)", "count_if(id IS NULL)", "count_if(c1 IS NULL)", "min(c4)", "max(c4)", "avg(c1)",
        "count_if(c5 IS NULL)", "count(DISTINCT c2)", "count_if(c9 < 0)", "min(ds)",
    ).collect()
    assert row[0] > 1000 and row[1] == 0
spark.stop()
"""


@dataclass(frozen=True)
class Cost:
    """The seconds of a number of gates."""

    gates: int
    clock_s: float
    cpu_s: float


@dataclass(frozen=True)
class Lake:
    """The tables, and the requests of the gates over them."""

    folder: Path
    rows: int

    def table(self, number: int) -> Path:
        return self.folder / f"table{number % TABLES}"

    def files(self, number: int) -> str:
        return str(next(self.table(number).glob("*.parquet")))

    def write(self) -> None:
        for number in range(TABLES):
            path = self.folder / f"{number}.parquet"
            write_table(path, self.rows, COLUMNS)
            write_deltalake(str(self.table(number)), parquet.read_table(path))
            path.unlink()

    def requests(self, way: str, count: int) -> list[GateRequest]:
        return [
            GateRequest(
                run_key=RunKey(f"lake.gate{number}", DAY, way),
                attempt=Attempt(1, str(uuid.uuid4())),
                suite=SourceFile("gate.dql", SUITE.format(number=number)),
                datasets=(DatasetRef(f"t{number}", str(self.table(number))),),
                results_root=str(self.folder / f"results {way}"),
                recompute=True,
            )
            for number in range(count)
        ]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
    return {**os.environ, **java_environment(), "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}


def spark_submit(*application: str) -> None:
    conf = [part for key, value in CONF.items() for part in ("--conf", f"{key}={value}")]
    run("spark-submit", "--master", "local[2]", *conf, *application)


def run(*command: str, given: str = "") -> None:
    done = subprocess.run(
        [str(PROGRAMS / command[0]), *command[1:]],
        env=environment(),
        input=given,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def cost_of(gates: int, work: Callable[[], None], server: int | None = None) -> Cost:
    """The cost of some work in child processes, and in a server."""
    before, started = _children() + _process(server), time.perf_counter()
    work()
    return Cost(gates, time.perf_counter() - started, _children() + _process(server) - before)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _process(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def drivers(lake: Lake, gates: int) -> Cost:
    """A driver for each gate."""
    application = str(shipped("spark_jobs/gate_job.py"))

    def work() -> None:
        for request in lake.requests("drivers", gates):
            spark_submit(application, *to_arguments(request))

    return cost_of(gates, work)


def batch(lake: Lake, gates: int, at_once: int = 1) -> Cost:
    """One driver for all gates."""
    requests = tuple(lake.requests(f"batch {at_once}", gates))
    root = locate(requests[0].results_root)
    whole = BatchRequest(
        RunKey("lake.batch", DAY, "run"), root.root, "batch", "run", requests, at_once=at_once
    )
    application = str(shipped("spark_jobs/gate_job.py"))

    def work() -> None:
        spark_submit(application, FILE_FLAG, store_request(root, whole))

    cost = cost_of(gates, work)
    judged = BatchReports(root, "batch", "run").judged(requests)
    assert len(judged) == gates, f"{len(judged)} reports"
    return cost


def over_server(lake: Lake, gates: int) -> Cost:
    """A process for each gate, over one Spark Connect server; without the start of the server."""
    script = str(shipped("spark_jobs/connect_job.py"))
    with server(lake.folder) as (address, pid):
        opening = json.dumps({"address": address, "settings": {}}) + "\n"

        def work() -> None:
            for request in lake.requests("server", gates):
                done = subprocess.Popen(
                    [sys.executable, script, *to_arguments(request)],
                    env=environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                assert done.stdin is not None
                done.stdin.write(opening)
                done.stdin.flush()
                if done.wait():
                    sys.exit(done.stderr.read() if done.stderr else "")
                done.stdin.close()

        return cost_of(gates, work, pid)


def sail(lake: Lake, gates: int) -> Cost:
    """All suites in one `dql run` on a Sail of its own."""
    suites = []
    for number in range(gates):
        path = lake.folder / f"gate{number}.dql"
        path.write_text(SUITE.format(number=number))
        suites.append(str(path))
    datasets = [
        part for number in range(gates) for part in ("--dataset", f"t{number}={lake.table(number)}")
    ]
    results = str(lake.folder / "results sail")

    def work() -> None:
        run(
            *("dql", "run", *suites, *datasets, "--engine", "sail", "--date", DAY.isoformat()),
            *("--results-root", results),
        )

    return cost_of(gates, work)


def by_hand(lake: Lake, gates: int) -> Cost:
    """One Spark session with a plan by hand for each gate."""
    script = lake.folder / "by_hand.py"
    script.write_text(BY_HAND)
    paths = [lake.files(number) for number in range(gates)]
    return cost_of(gates, lambda: spark_submit(str(script), *paths))


WAYS: dict[str, Callable[[Lake, int], Cost]] = {
    "drivers": drivers,
    "batch": batch,
    "batch, two at once": lambda lake, gates: batch(lake, gates, 2),
    "server": over_server,
    "sail": sail,
    "by hand": by_hand,
}


def show(found: dict[str, Cost]) -> None:
    """Prints the costs of each way, and of a gate in it."""
    alone = found.get("drivers")
    print(f"{'':<20}{'gates':>7}{'clock s':>10}{'CPU s':>9}{'a gate':>9}{'of drivers':>12}")
    for way, cost in found.items():
        each = cost.cpu_s / cost.gates
        share = f"{each / (alone.cpu_s / alone.gates):.3f}" if alone else ""
        print(
            f"{way:<20}{cost.gates:>7}{cost.clock_s:>10.1f}{cost.cpu_s:>9.1f}{each:>9.2f}{share:>12}"
        )


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--gates", type=int, default=20)
    parser.add_argument("--alone", type=int, default=3, help="gates with a driver or process each")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    options = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(Path(folder), options.rows)
        lake.write()
        found: dict[str, Cost] = {}
        for way in options.ways:
            few = way in ("drivers", "server")
            found[way] = WAYS[way](lake, options.alone if few else options.gates)
            print(f"{way}: {found[way]}", file=sys.stderr, flush=True)
        show(found)


if __name__ == "__main__":
    main()
