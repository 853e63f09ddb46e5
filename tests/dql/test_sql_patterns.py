"""Patterns in Spark SQL must be literals with bounded run time."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_cases import rows

from dqx_airflow.dql.spark_calls import objection_to_calls
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole

TABLES = Path(__file__).with_name("own_sql.md")


@pytest.mark.parametrize(
    "text",
    [
        "count_if(s RLIKE '^a+$' AND b)",
        "count_if(s LIKE '%a%' OR s LIKE ANY ('b%', '%c'))",
        "count_if(length(s) <= 10000 AND NOT s RLIKE '[0-9]+-')",
        "max(regexp_replace(s, '[^0-9]', '')) || max(split(s, ',')[0])",
        *(
            f"count_if(s RLIKE {quote_literal(whole(one.pattern))})"
            for one in TEXT_FORMATS.values()
        ),
    ],
)
def test_a_bounded_pattern_is_accepted(text: str) -> None:
    assert objection_to_calls(text) is None


@pytest.mark.parametrize(("text", "reason"), rows(TABLES, "Has an unbounded pattern"))
def test_an_unbounded_pattern_is_refused(text: str, reason: str) -> None:
    assert reason in (objection_to_calls(text) or "it may run")
