"""Filters of other tools in SQL: each is translated, or refused with a reason that is true.

The rows that a translated filter keeps are counted in memory, and by a database that runs here.
"""

from __future__ import annotations

import sqlite3
from datetime import date
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest

from dqx_airflow.importing.foreign_rule import ForeignRule
from dqx_airflow.importing.imported_suite import suite_of
from dqx_airflow.importing.tools import read_rules
from dqx_airflow.plan.evaluate import evaluate
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, SourceFile
from tests.sound_suites import sound_suite

DIALECTS = (
    *("duckdb", "sqlite", "postgres", "snowflake", "bigquery", "redshift", "tsql", "mysql"),
    *("oracle", "databricks", "spark", None),
)
ROWS = [
    {"id": number, "a": a, "b": b, "s": s}
    for number, (a, b, s) in enumerate(
        product((None, 0, 1, 2, -3), (None, 1, 5), (None, "x", "abc", "b c"))
    )
]
TYPES = {"id": "int", "a": "int", "b": "int", "s": "string"}
LEAVES = (
    *("a = 1", "a <> 1", "a != b", "a < b", "a >= 2", "b <= a", "a is null", "b is not null"),
    *("a in (1, 2)", "a not in (1, 2)", "a between 0 and 1", "a not between 0 and 1"),
    *("s = 'x'", "s <> 'x'", "s is null", "s in ('x', 'abc')", "s like 'a%'", "s not like '%c'"),
    *("a + 1 > 2", "a * b = 5", "abs(a) = 3", "coalesce(a, 0) = 0", "length(s) > 1"),
    *("lower(s) = 'x'", "cast(a as varchar(10)) = '1'", "a - b < 0", "-a > 2", "(a) = (1)"),
    *("case when a = 1 then 1 else 0 end = 1", "nullif(a, 1) is null", "upper(s) = 'X'"),
)
"""Conditions that every database has."""
FALSE_REASONS = ("invalid SQL", "expected one")
"""Reasons that are not true of SQL that every database runs."""


def _condition(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(LEAVES)
    match random.randrange(5):
        case 0 | 1:
            word = random.choice(("not ", "NOT ", " not  "))
            inner = _condition(random, depth - 1)
            return f"{word}({inner})" if random.random() < 0.7 else f"{word}{random.choice(LEAVES)}"
        case 2:
            return f"({_condition(random, depth - 1)})"
        case 3:
            return f"{_condition(random, depth - 1)} and {_condition(random, depth - 1)}"
    return f"({_condition(random, depth - 1)} or {_condition(random, depth - 1)})"


def _rules(conditions: list[str], dialect: str | None) -> tuple[ForeignRule, ...]:
    """The rules of a file of dbt whose tests have the conditions as filters."""
    lines = ["version: 2", "models:", "  - name: t", "    columns:", "      - name: id"]
    lines.append("        tests:")
    for condition in conditions:
        lines.append(f'          - not_null: {{config: {{where: "{condition}"}}}}')
    source = SourceFile("schema.yml", "\n".join(lines) + "\n")
    return read_rules(source, dataset=None, sql_dialect=dialect)[1]


def _kept_in_memory(where: str) -> Any:
    text = f'suite "s" {{ check "c" on t {{ assert num_rows() >= 0 where {where} name "n" }} }}'
    source = SourceFile("s.dql", text)
    ref = DatasetRef("t", "t", format="parquet")
    plan = resolve(sound_suite(source), source, [ref], date(2024, 5, 17), QUIET)
    table = Table.typed(TYPES, [[*row.values()] for row in ROWS])
    scanned = measure(plan, [ref], {"t": table})
    return evaluate(plan, scanned)[0].value


@cache
def _database(dialect: str) -> Any:
    """A database in memory with the rows, for all conditions."""
    connection: Any = sqlite3.connect(":memory:")
    if dialect == "duckdb":
        import duckdb

        connection = duckdb.connect()
    connection.execute("CREATE TABLE t (id int, a int, b int, s varchar)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [[*row.values()] for row in ROWS])
    return connection


def _kept_by(dialect: str, condition: str) -> int:
    found = _database(dialect).execute(f"SELECT count(*) FROM t WHERE {condition}").fetchone()
    assert found is not None
    return int(found[0])


RUN_HERE = ("duckdb", "sqlite")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, 25))]
)
def test_a_filter_is_translated_or_refused_with_a_true_reason(
    seed: int, dialect: str | None
) -> None:
    random = Random(f"{seed} {dialect}")
    conditions = ["not (a = 1)", "not a = 1", "not a in (1, 2)"]
    conditions += [_condition(random, 3) for _ in range(25)]
    rules = _rules(conditions, dialect)
    assert len(rules) == len(conditions)
    translated = 0
    for rule, condition in zip(rules, conditions, strict=True):
        if isinstance(rule.meaning, str):
            assert not rule.meaning.startswith(FALSE_REASONS), (condition, rule.meaning)
        else:
            translated += 1
    # Columns of SQLite hold values of any type, and MySQL compares strings as numbers.
    assert translated or dialect in ("sqlite", "mysql")
    if dialect in RUN_HERE:
        _compare(rules, conditions, dialect)


def _compare(rules: tuple[ForeignRule, ...], conditions: list[str], dialect: str) -> None:
    for rule, condition in zip(rules, conditions, strict=True):
        suite = suite_of("t", "T", [rule])
        lines = [line for line in suite.text.splitlines() if "assert " in line]
        if not lines:
            continue
        (line,) = lines
        where = line.partition(" where ")[2]
        if where:
            assert _kept_in_memory(where) == _kept_by(dialect, condition), (condition, where)
