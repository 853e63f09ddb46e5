"""Rules of a contract as rules of `quality` in ODCS: metrics of its library, or SQL."""

from __future__ import annotations

from typing import Any

from dqx_airflow.contracts import demands
from dqx_airflow.contracts.compile.terms import sql_name
from dqx_airflow.contracts.dialects.foreign import THRESHOLDS
from dqx_airflow.contracts.dialects.library_metrics import DQL_METRICS
from dqx_airflow.contracts.export.exported import without_empty
from dqx_airflow.contracts.model import Field, Rule, plain_name


def compared(condition: demands.Condition) -> dict[str, Any]:
    value: Any = condition.bound
    if condition.high is not None:
        value = [condition.bound, condition.high]
    return {THRESHOLDS[condition.op][0]: value}


def library_metric(item: Field | None, rule: Rule) -> dict[str, Any] | None:
    column = item.path if item is not None else None
    match rule.demand:
        case demands.OneOf(values=values) if rule.share >= 1:
            return _metric("invalidValues", demands.NONE, {"validValues": list(values)})
        case demands.Unique(columns=columns):
            return _duplicates(columns, column, demands.NONE, is_percent=False)
        case demands.Distinct(columns=columns, duplicates=share):
            return _duplicates(columns, column, _at_most(share), is_percent=True)
        case demands.Complete(column=named, share=share) if named == column:
            return _metric("nullValues", _at_most(1 - share), is_percent=True)
        case demands.MetricRule() as demand:
            return _measured(demand, column)
    return None


def _measured(demand: demands.MetricRule, column: str | None) -> dict[str, Any] | None:
    metric = DQL_METRICS.get(demand.metric)
    is_percent = demand.is_percent
    columns = demand.arguments
    if metric == "duplicateValues":
        return _duplicates(columns, column, demand.condition, is_percent=is_percent)
    if metric is None or (metric == "rowCount") != (not columns):
        return None
    if columns and columns != (column,):
        return None
    arguments: dict[str, Any] = {}
    if demand.pattern is not None:
        arguments["pattern"] = demand.pattern
    if demand.values:
        if metric == "missingValues":
            arguments["missingValues"] = [None, *demand.values]
        else:
            arguments["validValues"] = [*demand.values]
    return _metric(metric, demand.condition, arguments, is_percent=is_percent)


def _duplicates(
    columns: tuple[str, ...], column: str | None, condition: demands.Condition, *, is_percent: bool
) -> dict[str, Any] | None:
    if columns == (column,):
        return _metric("duplicateValues", condition, is_percent=is_percent)
    if column is not None:
        return None
    names = {"properties": [plain_name(name) for name in columns]}
    return _metric("duplicateValues", condition, names, is_percent=is_percent)


def _at_most(share: float) -> demands.Condition:
    percent = round(share * 100, 9)
    return demands.Condition("<=", int(percent) if percent == int(percent) else percent)


def _metric(
    name: str,
    condition: demands.Condition,
    arguments: dict[str, Any] | None = None,
    *,
    is_percent: bool = False,
) -> dict[str, Any]:
    unit = "percent" if is_percent else None
    metric = {"type": "library", "metric": name, "arguments": arguments, "unit": unit}
    return without_empty(metric) | compared(condition)


def query_of(rule: Rule, column: str | None) -> tuple[str, demands.Condition, str | None] | None:
    """A query that returns a number, its condition, and its dialect.

    :param column: the column that the rule is about; None for a rule of the model or of a nested
        value.
    """
    demand: demands.Demand = rule.demand
    match demand:
        case demands.QueryGives():
            return demand.query, demand.condition, demand.sql_dialect
        case demands.RowsSatisfy(share=1):
            return f"{_COUNT} WHERE NOT ({demand.predicate})", demands.NONE, demand.sql_dialect
        case demands.RowsSatisfy():
            wrong = f"count(CASE WHEN NOT ({demand.predicate}) THEN 1 END)"
            query = f"SELECT 100.0 * {wrong} / count(*) FROM {{model}}"  # noqa: S608
            return query, _at_most(1 - demand.share), demand.sql_dialect
        case demands.Refers():
            rows = demand.missing_rows("{model}")
            return rows.replace("SELECT *", "SELECT count(*)", 1), demands.NONE, None
        case demands.Digits() if column is not None and rule.share >= 1:
            too_long = demand.too_many(sql_name(column))
            return f"{_COUNT} WHERE {too_long}", demands.NONE, None
    return None


_COUNT = "SELECT count(*) FROM {model}"


def is_same_dialect(one: str | None, other: str | None) -> bool:
    """Whether SQL in one dialect is SQL in the other. None is Spark's own."""
    return one == other or {one, other} <= {None, "spark", "databricks"}
