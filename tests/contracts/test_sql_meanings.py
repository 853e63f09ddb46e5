"""SQL of databases has the same value on Spark, or is refused.

`sql/documented.md` has values from the pages of databases, `sql/refused.md` what is refused. Random
rules run on Spark and on the databases themselves: a few here, 5,000 in the nightly lane.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException
from random_sql import COLUMNS, fields, rows, rules
from sql_servers import Answer, number, server
from written_rules import written_contract

from dqx_airflow.api.database import SparkDatabase
from dqx_airflow.api.run import run
from dqx_airflow.contracts.compile.measured import spark_text
from dqx_airflow.contracts.compile.sql_exact import DIALECTS, table
from dqx_airflow.contracts.compile.sql_meanings import CountOfRows, Query, SqlAggregate
from dqx_airflow.contracts.compile.sql_rules import query_rule
from dqx_airflow.contracts.compile.terms import UnenforceableError
from dqx_airflow.contracts.model import Field
from dqx_airflow.dql.check import check_source
from dqx_airflow.values import RunOptions, SourceFile

FOLDER = Path(__file__).parent / "sql"
TABLE = "random_rules"
_ROW = re.compile(r"\| (?P<dialect>\w+) \| `(?P<sql>.+?)` \|(?: (?P<value>\S+) \|)?.*")


def _rows_of(name: str) -> Iterator[tuple[str, str, str]]:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if (found := _ROW.fullmatch(line)) is not None:
            yield found["dialect"], found["sql"], found["value"] or ""


def _fields() -> tuple[Field, ...]:
    columns = {
        **{"n": "int", "big": "bigint", "amount": "decimal(10,2)", "ratio": "double"},
        **{"s": "string", "c": "string", "day": "date", "ts": "timestamp", "t2": "timestamp"},
        "ok": "boolean",
    }
    text = "\n".join(["model t", *(f"column {name} {type_}" for name, type_ in columns.items())])
    model = written_contract(text).models[0]
    padded = {"c": "CHAR(5)"}
    return tuple(
        Field(item.name, item.path, item.type, item.span, padded.get(item.name))
        for item in model.fields
    )


FIELDS = _fields()


@pytest.mark.parametrize(("dialect", "sql", "_value"), list(_rows_of("refused.md")))
def test_what_may_differ_is_refused(dialect: str, sql: str, _value: str) -> None:
    with pytest.raises(UnenforceableError) as refused:
        query_rule(sql, dialect, "t", lambda name: name, lambda _name: FIELDS)
    assert "dialect: spark" in str(refused.value) or "write EXTRACT(EPOCH" in str(refused.value)


def test_every_row_of_the_table_can_be_read() -> None:
    """A template uses what its expression has, and its kind exists."""
    for dialect in DIALECTS:
        found = [row for of_class in table(dialect).values() for row in of_class]
        assert len(found) > 80
        for row in found:
            holes = [
                set(re.findall(r"\b_[a-z]\w*", tree.sql())) for tree in (row.template, row.pattern)
            ]
            assert holes[0] <= holes[1], row.pattern.sql()


def _spark_sql(found: Query | SqlAggregate | CountOfRows) -> str:
    match found:
        case SqlAggregate(sql=text):
            return f"(SELECT {text} FROM {TABLE})"
        case CountOfRows(predicate=predicate):
            return f"(SELECT count_if({spark_text(predicate)}) FROM {TABLE})"
    return f"({found.sql})"


def _on_spark(spark: Any, texts: Sequence[str]) -> list[Answer]:
    """The values of scalar queries, in as few jobs as there are failures among them."""
    if not texts:
        return []
    try:
        (row,) = spark.sql(f"SELECT {', '.join(texts)}").collect()
    except PySparkException as error:
        if len(texts) == 1:
            return [f"error: {str(error).splitlines()[0]}"]
        half = len(texts) // 2
        return [*_on_spark(spark, texts[:half]), *_on_spark(spark, texts[half:])]
    return [number(value) for value in row]


def _is_same(one: Answer, other: Answer) -> bool:
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return abs(one - other) <= max(abs(one), abs(other)) * Decimal("1e-9")
    return one == other


@pytest.mark.spark
def test_values_are_those_that_the_pages_of_databases_give(spark: Any) -> None:
    spark.sql("SELECT 1 AS one").createOrReplaceTempView(TABLE)
    cases = list(_rows_of("documented.md"))
    texts = []
    for dialect, sql, _ in cases:
        query = sql if sql.startswith("SELECT") else f"SELECT MAX({sql}) FROM t"
        try:
            found = query_rule(query, dialect, "t", lambda _name: TABLE, lambda _name: FIELDS)
        except UnenforceableError as error:
            pytest.fail(f"{dialect}: {sql}: {error}")
        texts.append(_spark_sql(found))
    found_values = _on_spark(spark, texts)
    wrong = [
        (*case, found)
        for case, found in zip(cases, found_values, strict=True)
        if found != number(case[2])
    ]
    assert not wrong


@pytest.fixture(scope="module")
def random_table(spark: Any) -> None:
    text = [tuple(None if value is None else str(value) for value in row) for row in rows()]
    frame = spark.createDataFrame(text, ", ".join(f"{name} string" for name in COLUMNS))
    casts = [f"CAST({name} AS {type_}) AS {name}" for name, type_ in COLUMNS.items()]
    frame.selectExpr(*casts).coalesce(1).createOrReplaceTempView(TABLE)


def _accepted(dialect: str, seed: str) -> Iterator[tuple[str, str]]:
    """Random rules that are not refused, and their SQL in Spark."""
    for query in rules(dialect, seed):
        try:
            rule = query_rule(query, dialect, TABLE, lambda _name: TABLE, lambda _name: fields())
        except UnenforceableError:
            continue
        yield query, _spark_sql(rule)


def _differing(
    spark: Any, dialect: str, seed: str, count: int
) -> list[tuple[str, str, Answer, Answer]]:
    """The rules that Spark answers differently than the database. A rule that the database cannot
    answer may have any answer, and an error of Spark breaks the gate."""
    accepted = list(islice(_accepted(dialect, seed), count))
    with server(dialect) as ask:
        due = ask([query for query, _ in accepted])
    assert sum(not isinstance(value, str) for value in due) > len(due) * 0.7, due
    answered = [
        (*rule, value)
        for rule, value in zip(accepted, due, strict=True)
        if not isinstance(value, str)
    ]
    found: list[Answer] = []
    for start in range(0, len(answered), 60):
        found += _on_spark(spark, [text for _, text, _ in answered[start : start + 60]])
    failed = sum(isinstance(value, str) for value in found)
    assert failed <= len(found) * 0.05, [value for value in found if isinstance(value, str)]
    return [
        (query, text, value, got)
        for (query, text, value), got in zip(answered, found, strict=True)
        if not isinstance(got, str) and not _is_same(value, got)
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("random_table")
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_random_rules_have_the_same_values(spark: Any, dialect: str) -> None:
    assert not _differing(spark, dialect, "every run", 40)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("random_table")
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "mysql", "sqlite"])
def test_5000_random_rules_have_the_same_values(spark: Any, dialect: str) -> None:
    seed = uuid4().hex
    differing = _differing(spark, dialect, seed, 1_250)
    assert not differing, seed


@pytest.mark.spark
def test_an_interval_is_no_number(spark: Any) -> None:
    spark.sql(
        "SELECT TIMESTAMP '2025-01-01 23:00:00' AS a, TIMESTAMP '2025-01-02 01:00:00' AS b"
    ).createOrReplaceTempView("moments")
    suite = """suite "s" { check "c" on m {
        assert sql("max(b - a)") > 0 name "of sql"
        assert query("SELECT max(b - a) FROM m") > 0 name "of query"
        assert query("SELECT collect_list(a) FROM m") > 0 name "of a list"
        assert num_rows() == 1 name "rows"
    } }"""
    database = SparkDatabase(spark, {"m": {"table": "moments"}})
    report = run(
        check_source(SourceFile("s.dql", suite)), database, date(2025, 1, 2), RunOptions()
    ).report
    reasons = {verdict.name.rpartition("c.")[2]: verdict.reason for verdict in report.verdicts}
    assert "it returns an interval" in str(reasons["of sql"])
    assert "it returns an interval" in str(reasons["of query"])
    assert "returned a nested or binary value" in str(reasons["of a list"])
    assert not reasons["rows"]
