"""No number in SQL determines how much memory a gate needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_cases import rows

from dqx_airflow.dql.spark_calls import objection_to_calls

TABLES = Path(__file__).with_name("own_sql.md")


@pytest.mark.parametrize("text", [text for (text,) in rows(TABLES, "Needs a known size")])
def test_a_literal_size_is_accepted(text: str) -> None:
    assert objection_to_calls(text) is None


@pytest.mark.parametrize(("text", "reason"), rows(TABLES, "Needs an unbounded size"))
def test_an_unbounded_size_is_refused(text: str, reason: str) -> None:
    assert reason in (objection_to_calls(text) or "it may run")
