"""Whatever is done to a suite, checking it ends soon, with diagnostics or a suite."""

from __future__ import annotations

import random
import re
import time
from datetime import date
from pathlib import Path

import pytest

from dqx_airflow.diagnostics import draw
from dqx_airflow.dql.check import check_source
from dqx_airflow.dql.claims import datasets_of
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import check_datasets, resolve
from dqx_airflow.values import DatasetRef, SourceFile

HERE = Path(__file__).parent
SUITES = sorted(
    [*HERE.parents[1].glob("dags_examples/suites/*.dql"), *HERE.glob("seed/*.dql")],
    key=lambda path: path.name,
)
MUTATIONS = 120
SECONDS_EACH = 1.0

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+|\s+|.', re.DOTALL)
_STRANGE = ('"', "`", "{", "}", "(", ")", "[", "]", "\0", "\ufeff", "\r", "\\", "#", "@", "🦆", "é")
_STRANGE += ("9" * 400, "1e400", "9999-12-31", "0001-01-01", "None", "lag", "n", "dataset", "-")


def test_there_are_suites_to_mutate() -> None:
    assert len(SUITES) > 5


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_a_mutated_suite_gives_diagnostics_or_a_plan_and_never_a_traceback(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    chance = random.Random(path.name)
    for _ in range(MUTATIONS):
        mutated = text
        for _ in range(chance.randint(1, 3)):
            mutated = _mutate(mutated, chance)
        started = time.perf_counter()
        _check_and_plan(mutated)
        assert time.perf_counter() - started < SECONDS_EACH, mutated


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_a_suite_cut_anywhere_is_never_taken_for_a_whole_one(path: Path) -> None:
    text = path.read_text(encoding="utf-8").rstrip()
    for end in range(0, len(text) - 1, max(len(text) // 60, 1)):
        assert check_source(SourceFile("cut.dql", text[:end])).errors, text[:end]


def _mutate(text: str, chance: random.Random) -> str:
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


def _check_and_plan(text: str) -> None:
    source = SourceFile("suite.dql", text)
    checked = check_source(source)
    drawing = draw(checked.diagnostics, {"suite.dql": text})
    assert drawing.count("--> suite.dql:") >= len(checked.diagnostics)
    if checked.errors or checked.suite is None:
        assert checked.errors
        return
    names = datasets_of(checked.suite.checks)
    datasets = tuple(DatasetRef(name, path="there", date_column="day") for name in names)
    assert not check_datasets(checked.suite, datasets)
    plan = resolve(checked.suite, source, datasets, date(2024, 11, 28))
    assert len(evaluate(plan, {}, {})) == len(plan.assertions)
