"""What starting costs: a whole gate and an empty spark-submit job, with and without an archive.

Each round runs all four, one after the other, in changing order. What counts are the ratios within
a round, of which the median is told: of the wall time, and of the processor time, which says more
on a machine that is busy.

    python benchmarks/start_cost.py [ROUNDS]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workload import DAY, SUITE, write_events

from dqx_airflow.arguments import to_arguments
from dqx_airflow.cli.package.jvm_archive import write_archive
from dqx_airflow.config.jvm_options import DRIVER_OPTIONS, for_a_short_life, with_archive
from dqx_airflow.engine.java import java_environment
from dqx_airflow.engine.session import create_session
from dqx_airflow.shipped import shipped
from dqx_airflow.values import Attempt, DatasetRef, GateRequest, RunKey, SourceFile

ROUNDS = 5
ROWS = 100_000
EMPTY = "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate().stop()\n"
RATIOS = (
    ("gate", "empty job"),
    ("gate, archive", "gate"),
    ("gate, archive", "empty job"),
    ("empty job, archive", "empty job"),
)


def gate(events: Path, results: Path) -> list[str]:
    """The job and its arguments. Nothing is stored there yet, so all is computed."""
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
    """Seconds of a whole process with its children."""

    wall: float
    cpu: float


def cost(job: Sequence[str], archive: Path | None, env: Mapping[str, str]) -> Cost:
    conf = {"spark.pyspark.driver.python": sys.executable}
    if archive is not None:
        conf[DRIVER_OPTIONS] = with_archive("", str(archive))
    told = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    started, used = time.perf_counter(), cpu_of_children()
    subprocess.run(
        ["spark-submit", "--master", "local[2]", *told, *job],
        env={**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", **env},
        check=True,
        capture_output=True,
    )
    return Cost(time.perf_counter() - started, cpu_of_children() - used)


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        empty = folder / "empty.py"
        empty.write_text(EMPTY)
        archive = folder / "gate.jsa"
        write_archive(archive)
        os.environ.update(java_environment())
        spark = create_session("benchmark")
        write_events(spark, str(folder / "events"), ROWS)
        spark.stop()
        costs: dict[str, list[Cost]] = {name: [] for pair in RATIOS for name in pair}
        for number in range(rounds):
            names = list(costs)
            for what in names[number % 4 :] + names[: number % 4]:
                job, env = [str(empty)], java_environment()
                if what.startswith("gate"):
                    job = gate(folder / "events", folder / f"results {what} {number}")
                    env |= for_a_short_life(os.environ)
                costs[what].append(cost(job, archive if what.endswith("archive") else None, env))
        tell(costs)


def tell(costs: Mapping[str, Sequence[Cost]]) -> None:
    print(f"{'':<32} {'wall':>6} {'cpu':>6}")
    for what, found in costs.items():
        wall = statistics.median(cost.wall for cost in found)
        cpu = statistics.median(cost.cpu for cost in found)
        print(f"{what:<32} {wall:>4.1f} s {cpu:>4.1f} s")
    for above, below in RATIOS:
        pairs = list(zip(costs[above], costs[below], strict=True))
        wall = statistics.median(a.wall / b.wall for a, b in pairs)
        cpu = statistics.median(a.cpu / b.cpu for a, b in pairs)
        print(f"{above + ' / ' + below:<32} {wall:>6.2f} {cpu:>6.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
