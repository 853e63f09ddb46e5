"""The reference and Spark agree on random small tables under random predicates.

Every table has a date of its own in one dataset, so that one Spark job computes all metrics of all
tables. Where the two disagree, the smallest table on which they do is reported.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.description import describe_request
from dqx_airflow.plan.in_memory.measure import measure
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.model import MetricRequest, Plan, Scanned
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, MetricValue, SourceFile
from tests.sound_suites import sound_suite

TABLES, PREDICATES = 120, 40
FIRST = date(2024, 1, 1)

TYPES = {
    "ds": "date",
    "n": "bigint",
    "i": "int",
    "d": "double",
    "m": "decimal(10,2)",
    "wide": "decimal(38,18)",
    "long": "bigint",
    "s": "string",
    "b": "boolean",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "parts": "array<struct<n:bigint,d:double,s:string,day:date>>",
}
_DIGITS = Random(7)
# Sums of these are exact in any order.
VALUES: dict[str, list[Any]] = {
    "n": [0, 1, 1, 2, -3, 40, 2**40],
    "i": [0, 1, 2, -3, 2**31 - 1],
    "d": [0.0, -0.0, 1.5, -2.25, 40.0, math.nan, math.inf, -math.inf],
    "m": [Decimal(text) for text in ("0", "0.01", "1.50", "-2.25", "40", "99999999.99")],
    "wide": [Decimal(f"{_DIGITS.randrange(-(10**37), 10**37)}E-18") for _ in range(40)],
    "long": [_DIGITS.randrange(-(2**63), 2**63) for _ in range(40)],
    "s": ["", "a", "A", "ab", " a ", "b\n", "🦆", "1.5", "2024-01-02", "a_b%"],
    "b": [True, False],
    "day": [date(2024, 1, 2), date(2024, 2, 29), date(1969, 12, 31), date(1500, 3, 1)],
    "at": [datetime(2024, 1, 2, hour, 30, tzinfo=timezone.utc) for hour in (0, 12, 23)],
    "local": [datetime(2024, 1, 2), datetime(2024, 3, 31, 2, 30), datetime(1900, 1, 1, 1, 1, 1, 5)],
}
PART = ("n", "d", "s", "day")
_NAME_OF_PART = re.compile(rf"\b({'|'.join(PART)})\b(?!\()")
NUMBERS, TIMES = ("n", "i", "d", "m"), ("day", "at", "local")
METRICS = [
    "num_rows()",
    *(f"{metric}({c})" for c in VALUES for metric in ("count", "null_count", "unique_count")),
    *(f"{metric}({c})" for c in VALUES for metric in ("minimum", "maximum", "duplicate_count")),
    *(f"{metric}({c})" for c in NUMBERS for metric in ("sum", "average", "variance")),
    *(f"{metric}({c})" for c in ("wide", "long") for metric in ("sum", "average")),
    *(f"percentile({c}, {share}%)" for c in NUMBERS for share in (0, 30, 50, 99)),
    *(f"count_values({c}, {value})" for c in NUMBERS for value in (0, 1.5)),
    "duplicate_count([s, b, d])",
    "duplicate_count([day, n])",
    "correlation(n, m)",
    "correlation(d, n)",
    "min_length(s)",
    "max_length(s)",
    'count_values(s, "a")',
    'count_values(s, ["a", "A"])',
    *(f"{metric}({c})" for c in ("n", "d", "s") for metric in ("entropy", "uniqueness", "mode")),
    "unique_value_ratio([s, b, d])",
    "distinctness([s, b, d])",
    "max_z_score(m)",
    "sum(b)",
    *(f"{metric}_count(n, order_by d)" for metric in ("decrease", "increase", "unchanged")),
    "decrease_count(s, order_by day)",
    *(f"gap_count({c})" for c in ("n", "long", "m", "day", "at")),
]


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1])
def test_spark_and_the_reference_agree_on_random_tables(seed: int, spark: Any) -> None:
    from dqx_airflow.engine.measure import measure as measure_in_spark

    random = Random(seed)
    rows = [row for number in range(TABLES) for row in _rows(random, number)]
    frame = spark.createDataFrame(rows, ", ".join(f"{k} {v}" for k, v in TYPES.items()))
    frame.createOrReplaceTempView("random_tables")
    refs = (DatasetRef("t", table="random_tables", date_column="ds"),)
    plan = _on_all_dates(_plan(random, refs))
    in_spark = measure_in_spark(spark, refs, plan)[1]
    expected = measure(plan, refs, {"t": Table.typed(TYPES, rows)})
    assert expected.failures == in_spark.failures == {}
    assert _smallest_difference(in_spark, expected, rows) is None


def _rows(random: Random, number: int) -> list[tuple[Any, ...]]:
    on = FIRST + timedelta(days=number)
    nulls = random.choice([0, 0.2, 0.9])

    def cell(column: str) -> Any:
        return None if random.random() < nulls else random.choice(VALUES[column])

    def parts() -> Any:
        length = random.choice([None, 0, 1, 2, 3])
        return None if length is None else [part() for _ in range(length)]

    def part() -> Any:
        return None if random.random() < nulls / 2 else {name: cell(name) for name in PART}

    return [(on, *map(cell, VALUES), parts()) for _ in range(random.randint(1, 6))]


def _plan(random: Random, refs: tuple[DatasetRef, ...]) -> Plan:
    claims = [f"{metric} is not None" for metric in METRICS]
    while len(claims) < len(METRICS) + 2 * PREDICATES:
        predicate = _predicate(random, 2)
        if _is_sound(f"each row: {predicate}", refs):
            claims += [f"each row: {predicate}", f"50% of rows: {predicate}"]
    suite = sound_suite(_suite(claims))
    return resolve(suite, _suite(claims), refs, FIRST, QUIET)


def _suite(claims: list[str]) -> SourceFile:
    body = "\n".join(f'assert {claim} name "{n}"' for n, claim in enumerate(claims))
    return SourceFile("suite.dql", f'suite "S" {{ check "C" on t {{\n{body}\n}} }}')


def _is_sound(claim: str, refs: tuple[DatasetRef, ...]) -> bool:
    """False where the language or the types turn the claim down."""
    source = _suite([claim])
    checked = check_source(source)
    if checked.errors or checked.suite is None:
        return False
    plan = resolve(checked.suite, source, refs, FIRST)
    return not measure(plan, refs, {"t": Table.typed(TYPES, [])}).failures


def _on_all_dates(plan: Plan) -> Plan:
    dates = [FIRST + timedelta(days=number) for number in range(TABLES)]
    requests = tuple(replace(item, date=on) for item in plan.requests for on in dates)
    return replace(plan, requests=requests)


def _predicate(random: Random, depth: int) -> str:
    def number() -> str:
        return _number(random, depth)

    def text() -> str:
        return _text(random, depth)

    def moment() -> str:
        return _timestamp(random)

    operator = random.choice(["<", "<=", ">", ">=", "==", "!="])
    negation = random.choice(["", "not "])
    column = random.choice(list(VALUES))
    forms = [
        lambda: f"{number()} {operator} {number()}",
        lambda: f"{text()} {operator} {text()}",
        lambda: f"{moment()} {operator} {moment()}",
        lambda: f"b {operator} {random.choice(['true', 'false'])}",
        lambda: f"{number()} {negation}between {number()} and {number()}",
        lambda: f"{number()} {negation}in [0, 1.5, -3]",
        lambda: f'{text()} {negation}in ["a", ""]',
        lambda: f"{moment()} {negation}in [2024-01-02, 1969-12-31]",
        lambda: f'{text()} {negation}like "{random.choice(["%a%", "_", "", "a%", "a!_%"])}"',
        lambda: f'{text()} {negation}matches "{random.choice(["a", "^.$", "(?i)^A", "b$"])}"',
        lambda: f"{text()} is {negation}{random.choice(['number', 'date', 'integer'])}",
        lambda: f"{column} is {negation}null",
        lambda: f"at - local {operator} {random.choice(['0 seconds', '1 day'])}",
    ]
    if depth and random.random() < 0.3:
        return _predicate_about_items(random, depth - 1)
    if depth and random.random() < 0.5:
        left, right = _predicate(random, depth - 1), _predicate(random, depth - 1)
        return f"{negation}({left}) {random.choice(['and', 'or'])} ({right})"
    return random.choice(forms)()


def _predicate_about_items(random: Random, depth: int) -> str:
    """A predicate with `every` or `some`: most names in it are fields of the item."""
    quantifier = random.choice(["every", "some", "not every", "not some"])

    def field(name: re.Match[str]) -> str:
        return f"item.{name[0]}" if random.random() < 0.8 else name[0]

    inner = _NAME_OF_PART.sub(field, _predicate(random, depth))
    return f"{quantifier}(parts, {inner})"


def _number(random: Random, depth: int) -> str:
    if not depth or random.random() < 0.5:
        return random.choice([*NUMBERS, *NUMBERS, "0", "1.5", "-2", "10%"])
    inner, other = _number(random, depth - 1), _number(random, depth - 1)
    forms = [
        *(f"({inner} {operator} {other})" for operator in "+-*/"),
        f"abs({inner})",
        f"round({inner}, {random.randint(0, 2)})",
        f"coalesce({inner}, {other})",
        f"length({_text(random, 0)})",
        f"{random.choice(['year', 'month', 'day', 'hour', 'weekday'])}({_timestamp(random)})",
    ]
    return random.choice(forms)


def _text(random: Random, depth: int) -> str:
    if not depth or random.random() < 0.5:
        return random.choice(["s", "s", "s", '"a"'])
    function = random.choice(["lower", "upper", "trim"])
    return random.choice([f"{function}({_text(random, depth - 1)})", 'coalesce(s, "A")'])


def _timestamp(random: Random) -> str:
    return random.choice([*TIMES, "date(at)", "date(s)", "2024-01-02", "day + 1", "at + 2 hours"])


def _smallest_difference(
    found: Scanned, expected: Scanned, rows: list[tuple[Any, ...]]
) -> tuple[str, MetricValue, MetricValue, list[tuple[Any, ...]]] | None:
    """The request with both values, Spark's first, and the rows that it is about."""
    differences = [
        (describe_request(request), value, expected.values[request], _rows_on(request, rows))
        for request, value in found.values.items()
        if not _is_same(value, expected.values[request])
    ]
    return min(differences, key=lambda difference: len(difference[-1]), default=None)


def _rows_on(request: MetricRequest, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in rows if row[0] == request.date]


def _is_same(one: MetricValue, other: MetricValue) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return type(one) is type(other) and one == other
