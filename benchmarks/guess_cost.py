"""Wide text files: `dql run` over CSV and JSON with guessed types against a declared schema, with
the 1 GB of memory that Spark takes by default.

Each run is a process of its own. Processor time and the peak of the resident memory are those of
the command and its JVM. `--rows` makes the files longer, to compare the cost per value.

    python benchmarks/guess_cost.py [--columns 50 200 500 1000] [--rows 20] [--memory 1g]
        [--formats csv json]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DQL = shutil.which("dql", path=str(Path(sys.executable).parent)) or "dql"
SUITE = 'suite "Wide" {{ check "C" on {way} {{ assert num_rows() == {rows} name "rows" }} }}'
WITH_ALL_CHILDREN = """
import ctypes, os, resource, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: a JVM that outlives its parent is ours
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6)
sys.exit(done.returncode)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """The resources that a command used, and its exit code: 0 if all assertions passed."""

    cpu_s: float
    peak_gb: float
    exit_code: int


def values(columns: int) -> Iterator[tuple[str, str, str]]:
    """The name, the value and the type of each column: whole numbers, decimals, dates, texts."""
    kinds = (("7", "int"), ("1.50", "decimal(3,2)"), ("2024-03-02", "date"), ("ok", "string"))
    for number in range(columns):
        value, kind = kinds[number % len(kinds)]
        yield f"c{number}", value, kind


def write(path: Path, columns: int, rows: int) -> None:
    """Writes a file of one form by its suffix."""
    found = list(values(columns))
    if path.suffix == ".csv":
        header = ",".join(name for name, _, _ in found)
        line = ",".join(value for _, value, _ in found)
    else:
        header = ""
        fields = (
            f'"{name}": {value if kind in ("int", "decimal(3,2)") else json.dumps(value)}'
            for name, value, kind in found
        )
        line = "{" + ", ".join(fields) + "}"
    with path.open("w", encoding="utf-8") as file:
        if header:
            file.write(f"{header}\n")
        for _ in range(rows):
            file.write(f"{line}\n")


def cost(suite: Path, memory: str) -> Cost:
    """Runs a suite in a process of its own; its dataset is in the dqx.toml beside it."""
    command = [DQL, "run", str(suite), "--date", "2024-03-02"]
    done = subprocess.run(
        [sys.executable, "-c", WITH_ALL_CHILDREN, *command],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--driver-memory {memory} pyspark-shell"},
        check=False,
        capture_output=True,
        text=True,
    )
    cpu_s, peak_gb = map(float, done.stdout.split())
    return Cost(cpu_s, peak_gb, done.returncode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[50, 200, 500, 1000])
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--memory", default="1g")
    parser.add_argument("--formats", nargs="+", default=["csv", "json"])
    options = parser.parse_args()
    print("| format | columns | rows | schema | CPU s | peak GB | exit code |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "wide.dql")
        config = Path(folder, "dqx.toml")
        for format in options.formats:
            for columns in options.columns:
                path = Path(folder, f"wide.{format}")
                write(path, columns, options.rows)
                schema = ", ".join(f"{name} {kind}" for name, _, kind in values(columns))
                datasets = (
                    f'[datasets.declared]\npath = "{path}"\nformat = "{format}"\n'
                    f'schema = "{schema}"\n[datasets.guessed]\npath = "{path}"\n'
                    f'format = "{format}"\n'
                )
                config.write_text(datasets, encoding="utf-8")
                for way in ("declared", "guessed"):
                    suite.write_text(SUITE.format(way=way, rows=options.rows), encoding="utf-8")
                    found = cost(suite, options.memory)
                    print(
                        f"| {format} | {columns:,} | {options.rows:,} | {way} "
                        f"| {found.cpu_s:.0f} | {found.peak_gb:.2f} | {found.exit_code} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
