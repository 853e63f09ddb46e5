"""Random filters over random metrics: Spark and DuckDB measure the same rows.

DuckDB gets SQL that is made beside the DQL, and not by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, SourceFile
from tests.sound_suites import sound_suite

pytestmark = [pytest.mark.spark, pytest.mark.compiled]

ROWS, CLAIMS = 400, 60
ON = date(2024, 11, 29)

Both = tuple[str, str]
"""The same in DQL and in SQL."""

METRICS: list[Both] = [
    ("num_rows({where})", "count(*) FILTER (WHERE {sql})"),
    ("count(s, {where})", "count(s) FILTER (WHERE {sql})"),
    ("null_count(m, {where})", "count(*) FILTER (WHERE {sql} AND m IS NULL)"),
    ("sum(i, {where})", "sum(i) FILTER (WHERE {sql})"),
    ("sum(m, {where})", "sum(m) FILTER (WHERE {sql})"),
    ("minimum(m, {where})", "min(m) FILTER (WHERE {sql})"),
    ("maximum(day, {where})", "max(day) FILTER (WHERE {sql})"),
    ("max_length(s, {where})", "max(length(s)) FILTER (WHERE {sql})"),
    ("unique_count(s, {where})", "count(DISTINCT s) FILTER (WHERE {sql})"),
    (
        "repeated_count(i, {where})",
        "count(i) FILTER (WHERE {sql}) - count(DISTINCT i) FILTER (WHERE {sql})",
    ),
    ('count_values(s, "b", {where})', "count(*) FILTER (WHERE {sql} AND s = 'b')"),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_spark_and_duckdb_measure_the_same_rows(seed: int, spark: Any, tmp_path: Path) -> None:
    import duckdb

    from dqx_airflow.engine.measure import measure

    random = Random(seed)
    path = tmp_path / "t.parquet"
    pq.write_table(_table(random), path)
    claims = [claim for claim in _claims(random) if not check_source(_suite(claim)).errors]
    assert len(claims) > CLAIMS * 0.7
    source = _suite(*claims)
    suite = sound_suite(source)
    ref = DatasetRef("t", str(path), format="parquet")
    plan = resolve(suite, source, [ref], ON, QUIET)
    verdicts = evaluate(plan, measure(spark, [ref], plan)[1])
    selects = ", ".join(sql for _, sql in claims)
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT {selects} FROM '{path}' WHERE i >= -4").fetchone()
    assert found is not None
    for (dql, sql), verdict, expected in zip(claims, verdicts, found, strict=True):
        assert verdict.status.value in ("passed", "failed"), verdict.reason
        assert _plain(verdict.value) == _plain(expected), f"{dql} | {sql}"


def _suite(*claims: Both) -> SourceFile:
    body = "\n".join(f'assert {dql} name "{n}"' for n, (dql, _) in enumerate(claims))
    return SourceFile("s.dql", f'suite "S" {{ check "C" on t where i >= -4 {{ {body} }} }}')


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return Fraction(value) if isinstance(value, int | Decimal | Fraction) else value


def _table(random: Random) -> pa.Table:
    def column(values: list[Any]) -> list[Any]:
        return [None if random.random() < 0.2 else random.choice(values) for _ in range(ROWS)]

    days = [ON + timedelta(days=number) for number in range(5)]
    return pa.table(
        {
            "i": pa.array(column([*range(-6, 7)]), pa.int32()),
            "m": pa.array(column([Decimal(n) / 4 for n in range(-9, 9)]), pa.decimal128(8, 2)),
            "s": pa.array(column(["a", "b", "ab", "", "B"]), pa.string()),
            "b": pa.array(column([True, False]), pa.bool_()),
            "day": pa.array(column(days), pa.date32()),
        }
    )


def _claims(random: Random) -> Iterator[Both]:
    """Filters at metrics, behind assertions, and both; some of them no row can meet."""
    for _ in range(CLAIMS):
        (one, sql), (other, other_sql) = _predicate(random, 2), _predicate(random, 1)
        match random.randrange(4):
            case 0:
                violated, violated_sql = _predicate(random, 1)
                counted = f"count(*) FILTER (WHERE {sql} AND NOT {violated_sql})"
                yield f"each row: {violated} where {one}", counted
            case 1:
                metric, aggregate = random.choice(METRICS)
                dql = metric.format(where=f"where {one}")
                both = f"({sql} AND {other_sql})"
                yield f"{dql} is not None where {other}", aggregate.format(sql=both)
            case _:
                metric, aggregate = random.choice(METRICS)
                dql = metric.format(where=f"where {one}")
                yield f"{dql} is not None", aggregate.format(sql=sql)


def _predicate(random: Random, depth: int) -> Both:
    if depth and random.random() < 0.6:
        (one, sql), (other, other_sql) = (
            _predicate(random, depth - 1),
            _predicate(random, depth - 1),
        )
        word = random.choice(["and", "or"])
        negation = random.choice(["", "not "])
        return f"({negation}({one}) {word} {other})", f"({negation}({sql}) {word} {other_sql})"
    number = random.choice(["i", "m", "i + 1", "i * 2 - m"])
    operator, in_sql = random.choice([("==", "="), ("!=", "<>"), ("<", "<"), (">=", ">=")])
    limit = random.choice(["-2", "0", "1.25", "3"])
    negation = random.choice(["", "not "])
    column = random.choice(["i", "m", "s", "b", "day"])
    day = ON + timedelta(days=random.randrange(5))
    return random.choice(
        [
            (f"{number} {operator} {limit}", f"({number} {in_sql} {limit})"),
            (f"i {negation}between -2 and 3", f"(i {negation}between -2 and 3)"),
            (f's {negation}in ["a", "B"]', f"(s {negation}in ('a', 'B'))"),
            (f's {negation}like "a%"', f"(s {negation}like 'a%')"),
            (f"{column} is {negation}null", f"({column} is {negation}null)"),
            ("b == true", "b"),
            (f"day {operator} {day}", f"(day {in_sql} DATE '{day}')"),
            (f"length(s) {operator} 1", f"(length(s) {in_sql} 1)"),
        ]
    )
