"""Patterns in Spark SQL must be literals with bounded run time."""

from __future__ import annotations

import pytest

from dqx_airflow.dql.spark_calls import objection_to_calls
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole


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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("count_if(s RLIKE '^(a|aa)+$')", "exponential"),
        ("count_if(rlike(s, '(a+)+b'))", "exponential"),
        ("count_if(s RLIKE ('(a+)+b'))", "exponential"),
        ("count_if(regexp_like(s, '(a|a)+b'))", "exponential"),
        ('count_if(regexp_count(s, "(a|a)+b") > 0)', "exponential"),
        ("count_if(s REGEXP r'^(\\w|\\w\\w)+$')", "exponential"),
        ("count_if(s RLIKE '^(ab|cd)+$')", "only handles strings of up to"),
        ("count_if(length(t) <= 100 AND s RLIKE '[0-9]+-')", "strings of up to 10,000"),
        ("count_if(length(s) <= 20000 AND s RLIKE '[0-9]+-')", "strings of up to 10,000"),
        ("count_if(s LIKE '%a%b%c%d%e%f%g%h%')", "the pattern"),
        ("count_if(s RLIKE p)", "must be a literal"),
        ("count_if(s RLIKE 'a' || p)", "must be a literal"),
        ("count_if(s RLIKE 'a' 'b')", "must be a literal"),
        ("max(split(s, concat('a', p)))", "must be a literal"),
        ("count_if(s LIKE ANY ('a', p))", "must be a literal"),
    ],
)
def test_an_unbounded_pattern_is_refused(text: str, reason: str) -> None:
    assert reason in (objection_to_calls(text) or "it may run")
