"""Measures the cost of the language: starting `dql check`, and a check against lark's parsing
alone."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.syntax.grammar import grammar
from dqx_airflow.values import SourceFile

PROCESSES = 15
SIZES = {1_000: 7, 5_000: 3, 20_000: 1}
"""How many assertions, and how often each is measured."""

SMALL = 'suite "S" { check "C" on a { assert num_rows() > 0 name "x" } }\n'
HEAD = """suite "Orders" {
availability_threshold 80%
const MIN_ROWS = 100 tunable [50, 500]
const MOST_NULLS = 0.05
macro complete(column, share) {
  assert null_count({column}) / num_rows() < {share} name "{column} below {share}" severity P1
}
profile "Sale" {
  type holiday from 2024-11-29 to 2024-12-02
  scale tag "volume" by 2.0x
}
"""
ASSERTIONS = (
    'assert num_rows() >= MIN_ROWS name "rows {n}" severity P0 tags [volume, nightly]',
    'assert null_count(column_{n}) / num_rows() <= MOST_NULLS name "nulls {n}" severity P1',
    'assert average(price) between 10 and 500.5 name "average {n}" tags [money]',
    'assert each row: price > 0 and (quantity >= 1 or state in ["new", "open"]) name "sound {n}"',
    "use complete(column_{n}, 0.05)",
    'assert 99.5% of rows: email matches "^[^@]+@[^@]+$" name "emails {n}" severity P2',
    '@required assert day_over_day(num_rows()) < 0.5 name "change {n}"',
    'assert mean(sum(amount), n 7) - sum(amount, lag 1) * 1.5 + 3 > -2 name "trend {n}"',
    'assert duplicate_count([id, day]) == 0 name "unique {n}" severity P0 tags [keys]',
    'assert maximum(updated_at) >= "2024-01-01" name "fresh {n}"',
)


def suite(size: int) -> str:
    """A suite with this number of assertions of all kinds, fifty per check."""
    lines = [ASSERTIONS[n % len(ASSERTIONS)].replace("{n}", str(n)) for n in range(size)]
    checks = (
        f'check "Check {start}" on orders {{\n' + "\n".join(lines[start : start + 50]) + "\n}\n"
        for start in range(0, size, 50)
    )
    return f"{HEAD}{''.join(checks)}}}\n"


def median_seconds(
    action: Callable[[], object], times: int, clock: Callable[[], float] = time.process_time
) -> float:
    taken = []
    for _ in range(times):
        started = clock()
        action()
        taken.append(clock() - started)
    return statistics.median(taken)


def starts(small: Path) -> None:
    """`dql check` of a small suite in a process, against a process that only imports lark."""
    dql = str(Path(sys.executable).parent / "dql")
    commands = {"dql check": [dql, "check", str(small)]}
    commands["import lark"] = [sys.executable, "-c", "import lark"]
    medians = {}
    for name, command in commands.items():
        run = partial(subprocess.run, command, check=True, capture_output=True)
        run()  # warms the file cache
        medians[name] = median_seconds(run, PROCESSES, time.perf_counter)
        print(f"{name:<20} {medians[name]:.3f} s")
    print(f"{'above':<20} {medians['dql check'] - medians['import lark']:.3f} s")


def checking() -> None:
    """Parsing and checking a suite, against the time that lark alone takes to parse it."""
    print(f"\n{'assertions':>10} {'lark':>9} {'check':>9} {'ratio':>6} {'each':>8}")
    for size, times in SIZES.items():
        source = SourceFile("orders.dql", suite(size))
        checked = check_source(source)
        assert not checked.errors, draw(checked.errors, checked.sources)
        alone = median_seconds(partial(grammar().parse, source.text), times)
        whole = median_seconds(partial(check_source, source), times)
        each = 1e6 * whole / size
        print(f"{size:>10,} {alone:>7.3f} s {whole:>7.3f} s {whole / alone:>6.2f} {each:>5.0f} µs")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.dql"
        small.write_text(SMALL)
        starts(small)
    checking()


if __name__ == "__main__":
    main()
