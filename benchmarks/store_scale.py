"""Measures the cost of a results store of many runs: each query in a separate process, and the
writes.

    python benchmarks/store_scale.py [--runs 250000] [--gates 50] [--days 400] [--writes 2000]
        [--old 50000] [--root FOLDER]

Prints Markdown: the wall seconds, processor seconds and peak memory of each query.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from deltalake import DeltaTable
from grown_store import SCOPE, UNTIL, Run, fill, fill_as_before, gates, report_of, runs_of

from dqx_airflow.engine.scan.states import State, StateStore
from dqx_airflow.results import upkeep
from dqx_airflow.results.store import ResultsStore
from dqx_airflow.results.tables import locate

DQL = ["-c", "from dqx_airflow.cli.main import app; app()"]

_RELAY = """
import os, resource, sys, time
started = time.perf_counter()
status = os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:])
wall, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr)
sys.exit(status)
"""

_OPEN = "from dqx_airflow.results.query import StoredResults; store = StoredResults(ROOT);"


def questions(last: Run, ten: Sequence[str]) -> dict[str, Sequence[str]]:
    """The arguments of a Python process for each query, by the name of the query.

    :param ten: some of the gates.
    """
    dql = [*DQL, "results"]
    until = f"__import__('datetime').date.fromisoformat('{last.date}')"
    key = f"RunKey({last.gate!r}, {until}, {last.scheduler_run!r})"
    return {
        "`dql results list`": [*dql, "list"],
        "`dql results list --gate`": [*dql, "list", "--gate", last.gate],
        "`dql results show latest`": [*dql, "show", "latest"],
        "`dql results show ID`": [*dql, "show", last.run_id[:12]],
        "the report that a task waits for": code(
            "from dqx_airflow.results.runs import read_report;"
            "from dqx_airflow.values import RunKey;"
            f"assert read_report(ROOT, {key}, {last.attempt_id!r})"
        ),
        "the tab of a gate: its report and its past": code(
            f"{_OPEN} assert store.reports_of([{last.attempt_id!r}]);"
            f"assert len(store.past_reports([{last.gate!r}], {until}))"
        ),
        "an assertion's history over 90 days": code(
            f"{_OPEN} found = store.past_reports([{last.gate!r}], {until}, 90);"
            "assert [v.value for r in found for v in r.verdicts if v.name == 'last']"
        ),
        "a board of ten gates and their past": code(
            f"{_OPEN} assert store.past_reports({ten!r}, {until}, 30)"
        ),
        "the runs under a contract, ten gates": code(
            f"{_OPEN} assert store.contract_runs({ten!r}, 'urn:orders', {until})"
        ),
        "the states of 31 dates": code(
            "from dqx_airflow.engine.scan.states import StateStore;"
            "from dqx_airflow.results.tables import locate; from datetime import timedelta;"
            f"days = [{until} - timedelta(days=n) for n in range(31)];"
            f"assert StateStore(locate(ROOT)).recall({SCOPE + last.gate!r}, days)"
        ),
    }


def code(text: str) -> list[str]:
    return ["-c", f"import os; ROOT = os.environ['DQX_RESULTS_ROOT']; {text}"]


def ask(root: str, arguments: Sequence[str]) -> tuple[float, float, float]:
    """The wall seconds, processor seconds and peak MB of one process."""
    # Through a small process: the peak memory of a child includes that of its parent at the start.
    done = subprocess.run(
        [sys.executable, "-S", "-c", _RELAY, sys.executable, *arguments],
        env={**os.environ, "DQX_RESULTS_ROOT": root},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr}")
    wall, processor, memory = map(float, done.stderr.splitlines()[-1].split())
    return wall, processor, memory


def print_questions(root: str, last: Run, ten: Sequence[str], rounds: int) -> None:
    print("| question, in a process of its own | s | CPU s | MB |\n|---|---:|---:|---:|")
    for name, arguments in {"(nothing but the imports)": code("import deltalake"),
                            **questions(last, ten)}.items():  # fmt: skip
        asked = sorted(ask(root, arguments) for _ in range(rounds))
        wall, processor, memory = asked[len(asked) // 2]
        print(f"| {name} | {wall:.2f} | {processor:.2f} | {memory:.0f} |", flush=True)


def print_writes(root: str, runs: Sequence[Run]) -> None:
    """Writes runs as gates do, each with its states."""
    store, states = ResultsStore(root), StateStore(locate(root))
    took: list[float] = []
    used: list[float] = []
    for run in runs:
        report = report_of(run)
        found = {f"count(c{number})": number for number in range(10)}
        state = State(run.date, found, dict.fromkeys(found, "f" * 64))
        states.keep(SCOPE + run.gate, run.run_id, run.finished, [state])
        wall, processor = time.perf_counter(), time.process_time()
        store.write(report)
        took.append(time.perf_counter() - wall)
        used.append(time.process_time() - processor)
    for name, seconds in (("s", took), ("CPU s", used)):
        cuts = statistics.quantiles(seconds, n=100)
        print(
            f"\n{len(runs)} writes, {name}: median {cuts[49]:.3f}, 95 % {cuts[94]:.3f}, "
            f"99 % {cuts[98]:.3f}, at most {max(seconds):.3f}"
        )
    print_layout(root)


def print_layout(root: str) -> None:
    print("\n| table | rows | live files | entries of the log | MB of the log |")
    print("|---|---:|---:|---:|---:|")
    for folder in sorted(Path(root).iterdir()):
        if (folder / "_delta_log").is_dir():
            table, log = DeltaTable(str(folder)), [*(folder / "_delta_log").iterdir()]
            size = sum(entry.stat().st_size for entry in log) / 1e6
            print(
                f"| {folder.name} | {table.count():,} | {len(table.file_uris())} "
                f"| {len(log)} | {size:.1f} |"
            )
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=250_000)
    parser.add_argument("--gates", type=int, default=50)
    parser.add_argument("--days", type=int, default=400, help="over which the runs are spread")
    parser.add_argument("--writes", type=int, default=2_000)
    parser.add_argument("--old", type=int, default=0, help="runs of a store that is migrated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--root", type=Path)
    given = parser.parse_args()
    root = str(given.root or tempfile.mkdtemp(prefix="dqx_store_"))
    if given.old:
        measure_old(root, given.old, given.rounds)
    else:
        names = gates(given.gates)
        runs = runs_of(given.runs, UNTIL, names, given.days)
        fill(root, runs[: -given.writes])
        print_writes(root, runs[-given.writes :])
        print_questions(root, runs[-1], names[:10], given.rounds)
    if given.root is None:
        shutil.rmtree(root)


def measure_old(root: str, many: int, rounds: int) -> None:
    names = gates(50)
    runs = runs_of(many, UNTIL, names)
    # Single commits get slower and slower: only the first runs are written that way.
    fill_as_before(root, runs)
    optimize = [*DQL, "results", "optimize", "--yes"]
    print("optimize: {:.0f} s, {:.0f} CPU s, {:.0f} MB".format(*ask(root, optimize)))
    print_layout(root)
    print_questions(root, runs[-1], names[:10], rounds)
    print("once more: {:.1f} s, {:.1f} CPU s, {:.0f} MB".format(*ask(root, optimize)))
    upkeep.vacuum(root, dry_run=True)


if __name__ == "__main__":
    main()
