"""cuallee: a rule is a share of rows, or a value that must be equal.

It has no limits for the number of rows, a mean, a sum or a deviation, so it cannot express four of
the checks. A limit of an extreme becomes one of every row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from cuallee import Check, CheckLevel
from simple_checks import Kind, SimpleCheck, day_by_day
from workload import events

A_ROW = 1e-12
"""The share that any single row exceeds."""


def judge(spark: Any, table: str) -> dict[str, bool]:
    check = Check(CheckLevel.WARNING, "W20")
    rules = {
        "machine null": check.is_complete("machine_id"),
        "casino null": check.is_complete("casino_id"),
        "time null": check.is_complete("event_ts"),
        "player null rate": check.is_complete("player_id", pct=0.6),
        "tax null rate": check.is_complete("tax_id_hashed", pct=0.4),
        "wagered least": check.is_greater_or_equal_than("amount_wagered", 0),
        "wagered most": check.is_less_than("amount_wagered", 1000),
        "machine format": check.has_pattern("machine_id", "^M[0-9]{4}$"),
        "tax format": check.satisfies(
            "tax_id_hashed", "tax_id_hashed IS NULL OR tax_id_hashed RLIKE '^[0-9a-f]{64}$'"
        ),
        "game": check.is_contained_in("game_type", ("slots", "poker", "roulette")),
        "wagered range": check.is_between("amount_wagered", (0, 1000)),
        "won at most": check.satisfies("amount_won", "amount_won <= amount_wagered * 100"),
        "machines": check.has_cardinality("machine_id", 5000),
        "newest": check.satisfies("event_ts", "event_ts > '2024-01-01'", pct=A_ROW),
        "won most": check.is_less_than("amount_won", 1000),
        "key": check.is_composite_key(("machine_id", "event_ts")),
    }
    return _verdicts(check, rules, events(spark, table))


@day_by_day
def verify(spark: Any, frame: Any, checks: Sequence[SimpleCheck]) -> dict[str, bool]:
    check = Check(CheckLevel.WARNING, "Sweep")
    add = {
        Kind.COMPLETE: lambda it: check.is_complete(it.column),
        Kind.BETWEEN: lambda it: check.is_between(it.column, (it.least, it.most)),
        Kind.LEAST: lambda it: check.is_greater_or_equal_than(it.column, it.least),
        Kind.MOST: lambda it: check.is_less_or_equal_than(it.column, it.most),
        Kind.UNIQUE: lambda it: check.is_composite_key(it.columns),
    }
    rules = {it.name: add[it.kind](it) for it in checks}
    return _verdicts(check, rules, frame)


def _verdicts(check: Any, names: Collection[str], frame: Any) -> dict[str, bool]:
    """The verdicts by name, matched to rules by position: the rules have no names."""
    found = check.validate(frame).orderBy("id").collect()
    return {name: row.status == "PASS" for name, row in zip(names, found, strict=True)}
