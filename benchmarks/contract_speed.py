"""Measures the cost of a contract without Spark: reading it, compiling it to a suite, checking the
suite.

The goal for a contract of 100 fields is one second. The first line is a fresh process; the others
are a process that is warm. All figures are processor time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

from dqx_airflow.contracts.compile.suite import compile_contract
from dqx_airflow.contracts.read import read_contract
from dqx_airflow.dql.check import check_source
from dqx_airflow.values import SourceFile

SIZES = (10, 100, 500)
TIMES = 5
HEAD = """\
dataContractSpecification: 1.1.0
id: wide
info: {title: Wide, version: 1.0.0}
models:
  wide:
    type: table
    quality:
      - {type: sql, query: SELECT COUNT(*) FROM wide WHERE price_2 < 0, mustBe: 0}
    fields:
"""
FIELDS = (
    "id_{n}: {{type: text, required: true, unique: true, pattern: '^[A-Z]{{2}}[0-9]+$'}}",
    "email_{n}: {{type: text, format: email, minLength: 3, maxLength: 254}}",
    "price_{n}: {{type: decimal, precision: 18, scale: 2, minimum: 0, maximum: 100000}}",
    "state_{n}: {{type: text, required: true, enum: [open, paid, shipped, returned]}}",
    "at_{n}: {{type: timestamp, required: true}}",
    "tags_{n}: {{type: array, items: {{type: text, pattern: '^[a-z]+$'}}}}",
)


def contract(size: int) -> str:
    """A contract with this number of fields of all kinds."""
    fields = (FIELDS[n % len(FIELDS)].format(n=n) for n in range(size))
    return HEAD + "".join(f"      {field}\n" for field in fields)


def whole(text: str) -> tuple[float, float, float, int]:
    """The seconds of reading, compiling and checking, and the number of assertions."""
    clock: Callable[[], float] = time.process_time  # other processes lengthen the wall time
    started = clock()
    read = read_contract(SourceFile("contract.yaml", text))
    assert read.contract is not None
    assert not read.errors
    was_read = clock()
    compiled = compile_contract(read.contract)
    was_compiled = clock()
    checked = check_source(SourceFile("suite.dql", compiled.text))
    assert not checked.errors
    return (
        was_read - started,
        was_compiled - was_read,
        clock() - was_compiled,
        len(compiled.enforced),
    )


def main() -> None:
    if sys.argv[1:] == ["once"]:
        whole(contract(100))
        return
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([sys.executable, __file__, "once"], check=True)
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"a new process, 100 fields: {taken:.2f} s")
    print(f"\n{'fields':>6} {'assertions':>10} {'read':>9} {'compile':>9} {'check':>9} {'all':>9}")
    for size in SIZES:
        text = contract(size)
        best = min((whole(text) for _ in range(TIMES)), key=lambda taken: sum(taken[:3]))
        *seconds, assertions = best
        parts = " ".join(f"{part:>7.3f} s" for part in (*seconds, sum(seconds)))
        print(f"{size:>6} {assertions:>10} {parts}")


if __name__ == "__main__":
    main()
