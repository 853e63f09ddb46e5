"""Runs us, the plans by hand and the other tools on the same tables, and stores the cost.

Each engine runs in its own environment, which is installed if it is missing, with the same Java and
the session of a gate on a machine with two cores. A run is a fresh JVM: its first judgement is what
a gate pays, the following ones are warm. In every round each engine runs once; every other round
takes the engines in the opposite order; --again names those of the rounds after the first. The
figures are medians of the ratios within a round, with
the CPU seconds of the JVM beside the wall time, because other processes lengthen the wall time
only. Every engine also judges a table with known faults, and all verdicts are compared with the
known ones.

The result goes to benchmarks/results/peers.json and from there into the docs. With --gate-jvm all
engines have the JVM options of a gate's driver: give --to, too.

    python benchmarks/peers/run.py [--rows ROWS ...] [--rounds 3] [--again ENGINE ...]
        [--minutes 60] [--gate-jvm] [--keep]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import report
from measuring import conditions
from peers.environments import CACHE, ENGINES, Interpreter, interpreter, titles
from peers.processes import session_settings, told_by
from scan_cost import session
from workload import write_events

from dqx_airflow.datasets.jvm_options import SUBMIT_OPTIONS, for_a_short_life

TIMEOUT_S = 600
DRIVE = Path(__file__).with_name("drive.py")
FAULTY_ROWS = 100_000
"""Of the table with faults, which is not timed."""


def drive(
    name: str,
    found: Interpreter,
    table: Path,
    warm: int,
    faulty: Path | None,
    settings: Mapping[str, str],
    jvm: Mapping[str, str],
) -> dict[str, Any]:
    """The cost and the verdicts of the engine, or the last lines of its error as `error`."""
    arguments = [ENGINES[name].module, str(table), "--warm", str(warm)]
    arguments += ["--faulty", str(faulty)] if faulty else []
    lines, complaint = told_by(found, DRIVE, arguments, settings, jvm, TIMEOUT_S)
    return {"error": complaint} if complaint is not None else dict(lines[-1])


def compare(options: argparse.Namespace, cache: Path) -> dict[str, Any]:
    """All runs of all engines, in the form in which they are stored."""
    names: Sequence[str] = options.engines
    interpreters = {name: interpreter(ENGINES[name], cache) for name in names}
    runs: dict[int, dict[str, list[dict[str, Any]]]] = {
        rows: {name: [] for name in names} for rows in options.rows
    }
    verdicts: dict[str, dict[str, dict[str, bool]]] = {}
    took = dict.fromkeys(options.rows, 0.0)
    loads = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        spark = session()
        measured_on = conditions(spark)
        settings = session_settings(spark)
        tables = write_tables(spark, Path(folder), options.rows)
        spark.stop()
        for number, rows in itertools.product(range(options.rounds), options.rows):
            begun = time.monotonic()
            if begun - started + took[rows] > options.minutes * 60:
                continue
            loads.append(round(os.getloadavg()[0], 1))
            for name in (options.again if number else names)[:: -1 if number % 2 else 1]:
                faulty = None if name in verdicts else tables[0]
                told = drive(
                    name,
                    interpreters[name],
                    tables[rows],
                    options.warm,
                    faulty,
                    settings,
                    for_a_short_life({}) if options.gate_jvm else {SUBMIT_OPTIONS: ""},
                )
                print_run(name, rows, number, told)
                if "verdicts" in told:
                    note(verdicts.setdefault(name, {}), told.pop("verdicts"))
                runs[rows][name].append(told)
            took[rows] = time.monotonic() - begun
    return {
        "conditions": {**measured_on, "settings": settings, "load": loads},
        "engines": titles(names),
        "runs": {str(rows): own for rows, own in runs.items()},
        "verdicts": verdicts,
    }


def with_earlier(found: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """A result with the sizes of an earlier one that it lacks, the smallest first."""
    now, before = found["conditions"], earlier["conditions"]
    taken = sorted({now["taken"], *before["taken"].split(" and ")})
    runs = {**earlier["runs"], **found["runs"]}
    verdicts = {**earlier["verdicts"], **found["verdicts"]}
    return {
        "conditions": {
            **now,
            "taken": " and ".join(taken),
            "load": [*before["load"], *now["load"]],
        },
        "engines": {**earlier["engines"], **found["engines"]},
        "runs": {rows: runs[rows] for rows in sorted(runs, key=int)},
        "verdicts": verdicts,
    }


def note(verdicts: dict[str, dict[str, bool]], said: Mapping[str, Mapping[str, bool]]) -> None:
    """Adds the verdicts of a run on each table: a check that failed once counts as failed."""
    for table, judged in said.items():
        known = verdicts.setdefault(table, {})
        for check, holds in judged.items():
            known[check] = holds and known.get(check, True)


def write_tables(spark: Any, folder: Path, sizes: Sequence[int]) -> dict[int, Path]:
    """The paths of the tables by their rows; 0 is the table with faults."""
    tables = {rows: folder / f"events_{rows}" for rows in sizes}
    for rows, path in tables.items():
        write_events(spark, str(path), rows)
    tables[0] = folder / "faulty"
    write_events(spark, str(tables[0]), FAULTY_ROWS, faulty=True)
    return tables


def print_run(engine: str, rows: int, number: int, told: Mapping[str, Any]) -> None:
    if "error" in told:
        what = told["error"]
    else:
        warm = ", ".join(f"{run['wall_s']:.1f}" for run in told["warm"])
        what = f"first {told['first']['wall_s']:.1f} s, warm {warm} s"
    print(f"{rows:>12,} rows, round {number + 1}: {engine:<17} {what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--minutes", type=float, default=60, help="no round is begun that takes longer than these"
    )
    parser.add_argument("--warm", type=int, default=1, help="how often, after the first run")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument(
        "--again", nargs="+", choices=ENGINES, help="after the first round (default: all)"
    )
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument(
        "--gate-jvm", action="store_true", help="all with the JVM options of a gate"
    )
    parser.add_argument("--to", type=Path, help="the result, if not into the docs")
    parser.add_argument(
        "--prepare", action="store_true", help="make the environments, and measure nothing"
    )
    parser.add_argument(
        "--keep", action="store_true", help="what was measured of other sizes stays in the result"
    )
    options = parser.parse_args()
    if options.gate_jvm and options.to is None:
        parser.error("the page has the default options of the JVM: give --to")
    cache = options.cache.resolve()
    options.again = options.again or options.engines
    if not set(options.again) <= set(options.engines):
        parser.error("--again names engines that are not in --engines")
    if options.prepare:
        for name in options.engines:
            interpreter(ENGINES[name], cache)
        return
    found = compare(options, cache)
    into_docs = report.RESULTS / "peers.json"
    if options.keep:
        found = with_earlier(found, report.stored("peers"))
    (options.to or into_docs).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.to is None:
        report.main()


if __name__ == "__main__":
    main()
