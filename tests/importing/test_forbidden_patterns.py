"""Patterns that other tools forbid: their `$` is also before a last line break."""

from __future__ import annotations

from datetime import date

import pytest

from dqx_airflow import MemoryDatabase
from dqx_airflow.dql import Suite
from dqx_airflow.dql.printer import show_text
from dqx_airflow.metrics.patterns.bounds import ending_as_in_java
from dqx_airflow.values import Outcome


@pytest.mark.parametrize("pattern", ["b$", "(^test|b$)", "(b|c)$", "b\\Z"])
@pytest.mark.parametrize(
    ("text", "is_found"),
    [("xb", True), ("xb\n", True), ("xb\r\n", True), ("xb\n\n", False), ("b\nx", False)],
)
def test_an_end_is_also_before_a_last_line_break(pattern: str, text: str, is_found: bool) -> None:
    forbidden = show_text(ending_as_in_java(pattern))
    suite = f'suite "S" {{ check "c" on t {{ assert each row: a not matches {forbidden} }} }}'
    found = Suite.from_string(suite).run(MemoryDatabase({"t": [{"a": text}]}), date(2024, 3, 1))
    assert found.outcome is (Outcome.BLOCKED if is_found else Outcome.PASSED), str(found)


@pytest.mark.parametrize("pattern", ["[$]", r"\$", r"b\z", "^a|b"])
def test_a_pattern_without_such_an_end_stays_as_it_is(pattern: str) -> None:
    assert ending_as_in_java(pattern) == pattern
