"""What the parser of Spark remembers of the queries of many gates has an end."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from dqx_airflow.engine.session.spark_session import settings_of

pytestmark = [pytest.mark.spark, pytest.mark.since_spark("4.1", "a parser that forgets")]

_RATIO = "spark.sql.parser.parserDfaCacheFlushRatio"


def _expression(random: Random, depth: int = 4) -> str:
    if depth == 0:
        return random.choice(("a", "b", "1", "'x'", "1.5", "NULL", "date '2024-01-01'"))
    one, other = _expression(random, depth - 1), _expression(random, depth - 1)
    form = random.choice(
        (
            *("({0} + {1})", "CASE WHEN {0} IS NULL THEN {1} END", "coalesce({0}, {1})"),
            *("{0} BETWEEN {1} AND 3", "NOT ({0} = {1})", "CAST({0} AS string) LIKE {1}"),
            *("struct({0} AS x, {1} AS y).x", "exists(array({0}), q -> q > {1})"),
            "{0} IN ({1}, 2)",
        )
    )
    return f"({form.format(one, other)})"


def _states_after(spark: Any, number: int) -> int:
    """The states of the parser's cache after as many random expressions."""
    parser = spark._jvm.org.apache.spark.sql.catalyst.parser
    sql = spark._jsparkSession.sessionState().sqlParser()
    random, most = Random(1), 0
    for _ in range(number):
        sql.parseExpression(_expression(random))
        most = max(most, parser.AbstractParser.getDFACacheNumStates())
    return most


def test_the_session_of_a_gate_bounds_the_cache_of_the_parser(spark: Any) -> None:
    assert spark.conf.get("spark.sql.parser.manageParserCaches") == "true"
    assert 0 < float(spark.conf.get(_RATIO)) <= 20
    settings = settings_of(spark)
    assert settings is not None
    assert [name for name in settings if ".parser." in name] == []


@pytest.mark.nightly
def test_the_cache_of_the_parser_is_emptied(spark: Any) -> None:
    """Without a bound, 120 expressions have more states."""
    bound, kept = 0.1, spark.conf.get(_RATIO)
    memory = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()
    per_state = spark._jvm.org.apache.spark.sql.catalyst.parser.AbstractParser.BYTES_PER_DFA_STATE()
    spark.conf.set(_RATIO, str(bound))
    try:
        bounded = _states_after(spark, 120)
    finally:
        spark.conf.set(_RATIO, kept)
    assert bounded < 1.5 * bound / 100 * memory / per_state
    assert _states_after(spark, 120) > bounded
