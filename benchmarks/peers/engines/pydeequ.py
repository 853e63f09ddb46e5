"""PyDeequ on Deequ. Its checks end in a Python function of the value, called from the JVM."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# PyDeequ reads this variable when it is imported.
os.environ.setdefault("SPARK_VERSION", "3.5")

from pydeequ.checks import Check, CheckLevel
from pydeequ.verification import VerificationSuite
from simple_checks import Kind, SimpleCheck, day_by_day
from workload import events


def judge(spark: Any, table: str) -> dict[str, bool]:
    return _verdicts(spark, events(spark, table), _CONSTRAINTS)


@day_by_day
def verify(spark: Any, frame: Any, checks: Sequence[SimpleCheck]) -> dict[str, bool]:
    return _verdicts(spark, frame, {check.name: _constraint(check) for check in checks})


def _verdicts(
    spark: Any, frame: Any, constraints: Mapping[str, Callable[[Any], Any]]
) -> dict[str, bool]:
    """The verdicts by name. Each constraint is in a separate check, because only checks have
    names."""
    run = VerificationSuite(spark).onData(frame)
    for name, add in constraints.items():
        run = run.addCheck(add(Check(spark, CheckLevel.Error, name)))
    return {one["check"]: one["constraint_status"] == "Success" for one in run.run().checkResults}


def _constraint(it: SimpleCheck) -> Callable[[Any], Any]:
    return {
        Kind.COMPLETE: lambda check: check.isComplete(it.column),
        Kind.BETWEEN: lambda check: check.satisfies(
            f"{it.column} BETWEEN {it.least} AND {it.most}", it.name, lambda share: share == 1
        ),
        Kind.LEAST: lambda check: check.hasMin(it.column, lambda least: least >= it.least),
        Kind.MOST: lambda check: check.hasMax(it.column, lambda most: most <= it.most),
        Kind.UNIQUE: lambda check: check.hasUniqueness(list(it.columns), lambda share: share == 1),
    }[it.kind]


_CONSTRAINTS: dict[str, Any] = {
    "rows": lambda check: check.hasSize(lambda rows: rows > 1000),
    "machine null": lambda check: check.isComplete("machine_id"),
    "casino null": lambda check: check.isComplete("casino_id"),
    "time null": lambda check: check.isComplete("event_ts"),
    "player null rate": lambda check: check.hasCompleteness("player_id", lambda rate: rate > 0.6),
    "tax null rate": lambda check: check.hasCompleteness("tax_id_hashed", lambda rate: rate > 0.4),
    "wagered least": lambda check: check.hasMin("amount_wagered", lambda least: least >= 0),
    "wagered most": lambda check: check.hasMax("amount_wagered", lambda most: most < 1000),
    "wagered mean": lambda check: check.hasMean("amount_wagered", lambda mean: 10 <= mean <= 90),
    "won total": lambda check: check.hasSum("amount_won", lambda total: total > 0),
    "won deviation": lambda check: check.hasStandardDeviation("amount_won", lambda it: it < 100),
    "machine format": lambda check: check.hasPattern("machine_id", "^M[0-9]{4}$"),
    "tax format": lambda check: check.satisfies(
        "tax_id_hashed IS NULL OR tax_id_hashed RLIKE '^[0-9a-f]{64}$'",
        "tax",
        lambda share: share == 1,
    ),
    "game": lambda check: check.isContainedIn("game_type", ["slots", "poker", "roulette"]),
    "wagered range": lambda check: check.satisfies(
        "amount_wagered BETWEEN 0 AND 1000", "range", lambda share: share == 1
    ),
    "won at most": lambda check: check.satisfies(
        "amount_won <= amount_wagered * 100", "at most", lambda share: share == 1
    ),
    "machines": lambda check: check.hasNumberOfDistinctValues(
        "machine_id", lambda count: count == 5000, check._jvm.scala.Option.apply(None), 1
    ),
    "newest": lambda check: check.satisfies(
        "event_ts > '2024-01-01'", "newest", lambda share: share > 0
    ),
    "won most": lambda check: check.hasMax("amount_won", lambda most: most < 1000),
    "key": lambda check: check.hasUniqueness(["machine_id", "event_ts"], lambda share: share == 1),
}
