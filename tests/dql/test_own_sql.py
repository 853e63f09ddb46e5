"""Which SQL of a suite may run: it calls what computes from its data, no number in it determines
how much memory a gate needs, and its patterns are literals with bounded run time."""

from __future__ import annotations

from pathlib import Path

import pytest

from dqx_airflow.dql.spark_calls import objection_to_calls, spark_tokens
from dqx_airflow.metrics.sql import quote_literal
from dqx_airflow.metrics.text_formats import TEXT_FORMATS, whole
from tests.markdown_cases import rows

PAGE = Path(__file__).with_name("own_sql.md")
MAY_RUN = ("Computes from its data, and may run", "Needs a known size", "Has a bounded pattern")
REFUSED = (
    "Reads something else, and is refused",
    "Needs an unbounded size",
    "Has an unbounded pattern",
)
FORMATS = [quote_literal(whole(one.pattern)) for one in TEXT_FORMATS.values()]


@pytest.mark.parametrize(
    "text",
    [
        *(text for section in MAY_RUN for (text,) in rows(PAGE, section)),
        *(f"count_if(s RLIKE {pattern})" for pattern in FORMATS),
    ],
)
def test_sql_of_known_effort_that_computes_from_its_data_may_run(text: str) -> None:
    assert objection_to_calls(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *(row for section in REFUSED for row in rows(PAGE, section)),
        ("xpath\u00a0(d, 'a')", "URLs"),
        ("xpath\u200b(d, 'a')", "U+200B"),
        ("1 -- nothing\r + reflect('a')", "Java"),
    ],
)
def test_any_other_sql_is_refused(text: str, reason: str) -> None:
    assert reason in (objection_to_calls(text) or "it may run")


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r"'\\d\d\%\_\n'", "\\dd\\%\\_\n"),
        (r"r'\d'", r"\d"),
        ("'it''s'", "it's"),
        (r'"a\u0041\101\U00000042\Z"', "aAAB\x1a"),
    ],
)
def test_a_literal_is_read_as_spark_reads_it(literal: str, value: str) -> None:
    assert [token.value for token in spark_tokens(literal)] == [value]
