"""Which SQL may run, by the functions that it calls, however they are written."""

from __future__ import annotations

import pytest

from dqx_airflow.dql.spark_calls import objection_to_calls, spark_tokens


@pytest.mark.parametrize(
    "text",
    [
        "sum(case when (a) then 1 end) filter (where x in (1, 2) and not (b))",
        "WITH a(x), b(y) AS (SELECT (1)) SELECT cast(x AS decimal(10, 2)) FROM a AS t(u)",
        "SELECT * FROM VALUES (1), (2) t(a) -- the end",
        "SELECT /*+ BROADCAST(t) */ max(x) FROM t JOIN u USING (id) /* a comment */",
        "timestampdiff(MONTH, a, b) > interval (1) day",
        "count(x) OVER (PARTITION BY (y) ORDER BY z ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "max('xpath(1)') || \"it''s reflect\" || 'it\\'s java_method'",
        "t.current_user = 'a' AND `session_user` IS NULL",
        "aggregate(items, 0, (total, item) -> total + item)",
    ],
)
def test_sql_that_computes_from_its_data_may_run(text: str) -> None:
    assert objection_to_calls(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("max(xpath_int(document, 'a'))", "URLs"),
        ("XPath_String (d, 'a')", "URLs"),
        ("xpath/* why */(d, 'a')", "URLs"),
        ("`xpath`(d, 'a')", "URLs"),
        ("\"xpath\"(d, 'a')", "URLs"),
        ("xpath\u00a0(d, 'a')", "URLs"),
        ("xpath\u200b(d, 'a')", "U+200B"),
        ("1 -- nothing\r + reflect('a')", "Java"),
        ("1 /* /* */ + reflect('a') /* */ */", "comment"),
        ("r'\\' || reflect('a') || '", "raw string"),
        ("$$'$$ || reflect('a') || '", "character $"),
        ("/*+ merge('*/ ') */ reflect('a')", "Java"),
        ("/*+ merge(reflect('a')) */ 1", "Java"),
        ("'' reflect('a')", "Java"),
        ("system.builtin.xpath(d, 'a')", "catalog"),
        ("main.tools.score(a)", "catalog"),
        ("IDENTIFIER('reflect')('a')", "identifier()"),
        ("score(a)", "score()"),
        ("ai_query('model', a)", "ai_query()"),
        ("avgg(a)", "did you mean avg()?"),
        ("WITH reflect(a) AS (SELECT 1) SELECT reflect('a')", "Java"),
        ("FROM t LATERAL VIEW reflect('a') u", "Java"),
        ("FROM t MAP a USING 'sh -c id'", "script"),
        ("max('${env:HOME}')", "environment"),
        ("-- ${spark.secret}", "environment"),
        ("CURRENT_USER", "session"),
        ("raise_error(tax_id)", "message"),
        ("from_avro(a, '{}', map('avroSchemaUrl', 'file:/etc/hosts'))", "file"),
        ("'a' 'b", "unclosed"),
        ("a /* b", "unclosed"),
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
