"""Checks of groups in SodaCL: `group by`, with a query for the aggregates of each group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dqx_airflow.migration.documents import one_line
from dqx_airflow.migration.double_quotes import spark_sql
from dqx_airflow.migration.dql_text import column_text, value_text
from dqx_airflow.migration.foreign_rule import Claims, ForeignRule, UntranslatableError
from dqx_airflow.migration.sodacl_levels import comparison_text, levels_of
from dqx_airflow.migration.variables import VARIABLE

_AGGREGATES = {"AVG": "average", "SUM": "sum", "MIN": "minimum", "MAX": "maximum"}


def rules_of_groups(
    settings: Mapping[str, Any], dataset: str, place: str, own_filter: str | None, shown: str
) -> Iterator[ForeignRule]:
    """The checks of `group by`: each on an aggregate of the query for each group."""
    checks = settings.get("checks")
    try:
        metrics, groups, where = _groups_of(settings)
    except UntranslatableError as error:
        yield ForeignRule(dataset, place, shown, f"group by: {error}")
        return
    filters = [f"({condition})" for condition in (own_filter, where) if condition]
    for check in checks if isinstance(checks, list) else []:
        given = next(iter(check.values())) if isinstance(check, Mapping) else None
        text = str(next(iter(check)) if isinstance(check, Mapping) else check)
        settings_of_check = dict(given) if isinstance(given, Mapping) else {}
        for severity, compared in levels_of(text, settings_of_check):
            alias, _, comparison = (compared or "").strip().partition(" ")
            try:
                if alias.lower() not in metrics:
                    raise UntranslatableError(f"the query has no '{alias}'")
                claim = f"{metrics[alias.lower()]} {comparison_text(comparison, '')}"
                claimed: Claims | str = Claims(alias, (claim,))
            except UntranslatableError as error:
                claimed = f"group by: {error}"
            yield ForeignRule(
                dataset,
                place,
                f"group by {', '.join(groups)}: {one_line(check)}",
                claimed,
                name=str(settings_of_check["name"]) if settings_of_check.get("name") else None,
                severity=severity,
                where=" AND ".join(filters) or None,
                groups=groups,
                difference="a dataset without rows passes in Soda but fails here",
            )


def _groups_of(
    settings: Mapping[str, Any],
) -> tuple[dict[str, str], tuple[str, ...], str | None]:
    """The aggregates of the query by their names, the columns of the groups, and the filter.

    :raises UntranslatableError: the query is more than aggregates of groups of one table.
    """
    import sqlglot
    from sqlglot import exp

    text = spark_sql(settings.get("query"))
    if (variable := VARIABLE.search(text)) is not None:
        raise UntranslatableError(f"write the value of the variable {variable[0]}")
    try:
        query = sqlglot.parse_one(text)
    except sqlglot.ParseError:
        raise UntranslatableError("its query is not valid SQL") from None
    more = ("joins", "having", "limit", "with", "with_", "distinct", "qualify")
    if not isinstance(query, exp.Select) or any(query.args.get(key) for key in more):
        raise UntranslatableError("its query is not a grouped aggregation of one table")
    metrics: dict[str, str] = {}
    for column in query.expressions:
        if isinstance(column, exp.Alias):
            metrics[column.alias.lower()] = _metric(column.this)
    fields = settings.get("fields")
    if not isinstance(fields, list) or not fields:
        raise UntranslatableError("it has no fields")
    where = query.args.get("where")
    groups = tuple(column_text(str(field)) for field in fields)
    return metrics, groups, where.this.sql("spark") if where else None


def _metric(node: Any) -> str:
    """An SQL aggregate as a metric of DQL.

    :raises UntranslatableError: it has no counterpart.
    """
    from sqlglot import exp

    match node:
        case exp.Count(this=exp.Star()):
            return "num_rows()"
        case exp.Count(this=exp.Distinct(expressions=[exp.Column() as column])):
            return f"unique_count({column_text(column.name)})"
        case exp.Count(this=exp.Column() as column):
            return f"count({column_text(column.name)})"
        case exp.Avg() | exp.Sum() | exp.Min() | exp.Max() if isinstance(node.this, exp.Column):
            metric = _AGGREGATES[node.key.upper()]
            return f"{metric}({column_text(node.this.name)})"
        case exp.AggFunc():
            return f"sql({value_text(node.sql('spark'))})"
    raise UntranslatableError(f"`{node.sql()}` is not an aggregate of a column")
