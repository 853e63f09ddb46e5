"""Rules as the `quality` of the standard: a metric of its library, an expectation, or SQL."""

from __future__ import annotations

import logging
from typing import Any

from dqx_airflow.contracts.column_paths import plain_name
from dqx_airflow.contracts.demands import (
    Complete,
    Condition,
    Demand,
    Digits,
    Distinct,
    MetricRule,
    OneOf,
    QueryGives,
    Refers,
    RowsSatisfy,
    Unique,
)
from dqx_airflow.contracts.demands.measured import NONE
from dqx_airflow.contracts.dialects.foreign import great_expectations
from dqx_airflow.contracts.dialects.foreign.values import sql_name
from dqx_airflow.contracts.export.expectations import (
    Expectation,
    ExportedRule,
    expectation_of,
    missing_rows,
)
from dqx_airflow.contracts.model import Field, Model, Rule
from dqx_airflow.values import Severity

_OPERATORS = {
    "==": "mustBe",
    "!=": "mustNotBe",
    ">": "mustBeGreaterThan",
    ">=": "mustBeGreaterOrEqualTo",
    "<": "mustBeLessThan",
    "<=": "mustBeLessOrEqualTo",
    "between": "mustBeBetween",
    "not between": "mustNotBeBetween",
}
_SEVERITIES = {
    Severity.P0: "critical",
    Severity.P1: "error",
    Severity.P2: "warning",
    Severity.P3: "info",
}
_DIMENSIONS = (
    *("accuracy", "completeness", "conformity", "consistency", "coverage", "timeliness"),
    "uniqueness",
)
_METRICS = {
    "null_count": "nullValues",
    "missing_count": "missingValues",
    "invalid_count": "invalidValues",
    "duplicate_count": "duplicateValues",
    "num_rows": "rowCount",
}
_OF_DUCKDB = ("local", "s3", "azure", "sftp")
_NO_COUNTERPART = "the standard has no counterpart"


def quality_of(
    model: Model, item: Field | None, rule: Rule, server: str | None
) -> dict[str, Any] | str:
    """The rule of `quality` that is equivalent to a rule, or why there is none.

    :param server: the type of the server whose SQL dialect applies.
    """
    quality = (
        _library(item, rule) or _expectation(model, item, rule) or _sql(model, item, rule, server)
    )
    if not isinstance(quality, dict):
        return quality or _NO_COUNTERPART
    about = {
        "name": rule.name,
        "description": rule.description,
        "dimension": rule.dimension if rule.dimension in _DIMENSIONS else None,
        "severity": _SEVERITIES[rule.severity] if rule.severity is not None else None,
        "tags": list(rule.tags),
    }
    return {key: value for key, value in about.items() if value} | quality


def _compared(condition: Condition) -> dict[str, Any]:
    value: Any = condition.bound
    if condition.high is not None:
        value = [condition.bound, condition.high]
    return {_OPERATORS[condition.op]: value}


# Metrics -----------------------------------------------------------------------------------------


def _library(item: Field | None, rule: Rule) -> dict[str, Any] | None:
    column = item.path if item is not None else None
    match rule.demand:
        case OneOf(values=values) if rule.share >= 1:
            return _metric("invalidValues", NONE, {"validValues": list(values)})
        case Unique(columns=columns):
            return _duplicates(columns, column, NONE, is_percent=False)
        case Distinct(columns=columns, duplicates=share):
            return _duplicates(columns, column, _at_most(share), is_percent=True)
        case Complete(column=named, share=share) if named == column:
            return _metric("nullValues", _at_most(1 - share), is_percent=True)
        case MetricRule() as demand:
            return _measured(demand, column)
    return None


def _measured(demand: MetricRule, column: str | None) -> dict[str, Any] | None:
    metric = _METRICS.get(demand.metric)
    is_percent, columns = demand.is_percent, demand.arguments
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
    columns: tuple[str, ...], column: str | None, condition: Condition, *, is_percent: bool
) -> dict[str, Any] | None:
    if columns == (column,):
        return _metric("duplicateValues", condition, is_percent=is_percent)
    if column is not None:
        return None
    names = {"properties": [plain_name(name) for name in columns]}
    return _metric("duplicateValues", condition, names, is_percent=is_percent)


