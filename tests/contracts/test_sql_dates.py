"""Ages in the SQL of each server, computed by Spark: an hour within a day, an hour beyond it."""

from __future__ import annotations

from typing import Any

import pytest

from dqx_airflow.contracts.compile.sql_forms import Query, SqlScope, TableSql
from dqx_airflow.contracts.compile.sql_rules import query_rule
from dqx_airflow.contracts.model import Field
from dqx_airflow.errors import NoCounterpartError
from dqx_airflow.values import Span

YOUNGER_THAN_A_DAY = [
    ("redshift", "DATEADD(day, -1, GETDATE())"),
    ("redshift", "DATEADD(hour, -24, SYSDATE)"),
    ("redshift", "SYSDATE - 1"),
    ("redshift", "GETDATE() - INTERVAL '1 day'"),
    ("oracle", "SYSDATE - 1"),
    ("oracle", "SYSDATE - 24/24"),
    ("oracle", "SYSTIMESTAMP - INTERVAL '1' DAY"),
    ("tsql", "DATEADD(day, -1, GETDATE())"),
    ("tsql", "DATEADD(hh, -24, SYSDATETIME())"),
    ("tsql", "DATEADD(minute, -1440, CURRENT_TIMESTAMP)"),
    ("snowflake", "DATEADD('hour', -24, CURRENT_TIMESTAMP())"),
    ("snowflake", "DATEADD(day, -1, SYSDATE())"),
    ("bigquery", "TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 24 HOUR)"),
    ("bigquery", "TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL -1 DAY)"),
    ("postgres", "NOW() - INTERVAL '1 day'"),
    ("postgres", "CURRENT_TIMESTAMP - INTERVAL '24 hours'"),
    ("trino", "current_timestamp - interval '1' day"),
    ("trino", "date_add('hour', -24, now())"),
    ("duckdb", "now() - INTERVAL 1 DAY"),
    ("mysql", "NOW() - INTERVAL 1 DAY"),
    ("mysql", "DATE_SUB(NOW(), INTERVAL 24 HOUR)"),
    ("mysql", "DATE_ADD(NOW(), INTERVAL -1 DAY)"),
]


def _fields(dialect: str) -> tuple[Field, ...]:
    nowhere = Span("", 1, 1, 1, 1)
    written = "DATE" if dialect == "oracle" else None
    return (
        Field("ts", "ts", "timestamp", nowhere, written),
        Field("amount", "amount", "decimal(10,2)", nowhere),
    )


def _scope(dialect: str) -> SqlScope:
    return SqlScope("m", lambda _table: "m", lambda _table: _fields(dialect))


def _text(dialect: str, query: str) -> str:
    found = query_rule(query, dialect, _scope(dialect))
    assert isinstance(found, Query | TableSql), found
    return found.sql


@pytest.mark.slow
@pytest.mark.spark
def test_a_day_ends_after_24_hours_in_every_dialect(spark: Any) -> None:
    for table, hours in (("young", 23), ("old", 25)):
        spark.sql(
            f"SELECT current_timestamp() - INTERVAL '{hours}' HOUR AS ts"
        ).createOrReplaceTempView(table)
    found = {}
    for dialect, day in YOUNGER_THAN_A_DAY:
        text = _text(dialect, f"SELECT COUNT(*) FROM m WHERE ts > {day}")
        found[dialect, day] = [
            spark.sql(text.replace("`m`", table)).collect()[0][0] for table in ("young", "old")
        ]
    assert found == {key: [1, 0] for key in YOUNGER_THAN_A_DAY}


@pytest.mark.spark
def test_today_is_a_date_and_a_difference_of_oracle_is_one_of_days(spark: Any) -> None:
    spark.sql("SELECT current_timestamp() AS ts").createOrReplaceTempView("m")
    for dialect, query in (
        ("oracle", "SELECT COUNT(*) FROM m WHERE TRUNC(ts) = TRUNC(SYSDATE)"),
        ("redshift", "SELECT COUNT(*) FROM m WHERE TRUNC(ts) = TRUNC(SYSDATE)"),
        ("oracle", "SELECT COUNT(*) FROM m WHERE ts >= TRUNC(SYSDATE) - 1"),
        ("snowflake", "SELECT COUNT(*) FROM m WHERE ts::date > DATEADD(day, -1, CURRENT_DATE)"),
        ("bigquery", "SELECT COUNT(*) FROM m WHERE DATE(ts) >= DATE_SUB(CURRENT_DATE(), "
         "INTERVAL 1 DAY)"),
        ("tsql", "SELECT COUNT(*) FROM m WHERE ts > DATEADD(quarter, -1, GETDATE())"),
    ):  # fmt: skip
        assert spark.sql(_text(dialect, query)).collect()[0][0] == 1, (dialect, query)
    text = _text("oracle", "SELECT (SYSDATE - MAX(ts)) * 24 FROM m")
    assert 0 <= spark.sql(f"SELECT {text} FROM m").collect()[0][0] < 1


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("oracle", "SELECT COUNT(*) FROM m WHERE TRUNC(amount) = 3"),
        ("tsql", "SELECT COUNT(*) FROM m WHERE ts > DATEADD(weekday, -1, GETDATE())"),
    ],
)
def test_an_ambiguous_time_is_refused(dialect: str, query: str) -> None:
    with pytest.raises(NoCounterpartError):
        query_rule(query, dialect, _scope(dialect))
