"""The cost of work on Spark: seconds, jobs and bytes read.

Imports nothing but pyspark: it also runs in the environments of the other tools.
"""

from __future__ import annotations

import os
import platform
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

JVM = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    "spark.log.level": "ERROR",
    # Spark does not count the bytes that parquet reads from a local disk with vectored calls.
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
}
"""The settings with which every session starts."""


@dataclass(frozen=True)
class Run:
    """The cost of one run. `cpu_s` is that of the JVM, 0 where the system does not report it."""

    wall_s: float
    cpu_s: float
    jobs: int
    bytes_read: int


def submit_with(settings: Mapping[str, str]) -> None:
    """Sets the options with which the next session of this process starts."""
    told = (f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*told, "pyspark-shell"])


def run_of(spark: Any, work: Callable[[], T]) -> tuple[Run, T]:
    """The cost of the work, and its result."""
    jobs, read = _done_so_far(spark)
    cpu, started = _cpu(spark), time.perf_counter()
    result = work()
    wall_s, cpu_s = time.perf_counter() - started, _cpu(spark) - cpu
    jobs_then, read_then = _done_so_far(spark)
    return Run(round(wall_s, 3), round(cpu_s, 2), jobs_then - jobs, read_then - read), result


def _done_so_far(spark: Any) -> tuple[int, int]:
    """The number of jobs, and the bytes that their stages read, in all threads and groups."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    defaults = (getattr(store, f"stageList$default${number}")() for number in range(2, 6))
    stages = store.stageList(None, *defaults)
    read = sum(stages.apply(number).inputBytes() for number in range(stages.size()))
    return store.jobsList(None).size(), read


def _cpu(spark: Any) -> float:
    jvm = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    try:
        fields = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rounds(
    spark: Any, ways: Mapping[str, Callable[[], object]], count: int
) -> dict[str, list[Run]]:
    """The runs of each way in changing order, after one warm-up round."""
    found: dict[str, list[Run]] = {name: [] for name in ways}
    for number in range(count + 1):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            run, _ = run_of(spark, ways[name])
            if number:
                found[name].append(run)
    return found


def java_version(spark: Any) -> str:
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))


def conditions(spark: Any) -> dict[str, Any]:
    """The date and the machine of the measurement."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "taken": datetime.now(timezone.utc).date().isoformat(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "java": java_version(spark),
        "python": platform.python_version(),
    }
