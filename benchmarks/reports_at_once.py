"""Measures the writes of many gates that end at the same time, in a results store that has a month.

    python benchmarks/reports_at_once.py [--reports 300] [--writers 8] [--assertions 10]

Each writer is a process, as the task of a gate is, and writes its share of the reports one by one
as fast as it can. Prints the wall time from the first to the last report, the processor time of
each report, and the reports that failed: there must be none. The import of the libraries, which a
task needs anyway, is not counted.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path

from grown_store import Run, fill, report_of, runs_of

from dqx_airflow.errors import StoreError
from dqx_airflow.results.query import StoredResults
from dqx_airflow.results.store import ResultsStore

NIGHTS = 30
_WARM_UP_S = 5.0


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer has done: when it began and ended, and the seconds of each report."""

    began: float
    ended: float
    cpu_s: tuple[float, ...]
    clock_s: tuple[float, ...]
    failed: tuple[str, ...]


def write(root: str, runs: Sequence[Run], assertions: int, start: float) -> Written:
    """Writes the reports of some runs from a time on."""
    reports = [report_of(run, assertions) for run in runs]
    time.sleep(max(0.0, start - time.time()))
    began = time.time()
    cpu, clock, failed = [], [], []
    for report in reports:
        cpu_before, before = time.process_time(), time.perf_counter()
        try:
            ResultsStore(root).write_all([(report, ())])
        except StoreError as error:
            failed.append(str(error))
        cpu.append(time.process_time() - cpu_before)
        clock.append(time.perf_counter() - before)
    return Written(began, time.time(), tuple(cpu), tuple(clock), tuple(failed))


def shares(runs: Sequence[Run], writers: int) -> list[Sequence[Run]]:
    return [runs[number::writers] for number in range(writers)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=300)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--assertions", type=int, default=10)
    parser.add_argument("--profile", action="store_true", help="of one writer alone")
    given = parser.parse_args()
    gates = [f"lake.gate_{number}" for number in range(given.reports)]
    runs = runs_of(given.reports * (NIGHTS + 1), datetime.now(timezone.utc), gates, days=NIGHTS + 1)
    tonight = runs[-given.reports :]
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "results")
        fill(root, runs[: -given.reports], given.assertions)
        if given.profile:
            profile = cProfile.Profile()
            profile.runcall(write, root, tonight, given.assertions, 0.0)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
            return
        start = time.time() + _WARM_UP_S
        with ProcessPoolExecutor(given.writers, mp_context=get_context("spawn")) as pool:
            jobs = [
                pool.submit(write, root, some, given.assertions, start)
                for some in shares(tonight, given.writers)
            ]
            done = [job.result() for job in jobs]
        show(done)
        since = tonight[0].date - timedelta(days=1)
        found = StoredResults(root).past_reports(
            gates, tonight[-1].date, (tonight[-1].date - since).days
        )
        stored = {report.run_id for report in found} & {run.run_id for run in tonight}
        print(f"{len(stored)} of {len(tonight)} reports are in the store")


def show(done: Sequence[Written]) -> None:
    """Prints the times of all writers together."""
    cpu = [one for writer in done for one in writer.cpu_s]
    clock = [one for writer in done for one in writer.clock_s]
    seconds = max(writer.ended for writer in done) - min(writer.began for writer in done)
    failed = [one for writer in done for one in writer.failed]
    print(f"{len(cpu)} reports by {len(done)} writers: {seconds:.1f} s, {sum(cpu):.1f} s of CPU")
    print(f"each: median {statistics.median(cpu):.3f} s of CPU, maximum {max(cpu):.3f} s")
    print(f"by the clock: median {statistics.median(clock):.2f} s, maximum {max(clock):.2f} s")
    print(f"{len(failed)} failed{''.join(f'; {text}' for text in failed[:3])}")


if __name__ == "__main__":
    main()
