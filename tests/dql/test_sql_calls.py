"""Which SQL may run, by the functions that it calls, however they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_cases import rows

from dqx_airflow.dql.spark_calls import objection_to_calls, spark_tokens

TABLES = Path(__file__).with_name("own_sql.md")


@pytest.mark.parametrize(
    "text", [text for (text,) in rows(TABLES, "Computes from its data, and may run")]
)
def test_sql_that_computes_from_its_data_may_run(text: str) -> None:
    assert objection_to_calls(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *rows(TABLES, "Reads something else, and is refused"),
        ("xpath\u00a0(d, 'a')", "URLs"),
        ("xpath\u200b(d, 'a')", "U+200B"),
        ("1 -- nothing\r + reflect('a')", "Java"),
    ],
)
def test_sql_that_reads_anything_else_is_refused(text: str, reason: str) -> None:
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
