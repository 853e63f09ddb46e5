"""Databricks DQX without a workspace: its rules mark rows, and a check fails if a row is marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import create_autospec

from databricks.labs.dqx import check_funcs
from databricks.labs.dqx.engine import DQEngine
from databricks.labs.dqx.rule import DQDatasetRule, DQRowRule
from databricks.sdk import WorkspaceClient
from pyspark.sql import functions as F
from simple_checks import Kind, SimpleCheck, day_by_day
from workload import events

GAMES = ["'slots'", "'poker'", "'roulette'"]
"""Texts are SQL here."""


def judge(spark: Any, table: str) -> dict[str, bool]:
    return _verdicts(spark, events(spark, table), _rules())


@day_by_day
def verify(spark: Any, frame: Any, checks: Sequence[SimpleCheck]) -> dict[str, bool]:
    """Judges extremes by a limit for every row, which costs less than an extreme: a window over all
    rows."""
    return _verdicts(spark, frame, [_RULES[check.kind](check) for check in checks])


def _verdicts(spark: Any, frame: Any, rules: Sequence[Any]) -> dict[str, bool]:
    engine = DQEngine(create_autospec(WorkspaceClient), spark)
    marked = engine.apply_checks(frame, rules)
    names = marked.where("_errors IS NOT NULL").select(F.explode("_errors.name").alias("name"))
    failed = {row["name"] for row in names.distinct().collect()}
    return {rule.name: rule.name not in failed for rule in rules}


def _rules() -> list[Any]:
    least, most = check_funcs.is_aggr_not_less_than, check_funcs.is_aggr_not_greater_than
    equal, inside = check_funcs.is_aggr_equal, check_funcs.is_in_range
    return [
        _dataset("rows", least, "*", aggr_type="count", limit=1001),
        _row("machine null", check_funcs.is_not_null, "machine_id"),
        _row("casino null", check_funcs.is_not_null, "casino_id"),
        _row("time null", check_funcs.is_not_null, "event_ts"),
        _dataset("player null rate", most, _nulls("player_id"), aggr_type="avg", limit=0.4),
        _dataset("tax null rate", most, _nulls("tax_id_hashed"), aggr_type="avg", limit=0.6),
        _dataset("wagered least", least, "amount_wagered", aggr_type="min", limit=0),
        _dataset("wagered most", most, "amount_wagered", aggr_type="max", limit=999.99),
        _dataset("wagered mean", least, "amount_wagered", aggr_type="avg", limit=10),
        _dataset("wagered mean", most, "amount_wagered", aggr_type="avg", limit=90),
        _dataset("won total", least, "amount_won", aggr_type="sum", limit=0.01),
        _dataset("won deviation", most, "amount_won", aggr_type="stddev", limit=99.99),
        _row("machine format", check_funcs.regex_match, "machine_id", regex="^M[0-9]{4}$"),
        _row("tax format", check_funcs.regex_match, "tax_id_hashed", regex="^[0-9a-f]{64}$"),
        _row("game", check_funcs.is_in_list, "game_type", allowed=GAMES),
        _row("wagered range", inside, "amount_wagered", min_limit=0, max_limit=1000),
        DQRowRule(
            name="won at most",
            check_func=check_funcs.sql_expression,
            check_func_kwargs={"expression": "amount_won <= amount_wagered * 100"},
        ),
        _dataset("machines", equal, "machine_id", aggr_type="count_distinct", limit=5000),
        _dataset("newest", least, "event_ts", aggr_type="max", limit="'2024-01-01 00:00:01'"),
        _dataset("won most", most, "amount_won", aggr_type="max", limit=999.99),
        _unique("key", "machine_id", "event_ts"),
    ]


def _row(name: str, function: Any, column: str, **arguments: Any) -> Any:
    return DQRowRule(name=name, check_func=function, column=column, check_func_kwargs=arguments)


def _dataset(name: str, function: Any, column: Any, **arguments: Any) -> Any:
    return DQDatasetRule(name=name, check_func=function, column=column, check_func_kwargs=arguments)


def _unique(name: str, *columns: str) -> Any:
    return DQDatasetRule(name=name, check_func=check_funcs.is_unique, columns=list(columns))


def _nulls(column: str) -> Any:
    return F.col(column).isNull().cast("int")


_RULES: dict[Kind, Any] = {
    Kind.COMPLETE: lambda it: _row(it.name, check_funcs.is_not_null, it.column),
    Kind.BETWEEN: lambda it: _row(
        it.name, check_funcs.is_in_range, it.column, min_limit=it.least, max_limit=it.most
    ),
    Kind.LEAST: lambda it: _row(it.name, check_funcs.is_not_less_than, it.column, limit=it.least),
    Kind.MOST: lambda it: _row(it.name, check_funcs.is_not_greater_than, it.column, limit=it.most),
    Kind.UNIQUE: lambda it: _unique(it.name, *it.columns),
}
