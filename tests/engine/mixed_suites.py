"""Random suites over tables with columns of many types, for engines other than Spark.

A claim combines parts over different columns, as users write them: a value is compared with a
literal or with another column, in a predicate, in the filter of a metric, or beside groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

from dqx_airflow.dql.check import check_source
from dqx_airflow.plan.in_memory.table import Table
from dqx_airflow.plan.model import Plan
from dqx_airflow.plan.resolve import QUIET, resolve
from dqx_airflow.values import DatasetRef, SourceFile

TODAY = date(2024, 11, 29)

TYPES = {
    "i": "int",
    "b": "bigint",
    "d": "decimal(12,3)",
    "w": "decimal(38,0)",
    "x": "double",
    "f": "float",
    "s": "string",
    "g": "string",
    "dd": "date",
    "ts": "timestamp",
    "ok": "boolean",
    "n": "int",
}

_TEXTS = ("a", "b", "", " a", "Z\u00fcrich", "2024-01-01", "2024-1-2", "12:30", "2024-02-30", "1e3")
_NUMBERS = ("i", "b", "d", "w", "x", "f")
_LITERALS = {
    "i": ("0", "1", "-3", "2.5", "7"),
    "b": ("0", "9007199254740993", "1.0", "-1"),
    "d": ("0", "0.1", "1.005", "2", "0.3"),
    "w": ("0", "9007199254740993", "1", "12"),
    "x": ("0", "0.1", "1.005", "0.3", "2"),
    "f": ("0", "0.5", "0.1", "2"),
    "s": ('"a"', '"b"', '""', '"2024-01-01"'),
    "g": ('"a"', '"b"', '"Z\u00fcrich"'),
    "dd": ("2024-01-01", "2024-02-29", '"2024-01-01"'),
    "ts": ("2024-01-01", '"2024-01-01 12:30"', '"2024-02-29T00:00:00"'),
    "ok": ("true", "false"),
    "n": ("0", "3", "20"),
}
_PARTS_OF_DATES = ("year", "month", "day", "hour", "minute", "second", "weekday")
_COMPARATORS = ("==", "!=", "<", "<=", ">", ">=")


def random_table(random: Random) -> Table:
    """A table of a few dozen rows with values at which engines differ."""
    size = random.choice((0, 1, 12, 40))
    return Table.typed(TYPES, [[*_row(random), number] for number in range(size)])


def _row(random: Random) -> list[Any]:
    day = date(2024, 1, 1) + timedelta(days=random.choice((0, 1, 30, 59, 60, 365)))
    moment = datetime(2024, 1, 1, tzinfo=timezone.utc) + timedelta(
        seconds=random.choice((0, 1, 45_000, 86_399, 5_097_600)), microseconds=random.choice((0, 5))
    )
    values: list[Any] = [
        random.choice((0, 1, -3, 7, 25, 2**31 - 1)),
        random.choice((0, 1, -1, 9007199254740993, 2**53, 2**62)),
        Decimal(random.choice(("0", "0.1", "0.3", "1.005", "2.5", "-2.5", "99.999"))),
        Decimal(random.choice(("0", "1", "12", "9007199254740993", "9007199254740992"))),
        random.choice((0.0, -0.0, 0.1, 0.3, 1.005, 2.5, -2.5, 9007199254740992.0, 1e100)),
        random.choice((0.0, 0.5, 2.5, 0.25, 16777216.0)),
        random.choice(_TEXTS),
        random.choice(("a", "b", "Z\u00fcrich")),
        day,
        moment,
        random.choice((True, False)),
    ]
    if random.random() < 0.1:
        values[4] = random.choice((float("nan"), float("inf"), float("-inf")))
    return [None if random.random() < 0.12 else value for value in values]


def random_claims(random: Random, number: int) -> list[str]:
    """Claims that the language accepts over these tables, each once."""
    claims: dict[str, None] = {}
    while len(claims) < number:
        claim = _claim(random)
        if _is_sound(claim):
            claims[claim] = None
    return list(claims)


def _claim(random: Random) -> str:
    predicate = _predicate(random)
    other = random.choice(list(TYPES))
    number = random.choice(_NUMBERS)
    order = random.choice(("ts", "dd", "i", "b"))
    listed = random.choice(("i", "b", "d", "s", "g", "x", "ok"))
    return random.choice(
        (
            f"each row: {predicate}",
            f"each row: {predicate}",
            f"each row: {predicate}",
            f"each row: {predicate}",
            f"num_rows(where {predicate}) >= 0",
            f"num_rows(where {predicate}) >= 0 for each g",
            f"sum({number}, where {predicate}) is not None",
            f"average({number}) is not None for each g",
            f"minimum({other}, where {predicate}) is not None",
            f"maximum({other}) is not None for each s",
            f"null_count({other}, where {predicate}) >= 0",
            f"count_values({listed}, {random.choice(_LITERALS[listed])}, where {predicate}) >= 0",
            f"unique_count({other}, where {predicate}) >= 0",
            f"duplicate_count([{number}, g, {other}]) >= 0",
            f"first({other}, order_by n) is not None",
            f"decrease_count({number}, order_by {order}, where {predicate}) >= 0",
            f"correlation({number}, {random.choice(_NUMBERS)}) is not None",
            f"percentile({number}, 0.9) is not None for each g",
            f"values({random.choice(_NUMBERS)}) in values({number}, dataset o)",
            "values(g) in values(s, dataset o)",
            f"rows of t match o on (i, g) comparing [{number}, {other}]",
            f"rows of t match o on (dd, s) comparing [{number}] tolerance 0.01",
        )
    )


def _predicate(random: Random) -> str:
    parts = [_test(random) for _ in range(random.choice((1, 2, 2, 3)))]
    joined = parts[0]
    for part in parts[1:]:
        joined += f" {random.choice(('and', 'or'))} {part}"
    return joined


def _test(random: Random) -> str:
    column = random.choice(list(TYPES))
    number, other = random.choice(_NUMBERS), random.choice(_NUMBERS)
    op = random.choice(_COMPARATORS)
    literal = random.choice(_LITERALS[column])
    moment = random.choice(("dd", "ts", "s"))
    part = random.choice(_PARTS_OF_DATES)
    arithmetic = random.choice("+-*/")
    return random.choice(
        (
            f"{column} {random.choice(('==', '!='))} {literal}",
            f"{number} {op} {random.choice(_LITERALS[number])}",
            f"{number} {op} {random.choice(_LITERALS[number])}",
            f"{number} {op} {other}",
            f"({number} {arithmetic} {other}) {op} {random.choice(_LITERALS[other])}",
            f"({number} {arithmetic} {random.choice(_LITERALS[number])}) {op} {number}",
            f"{number} in [{random.choice(_LITERALS[number])}, {random.choice(_LITERALS[number])}]",
            f"{number} between {random.choice(_LITERALS[number])} and {other}",
            f"round({number}, {random.choice((0, 1, 2))}) {op} {random.choice(_LITERALS[number])}",
            f"abs({number}) {op} {random.choice(_LITERALS[number])}",
            f"coalesce({number}, {other}, {random.choice(_LITERALS[other])}) {op} {number}",
            f"{part}({moment}) {op} {random.choice(('1', '2', '12', '2024'))}",
            f"date({moment}) {op} dd",
            f"ts {op} dd",
            "ts - dd < 2 hours",
            f"length(s) {op} 2",
            "lower(s) == g",
            f"trim(s) {random.choice(('==', '!='))} g",
            's matches "^[a-z]*$"',
            's like "%a%"',
            f"{column} is {random.choice(('', 'not '))}null",
            f"x is {random.choice(('', 'not '))}nan",
            f"not ({number} {op} {other})",
            "s in values(g, dataset o)",
            f"{number} in values({other}, dataset o)",
        )
    )


def _is_sound(claim: str) -> bool:
    return not check_source(_source([claim], "t")).errors


def _source(claims: Sequence[str], dataset: str) -> SourceFile:
    lines = "\n".join(f'assert {claim} name "{number}"' for number, claim in enumerate(claims))
    return SourceFile("suite.dql", f'suite "S" {{ check "C" on {dataset} {{\n{lines}\n}} }}')


def plan_of_claims(claims: Sequence[str], refs: tuple[DatasetRef, ...]) -> Plan:
    """The plan of a suite with an assertion for each claim on the first dataset, named by its
    number."""
    source = _source(claims, refs[0].name)
    checked = check_source(source)
    assert checked.suite is not None, checked.errors
    return resolve(checked.suite, source, refs, TODAY, QUIET)
