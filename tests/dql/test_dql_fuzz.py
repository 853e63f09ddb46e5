"""Any input is checked in bounded time, with diagnostics that can be drawn, or with a plan.

Three kinds of files: derived from the grammar, so that nearly all parse; suites and cases of
diagnostics with something cut, doubled or swapped in them; suites cut anywhere.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.checks.assertions import datasets_of
from dqx_airflow.plan.dataset_needs import check_datasets
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.model import Scanned
from dqx_airflow.plan.resolve import resolve
from dqx_airflow.values import DatasetRef, SourceFile, Span
from tests.dql.programs import program
from tests.markdown_cases import cases

HERE = Path(__file__).parent
FILES = [*HERE.parents[1].glob("dags_examples/suites/*.dql"), *HERE.glob("seed/*.dql")]
SUITES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FILES)}
CASES = [
    block.text
    for case in cases(*HERE.glob("diagnostics/*.md"))
    for block in case.blocks
    if block.kind == "dql"
]
TEXTS = [*SUITES.values(), *CASES]

SECONDS_EACH = 3.0
"""The first file with SQL in it loads sqlglot; the others take milliseconds."""
AMOUNTS = [pytest.param(600, id="some"), pytest.param(10_000, id="many", marks=pytest.mark.nightly)]
"""How many files of a kind are tried."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+|\s+|.', re.DOTALL)
_STRANGE = ('"', "`", "{", "}", "(", ")", "[", "]", "\0", "\ufeff", "\r", "\\", "#", "@", "🦆", "é")
_STRANGE += ("9" * 400, "1e400", "9999-12-31", "0001-01-01", "None", "lag", "n", "dataset", "-")
_STRANGE += ('""', "{x}", "suite", "assert", "\n", "\u2028", "\x85")


@pytest.mark.slow
@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_file_of_the_grammar_gives_diagnostics_or_a_plan_and_never_a_traceback(
    amount: int,
) -> None:
    _try(amount, lambda chance: program(chance, chance.randint(8, 150)))


@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_mutated_file_gives_diagnostics_or_a_plan_and_never_a_traceback(amount: int) -> None:
    _try(amount, _mutated)


@pytest.mark.few(4)
@pytest.mark.parametrize("text", SUITES.values(), ids=SUITES)
def test_a_suite_cut_anywhere_is_never_taken_for_a_whole_one(text: str) -> None:
    text = text.rstrip()
    for end in range(0, len(text) - 1, max(len(text) // 30, 1)):
        assert check_source(SourceFile("cut.dql", text[:end])).errors, text[:end]


def _try(amount: int, make: Callable[[Random], str]) -> None:
    """Always the same files: a verdict depends on the code alone."""

    @settings(
        max_examples=amount,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**64))
    def holds(seed: int) -> None:
        text = make(Random(seed))
        started = time.process_time()
        _check_and_plan(text)
        assert time.process_time() - started < SECONDS_EACH, text

    holds()


def _check_and_plan(text: str) -> None:
    source = SourceFile("suite.dql", text)
    checked = check_source(source)
    lines = text.split("\n")
    for found in checked.diagnostics:
        for span in (found.span, *(related.span for related in found.related)):
            assert _lies_in(span, lines), (found, text)
    drawing = draw(checked.diagnostics, checked.sources)
    assert drawing.count("--> suite.dql:") == min(len(checked.diagnostics), 100)
    if checked.errors or checked.suite is None:
        return
    names = datasets_of(checked.suite.checks)
    datasets = tuple(DatasetRef(name, path="there", date_column="day") for name in names)
    assert not check_datasets(checked.suite, datasets)
    plan = resolve(checked.suite, source, datasets, date(2024, 11, 28))
    assert len(evaluate(plan, Scanned())) == len(plan.assertions)


def _lies_in(span: Span, lines: list[str]) -> bool:
    """True for a stretch of the text, or the place right behind its end."""
    if not 1 <= span.line <= span.end_line <= len(lines):
        return False
    if not 1 <= span.column <= len(lines[span.line - 1]) + 1:
        return False
    is_forward = (span.line, span.column) <= (span.end_line, span.end_column)
    return is_forward and span.end_column <= len(lines[span.end_line - 1]) + 2


def _mutated(chance: Random) -> str:
    text = chance.choice(TEXTS)
    for _ in range(chance.randint(1, 3)):
        text = _mutate(text, chance)
    return text


def _mutate(text: str, chance: Random) -> str:
    parts = _TOKEN.findall(text) if chance.random() < 0.7 else list(text)
    if not parts:
        return chance.choice(_STRANGE)
    here, there = chance.randrange(len(parts)), chance.randrange(len(parts))
    match chance.randrange(6):
        case 0:
            del parts[here]
        case 1:
            parts.insert(there, parts[here])
        case 2:
            parts[here], parts[there] = parts[there], parts[here]
        case 3:
            del parts[here:]
        case 4:
            parts.insert(here, chance.choice(_STRANGE))
        case _:
            low, high = sorted((here, there))
            del parts[low : min(high, low + 40)]
    return "".join(parts)
