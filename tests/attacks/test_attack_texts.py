"""Hostile strings: accepted random patterns against strings made to slow the matcher down.

A pattern may be refused. One that is accepted is judged, on strings of any length, in bounded time:
it neither ends the JVM nor passes where Java cannot decide.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.engine.job import run_gates
from dqx_airflow.metrics.patterns.bounds import bounded
from dqx_airflow.metrics.patterns.syntax import PatternError
from dqx_airflow.values import DatasetRef, Status
from tests.attacks.attack_gates import gate_request

pytestmark = pytest.mark.spark

SEEDS = [
    *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 12)),
    pytest.param(0, marks=pytest.mark.nightly),
]
PATTERNS = 40
SECONDS = 240.0
"""For all patterns of a seed, on a machine that does other things besides."""

_ATOMS = ["a", "b", "ab", "[ab]", "[^a]", ".", r"\w", r"\d", r"\s", "(a|b)", "(a|ab)", "(?:ab?)"]
_ATOMS += ["(a|a)", "(?i:a)", "x", r"\.", "[a-z0-9_.+-]", "(ab|cd)"]
_TURNS = ["", "", "", "*", "+", "?", "*?", "+?", "{2,5}", "{3}", "{1,}", "++"]
_ENDS = ["", "$", r"\z", "!"]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_accepted_pattern_is_decided_in_time(
    seed: int, spark: Any, tmp_path: Path, attack: Callable[[str], Any]
) -> None:
    chance = Random(seed)
    patterns = _accepted(chance)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": _strings(chance)}), path)
    claims = "\n".join(
        f'assert each row: s matches "{_escaped(pattern)}" name "n{number}"'
        for number, pattern in enumerate(patterns)
    )
    suite = f'suite "Patterns" {{ check "Strings" on t {{\n{claims}\n}} }}'
    began = time.monotonic()
    gate = gate_request(
        tmp_path, suite, [DatasetRef("t", path=str(path), format="parquet")], sample_rows=0
    )
    report = run_gates([gate], lambda _: spark)[0]
    took_s = time.monotonic() - began
    tally = attack("hostile strings: accepted patterns, judged in time")
    for pattern, verdict in zip(patterns, report.verdicts[-len(patterns) :], strict=True):
        # Few patterns match all of these strings: some are empty, or have none of its characters.
        is_undecided = bounded(pattern).longest is not None and "characters" in str(verdict.reason)
        is_right = {
            Status.FAILED: True,
            Status.PASSED: _matches_all(pattern),
            Status.ERROR: is_undecided,
        }.get(verdict.status, False)
        tally.tried(is_right, f"seed {seed}, {pattern!r}: {verdict.status} ({verdict.reason})")
    tally.tried(took_s < SECONDS, f"seed {seed}: took {took_s:.0f} s")


def _accepted(chance: Random) -> list[str]:
    accepted: list[str] = []
    while len(accepted) < PATTERNS:
        pattern = chance.choice(["", "^"]) + _row(chance, 0) + chance.choice(_ENDS)
        try:
            bounded(pattern)
        except PatternError:
            continue
        if pattern not in accepted:
            accepted.append(pattern)
    return accepted


def _row(chance: Random, depth: int) -> str:
    parts = []
    for _ in range(chance.randint(1, 4)):
        inner = depth < 2 and chance.random() < 0.3
        atom = f"({_row(chance, depth + 1)})" if inner else chance.choice(_ATOMS)
        parts.append(atom + chance.choice(_TURNS))
    return "".join(parts)


def _strings(chance: Random) -> list[str]:
    """Runs of what the atoms match, short to very long, with an end that nothing expects."""
    runs = ["a", "b", "ab", "aab", "abcd", "0", "a.", " ", "_"]
    lengths = [1, 30, 100, 650, 5_000, 50_000]
    long = [chance.choice(runs) * length + chance.choice(["", "\u2603", "\n", "c"])
            for length in lengths for _ in range(3)]  # fmt: skip
    return ["", "\u2603", "\n", *long]


def _escaped(pattern: str) -> str:
    return pattern.replace("\\", "\\\\").replace('"', '\\"')


def _matches_all(pattern: str) -> bool:
    """True for a pattern that may match the empty string anywhere, and so every string."""
    try:
        return re.search(pattern.replace(r"\z", r"\Z"), "\u2603") is not None
    except re.error:
        return True
