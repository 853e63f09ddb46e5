"""How the cost grows with days, assertions, columns and keys: ours, the plans by hand, other tools.

The sweeps and their steps are in `sweep_steps`. In every round each engine runs each sweep once, in
a JVM and an environment of its own, with the same Java and the session of a gate on a machine with
two cores; every other round takes the engines in the opposite order; --again names those of the
rounds after the first. The figures are medians of the ratios within a round. An engine that exceeds
the limit for the steps of a sweep is stopped and keeps the steps that it finished.

After every process, the result goes to benchmarks/results/sweeps.json and from there into the docs,
so an interrupted measurement keeps what it has.

    python benchmarks/sweeps.py [--rows ROWS] [--rounds 3] [--minutes 60] [--engines ENGINE ...]
        [--again ENGINE ...]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import report
from measuring import conditions
from peers.environments import CACHE, ENGINES, Interpreter, interpreter, titles
from peers.processes import session_settings, told_by
from scan_cost import session, write_wide
from sweep_steps import COLUMNS, DAYS, SWEEPS
from workload import write_events

from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS

DRIVE = Path(__file__).parent / "peers" / "drive_sweep.py"
RESULT = report.RESULTS / "sweeps.json"


def write_days(spark: Any, path: str, rows: int) -> None:
    """Writes the longest window, with the same share of the rows on each day."""
    write_events(spark, path, rows // DAYS[-1], days=DAYS[-1])


TABLES: Mapping[str, Callable[[Any, str, int], None]] = {
    "windows": write_days,
    "assertions": write_wide,
    "columns": partial(write_wide, columns=COLUMNS[-1]),
    "keys": write_events,
}
"""Who writes the table of a sweep."""


def sweep(options: argparse.Namespace) -> None:
    """Measures round after round, and stores the result after every process."""
    names = list(options.engines)
    cache = options.cache.resolve()
    interpreters = {name: interpreter(ENGINES[name], cache) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        spark = session()
        settings = session_settings(spark)
        measured_on = {**conditions(spark), "settings": settings, "load": []}
        for key, write in TABLES.items():
            write(spark, f"{folder}/{key}", options.rows)
        spark.stop()
        found: dict[str, Any] = {
            "conditions": measured_on,
            "engines": titles(names),
            "rows": options.rows,
            "sweeps": {
                key: {"title": its.title, "steps": list(its.steps), "rounds": []}
                for key, its in SWEEPS.items()
            },
        }
        started, took = time.monotonic(), 0.0
        for number in range(options.rounds):
            begun = time.monotonic()
            if begun - started + took > options.minutes * 60:
                break
            measured_on["load"].append(round(os.getloadavg()[0], 1))
            for key, its in found["sweeps"].items():
                its["rounds"].append({})
                for name in (options.again if number else names)[:: -1 if number % 2 else 1]:
                    table = f"{folder}/{key}"
                    done = steps_of(name, interpreters[name], key, table, settings, options)
                    its["rounds"][-1][name] = done
                    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
                    print_steps(its["title"], number, name, done)
            took = time.monotonic() - begun


def steps_of(
    name: str,
    found: Interpreter,
    key: str,
    table: str,
    settings: Mapping[str, str],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """The steps of a sweep that the engine finished, with an `error` if some are missing."""
    arguments = [ENGINES[name].module, table, key, "--runs", str(options.runs)]
    jvm = {SUBMIT_OPTIONS: ""}
    steps, complaint = told_by(found, DRIVE, arguments, settings, jvm, options.limit)
    return {"steps": steps} | ({} if complaint is None else {"error": complaint})


def print_steps(title: str, number: int, name: str, done: Mapping[str, Any]) -> None:
    told = [f"{step['step']}: {step['runs'][-1]['wall_s']:.1f} s" for step in done["steps"]]
    told += [done["error"]] if "error" in done else []
    print(f"{title}, round {number + 1}: {name:<17} {', '.join(told)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--minutes", type=float, default=60, help="no round is begun that takes longer than these"
    )
    parser.add_argument("--runs", type=int, default=1, help="how often, after one to warm up")
    parser.add_argument(
        "--limit", type=float, default=300, help="seconds that an engine has for a sweep"
    )
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument(
        "--again", nargs="+", choices=ENGINES, help="after the first round (default: all)"
    )
    parser.add_argument("--cache", type=Path, default=CACHE)
    options = parser.parse_args()
    options.again = options.again or options.engines
    if not set(options.again) <= set(options.engines):
        parser.error("--again names engines that are not in --engines")
    try:
        sweep(options)
    except KeyboardInterrupt:
        print("interrupted: what is measured so far is stored")
    report.main()


if __name__ == "__main__":
    main()
