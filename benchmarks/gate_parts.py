"""Where the time of a local Spark gate goes, by part: `dql run` of twenty assertions, whose report
is stored, in a process of its own.

For each part the time by the clock, and the processor time of Python and of its JVM. On a machine
with other work, rely on the processor time. The JVM warms up on a thread of its own, which counts
to the part in which it runs.

    python benchmarks/gate_parts.py [ROUNDS] [--rows 100000] [--archive]
"""

from __future__ import annotations

import argparse
import atexit
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from start_cost import cpu_of_children
from whole_runs import WITH_ALL_CHILDREN
from workload import DAY, SUITE, write_events

from dqx_airflow.engine.session.class_cache import CACHE
from dqx_airflow.engine.session.java import java_environment
from dqx_airflow.engine.session.spark_session import create_session

PARTS = (
    "Python: start, imports, the suite",
    "JVM: start",
    "session of Spark",
    "plan: labels, proofs, opening the dataset",
    "scan",
    "verdicts and report",
    "store",
    "end of Python and of the JVM",
)
_TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--archive", action="store_true", help="with cached classes")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write is not None:
        write_events(create_session("benchmark"), str(given.write), given.rows)
    elif given.run is not None:
        _run_in_parts(Path(given.run[0]), json.loads(given.run[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            _measure(Path(folder), given.rounds, given.rows, with_archive=given.archive)


def _measure(folder: Path, rounds: int, rows: int, *, with_archive: bool) -> None:
    suite = folder / "suite.dql"
    suite.write_text(SUITE, encoding="utf-8")
    events = folder / "events"
    writing = [sys.executable, __file__, "--rows", str(rows), "--write", str(events)]
    subprocess.run(writing, check=True, env={**os.environ, **java_environment()})
    os.environ[CACHE] = str(folder / "classes") if with_archive else ""
    found = []
    # The first rounds warm the caches of the system; the very first one writes the archive.
    for number in range(-2, rounds):
        results = folder / f"results_{number}"
        words = ["run", str(suite), "--dataset", f"events={events}?format=parquet"]
        words += ["--date", str(DAY), "--results-root", str(results), "--quiet"]
        costs = _costs(folder, words)
        if number >= 0:
            found.append(costs)
        elif with_archive:
            print(f"CPU of an earlier run: {sum(cost[1] + cost[2] for cost in costs):.1f} s")
    print(f"{rows:,} rows, medians of {rounds} rounds, load {os.getloadavg()[0]:.1f}\n")
    print("| part | seconds | CPU of Python | CPU of the JVM |\n|---|---:|---:|---:|")
    totals = [0.0, 0.0, 0.0]
    for number, part in enumerate(PARTS):
        medians = [statistics.median(run[number][column] for run in found) for column in range(3)]
        totals = [total + median for total, median in zip(totals, medians, strict=True)]
        print(f"| {part} | {' | '.join(f'{median:.2f}' for median in medians)} |")
    print(f"| **together** | {' | '.join(f'{total:.2f}' for total in totals)} |")


def _costs(folder: Path, words: list[str]) -> list[tuple[float, ...]]:
    """The time, and the processor time of Python and of the JVM, of each part of a run."""
    file = folder / "marks.json"
    run = [sys.executable, __file__, "--run", str(file), json.dumps(words)]
    began_s = time.monotonic()
    used_s = cpu_of_children()
    told = [sys.executable, "-c", WITH_ALL_CHILDREN, *run]
    done = subprocess.run(told, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dql run ended with {done.returncode}:\n{done.stderr}")
    marks: list[tuple[float, ...]] = [(began_s, 0.0, 0.0), *json.loads(file.read_text())]
    _, of_python, of_jvm = marks[-1]
    of_jvm += cpu_of_children() - used_s - of_python - of_jvm
    marks.append((time.monotonic(), of_python, of_jvm))
    pairs = itertools.pairwise(marks)
    return [tuple(after - before for before, after in zip(*pair, strict=True)) for pair in pairs]


def _run_in_parts(file: Path, words: list[str]) -> None:
    """Runs `dql` in this process, and writes a mark at the end of each part but the last."""
    from pyspark import java_gateway

    from dqx_airflow.cli import main as dql
    from dqx_airflow.cli import spark as of_calls
    from dqx_airflow.engine import measure, validation
    from dqx_airflow.results.store import ResultsStore

    marks: list[tuple[float, float, float]] = []
    jvms: list[Any] = []

    def mark() -> None:
        jvm_s = _cpu_of(jvms[0].proc.pid) if jvms else 0.0
        marks.append((time.monotonic(), time.process_time(), jvm_s))

    def launch(conf: Any) -> Any:
        mark()
        gateway = _launch(conf)
        jvms.append(gateway)
        mark()
        return gateway

    _launch = java_gateway.launch_gateway
    java_gateway.launch_gateway = launch
    of_calls.open_session = _with_mark(of_calls.open_session, mark)
    measure._open_all = _with_mark(measure._open_all, mark)
    validation.measure_together = _with_mark(validation.measure_together, mark)
    write_all = _with_mark(ResultsStore.write_all, mark)

    def store(*given: Any) -> Any:
        mark()
        return write_all(*given)

    ResultsStore.write_all = store  # type: ignore[method-assign]
    sys.argv = ["dql", *words]
    atexit.register(lambda: file.write_text(json.dumps(marks), encoding="utf-8"))
    dql.main()


def _with_mark(function: Callable[..., Any], mark: Callable[[], None]) -> Callable[..., Any]:
    """The function, which makes a mark when it ends."""

    def marked(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        finally:
            mark()

    return marked


def _cpu_of(process: int) -> float:
    """The processor time of a process and of what it waited for (proc(5)): the script of Spark
    becomes the JVM, after another one has told it how to start."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


if __name__ == "__main__":
    main()