def _at_most(share: float) -> Condition:
    percent = round(share * 100, 9)
    return Condition("<=", int(percent) if percent == int(percent) else percent)


def _metric(
    name: str,
    condition: Condition,
    arguments: dict[str, Any] | None = None,
    *,
    is_percent: bool = False,
) -> dict[str, Any]:
    metric: dict[str, Any] = {"type": "library", "metric": name}
    if arguments:
        metric["arguments"] = arguments
    if is_percent:
        metric["unit"] = "percent"
    return metric | _compared(condition)


# Expectations ------------------------------------------------------------------------------------


def _expectation(model: Model, item: Field | None, rule: Rule) -> dict[str, Any] | None:
    """An expectation, if it is read back as the same demand."""
    expectation = expectation_of(ExportedRule(model, item, rule))
    if not isinstance(expectation, Expectation):
        return None
    kwargs = {key: value for key, value in expectation.kwargs.items() if value is not None}
    plain = {"type": expectation.type, "kwargs": kwargs}
    read = great_expectations.translate(plain, item.path if item is not None else None)
    if isinstance(read, str) or read.demands != (rule.demand,) or read.share != rule.share:
        return None
    return {"type": "custom", "engine": "great-expectations", "implementation": plain}


# SQL ---------------------------------------------------------------------------------------------


def _sql(
    model: Model, item: Field | None, rule: Rule, server: str | None
) -> dict[str, Any] | str | None:
    written = _query(model, item, rule)
    if written is None:
        return None
    query, condition, dialect = written
    text = _translated(query, dialect, _dialect_of(server))
    if text is None:
        return "its SQL cannot be written in the dialect of the server"
    return {"type": "sql", "query": text} | _compared(condition)


def _query(
    model: Model, item: Field | None, rule: Rule
) -> tuple[str, Condition, str | None] | None:
    """A query that returns a number, its condition, and its dialect."""
    demand: Demand = rule.demand
    match demand:
        case QueryGives():
            return demand.query, demand.condition, demand.sql_dialect
        case RowsSatisfy(share=1):
            return f"{_COUNT} WHERE NOT ({demand.predicate})", NONE, demand.sql_dialect
        case RowsSatisfy():
            wrong = f"count(CASE WHEN NOT ({demand.predicate}) THEN 1 END)"
            query = f"SELECT 100.0 * {wrong} / count(*) FROM {{model}}"  # noqa: S608
            return query, _at_most(1 - demand.share), demand.sql_dialect
        case Refers():
            rows = missing_rows("{model}", demand)
            return rows.replace("SELECT *", "SELECT count(*)", 1), NONE, None
        case Digits() if item is not None and item in model.fields and rule.share >= 1:
            name, most = sql_name(item.path), 10 ** (demand.precision - demand.scale)
            too_long = f"{name} <> round({name}, {demand.scale}) OR abs({name}) >= {most}"
            return f"{_COUNT} WHERE {too_long}", NONE, None
    return None


_COUNT = "SELECT count(*) FROM {model}"


def _dialect_of(server: str | None) -> str:
    if server in _OF_DUCKDB:
        return "duckdb"
    return "databricks" if server == "databricks" else "spark"


def _translated(query: str, read: str | None, write: str) -> str | None:
    """The query in another dialect; None if it cannot be parsed."""
    if (read or "spark") == write or {read, write} <= {None, "spark", "databricks"}:
        return query
    import sqlglot
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    # Placeholders are not SQL: they are replaced by names.
    marks = {"{model}": "dqx__model", "{field}": "dqx__field", "{column}": "dqx__column"}
    for mark, name in marks.items():
        query = query.replace(mark, name)
    try:
        (text,) = sqlglot.transpile(query, read=read or "spark", write=write)
    except (SqlglotError, ValueError, RecursionError):
        return None
    for mark, name in marks.items():
        text = text.replace(name, mark)
    return text
