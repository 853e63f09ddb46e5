"""The datasets of a query are the tables that Spark reads for it: none is read in secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dqx_airflow.dql.checks.read_only_sql import datasets_of_query, objection_to_select
from tests.engine.random_queries import TABLES, RandomQueries

pytestmark = pytest.mark.spark

QUERIES = 150
"""For each seed: Spark accepts about a fifth of them."""


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    for name in TABLES:
        spark.sql("SELECT 1 AS x, 2 AS y, array(1) AS z").createOrReplaceTempView(name)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)


def read_by_spark(spark: SparkSession, query: str) -> set[str] | None:
    """The views in the analyzed plan of a query; None for one that Spark rejects."""
    try:
        plan = spark.sql(query)._jdf.queryExecution().analyzed().toString()
    except PySparkException:
        return None
    return set(re.findall(r"View \(`(\w+)`", plan))


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(20))
def test_spark_reads_no_table_that_is_not_a_dataset_of_the_query(
    seed: int, session: SparkSession
) -> None:
    queries, depths = RandomQueries(seed), Random(seed)
    accepted = [
        query
        for query in (queries.query(depths.randint(1, 4)) for _ in range(QUERIES))
        if len(query) < 1_500 and objection_to_select(query) is None
    ]
    compared, missed = 0, []
    for query in accepted:
        read = read_by_spark(session, query)
        if read is None:
            continue
        compared += 1
        if unnamed := read - {name.lower() for name in datasets_of_query(query)}:
            missed.append((query, unnamed))
    assert not missed
    assert compared > 15
