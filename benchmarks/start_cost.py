"""Measures the cost of starting: a whole gate and an empty spark-submit job, with and without an
archive.

The naive and the tuned plan by hand run as jobs as well, with the JVM options, settings and archive
of a gate. Each round runs all of them in turn, in changing order; the figures are medians of the
ratios within a round. On a busy machine, rely on those of the processor time.

`--to` stores the runs; the page of the docs reads results/jobs.json.

    python benchmarks/start_cost.py [ROUNDS] [--rows ROWS] [--ways WAY ...] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measuring import conditions
from peers.processes import session_settings
from workload import DAY, SUITE, write_events

from dqx_airflow.cli.jvm_archive import write_archive
from dqx_airflow.datasets.jvm_options import DRIVER_OPTIONS, for_a_short_life, with_archive
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.spark_session import create_session
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile
from dqx_airflow.values.files import shipped
from dqx_airflow.values.json_form import to_arguments

ROUNDS = 5
ROWS = 100_000
EMPTY = "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().stop()\n"
PLAN = """
import sys
from pyspark.sql import SparkSession
folder, plan, table = sys.argv[1:]
sys.path.insert(0, folder)
import workload
spark = SparkSession.builder.getOrCreate()
verdicts = getattr(workload, plan)(spark, table)
assert all(verdicts.values()), verdicts
spark.stop()
"""
WITH_ARCHIVE = ", archive"
KINDS = ("gate", "naive plan", "tuned plan", "empty job")
WAYS = tuple(kind + archive for kind in KINDS for archive in ("", WITH_ARCHIVE))
RATIOS = (
    ("gate", "empty job"),
    ("gate, archive", "gate"),
    ("gate, archive", "empty job"),
    ("empty job, archive", "empty job"),
    ("gate", "naive plan"),
    ("gate", "tuned plan"),
    ("gate, archive", "naive plan, archive"),
    ("gate, archive", "tuned plan, archive"),
)


def gate(events: Path, results: Path) -> list[str]:
    """The job and its arguments, with an empty results store, so that everything is computed."""
    request = GateRequest(
        run_key=RunKey("benchmark", DAY, "manual"),
        attempt=Attempt(1, str(uuid.uuid4())),
        suite=SourceFile("suite.dql", SUITE),
        datasets=(DatasetRef("events", str(events), format="parquet", date_column="event_date"),),
        results_root=str(results),
    )
    return [str(shipped("spark_jobs/gate_job.py")), *to_arguments(request)]


@dataclass(frozen=True)
class Cost:
    """The seconds of a whole process and its children."""

    wall_s: float
    cpu_s: float


def cost(
    job: Sequence[str], conf: Mapping[str, str], env: Mapping[str, str], archive: Path | None
) -> Cost:
    told = {"spark.pyspark.driver.python": sys.executable, **conf}
    if archive is not None:
        told[DRIVER_OPTIONS] = with_archive("", str(archive))
    options = [part for key, value in told.items() for part in ("--conf", f"{key}={value}")]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    started, used = time.perf_counter(), cpu_of_children()
    subprocess.run(
        ["spark-submit", "--master", "local[2]", *options, *job],
        env={**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", **env},
        check=True,
        capture_output=True,
    )
    wall_s, cpu_s = time.perf_counter() - started, cpu_of_children() - used
    return Cost(round(wall_s, 2), round(cpu_s, 2))


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=ROUNDS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--to", type=Path, help="where the runs are stored")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "events"
        empty, plan = folder / "empty.py", folder / "plan.py"
        empty.write_text(EMPTY)
        plan.write_text(PLAN)
        archive = folder / "gate.jsa"
        write_archive(archive)
        os.environ.update(java_environment())
        spark = create_session("benchmark")
        settings, measured_on = session_settings(spark), conditions(spark)
        write_events(spark, str(table), options.rows)
        spark.stop()
        costs: dict[str, list[Cost]] = {way: [] for way in options.ways}
        loads = []
        for number in range(options.rounds):
            loads.append(round(os.getloadavg()[0], 1))
            turn = number % len(costs)
            for way in [*options.ways[turn:], *options.ways[:turn]]:
                kind = way.removesuffix(WITH_ARCHIVE)
                job, conf, env = [str(empty)], {}, java_environment()
                if kind != "empty job":
                    env |= for_a_short_life(os.environ)
                if kind == "gate":
                    job = gate(table, folder / f"results {way} {number}")
                elif kind != "empty job":
                    which = kind.removesuffix(" plan")
                    job = [str(plan), str(Path(__file__).parent), which, str(table)]
                    conf = settings
                costs[way].append(cost(job, conf, env, None if kind == way else archive))
        tell(costs)
        if options.to is not None:
            found = {
                "conditions": {**measured_on, "settings": settings, "load": loads},
                "rows": options.rows,
                "jobs": {way: [asdict(one) for one in own] for way, own in costs.items()},
            }
            options.to.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def tell(costs: Mapping[str, Sequence[Cost]]) -> None:
    print(f"{'':<40} {'wall':>6} {'cpu':>6}")
    for way, found in costs.items():
        wall = statistics.median(cost.wall_s for cost in found)
        cpu = statistics.median(cost.cpu_s for cost in found)
        print(f"{way:<40} {wall:>4.1f} s {cpu:>4.1f} s")
    for above, below in RATIOS:
        if {above, below} <= costs.keys():
            pairs = list(zip(costs[above], costs[below], strict=True))
            wall = statistics.median(a.wall_s / b.wall_s for a, b in pairs)
            cpu = statistics.median(a.cpu_s / b.cpu_s for a, b in pairs)
            print(f"{above + ' / ' + below:<40} {wall:>6.2f} {cpu:>6.2f}")


if __name__ == "__main__":
    main()
